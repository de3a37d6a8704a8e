// Parameters and results of the daemon's methods; generated from the registry by scripts/generate, do not edit.

/** What to look for, where, and how much to return. */
export interface QueryParams {
  /** A text, or a regular expression in ripgrep's syntax. */
  query: string;
  /** Further texts: a line with any of them matches. */
  any_of?: string[];
  /** smart: the text itself, best hits first; if nothing has it, as a regex if it looks like one. */
  mode?: "smart" | "literal" | "regex";
  /** smart: insensitive unless the text has a capital letter. */
  case?: "sensitive" | "insensitive" | "smart";
  /** Match whole words only. */
  word?: boolean;
  /** Match whole lines only. */
  line?: boolean;
  /** Let matches span lines. */
  multiline?: boolean;
  /** With multiline: let . match line ends. */
  dotall?: boolean;
  /** backtracking: look-around and back-references, by Python's re; reads every file. */
  engine?: "linear" | "backtracking";
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Only files that match one of these globs, e.g. src/**\/*.py. */
  include?: string[];
  /** Exclude files that match one of these globs. */
  exclude?: string[];
  /** Only files of these languages, e.g. py or rust. */
  language?: string[];
  /** Only files that CODEOWNERS gives to one of these, e.g. @team or me@example.org. */
  owner?: string[];
  /** files: names only. count: matching lines per file. */
  output?: "lines" | "files" | "count";
  /** relevance: definitions and sources first (smart mode's default). path: by path and line. */
  order?: "relevance" | "path" | null;
  /** Lines of context before and after each hit. */
  context?: number;
  /** Lines of context before; overrides `context`. */
  before?: number | null;
  /** Lines of context after; overrides `context`. */
  after?: number | null;
  /** Return all matches of each hit, up to 1,000 (not in words mode). */
  spans?: boolean;
  /** What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32). */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
  /** Most hits to return (10 unless set otherwise). */
  limit?: number | null;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number | null;
  /** Size of the answer, in bytes. */
  max_bytes?: number | null;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Largest file searched, in bytes; overrides the setting. */
  max_file_size?: number | null;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** False: bypass the index and read every file. */
  use_index?: boolean;
  /** Explain how the question was understood and planned. */
  explain?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
  /** A library that the project uses, instead of the project: requests, or requests@2.31. */
  library?: string | null;
  /** All libraries that the project's environments and lock files name, instead of the project. */
  libraries?: boolean;
}

/** What an answer covered, so that an empty list never hides a timeout. */
export interface Coverage {
  complete: boolean;
  fresh: boolean;
  files_searched: number;
  files_skipped: Record<string, number>;
  stage: string;
  generation: number;
  took_ms: number;
  detail?: string;
  revision?: string;
  unsaved?: number;
  projects?: Record<string, string>;
}

/** How a question was understood and planned. */
export interface Explanation {
  pattern: string;
  grams: string;
  candidates: number;
  files_read: number;
  scanned: boolean;
}

/** A hit; with output `files` or `count` only the file, and the count; `project` if several were asked. */
export interface QueryHit {
  project?: string;
  library?: string;
  file_path?: string;
  file_path_bytes?: string;
  start_line?: number;
  end_line?: number;
  column?: number;
  byte_column?: number;
  spans?: Range[];
  spans_left_out?: number;
  text?: string;
  text_column?: number;
  cut?: boolean;
  before?: string[];
  after?: string[];
  score?: number;
  count?: number;
}

/** Lines and columns from 1; the end is exclusive. */
export interface Range {
  start_line: number;
  start_column: number;
  end_line: number;
  end_column: number;
}

/** Hits in order, their total if known, and what was covered. */
export interface QueryResult {
  results: QueryHit[];
  total: number | null;
  next: string | null;
  mode: string;
  fallback?: "regex" | "grep" | "words";
  coverage: Coverage;
  suggestions?: string[];
  explained?: Explanation;
}

/** Parameters of get_slice. */
export interface GetSliceParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Line to continue at, from the last answer's cursor; replaces start_line. */
  continuation_start_line?: number | null;
  /** Byte to continue at inside that line, from the last answer's cursor. */
  continuation_start_byte?: number | null;
  /** Counted by the caller; returned unchanged. */
  chunk_index?: number;
  /** Whether to hash the file for a later precondition; default: if it is at most 1 MiB. */
  include_hash?: boolean | null;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** A library that the project uses, instead of the project: requests, or requests@2.31. */
  library?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** First line, from 1. */
  start_line: number;
  /** Last line, inclusive; past the end means the end. */
  end_line?: number | null;
  /** Number of lines, instead of a last one. */
  max_lines?: number | null;
}

/** The budgets in force and what this answer used of them. */
export interface AppliedLimits {
  max_lines: number | null;
  max_bytes: number;
  max_tokens: number | null;
  server_max_bytes: number;
  consumed_lines: number;
  consumed_bytes: number;
  consumed_tokens: number;
}

/** Where the rest begins (no cursor: there is none), and which chunk this was. */
export interface Continuation {
  cursor: Cursor | null;
  chunk_index: number;
  completed: boolean;
}

/** What to pass back for the rest. */
export interface Cursor {
  file_path: string;
  file_path_bytes?: string;
  continuation_start_line: number;
  continuation_start_byte?: number;
  end_line?: number;
}

/** A target that could not be read, and why. */
export interface MissingTarget {
  target: string;
  error: Record<string, unknown>;
}

/** Lines of a file: ``content`` keeps their line ends, and encodes back to the file's very bytes. */
export interface SliceResult {
  file_path: string;
  file_path_bytes?: string;
  start_line: number;
  end_line: number;
  content: string;
  truncated: boolean;
  continuation_start_line: number | null;
  continuation: Continuation;
  applied_limits: AppliedLimits;
  encoding: "utf-8" | "utf-16-le" | "utf-16-be" | "latin-1";
  bom: boolean;
  line_ending: "lf" | "crlf" | "cr" | "mixed" | "none";
  file_hash: string | null;
  file_size: number;
  invalid_bytes?: number;
  cut?: boolean;
  start_byte_column?: number;
  end_byte_column?: number;
  notes?: string[];
  mode?: string;
  total_lines_available?: number | null;
  library?: string;
  symbol_name?: string;
  also_defined?: string[];
  more?: SliceResult[];
  missing?: MissingTarget[];
}

/** Parameters of read_code. */
export interface ReadCodeParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Line to continue at, from the last answer's cursor; replaces start_line. */
  continuation_start_line?: number | null;
  /** Byte to continue at inside that line, from the last answer's cursor. */
  continuation_start_byte?: number | null;
  /** Counted by the caller; returned unchanged. */
  chunk_index?: number;
  /** Whether to hash the file for a later precondition; default: if it is at most 1 MiB. */
  include_hash?: boolean | null;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** A library that the project uses, instead of the project: requests, or requests@2.31. */
  library?: string | null;
  /** All libraries that the project's environments and lock files name, instead of the project. */
  libraries?: boolean;
  /** Path relative to the project's root; an absolute path inside it is accepted. With symbol_name: the file that defines it. */
  path?: string | null;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** Symbol whose definition to read. */
  symbol_name?: string | null;
  /** Several at once, each a path, path:10-60 or a symbol's name. */
  targets?: string[];
  /** First line, from 1. */
  start_line?: number;
  /** Last line, inclusive. */
  end_line?: number | null;
  /** This many lines from the end. */
  tail?: number | null;
  /** Lines shown on either side of the symbol; default: none if the answer is text. */
  symbol_context_lines?: number;
  /** Most tokens (characters / 4); default 8,000 without max_bytes. */
  max_tokens?: number | null;
  /** Most bytes; default and maximum: 196608. */
  max_bytes?: number | null;
  /** Most lines. */
  max_lines?: number | null;
  /** standard adds mode, total_lines_available and symbol_name. */
  metadata_level?: "minimal" | "standard";
}

/** Which files to list. */
export interface ListFilesParams {
  /** A glob, or parts of the path in any order, best files first, in fzf's terms: `net tcp !test .go$`. If no path has them all, the nearest ones. */
  query?: string | null;
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Only files that match one of these globs, e.g. src/**\/*.py. */
  include?: string[];
  /** Exclude files that match one of these globs. */
  exclude?: string[];
  /** Only files of these languages, e.g. py or rust. */
  language?: string[];
  /** Only files that CODEOWNERS gives to one of these, e.g. @team or me@example.org. */
  owner?: string[];
  /** Other than by path, `query` is a glob. */
  sort_by?: "path" | "name" | "modified" | "size";
  /** Ascending or descending; ties by path, ascending. */
  sort_order?: "asc" | "desc";
  /** Folders to descend; 0: only the files directly in `path`. */
  max_depth?: number | null;
  /** Hidden files, too. */
  include_hidden?: boolean;
  /** false: ignored files, too. */
  respect_ignore?: boolean;
  /** Most files to return. */
  limit?: number;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number | null;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
}

/** A file; its size in bytes and its time only where the disk was asked: by another key, or hidden or ignored. */
export interface ListedFile {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  size?: number;
  modified_unix?: number;
}

/** Files in the order asked for (with a fuzzy filter: nearest first), and `files`, the bare paths. */
export interface ListFilesResult {
  results: ListedFile[];
  files: string[];
  total: number;
  next: string | null;
  fuzzy: boolean;
  coverage: Coverage;
  sort_by?: string;
}

/** Which files to find and how to order them. */
export interface GlobParams {
  /** *.py matches a name at any depth, src/**\/*.py a path below `path`; `[!a]`, `{a,b}`. Used only if `include` is empty. */
  query?: string;
  /** Folder to search, within the project; default: its root. */
  path?: string | null;
  /** Patterns, one of which must match. */
  include?: string[];
  /** Patterns, none of which may match; a matching folder is not entered. */
  exclude?: string[];
  /** Only files with this ending, e.g. rs or .rs, in either case. */
  extensions?: string[];
  /** Folders to descend; 0: only the files directly in `path`. */
  max_depth?: number | null;
  /** False: same as max_depth 0. */
  recursive?: boolean;
  /** Include hidden files, and files in hidden folders. */
  include_hidden?: boolean;
  /** Follow links that stay in the project. */
  follow_symlinks?: boolean;
  /** False: patterns ignore the case of ASCII letters. */
  case_sensitive?: boolean;
  /** False: include what .gitignore excludes; the default with follow_symlinks. */
  respect_ignore?: boolean | null;
  /** Sort key, then the path. */
  sort_by?: "path" | "name" | "modified" | "size";
  /** Ascending or descending; ties by path, ascending. */
  sort_order?: "asc" | "desc";
  /** Files to skip. */
  offset?: number;
  /** Most files to return; never more than 10000. */
  limit?: number | null;
  /** `next` of the previous answer: continue after its last file. */
  cursor?: string | null;
  /** Size of the answer, in tokens; bounded by default if there is no limit. */
  max_tokens?: number | null;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
}

/** A file: `file_path` from the project's root, `relative_path` from the folder searched, size in bytes. */
export interface GlobFile {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  name: string;
  relative_path: string;
  size: number;
  modified_unix: number;
}

/** A page of files; `total` counts all that match, `next` and `next_offset` lead to the next page, or are null. */
export interface GlobResult {
  results: GlobFile[];
  total: number;
  returned: number;
  next_offset: number | null;
  next: string | null;
  completed: boolean;
  options: Record<string, unknown>;
  coverage: Coverage;
}

/** What to index, and how. */
export interface IndexCodebaseParams {
  /** Folder of the codebase: an absolute path, or one relative to the project. */
  path: string;
  /** Embedding provider; default: as in the settings. */
  provider?: "static" | "minilm" | "local" | "ollama" | "openai" | "voyage" | "lmstudio" | "vllm" | "llamacpp" | "mlx" | "swift-embeddings" | null;
  /** Include test files in `files`; they are indexed in any case. */
  include_tests?: boolean;
  /** Delete the index and rebuild it. */
  rebuild?: boolean;
  /** After this time the answer reports the progress; indexing continues. */
  deadline_ms?: number;
}

/** Number of files by their change since this connection last asked, or since the project was opened. */
export interface Incremental {
  added: number;
  changed: number;
  removed: number;
  unchanged: number;
}

/** What the index holds; `complete` false: time ran out, `stage` says how far it got, and indexing continues. */
export interface IndexCodebaseResult {
  project: string;
  path: string;
  complete: boolean;
  stage: string;
  files: number;
  test_files: number;
  files_skipped: Record<string, number>;
  chunks: number;
  lines: number;
  index_size_bytes: number;
  duration_seconds: number;
  rebuilt: boolean;
  provider: string;
  incremental: Incremental;
  detail?: string;
}

/** Which folder, and what to do. */
export interface WatchCodebaseParams {
  /** Folder of the codebase: an absolute path, or one relative to the project. */
  path: string;
  /** start: watch, the default. stop: each question then scans the whole tree. status: only report. */
  action: "start" | "stop" | "status";
  /** Most files to name; list_files names all. */
  limit?: number;
}

/** A file; its name also in base64 if it is not UTF-8; `project` if several were asked. */
export interface FilePlace {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
}

/** How a project is watched: `changed` says whether this call changed it, `results` names watched files. */
export interface WatchCodebaseResult {
  action: string;
  project: string | null;
  path: string;
  state: "watching" | "stopped" | "failed" | "closed";
  changed: boolean;
  message: string;
  problem: string;
  files_watched: number;
  files_pending: number;
  results: FilePlace[];
  stage: string;
  generation: number;
}

/** What every method on files takes. */
export interface ProjectParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** The live state of a project and its index; sizes in bytes, times in seconds since 1970. */
export interface StatsResult {
  project: string | null;
  version: string;
  projects: string[];
  message?: string;
  address?: string;
  pid?: number;
  root?: string;
  total_files?: number;
  total_chunks?: number;
  total_lines?: number;
  index_size_bytes?: number;
  gram_bytes?: number;
  vector_bytes?: number;
  store_projects?: number;
  shared_texts?: number;
  shared_bytes?: number;
  revision_texts?: number;
  revision_bytes?: number;
  last_update?: number | null;
  stage?: string;
  stage_since?: number;
  stage_detail?: string;
  generation?: number;
  files_pending?: number;
  files_skipped?: Record<string, number>;
  indexing?: Record<string, unknown>;
  problem?: string;
  settings_warnings?: string[];
  watching?: boolean;
  watch_problem?: string;
  failures?: Record<string, number>;
}

/** How much of the skill to send, and its source. */
export interface BootstrapParams {
  /** The name the call goes by, one of bootstrap_skill, flashgrep-init, flashgrep_init, fgrep-boot, fgrep_boot; all equivalent. */
  trigger?: string | null;
  /** Leave out the skill's text and overview. */
  compact?: boolean;
  /** Send the skill even if this connection already has it. */
  force?: boolean;
  /** Use the project's own skill instead of the packaged one. */
  allow_repo_override?: boolean;
  /** Path of the project's own skill. */
  repo_override_path?: string;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** Preferred methods by task; advice only, nothing is refused for not following it. */
export interface PolicyMetadata {
  policy_version: string;
  policy_strength: "advice";
  policy_hash: string;
  bootstrap_state: "injected" | "already_injected";
  payload_source: "embedded" | "repo_override";
  preferred_tool_families: Record<string, string[]>;
}

/** The skill's front matter. */
export interface SkillInfo {
  name: string;
  version: string;
  description: string;
  author: string;
  repository: string;
}

/** The skill, once per connection (`status`), and its metadata. */
export interface BootstrapResult {
  ok: true;
  status: "injected" | "already_injected";
  canonical_trigger: string;
  payload_source: "embedded" | "repo_override";
  source_path: string | null;
  override_requested: boolean;
  policy: string[];
  policy_metadata: PolicyMetadata;
  skill_hash: string;
  skill_version: string;
  skill_info: SkillInfo;
  skill_overview?: string;
  skill_markdown?: string;
}

/** One read or search. */
export interface CallParams {
  /** A method that only reads. */
  method: string;
  /** Its arguments. */
  arguments?: Record<string, unknown>;
}

/** The calls, and the size of their answers together. */
export interface BatchParams {
  /** Reads or searches, answered in this order. */
  calls: CallParams[];
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number;
}

/** What a call answered: its result or its error; in plain text, as it would be answered alone. */
export interface BatchItem {
  method?: string;
  arguments?: Record<string, unknown>;
  result?: unknown;
  error?: Record<string, unknown>;
  text?: string;
}

/** The answers in the order of the calls. */
export interface BatchResult {
  results: BatchItem[];
}

/** What the caller expects of the file; all must hold. */
export interface PreconditionParams {
  /** The file's hash from a read: 8 or more digits of its SHA-256. */
  expected_file_hash?: string | null;
  /** Text of start_line, without its line end. */
  expected_start_line_text?: string | null;
  /** Text of end_line, without its line end. */
  expected_end_line_text?: string | null;
  /** true: the file must not exist, and is created. */
  expected_absent?: boolean | null;
}

/** Parameters of write_code. */
export interface WriteCodeParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** First line to replace, from 1. */
  start_line?: number | null;
  /** Last line to replace; start_line - 1 inserts before start_line. */
  end_line?: number | null;
  /** With end_column: only the characters from it, from 1, in start_line. */
  start_column?: number | null;
  /** To before this one, in end_line. */
  end_column?: number | null;
  /** New lines; empty deletes. Alone: a new file. */
  replacement?: string | null;
  /** Instead of lines: a text that occurs once. */
  old_text?: string | null;
  /** What old_text becomes. */
  new_text?: string | null;
  /** Replace every occurrence of old_text. */
  replace_all?: boolean;
  /** The #hash of a read: nothing is written if the file differs. */
  expected_file_hash?: string | null;
  /** What the file is expected to be. */
  precondition?: PreconditionParams;
  /** Name of a write sent in chunks; generated if left out. */
  continuation_id?: string | null;
  /** Index of this chunk of replacement, from 0. */
  chunk_index?: number | null;
  /** true for the last chunk, which performs the write. */
  is_final_chunk?: boolean | null;
  /** Change nothing; return a unified diff of what would change. */
  dry_run?: boolean;
}

/** How far a staged write is (no cursor: done). */
export interface StagedContinuation {
  cursor: StagedCursor | null;
  chunk_index: number;
  completed: boolean;
}

/** What the next chunk is. */
export interface StagedCursor {
  continuation_id: string;
  next_chunk_index: number;
}

/** A file that no longer parses, and the line of the first error. */
export interface UnparsedFile {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  line: number;
}

/** What was done to one file, or would be (``dry_run``), or what of it arrived (a chunk that is not the last). */
export interface WriteResult {
  unparsed?: UnparsedFile[];
  unchecked?: number;
  ok: boolean;
  file_path: string;
  file_path_bytes?: string;
  start_line?: number;
  end_line?: number;
  replaced_line_count?: number;
  new_line_count?: number;
  file_hash_before?: string | null;
  file_hash_after?: string;
  created?: boolean;
  occurrences?: number;
  dry_run?: boolean;
  diff?: string;
  diff_truncated?: boolean;
  continuation?: StagedContinuation;
  received_bytes?: number;
}

/** One operation of a batch. */
export interface OperationParams {
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** First line to replace, from 1. */
  start_line?: number | null;
  /** Last line to replace; start_line - 1 inserts before start_line. */
  end_line?: number | null;
  /** With end_column: only the characters from it, from 1, in start_line. */
  start_column?: number | null;
  /** To before this one, in end_line. */
  end_column?: number | null;
  /** New lines; empty deletes. Alone: a new file. */
  replacement?: string | null;
  /** Instead of lines: a text that occurs once. */
  old_text?: string | null;
  /** What old_text becomes. */
  new_text?: string | null;
  /** Replace every occurrence of old_text. */
  replace_all?: boolean;
  /** The #hash of a read: nothing is written if the file differs. */
  expected_file_hash?: string | null;
  /** What the file is expected to be. */
  precondition?: PreconditionParams;
  /** The caller's name for this operation, unique in the batch; default: number. */
  id?: string | null;
  /** Instead of path: several files, all changed the same way. */
  paths?: string[];
}

/** Parameters of batch_write_code. */
export interface BatchWriteCodeParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** File of operations that name none. */
  path?: string;
  /** The edits, each as for write_code; `paths`: one edit of several files. */
  operations: OperationParams[];
  /** best_effort: every valid edit, the others are reported. */
  mode?: "atomic" | "best_effort";
  /** Check everything, change nothing, return the diff. */
  dry_run?: boolean;
}

/** The outcome of one operation in one file; the hashes are the file's, before and after all operations on it. */
export interface OperationResult {
  id: string;
  status: "applied" | "failed" | "conflict" | "skipped";
  reason_code: string | null;
  message: string | null;
  file_path: string;
  start_line: number | null;
  end_line: number | null;
  file_hash_before: string | null;
  file_hash_after: string | null;
  occurrences?: number;
  data?: Record<string, unknown>;
}

/** The outcome of a batch, operations in the requested order; ``diff``: what would change (dry_run). */
export interface BatchWriteCodeBatchResult {
  unparsed?: UnparsedFile[];
  unchecked?: number;
  ok: boolean;
  mode: "atomic" | "best_effort";
  results: OperationResult[];
  applied_count: number;
  failed_count: number;
  conflict_count: number;
  skipped_count: number;
  diff?: string;
  diff_truncated?: boolean;
}

/** Parameters of fs_create. */
export interface FsCreateParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** Make a folder instead of a file. */
  dir?: boolean;
  /** Create missing parent folders. */
  parents?: boolean;
  /** Empty an existing file. */
  overwrite?: boolean;
  /** Change nothing; return what would be done. */
  dry_run?: boolean;
}

/** One name: size in bytes, time in whole seconds; ``readonly``: nobody has the right to write it. */
export interface FileEntry {
  path: string;
  path_bytes?: string;
  file_type: "file" | "directory" | "symlink" | "other";
  size: number;
  modified_unix: number;
  readonly: boolean;
}

/** The entry as it is, or in a dry run would be. */
export interface FsEntryResult {
  ok: boolean;
  operation: string;
  entry: FileEntry;
  dry_run?: boolean;
  bytes?: number;
}

/** Parameters of every method on one path. */
export interface FsParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
}

/** A whole file: ``content`` encodes back to exactly its bytes; "latin-1" stands for bytes in no encoding we know. */
export interface FsReadResult {
  ok: boolean;
  operation: string;
  entry: FileEntry;
  content: string;
  encoding: "utf-8" | "utf-16-le" | "utf-16-be" | "latin-1";
  bom: boolean;
  line_ending: "lf" | "crlf" | "cr" | "mixed" | "none";
  file_hash: string;
  invalid_bytes?: number;
}

/** Parameters of fs_write. */
export interface FsWriteParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** The whole new content, or with append the text to add; line ends as given. */
  content: string;
  /** Add to the end. */
  append?: boolean;
  /** Create missing parent folders. */
  parents?: boolean;
  /** Replace what is there. */
  overwrite?: boolean;
  /** Change nothing; return what would be done. */
  dry_run?: boolean;
}

/** Parameters of fs_list. */
export interface FsListParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** Include hidden names. */
  include_hidden?: boolean;
  /** path, name, modified or size; ties by path. */
  sort_by?: string;
  /** asc or desc. */
  sort_order?: string;
  /** Entries to skip. */
  offset?: number;
  /** Most entries; default and maximum: 10,000. */
  limit?: number | null;
}

/** Part of a folder's entries; ``next_offset`` is null at the end. */
export interface FsListResult {
  ok: boolean;
  operation: string;
  entries: FileEntry[];
  total: number;
  returned: number;
  next_offset: number | null;
  completed: boolean;
}

/** Parameters of fs_copy. */
export interface FsCopyParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  src: string;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  dst: string;
  /** Replace what is there. */
  overwrite?: boolean;
  /** Change nothing; return what would be done. */
  dry_run?: boolean;
  /** Copy a folder with its contents. */
  recursive?: boolean;
}

/** What was copied where. */
export interface FsCopyResult {
  ok: boolean;
  operation: string;
  dry_run: boolean;
  source: string;
  target_path: string;
}

/** Parameters of every method on two paths. */
export interface FsPairParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  src: string;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  dst: string;
  /** Replace what is there. */
  overwrite?: boolean;
  /** Change nothing; return what would be done. */
  dry_run?: boolean;
}

/** What was moved where. */
export interface FsMoveResult {
  ok: boolean;
  operation: string;
  dry_run: boolean;
  source_path: string;
  target_path: string;
}

/** Parameters of fs_remove. */
export interface FsRemoveParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** Remove a folder with its contents. */
  recursive?: boolean;
  /** A missing path is not an error. */
  force?: boolean;
  /** Change nothing; return what would be done. */
  dry_run?: boolean;
}

/** What was removed. */
export interface FsRemoveResult {
  ok: boolean;
  operation: string;
  dry_run: boolean;
  target_path: string;
  already_missing?: boolean;
}

/** A range of a text, excluding its end, and its replacement; without a range, the whole text. */
export interface BufferEdit {
  /** First line of the range, from 1. */
  start_line?: number | null;
  /** Its column, from 1. */
  start_column?: number | null;
  /** Last line of the range. */
  end_line?: number | null;
  /** Column just after its last character. */
  end_column?: number | null;
  /** The new text. */
  text: string;
}

/** What happened to a file in the editor. */
export interface BuffersParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** open: use this text for a file. change: edit it. close: use the disk again. list: all open files. */
  action: "open" | "change" | "close" | "list";
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path?: string;
  /** The path's bytes in base64, for a name that is not UTF-8; instead of the text. */
  path_bytes?: string | null;
  /** With open: the whole text. */
  text?: string | null;
  /** With open and change: the editor's version of the resulting text. */
  version?: number | null;
  /** With change: the version before; default: one less than `version`. */
  base_version?: number | null;
  /** With change: edits, each to the result of the previous one. */
  changes?: BufferEdit[];
  /** What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32). */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
}

/** An open file: its version, lines and bytes; `behind`: an edit was refused, open the file again. */
export interface BufferEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  version: number;
  lines: number;
  bytes: number;
  behind: boolean;
}

/** The opened or changed file, or with list all open files, by absolute path. */
export interface BuffersResult {
  results: BufferEntry[];
}

/** Which symbol, how its name is compared, and which occurrences are wanted. */
export interface GetSymbolParams {
  /** A name, or a qualified one: Class.method, pkg.Name, mod::fn, path:NAME. */
  symbol_name: string;
  /** prefix: definitions whose name starts so. fuzzy: similar names. */
  match?: "exact" | "prefix" | "fuzzy";
  /** How letter case is compared. */
  case?: "sensitive" | "insensitive";
  /** Only definitions of these kinds, as function, class. */
  kind?: ("function" | "method" | "constructor" | "class" | "struct" | "union" | "interface" | "trait" | "enum" | "enumerator" | "type" | "constant" | "variable" | "field" | "property" | "event" | "macro" | "module" | "namespace" | "object" | "extension" | "heading" | "package")[];
  /** Only these occurrences. */
  role?: ("definition" | "declaration" | "implementation" | "import" | "call" | "reference")[];
  /** Include the code of definitions. */
  body?: boolean;
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Only files that match one of these globs, e.g. src/**\/*.py. */
  include?: string[];
  /** Exclude files that match one of these globs. */
  exclude?: string[];
  /** Only files of these languages, e.g. py or rust. */
  language?: string[];
  /** Most occurrences to return. */
  limit?: number;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** What columns of names count, e.g. utf-16; adds end columns. */
  position_encoding?: "utf-8" | "utf-16" | "utf-32" | null;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
  /** A library that the project uses, instead of the project: requests, or requests@2.31. */
  library?: string | null;
  /** All libraries that the project's environments and lock files name, instead of the project. */
  libraries?: boolean;
}

/** One occurrence: lines of the whole construct, `line_number` and `column` of the name. */
export interface SymbolHit {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  library?: string;
  symbol_name: string;
  start_line: number;
  end_line: number;
  line_number: number;
  column: number;
  end_column?: number;
  role: string;
  kind?: string;
  symbol_type: string;
  container?: string;
  signature?: string;
  doc?: string;
  body?: string;
  language: string;
}

/** Occurrences, definitions first and sources before tests; how many there are in all, and what was covered. */
export interface GetSymbolResult {
  symbol_name: string;
  results: SymbolHit[];
  total: number | null;
  next: string | null;
  coverage: Coverage;
  suggestions?: string[];
  namesakes?: number;
  unsure?: number;
  as_text?: number;
}

/** Which file or folder, and how much of it. */
export interface OutlineParams {
  /** File or folder; empty: the map. */
  path?: string;
  /** A map around these names or parts of paths. */
  mentions?: string[];
  /** Include fields, variables and enumerators. */
  everything?: boolean;
  /** Return `entries` with their ranges instead of lines, for programs. */
  structured?: boolean;
  /** What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32). */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number | null;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
}

/** A symbol of a structured outline; `depth`: its nesting level. */
export interface OutlineEntry {
  name: string;
  kind: string;
  depth: number;
  range: Range;
  selection_range: Range;
  signature: string;
}

/** A file's symbols, one a line, indented by nesting, each with its lines; or, structured, as entries by place. */
export interface OutlineFile {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  symbols: string[];
  entries?: OutlineEntry[];
}

/** Files with their symbols; `left_out`: symbols that did not fit the budget. */
export interface OutlineResult {
  path: string;
  results: OutlineFile[];
  files: number;
  left_out: number;
  files_skipped: Record<string, number>;
  fresh: boolean;
  unmapped?: Record<string, number>;
  coverage: Coverage;
}

/** Which part of the project, and how much. */
export interface RepoMapParams {
  /** Only definitions below this folder. */
  path?: string;
  /** Names, words of names, or parts of paths to focus on. */
  mentions?: string[];
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
}

/** Which file. */
export interface FoldsParams {
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path: string;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** Lines from 1, the last one included. */
export interface FoldEntry {
  start_line: number;
  end_line: number;
  kind: "region" | "comment" | "imports";
}

/** Foldable ranges in order; `reason`: why there are none, e.g. `no_language`. */
export interface FoldsResult {
  results: FoldEntry[];
  reason?: string;
}

/** A place in the file. */
export interface FilePlaceParams {
  /** Line, from 1. */
  line: number;
  /** Column, from 1. */
  column: number;
}

/** Which places of which file. */
export interface EnclosingParams {
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path: string;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Places, as {line, column}. */
  places: FilePlaceParams[];
  /** What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32). */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
}

/** For each place the ranges around it, innermost first; none if it is outside the text. */
export interface EnclosingResult {
  results: Range[][];
  reason?: string;
}

/** A place in a file. */
export interface PlaceParams {
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path: string;
  /** Line, from 1. */
  line: number;
  /** Column, from 1; right after a name counts as on it. */
  column: number;
  /** What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32). */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** A definition, or a use, of a name. */
export interface NamedPlace {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  symbol_name: string;
  kind?: string;
  role: string;
  container?: string;
  signature?: string;
  range: Range;
  selection_range: Range;
  text?: string;
  confidence: number;
  resolved: string;
  source?: string;
  library?: string;
  language: string;
}

/** What was asked about the name at a position, most certain first; uses by path and line. */
export interface PlacesResult {
  symbol_name: string | null;
  range: Range | null;
  results: NamedPlace[];
  reason?: string;
  detail?: string;
  unsure?: number;
  next?: string | null;
  coverage: Coverage;
}

/** A position in a file, and which uses are wanted. */
export interface ReferencesParams {
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path: string;
  /** Line, from 1. */
  line: number;
  /** Column, from 1; right after a name counts as on it. */
  column: number;
  /** What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32). */
  position_encoding?: "utf-8" | "utf-16" | "utf-32";
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Include the definitions and declarations. */
  include_declaration?: boolean;
  /** Most uses to return. */
  limit?: number;
  /** Only those in this file. */
  only_here?: boolean;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
}

/** The signature and documentation, as written, of what is at a position; `range`: of the name there. */
export interface HoverResult {
  symbol_name: string | null;
  range: Range | null;
  results: NamedPlace[];
  signature: string;
  documentation: string;
  language: string;
  reason?: string;
  detail?: string;
  coverage: Coverage;
}

/** A definition one step away; `uses`: the places of the calls in the caller's file. */
export interface StepPlace {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  symbol_name: string;
  kind?: string;
  role: string;
  container?: string;
  signature?: string;
  range: Range;
  selection_range: Range;
  text?: string;
  confidence: number;
  resolved: string;
  source?: string;
  library?: string;
  language: string;
  uses: Range[];
}

/** The definitions one step away, by path and line; for the rest as `definition`. */
export interface StepsResult {
  symbol_name: string | null;
  range: Range | null;
  results: StepPlace[];
  reason?: string;
  detail?: string;
  unsure?: number;
  coverage: Coverage;
}

/** The question, and how far to follow it. */
export interface CodeResearchParams {
  /** As `who calls X`, `what implements P`, `what does X call`, `subclasses of C`, `where is X used`, `path from A to B`, `what imports M`, `what overrides C.m`, `impact of X`, `unused code in PATH`; with `kind` only the symbol (for a path both, for unused a folder or file). */
  query: string;
  /** What is asked about the symbol. */
  kind?: "callers" | "callees" | "implementations" | "supertypes" | "usages" | "path" | "imports" | "definition" | "overrides" | "hierarchy" | "impact" | "unused" | null;
  /** List the uses that are only possible, with the reason. */
  unsure?: boolean;
  /** Hops to follow from the symbol asked about: 1 for callers and uses, 2 for others, unless given. */
  depth?: number | null;
  /** List callers and uses in tests too, not only how many there are. */
  tests?: boolean;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
}

/** `type` implements or extends `base`; `extension`: declared by an extension of the type. */
export interface ConformanceEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  type: string;
  base: string;
  line: number;
  extension: boolean;
}

export interface DependencyShown {
  project?: string;
  from: string;
  to: string;
  edges: number;
}

/** `source` uses `target`: the line that shows it, its confidence (0 to 1) and the rule. */
export interface EdgeEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  source: number;
  target?: number;
  kind: string;
  line: number;
  text: string;
  confidence: number;
  resolved: string;
}

/** Uses in tests that are counted, not listed. */
export interface InTests {
  uses: number;
  files: number;
}

/** A symbol, and its distance in hops from what was asked about (0: itself); `id` is the same on all pages. */
export interface NodeEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  id: number;
  name: string;
  kind: string;
  start_line: number;
  end_line: number;
  hop: number;
  signature?: string;
}

/** A use that is only possible, and why. */
export interface UncertainUseEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  line: number;
  text: string;
  why: string;
}

/** The answer as a graph; `chains` in words, `left_out` what is not shown yet, `unsure` uses that are only possible. */
export interface CodeResearchResult {
  query: string;
  understood_as: string;
  names: string[];
  summary: string;
  results: NodeEntry[];
  edges: EdgeEntry[];
  chains: string[];
  conformances: ConformanceEntry[];
  dependencies: DependencyShown[];
  hops: number;
  left_out: number;
  unsure: number;
  next: string | null;
  coverage: Coverage;
  tests?: string[];
  excluded?: Record<string, number>;
  possible?: Record<string, number>;
  in_tests?: InTests;
  answer?: string;
  vague?: UncertainUseEntry[];
  asks?: string[];
  suggestions?: string[];
  continued?: string[];
}

/** Which symbol, its new name, and what is done about uses that are not certain. */
export interface RenameSymbolParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** A name, or a qualified one: Class.method, path:NAME; or a place, FILE:LINE[:COLUMN]. */
  symbol_name: string;
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Change nothing; return a unified diff of what would change. */
  dry_run?: boolean;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** The new name alone, unqualified. */
  new_name: string;
  /** Uses that only may be meant: true renames them, false leaves them. Default: refuse if there are any. */
  include_possible?: boolean | null;
  /** With dry_run: return the edits, as batch_write_code takes them; refused as without dry_run. */
  edits?: boolean;
  /** `change` of a dry run: nothing is written if the diff would differ now. */
  expected_change?: string | null;
}

/** How often comments, strings or documents, or a file that cannot be parsed, have the name: they are not changed. */
export interface Mentions {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  count: number;
}

/** One place, in characters, and its file's hash. */
export interface RenameEdit {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  start_line: number;
  end_line: number;
  start_column: number;
  end_column: number;
  replacement: string;
  expected_file_hash: string;
}

/** A file with renamed places, and its hash after. */
export interface RenamedFile {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  places: number;
  file_hash_after: string | null;
}

/** A use that is not certain: its line, and how certain (0 to 1) by which rule. */
export interface UsePlace {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  line: number;
  text: string;
  confidence: number;
  resolved: string;
}

/** What was renamed, or would be (`dry_run`: with the `diff`, its `change`, and what stands against it). */
export interface RenameResult {
  unparsed?: UnparsedFile[];
  unchecked?: number;
  ok: boolean;
  old_name: string;
  new_name: string;
  places: number;
  files: RenamedFile[];
  possible: UsePlace[];
  possible_count: number;
  includes_possible: boolean;
  unlikely: UsePlace[];
  unlikely_count: number;
  mentions: Mentions[];
  mention_count: number;
  dry_run?: boolean;
  diff?: string;
  diff_truncated?: boolean;
  change?: string;
  edits?: RenameEdit[];
  obstacles?: string[];
}

/** Which definition, and what is done to it. */
export interface EditSymbolParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** A name, or a qualified one: Class.method, path:NAME; or a place, FILE:LINE[:COLUMN]. */
  symbol_name: string;
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Change nothing; return a unified diff of what would change. */
  dry_run?: boolean;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** replace the definition, insert text before or after it, or delete it. */
  action: "replace" | "insert_before" | "insert_after" | "delete";
  /** The new code, unindented or indented like the definition. Comments and decorators above a replaced definition stay, unless the text begins with some. */
  text?: string | null;
  /** Delete although there are uses. */
  force?: boolean;
  /** The #hash of a read: nothing is written if the file differs. */
  expected_file_hash?: string | null;
}

/** As of `write_code`; `uses`: what still uses a deleted definition, or may. */
export interface EditSymbolResult {
  unparsed?: UnparsedFile[];
  unchecked?: number;
  ok: boolean;
  file_path: string;
  file_path_bytes?: string;
  start_line?: number;
  end_line?: number;
  replaced_line_count?: number;
  new_line_count?: number;
  file_hash_before?: string | null;
  file_hash_after?: string;
  created?: boolean;
  occurrences?: number;
  dry_run?: boolean;
  diff?: string;
  diff_truncated?: boolean;
  continuation?: StagedContinuation;
  received_bytes?: number;
  uses: UsePlace[];
}

/** What to look for, where, and how. */
export interface SearchCodeParams {
  /** A question in words, or names of code. */
  query: string;
  /** Most chunks of code to return. */
  limit?: number;
  /** Weight of meaning against words, 0 to 1; default: 0.7 for questions in words, 0.3 for names. */
  semantic_weight?: number | null;
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Only files that match one of these globs, e.g. src/**\/*.py. */
  include?: string[];
  /** Exclude files that match one of these globs. */
  exclude?: string[];
  /** Only files of these languages, e.g. py or rust. */
  language?: string[];
  /** Only files that CODEOWNERS gives to one of these, e.g. @team or me@example.org. */
  owner?: string[];
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Minimum score of a result. */
  threshold?: number;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number | null;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
  /** A library that the project uses, instead of the project: requests, or requests@2.31. */
  library?: string | null;
  /** All libraries that the project's environments and lock files name, instead of the project. */
  libraries?: boolean;
}

/** A chunk of code; `kind`: function, class, section, block and so on; `score` 0 to 1; lines from 1, both inclusive. */
export interface CodeMatch {
  project?: string;
  library?: string;
  content: string;
  shown?: ([number, number])[];
  path: string;
  startLine: number;
  endLine: number;
  score: number;
  kind: string;
  name: string;
  language: string;
  file_path: string;
  file_path_bytes?: string;
  start_line: number;
  end_line: number;
}

/** One of the best files, with its best functions, best first; `project`: if several were asked. */
export interface FileMatch {
  project?: string;
  library?: string;
  path: string;
  file_path: string;
  file_path_bytes?: string;
  functions: FunctionPlace[];
}

/** A function of a file, by its lines from 1, both inclusive; `name` is empty for code outside of functions. */
export interface FunctionPlace {
  name: string;
  start_line: number;
  end_line: number;
}

/** Chunks of code, best first; `ranked_by` is `words` until there are vectors, then `words and meaning`. */
export interface SearchCodeResult {
  results: CodeMatch[];
  files: FileMatch[];
  ranked_by: string;
  chunks_searched: number;
  coverage: Coverage;
}

/** What to look for, and in which repository; as strict as its contract. */
export interface SemanticSearchParams {
  /** Natural language search query describing what you're looking for. */
  query: string;
  /** Maximum number of results to return. */
  limit?: number;
  /** Minimum similarity score; 0.7 is reached by one in a hundred unrelated chunks of code. */
  threshold?: number;
  /** Filter results to a specific repository name. */
  repository?: string | null;
}

/** A chunk of code and its repository. */
export interface RepositoryCode {
  project?: string;
  library?: string;
  content: string;
  shown?: ([number, number])[];
  path: string;
  startLine: number;
  endLine: number;
  score: number;
  kind: string;
  name: string;
  language: string;
  file_path: string;
  file_path_bytes?: string;
  start_line: number;
  end_line: number;
  repository: string;
}

/** Timing, and what was searched; `problems`: repositories that could not be searched, and why. */
export interface SearchMetadata {
  total_results: number;
  query_time_ms: number;
  embedding_time_ms: number;
  repositories_searched: string[];
  chunks_searched: number;
  threshold: number;
  ranked_by: string;
  problems: Record<string, string>;
}

/** Chunks of code from all repositories searched, best first. */
export interface SemanticSearchResult {
  results: RepositoryCode[];
  metadata: SearchMetadata;
}

/** The pattern, where to search, and how much to return. */
export interface StructuralParams {
  /** Code with metavariables, e.g. `foo($A, 1)`, `foo($$$ARGS)`: $A is one node, $$$ARGS any number. */
  pattern: string;
  /** Only this file or folder; globs may start there. */
  path?: string | null;
  /** Only files that match one of these globs, e.g. src/**\/*.py. */
  include?: string[];
  /** Exclude files that match one of these globs. */
  exclude?: string[];
  /** Languages of the pattern, e.g. py or rust; default: every one in which it parses. */
  language?: string[];
  /** Replacement of each match: shows the diff, writes nothing. */
  rewrite?: string | null;
  /** Most matches to return. */
  limit?: number;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** A match: `metavariables` by name, `replacement` what it would become, `cut` whether its text continues. */
export interface StructuralHit {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  start_line: number;
  end_line: number;
  column: number;
  text: string;
  metavariables: Record<string, string>;
  language: string;
  cut?: boolean;
  replacement?: string;
}

/** Matches by path, their total if known, and what was covered. */
export interface StructuralResult {
  results: StructuralHit[];
  total: number | null;
  next: string | null;
  coverage: Coverage;
  diff?: string;
  diff_truncated?: boolean;
  change?: string;
  files?: number;
}

/** Parameters of structural_rewrite. */
export interface StructuralRewriteParams {
  /** `change` from an answer of structural, unchanged. */
  change: string;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** The outcome of a batch, operations in the requested order; ``diff``: what would change (dry_run). */
export interface StructuralRewriteBatchResult {
  unparsed?: UnparsedFile[];
  unchecked?: number;
  ok: boolean;
  mode: "atomic" | "best_effort";
  results: OperationResult[];
  applied_count: number;
  failed_count: number;
  conflict_count: number;
  skipped_count: number;
  diff?: string;
  diff_truncated?: boolean;
}

/** What to compare, and how much to show. */
export interface ChangesParams {
  /** Compare the work tree with this revision (:index: what is not staged), or two: main..HEAD, main...HEAD (since they diverged), HEAD..:index (what is staged). */
  rev?: string;
  /** Include the changed lines, as a diff without context. */
  lines?: boolean;
  /** List the callers of changed functions and types. */
  callers?: boolean;
  /** Only files that match one of these globs, e.g. src/**\/*.py. */
  include?: string[];
  /** Exclude files that match one of these globs. */
  exclude?: string[];
  /** Only files of these languages, e.g. py or rust. */
  language?: string[];
  /** Only files that CODEOWNERS gives to one of these, e.g. @team or me@example.org. */
  owner?: string[];
  /** Most files to return. */
  limit?: number;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** Size of the answer, in tokens of 4 characters. */
  max_tokens?: number;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Several projects at once, by name or root, or `*` for all known ones; instead of `project`. */
  projects?: string[] | "*" | null;
}

/** A call: its line, and the definition it is in. */
export interface CallerEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  line_number: number;
  container: string;
}

/** A file that differs: `status` is added, deleted, modified, renamed or untracked. */
export interface ChangedFileEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  status: string;
  old_path?: string;
  added: number;
  removed: number;
  hunks: HunkEntry[];
  symbols: ChangedSymbolEntry[];
  owners?: string[];
  note?: string;
  left_out?: number;
}

/** A touched definition: `change` is added, modified or deleted; a deleted one has its former lines. */
export interface ChangedSymbolEntry {
  symbol_name: string;
  kind: string;
  change: string;
  start_line: number;
  end_line: number;
  callers?: CallerEntry[];
  callers_total?: number | null;
  callers_unsure?: number;
}

/** A commit by its full hash; `time`: when it was authored, in seconds since 1970; `subject`: its first line. */
export interface CommitEntry {
  commit: string;
  parents: string[];
  time: number;
  author: string;
  subject: string;
}

/** Lines that differ: `start_line` and `lines` now, `old_start_line` and `old_lines` before; 0 lines: none there. */
export interface HunkEntry {
  start_line: number;
  lines: number;
  old_start_line: number;
  old_lines: number;
  diff?: string;
}

/** Files that differ, by path, and their total; `commits`: the newest between two revisions, on the first page. */
export interface ChangesResult {
  rev: string;
  commits?: CommitEntry[];
  results: ChangedFileEntry[];
  total: number;
  next: string | null;
  coverage: Coverage;
}

/** A branch or tag; `time` in seconds since 1970. */
export interface RevisionName {
  name: string;
  kind: string;
  commit: string;
  time: number;
}

/** Branches and tags, newest first. */
export interface RevisionsResult {
  results: RevisionName[];
}

/** Which path, and how many commits to list. */
export interface HistoryParams {
  /** File or folder; default: the whole project. */
  path?: string | null;
  /** Revision to start from. */
  rev?: string;
  /** Most commits to return. */
  limit?: number;
  /** `next` of the previous answer, to continue after it. */
  cursor?: string | null;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** Commits, the newest first. */
export interface HistoryResult {
  results: CommitEntry[];
  next: string | null;
}

/** Lines of a file at a revision. */
export interface BlameParams {
  /** Path relative to the project's root; an absolute path inside it is accepted. */
  path: string;
  /** Revision; uncommitted lines have no history. */
  rev?: string;
  /** First line, from 1. */
  start_line?: number;
  /** Last line, inclusive; 5000 lines at most. */
  end_line?: number | null;
  /** After this time, what was found so far is sent. */
  deadline_ms?: number;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** Consecutive lines from one commit: the first, how many, and the first one's number in that commit. */
export interface BlamedLines {
  start_line: number;
  lines: number;
  commit: string;
  old_start_line: number;
}

/** The commits of lines, in order, and these commits. */
export interface BlameResult {
  results: BlamedLines[];
  commits: CommitEntry[];
}

/** A folder of a project. */
export interface FolderParams {
  /** Folder, relative to the project's root; default: the root. */
  path?: string | null;
  /** Include everything saved before this call. */
  fresh?: boolean;
  /** Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b. */
  rev?: string | null;
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
}

/** A file, or a folder with how many `files` are below it. */
export interface FolderEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  files?: number;
}

/** A folder's subfolders, then its files, each by name; `total` counts the files below it. */
export interface FolderResult {
  results: FolderEntry[];
  total: number;
  coverage: Coverage;
}

/** What to look for. */
export interface SemanticParams {
  /** Natural language search query. */
  query: string;
  /** Context for refining the query. */
  prompt?: string | null;
  /** Number of results to return. */
  top_k?: number;
}

/** A result: its score, 0 to 1, and the snippet. */
export interface Snippet {
  score: number;
  payload: SnippetPayload;
}

/** A snippet of code and its attributes. */
export interface SnippetPayload {
  content: string;
  filePath: string;
  language: string;
  repository: string;
  kind: string;
  name: string;
  startLine: number;
  endLine: number;
  exported: boolean;
}

/** Snippets of all collections, best first, without duplicates; `problems` by collection. */
export interface SnippetsResult {
  results: Snippet[];
  collections: string[];
  ranked_by: string;
  took_ms: number;
  problems: Record<string, string>;
}

/** Filters; a list means any of its items. */
export interface Payload {
  /** Languages, e.g. typescript. */
  language?: string | string[] | null;
  /** Collections, by name. */
  repository?: string | string[] | null;
  /** Paths or globs below the project's root, as /src/*. */
  filePath?: string | string[] | null;
  /** Kinds, e.g. function, class or section. */
  kind?: string | string[] | null;
  /** Names of symbols, or globs, e.g. get_*. */
  name?: string | string[] | null;
  /** Whether other files can use it. */
  exported?: boolean | null;
  /** Only code that reaches this line or lies below it. */
  startLine?: number | null;
  /** Only code that begins at this line or above it. */
  endLine?: number | null;
}

/** The text to look for. */
export interface FulltextParams {
  /** Text to search for in code content. */
  textQuery: string;
  /** Filters to narrow results. */
  payload?: Payload | null;
  /** Number of results to return. */
  top_k?: number;
}

/** The filters. */
export interface PayloadParams {
  /** Metadata filters to match. */
  payload: Payload;
  /** Number of results to return. */
  top_k?: number;
}

/** A specification in brief; `problem`: why its file cannot be read, or not completely. */
export interface SpecSummary {
  id: string;
  title: string;
  purpose: string;
  problem?: string;
}

/** All specifications, ordered by folder, then by id; without any `detail` says where they are looked for. */
export interface ListSpecsResult {
  reason?: string;
  detail?: string;
  results: SpecSummary[];
}

/** Which specification. */
export interface SpecParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Id of a specification from list_specs, or the path of its file. */
  spec_id: string;
}

/** A requirement without the bodies of its scenarios; `operation`: what a delta file does with it. */
export interface RequirementSummary {
  name: string;
  scenario_count: number;
  scenarios: string[];
  operation?: string;
  renamed_from?: string;
}

/** A specification's requirements, in the order of its file. */
export interface SpecRequirementsResult {
  id: string;
  title: string;
  purpose: string;
  problem?: string;
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  requirements: RequirementSummary[];
}

/** Which scenario. */
export interface ScenarioParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Id of a specification from list_specs, or the path of its file. */
  spec_id: string;
  /** Name of a requirement. */
  requirement: string;
  /** Name of a scenario of it; by default its first. */
  scenario?: string | null;
}

/** A clause of a scenario: `keyword` is GIVEN, WHEN, THEN, AND or BUT. */
export interface StepEntry {
  keyword: string;
  text: string;
  line: number;
}

/** A scenario, and the description of its requirement; `steps` are all its clauses in order, `notes` the rest. */
export interface ScenarioResult {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  spec_id: string;
  requirement: string;
  description: string;
  operation?: string;
  name: string;
  given: string[];
  when: string;
  then: string[];
  steps: StepEntry[];
  notes?: string;
  start_line: number;
}

/** What to look for. */
export interface SearchSpecsParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** What to look for, in any words. */
  query: string;
  /** Most results to return. */
  limit?: number;
  /** Minimum score of a result. */
  threshold?: number;
}

/** A requirement that was found by its own text, by one of its scenarios, or by its specification's purpose. */
export interface SpecHit {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  spec_id: string;
  requirement: string;
  scenario?: string;
  kind: "purpose" | "requirement" | "scenario";
  score: number;
  snippet: string;
  start_line: number;
}

/** Requirements, best first; scores are from 0 to 1. */
export interface SearchSpecsResult {
  reason?: string;
  detail?: string;
  results: SpecHit[];
  coverage: Coverage;
}

/** Which specifications. */
export interface ValidateSpecsParams {
  /** Project, by name or root; default: the connection's own. */
  project?: string | null;
  /** Id of a specification from list_specs, or the path of its file. Default: all. */
  spec_id?: string | null;
}

/** What is wrong, and where; after a warning everything is still readable. */
export interface ProblemEntry {
  project?: string;
  file_path: string;
  file_path_bytes?: string;
  spec_id: string;
  line: number;
  message: string;
  severity: "error" | "warning";
}

/** Whether everything is valid apart from warnings, how many files were checked, and what is wrong with them. */
export interface ValidateSpecsResult {
  valid: boolean;
  files: number;
  problems: ProblemEntry[];
}

export interface Methods {
  query: { params: QueryParams; result: QueryResult };
  get_slice: { params: GetSliceParams; result: SliceResult };
  read_code: { params: ReadCodeParams; result: SliceResult };
  list_files: { params: ListFilesParams; result: ListFilesResult };
  glob: { params: GlobParams; result: GlobResult };
  index_codebase: { params: IndexCodebaseParams; result: IndexCodebaseResult };
  watch_codebase: { params: WatchCodebaseParams; result: WatchCodebaseResult };
  stats: { params: ProjectParams; result: StatsResult };
  bootstrap_skill: { params: BootstrapParams; result: BootstrapResult };
  batch: { params: BatchParams; result: BatchResult };
  write_code: { params: WriteCodeParams; result: WriteResult };
  batch_write_code: { params: BatchWriteCodeParams; result: BatchWriteCodeBatchResult };
  fs_create: { params: FsCreateParams; result: FsEntryResult };
  fs_read: { params: FsParams; result: FsReadResult };
  fs_write: { params: FsWriteParams; result: FsEntryResult };
  fs_list: { params: FsListParams; result: FsListResult };
  fs_stat: { params: FsParams; result: FsEntryResult };
  fs_copy: { params: FsCopyParams; result: FsCopyResult };
  fs_move: { params: FsPairParams; result: FsMoveResult };
  fs_remove: { params: FsRemoveParams; result: FsRemoveResult };
  buffers: { params: BuffersParams; result: BuffersResult };
  get_symbol: { params: GetSymbolParams; result: GetSymbolResult };
  outline: { params: OutlineParams; result: OutlineResult };
  repo_map: { params: RepoMapParams; result: OutlineResult };
  folds: { params: FoldsParams; result: FoldsResult };
  enclosing: { params: EnclosingParams; result: EnclosingResult };
  definition: { params: PlaceParams; result: PlacesResult };
  declaration: { params: PlaceParams; result: PlacesResult };
  implementations: { params: PlaceParams; result: PlacesResult };
  references: { params: ReferencesParams; result: PlacesResult };
  hover: { params: PlaceParams; result: HoverResult };
  callers: { params: PlaceParams; result: StepsResult };
  calls: { params: PlaceParams; result: StepsResult };
  supertypes: { params: PlaceParams; result: StepsResult };
  code_research: { params: CodeResearchParams; result: CodeResearchResult };
  rename_symbol: { params: RenameSymbolParams; result: RenameResult };
  edit_symbol: { params: EditSymbolParams; result: EditSymbolResult };
  search_code: { params: SearchCodeParams; result: SearchCodeResult };
  semantic_search: { params: SemanticSearchParams; result: SemanticSearchResult };
  structural: { params: StructuralParams; result: StructuralResult };
  structural_rewrite: { params: StructuralRewriteParams; result: StructuralRewriteBatchResult };
  changes: { params: ChangesParams; result: ChangesResult };
  list_revisions: { params: ProjectParams; result: RevisionsResult };
  history: { params: HistoryParams; result: HistoryResult };
  blame: { params: BlameParams; result: BlameResult };
  list_folder: { params: FolderParams; result: FolderResult };
  search_code_semantic: { params: SemanticParams; result: SnippetsResult };
  search_code_fulltext: { params: FulltextParams; result: SnippetsResult };
  search_code_by_payload: { params: PayloadParams; result: SnippetsResult };
  list_specs: { params: ProjectParams; result: ListSpecsResult };
  get_spec_requirements: { params: SpecParams; result: SpecRequirementsResult };
  get_scenario: { params: ScenarioParams; result: ScenarioResult };
  search_specs: { params: SearchSpecsParams; result: SearchSpecsResult };
  validate_specs: { params: ValidateSpecsParams; result: ValidateSpecsResult };
}
