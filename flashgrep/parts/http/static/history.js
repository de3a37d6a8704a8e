// The commits that changed a file or folder, and the commit of each line.

import { toAddress } from "./address.js";
import { makeCrumbs } from "./crumbs.js";
import { h, show, tell } from "./dom.js";
import { escapeGlob } from "./question.js";
import { call } from "./rpc.js";
import { isTeam } from "./server.js";

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

function makeCommit(one, { project, path }) {
  // A team's store has only the heads of branches, so files of other commits cannot be opened.
  if (isTeam()) return h("li", {}, h("code", {}, one.commit.slice(0, SHORT)), " ", h("b", {}, one.subject), h("div", { class: "none" }, `${one.author}, ${day(one.time)}`));
  const isFile = path && !path.endsWith("/");
  const changes = { view: "changes", project, rev: one.parents.length ? `${one.commit}^..${one.commit}` : one.commit, path };
  return h("li", {}, h("a", { class: "hit", href: toAddress(changes) }, h("code", {}, one.commit.slice(0, SHORT))), " ", h("b", {}, one.subject), h("div", { class: "none" }, `${one.author}, ${day(one.time)} · `, isFile ? h("a", { href: toAddress({ view: "file", project, path, rev: one.commit }) }, "the file then") : h("a", { href: toAddress({ view: "folder", project, rev: one.commit }) }, "the files then")));
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
    const changes = { view: "changes", project: shown.project, rev: one.parents.length ? `${one.commit}^..${one.commit}` : one.commit, path: shown.path };
    if (run.isFirst && isTeam()) return h("span", { class: "blame", title: one.subject }, text);
    return run.isFirst ? h("a", { class: "blame", href: toAddress(changes), title: one.subject, tabindex: "-1" }, text) : h("span", { class: "blame" });
  };
  pane.draw(true);
}
