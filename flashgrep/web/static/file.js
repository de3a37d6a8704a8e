// A file: its code, what is around it, and what can be asked of it.

import { go, toAddress } from "./address.js";
import { CodePane } from "./code.js";
import { makeCrumbs } from "./crumbs.js";
import { count, h, show, tell } from "./dom.js";
import { Lines } from "./lines.js";
import { download } from "./rpc.js";

let open = null;

/** Give up what the file that was shown still waits for. */
export function leaveFile() {
  open?.asking.abort();
  open = null;
}

/** Show a file, or other lines of the one that is shown. */
export async function showFile(shown, view) {
  const id = JSON.stringify([shown.project, shown.path, shown.path_bytes, shown.rev]);
  if (open?.id === id && view.contains(open.pane.element)) {
    open.shown = shown;
    open.pane.choose(shown.first, shown.last);
    return;
  }
  leaveFile();
  const asking = new AbortController();
  const lines = new Lines(shown, asking.signal);
  const pane = new CodePane(lines, {
    address: (line) => toAddress({ ...open.shown, first: line, last: 0 }),
    onrange: ([first, last]) => {
      open.shown = { ...open.shown, first, last };
      go(open.shown, true);
    },
    onplace: () => {},
  });
  open = { id, shown, pane, lines, asking };
  try {
    await lines.load(1);
    if (shown.first > 1) await lines.load(shown.first);
  } catch (error) {
    if (error.name !== "AbortError") {
      show(view, h("div", { class: "notice" }, h("h1", {}, shown.path), h("p", {}, error.message)));
      tell(error.message, true);
    }
    return;
  }
  if (asking.signal.aborted) return;
  const bar = h("div", { class: "bar-of-file" }, makeCrumbs(shown), h("div", { class: "actions", role: "toolbar", "aria-label": "This file" }, h("button", { type: "button", onclick: () => openRaw(shown) }, "Raw")));
  show(view, h("div", { class: "file" }, bar, h("div", { class: "panes" }, pane.element)));
  document.title = `${shown.path} · flashgrep`;
  pane.begin();
  pane.choose(shown.first, shown.last);
  pane.element.focus({ preventScroll: true });
  const facts = [`${count(lines.total)} lines`, `${count(lines.size)} bytes`, lines.note, shown.rev && `at ${shown.rev}`];
  tell(facts.filter(Boolean).join(" · "));
}

/** Open a file as it is: plain text, whatever it says it is. */
async function openRaw({ project, path, path_bytes, rev }) {
  const place = Object.fromEntries(Object.entries({ project, path, path_bytes, rev }).filter(([, value]) => value));
  try {
    const address = URL.createObjectURL(await download(place));
    window.open(address, "_blank", "noopener");
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (error) {
    tell(error.message, true);
  }
}

/** Return what is open: {shown, pane, lines}; null: no file is. */
export function openFile() {
  return open;
}
