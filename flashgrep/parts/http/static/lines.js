// The lines of a file, fetched on demand in blocks, each block once.

import { lex, lexerFor } from "./highlight.js";
import { languageOf } from "./languages.js";
import { call } from "./rpc.js";

export const BLOCK = 1000;
const MOST_BYTES = 196_608;
/** Requests for one block; the rest of very long lines is only in the raw file. */
const MOST_PIECES = 16;

/** A file of a project, at a revision or now. */
export class Lines {
  constructor(place, signal) {
    this.place = place;
    this.total = 0;
    this.size = 0;
    this.note = "";
    this.hash = "";
    this.signal = signal;
    this.blocks = new Map();
    this.loading = new Map();
    this.ends = new Map();
    this.family = lexerFor(languageOf(place.path)?.name);
  }

  /** Fetch the block of a line, unless it was fetched before. */
  load(line) {
    const block = Math.floor((Math.max(line, 1) - 1) / BLOCK);
    if (!this.loading.has(block)) this.loading.set(block, this.#fetch(block));
    return this.loading.get(block);
  }

  async #fetch(block) {
    const lines = [];
    const first = block * BLOCK + 1;
    let from = { start_line: first };
    for (let piece = 0; piece < MOST_PIECES && lines.length < BLOCK; piece += 1) {
      const answer = await call("read_code", { ...this.#target(), ...from, end_line: first + BLOCK - 1, max_bytes: MOST_BYTES }, this.signal);
      if (block === 0 && !lines.length) this.#note(answer);
      const texts = answer.content.split("\n");
      if (answer.content.endsWith("\n")) texts.pop();
      if (answer.start_byte_column && lines.length) lines[lines.length - 1] += texts.shift() ?? "";
      for (const text of texts) lines.push(text.endsWith("\r") ? text.slice(0, -1) : text);
      const cursor = answer.continuation.cursor;
      if (!answer.truncated || !cursor || !texts.length) break;
      from = { continuation_start_line: cursor.continuation_start_line, continuation_start_byte: cursor.continuation_start_byte };
      if (cursor.continuation_start_line >= first + BLOCK) break;
    }
    // Missing lines, as when a file has become shorter, are empty, so that they are not requested again and again.
    while (lines.length < Math.min(BLOCK, this.total - first + 1)) lines.push("");
    const found = { lines: lines.slice(0, BLOCK), tokens: null, start: undefined };
    this.blocks.set(block, found);
    return found;
  }

  #target() {
    const { project, path, path_bytes, rev } = this.place;
    return { ...(path_bytes ? { path_bytes } : { path }), ...(project ? { project } : {}), ...(rev ? { rev } : {}) };
  }

  #note(answer) {
    this.total = answer.total_lines_available ?? answer.end_line;
    this.size = answer.file_size;
    this.hash = answer.file_hash ?? "";
    this.note = [answer.encoding === "utf-8" ? "" : answer.encoding, answer.line_ending === "lf" ? "" : answer.line_ending, answer.invalid_bytes ? `${answer.invalid_bytes} invalid bytes` : ""].filter(Boolean).join(", ");
  }

  /** Return a line's text, or undefined if it is not loaded yet. */
  text(line) {
    return this.blocks.get(Math.floor((line - 1) / BLOCK))?.lines?.[(line - 1) % BLOCK];
  }

  /** Return a line's tokens; those of its whole block are computed at the first call. */
  tokens(line) {
    const number = Math.floor((line - 1) / BLOCK);
    const block = this.blocks.get(number);
    if (!this.family || !block?.lines) return [];
    const start = this.ends.get(number - 1) ?? null;
    if (!block.tokens || block.start !== start) {
      block.start = start;
      block.tokens = [];
      let state = start;
      for (const text of block.lines) {
        const found = lex(this.family, text, state);
        block.tokens.push(found.tokens);
        state = found.state;
      }
      this.ends.set(number, state);
    }
    return block.tokens[(line - 1) % BLOCK] ?? [];
  }
}
