/** The client code against a real daemon, in the project that PROJECT names: npm test. */

import assert from "node:assert/strict";
import { readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";

import { AnswerError, Client, GivenUp } from "../src/client";
import { type OpenFile, Overlay } from "../src/overlay";
import { Live, planReplacing, type Question, search } from "../src/search";

const root = realpathSync(process.env["PROJECT"] ?? ".");
const client = new Client(root, ["flashgrep"]);
after(() => client.close());

function asking(text: string, more: Partial<Question> = {}): Question {
  return { text, how: "text", matchCase: false, word: false, include: [], exclude: [], limit: 100, ...more };
}

async function places(question: Question): Promise<string[]> {
  const results = await search(client, question);
  return results.found.map((found) => `${found.path}:${found.line + 1}:${found.column + 1}`);
}

test("text is found, with files to include and exclude", async () => {
  const all = ["src/parcel.py:1:5", "src/use.py:1:20", "src/use.py:4:11"];
  assert.deepEqual(await places(asking("find_parcel")), all);
  assert.deepEqual(await places(asking("find_parcel", { include: ["use.py"] })), all.slice(1));
  assert.deepEqual(await places(asking("find_parcel", { exclude: ["use.py"] })), all.slice(0, 1));
});

test("all matches of a line are told in UTF-16 units", async () => {
  const path = `${root}/src/wide.ts`;
  writeFileSync(path, 'let tree = "🌳"; tree += tree_size;\n');
  try {
    const [found] = (await search(client, asking("tree", { include: ["wide.ts"] }))).found;
    assert.deepEqual(found?.spans.map(([start, end]) => found.text.slice(start, end)), ["tree", "tree", "tree"]);
    assert.deepEqual(found?.spans[1], [17, 21]);
  } finally {
    rmSync(path);
  }
});

test("code is found by meaning", async () => {
  assert.equal((await places(asking("where are parcels looked up", { how: "meaning" })))[0], "src/parcel.py:1:1");
});

test("a broken expression is told", async () => {
  await assert.rejects(search(client, asking("(", { how: "regex" })), AnswerError);
});

test("of keys typed fast the last question alone is answered", async () => {
  const live = new Live();
  const text = "find_parcel";
  const answers = [...text].map((_, at) => live.ask(() => [client], asking(text.slice(0, at + 1))));
  const found = (await Promise.all(answers)).map((results) => results?.found.length);
  assert.deepEqual(found, [...Array<undefined>(text.length - 1).fill(undefined), 3]);
});

test("a question that is given up rejects at once", async () => {
  const controller = new AbortController();
  const answer = search(client, asking("find_parcel"), controller.signal);
  controller.abort();
  await assert.rejects(answer, GivenUp);
});

test("replacing shows the difference, writes on demand, and refuses a file that changed since", async () => {
  const path = `${root}/src/old.ts`;
  writeFileSync(path, "let width_old = 1;\nwidth_old += width_old;\n");
  try {
    const plan = await planReplacing(client, asking("width_old"), "width_new");
    assert.deepEqual(plan.files, ["src/old.ts"]);
    assert.match(plan.diff, /^\+width_new \+= width_new;$/m);
    assert.match(readFileSync(path, "utf8"), /width_old/);
    await plan.apply();
    assert.equal(readFileSync(path, "utf8"), "let width_new = 1;\nwidth_new += width_new;\n");
    const late = await planReplacing(client, asking("width_new"), "width_last");
    writeFileSync(path, "let width_new = 2;\n");
    await assert.rejects(late.apply(), /nothing was written/);
    assert.equal(readFileSync(path, "utf8"), "let width_new = 2;\n");
  } finally {
    rmSync(path);
  }
});

test("unsaved text counts for this connection alone, also over the next one", async () => {
  const other = new Client(root, ["flashgrep"]);
  const overlay = new Overlay(client);
  let text = "weigh_parcel = 1\n";
  const open = (version: number, isDirty = true): OpenFile[] => [
    { path: `${root}/src/use.py`, version, isDirty, getText: () => text },
    { path: "/etc/hosts", version: 1, isDirty: true, getText: () => "weigh_parcel" },
  ];
  try {
    overlay.send(open(1));
    assert.deepEqual(await places(asking("weigh_parcel")), ["src/use.py:1:1"]);
    assert.deepEqual((await search(other, asking("weigh_parcel"))).found, []);
    await client.close();
    overlay.send(open(1));
    assert.deepEqual(await places(asking("weigh_parcel")), ["src/use.py:1:1"]);
    text = "sort_parcel = 1\n";
    overlay.send(open(2));
    assert.deepEqual(await places(asking("weigh_parcel")), []);
    overlay.send(open(3, false));
    assert.deepEqual(await places(asking("sort_parcel")), []);
  } finally {
    await other.close();
  }
});

test("the client lives on when its connection ends", async () => {
  await client.close();
  assert.equal((await places(asking("find_parcel"))).length, 3);
});

test("a command that is not there is named", async () => {
  const lost = new Client("/", ["no-such-flashgrep"]);
  await assert.rejects(lost.request("stats", {}), /no-such-flashgrep cannot be run/);
});
