// Search while typing: the query, its results by file, and the filters that narrow them.

import { go, toAddress } from "./address.js";
import { count, h, show, tell } from "./dom.js";
import { showFacets } from "./facets.js";
import * as languages from "./languages.js";
import { KINDS, forCounts, forPage, parse, toCall, toCommand, toRequest, toWords, without } from "./question.js";
import { makeGroup } from "./results.js";
import { call } from "./rpc.js";
import { isTeam, offers } from "./server.js";

/** Of keys pressed within this time, the first starts a search at once, and the last one after a pause. */
const PAUSE_MS = 40;
/** Counts are requested after this long without typing, since they visit every hit. */
const REST_MS = 250;

/** Recent questions are kept in the browser alone. */
const RECENT = "flashgrep.recent";
const MOST_RECENT = 8;
/** A question was meant if it stands this long. */
const KEEP_MS = 2000;

let keeping = 0;
let running = null;
let pause = 0;
let lastKey = -Infinity;

/** Show the filters of a query as chips; a click removes one. */
export function showChips(typed, change) {
  const { filters, problems } = parse(typed);
  const chips = filters.map((one) =>
    h("button", { type: "button", class: one.not ? "chip not" : "chip", title: "Remove this filter", onclick: () => change(without(typed, [one])) }, one.source, h("span", { "aria-hidden": "true" }, " ×")),
  );
  show(document.getElementById("chips"), chips, problems.map((one) => h("span", { class: "problem" }, one)));
}

/** Cancel the running search, if any. */
export function stop() {
  clearTimeout(pause);
  running?.abort();
  running = null;
}

/** Search at once, or at the next pause while keys are pressed quickly. */
export function askSoon(shown, view) {
  stop();
  clearTimeout(keeping); // what is typed over was not meant
  const since = performance.now() - lastKey;
  lastKey = performance.now();
  if (since > PAUSE_MS) return ask(shown, view);
  pause = setTimeout(() => ask(shown, view), PAUSE_MS);
}

/** Run the current query, and show the answer as it arrives. */
export async function ask(shown, view) {
  stop();
  const mine = (running = new AbortController());
  let asking = toCall(shown.q, shown.in, shown.project, languages);
  if (asking === null) {
    show(view, makeWelcome(shown));
    tell("");
    return;
  }
  const list = h("div", { class: "results", role: "list", "aria-label": "Results" });
  const facets = h("aside", { "aria-label": "Narrow" });
  const page = h("div", { class: "search" }, facets, h("div", {}, makeAsLinks(asking), list));
  const state = { list, groups: new Map(), asking, shown, view, mine };
  try {
    const began = performance.now();
    let answer = await call(asking.method, forPage(asking), mine.signal);
    add(state, answer);
    show(view, page);
    describe(answer, performance.now() - began);
    if (answer.results.length) remember(shown);
    const words = answer.results.length ? null : toWords(asking);
    if (words) {
      await rest(mine.signal);
      answer = await call(words.method, forPage(words), mine.signal);
      state.asking = asking = words;
      list.replaceChildren();
      add(state, answer);
      describe(answer, performance.now() - began);
    }
    await showFacets(facets, asking, answer, shown, async () => {
      if (asking.method !== "query" || answer.mode === "words") return null;
      await rest(mine.signal);
      return call("query", forCounts(asking), mine.signal);
    });
  } catch (error) {
    if (error.name === "AbortError") return;
    tell(error.message, true);
    const next = [error.data?.suggestion ?? null].filter(Boolean);
    show(view, h("div", { class: "notice problem-page" }, h("h1", {}, "This cannot be searched"), h("p", {}, error.message), next.map((text) => h("p", {}, text)), makeOtherWays(shown)));
  }
}

/** Return links to the same words in the other kinds of search. */
function makeOtherWays(shown) {
  const others = Object.entries(KINDS).filter(([name, { method }]) => name !== shown.in && offers(method));
  return h("p", { class: "ways" }, "Search for it as: ", others.map(([name, { label }], at) => [at ? " · " : "", h("a", { href: toAddress({ ...shown, in: name }) }, label)]));
}

/** Wait for a pause in typing. */
function rest(signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, REST_MS);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
  });
}

function add(state, answer) {
  const { list, groups, shown, asking } = state;
  for (const hit of answer.results) {
    const id = `${hit.project ?? ""}:${hit.file_path}`;
    if (!groups.has(id)) {
      groups.set(id, makeGroup(hit, shown, asking));
      list.append(groups.get(id).element);
    }
    groups.get(id).hits.push(hit);
  }
  for (const group of groups.values()) group.draw();
  if (!answer.results.length && !groups.size) list.append(h("p", { class: "none" }, "Nothing found.", (answer.suggestions ?? []).map((path) => [" ", h("a", { href: toAddress({ view: "file", project: shown.project, path }) }, path)])), makeOtherWays(shown));
  if (answer.next) list.append(makeMore(state, answer.next));
}

function makeMore(state, cursor) {
  const button = h("button", { type: "button", class: "more", onclick: async () => {
    button.disabled = true;
    try {
      const answer = await call(state.asking.method, forPage(state.asking, { cursor }), state.mine.signal);
      button.remove();
      add(state, answer);
    } catch (error) {
      button.disabled = false;
      if (error.name !== "AbortError") tell(error.message, true);
    }
  } }, "More results");
  return button;
}

function describe({ total, results, coverage, mode, next }, took) {
  const all = total ?? `more than ${results.length}`;
  const notes = [`${typeof all === "number" ? count(all) : all} ${total === 1 ? "result" : "results"} in ${Math.round(took)} ms`];
  if (mode === "words") notes.push("no line has the text; these files have most of its words");
  if (mode === "regex") notes.push("as a regular expression");
  if (!coverage.complete) notes.push("not complete");
  if (coverage.detail) notes.push(coverage.detail);
  const skipped = Object.entries(coverage.files_skipped ?? {}).map(([reason, files]) => `${count(files)} ${reason}`);
  notes.push(`${count(coverage.files_searched)} files covered${skipped.length ? `, left out: ${skipped.join(", ")}` : ""}`);
  if (next) notes.push(`the first ${results.length} are shown`);
  tell(notes.join(" · "));
}

function makeAsLinks(asking) {
  const copy = (label, text) => h("button", { type: "button", title: text, onclick: () => copyText(text) }, label);
  return h("p", { class: "as" }, copy("Copy link", location.href), isTeam() ? null : copy("Copy as fgrep", toCommand(asking)), copy("Copy as JSON-RPC", toRequest(asking)));
}

/** Copy a text to the clipboard; if the browser does not allow that for this address, show the text. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`copied: ${text}`);
  } catch {
    tell(text);
  }
}

/** Keep a question that found something among the recent ones of this browser, once typing has paused. */
function remember({ q, in: kind, project }) {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const recent = readRecent().filter((one) => one.q.trim() !== q.trim() || one.in !== kind || one.project !== project);
    localStorage.setItem(RECENT, JSON.stringify([{ q, in: kind, project }, ...recent].slice(0, MOST_RECENT)));
  }, KEEP_MS);
}

function readRecent() {
  try {
    const recent = JSON.parse(localStorage.getItem(RECENT) ?? "[]");
    return Array.isArray(recent) ? recent.filter((one) => typeof one?.q === "string") : [];
  } catch {
    return []; // another page of this host may have written it
  }
}

function makeRecent(shown) {
  const recent = readRecent().filter((one) => one.project === shown.project);
  if (!recent.length) return null;
  return h("section", {}, h("h2", {}, "Recent"), h("ul", { class: "recent" }, recent.map((one) => h("li", {}, h("a", { href: toAddress({ q: one.q, in: one.in, project: one.project }) }, h("code", {}, one.q))))));
}

/** Return the list of repositories, filled when it is known; with one there is nothing to choose. */
function makeRepositories() {
  const list = h("section", { hidden: true });
  call("stats", {}).then(({ projects }) => {
    if (projects.length < 2) return;
    list.hidden = false;
    show(list, h("h2", {}, "Repositories"), h("ul", { class: "recent" }, projects.map((project) => h("li", {}, h("a", { href: toAddress({ view: "folder", project }) }, project)))));
  }, () => {});
  return list;
}

function makeWelcome(shown) {
  const example = (q, kind, what) => h("li", {}, h("a", { href: toAddress({ q, in: kind }), onclick: (event) => { event.preventDefault(); go({ q, in: kind }); } }, h("code", {}, q)), ` ${what}`);
  return h("div", { class: "notice" }, h("h1", {}, "Search code"), h("p", {}, "Type a text to search for. Filters narrow the search; press ? for the keys."), h("ul", {},
    example("TODO lang:py", "text", "in Python files"), example("TODO -file:test", "text", "not in paths that contain “test”"), example("err(or)?s? case:no", "regex", "a regular expression"), example("sym:main", "text", "definitions and uses of a name"), offers("search_code") ? example("where settings are read", "meaning", "by meaning") : null), makeRecent(shown), makeRepositories());
}
