// The files of a project beside the one that is read: folders open in place, and stay open from file to file.

import { toAddress } from "./address.js";
import { h, show } from "./dom.js";
import { call } from "./rpc.js";

/** Entries of a folder that are listed; the rest is in the view of the folder. */
const MOST_LISTED = 500;
const KEY = "flashgrep.tree";
const WIDE = "(min-width: 1000px)";

let tree = null;

/** Return whether the tree is shown: as chosen before, else if there is room. */
function isWanted() {
  const chosen = localStorage.getItem(KEY);
  return chosen ? chosen === "open" : matchMedia(WIDE).matches;
}

/** Return the tree of a file's project, open down to the file; that of the file before, if it is the same project. */
export function makeTree(shown) {
  if (tree?.project !== shown.project || tree.rev !== shown.rev) tree = new Tree(shown.project, shown.rev);
  tree.shown = shown;
  tree.element.hidden = !isWanted();
  if (!tree.element.hidden) tree.reveal(shown.path);
  return tree.element;
}

/** Show the tree, or hide it. */
export function toggleTree() {
  const { element, shown } = tree;
  element.hidden = !element.hidden;
  localStorage.setItem(KEY, element.hidden ? "shut" : "open");
  if (element.hidden) return;
  tree.reveal(shown.path).then(() => (element.querySelector("[aria-current]") ?? element.querySelector("a, button"))?.focus());
}

/** Return the folders that a path is in, the project's root first, as "". */
function foldersOf(path) {
  const parts = path.split("/").slice(0, -1);
  return ["", ...parts.map((_, at) => parts.slice(0, at + 1).join("/"))];
}

class Tree {
  constructor(project, rev) {
    this.project = project;
    this.rev = rev;
    this.lists = new Map();
    this.element = h("nav", { class: "tree", "aria-label": "Files", onkeydown: (event) => this.#press(event) });
  }

  /** Open the folders down to a file, and mark it as the current one. */
  async reveal(path) {
    let around = "";
    for (const folder of foldersOf(path)) {
      if (folder && !this.#buttonOf(folder)) await this.#renew(around);
      await this.#open(folder);
      if (this.shown.path !== path) return; // another file was opened meanwhile
      around = folder;
    }
    if (!this.#linkOf(path)) await this.#renew(around);
    this.element.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const link = this.#linkOf(path);
    link?.setAttribute("aria-current", "page");
    const isAway = link && (link.offsetTop < this.element.scrollTop || link.offsetTop + link.offsetHeight > this.element.scrollTop + this.element.clientHeight);
    if (isAway) this.element.scrollTop = link.offsetTop - this.element.clientHeight / 2;
  }

  /** Fetch a folder's entries, unless they are there, and show them. */
  async #open(folder) {
    const button = this.#buttonOf(folder);
    if (folder && !button) return; // not listed: too many entries, or gone
    button?.setAttribute("aria-expanded", "true");
    if (button) button.nextSibling.hidden = false;
    if (!this.lists.has(folder)) {
      this.lists.set(folder, this.#load(folder, button));
    }
    try {
      await this.lists.get(folder);
    } catch (error) {
      this.lists.delete(folder);
      show(folder ? button.nextSibling : this.element, h("li", { class: "none" }, error.message));
    }
  }

  /** Show a folder's entries anew, unless they are a revision's: the files of a work tree change. */
  #renew(folder) {
    if (!this.rev) for (const listed of this.lists.keys()) if (!folder || listed === folder || listed.startsWith(`${folder}/`)) this.lists.delete(listed);
    return this.#open(folder);
  }

  async #load(folder, button) {
    const { project, rev } = this;
    const answer = await call("list_folder", { project: project || undefined, rev: rev || undefined, path: folder || undefined });
    const entries = answer.results.slice(0, MOST_LISTED).map((entry) => this.#makeEntry(entry, folder));
    const left = answer.results.length - entries.length;
    if (left > 0) entries.push(h("li", {}, h("a", { href: toAddress({ view: "folder", project, rev, path: folder }) }, `${left} more`)));
    show(folder ? button.nextSibling : this.element, folder ? entries : h("ul", {}, entries));
  }

  #makeEntry(entry, folder) {
    const { project, rev } = this;
    const path = entry.file_path;
    const name = path.slice(folder ? folder.length + 1 : 0);
    if (entry.files === undefined) return h("li", {}, h("a", { href: toAddress({ view: "file", project, rev, path, path_bytes: entry.file_path_bytes }), "data-path": path, title: name }, h("bdi", {}, name)));
    return h("li", {}, h("button", { type: "button", "aria-expanded": "false", "data-path": path, title: name, onclick: () => this.#toggle(path) }, h("bdi", {}, name)), h("ul", { hidden: true }));
  }

  #toggle(folder) {
    const button = this.#buttonOf(folder);
    if (button.getAttribute("aria-expanded") !== "true") return this.#renew(folder);
    button.setAttribute("aria-expanded", "false");
    button.nextSibling.hidden = true;
  }

  #linkOf(path) {
    return [...this.element.querySelectorAll("a")].find((link) => link.dataset.path === path);
  }

  /** Go to the first entry of an open folder, once it is there. */
  async #enter(button) {
    await this.lists.get(button.dataset.path)?.catch(() => {});
    button.nextSibling.querySelector("a, button")?.focus();
  }

  #buttonOf(folder) {
    return [...this.element.querySelectorAll("button")].find((button) => button.dataset.path === folder);
  }

  #press(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !target.dataset.path) return;
    const rows = [...this.element.querySelectorAll("a, button")].filter((row) => row.offsetParent !== null);
    const at = rows.indexOf(target);
    const isOpen = target.getAttribute("aria-expanded") === "true";
    const isShut = target.getAttribute("aria-expanded") === "false";
    const parent = () => target.closest("ul").previousElementSibling;
    const acts = {
      ArrowDown: () => rows[at + 1]?.focus(), j: () => rows[at + 1]?.focus(), ArrowUp: () => rows[at - 1]?.focus(), k: () => rows[at - 1]?.focus(),
      ArrowRight: () => {
        if (isShut) this.#toggle(target.dataset.path);
        else if (isOpen) this.#enter(target);
        else rows[at + 1]?.focus();
      },
      ArrowLeft: () => (isOpen ? this.#toggle(target.dataset.path) : parent()?.focus()),
    };
    if (!acts[key]) return;
    event.preventDefault();
    acts[key]();
  }
}
