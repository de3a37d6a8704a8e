// A path with a link for each folder.

import { toAddress } from "./address.js";
import { h } from "./dom.js";

/** Return the links of a path: the project, each folder, the file. */
export function makeCrumbs({ project, path, rev }) {
  const parts = path.split("/").filter(Boolean);
  const links = [h("a", { href: toAddress({ view: "folder", project, rev }) }, project || "project")];
  parts.forEach((name, at) => {
    const isLast = at === parts.length - 1;
    const folder = parts.slice(0, at + 1).join("/");
    links.push(h("span", { "aria-hidden": "true" }, "/"), isLast ? h("b", {}, name) : h("a", { href: toAddress({ view: "folder", project, rev, path: folder }) }, name));
  });
  return h("nav", { class: "crumbs", "aria-label": "Path" }, links);
}
