// What the benchmark hosts, and runs beside it without a sandbox: a tool that answers what it is sent.
import express from "express";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const app = express();
app.use(express.json({ limit: "4mb" }));
app.post("/mcp", async (request, response) => {
  const server = new McpServer({ name: "bench-server", version: "1.0.0" });
  server.registerTool("echo", { description: "Answer the text", inputSchema: { text: z.string() } },
    async ({ text }) => ({ content: [{ type: "text", text }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
// Without a sandbox it may listen on loopback only, and on whatever port is free.
const [host, port] = (process.env.BENCH_LISTEN ?? "0.0.0.0:8000").split(":");
app.listen(Number(port), host);
