// Plots of the index's figures and of this tab's queries.

import { count, h, show, svg, tell } from "./dom.js";
import { toAddress } from "./address.js";
import { calls, call } from "./rpc.js";
import { isTeam } from "./server.js";

const MB = 1e6;
const SLOWEST = 10;

/** Show the figures of a project, or of all projects. */
export async function showNumbers(shown, view) {
  try {
    const names = shown.project ? [shown.project] : (await call("stats", {})).projects;
    const all = await Promise.all(names.map((project) => call("stats", { project }).catch((error) => ({ project, error: error.message }))));
    show(view, h("div", { class: "page" }, all.map(makeProject), makeCalls()));
    document.title = "Numbers · flashgrep";
    tell(`${all.length} ${all.length === 1 ? "project" : "projects"}`);
  } catch (error) {
    tell(error.message, true);
  }
}

function makeProject(stats) {
  const name = h("h1", {}, h("a", { href: toAddress({ view: "folder", project: stats.project }) }, stats.project));
  if (stats.error) return h("section", {}, name, h("p", { class: "problem" }, stats.error));
  const { indexing, files_skipped: skipped = {} } = stats;
  const tile = (label, value) => h("div", {}, h("dt", {}, label), h("dd", {}, value));
  const counted = (label, value) => (value === undefined ? null : tile(label, count(value)));
  const left = indexing?.eta_seconds == null ? "" : `, ${Math.round(indexing.eta_seconds)} s left`;
  const sizes = [["grams", stats.gram_bytes / MB]];
  if (!isTeam()) sizes.push(["vectors", stats.vector_bytes / MB], ["symbols, chunks, tables", Math.max(stats.index_size_bytes - stats.gram_bytes - stats.vector_bytes, 0) / MB]);
  return h("section", {}, name, stats.root ? h("p", { class: "none" }, stats.root) : null,
    h("dl", { class: "tiles" }, tile("State", stats.stage + (stats.watching || isTeam() ? "" : ", not watched")), counted("Files", stats.total_files), counted("Lines", stats.total_lines), counted("Chunks for search by meaning", stats.total_chunks), indexing ? tile("Indexed", `${Math.round(indexing.share * 100)} %${left}`) : null, counted("Waiting", stats.files_pending), tile("Last update", stats.last_update ? new Date(stats.last_update * 1000).toLocaleString() : "never")),
    [stats.problem, stats.watch_problem, stats.stage_detail, ...(stats.settings_warnings ?? [])].filter(Boolean).map((text) => h("p", { class: "problem" }, text)),
    makeBars("Size of the index, MB", sizes),
    stats.total_files === undefined ? null : makeBars("Coverage, files", [["searched", stats.total_files - sum(skipped)], ...Object.entries(skipped).map(([reason, files]) => [`left out: ${reason}`, files])]));
}

function sum(counts) {
  return Object.values(counts).reduce((total, one) => total + one, 0);
}

/** Return a bar chart; its label describes it to screen readers. */
function makeBars(title, rows) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-9);
  const told = rows.map(([name, value]) => `${name} ${format(value)}`).join(", ");
  const bars = rows.flatMap(([name, value], at) => [
    svg("text", { x: 0, y: at * 24 + 17 }, name),
    svg("rect", { x: 200, y: at * 24 + 4, height: 17, rx: 3, width: Math.max((value / most) * 440, value ? 2 : 0) }),
    svg("text", { x: 208 + (value / most) * 440, y: at * 24 + 17 }, format(value)),
  ]);
  return h("figure", {}, h("figcaption", {}, title), svg("svg", { class: "plot", viewBox: `0 0 760 ${rows.length * 24 + 6}`, role: "img", "aria-label": `${title}: ${told}` }, bars));
}

function format(value) {
  return Number.isInteger(value) ? count(value) : value.toFixed(1);
}

function makeCalls() {
  if (!calls.length) return h("section", {}, h("h1", {}, "Queries"), h("p", { class: "none" }, "This tab has sent none yet."));
  const most = Math.max(...calls.map((one) => one.took), 1);
  const times = calls.map((one) => one.took).sort((one, other) => one - other);
  const at = (share) => times[Math.min(Math.floor(times.length * share), times.length - 1)].toFixed(0);
  const dots = calls.map((one, index) => svg("circle", { class: one.complete === false ? "unsure" : "", cx: 10 + (index / Math.max(calls.length - 1, 1)) * 740, cy: 130 - (one.took / most) * 110, r: 4 }, svg("title", {}, `${one.method}: ${one.took.toFixed(0)} ms`)));
  const label = `${calls.length} queries: median ${at(0.5)} ms, 95 % within ${at(0.95)} ms, slowest ${most.toFixed(0)} ms`;
  const slow = [...calls].sort((one, other) => other.took - one.took).slice(0, SLOWEST);
  return h("section", {}, h("h1", {}, "Queries of this tab"), h("p", {}, label),
    h("figure", {}, h("figcaption", {}, "Milliseconds, in order of time; red: incomplete answers"), svg("svg", { class: "plot", viewBox: "0 0 760 140", role: "img", "aria-label": label }, svg("line", { x1: 0, y1: 132, x2: 760, y2: 132 }), dots)),
    h("h2", {}, "Slowest"),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Method"), h("th", {}, "Query"), h("th", { class: "figure" }, "here, ms"), h("th", { class: "figure" }, "in the daemon, ms"))), h("tbody", {}, slow.map((one) => h("tr", {}, h("td", {}, one.method), h("td", {}, h("code", {}, JSON.stringify(one.params).slice(0, 200))), h("td", { class: "figure" }, one.took.toFixed(0)), h("td", { class: "figure" }, one.inside === undefined ? "" : one.inside.toFixed(0)))))));
}
