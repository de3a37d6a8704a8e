// A client of the flashgrep daemon for Node, Bun and Deno, without dependencies: it speaks JSON-RPC with `flashgrep rpc`,
// which starts the daemon if need be and stays connected when it is replaced. The types are in index.d.ts.

import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import process from "node:process";

/** Every method that has both pages and a limit allows this many. */
const PAGE_ITEMS = 1000;
const LARGE_PAGE = { limit: PAGE_ITEMS, max_tokens: 1_000_000 };
const LARGEST_ERROR = 4096;

/** A failure that the daemon reports; `reason` is for programs, `data` has what else it says. */
export class FlashgrepError extends Error {
  constructor({ code, message, data }) {
    super(data?.suggestion ? `${message}: ${data.suggestion}` : message);
    this.name = "FlashgrepError";
    this.code = code;
    this.reason = data?.reason ?? "";
    this.data = data ?? {};
  }
}

/** The program `flashgrep` could not be started, or ended in the middle of a call. */
export class Unreachable extends Error {
  constructor(message) {
    super(message);
    this.name = "Unreachable";
  }
}

/** Throw unless these are options: `read(path, 1, 10)` would silently mean the whole file. */
function checkOptions(options) {
  if (typeof options !== "object" || options === null) throw new TypeError(`options are an object, as { limit: 10 }, not ${options}`);
}

/** Return the project around a folder, which becomes one if it is in none; without a folder, that of the process. */
export async function open(folder, { command = "flashgrep", env } = {}) {
  const connection = new Connection(command, folder, env);
  try {
    await connection.started;
    return new Project(connection);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** A project, or a revision of it. */
export class Project {
  #connection;
  #rev;

  constructor(connection, rev) {
    this.#connection = connection;
    this.#rev = rev;
  }

  /** Call a method and return its result, as it is on the wire. */
  call(method, params = {}, { signal } = {}) {
    const asked = this.#rev === undefined ? params : { rev: this.#rev, ...params };
    return this.#connection.call(method, asked, signal);
  }

  /** Yield all results of a method that answers in pages; `limit` is the most in all. */
  each(method, params = {}, call) {
    return this.#pages(method, params, {}, call); // not every method has the members of LARGE_PAGE
  }

  async *#pages(method, params, size, { signal } = {}) {
    let left = params.limit ?? Infinity;
    const page = { ...size, ...params };
    while (left > 0) {
      if (left < Infinity) page.limit = Math.min(left, PAGE_ITEMS);
      const answer = await this.call(method, page, { signal });
      for (const result of answer.results) yield result;
      left -= answer.results.length;
      page.cursor = answer.next ?? undefined;
      if (page.cursor === undefined) return;
    }
  }

  /** Yield the lines that have a text; all of them, in path order, unless the options say otherwise. */
  query(text, options = {}, call) {
    checkOptions(options);
    return this.#pages("query", { order: "path", ...options, query: text }, LARGE_PAGE, call);
  }

  /** Yield the occurrences of a name in code, definitions first. */
  symbol(name, options = {}, call) {
    checkOptions(options);
    return this.#pages("get_symbol", { ...options, symbol_name: name }, LARGE_PAGE, call);
  }

  /** Yield the files whose path has these words, or all files. */
  files(words = undefined, options = {}, call) {
    checkOptions(options);
    const params = words === undefined ? options : { ...options, query: words };
    return this.#pages("list_files", params, LARGE_PAGE, call);
  }

  /** Return the code that answers a question, best first. */
  searchCode(question, options = {}, call) {
    checkOptions(options);
    return this.call("search_code", { ...options, query: question }, call);
  }

  /** Wait until everything is indexed, for 100 s at most unless `deadline_ms` says more. */
  index(options = {}, call) {
    checkOptions(options);
    return this.#connection.call("index_codebase", { ...options, path: "." }, call?.signal);
  }

  /** Return a file, or a part of it. */
  read(path, options = {}, call) {
    checkOptions(options);
    return this.call("read_code", { ...options, path }, call);
  }

  /** Return the same project at a branch, tag or commit. */
  rev(name) {
    return new Project(this.#connection, name);
  }

  /** End the connection; calls in flight fail. */
  close() {
    this.#connection.close();
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.close();
  }
}

/** The process `flashgrep rpc` and the calls that wait for its answers. */
class Connection {
  #process;
  #calls = new Map();
  #next = 1;
  #held = [];
  #errors = "";
  #end;

  constructor(command, folder, env) {
    const words = folder === undefined ? ["rpc"] : ["rpc", folder];
    this.#process = spawn(command, words, { env: env ?? process.env, stdio: ["pipe", "pipe", "pipe"] });
    this.#process.stdout.on("data", (piece) => {
      try {
        this.#receive(piece);
      } catch (error) {
        // Another program's output, or more than a text can hold: an exception here would end our caller's process.
        this.#fail(`what ${command} rpc has said cannot be read: ${error.message}`);
        this.#process.kill();
      }
    });
    this.#process.stderr.on("data", (piece) => {
      this.#errors = (this.#errors + piece).slice(-LARGEST_ERROR);
    });
    // A write to a process that has ended is reported by its end.
    this.#process.stdin.on("error", () => {});
    this.#process.on("error", (error) => this.#fail(`cannot start ${command}: ${error.message}`));
    this.#process.on("close", () => this.#fail(this.#errors.trim() || `${command} rpc has ended`));
    this.started = this.call("stats", {}).then(() => undefined);
  }

  call(method, params, signal) {
    return new Promise((resolve, reject) => {
      if (this.#end !== undefined) throw new Unreachable(this.#end);
      signal?.throwIfAborted();
      const id = this.#next++;
      const abort = () => {
        this.#calls.delete(id);
        this.#send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });
        reject(signal.reason);
      };
      const forget = () => signal?.removeEventListener("abort", abort);
      this.#calls.set(id, { resolve, reject, forget });
      signal?.addEventListener("abort", abort, { once: true });
      this.#send({ jsonrpc: "2.0", id, method, params });
    });
  }

  close() {
    this.#fail("the project is closed");
    this.#process.stdin.end();
    this.#process.kill();
  }

  #send(message) {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #receive(piece) {
    let start = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, start)) {
      this.#held.push(piece.subarray(start, end));
      this.#answer(Buffer.concat(this.#held).toString("utf8"));
      this.#held = [];
      start = end + 1;
    }
    if (start < piece.length) this.#held.push(piece.subarray(start));
  }

  #answer(line) {
    const message = JSON.parse(line);
    const call = this.#calls.get(message.id);
    if (call === undefined) return; // a notification, or a call that was given up
    this.#calls.delete(message.id);
    call.forget();
    if ("error" in message) call.reject(new FlashgrepError(message.error));
    else call.resolve(message.result);
  }

  #fail(reason) {
    this.#end ??= reason;
    for (const call of this.#calls.values()) {
      call.forget();
      call.reject(new Unreachable(this.#end));
    }
    this.#calls.clear();
  }
}
