// The state of the page as an address, so that everything can be linked to.

const DEFAULTS = { view: "search", q: "", in: "text", project: "", path: "", path_bytes: "", rev: "", first: 0, last: 0 };

/** Return the state in an address. */
export function readAddress(url = new URL(location.href)) {
  const shown = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) shown[name] = url.searchParams.get(name) ?? DEFAULTS[name];
  const lines = /^#L(\d{1,9})(?:-(\d{1,9}))?$/.exec(url.hash);
  shown.first = lines ? Number(lines[1]) : 0;
  shown.last = lines ? Math.max(Number(lines[2] ?? lines[1]), shown.first) : 0;
  return shown;
}

/** Return the address of a state, as a path on this host. */
export function toAddress(shown) {
  const query = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = shown[name] ?? usual;
    if (typeof usual === "string" && value !== usual) query.set(name, value);
  }
  const lines = shown.first ? `#L${shown.first}${shown.last > shown.first ? `-${shown.last}` : ""}` : "";
  return `/${query.size ? `?${query}` : ""}${lines}`;
}

/** Go to an address; `replaces`: without a new entry in the browser's history. */
export function go(shown, replaces = false) {
  const address = typeof shown === "string" ? shown : toAddress(shown);
  history[replaces ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("flashgrep:go"));
}
