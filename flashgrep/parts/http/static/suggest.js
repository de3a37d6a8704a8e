// Suggestions while typing: filters and their values, names that are defined, files; a row of buttons after the box.

import { toAddress } from "./address.js";
import { h, show } from "./dom.js";
import { named } from "./languages.js";
import { CASES, KINDS, NEGATED, write } from "./question.js";
import { rest } from "./rest.js";
import { call } from "./rpc.js";
import { offers } from "./server.js";

/** Suggestions are requested after this long without a key, so that they never delay the results. */
const REST_MS = 150;
const MOST = 8;
const MOST_FILES = 3;
/** Occurrences that are requested, since a name may be defined several times. */
const MOST_OCCURRENCES = 40;
const LEAST_WORD = 3;
const FILTERS = ["case", "file", "lang", "repo", "rev", "sym", "text", "word"];

const row = document.getElementById("suggestions");
const values = new Map();
let asking = new AbortController();

row.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const entries = [...row.children];
  entries[entries.indexOf(document.activeElement) + step]?.focus();
});

/** Take the suggestions away, and cancel what was requested for them. */
export function clearSuggestions() {
  asking.abort();
  show(row);
}

/** Suggest how the word before the caret of the box may go on. */
export async function suggest(box, shown) {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const caret = box.selectionStart;
  const word = /\S*$/.exec(box.value.slice(0, caret))[0];
  const put = (text) => {
    if (signal.aborted) return;
    box.setRangeText(text, caret - word.length, caret, "end");
    box.dispatchEvent(new Event("input"));
    box.focus();
  };
  try {
    await showSuggestions(word, shown, signal, put);
  } catch (error) {
    if (error.name !== "AbortError") show(row); // the search itself says what is wrong
  }
}

async function showSuggestions(word, shown, signal, put) {
  const [, minus, name, begun] = /^(-?)([a-z]+):(.*)$/.exec(word) ?? [];
  const isFilter = FILTERS.includes(name) && (!minus || NEGATED.has(name));
  const add = (texts) => texts.filter((text) => text !== word).slice(0, MOST).map((text) => h("button", { type: "button", onclick: () => put(text) }, h("bdi", {}, text.trimEnd())));
  if (!isFilter) {
    const local = findFilters(word);
    show(row, add(local));
    if (word.length < LEAST_WORD || word.includes(":")) return;
    await rest(REST_MS, signal);
    const [names, files] = await Promise.all([findNames(word, shown, signal), findFiles(word, shown, signal)]);
    const links = files.slice(0, MOST_FILES).map((file) => h("a", { href: toAddress({ view: "file", project: file.project ?? shown.project, path: file.file_path, path_bytes: file.file_path_bytes }), title: file.file_path }, h("bdi", {}, file.file_path.slice(file.file_path.lastIndexOf("/") + 1))));
    row.append(...add(names), ...links); // the first ones stay, one of them may have the focus
    return;
  }
  if (FETCHED.has(name)) await rest(REST_MS, signal);
  const found = await VALUES[name](begun, shown, signal);
  show(row, add(found.map((value) => `${write(name, value, Boolean(minus))} `)));
}

function findFilters(word) {
  const minus = word.startsWith("-") ? "-" : "";
  const begun = word.slice(minus.length);
  if (begun.length < 2 && !minus) return [];
  return FILTERS.filter((name) => name.startsWith(begun) && (!minus || NEGATED.has(name))).map((name) => `${minus}${name}:`);
}

function where({ project }) {
  return project ? { project } : { projects: "*" };
}

async function findNames(begun, shown, signal) {
  if (!/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(begun) || !offers("get_symbol") || shown.in === "files" || shown.in === "meaning") return [];
  const { results } = await call("get_symbol", { ...where(shown), symbol_name: begun, match: "prefix", role: ["definition"], limit: MOST_OCCURRENCES, deadline_ms: 2000 }, signal);
  return [...new Set(results.map((symbol) => symbol.symbol_name))].slice(0, MOST - MOST_FILES);
}

async function findFiles(begun, shown, signal) {
  if (!offers(KINDS.files.method)) return [];
  const { results } = await call("list_files", { ...where(shown), query: begun, limit: MOST }, signal);
  return results.filter((file) => file.file_path.toLowerCase().includes(begun.toLowerCase()));
}

/** Return what a method lists, requested once for each project. */
async function fetchOnce(method, params, read) {
  const key = JSON.stringify([method, params]);
  if (!values.has(key)) values.set(key, call(method, params).then(read));
  return values.get(key).catch((error) => {
    values.delete(key);
    throw error;
  });
}

const begins = (names, begun) => names.filter((name) => name.toLowerCase().startsWith(begun.toLowerCase()));

/** The filters whose values are requested at each key. */
const FETCHED = new Set(["file", "sym"]);
const VALUES = {
  case: async (begun) => begins(Object.keys(CASES), begun),
  word: async (begun) => begins(["yes"], begun),
  text: async () => [],
  lang: async (begun) => named(begun),
  repo: async (begun) => begins(await fetchOnce("stats", {}, ({ projects }) => ["*", ...projects]), begun),
  rev: async (begun, { project }) => begins(await fetchOnce("list_revisions", project ? { project } : {}, ({ results }) => ["HEAD", ...results.map((revision) => revision.name)]), begun),
  sym: (begun, shown, signal) => (begun ? findNames(begun, { ...shown, in: "symbols" }, signal) : []),
  file: async (begun, shown, signal) => (begun ? (await findFiles(begun, shown, signal)).map((file) => file.file_path) : []),
};
