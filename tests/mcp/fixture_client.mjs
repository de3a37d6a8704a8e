// The TypeScript SDK's client against flashgrep: node mcp_fixture_client.mjs stdio COMMAND PROJECT | http URL TOKEN
import assert from "node:assert";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [way, where, what, ...rest] = process.argv.slice(2);
const transport =
  way === "stdio"
    ? new StdioClientTransport({ command: where, args: ["mcp", "--project", what, ...rest], env: process.env })
    : new StreamableHTTPClientTransport(new URL(where), {
        requestInit: { headers: { Authorization: `Bearer ${what}` } },
      });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
assert(tools.some((tool) => tool.name === "query"));
const found = await client.callTool({ name: "query", arguments: { text: "needle" } });
const structured = rest.includes("--structured") || where.includes("structured=1");
if (structured) {
  assert.equal(found.structuredContent.results[0].file_path, "a.py");
  assert.deepEqual(JSON.parse(found.content[0].text), found.structuredContent);
} else {
  assert.equal(found.structuredContent, undefined);
  assert.equal(found.content[0].text, "a.py\n1:def needle():");
}
const failed = await client.callTool({ name: "query", arguments: { text: "(", mode: "regex" } });
assert(failed.isError);
assert.match(failed.content[0].text, /invalid_pattern/);
assert.equal(failed.structuredContent?.data.reason, structured ? "invalid_pattern" : undefined);
await assert.rejects(client.callTool({ name: "nope", arguments: {} }));
assert((await client.listResources()).resources.length > 0);
assert.equal((await client.listPrompts()).prompts.length, 3);
await client.close();
console.log(`${tools.length} tools, ${client.getServerVersion().name} ${client.getServerVersion().version}`);
