// Search while typing: the query, its results by file, and the filters that narrow them.

import { toAddress } from "./address.js";
import { copyText } from "./clipboard.js";
import { count, h, show, tell } from "./dom.js";
import { showFacets } from "./facets.js";
import * as languages from "./languages.js";
import { KINDS, forCounts, forPage, parse, toCall, toCommand, toRequest, toNear, without } from "./question.js";
import { forgetLast, isSaved, remember, toggleSaved } from "./remembered.js";
import { rest } from "./rest.js";
import { makeGroup } from "./results.js";
import { call } from "./rpc.js";
import { isTeam, offers } from "./server.js";
import { makeWelcome } from "./welcome.js";

/** Of keys pressed within this time, the first starts a search at once, and the last one after a pause. */
const PAUSE_MS = 40;
/** Counts are requested after this long without typing, since they visit every hit. */
const REST_MS = 250;

let running = null;
let pause = 0;
let lastKey = -Infinity;

/** A suggestion that is a name in the code; others are paths. */
const NAME = /^[\p{L}_$][\p{L}\p{N}_$]*$/u;

/** Files whose hits are coloured at the same time. */
const COLOURED_AT_ONCE = 2;

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
  forgetLast(); // what is typed over was not meant
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
  const page = h("div", { class: "search" }, facets, h("div", {}, makeAsLinks(asking, shown), list));
  const state = { list, groups: new Map(), asking, shown, view, mine, colours: makeColourist(mine.signal) };
  try {
    const began = performance.now();
    let answer = await call(asking.method, forPage(asking), mine.signal);
    add(state, answer);
    show(view, page);
    describe(answer, performance.now() - began);
    if (answer.results.length) remember(shown);
    const near = answer.results.length ? null : toNear(asking);
    if (near) {
      await rest(REST_MS, mine.signal);
      answer = await call(near.method, forPage(near), mine.signal);
      state.asking = asking = near;
      state.groups.clear();
      list.replaceChildren();
      add(state, answer);
      describe(answer, performance.now() - began);
    }
    await showFacets(facets, asking, answer, shown, async () => {
      if (asking.method !== "query" || answer.mode === "words") return null;
      await rest(REST_MS, mine.signal);
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

/** Return links to what is similar to a text that was not found: a name in its place, or a file. */
function makeSuggestions({ suggestions = [], coverage }, { params, kind }, shown) {
  const text = params[KINDS[kind].field];
  const roots = Object.entries(coverage.projects ?? {});
  return suggestions.map((near, at) => {
    let place = { view: "file", project: shown.project, path: near };
    for (const [project, root] of roots) {
      if (near.startsWith(`${root}/`)) place = { view: "file", project, path: near.slice(root.length + 1) };
    }
    if (kind === "symbols" || NAME.test(near)) place = { ...shown, q: shown.q.replace(text, () => near) };
    return [at ? ", " : " Did you mean ", h("a", { href: toAddress(place) }, near), at === suggestions.length - 1 ? "?" : ""];
  });
}

function add(state, answer) {
  const { list, groups, shown, asking } = state;
  for (const hit of answer.results) {
    const id = `${hit.project ?? ""}:${hit.file_path}`;
    if (!groups.has(id)) {
      groups.set(id, makeGroup(hit, shown, asking));
      list.append(groups.get(id).element);
      state.colours.watch(groups.get(id));
    }
    groups.get(id).hits.push(hit);
  }
  for (const group of groups.values()) group.draw();
  if (!answer.results.length && !groups.size) list.append(h("p", { class: "none" }, "Nothing found.", makeSuggestions(answer, asking, shown)), makeOtherWays(shown));
  if (answer.next) list.append(makeMore(state, answer.next));
}

/** Return what colours groups once they are on the screen and typing has paused, since it reads their files. */
function makeColourist(signal) {
  const groups = new Map();
  const waiting = [];
  let working = 0;
  const work = async () => {
    working += 1;
    // A file that cannot be read keeps the colours of its single lines.
    while (waiting.length && !signal.aborted) await waiting.shift().colour(signal).catch(() => {});
    working -= 1;
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      watcher.unobserve(target);
      waiting.push(groups.get(target));
    }
    while (working < Math.min(COLOURED_AT_ONCE, waiting.length)) work();
  });
  signal.addEventListener("abort", () => watcher.disconnect());
  return {
    watch(group) {
      groups.set(group.element, group);
      rest(REST_MS, signal).then(() => watcher.observe(group.element), () => {});
    },
  };
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

function makeAsLinks(asking, shown) {
  const label = (isKept) => (isKept ? "★ Saved" : "☆ Save");
  const save = h("button", { type: "button", title: "Keep this search on the empty page", "aria-pressed": String(isSaved(shown)), onclick: () => {
    const isKept = toggleSaved(shown);
    save.setAttribute("aria-pressed", String(isKept));
    save.textContent = label(isKept);
  } }, label(isSaved(shown)));
  const copy = (label, text) => h("button", { type: "button", title: text, onclick: () => copyText(text) }, label);
  return h("p", { class: "as" }, copy("Copy link", location.href), isTeam() ? null : copy("Copy as fgrep", toCommand(asking)), copy("Copy as JSON-RPC", toRequest(asking)), save);
}
