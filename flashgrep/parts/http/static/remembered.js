// Recent and saved searches, which this browser alone keeps, until someone signs out.

const RECENT = "flashgrep.recent";
const SAVED = "flashgrep.saved";
const MOST_RECENT = 8;
const MOST_SAVED = 50;
/** A search was meant if it stands this long. */
const KEEP_MS = 2000;

let keeping = 0;

function read(key) {
  try {
    const searches = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(searches) ? searches.filter((search) => typeof search?.q === "string") : [];
  } catch {
    return []; // another page of this host may have written it
  }
}

function isSame(search, { q, in: kind, project }) {
  return search.q.trim() === q.trim() && search.in === kind && search.project === project;
}

function write(key, searches) {
  localStorage.setItem(key, JSON.stringify(searches));
}

/** Return the recent searches of a project, newest first. */
export function readRecent(project) {
  return read(RECENT).filter((search) => search.project === project);
}

/** Return the saved searches, newest first. */
export function readSaved() {
  return read(SAVED);
}

/** Keep a search that found something among the recent ones, once typing has paused. */
export function remember(search) {
  const { q, in: kind, project } = search;
  forgetLast();
  keeping = setTimeout(() => write(RECENT, [{ q, in: kind, project }, ...read(RECENT).filter((other) => !isSame(other, search))].slice(0, MOST_RECENT)), KEEP_MS);
}

/** Do not keep the last search, unless it has stood long enough. */
export function forgetLast() {
  clearTimeout(keeping);
}

/** Return whether a search is saved. */
export function isSaved(search) {
  return read(SAVED).some((other) => isSame(other, search));
}

/** Save a search, or no longer; return whether it is saved now. */
export function toggleSaved(search) {
  const { q, in: kind, project } = search;
  const others = read(SAVED).filter((other) => !isSame(other, search));
  const isNew = !isSaved(search);
  write(SAVED, isNew ? [{ q, in: kind, project }, ...others].slice(0, MOST_SAVED) : others);
  return isNew;
}

/** Forget the recent searches. */
export function forgetRecent() {
  localStorage.removeItem(RECENT);
}

/** Forget all searches, as the next person at this browser may be another. */
export function forgetAll() {
  forgetLast();
  forgetRecent();
  localStorage.removeItem(SAVED);
}
