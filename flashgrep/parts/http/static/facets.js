// Hits counted by repository, language and folder; a click narrows the query to one of them.

import { go } from "./address.js";
import { count, h, show } from "./dom.js";
import { languageOf } from "./languages.js";
import { escapeGlob, withFilter, write } from "./question.js";

const MOST_ROWS = 12;

/** Show counts for an answer; `askAll` requests those of all files, or returns null if the answer has all hits. */
export async function showFacets(aside, asking, answer, shown, askAll) {
  const has = answer.results.map((hit) => ({ ...hit, count: 1 }));
  draw(aside, has, shown, !answer.next, "shown");
  const all = await askAll();
  if (all) draw(aside, all.results, shown, !all.next, "counted");
}

function draw(aside, files, shown, isAll, word) {
  const tables = [
    makeTable("Repository", tally(files, (file) => file.project ?? ""), (name) => write("repo", name), "repo", shown),
    makeTable("Language", tally(files, (file) => typeOf(file.file_path)), (name) => write("lang", name), "lang", shown),
    makeTable("Folder", tallyFolders(files), (name) => write("file", `${escapeGlob(name)}/`), "file", shown),
  ];
  const total = files.reduce((sum, file) => sum + file.count, 0);
  const note = isAll ? null : h("p", { class: "none" }, `of the first ${count(total)} ${word}`);
  show(aside, tables, files.length ? note : null);
}

function typeOf(path) {
  const language = languageOf(path);
  return language ? language.type || language.name : "";
}

function tally(files, nameOf) {
  const counts = new Map();
  for (const file of files) {
    const name = nameOf(file);
    if (name) counts.set(name, (counts.get(name) ?? 0) + file.count);
  }
  return counts;
}

/** Count by the first folders that differ, below the folder that all files share. */
function tallyFolders(files) {
  const folders = files.map((file) => file.file_path.split("/").slice(0, -1));
  let shared = 0;
  while (folders.length && folders.every((parts) => parts.length > shared && parts[shared] === folders[0][shared])) shared += 1;
  return tally(files.map((file, at) => ({ ...file, parts: folders[at] })), (file) => (file.parts.length > shared ? file.parts.slice(0, shared + 1).join("/") : ""));
}

function makeTable(title, counts, write, replaces, shown) {
  if (!counts.size || (counts.size === 1 && replaces !== "lang")) return null;
  const rows = [...counts].sort((one, other) => other[1] - one[1]);
  const most = rows[0][1];
  const narrow = (name) => go({ ...shown, q: withFilter(shown.q, write(name), replaces) });
  return h("section", { class: "facet" }, h("h2", {}, title), rows.slice(0, MOST_ROWS).map(([name, hits]) => {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${Math.max((100 * hits) / most, 1)}%`;
    return h("button", { type: "button", "data-facet": replaces, onclick: () => narrow(name) }, bar, h("span", { class: "name", title: name }, h("bdi", {}, name)), h("span", { class: "count" }, count(hits)));
  }), rows.length > MOST_ROWS ? h("p", { class: "none" }, `and ${rows.length - MOST_ROWS} more`) : null);
}
