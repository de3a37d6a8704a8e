// The contents of a folder, at a revision or now.

import { toAddress } from "./address.js";
import { makeCrumbs } from "./crumbs.js";
import { count, h, show, tell } from "./dom.js";
import { makeRevisions } from "./revisions.js";
import { call } from "./rpc.js";
import { isTeam, offers } from "./server.js";

/** Show a folder; without a project, the list of projects. */
export async function showFolder(shown, view) {
  const { project, path, rev } = shown;
  try {
    if (!project) return await showProjects(view);
    const answer = await call("list_folder", { project, ...(path ? { path } : {}), ...(rev ? { rev } : {}) });
    const rows = answer.results.map((one) => makeEntry(one, shown));
    const up = path ? h("li", {}, h("a", { class: "hit", href: toAddress({ ...shown, path: path.split("/").slice(0, -1).join("/") }) }, "..")) : null;
    const actions = h("div", { class: "actions" }, makeRevisions(shown), offers("history") ? h("a", { href: toAddress({ view: "history", project, path: path && `${path}/`, rev }) }, "History") : null, offers("changes") ? h("a", { href: toAddress({ view: "changes", project }) }, "Changes") : null);
    show(view, h("div", { class: "bar-of-file" }, makeCrumbs(shown), actions), h("ul", { class: "entries" }, up, rows));
    document.title = `${path || project} · flashgrep`;
    tell([`${count(answer.total)} files`, rev && `at ${rev}`, answer.coverage.detail].filter(Boolean).join(" · "));
  } catch (error) {
    tell(error.message, true);
  }
}

function makeEntry(one, { project, path, rev }) {
  const name = one.file_path.slice(path ? path.length + 1 : 0);
  const isFolder = one.files !== undefined;
  const place = { view: isFolder ? "folder" : "file", project, rev, path: one.file_path, path_bytes: isFolder ? "" : one.file_path_bytes };
  return h("li", {}, h("a", { class: isFolder ? "hit folder-entry" : "hit", href: toAddress(place) }, isFolder ? `${name}/` : name), isFolder ? h("span", { class: "count" }, count(one.files)) : null);
}

async function showProjects(view) {
  const { projects } = await call("stats", {});
  show(view, h("div", { class: "page" }, h("h1", {}, isTeam() ? "Repositories" : "Projects"), h("ul", { class: "entries" }, projects.map((project) => h("li", {}, h("a", { class: "hit folder-entry", href: toAddress({ view: "folder", project }) }, project))))));
  tell(`${projects.length} ${isTeam() ? "repositories" : "projects"}`);
}
