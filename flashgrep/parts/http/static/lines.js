// The lines of a file, fetched on demand in blocks, each block once.

import { lex, lexerFor } from "./highlight.js";
import { languageOf } from "./languages.js";
import { call } from "./rpc.js";

export const BLOCK = 4000;
/** Beyond these blocks lines have no colours: they would need the whole text before them. */
const MOST_LEXED = 25;
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
    /** Blocks that have tokens, from the first, and the lexer's state after them. */
    this.lexed = 0;
    this.state = null;
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
    const found = { lines: lines.slice(0, BLOCK), tokens: [] };
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

  /** Fetch what the colours of a line depend on, all lines before it; null if everything is there. */
  loadBefore(line) {
    const number = Math.floor((line - 1) / BLOCK);
    if (!this.family || number >= MOST_LEXED) return null;
    const missing = [];
    for (let block = this.lexed; block <= number; block += 1) if (!this.blocks.has(block)) missing.push(this.load(block * BLOCK + 1));
    return missing.length ? Promise.all(missing) : null;
  }

  /** Return a line's tokens, from the lexer's state at the end of the line before; none while lines before it are missing. */
  tokens(line) {
    const number = Math.floor((line - 1) / BLOCK);
    if (!this.family || number >= MOST_LEXED) return [];
    for (; this.lexed <= number; this.lexed += 1) {
      const block = this.blocks.get(this.lexed);
      if (!block) return [];
      block.tokens = block.lines.map((text) => {
        const { tokens, state } = lex(this.family, text, this.state);
        this.state = state;
        return tokens;
      });
    }
    return this.blocks.get(number).tokens[(line - 1) % BLOCK] ?? [];
  }

  /** Fetch and return all lines, or null if there are more than `most`. */
  async all(most) {
    await this.load(1);
    if (this.total > most) return null;
    const lines = [];
    for (let first = 1; first <= this.total; first += BLOCK) lines.push(...(await this.load(first)).lines);
    return lines;
  }
}
