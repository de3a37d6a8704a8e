// The page for a browser that is not signed in.

import { h } from "./dom.js";
import { forgetAll } from "./remembered.js";
import { signIn, signOut, wayIn } from "./server.js";

function again() {
  dispatchEvent(new Event("flashgrep:signed"));
}

/** Return how to sign in: a form for a token, or instructions. */
export function makeSignIn() {
  const parts = { link: makeLinkHint, token: makeForm, proxy: makeProxyHint }[wayIn()]();
  return h("div", { class: "notice" }, h("h1", {}, "Not signed in"), parts);
}

function makeLinkHint() {
  return h("p", {}, "Run ", h("code", {}, "fgrep web"), " in a terminal. It opens this page with a one-time link. Links become invalid when the daemon ends.");
}

function makeProxyHint() {
  return h("p", {}, "The proxy in front of this server has not identified a permitted user. ", h("a", { href: location.pathname, target: "_self", onclick: () => location.reload() }, "Try again"), ", or ask its administrator.");
}

function makeForm() {
  const token = h("input", { type: "password", id: "token", required: true, autocomplete: "off", spellcheck: "false", maxlength: "4096" });
  const problem = h("p", { class: "problem", role: "alert" });
  const button = h("button", { type: "submit" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = "";
    try {
      await signIn(token.value.trim());
      again();
    } catch (error) {
      problem.textContent = error.message;
      token.focus();
    } finally {
      button.disabled = false;
    }
  };
  return h("form", { class: "sign-in", onsubmit: submit }, h("p", {}, "Enter your team token. It is sent to this server once and not kept in the browser; you stay signed in for twelve hours."), h("label", { for: "token" }, "Token"), token, button, problem);
}

/** Return a button to sign out, if the browser signed in by this page. */
export function makeSignOut() {
  if (wayIn() !== "token") return null;
  return h("button", { type: "button", onclick: () => { forgetAll(); signOut().finally(again); } }, "Sign out");
}
