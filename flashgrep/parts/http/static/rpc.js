// JSON-RPC to the daemon: the browser sends the cookie; the key proves that the request is from our origin (web/site.py).

import { isTeam, readKey } from "./server.js";

const REMEMBERED = 200;
let next = 1;

/** The daemon's error object, or why there is no response. */
export class RpcError extends Error {
  constructor(message, status, data = {}) {
    super(message);
    this.status = status;
    this.data = data;
  }
}

/** The calls of this tab: method, query, milliseconds here and in the daemon, coverage. */
export const calls = [];

async function send(path, options) {
  const headers = { "X-Flashgrep-Key": readKey(), ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "same-origin", cache: "no-store", referrerPolicy: "no-referrer" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RpcError(isTeam() ? "the server does not respond" : "the daemon does not respond; is fgrep web or fgrep serve running?", 0);
  }
  if (response.status === 401) {
    dispatchEvent(new Event("flashgrep:unsigned"));
    throw new RpcError("this browser is not signed in", 401);
  }
  return response;
}

/** Return a method's result; `signal` cancels the call, in the daemon too. */
export async function call(method, params, signal) {
  const began = performance.now();
  const body = JSON.stringify({ jsonrpc: "2.0", id: next++, method, params });
  const response = await send("/rpc", { method: "POST", body, signal, headers: { "Content-Type": "application/json" } });
  const { result, error } = await response.json();
  if (error) throw new RpcError(error.message, response.status, error.data ?? {});
  calls.push({ method, params, took: performance.now() - began, inside: result.coverage?.took_ms, complete: result.coverage?.complete, at: Date.now() });
  if (calls.length > REMEMBERED) calls.shift();
  return result;
}

/** Return a file's bytes, unchanged, as a Blob. */
export async function download(place) {
  const response = await send(`/raw?${new URLSearchParams(place)}`, {});
  if (!response.ok) throw new RpcError((await response.json()).error?.message ?? response.statusText, response.status);
  return response.blob();
}
