// An MCP server for Weir: Streamable HTTP on port 8000.
import { readFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { z } from "zod";

// A secret set with `weir secret set`, or an environment variable of that name.
function readSecret(name) {
  try {
    return readFileSync(`/run/secrets/${name}`, "utf8").trim();
  } catch {
    return process.env[name] ?? "";
  }
}

function makeServer() {
  const server = new McpServer({ name: "example", version: "1.0.0" });
  server.registerTool(
    "greet",
    { description: "Greet somebody.", inputSchema: { name: z.string() } },
    async ({ name }) => ({ content: [{ type: "text", text: `Hello, ${name}!` }] }),
  );
  server.registerTool(
    "has_secret",
    { description: "Say whether a secret is there.", inputSchema: { name: z.string() } },
    async ({ name }) => ({ content: [{ type: "text", text: String(readSecret(name) !== "") }] }),
  );
  return server;
}

const app = express();
app.use(express.json({ limit: "4mb" }));
app.post("/mcp", async (request, response) => {
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.listen(8000, "0.0.0.0");
