// The lines of a file: only the visible ones are in the document, unless the file is short.

import { h } from "./dom.js";
import { paint } from "./highlight.js";

/** A file of at most this many lines is shown as a whole, so that the browser's own search finds everything. */
const SHORT = 3000;
const AROUND = 40;
/** The most characters of a line that are shown. */
const MOST_SHOWN = 5000;
export const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/gu;

/** Shows lines; calls `onplace` with {line, column, name} of a clicked name, column in UTF-16 units from 1. */
export class CodePane {
  constructor(lines, { address, onplace, onrange }) {
    this.lines = lines;
    this.address = address;
    this.range = [0, 0];
    this.cursor = { line: 0, at: -1 };
    this.marks = new Map();
    this.margin = null;
    this.rows = h("div", { class: "rows" });
    this.element = h("div", { class: "code", tabindex: "0", role: "region", "aria-label": "Code", onscroll: () => this.draw() }, this.rows);
    this.rows.addEventListener("click", (event) => {
      const number = event.target.closest("a.number");
      if (number) {
        if (event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        const line = Number(number.dataset.line);
        onrange(event.shiftKey && this.range[0] ? [Math.min(this.range[0], line), Math.max(this.range[0], line)] : [line, line]);
        return;
      }
      const place = this.#placeAt(event);
      if (place && getSelection().isCollapsed) onplace(place, event.ctrlKey || event.metaKey);
    });
  }

  /** Start drawing; the pane is in the document, and the first lines are loaded. */
  begin() {
    this.height = parseFloat(getComputedStyle(this.rows).lineHeight);
    this.isWhole = this.lines.total <= SHORT;
    this.rows.style.height = `${this.height * Math.max(this.lines.total, 1)}px`;
    this.rows.classList.toggle("windowed", true);
    this.draw(true);
  }

  /** Draw the visible lines; missing ones are requested and drawn when they arrive. */
  draw(all = false) {
    const top = Math.floor(this.element.scrollTop / this.height);
    const seen = Math.ceil(this.element.clientHeight / this.height);
    const first = this.isWhole ? 1 : Math.max(1, top - AROUND);
    const last = this.isWhole ? this.lines.total : Math.min(this.lines.total, top + seen + AROUND);
    if (!all && first === this.first && last === this.last) return;
    [this.first, this.last] = [first, last];
    const nodes = [];
    const missing = new Set();
    for (let line = first; line <= last; line += 1) {
      if (this.lines.text(line) === undefined) missing.add(this.lines.load(line));
      nodes.push(this.#makeRow(line));
    }
    this.rows.replaceChildren(...nodes);
    const before = missing.size || this.isColouring ? null : this.lines.loadBefore(last);
    if (before) {
      this.isColouring = true;
      missing.add(before.finally(() => { this.isColouring = false; }));
    }
    for (const block of missing) block.then(() => this.draw(true), () => {});
  }

  #makeRow(line) {
    const text = this.lines.text(line) ?? "";
    const spans = [...(this.marks.get(line) ?? [])];
    if (this.cursor.line === line) {
      const name = [...text.matchAll(NAME)][this.cursor.at];
      if (name) spans.unshift([name.index, name.index + name[0].length, "cursor"]);
    }
    const shown = text.slice(0, MOST_SHOWN);
    const code = h("code", { "data-line": line }, paint(shown, this.lines.tokens(line), spans.sort((one, other) => one[0] - other[0])), text.length > MOST_SHOWN ? h("i", {}, ` … ${text.length - MOST_SHOWN} characters more`) : null);
    const chosen = this.range[0] <= line && line <= this.range[1];
    const row = h("div", { class: `row${chosen ? " chosen" : ""}${this.cursor.line === line ? " current" : ""}` },
      this.margin?.(line) ?? null,
      h("a", { class: "number", href: this.address(line), "data-line": line, tabindex: "-1" }, line), code);
    row.style.top = `${(line - 1) * this.height}px`;
    return row;
  }

  /** Mark lines as chosen; `moves`: and scroll them into view. */
  choose(first, last, moves = true) {
    this.range = [first, last];
    if (first && this.cursor.line !== first) this.cursor = { line: 0, at: -1 };
    if (moves && first) this.reveal(first);
    this.draw(true);
  }

  /** Scroll a line into view. */
  reveal(line) {
    const y = (line - 1) * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop + this.height || y > scrollTop + clientHeight - 2 * this.height) this.element.scrollTop = Math.max(0, y - clientHeight / 3);
  }

  /** Move the cursor by lines, or by names in its line; it starts at the chosen lines, or at the top. */
  move(lines, names) {
    const top = Math.floor(this.element.scrollTop / this.height) + 1;
    let { line, at } = this.cursor;
    if (!line) [line, at] = [this.range[0] || top, -1];
    else if (lines) [line, at] = [Math.min(Math.max(line + lines, 1), this.lines.total), -1];
    if (names) {
      const most = [...(this.lines.text(line) ?? "").matchAll(NAME)].length - 1;
      at = Math.min(Math.max(at + names, 0), most);
    }
    this.cursor = { line, at };
    this.reveal(line);
    this.draw(true);
  }

  /** Return the position of the cursor, {line, column, name}, or null if it is not on a name. */
  placeOfCursor() {
    const { line, at } = this.cursor;
    const name = [...(this.lines.text(line) ?? "").matchAll(NAME)][Math.max(at, 0)];
    return name ? { line, column: name.index + 1, name: name[0] } : null;
  }

  #placeAt(event) {
    const code = event.target.closest("code[data-line]");
    if (!code) return null;
    const found = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    const old = found ? null : document.caretRangeFromPoint?.(event.clientX, event.clientY);
    const [node, offset] = found ? [found.offsetNode, found.offset] : [old?.startContainer, old?.startOffset];
    if (!node || !code.contains(node)) return null;
    const range = document.createRange();
    range.setStart(code, 0);
    range.setEnd(node, offset);
    const column = range.toString().length;
    const line = Number(code.dataset.line);
    const text = this.lines.text(line) ?? "";
    const names = [...text.matchAll(NAME)];
    const at = names.findIndex((one) => one.index <= column && column <= one.index + one[0].length);
    if (at < 0) return null;
    this.cursor = { line, at };
    this.draw(true);
    return { line, column: names[at].index + 1, name: names[at][0] };
  }
}
