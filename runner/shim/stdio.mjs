// Speaks Streamable HTTP on a port and JSON lines to a stdio MCP server: one process per session, and one for all requests
// of the stateless era, which get a handshake of the shim's own if the server knows nothing else.
// Node's own modules only. It is not a wall (the server could as well have listened itself); the sandbox is.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { totalmem } from "node:os";

// As many processes as the sandbox has memory for.
const SESSION_BYTES = 48 << 20;
const SESSIONS_MAX = Math.max(4, Math.min(64, Math.floor(totalmem() / SESSION_BYTES)));
const [PROBE_MS, HELLO_MS] = [5_000, 60_000];
const STATELESS = "2026-07-28";
const BODY_MAX = 8 * 1024 * 1024;
const LINE_MAX = 8 * 1024 * 1024;
const QUEUE_MAX = 1000;

const [port, , ...command] = process.argv.slice(2);

class Session {
  constructor() {
    this.waiting = new Map();
    this.next = 0;
    this.unasked = [];
    this.wake = null;
    this.ended = false;
    this.child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    this.child.on("error", (error) => { console.error(String(error)); this.end(); });
    this.child.on("exit", () => this.end());
    this.child.stdin.on("error", () => this.end());
    let rest = "";
    this.child.stdout.setEncoding("utf8");
    this.child.stdout.on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      if (rest.length > LINE_MAX) rest = "";
      for (const line of lines) this.take(line);
    });
  }
  take(line) {
    let message;
    try { message = JSON.parse(line); } catch { return; }
    if (message && message.method === undefined && this.waiting.has(message.id)) {
      this.waiting.get(message.id)(message);
      this.waiting.delete(message.id);
    } else if (this.unasked.length < QUEUE_MAX) {
      this.unasked.push(message);
      this.wake?.();
    }
  }
  send(message) { this.child.stdin.write(JSON.stringify(message) + "\n"); }
  ask(message) {
    if (this.ended) return Promise.resolve(null);
    const number = ++this.next;
    return new Promise((done) => {
      this.waiting.set(number, (answer) => done(answer && { ...answer, id: message.id }));
      this.send({ ...message, id: number });
    });
  }
  askWithin(ms, message) {
    return new Promise((done) => {
      const timer = setTimeout(() => done(null), ms);
      this.ask(message).then((answer) => { clearTimeout(timer); done(answer); });
    });
  }
  // What a server that knows the handshake only said in it; {} of one that speaks the stateless era itself.
  face() {
    this.hello ??= this.greet().then((hello) => { if (!hello) this.hello = undefined; return hello; });
    return this.hello;
  }
  async greet() {
    const who = { name: "weir", version: "1" };
    const own = { protocolVersion: STATELESS, clientCapabilities: {}, clientInfo: who };
    const meta = Object.fromEntries(Object.entries(own).map(([name, value]) => ["io.modelcontextprotocol/" + name, value]));
    const probed = await this.askWithin(PROBE_MS, { jsonrpc: "2.0", id: 0, method: "server/discover", params: { _meta: meta } });
    if (probed?.result) return {};
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: who };
    const answer = await this.askWithin(HELLO_MS, { jsonrpc: "2.0", id: 0, method: "initialize", params });
    if (!answer?.result) return null;
    this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return answer.result;
  }
  // A request of the stateless era.
  async askWithoutSession(message) {
    const hello = await this.face();
    if (!hello) return null;
    if (Object.keys(hello).length === 0) return this.ask(message);
    let answer;
    if (message.method === "server/discover") {
      const result = { supportedVersions: [STATELESS], capabilities: hello.capabilities ?? {} };
      if (hello.instructions !== undefined) result.instructions = hello.instructions;
      if (hello.serverInfo !== undefined) result._meta = { "io.modelcontextprotocol/serverInfo": hello.serverInfo };
      answer = { jsonrpc: "2.0", id: message.id, result };
    } else {
      answer = await this.ask(message);
    }
    const result = answer?.result;
    if (result && typeof result === "object") { // what the newer revision asks for
      result.resultType ??= "complete";
      if (/\/list$|^resources\/read$|^server\/discover$/.test(message.method)) {
        result.ttlMs ??= 0;
        result.cacheScope ??= "private";
      }
    }
    return answer;
  }
  end() {
    if (this.ended) return;
    this.ended = true;
    for (const done of this.waiting.values()) done(null);
    this.waiting.clear();
    this.wake?.();
    this.child.kill("SIGKILL");
  }
}

const sessions = new Map();

// The session, made if it is not there. The one that was not used for longest makes room; its client begins anew.
function opened(key) {
  let session = sessions.get(key);
  sessions.delete(key);
  if (!session) {
    if (sessions.size >= SESSIONS_MAX) {
      const idle = [...sessions].find(([k, s]) => k !== "" && s.waiting.size === 0);
      if (!idle) return null;
      sessions.delete(idle[0]);
      idle[1].end();
    }
    session = new Session();
  }
  sessions.set(key, session); // at the end: used last
  return session;
}

function reply(response, status, body, headers = {}) {
  const data = body === undefined ? "" : JSON.stringify(body);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  response.writeHead(status, { ...headers, "Content-Length": Buffer.byteLength(data) }).end(data);
}
const fail = (response, status, message, id = null) =>
  reply(response, status, { jsonrpc: "2.0", id, error: { code: -32000, message } });

async function body(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > BODY_MAX) throw new Error("too long");
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

async function post(request, response) {
  let message;
  try { message = await body(request); } catch { return fail(response, 400, "the body is not JSON, or too long"); }
  if (message === null || typeof message !== "object" || Array.isArray(message)) return fail(response, 400, "the body is not one message");
  let key = request.headers["mcp-session-id"] ?? "";
  const headers = {};
  if (message.method === "initialize") {
    key = randomBytes(16).toString("hex");
    headers["Mcp-Session-Id"] = key;
  }
  // A client without sessions has one process for all its calls.
  if (message.method !== "initialize" && key !== "" && !sessions.has(key)) return fail(response, 404, "no such session", message.id);
  const session = opened(key);
  if (!session) return fail(response, 503, "too many sessions", message.id);
  if (message.id === undefined || message.method === undefined) {
    session.send(message);
    return reply(response, 202, undefined, headers);
  }
  const answer = await (key === "" ? session.askWithoutSession(message) : session.ask(message));
  if (!answer) return fail(response, 502, "the server has ended", message.id);
  reply(response, 200, answer, headers);
}

async function get(request, response) {
  const session = sessions.get(request.headers["mcp-session-id"]);
  if (!session) return fail(response, 405, "no such session");
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  let open = true;
  const close = () => { open = false; session.wake?.(); };
  response.on("close", close);
  while (open && !session.ended) {
    while (session.unasked.length) response.write(`data: ${JSON.stringify(session.unasked.shift())}\n\n`);
    await new Promise((done) => { session.wake = done; });
  }
  response.end();
}

function remove(request, response) {
  const key = request.headers["mcp-session-id"];
  const session = sessions.get(key);
  if (!session) return fail(response, 404, "no such session");
  sessions.delete(key);
  session.end();
  reply(response, 200);
}

const server = createServer((request, response) => {
  const handler = { POST: post, GET: get, DELETE: remove }[request.method];
  if (handler) Promise.resolve(handler(request, response)).catch(() => response.destroy());
  else fail(response, 405, "POST, GET and DELETE only");
});

// A server that cannot run at all ends the sandbox now, and not with the first call.
const probe = new Session();
setTimeout(() => {
  if (probe.ended) process.exit(1);
  sessions.set("", probe);
  server.listen(Number(port), "0.0.0.0");
}, 300);
