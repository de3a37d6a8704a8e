// The results in one file: its path, and its hits with the lines around them.

import { toAddress } from "./address.js";
import { h, show } from "./dom.js";
import { languageOf } from "./languages.js";
import { lex, lexerFor, paint } from "./highlight.js";
import { Lines } from "./lines.js";

/** Lines of a piece of code that are shown. */
const MOST_PIECE = 12;
/** Of these, the lines before the one with the rarest words of the question. */
const BEFORE_BEST = 4;
/** Words of a question that may be in code. */
const WORDS = /[\p{L}\d]{3,}/gu;
/** Hits of a file that are shown before the others are asked for. */
const MOST_HITS = 6;
/** The most characters of a line that are shown; a hit further right is shown with the text before it. */
const MOST_LINE = 400;
/** A file is read for the colours of its hits up to this line; beyond it they are coloured line by line. */
const MOST_READ = 20_000;

/** Return the group of a file: its element, its `hits`, `draw`, which shows them in line order, and `colour`. */
export function makeGroup(hit, shown, asking) {
  const path = hit.file_path;
  const project = hit.project ?? asking.params.project ?? shown.project;
  const place = { view: "file", project, path, rev: asking.params.rev ?? "", path_bytes: hit.file_path_bytes, q: shown.q, in: shown.in };
  const slash = path.lastIndexOf("/") + 1;
  const body = h("div", { class: "hits" });
  const head = h("h2", {}, hit.project ? [h("a", { class: "project", href: toAddress({ view: "folder", project: hit.project, rev: place.rev }) }, hit.project), " "] : null, h("a", { class: "hit path", href: toAddress(place) }, h("span", { class: "folder" }, path.slice(0, slash)), path.slice(slash)));
  const element = h("section", { role: "listitem", class: "group" }, head, body);
  const family = lexerFor(languageOf(path)?.name);
  const hits = [];
  /** The lines of the file, once they were read for their colours. */
  let file = null;
  let rows = [];
  let shownTo = 0;
  let drawn = 0;
  let most = MOST_HITS;

  function addLine(number, text, spans, isHit) {
    const cut = spans.length && spans[0][1] > MOST_LINE ? Math.max(0, spans[0][0] - MOST_LINE / 4) : 0;
    const part = text.slice(cut, cut + MOST_LINE);
    const moved = spans.map(([start, end]) => [Math.max(start - cut, 0), end - cut]).filter(([start, end]) => end > 0 && start < MOST_LINE);
    const address = toAddress({ ...place, first: number });
    const code = h("code");
    const row = { number, text, cut, fill: (tokens) => show(code, cut ? "…" : null, paint(part, tokens, moved), text.length > cut + MOST_LINE ? "…" : null) };
    row.fill(family ? lex(family, part, null).tokens : []);
    recolour(row);
    rows.push(row);
    body.append(h("a", { class: isHit ? "hit line" : "line around", href: address, tabindex: isHit ? null : "-1" }, h("span", { class: "number" }, number), code));
  }

  /** Read the file up to its last line that is shown, and colour the lines by what is before them. */
  async function colour(signal) {
    const last = Math.max(0, ...rows.map((row) => row.number));
    if (!family || !last || last > MOST_READ) return;
    file ??= new Lines(place, signal);
    await Promise.all([file.loadBefore(last), file.load(last)]);
    for (const row of rows) recolour(row);
  }

  /** Colour a row as its whole file has it, if that was read and still has the row's text. */
  function recolour({ number, text, cut, fill }) {
    if (!family || file?.text(number) !== text) return;
    fill(file.tokens(number).map(([start, end, kind]) => [Math.max(start - cut, 0), end - cut, kind]).filter(([, end]) => end > 0));
  }

  function add(one, found) {
    if (asking.method === "list_files") return;
    const first = one.start_line ?? one.line_number;
    if (asking.method === "search_code") return addPiece(one);
    if (asking.method === "get_symbol") return addSymbol(one, first);
    if (!first) return;
    const before = one.before ?? [];
    if (shownTo && first - before.length > shownTo + 1) body.append(h("div", { class: "gap" }));
    before.forEach((text, at) => {
      const number = first - before.length + at;
      if (number > shownTo) addLine(number, text, [], false);
    });
    const lines = one.text.split("\n");
    lines.forEach((text, at) => addLine(first + at, text, spansOf(one, first + at), true));
    shownTo = first + lines.length - 1;
    for (const text of one.after ?? []) {
      if (found.has(shownTo + 1)) break;
      shownTo += 1;
      addLine(shownTo, text, [], false);
    }
  }

  function draw() {
    if (drawn === hits.length) return;
    [drawn, shownTo] = [hits.length, 0];
    rows = [];
    body.replaceChildren();
    if (asking.method === "query") hits.sort((one, other) => (one.start_line ?? 0) - (other.start_line ?? 0));
    const seen = hits.slice(0, most);
    const lines = new Set(seen.map((one) => one.start_line));
    seen.forEach((one) => add(one, lines));
    if (hits.length > seen.length) body.append(makeRest(hits.length - seen.length));
  }

  /** Return the button that shows the other hits of the file. */
  function makeRest(left) {
    return h("button", { type: "button", class: "rest", onclick: () => {
      most = Infinity;
      drawn = 0;
      draw();
      body.querySelectorAll("a.hit")[MOST_HITS]?.focus();
      if (file) colour().catch(() => {}); // what cannot be read keeps the colours of single lines
    } }, `${left} more in this file`);
  }

  function spansOf(one, number) {
    const moved = (one.text_column ?? 1) - 1;
    return (one.spans ?? []).filter((span) => span.start_line <= number && number <= span.end_line).map((span) => [
      span.start_line === number ? span.start_column - 1 - moved : 0,
      span.end_line === number ? span.end_column - 1 - moved : Infinity,
    ]);
  }

  function addPiece(one) {
    body.append(h("p", { class: "what" }, `${one.kind ?? ""} `, h("b", {}, one.name ?? ""), ` · ${Math.round(one.score * 100)} %`));
    let next = one.start_line;
    choosePart(numberLines(one), asking.params.query).forEach(([number, text], at) => {
      if (number > next) body.append(h("div", { class: "gap" }));
      addLine(number, text, [], at === 0);
      next = number + 1;
    });
  }

  function addSymbol(one, first) {
    const address = toAddress({ ...place, first, last: one.role === "definition" ? one.end_line : first });
    const name = one.container ? `${one.container}.${one.symbol_name}` : one.symbol_name;
    body.append(h("a", { class: "hit line symbol", href: address }, h("span", { class: "number" }, first), h("span", { class: "kind" }, one.role === "definition" ? one.kind : one.role), h("code", {}, one.signature ?? one.text ?? name)));
    if (one.doc) body.append(h("p", { class: "doc" }, one.doc));
  }

  return { element, hits, draw, colour };
}

/** Return the lines of a piece of code, each with its number in the file. */
function numberLines(piece) {
  const lines = piece.content ? piece.content.split("\n") : [];
  const rows = [];
  let at = 0;
  let next = piece.start_line;
  for (const [first, last] of piece.shown ?? [[piece.start_line, piece.end_line]]) {
    if (first > next) at += 1; // the line of the content that says what is left out
    for (let number = first; number <= last && at < lines.length; number += 1) {
      rows.push([number, lines[at]]);
      at += 1;
    }
    next = last + 1;
  }
  return rows;
}

/** Return the lines of a piece that are shown: its first ones, or one and those around the line with the rarest words. */
function choosePart(rows, question) {
  const folded = rows.map(([, text]) => text.toLowerCase());
  const scores = rows.map(() => 0);
  for (const word of new Set(question.toLowerCase().match(WORDS))) {
    const having = folded.flatMap((text, at) => (text.includes(word) ? [at] : []));
    for (const at of having) scores[at] += 1 / having.length;
  }
  const best = scores.indexOf(Math.max(...scores));
  if (best < MOST_PIECE) return rows.slice(0, MOST_PIECE);
  const start = Math.min(best - BEFORE_BEST, rows.length - MOST_PIECE + 1);
  return [rows[0], ...rows.slice(start, start + MOST_PIECE - 1)];
}
