// The view of a file: its code, its toolbar and its side panel.

import { go, toAddress } from "./address.js";
import { CodePane } from "./code.js";
import { makeCrumbs } from "./crumbs.js";
import { count, h, show, tell } from "./dom.js";
import { Lines } from "./lines.js";
import { toggleBlame } from "./history.js";
import { showName, showOutline } from "./panel.js";
import { makeRevisions } from "./revisions.js";
import * as languages from "./languages.js";
import { escapeGlob, toCall } from "./question.js";
import { call, download } from "./rpc.js";
import { copyText } from "./clipboard.js";
import { findPermanentAddress } from "./permalink.js";
import { offers } from "./server.js";
import { makeTree, toggleTree } from "./tree.js";

let open = null;
/** Lines in which what a question matches is marked. */
const MOST_MARKED = 1000;
const MARKED_TOKENS = 1_000_000;

/** Cancel the pending requests of the file shown before. */
export function leaveFile() {
  open?.asking.abort();
  open = null;
}

/** Show a file, or other lines of the current one. */
export async function showFile(shown, view) {
  const id = JSON.stringify([shown.project, shown.path, shown.path_bytes, shown.rev]);
  if (open?.id === id && view.contains(open.pane.element)) {
    open.shown = shown;
    open.pane.choose(shown.first, shown.last);
    return;
  }
  leaveFile();
  const asking = new AbortController();
  const lines = new Lines(shown, asking.signal);
  const pane = new CodePane(lines, {
    address: (line) => toAddress({ ...open.shown, first: line, last: 0 }),
    onrange: ([first, last]) => {
      open.shown = { ...open.shown, first, last };
      go(open.shown, true);
    },
    onplace: (place, jumps) => askName(place, jumps),
  });
  const panel = h("aside", { class: "panel", "aria-label": "About this file", hidden: true, tabindex: "-1" });
  open = { id, shown, pane, lines, asking, panel };
  try {
    await lines.load(1);
    if (shown.first > 1) await lines.load(shown.first);
  } catch (error) {
    if (error.name !== "AbortError") {
      show(view, h("div", { class: "notice" }, h("h1", {}, shown.path), h("p", {}, error.message)));
      tell(error.message, true);
    }
    return;
  }
  if (asking.signal.aborted) return;
  const { project, path, rev } = shown;
  const actions = [
    shown.q ? h("a", { class: "back", href: toAddress({ view: "search", q: shown.q, in: shown.in, project }) }, "← Results") : null,
    makeRevisions(shown),
    h("button", { type: "button", title: "f", onclick: toggleTree }, "Files"),
    h("button", { type: "button", title: "o", onclick: toggleOutline }, "Outline"),
    offers("blame") ? h("button", { type: "button", title: "b", onclick: () => run(toggleBlame(open)) }, "Blame") : null,
    offers("history") ? h("a", { href: toAddress({ view: "history", project, path, rev }), title: "h" }, "History") : null,
    offers("history") ? h("button", { type: "button", title: "y", onclick: () => run(copyPermanentLink(open)) }, "Permanent link") : null,
    h("button", { type: "button", title: "r", onclick: () => openRaw(shown) }, "Raw"),
  ];
  const bar = h("div", { class: "bar-of-file" }, makeCrumbs(shown), h("div", { class: "actions", role: "toolbar", "aria-label": "This file" }, actions));
  show(view, h("div", { class: "file" }, bar, h("div", { class: "panes" }, makeTree(shown), pane.element, panel)));
  document.title = `${shown.path} · flashgrep`;
  pane.begin();
  pane.choose(shown.first, shown.last);
  pane.element.focus({ preventScroll: true });
  const facts = [`${count(lines.total)} lines`, `${count(lines.size)} bytes`, lines.note, shown.rev && `at ${shown.rev}`];
  const described = facts.filter(Boolean).join(" · ");
  tell(described);
  run(markMatches(open, described));
}

/** Mark what the question that led here matches; `described`: what the status says of the file. */
async function markMatches(file, described) {
  const { shown, pane, asking } = file;
  const question = shown.q ? toCall(shown.q, shown.in, shown.project, languages) : null;
  if (question?.method !== "query") return;
  const { project, path, path_bytes, rev } = shown;
  if (path_bytes) return;
  const limits = { limit: MOST_MARKED, max_tokens: MARKED_TOKENS };
  const params = { ...question.params, ...limits, include: [`/${escapeGlob(path)}`], exclude: [], language: [], order: "path", spans: true, output: "lines", position_encoding: "utf-16", project: project || undefined };
  for (const name of ["projects", "context", "before", "after", "path", "rev"]) delete params[name];
  if (rev) params.rev = rev;
  const answer = await call("query", params, asking.signal);
  if (answer.mode === "words") return;
  for (const hit of answer.results) {
    if (hit.file_path !== path) continue;
    for (const span of hit.spans ?? []) {
      if (span.start_line !== span.end_line) continue;
      const marked = pane.marks.get(span.start_line) ?? [];
      pane.marks.set(span.start_line, [...marked, [span.start_column - 1, span.end_column - 1, "match"]]);
    }
  }
  file.matches = [...pane.marks.keys()].sort((one, other) => one - other);
  pane.draw(true);
  if (answer.next) tell(`${described} · only the first ${count(answer.results.length)} matching lines are marked`);
}

/** Choose the next matching line, or with -1 the previous one; after the last comes the first. */
function stepMatch(by) {
  const { matches = [], shown } = open;
  if (!matches.length) return;
  const at = by > 0 ? matches.findIndex((line) => line > shown.first) : matches.findLastIndex((line) => line < shown.first);
  const line = at < 0 ? matches.at(by > 0 ? 0 : -1) : matches[at];
  open.shown = { ...shown, first: line, last: line };
  go(open.shown, true);
}

function run(work) {
  work.catch((error) => error.name !== "AbortError" && tell(error.message, true));
}

function toggleOutline() {
  const { panel } = open;
  panel.hidden = !panel.hidden && panel.dataset.shows === "outline";
  panel.dataset.shows = "outline";
  if (!panel.hidden) run(showOutline(panel, open));
}

function askName(place, jumps) {
  const { panel } = open;
  panel.hidden = false;
  panel.dataset.shows = "name";
  run(showName(panel, open, place, jumps).then((address) => address && go(address)));
}

async function copyPermanentLink({ shown, asking }) {
  await copyText(new URL(await findPermanentAddress(shown, asking.signal), location.href).href);
}

/** Handle a key in a file; return whether the key has a meaning there. */
export function pressInFile(key) {
  if (!open?.pane.height) return false;
  const { pane, shown } = open;
  const { project, path, rev } = shown;
  const keys = {
    ArrowDown: () => pane.move(1, 0), ArrowUp: () => pane.move(-1, 0), j: () => pane.move(1, 0), k: () => pane.move(-1, 0),
    ArrowRight: () => pane.move(0, 1), ArrowLeft: () => pane.move(0, -1),
    Enter: () => { const place = pane.placeOfCursor(); if (place) askName(place, false); },
    d: () => { const place = pane.placeOfCursor(); if (place) askName(place, true); },
    n: () => stepMatch(1), N: () => stepMatch(-1),
    f: toggleTree, y: () => offers("history") && run(copyPermanentLink(open)),
    o: toggleOutline, b: () => offers("blame") && run(toggleBlame(open)), r: () => openRaw(shown),
    h: () => offers("history") && go({ view: "history", project, path, rev }),
    u: () => go({ view: "folder", project, rev, path: path.split("/").slice(0, -1).join("/") }),
    p: () => { if (!open.panel.hidden) open.panel.querySelector("a.hit, button")?.focus(); },
  };
  keys[key]?.();
  return key in keys;
}

/** Open a file unchanged, as plain text whatever its type. */
async function openRaw({ project, path, path_bytes, rev }) {
  const place = Object.fromEntries(Object.entries({ project, path, path_bytes, rev }).filter(([, value]) => value));
  try {
    const address = URL.createObjectURL(await download(place));
    window.open(address, "_blank", "noopener");
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (error) {
    tell(error.message, true);
  }
}
