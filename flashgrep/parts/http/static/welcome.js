// The empty page: saved and recent searches, the repositories with their state, and examples.

import { toAddress } from "./address.js";
import { count, h, show } from "./dom.js";
import { KINDS } from "./question.js";
import { forgetRecent, readRecent, readSaved, toggleSaved } from "./remembered.js";
import { call } from "./rpc.js";
import { isTeam, offers } from "./server.js";

/** Repositories whose figures are requested; of more only the names are shown. */
const MOST_COUNTED = 20;
const EXAMPLES = [
  ["TODO lang:py", "text", "in Python files"],
  ["TODO -file:test", "text", "not in paths that contain “test”"],
  ["err(or)?s? case:no", "regex", "a regular expression"],
  ["sym:main", "text", "definitions and uses of a name"],
  ["where settings are read", "meaning", "by meaning"],
];

/** Return the empty page. */
export function makeWelcome(shown) {
  const examples = EXAMPLES.filter(([, kind]) => offers(KINDS[kind].method)).map(([q, kind, what]) => h("li", {}, h("a", { href: toAddress({ q, in: kind, project: shown.project }) }, h("code", {}, q)), ` ${what}`));
  return h("div", { class: "notice welcome" }, h("h1", {}, "Search code"), h("p", {}, "Type a text to search for. Filters narrow the search; press ? for the keys and filters."),
    makeSaved(), makeRecent(shown), makeRepositories(), h("section", {}, h("h2", {}, "Examples"), h("ul", {}, examples)));
}

function makeLink({ q, in: kind, project }) {
  const label = KINDS[kind]?.label;
  return h("a", { href: toAddress({ q, in: kind, project }) }, h("code", {}, q), kind === "text" || !label ? null : h("span", { class: "none" }, ` ${label}`));
}

function makeSaved() {
  const saved = readSaved();
  if (!saved.length) return null;
  const section = h("section", {}, h("h2", {}, "Saved"), h("ul", { class: "recent saved" }, saved.map((search) => {
    const row = h("li", {}, makeLink(search), search.project ? h("span", { class: "none" }, ` in ${search.project}`) : null, h("button", { type: "button", class: "remove", title: "Remove", "aria-label": `Remove ${search.q}`, onclick: () => {
      toggleSaved(search);
      row.remove();
      section.hidden = !readSaved().length;
    } }, "×"));
    return row;
  })));
  return section;
}

function makeRecent({ project }) {
  const recent = readRecent(project);
  if (!recent.length) return null;
  const section = h("section", {}, h("h2", {}, "Recent"), h("ul", { class: "recent" }, recent.map((search) => h("li", {}, makeLink(search)))), h("button", { type: "button", class: "rest", onclick: () => { forgetRecent(); section.remove(); } }, "Clear"));
  return section;
}

/** Return the list of repositories, which is filled when it is known. */
function makeRepositories() {
  const list = h("section", { hidden: true });
  call("stats", {}).then(({ projects }) => {
    if (!projects.length) return;
    list.hidden = false;
    const rows = projects.map((project) => ({ project, figures: h("span", { class: "none" }) }));
    show(list, h("h2", {}, isTeam() ? "Repositories" : "Projects"), h("ul", { class: "repositories" }, rows.map(({ project, figures }) => h("li", {}, h("a", { href: toAddress({ view: "folder", project }) }, project), figures))));
    for (const { project, figures } of rows.slice(0, MOST_COUNTED)) call("stats", { project }).then((stats) => show(figures, describe(stats)), (error) => show(figures, error.message));
  }, () => {});
  return list;
}

function describe({ total_files: files, total_lines: lines, indexing }) {
  const state = indexing && indexing.share < 1 ? `${Math.round(indexing.share * 100)} % indexed` : "";
  const plural = (number, noun) => (number === undefined ? "" : `${count(number)} ${noun}${number === 1 ? "" : "s"}`);
  const facts = [plural(files, "file"), plural(lines, "line"), state];
  return facts.filter(Boolean).join(" · ");
}
