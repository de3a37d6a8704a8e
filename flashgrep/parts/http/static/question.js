// Translating a typed query, `needle file:src/ -lang:css case:yes`, to a call.

export const KINDS = {
  text: { label: "Text", method: "query", command: "query", field: "query" },
  regex: { label: "Regex", method: "query", command: "query", field: "query" },
  meaning: { label: "Meaning", method: "search_code", command: "search-code", field: "query" },
  symbols: { label: "Symbols", method: "get_symbol", command: "symbol", field: "symbol_name" },
  files: { label: "Files", method: "list_files", command: "files", field: "query" },
};
const FILTER = /(^|\s)(-?)(repo|file|lang|sym|case|rev|word|text):(?:"([^"]*)"|(\S*))(?=\s|$)/g;
export const NEGATED = new Set(["file", "lang"]);
export const CASES = { yes: "sensitive", no: "insensitive", auto: "smart" };
const WILD = /[*?[\]{}]/;
export const PAGE = 40;
const MOST_COUNTED = 5000;

/** Return a query's text and filters: `{text, filters: [{name, value, not, source}], problems}`. */
export function parse(typed) {
  const filters = [];
  const problems = [];
  const texts = [];
  const text = typed.replace(FILTER, (source, before, not, name, quoted, plain) => {
    const value = quoted ?? plain;
    if (name === "text") texts.push(value);
    else if (not && !NEGATED.has(name)) problems.push(`-${name}: only file: and lang: can be negated`);
    else if (name === "case" && !(value in CASES)) problems.push("case: takes yes, no or auto");
    else if (value) filters.push({ name, value, not: Boolean(not), source: source.trim() });
    return before;
  });
  return { text: [text.trim(), ...texts].filter(Boolean).join(" "), filters, problems };
}

/** Return a filter in the syntax of the search box. */
export function write(name, value, not = false) {
  return `${not ? "-" : ""}${name}:${/\s/.test(value) || value === "" ? `"${value}"` : value}`;
}

/** Return a typed query with one more filter; `replaces`: drop those of this name that are not negated. */
export function withFilter(typed, filter, replaces = "") {
  const kept = replaces ? without(typed, parse(typed).filters.filter((one) => one.name === replaces && !one.not)) : typed;
  return `${kept.trim()} ${filter} `.trimStart();
}

/** Return a typed query without some of its filters. */
export function without(typed, filters) {
  return filters.reduce((left, one) => left.replace(one.source, ""), typed).replace(/\s{2,}/g, " ").trim();
}

/** Return a glob for a path; it matches no other, unless the path has a backslash, for which there is only `?`. */
export function escapeGlob(path) {
  return path.replace(/[*?[\]{}\\]/g, (one) => (one === "\\" ? "?" : `[${one}]`));
}

function toGlobs(value) {
  if (value.endsWith("/")) return [`/${value.replace(/^\//, "")}**`];
  return WILD.test(value) ? [value] : [`**/*${value}*`, `**/*${value}*/**`];
}

/** Return the call for a query: `{method, params, kind}`, or null if the query is empty. */
export function toCall(typed, kind, project, languages) {
  const { text, filters } = parse(typed);
  const of = (name, not = false) => filters.filter((one) => one.name === name && one.not === not).map((one) => one.value);
  const symbol = of("sym").at(-1);
  const used = symbol === undefined ? kind : "symbols";
  const words = used === "symbols" && symbol !== undefined ? symbol : text;
  if (!words && used !== "files") return null;
  const { method, field } = KINDS[used];
  const params = words ? { [field]: words } : {};
  const repositories = of("repo");
  if (repositories.includes("*")) params.projects = "*";
  else if (repositories.length > 1) params.projects = repositories;
  else if (repositories.length || project) params.project = repositories[0] ?? project;
  else params.projects = "*";
  const include = of("file").flatMap(toGlobs);
  const exclude = [...of("file", true).flatMap(toGlobs), ...of("lang", true).flatMap((one) => languages.globs(one))];
  if (include.length) params.include = include;
  if (exclude.length) params.exclude = exclude;
  if (of("lang").length) params.language = of("lang");
  const rev = of("rev").at(-1);
  if (rev && used !== "meaning") params.rev = rev;
  if (method === "query") {
    Object.assign(params, { mode: used === "regex" ? "regex" : "literal", order: "relevance" });
    if (of("case").length) params.case = CASES[of("case").at(-1)];
    if (of("word").at(-1) === "yes") params.word = true;
  }
  if (method === "get_symbol") {
    if (of("case").at(-1) === "no") params.case = "insensitive";
    if (symbol === undefined) params.match = "prefix";
  }
  return { method, params, kind: used };
}

/** Return the call for what is near a text that no line has: a regular expression, most of its words, similar names. */
export function toNear(asking) {
  if (asking.kind !== "text") return null;
  const { mode, order, ...params } = asking.params;
  return { ...asking, params };
}

/** Return a call with the parameters that the page adds to every query. */
export function forPage({ method, params }, more = {}) {
  const limits = { limit: PAGE, max_tokens: 200_000 };
  if (method === "query") Object.assign(limits, { context: 1, spans: true, position_encoding: "utf-16", deadline_ms: 10_000 });
  if (method === "search_code") limits.limit = 20;
  return { ...params, ...limits, ...more };
}

/** Return the parameters for counting the hits of each file. */
export function forCounts({ params }) {
  const { order, ...rest } = params;
  return { ...rest, output: "count", order: "path", limit: MOST_COUNTED, max_tokens: 1_000_000, deadline_ms: 10_000 };
}

function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Return the `fgrep` command for a call. */
export function toCommand({ params, kind }) {
  const { command, field } = KINDS[kind];
  const words = ["fgrep", command];
  for (const [name, value] of Object.entries(params)) {
    if (name === field) continue;
    if (name === "projects" && value === "*") words.push("--all-projects");
    else if (value === true) words.push(`--${name}`);
    else for (const one of [value].flat()) words.push(`--${name === "projects" ? "project" : name}`, quote(String(one)));
  }
  const operand = params[field];
  if (operand !== undefined) words.push(...(operand.startsWith("-") ? ["--"] : []), quote(operand));
  return words.join(" ");
}

/** Return the JSON-RPC request for a call. */
export function toRequest({ method, params }) {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
}
