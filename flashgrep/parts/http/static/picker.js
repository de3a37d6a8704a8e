// Choosing the repository to search: one, or all.

import { h } from "./dom.js";
import { call } from "./rpc.js";

/** Return a box for choosing a repository; `choose` is called with its name, or with "" for all. */
export function makePicker(choose) {
  const list = h("datalist", { id: "repositories" });
  const box = h("input", { type: "text", id: "repository", list: "repositories", placeholder: "all repositories", "aria-label": "Repository", autocomplete: "off", spellcheck: "false", onchange: () => choose(box.value.trim()), onfocus: () => box.select() });
  const element = h("span", { class: "picker", hidden: true }, box, list);
  return {
    element,
    /** Fetch the names; with a single repository there is nothing to choose. */
    async fill() {
      const names = await call("stats", {}).then(({ projects }) => projects, () => []);
      element.hidden = names.length < 2;
      list.replaceChildren(...names.map((value) => h("option", { value })));
    },
    show(name) {
      if (document.activeElement !== box) box.value = name;
    },
  };
}
