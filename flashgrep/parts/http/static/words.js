// What differs within lines that replace others, by words.

const PIECE = /[\p{L}\p{N}_]+|\s+|[^]/gu;
/** Cells of the table that compares two lines; longer ones are marked from their first to their last difference. */
const MOST_CELLS = 40_000;
/** Lines with a smaller share of words in common are different lines, not changed ones. */
const LEAST_ALIKE = 0.4;

/** Return `{removed, added}`: for each line its differing spans, [start, end, "word"]; empty for lines without a partner. */
export function compareWords(removed, added) {
  const spans = { removed: removed.map(() => []), added: added.map(() => []) };
  let next = 0;
  removed.forEach((line, at) => {
    const partner = findPartner(line, added, next);
    if (partner < 0) return;
    next = partner + 1;
    [spans.removed[at], spans.added[partner]] = comparePieces(line.match(PIECE) ?? [], added[partner].match(PIECE) ?? []);
  });
  return spans;
}

/** Return which of some lines a line became, from `first` on; -1: none of them. */
function findPartner(line, others, first) {
  const near = others.slice(first, first + 20).findIndex((other) => measureLikeness(line, other) >= LEAST_ALIKE);
  return near < 0 ? -1 : first + near;
}

/** Return the share of words that two lines have in common, from 0 to 1. */
function measureLikeness(line, other) {
  const words = line.match(/[\p{L}\p{N}_]+/gu) ?? [];
  const others = other.match(/[\p{L}\p{N}_]+/gu) ?? [];
  const counts = new Map();
  for (const word of others) counts.set(word, (counts.get(word) ?? 0) + 1);
  let shared = 0;
  for (const word of words) {
    const left = counts.get(word) ?? 0;
    if (!left) continue;
    shared += 1;
    counts.set(word, left - 1);
  }
  return words.length + others.length ? (2 * shared) / (words.length + others.length) : 0;
}

/** Return the spans of both sides that are not in their longest common subsequence. */
function comparePieces(old, now) {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const before = old.slice(head, old.length - tail);
  const after = now.slice(head, now.length - tail);
  const same = before.length * after.length > MOST_CELLS ? [[], []] : findCommon(before, after);
  return [toSpans(old, head, before.length, new Set(same[0])), toSpans(now, head, after.length, new Set(same[1]))];
}

/** Return the positions of a longest common subsequence in both lists. */
function findCommon(before, after) {
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let at = before.length - 1; at >= 0; at -= 1) {
    for (let to = after.length - 1; to >= 0; to -= 1) {
      const below = lengths[(at + 1) * width + to];
      const right = lengths[at * width + to + 1];
      lengths[at * width + to] = before[at] === after[to] ? lengths[(at + 1) * width + to + 1] + 1 : Math.max(below, right);
    }
  }
  const common = [[], []];
  let at = 0;
  let to = 0;
  while (at < before.length && to < after.length) {
    if (before[at] === after[to]) {
      common[0].push(at++);
      common[1].push(to++);
    } else if (lengths[(at + 1) * width + to] >= lengths[at * width + to + 1]) at += 1;
    else to += 1;
  }
  return common;
}

/** Return `count` pieces from `head` on as spans of the text, without the `same` ones; neighbours are one span. */
function toSpans(pieces, head, count, same) {
  const spans = [];
  let column = pieces.slice(0, head).join("").length;
  for (let at = 0; at < count; at += 1) {
    const end = column + pieces[head + at].length;
    if (!same.has(at)) {
      if (spans.at(-1)?.[1] === column) spans.at(-1)[1] = end;
      else spans.push([column, end, "word"]);
    }
    column = end;
  }
  return spans;
}
