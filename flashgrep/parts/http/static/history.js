// The commits that changed a file or folder, and the commit of each line.

import { toAddress } from "./address.js";
import { makeCrumbs } from "./crumbs.js";
import { h, show, tell } from "./dom.js";
import { escapeGlob } from "./question.js";
import { call } from "./rpc.js";
import { isTeam, offers } from "./server.js";

const SHORT = 10;
const BLAMED = 5000;

function day(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

/** Show the commits that changed a path. */
export async function showHistory(shown, view) {
  const { project, path, rev } = shown;
  const list = h("ol", { class: "commits" });
  const params = { project, ...(path ? { path } : {}), ...(rev ? { rev } : {}) };
  const more = async (cursor) => {
    const answer = await call("history", { ...params, ...(cursor ? { cursor } : {}) });
    list.append(...answer.results.map((one) => makeCommit(one, shown)));
    if (!answer.next) return;
    const button = h("button", { type: "button", class: "more", onclick: () => { button.remove(); more(answer.next).catch((error) => tell(error.message, true)); } }, "Earlier commits");
    list.after(button);
  };
  try {
    await more();
    show(view, h("div", { class: "bar-of-file" }, makeCrumbs(shown)), h("div", { class: "page" }, h("h1", {}, "History"), list, ...(list.nextSibling ? [list.nextSibling] : [])));
    tell(`${list.children.length} commits${rev ? ` up to ${rev}` : ""}`);
    document.title = `History of ${path || project} · flashgrep`;
  } catch (error) {
    tell(error.message, true);
  }
}

function makeCommit(one, place) {
  const then = h("a", { href: addressThen(one, place) }, isFolder(place.path) ? "the files then" : "the file then");
  return h("li", {}, h("a", { class: "hit", href: addressOfChanges(one, place) }, h("code", {}, one.commit.slice(0, SHORT))), " ", h("b", {}, one.subject), h("div", { class: "none" }, `${one.author}, ${day(one.time)} · `, then));
}

function isFolder(path) {
  return !path || path.endsWith("/");
}

/** Return the address of a file or folder as it was in a commit. */
function addressThen(one, { project, path }) {
  return toAddress({ view: isFolder(path) ? "folder" : "file", project, path: withoutSlash(path), rev: one.commit });
}

function withoutSlash(path) {
  return path.replace(/\/$/, "");
}

/** Return the address of what a commit changed; where the server compares no revisions, of what it left. */
function addressOfChanges(one, place) {
  if (!offers("changes")) return addressThen(one, place);
  return toAddress({ view: "changes", project: place.project, rev: one.parents.length ? `${one.commit}^..${one.commit}` : one.commit, path: withoutSlash(place.path) });
}

/** Return a function from a current line to the committed one, or null if it was not committed. */
export async function mapLines({ project, path }) {
  const answer = await call("changes", { project, rev: "HEAD", include: [`/${escapeGlob(path)}`], limit: 1, max_tokens: 1_000_000 });
  const hunks = answer.results[0]?.hunks ?? [];
  return (line) => {
    let moved = 0;
    for (const hunk of hunks) {
      if (hunk.lines && hunk.start_line <= line && line < hunk.start_line + hunk.lines) return null;
      // Without lines now, its start is the line before.
      if (hunk.lines ? hunk.start_line + hunk.lines <= line : hunk.start_line < line) moved += hunk.old_lines - hunk.lines;
    }
    return line + moved;
  };
}

/** Show the commit of each line next to it; a second call hides the commits. */
export async function toggleBlame(file) {
  const { pane, lines, shown } = file;
  if (pane.margin) {
    pane.margin = null;
    pane.draw(true);
    return;
  }
  const toCommitted = shown.rev || isTeam() ? (line) => line : await mapLines(shown);
  const of = new Map();
  const commits = new Map();
  for (let first = 1; first <= lines.total && first <= 4 * BLAMED; first += BLAMED) {
    const answer = await call("blame", { project: shown.project, path: shown.path, rev: shown.rev || "HEAD", start_line: first, end_line: first + BLAMED - 1 });
    for (const one of answer.commits) commits.set(one.commit, one);
    for (const run of answer.results) for (let at = 0; at < run.lines; at += 1) of.set(run.start_line + at, { ...run, isFirst: at === 0 });
  }
  pane.margin = (line) => {
    const run = of.get(toCommitted(line));
    const one = commits.get(run?.commit);
    if (!one) return h("span", { class: "blame" }, toCommitted(line) ? "" : "not committed");
    const text = `${one.commit.slice(0, 8)} ${day(one.time)} ${one.author}`;
    return run.isFirst ? h("a", { class: "blame", href: addressOfChanges(one, shown), title: one.subject, tabindex: "-1" }, text) : h("span", { class: "blame" });
  };
  pane.draw(true);
}
