import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

/** What a line of the protocol may say. */
export type Verb = 'get' | 'set' | 'del';

export interface Command {
  readonly verb: Verb;
  readonly key: string;
  readonly value?: string;
}

const LIMIT = 1 << 16;
const SEPARATOR = '\r\n';

/** Reads commands from a socket, however its packets are cut. */
export class Reader extends EventEmitter {
  private rest = '';

  constructor(private readonly socket: Socket) {
    super();
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => this.feed(text));
    socket.on('close', () => this.emit('end'));
  }

  /** Adds text and emits each command that is complete. */
  feed(text: string): void {
    this.rest += text;
    if (this.rest.length > LIMIT) {
      this.emit('error', new Error(`a line of more than ${LIMIT} letters`));
      this.socket.destroy();
      return;
    }
    let end = this.rest.indexOf(SEPARATOR);
    while (end >= 0) {
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + SEPARATOR.length);
      const command = parse(line);
      if (command === undefined) {
        this.emit('error', new Error(`not a command: ${line}`));
      } else {
        this.emit('command', command);
      }
      end = this.rest.indexOf(SEPARATOR);
    }
  }
}

export function parse(line: string): Command | undefined {
  const [verb, key, ...words] = line.split(' ');
  if (key === undefined || !isVerb(verb)) {
    return undefined;
  }
  return verb === 'set' ? { verb, key, value: words.join(' ') } : { verb, key };
}

function isVerb(word: string): word is Verb {
  return word === 'get' || word === 'set' || word === 'del';
}

export const store = (items: Map<string, string>) => async (command: Command): Promise<string> => {
  switch (command.verb) {
    case 'get':
      return items.get(command.key) ?? '';
    case 'set':
      items.set(command.key, command.value ?? '');
      return 'ok';
    case 'del':
      return items.delete(command.key) ? 'ok' : 'no such key';
  }
};
