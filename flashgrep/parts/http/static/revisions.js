// Choosing the revision to show: a branch, a tag, or any other name that git accepts.

import { go } from "./address.js";
import { h } from "./dom.js";
import { call } from "./rpc.js";
import { isTeam } from "./server.js";

const known = new Map();

/** Return a box for the revision to show; empty: the current files. */
export function makeRevisions(shown) {
  const list = h("datalist", { id: "revisions" });
  const box = h("input", { type: "text", class: "rev", list: "revisions", value: shown.rev, placeholder: isTeam() ? "HEAD" : "as it is now", "aria-label": "Revision", autocomplete: "off", onfocus: () => fill(list, shown.project), onchange: () => go({ ...shown, rev: box.value.trim() }) });
  return h("label", { class: "revision" }, "Revision ", box, list);
}

async function fill(list, project) {
  if (!known.has(project)) {
    known.set(project, call("list_revisions", { project }).then(({ results }) => results, () => []));
  }
  const names = await known.get(project);
  list.replaceChildren(h("option", { value: "HEAD" }), ...names.map((one) => h("option", { value: one.name }, one.kind)));
}
