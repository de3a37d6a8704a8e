// The differences between two revisions, or between one and the current files.

import { go, toAddress } from "./address.js";
import { count, h, show, tell } from "./dom.js";
import { lex, lexAll, lexerFor, paint } from "./highlight.js";
import { languageOf } from "./languages.js";
import { Lines } from "./lines.js";
import { escapeGlob } from "./question.js";
import { call } from "./rpc.js";
import { compareWords } from "./words.js";

/** Unchanged lines shown around changed ones. */
const CONTEXT = 3;
/** A file with more lines is shown without what is around its changes. */
const MOST_READ = 20_000;
let reading = new AbortController();

/** Show the differences: `rev` is one revision, or two as a..b; `path` one file or folder. */
export async function showChanges(shown, view) {
  const { project, path } = shown;
  const rev = shown.rev || "HEAD";
  reading.abort();
  reading = new AbortController();
  const { signal } = reading;
  const files = h("div", { class: "diffs" });
  const box = h("input", { type: "text", class: "rev wide", value: rev, "aria-label": "Revisions to compare, such as main..HEAD", onchange: () => go({ ...shown, rev: box.value.trim() }) });
  const params = { project, rev, lines: true, limit: 20, max_tokens: 60_000, ...(path ? { include: [`/${escapeGlob(path)}`, `/${escapeGlob(path)}/**`] } : {}) };
  const more = async (cursor) => {
    const answer = await call("changes", { ...params, ...(cursor ? { cursor } : {}) }, signal);
    files.append(...answer.results.map((change) => makeFile(change, project, rev, signal)));
    if (answer.next) {
      const button = h("button", { type: "button", class: "more", onclick: () => { button.remove(); more(answer.next).catch((error) => tell(error.message, true)); } }, "More files");
      files.append(button);
    }
    tell(`${count(answer.total)} ${answer.total === 1 ? "file differs" : "files differ"}${answer.coverage.complete ? "" : " · not complete"}`);
  };
  show(view, h("div", { class: "page" }, h("h1", {}, "Changes"), h("p", {}, h("label", {}, "Compare ", box), h("span", { class: "none" }, " one revision with the current files, or two revisions, such as main..HEAD"), path ? h("span", {}, " in ", h("code", {}, path)) : null), files));
  document.title = `Changes ${rev} · flashgrep`;
  try {
    await more();
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, true);
  }
}

/** Cancel the pending requests of the changes shown before. */
export function leaveChanges() {
  reading.abort();
}

function makeFile(change, project, rev, signal) {
  const after = /\.\.\.?(.*)$/.exec(rev)?.[1] ?? "";
  const place = { view: "file", project, path: change.file_path, path_bytes: change.file_path_bytes, rev: after };
  const head = h("h2", {}, h("a", { class: "hit path", href: toAddress(place) }, change.file_path), h("span", { class: "none" }, ` ${change.status}${change.old_path ? ` from ${change.old_path}` : ""} `), h("span", { class: "plus" }, `+${change.added}`), " ", h("span", { class: "minus" }, `−${change.removed}`), change.note ? h("span", { class: "none" }, ` ${change.note}`) : null);
  const body = h("div", { class: "hits diff" });
  const hunks = change.hunks.map(readHunk);
  drawHunks(body, hunks, change, place, null);
  readSides(hunks, change, place, signal).then((sides) => sides && drawHunks(body, hunks, change, place, sides), () => {}); // unreadable: the lines alone
  return h("section", { class: "group" }, head, body);
}

/** Return a hunk with its lines; the first lines that follow it: `oldNext`, `next`. On an empty side `start` is the line before. */
function readHunk(hunk) {
  const lines = (hunk.diff ?? "").split("\n");
  const texts = (sign) => lines.filter((line) => line[0] === sign).map((line) => line.slice(1));
  const first = hunk.start_line + (hunk.lines ? 0 : 1);
  const oldFirst = hunk.old_start_line + (hunk.old_lines ? 0 : 1);
  return { first, oldFirst, next: first + hunk.lines, oldNext: oldFirst + hunk.old_lines, removed: texts("-"), added: texts("+") };
}

/** Return whether all lines of a hunk were sent, whole. */
function isWhole({ first, next, oldFirst, oldNext, removed, added }) {
  return removed.length === oldNext - oldFirst && added.length === next - first;
}

/** Return the lines and tokens of the file before and after, or null if they cannot be told from the answer. */
async function readSides(hunks, change, place, signal) {
  if (!hunks.length || change.left_out || !hunks.every(isWhole)) return null;
  const now = change.status === "deleted" ? [] : await new Lines(place, signal).all(MOST_READ);
  if (!now) return null;
  const old = [];
  let next = 1;
  for (const hunk of hunks) {
    old.push(...now.slice(next - 1, hunk.first - 1));
    // Otherwise the file has changed since.
    if (old.length !== hunk.oldFirst - 1) return null;
    old.push(...hunk.removed);
    next = hunk.next;
  }
  old.push(...now.slice(next - 1));
  const family = lexerFor(languageOf(change.file_path)?.name);
  const tokens = (lines) => (family ? lexAll(family, lines) : []);
  return { now, old, tokens: tokens(now), oldTokens: tokens(old) };
}

/** Draw the hunks of a file; with its `sides` their lines have the file's colours, and lines around them. */
function drawHunks(body, hunks, change, place, sides) {
  const family = sides ? null : lexerFor(languageOf(change.file_path)?.name);
  const colour = (text, tokens) => tokens ?? (family ? lex(family, text, null).tokens : []);
  const addRow = (kind, sign, text, tokens, words, old, number) => h("div", { class: `line ${kind}` },
    h("span", { class: "number old" }, old),
    number ? h("a", { class: "number", href: toAddress({ ...place, first: number }), tabindex: "-1" }, number) : h("span", { class: "number" }),
    h("code", {}, sign, paint(text, colour(text, tokens), words)));
  const around = (from, to, shift) => {
    const rows = [];
    for (let line = from; line < to; line += 1) rows.push(addRow("", " ", sides.now[line - 1], sides.tokens[line - 1], [], line + shift, line));
    return rows;
  };
  const between = (from, to, shift, isFirst, isLast) => {
    if (!sides) return isFirst || isLast ? [] : h("div", { class: "gap" });
    const top = isFirst ? from : Math.min(from + CONTEXT, to);
    const bottom = isLast ? to : Math.max(to - CONTEXT, top);
    if (bottom - top <= 1) return around(from, to, shift);
    const button = h("button", { type: "button", class: "skipped", onclick: () => button.replaceWith(...around(top, bottom, shift)) }, `⋯ ${count(bottom - top)} unchanged lines`);
    return [around(from, top, shift), button, around(bottom, to, shift)];
  };
  const rows = [];
  let next = 1;
  let oldNext = 1;
  hunks.forEach((hunk, at) => {
    const words = compareWords(hunk.removed, hunk.added);
    rows.push(between(next, hunk.first, oldNext - next, at === 0, false));
    hunk.removed.forEach((text, nth) => rows.push(addRow("removed", "-", text, sides?.oldTokens[hunk.oldFirst + nth - 1], words.removed[nth], hunk.oldFirst + nth, 0)));
    hunk.added.forEach((text, nth) => rows.push(addRow("added", "+", text, sides?.tokens[hunk.first + nth - 1], words.added[nth], "", hunk.first + nth)));
    if (!isWhole(hunk)) rows.push(h("p", { class: "none" }, "more lines not shown"));
    next = hunk.next;
    oldNext = hunk.oldNext;
  });
  if (sides && hunks.length) rows.push(between(next, sides.now.length + 1, oldNext - next, false, true));
  show(body, rows, change.left_out ? h("p", { class: "none" }, `${change.left_out} more not shown`) : null);
}
