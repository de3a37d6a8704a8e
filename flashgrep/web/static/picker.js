// Which repository is searched: one, or all of them.

import { h } from "./dom.js";
import { call } from "./rpc.js";

/** Return a box for the repository, by name; `choose` is called with it, or with "" for all. */
export function makePicker(choose) {
  const list = h("datalist", { id: "repositories" });
  const box = h("input", { type: "text", id: "repository", list: "repositories", placeholder: "all repositories", "aria-label": "Repository", autocomplete: "off", spellcheck: "false", onchange: () => choose(box.value.trim()), onfocus: () => box.select() });
  const element = h("span", { class: "picker", hidden: true }, box, list);
  return {
    element,
    /** Fetch the names; where there is one repository, there is nothing to choose. */
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
