import express from "express";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const app = express();
app.use(express.json());
app.post("/mcp", async (request, response) => {
  const server = new McpServer({ name: "node-server", version: "1.0.0" });
  server.registerTool("get_data", { description: "Fetch data", inputSchema: { query: z.string() } },
    async ({ query }) => ({ content: [{ type: "text", text: `Result for: ${query}` }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.listen(8000, "0.0.0.0");
