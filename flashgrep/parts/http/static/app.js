// The page: showing the view of an address, and the global keys.

import { go, readAddress, toAddress } from "./address.js";
import { h, show, tell } from "./dom.js";
import { leaveChanges, showChanges } from "./diff.js";
import { leaveFile, pressInFile, showFile } from "./file.js";
import { showFolder } from "./folder.js";
import { showHistory } from "./history.js";
import { loadLanguages } from "./languages.js";
import { showNumbers } from "./numbers.js";
import { makePicker } from "./picker.js";
import { KINDS } from "./question.js";
import { ask, askSoon, showChips, stop } from "./search.js";
import { loadServer, offers } from "./server.js";
import { makeSignIn, makeSignOut } from "./signin.js";
import { clearSuggestions, suggest } from "./suggest.js";

const view = document.getElementById("view");
const gate = document.getElementById("gate");
const box = document.getElementById("q");
let shown = readAddress();
const picker = makePicker((project) => go({ ...shown, view: shown.view === "search" ? "search" : "folder", project, path: "", path_bytes: "", rev: "" }));

/** The kinds of search that the server supports, by name. */
const kinds = () => Object.entries(KINDS).filter(([, { method }]) => offers(method));

const VIEWS = { search: ask, file: showFile, folder: showFolder, history: showHistory, changes: showChanges, numbers: showNumbers };

function draw() {
  shown = readAddress();
  if (box.value.trim() !== shown.q.trim()) box.value = shown.q;
  drawFrame();
  stop();
  clearSuggestions();
  if (shown.view !== "file") leaveFile();
  if (shown.view !== "changes") leaveChanges();
  (VIEWS[shown.view] ?? ask)(shown, view);
}

function drawFrame() {
  document.title = shown.q ? `${shown.q} · flashgrep` : "flashgrep";
  document.body.dataset.view = shown.view;
  showChips(shown.view === "search" ? shown.q : "", (q) => go({ ...shown, q }));
  picker.show(shown.project);
  for (const radio of document.querySelectorAll("#kinds input")) radio.checked = radio.value === shown.in;
}

/** Update the address from the search box, without a history entry for every key. */
function type() {
  const wasSearch = shown.view === "search";
  shown = { view: "search", q: box.value, in: shown.in, project: shown.project, path: "", rev: "", first: 0, last: 0 };
  history[wasSearch ? "replaceState" : "pushState"](null, "", toAddress(shown));
  drawFrame();
  leaveFile();
  leaveChanges();
  askSoon(shown, view);
  suggest(box, shown);
}

function makeKinds() {
  const radios = kinds().map(([name, { label }], at) =>
    h("label", { title: `Alt+${at + 1}` }, h("input", { type: "radio", name: "in", value: name, onchange: () => go({ ...shown, view: "search", q: box.value, in: name, path: "", rev: "" }) }), h("span", {}, label)),
  );
  show(document.getElementById("kinds"), radios);
}

const HELP = [
  ["/", "go to the search box"], ["Alt+1, Alt+2 …", "choose the kind of search"], ["↓ ↑ or j k", "next and previous result or line"], ["Enter", "open"], ["Esc", "back to the search box"], ["Tab", "in the search box: suggestions; ← → among them"],
  ["← →", "in a file: previous and next name in the line"], ["Enter", "in a file: definition, uses and callers of the name"], ["d", "in a file: go to the definition"], ["n N", "in a file: next and previous match"],
  ["o b h r u", "in a file: outline, blame, history, raw, containing folder"], ["f", "in a file: the project's files; ← → shut and open a folder"], ["y", "in a file: copy a link to this commit"], ["p", "in a file: go to the side panel"], ["t", "dark or light theme"], ["?", "this help"],
];

const FILTERS = [
  ["file:net/, file:*.c", "below this folder, or paths that match"], ["lang:py", "files of a language"], ["-file:test, -lang:css", "all but these"], ["sym:Parser", "definitions and uses of a name"],
  ["case:yes, word:yes", "letter case counts; whole words"], ["rev:v1.2", "a branch, a tag or a commit"], ["repo:name, repo:*", "another project, or all"], ['text:"file:x"', "text that looks like a filter"],
];

function toggleHelp() {
  const help = document.getElementById("help");
  if (help.open) return help.close();
  const makeList = (rows) => h("dl", {}, rows.map(([term, what]) => [h("dt", {}, term), h("dd", {}, what)]));
  show(help, h("div", { class: "columns" }, h("section", {}, h("h1", {}, "Keys"), makeList(HELP)), h("section", {}, h("h1", {}, "Filters"), makeList(FILTERS))), h("button", { type: "button", onclick: () => help.close() }, "Close"));
  help.showModal();
}

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("flashgrep.theme", root.dataset.theme);
}

function step(by) {
  const hits = [...view.querySelectorAll("a.hit")];
  const at = hits.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : hits.length - 1) : at + by;
  if (next < 0) box.focus();
  hits[next]?.focus();
  hits[next]?.scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  const isHelping = document.getElementById("help").open && event.key !== "?";
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || isHelping) return;
  const isTyping = event.target.matches("input:not([type=radio]), textarea, select");
  if (event.altKey) {
    const kind = kinds()[Number(event.key) - 1]?.[0];
    if (kind) {
      event.preventDefault();
      go({ ...shown, view: "search", q: box.value, in: kind, path: "", rev: "" });
    }
    return;
  }
  const keys = {
    "/": () => { box.focus(); box.select(); }, "?": toggleHelp, t: toggleTheme,
    j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1),
    Escape: () => box.focus(),
  };
  if (isTyping && !["ArrowDown", "ArrowUp"].includes(event.key)) {
    if (event.key === "Enter" && event.target === box) {
      event.preventDefault();
      ask(shown, view).then(() => (view.querySelector("a.hit.line") ?? view.querySelector("a.hit"))?.focus());
    }
    return;
  }
  const isInFile = shown.view === "file" && !event.target.closest("button, a, select");
  if (isInFile && pressInFile(event.key)) {
    event.preventDefault();
    return;
  }
  if (shown.view !== "file" || event.target.closest(".panel") || event.key.length === 1 || event.key === "Escape") {
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.target || link.hash === "#view") return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || url.pathname !== "/") return;
  event.preventDefault();
  go(url.pathname + url.search + url.hash);
});

addEventListener("popstate", draw);
addEventListener("flashgrep:go", draw);
box.addEventListener("input", type);

addEventListener("flashgrep:unsigned", () => {
  // Outside the view, which is hidden: pending requests may still draw there.
  view.hidden = true;
  if (!gate.hasChildNodes()) show(gate, makeSignIn());
  if (!box.value) document.getElementById("token")?.focus();
});
addEventListener("flashgrep:signed", begin);

function makePlaces() {
  const link = (label, place) => h("a", { href: toAddress(place), onclick: (event) => { event.preventDefault(); go({ ...place, project: shown.project }); } }, label);
  show(document.getElementById("places"), picker.element, link("Browse", { view: "folder" }), offers("changes") ? link("Changes", { view: "changes" }) : null, link("Numbers", { view: "numbers" }), makeSignOut(), h("button", { type: "button", title: "Dark or light (t)", "aria-label": "Dark or light", onclick: toggleTheme }, "◐"), h("button", { type: "button", title: "Help (?)", "aria-label": "Help", onclick: toggleHelp }, "?"));
}

function begin() {
  view.hidden = false;
  show(gate);
  draw();
  picker.fill();
}

const theme = localStorage.getItem("flashgrep.theme");
if (theme) document.documentElement.dataset.theme = theme;
Promise.all([loadServer(), loadLanguages()]).then(() => {
  makeKinds();
  makePlaces();
  begin();
}, (error) => tell(error.message, true));
if (shown.view === "search") box.focus();
