// The daemon's table of languages and their files, for counts and highlighting.

let rows = [];
const byEnding = new Map();
const byName = new Map();

/** Fetch the table, which contains no user's code. */
export async function loadLanguages() {
  rows = await (await fetch(new URL("languages.json", import.meta.url))).json();
  for (const row of rows) {
    for (const one of row.files) {
      if (one.startsWith("=")) byName.set(one.slice(1), row);
      else if (!one.includes("*")) byEnding.set(one, row);
    }
  }
}

/** Return the language of a path by its name: `{name, type, …}`, or null. */
export function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (byName.has(name)) return byName.get(name);
  for (let at = name.indexOf("."); at >= 0; at = name.indexOf(".", at + 1)) {
    const found = byEnding.get(name.slice(at + 1).toLowerCase());
    if (found) return found;
  }
  return null;
}

/** Return globs of a language's files, by any of its names. */
export function globs(wanted) {
  const row = rows.find((one) => [one.name, one.type, ...one.aliases].includes(wanted));
  return row ? row.files.map((one) => (one.startsWith("=") ? one.slice(1) : one.includes("*") ? one : `*.${one}`)) : [`*.${wanted}`];
}

/** Return the languages with a name that begins so, as a filter takes them; the shortest first. */
export function named(begun) {
  const wanted = begun.toLowerCase();
  const matching = rows.filter((row) => [row.name, row.type, ...row.aliases].some((name) => name.startsWith(wanted)));
  return [...new Set(matching.map((row) => row.type || row.name))].sort((one, other) => one.length - other.length);
}
