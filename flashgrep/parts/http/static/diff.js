// The differences between two revisions, or between one and the current files.

import { go, toAddress } from "./address.js";
import { count, h, show, tell } from "./dom.js";
import { lex, lexerFor, paint } from "./highlight.js";
import { languageOf } from "./languages.js";
import { escapeGlob } from "./question.js";
import { call } from "./rpc.js";

/** Show the differences: `rev` is one revision, or two as a..b; `path` one file or folder. */
export async function showChanges(shown, view) {
  const { project, path } = shown;
  const rev = shown.rev || "HEAD";
  const files = h("div", { class: "diffs" });
  const box = h("input", { type: "text", class: "rev wide", value: rev, "aria-label": "Revisions to compare, such as main..HEAD", onchange: () => go({ ...shown, rev: box.value.trim() }) });
  const params = { project, rev, lines: true, limit: 20, max_tokens: 60_000, ...(path ? { include: [`/${escapeGlob(path)}`, `/${escapeGlob(path)}/**`] } : {}) };
  const more = async (cursor) => {
    const answer = await call("changes", { ...params, ...(cursor ? { cursor } : {}) });
    files.append(...answer.results.map((one) => makeFile(one, project, rev)));
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
    tell(error.message, true);
  }
}

function makeFile(one, project, rev) {
  const after = /\.\.\.?(.*)$/.exec(rev)?.[1] ?? "";
  const place = (line) => toAddress({ view: "file", project, path: one.file_path, path_bytes: one.file_path_bytes, rev: after, first: line });
  const head = h("h2", {}, h("a", { class: "hit path", href: place(0) }, one.file_path), h("span", { class: "none" }, ` ${one.status}${one.old_path ? ` from ${one.old_path}` : ""} `), h("span", { class: "plus" }, `+${one.added}`), " ", h("span", { class: "minus" }, `−${one.removed}`), one.note ? h("span", { class: "none" }, ` ${one.note}`) : null);
  return h("section", { class: "group" }, head, h("div", { class: "hits diff" }, one.hunks.map((hunk) => makeHunk(hunk, place, lexerFor(languageOf(one.file_path)?.name))), one.left_out ? h("p", { class: "none" }, `${one.left_out} more not shown`) : null));
}

function makeHunk(hunk, place, family) {
  let [old, now] = [hunk.old_start_line, hunk.start_line];
  const lines = (hunk.diff ?? "").replace(/\n$/, "").split("\n").filter(Boolean);
  return [h("div", { class: "gap" }), lines.map((line) => {
    const isAdded = line[0] === "+";
    const number = isAdded ? now++ : old++;
    const text = line.slice(1);
    const code = h("code", {}, line[0], paint(text, family ? lex(family, text, null).tokens : []));
    return h("div", { class: `line ${isAdded ? "added" : line[0] === "-" ? "removed" : ""}` }, isAdded ? h("a", { class: "number", href: place(number), tabindex: "-1" }, number) : h("span", { class: "number" }, number), code);
  })];
}
