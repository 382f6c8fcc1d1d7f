// What the two TypeScript clients share. CALLS is [[tool, {arguments}], ...], all made on one session; one JSON line each:
// {"outcome": "result"|"tool_error"|"throw", "text": ..., "tools": how many tools the session still lists, -1 if it died,
// "told": the progress that was told before, by clients that listen to it}
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
const require = createRequire(process.env.WEIR_KIT + '/clients/');
export const load = (name) => import(pathToFileURL(require.resolve(name)).href);
export function parse() {
  const [kind, url, calls, ...lines] = process.argv.slice(2);
  const headers = Object.fromEntries(lines.map((l) => [l.slice(0, l.indexOf(':')).trim(), l.slice(l.indexOf(':') + 1).trim()]));
  return [kind, url, JSON.parse(calls), headers];
}
export async function run(calls, list, callTool) {
  await list();
  for (const [name, args] of calls) {
    const line = { told: [] };
    try {
      const r = await callTool({ name, arguments: args }, ({ progress }) => line.told.push(progress));
      line.outcome = r.isError ? 'tool_error' : 'result';
      line.text = JSON.stringify(r.content);
    } catch (e) {
      line.outcome = 'throw';
      line.text = `${e.constructor.name} ${e.code} ${e.message}`;
    }
    try { line.tools = (await list()).tools.length; } catch { line.tools = -1; }
    console.log(JSON.stringify(line));
  }
  process.exit(0);
}
