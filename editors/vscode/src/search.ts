/** Searching and replacing over a connection. Independent of VS Code. */

import { type Client, GivenUp } from "./client";

export interface Question {
  text: string;
  how: "text" | "regex" | "meaning";
  matchCase: boolean;
  word: boolean;
  include: string[];
  exclude: string[];
  limit: number;
}

/** A location: lines and columns from 0, columns and spans in UTF-16 code units as in VS Code. */
export interface Found {
  root: string;
  path: string;
  line: number;
  endLine: number;
  column: number;
  text: string;
  /** Matches in `text`: start and end. */
  spans: [number, number][];
  detail: string;
}

export interface Results {
  found: Found[];
  /** Whether there are more results. */
  more: boolean;
  /** Why the answer may be incomplete; empty if it is complete. */
  caveat: string;
}

interface Coverage {
  complete: boolean;
  detail?: string;
}

interface Hit {
  file_path: string;
  start_line: number;
  end_line: number;
  column: number;
  text: string;
  text_column?: number;
  spans?: { start_line: number; start_column: number; end_line: number; end_column: number }[];
}

interface Piece {
  file_path: string;
  start_line: number;
  end_line: number;
  content: string;
  kind: string;
  name: string;
  score: number;
}

/** Return the results of a search in one project. */
export async function search(client: Client, question: Question, signal?: AbortSignal): Promise<Results> {
  if (question.text === "") {
    return { found: [], more: false, caveat: "" };
  }
  const where = { ...globs("include", question.include), ...globs("exclude", question.exclude) };
  if (question.how === "meaning") {
    const params = { query: question.text, limit: Math.min(question.limit, 100), ...where };
    const answer = await client.request<{ results: Piece[]; coverage: Coverage }>("search_code", params, signal);
    const found = answer.results.map((piece) => ({
      root: client.root,
      path: piece.file_path,
      line: piece.start_line - 1,
      endLine: piece.end_line - 1,
      column: 0,
      text: piece.content.split("\n", 1)[0] ?? "",
      spans: [],
      detail: `${piece.kind} ${piece.name} ${piece.score.toFixed(2)}`,
    }));
    return { found, more: false, caveat: caveatOf(answer.coverage) };
  }
  const params = { ...queryParams(question), limit: question.limit, max_tokens: 1_000_000, ...where };
  const answer = await client.request<{ results: Hit[]; next: string | null; coverage: Coverage }>(
    "query",
    params,
    signal,
  );
  return {
    found: answer.results.map((hit) => makeFound(client.root, hit)),
    more: answer.next !== null,
    caveat: caveatOf(answer.coverage),
  };
}

function queryParams(question: Question): object {
  return {
    query: question.text,
    mode: question.how === "regex" ? "regex" : "literal",
    case: question.matchCase ? "sensitive" : "smart",
    word: question.word,
    order: "relevance",
    spans: true,
    position_encoding: "utf-16",
  };
}

function globs(name: string, given: string[]): object {
  return given.length > 0 ? { [name]: given } : {};
}

function caveatOf(coverage: Coverage): string {
  return coverage.complete ? "" : (coverage.detail ?? "not all files were searched");
}

function makeFound(root: string, hit: Hit): Found {
  // A long line is sent as the part around its match.
  const shift = hit.text_column ?? 1;
  return {
    root,
    path: hit.file_path,
    line: hit.start_line - 1,
    endLine: hit.end_line - 1,
    column: hit.column - 1,
    text: hit.text,
    spans: (hit.spans ?? [])
      .filter((range) => range.start_line === hit.start_line && range.end_line === hit.start_line)
      .map((range) => [range.start_column - shift, range.end_column - shift]),
    detail: "",
  };
}

/** Live search: each search cancels the previous one. */
export class Live {
  private flying: AbortController | undefined;

  /**
   * Return the merged answers of all projects, or undefined if another search has started. `prepare` sends unsaved text
   * and returns the clients.
   */
  async ask(prepare: () => readonly Client[], question: Question): Promise<Results | undefined> {
    this.stop();
    const own = (this.flying = new AbortController());
    try {
      for (let isLast = false; ; isLast = true) {
        const clients = prepare();
        const sessions = clients.map((client) => client.session);
        const answers = await Promise.all(clients.map((client) => search(client, question, own.signal)));
        if (own.signal.aborted) {
          return undefined;
        }
        // If the daemon was replaced, the new one did not have the unsaved text.
        if (isLast || clients.every((client, at) => client.session === sessions[at])) {
          return join(answers);
        }
      }
    } catch (error) {
      if (error instanceof GivenUp || own.signal.aborted) {
        return undefined;
      }
      throw error;
    }
  }

  stop(): void {
    this.flying?.abort();
    this.flying = undefined;
  }
}

function join(answers: Results[]): Results {
  return {
    found: answers.flatMap((answer) => answer.found),
    more: answers.some((answer) => answer.more),
    caveat: answers.map((answer) => answer.caveat).filter(Boolean).join("; "),
  };
}

/** Most files in one replacement: the daemon's limit for a batch. */
export const MOST_FILES = 500;

export interface Plan {
  /** The changes as a unified diff. */
  diff: string;
  files: string[];
  /** Write all changes or none; refused if a file has changed. */
  apply(): Promise<void>;
}

interface Operation {
  path: string;
  old_text: string;
  new_text: string;
  replace_all: true;
  precondition?: { expected_file_hash: string | null };
}

interface Batch {
  diff?: string;
  diff_truncated?: boolean;
  results: { status: string; file_path: string; message: string | null; reason_code: string | null; file_hash_before: string | null }[];
}

/** Plan a case-sensitive replacement of a text. Throws if there is nothing to change, or too much. */
export async function planReplacing(client: Client, question: Question, replacement: string): Promise<Plan> {
  const params = {
    query: question.text,
    mode: "literal",
    case: "sensitive",
    output: "files",
    order: "path",
    limit: MOST_FILES,
    max_tokens: 1_000_000,
    ...globs("include", question.include),
    ...globs("exclude", question.exclude),
  };
  const answer = await client.request<{ results: Hit[]; next: string | null; coverage: Coverage }>("query", params);
  if (answer.next !== null) {
    throw new Error(`more than ${MOST_FILES} files match: restrict the files to include`);
  }
  if (!answer.coverage.complete) {
    throw new Error(caveatOf(answer.coverage));
  }
  if (answer.results.length === 0) {
    throw new Error("nothing matches");
  }
  const operations: Operation[] = answer.results.map((hit) => ({
    path: hit.file_path,
    old_text: question.text,
    new_text: replacement,
    replace_all: true,
  }));
  const send = async (dryRun: boolean): Promise<Batch> => {
    const batch = await client.request<Batch>("batch_write_code", { operations, dry_run: dryRun });
    const refused = batch.results.find((one) => one.status === "failed" || one.status === "conflict");
    if (refused) {
      throw new Error(`${refused.file_path}: ${refused.message ?? refused.reason_code}; nothing was written`);
    }
    return batch;
  };
  const dry = await send(true);
  const planned = dry.results.map((one, at) => {
    const operation = operations[at];
    if (operation) {
      operation.precondition = { expected_file_hash: one.file_hash_before };
    }
    return one.file_path;
  });
  return {
    diff: (dry.diff ?? "") + (dry.diff_truncated ? "\n[the diff is truncated]\n" : ""),
    files: planned,
    apply: async () => void (await send(false)),
  };
}
