// Types of the client; those of the methods are generated from the daemon's registry.

import type { Methods } from "./methods.js";

export type * from "./methods.js";

export interface OpenOptions {
  /** The program to start; default: flashgrep, from PATH. */
  command?: string;
  /** Its environment; default: that of this process. */
  env?: Record<string, string | undefined>;
}

export interface CallOptions {
  /** Gives the call up, for the daemon too. */
  signal?: AbortSignal;
}

export type Params<M extends keyof Methods> = Methods[M]["params"];
export type Result<M extends keyof Methods> = Methods[M]["result"];

/** Methods that answer in pages. */
export type Paged = {
  [M in keyof Methods]: "cursor" extends keyof Params<M> ? (Result<M> extends { results: unknown[] } ? M : never) : never;
}[keyof Methods];
export type Item<M extends Paged> = Result<M> extends { results: (infer I)[] } ? I : never;

/** A failure that the daemon reports; `reason` is for programs, `data` has what else it says. */
export class FlashgrepError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly data: Record<string, unknown>;
}

/** The program `flashgrep` could not be started, or ended in the middle of a call. */
export class Unreachable extends Error {}

/** Return the project around a folder, which becomes one if it is in none; without a folder, that of the process. */
export function open(folder?: string, options?: OpenOptions): Promise<Project>;

/** A project, or a revision of it. */
export class Project implements Disposable {
  private constructor();
  /** Call a method and return its result, as it is on the wire. */
  call<M extends keyof Methods>(method: M, params?: Params<M>, call?: CallOptions): Promise<Result<M>>;
  /** Yield all results of a method that answers in pages; `limit` is the most in all. */
  each<M extends Paged>(method: M, params?: Params<M>, call?: CallOptions): AsyncGenerator<Item<M>, void, void>;
  /** Yield the lines that have a text; all of them, in path order, unless the options say otherwise. */
  query(
    text: string,
    options?: Omit<Params<"query">, "query">,
    call?: CallOptions,
  ): AsyncGenerator<Item<"query">, void, void>;
  /** Yield the occurrences of a name in code, definitions first. */
  symbol(
    name: string,
    options?: Omit<Params<"get_symbol">, "symbol_name">,
    call?: CallOptions,
  ): AsyncGenerator<Item<"get_symbol">, void, void>;
  /** Yield the files whose path has these words, or all files. */
  files(
    words?: string,
    options?: Omit<Params<"list_files">, "query">,
    call?: CallOptions,
  ): AsyncGenerator<Item<"list_files">, void, void>;
  /** Return the code that answers a question, best first. */
  searchCode(
    question: string,
    options?: Omit<Params<"search_code">, "query">,
    call?: CallOptions,
  ): Promise<Result<"search_code">>;
  /** Wait until everything is indexed, for 100 s at most unless `deadline_ms` says more. */
  index(options?: Omit<Params<"index_codebase">, "path">, call?: CallOptions): Promise<Result<"index_codebase">>;
  /** Return a file, or a part of it. */
  read(path: string, options?: Omit<Params<"read_code">, "path">, call?: CallOptions): Promise<Result<"read_code">>;
  /** Return the same project at a branch, tag or commit. */
  rev(name: string): Project;
  /** End the connection; calls in flight fail. */
  close(): void;
  [Symbol.dispose](): void;
}
