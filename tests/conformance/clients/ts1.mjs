// node ts1.mjs http|sse URL CALLS ['Header: value' ...]   @modelcontextprotocol/sdk 1.x (handshake era only)
import { load, parse, run } from './common.mjs';
const [kind, url, calls, headers] = parse();
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { SSEClientTransport } = await load('@modelcontextprotocol/sdk/client/sse.js');
const client = new Client({ name: 'ts1', version: '1' });
const Transport = kind === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
await client.connect(new Transport(new URL(url), { requestInit: { headers } }));
await run(calls, () => client.listTools(undefined, { timeout: 20000 }), (call, onprogress) => client.callTool(call, undefined, { timeout: 20000, onprogress }));
