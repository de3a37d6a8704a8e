// The server of this page: the daemon of this machine, or a team's; and how to sign in.

const KEY = "flashgrep.key";
let facts = { methods: [], sign_in: "link", is_team: false };

/** Fetch the facts about the server, which contain no user's code. */
export async function loadServer() {
  facts = await (await fetch("/static/server.json", { cache: "no-cache" })).json();
}

/** Return whether the server has a method. */
export function offers(method) {
  return facts.methods.includes(method);
}

/** Return whether the server is a team's: its repositories are in a database, without work trees. */
export function isTeam() {
  return facts.is_team;
}

/** Return how to sign in: by a `link` of `fgrep web`, by a `token`, or at a `proxy` in front of the server. */
export function wayIn() {
  return facts.sign_in;
}

/** Return this browser's key, which only scripts of this origin know. */
export function readKey() {
  return localStorage.getItem(KEY) ?? "";
}

/** Sign in by a token; throws an Error that says why it failed. */
export async function signIn(token) {
  const body = JSON.stringify({ token });
  const response = await fetch("/login", { method: "POST", body, headers: { "Content-Type": "application/json" }, credentials: "same-origin", cache: "no-store", referrerPolicy: "no-referrer" });
  const answer = await response.json();
  if (!response.ok) throw new Error(response.status === 401 ? "unknown token" : answer.error?.message ?? response.statusText);
  localStorage.setItem(KEY, answer.key);
}

/** Sign out. */
export async function signOut() {
  await fetch("/logout", { method: "POST", body: "{}", headers: { "Content-Type": "application/json", "X-Flashgrep-Key": readKey() }, credentials: "same-origin", cache: "no-store" });
  localStorage.removeItem(KEY);
}
