// node ts2.mjs legacy|auto|modern URL CALLS ['Header: value' ...]   @modelcontextprotocol/client 2.x
import { load, parse, run } from './common.mjs';
const [era, url, calls, headers] = parse();
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const mode = era === 'modern' ? { pin: '2026-07-28' } : era;
const client = new Client({ name: 'ts2', version: '1' }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
await run(calls, () => client.listTools(undefined, { timeout: 20000 }), (call) => client.callTool(call, { timeout: 20000 }));
