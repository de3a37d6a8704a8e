// The side panel of a file: its outline, or the definition, uses and callers of a name.

import { toAddress } from "./address.js";
import { count, h, show, tell } from "./dom.js";
import { call } from "./rpc.js";

/** Documentation from these sizes on is shown in part. */
const SHORT_DOC = 400;
const SHORT_DOC_LINES = 8;
const STEPS = { references: "Uses", callers: "Callers", calls: "Calls", implementations: "Implementations" };

function target({ project, path, rev }, more) {
  return { path, ...(project ? { project } : {}), ...(rev ? { rev } : {}), ...more };
}

/** Show the outline of a file. */
export async function showOutline(panel, { shown, asking }) {
  const answer = await call("outline", target(shown, { structured: true, max_tokens: 200_000, position_encoding: "utf-16" }), asking.signal);
  const entries = answer.results[0]?.entries ?? [];
  const rows = entries.map((one) => {
    const link = h("a", { class: "hit", href: toAddress({ ...shown, first: one.selection_range.start_line, last: 0 }), title: one.signature }, h("span", { class: "kind" }, one.kind), " ", one.name);
    link.style.paddingLeft = `${one.depth * 14 + 6}px`;
    return h("li", {}, link);
  });
  show(panel, h("h2", {}, "Outline"), rows.length ? h("ul", {}, rows) : h("p", { class: "none" }, "Nothing is defined here."));
}

/** Look up a name; `jumps`: go to its definition if it has one. Returns the definition's address, or null. */
export async function showName(panel, { shown, asking }, place, jumps) {
  const params = target(shown, { line: place.line, column: place.column, position_encoding: "utf-16" });
  show(panel, h("h2", { class: "name" }, place.name), h("p", { class: "none" }, "…"));
  const found = await call("hover", params, asking.signal);
  if (jumps && found.results.length === 1) return addressOf(found.results[0], shown);
  const steps = Object.entries(STEPS).map(([method, label]) => h("button", { type: "button", "data-step": method, onclick: () => step(method).catch((error) => tell(error.message, true)) }, label));
  const list = h("div", { class: "places" });
  const step = async (method) => {
    show(list, h("p", { class: "none" }, "…"));
    const answer = await call(method, method === "references" ? { ...params, limit: 200 } : params, asking.signal);
    show(list, h("h2", {}, `${STEPS[method]} (${count(answer.results.length)}${answer.next ? "+" : ""})`), makePlaces(answer.results, shown), answer.reason ? h("p", { class: "none" }, `${answer.reason}: ${answer.detail ?? ""}`) : null, answer.unsure ? h("p", { class: "none" }, `${answer.unsure} more are too uncertain to show`) : null);
  };
  show(panel, h("h2", { class: "name" }, place.name), found.signature ? h("pre", {}, found.signature) : null, found.documentation ? makeDocumentation(found.documentation) : null, h("h2", {}, "Defined"), found.results.length ? makePlaces(found.results, shown) : h("p", { class: "none" }, `${found.reason ?? "nothing"}: ${found.detail ?? ""}`), h("div", { class: "actions" }, steps), list);
  if (found.results.length) await step("references");
  return null;
}

/** Return a docstring, a long one shut so that definition and uses stay in view. */
function makeDocumentation(text) {
  const prose = h("div", { class: "doc" }, makeProse(text.trim()));
  if (text.length < SHORT_DOC && text.split("\n").length < SHORT_DOC_LINES) return prose;
  prose.classList.add("shut");
  const button = h("button", { type: "button", class: "rest", onclick: () => { prose.classList.remove("shut"); button.remove(); } }, "More");
  return [prose, button];
}

/** Return Markdown's fences and backticks as code, the rest as it is. */
function makeProse(text) {
  return text.split(/^\s*```[^\n]*$/m).map((part, at) => (at % 2 ? h("pre", {}, part.replace(/^\n|\n$/g, "")) : h("p", {}, part.trim().split(/(`[^`\n]+`)/).map((piece) => (/^`.+`$/.test(piece) ? h("code", {}, piece.slice(1, -1)) : piece)))));
}

/** Return where to look: for a file that calls outside of functions, at its first call. */
function placeOf(one) {
  return (one.kind === "module" && one.uses?.[0]) || one.selection_range;
}

function addressOf(one, shown) {
  return toAddress({ view: "file", project: shown.project, rev: shown.rev, path: one.file_path, path_bytes: one.file_path_bytes, first: placeOf(one).start_line });
}

function makePlaces(places, shown) {
  const groups = new Map();
  for (const one of places) groups.set(one.file_path, [...(groups.get(one.file_path) ?? []), one]);
  return [...groups].map(([path, all]) => h("section", {}, h("h3", {}, path), h("ul", {}, all.map((one) => h("li", {}, h("a", { class: "hit", href: addressOf(one, shown), title: `${one.resolved}, ${Math.round(one.confidence * 100)} % sure` }, h("span", { class: "number" }, placeOf(one).start_line), " ", one.text ?? one.signature ?? one.symbol_name, one.confidence < 0.5 ? h("span", { class: "none" }, " ?") : null))))));
}
