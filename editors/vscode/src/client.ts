/**
 * One connection to the daemon per project: JSON-RPC 2.0, one message per line. Independent of VS Code.
 *
 * The project's own socket is tried first. If nothing listens there, `flashgrep rpc ROOT` starts the daemon and relays.
 * When a connection ends, its requests fail, and the next request reconnects.
 */

import { spawn } from "node:child_process";
import { lstatSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

/** An error answer of the daemon, or the reason why there is no answer. */
export class AnswerError extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}

/** The caller cancelled the request. */
export class GivenUp extends Error {}

const UNAVAILABLE = -32000;

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** The current connection: functions to write a line and to close it. */
interface Wire {
  sink: Writable;
  close(): void;
}

interface Message {
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
}

export class Client {
  /** Counts connections and daemons: buffers and subscriptions end with each. */
  session = 0;
  private wire: Promise<Wire> | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private readonly handlers = new Map<string, (params: unknown) => void>();
  private last = 0;
  private connections = 0;

  constructor(
    readonly root: string,
    private readonly command: readonly string[],
  ) {
    // The relay continues with another daemon.
    this.on("$/buffersLost", () => (this.session += 1));
  }

  /** Call a method; rejects with AnswerError, or with GivenUp on abort, which also cancels the work. */
  async request<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result> {
    if (signal?.aborted) {
      throw new GivenUp();
    }
    const id = ++this.last;
    const answer = new Promise<unknown>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    const giveUp = () => {
      this.waiting.get(id)?.reject(new GivenUp());
      if (this.waiting.delete(id)) {
        void this.notify("$/cancelRequest", { id });
      }
    };
    signal?.addEventListener("abort", giveUp);
    try {
      void this.send({ jsonrpc: "2.0", id, method, params });
      return (await answer) as Result;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /** Send a notification to the daemon. */
  notify(method: string, params: object): Promise<void> {
    return this.send({ jsonrpc: "2.0", method, params });
  }

  /** Register a handler for notifications of a method. */
  on(method: string, handler: (params: unknown) => void): void {
    this.handlers.set(method, handler);
  }

  /** Close the connection; the next request reconnects. */
  async close(): Promise<void> {
    const wire = this.wire;
    this.finish("closed");
    (await wire?.catch(() => undefined))?.close();
  }

  private async send(message: object): Promise<void> {
    this.wire ??= this.connect();
    try {
      (await this.wire).sink.write(JSON.stringify(message) + "\n");
    } catch (error) {
      this.finish(error instanceof Error ? error.message : String(error));
    }
  }

  private async connect(): Promise<Wire> {
    const folder = join(this.root, ".flashgrep");
    const path = join(folder, "mcp.sock");
    // A socket that came with somebody's folder must not be used; socket paths have at most 107 bytes.
    if (path.length < 100 && isOwn(folder) && isOwn(path)) {
      const socket = createConnection(path);
      const connected = await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true));
        socket.once("error", () => resolve(false));
      });
      if (connected) {
        const wire = { sink: socket, close: () => socket.destroy() };
        this.read(socket, () => "the daemon ended");
        return wire;
      }
    }
    return this.startRelay();
  }

  private startRelay(): Promise<Wire> {
    const [program = "flashgrep", ...rest] = this.command;
    const relay = spawn(program, [...rest, "rpc", this.root], { stdio: "pipe" });
    let complaint = "";
    relay.stderr.on("data", (piece: Buffer) => (complaint = piece.toString().split("\n")[0] ?? ""));
    relay.stdin.on("error", () => undefined); // told by the end of its output as well
    this.read(relay.stdout, () => complaint || "the daemon ended");
    return new Promise((resolve, reject) => {
      relay.once("spawn", () => resolve({ sink: relay.stdin, close: () => relay.stdin.end() }));
      relay.once("error", (error) => reject(new Error(`${program} cannot be run: ${error.message}`)));
    });
  }

  private read(source: Readable, why: () => string): void {
    const wire = this.connections;
    let pieces: Buffer[] = [];
    source.on("data", (piece: Buffer) => {
      let from = 0;
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
        const line = Buffer.concat([...pieces, piece.subarray(from, at)]);
        pieces = [];
        from = at + 1;
        if (wire === this.connections) {
          this.receive(line.toString());
        }
      }
      pieces.push(piece.subarray(from));
    });
    const end = () => wire === this.connections && this.finish(why());
    source.on("end", end);
    source.on("error", end);
  }

  private receive(line: string): void {
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      return; // no message of ours to answer
    }
    if (message.method !== undefined) {
      this.handlers.get(message.method)?.(message.params);
      return;
    }
    const waiting = this.waiting.get(message.id ?? 0);
    this.waiting.delete(message.id ?? 0);
    if (message.error) {
      waiting?.reject(new AnswerError(message.error.message, message.error.code));
    } else {
      waiting?.resolve(message.result);
    }
  }

  private finish(reason: string): void {
    this.connections += 1;
    this.session += 1;
    this.wire = undefined;
    const ended = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of ended) {
      one.reject(new AnswerError(reason, UNAVAILABLE));
    }
  }
}

function isOwn(path: string): boolean {
  try {
    const status = lstatSync(path);
    return status.uid === process.getuid?.() && (status.isDirectory() || status.isSocket());
  } catch {
    return false;
  }
}
