// Addresses that show the same text forever: a file at a commit.

import { toAddress } from "./address.js";
import { mapLines } from "./history.js";
import { call } from "./rpc.js";
import { isTeam } from "./server.js";

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** Return the address of a file at its commit, with the chosen lines; throws an Error if the lines are not committed. */
export async function findPermanentAddress(shown, signal) {
  const { project, path, path_bytes, rev, first, last } = shown;
  const commit = COMMIT.test(rev) ? rev : (await call("history", { project: project || undefined, rev: rev || "HEAD", limit: 1 }, signal)).results[0]?.commit;
  if (!commit) throw new Error("there is no commit yet");
  const place = { view: "file", project, path, path_bytes, rev: commit };
  if (rev || isTeam()) return toAddress({ ...place, first, last });
  await call("read_code", { project: project || undefined, ...(path_bytes ? { path_bytes } : { path }), rev: commit, end_line: 1 }, signal).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("this file is not committed");
  });
  if (!first) return toAddress(place);
  const toCommitted = await mapLines(shown);
  const lines = [toCommitted(first), toCommitted(last)];
  if (!lines.every(Boolean)) throw new Error(`line ${lines[0] ? last : first} is not committed`);
  return toAddress({ ...place, first: lines[0], last: lines[1] });
}
