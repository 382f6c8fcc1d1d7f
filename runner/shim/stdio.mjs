// Speaks Streamable HTTP on a port and JSON lines to a stdio MCP server: one process per session, and one for all requests
// of the stateless era, which get a handshake of the shim's own if the server knows nothing else.
// A call is answered as JSON. Where the server says something else first, it is answered as a stream of events:
//
//   caller                    shim                     server
//     POST tools/call  ---->    id 7           ---->
//          <----  event         progress on 7  <----
//          <----  event         elicitation/create 1 <---
//     POST answer to 1 ---->                   ---->       of the same session, or it is refused
//          <----  event, end    answer to 7    <----
//
// Node's own modules only. It is not a wall (the server could as well have listened itself); the sandbox is.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { totalmem } from "node:os";

// As many processes as the sandbox has memory for.
const SESSION_BYTES = 48 << 20;
const SESSIONS_MAX = Math.max(4, Math.min(64, Math.floor(totalmem() / SESSION_BYTES)));
const [ANSWER_MS, PROBE_MS, HELLO_MS] = [900_000, 5_000, 60_000];
const STATELESS = "2026-07-28";
const BODY_MAX = 8 * 1024 * 1024;
// A message as long as the gateway may be told to take. What a line says first and last is enough to tell whose answer it is.
const [LINE_MAX, ENDS_KEPT] = [64 << 20, 200];
// Of what a server says during a call, as far as its caller has not read it.
const EVENTS_BYTES_MAX = 1 << 20;
// What a server may have asked a client that has not answered.
const ASKED_MAX = 64;
// What a server has not read yet of what it was sent.
const UNREAD_MAX = 64 << 20;
// A server that ends before it has said anything is started again after this long, then after twice as long, and so on.
const [AGAIN_MS, AGAIN_MS_MAX] = [250, 30_000];
// How often it is looked whether a server that owes an answer still reads, and how long one that does not may take to answer
// what it has read before.
const [LOOK_MS, DEAF_MS] = [1_000, 2_000];
const ENDED = "the server has ended";
const ID_FIRST = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/;
const ID_LAST = /,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*$/;
const KIND = /"(method|result|error)"\s*:/;
const CANCELLED = "notifications/cancelled";
const WHO = { name: "weir", version: "1" };
// Whether the probe has ended a server that knows the handshake only: the next one gets the handshake first.
let probeEndsIt = false;

const [port, , ...command] = process.argv.slice(2);

// There is no answer, and why.
class Unanswered extends Error {}
// The same, and the call was not sent: another process may take it.
class Unsent extends Unanswered {}

// The number of the call that a line answers, as far as its ends tell; null of what is no answer at all.
function answered(line) {
  const [first, last] = [line.subarray(0, ENDS_KEPT), line.subarray(-ENDS_KEPT)].map((end) => end.toString("latin1"));
  if (KIND.exec(first)?.[1] === "method") return null;
  return Number((ID_FIRST.exec(first) ?? ID_LAST.exec(last))?.[1]);
}

// Lines out of what comes in pieces, none longer than LINE_MAX; of those that are, both ends.
class Lines {
  parts = [];
  bytes = 0;
  first = null; // of a line that is too long already
  *take(piece) {
    let from = 0;
    for (let to; (to = piece.indexOf(10, from)) >= 0; from = to + 1) {
      this.keep(piece.subarray(from, to));
      const line = Buffer.concat(this.parts);
      yield this.first ? [Buffer.concat([this.first, line.subarray(-ENDS_KEPT)]), true] : [line, false];
      [this.parts, this.bytes, this.first] = [[], 0, null];
    }
    this.keep(piece.subarray(from));
  }
  keep(piece) {
    this.parts.push(piece);
    this.bytes += piece.length;
    if (this.bytes <= LINE_MAX) return;
    // Some short pieces may hold less than an end; all of them hold more.
    const all = Buffer.concat(this.parts);
    this.first ??= Buffer.from(all.subarray(0, ENDS_KEPT));
    this.parts = [Buffer.from(all.subarray(-ENDS_KEPT))];
  }
}

// When a process may be started: servers that end at once would otherwise be started with every call.
// What ends the process without sessions does not end those that have one.
const [withSession, withoutSession] = [0, 1].map(() => ({ failed: 0, after: 0 }));
function started(starts) {
  const wait = starts.after - performance.now();
  if (wait > 0) {
    const times = `${starts.failed} times by now; it is started again in ${(wait / 1000).toFixed(1)} s`;
    throw new Unanswered(`the server ends as soon as it is started, ${times}`);
  }
  return new Session(starts);
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const mayBeAnId = (id) => Number.isSafeInteger(id) || (typeof id === "string" && id.length <= ENDS_KEPT);
const refusal = (message, id) => ({ jsonrpc: "2.0", id, error: { code: -32000, message } });
const event = (message) => `data: ${JSON.stringify(message)}\n\n`;

// With a number of the shim's own for its id, and for the token of its progress: those of different clients may be alike.
// And the client's token, if it gave one.
function numbered(message, number) {
  const token = message.params?._meta?.progressToken;
  if (token === undefined || token === null) return [{ ...message, id: number }, undefined];
  const params = { ...message.params, _meta: { ...message.params._meta, progressToken: number } };
  return [{ ...message, id: number, params }, token];
}

// Whoever takes events before an answer. With the first one the answer becomes a stream.
class Caller {
  told = false;
  gone = false;
  constructor(response) {
    this.response = response;
    response.on("close", () => {
      this.gone = !response.writableFinished;
      if (this.gone && this.told) this.leaves?.();
    });
  }
  get unread() { return this.response.writableLength; }
  tell(text) {
    if (!this.told) this.response.writeHead(200, { "Content-Type": "text/event-stream" });
    this.told = true;
    if (this.gone) return this.leaves?.();
    this.response.write(text);
  }
  end(answer) { this.response.end(event(answer)); }
}

class Session {
  constructor(starts) {
    this.starts = starts;
    // Whether all calls are one client's, and what that can be asked. Without sessions they are anybody's.
    this.ofOne = starts === withSession;
    this.can = new Set();
    // What the server asked and the client has not answered, by the server's ids: on which call, and when. And what came to
    // nothing lately: an answer to that is late, not wrong.
    this.asked = new Map();
    this.past = [];
    this.lost = 0;
    this.waiting = new Map(); // calls by their numbers, the one that began last at the end
    this.numbers = new Map(); // of a client's calls, by its own ids
    this.next = 0;
    this.said = false;
    this.ended = false;
    this.deaf = false;
    this.child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    this.child.on("error", (error) => { console.error(String(error)); this.over(); });
    // Its last words may still be on their way, or a child of its own may hold its output open.
    this.child.stdout.on("close", () => this.over());
    this.child.on("exit", () => setTimeout(() => this.over(), 1000));
    // One that has closed its input takes no call any more.
    this.child.stdin.on("error", () => { this.deaf = true; setTimeout(() => this.over(), DEAF_MS); });
    // And it forgets what it was sent and had not read, so that a call may be lost without a word: writing nothing tells.
    this.looks = setInterval(() => {
      if (this.waiting.size > 0 && !this.deaf && this.child.stdin.writableLength === 0) this.child.stdin.write("");
    }, LOOK_MS);
    const lines = new Lines();
    this.child.stdout.on("data", (piece) => {
      for (const [line, tooLong] of lines.take(piece)) tooLong ? this.tooLong(line) : this.take(line);
    });
  }
  get alive() { return !this.ended && !this.deaf && this.child.exitCode === null && this.child.signalCode === null; }
  take(line) {
    let message;
    try { message = JSON.parse(line.toString("utf8")); } catch { return this.spoiled(line); }
    if (!this.said) {
      this.said = true;
      Object.assign(this.starts, { failed: 0, after: 0 });
    }
    if (!isObject(message)) return;
    if (message.method === undefined) {
      if (message.id !== undefined) this.settle(message.id, message); // or it comes late
    } else if (!this.passOn(message) && message.id !== undefined) {
      this.refuse(message.id, message.method); // nobody would answer it, and the call that it belongs to would wait
    }
  }
  // Whoever waits for it is told; if it cannot be seen who that is, all who wait.
  tooLong(ends) {
    const message = `the server wrote a message of more than ${LINE_MAX} bytes`;
    console.error(message);
    const found = answered(ends);
    if (found === null) return;
    for (const number of this.waiting.has(found) ? [found] : [...this.waiting.keys()]) {
      this.settle(number, { jsonrpc: "2.0", error: { code: -32000, message } });
    }
  }
  // No JSON: a stray print, or an answer that somebody waits for.
  spoiled(line) {
    this.settle(answered(line), { jsonrpc: "2.0", error: { code: -32603, message: "the server's answer is not JSON" } });
  }
  settle(number, answer) {
    const call = this.waiting.get(number);
    this.waiting.delete(number);
    call?.done(answer);
  }
  // Whether a notification or a request goes to a caller.
  passOn(message) {
    const [call, said] = this.belonging(message);
    if (!call || (said.id !== undefined && !this.mayAsk(said))) return false;
    const text = event(said);
    if (call.caller.unread + Buffer.byteLength(text) > EVENTS_BYTES_MAX) {
      if ((++this.lost & (this.lost - 1)) === 0) { // 1, 2, 4, 8...
        console.error(`${this.lost} messages of the server were lost: too long, or not read by their caller`);
      }
      return false;
    }
    if (said.id !== undefined) this.asked.set(JSON.stringify(said.id), { on: call, at: performance.now() });
    else if (said.method === CANCELLED) this.drop(JSON.stringify(said.params?.requestId));
    call.caller.tell(text);
    return true;
  }
  // The call that a message belongs to, as far as that can be seen, and the message in its client's words.
  belonging(message) {
    if (message.method === "notifications/progress") {
      const call = this.waiting.get(message.params?.progressToken);
      if (!call?.caller || call.token === undefined) return [];
      return [call, { ...message, params: { ...message.params, progressToken: call.token } }];
    }
    return this.ofOne ? [[...this.waiting.values()].findLast((call) => call.caller), message] : [];
  }
  // Whether the client can be asked this: it said so in its handshake. A handshake of Weir's own says nothing, as nobody could
  // answer.
  mayAsk({ id, method }) {
    if (!mayBeAnId(id) || typeof method !== "string" || !this.can.has(method.split("/")[0])) return false;
    const [oldest] = this.asked;
    if (this.asked.size >= ASKED_MAX && performance.now() - oldest[1].at > ANSWER_MS) this.drop(oldest[0]);
    return this.asked.size < ASKED_MAX && !this.asked.has(JSON.stringify(id));
  }
  // Nobody waits for an answer to this any more.
  drop(key) {
    if (this.asked.delete(key)) this.past = [...this.past, key].slice(-ASKED_MAX);
  }
  // The client's answer goes to the server, if that has asked; one that is late goes nowhere. False: it has not.
  answers(message) {
    const key = JSON.stringify(message.id);
    if (!this.asked.delete(key)) return this.past.includes(key);
    this.send(message);
    return true;
  }
  // A caller has gone who was told events: nobody will hear the answer, or answer what was asked on its stream.
  left(call) {
    if (this.ended || this.waiting.get(call.number) !== call) return;
    for (const [key, { on }] of this.asked) {
      if (on !== call) continue;
      this.drop(key);
      this.refuse(JSON.parse(key));
    }
    const params = { requestId: call.number, reason: "the client has gone" };
    try { this.send({ jsonrpc: "2.0", method: CANCELLED, params }); } catch {} // it reads nothing
    this.settle(call.number, null);
  }
  refuse(id, method) {
    if (!mayBeAnId(id)) return;
    const error = { code: -32601, message: "no client can be asked this here" };
    const outcome = method === "ping" ? { result: {} } : { error };
    try { this.send({ jsonrpc: "2.0", id, ...outcome }); } catch {} // it reads nothing
  }
  // The server knows a call by its number. Whoever is cancelled need not answer, so this does. What is over already is nothing to it.
  cancel(message) {
    const number = this.numbers.get(JSON.stringify(message.params?.requestId));
    if (number === undefined) return;
    this.send({ ...message, params: { ...message.params, requestId: number } });
    this.settle(number, { jsonrpc: "2.0", error: { code: -32000, message: "the call was cancelled" } });
  }
  send(message) {
    if (this.child.stdin.writableLength > UNREAD_MAX) throw new Unanswered("the server does not read what it is sent");
    this.child.stdin.write(JSON.stringify(message) + "\n");
  }
  // The answer. What is said before it goes to the caller, if there is one who takes it.
  ask(message, { ms = ANSWER_MS, caller } = {}) {
    const [number, own] = [++this.next, JSON.stringify(message.id)];
    const answer = new Promise((done, failed) => {
      if (this.ended) throw new Unsent(ENDED);
      const [ours, token] = numbered(message, number);
      this.send(ours);
      const timer = setTimeout(() => {
        this.waiting.delete(number);
        failed(new Unanswered(`the server did not answer within ${ms / 1000} s`));
      }, ms);
      const call = { number, token, caller, done: (answer) => {
        clearTimeout(timer);
        answer ? done({ ...answer, id: message.id }) : failed(new Unanswered(ENDED));
      } };
      if (caller) caller.leaves = () => this.left(call);
      this.waiting.set(number, call);
      this.numbers.set(own, number);
    });
    return answer.finally(() => { if (this.numbers.get(own) === number) this.numbers.delete(own); });
  }
  // What a server that knows the handshake only said in it; {} of one that speaks the stateless era itself.
  face() {
    this.hello ??= this.greet().catch((reason) => { this.hello = undefined; throw reason; });
    return this.hello;
  }
  async greet() {
    const probed = !probeEndsIt;
    if (probed && await this.knowsTheStatelessEra()) return {};
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: WHO };
    const answer = await this.ask({ jsonrpc: "2.0", id: 0, method: "initialize", params }, { ms: HELLO_MS });
    if (answer.result) {
      this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
      return answer.result;
    }
    probeEndsIt = false; // it was something else that ended the one before
    if (!probed && await this.knowsTheStatelessEra()) return {};
    throw new Unanswered("the server refuses the handshake");
  }
  async knowsTheStatelessEra() {
    const own = { protocolVersion: STATELESS, clientCapabilities: {}, clientInfo: WHO };
    const meta = Object.fromEntries(Object.entries(own).map(([name, value]) => ["io.modelcontextprotocol/" + name, value]));
    const probe = { jsonrpc: "2.0", id: 0, method: "server/discover", params: { _meta: meta } };
    const probed = await this.ask(probe, { ms: PROBE_MS }).catch(() => null); // some say nothing before the handshake
    if (probed) return Boolean(probed.result);
    if (this.alive) return false;
    if (!probeEndsIt) {
      // The probe's fault, so the next one need not wait.
      probeEndsIt = true;
      this.over();
      Object.assign(this.starts, { failed: 0, after: 0 });
    }
    throw new Unsent(ENDED);
  }
  // A request of the stateless era.
  async askWithoutSession(message, caller) {
    const hello = await this.face();
    if (Object.keys(hello).length === 0) return this.ask(message, { caller });
    let answer;
    if (message.method === "server/discover") {
      const result = { supportedVersions: [STATELESS], capabilities: hello.capabilities ?? {} };
      if (hello.instructions !== undefined) result.instructions = hello.instructions;
      if (hello.serverInfo !== undefined) result._meta = { "io.modelcontextprotocol/serverInfo": hello.serverInfo };
      answer = { jsonrpc: "2.0", id: message.id, result };
    } else {
      answer = await this.ask(message, { caller });
    }
    const result = answer.result;
    if (result && typeof result === "object") { // what the newer revision asks for
      result.resultType ??= "complete";
      if (/\/list$|^resources\/read$|^server\/discover$/.test(message.method)) {
        result.ttlMs ??= 0;
        result.cacheScope ??= "private";
      }
    }
    return answer;
  }
  // The process has ended, or says nothing any more; the next call begins another one.
  over() {
    if (this.ended) return;
    if (!this.said) {
      this.starts.failed += 1;
      this.starts.after = performance.now() + Math.min(AGAIN_MS_MAX, AGAIN_MS * 2 ** (this.starts.failed - 1));
    }
    this.end();
  }
  end() {
    if (this.ended) return;
    this.ended = true;
    clearInterval(this.looks);
    for (const call of this.waiting.values()) call.done(null);
    this.waiting.clear();
    this.child.kill("SIGKILL");
  }
}

const sessions = new Map();

// The session, if its process lives.
function living(key) {
  const session = sessions.get(key);
  if (!session || session.alive) return session;
  sessions.delete(key);
  return undefined;
}

// The session, made if it is not there. The one that was not used for longest makes room; its client begins anew.
function opened(key) {
  let session = living(key);
  sessions.delete(key);
  if (!session) {
    if (sessions.size >= SESSIONS_MAX) {
      const idle = [...sessions].find(([k, s]) => k !== "" && s.waiting.size === 0);
      if (!idle) throw new Unanswered("too many sessions");
      sessions.delete(idle[0]);
      idle[1].end();
    }
    session = started(key === "" ? withoutSession : withSession);
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
  reply(response, status, refusal(message, id));

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
  if (message.method !== "initialize" && key !== "" && !living(key)) return fail(response, 404, "no such session", message.id);
  let session;
  try { session = opened(key); } catch (reason) { return fail(response, 503, reason.message, message.id); }
  if (message.method === "initialize" && isObject(message.params?.capabilities)) {
    session.can = new Set(Object.keys(message.params.capabilities));
  }
  // What the handshake brings with it has no place among events: the id of the session.
  const events = message.method !== "initialize" && (request.headers.accept ?? "").toLowerCase().includes("text/event-stream");
  const caller = events ? new Caller(response) : undefined;
  let answer;
  try {
    if (message.method === undefined) {
      if (!session.answers(message)) return fail(response, 400, "the server has asked nothing with this id", message.id);
      return reply(response, 202);
    }
    if (message.id === undefined) {
      // Without sessions clients share ids, and it cannot be told whose call is meant.
      if (message.method !== CANCELLED) session.send(message);
      else if (key !== "") session.cancel(message);
      return reply(response, 202, undefined, headers);
    }
    answer = await (key === "" ? askWithoutSession(session, message, caller) : session.ask(message, { caller }));
  } catch (reason) {
    if (!(reason instanceof Unanswered)) throw reason;
    if (caller?.told) return caller.end(refusal(reason.message, message.id));
    return fail(response, 502, reason.message, message.id);
  }
  if (caller?.told) return caller.end(answer);
  reply(response, 200, answer, headers);
}

function askWithoutSession(session, message, caller) {
  return session.askWithoutSession(message, caller).catch((reason) => {
    if (reason instanceof Unsent) return opened("").askWithoutSession(message, caller);
    throw reason;
  });
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
  const handler = { POST: post, DELETE: remove }[request.method];
  if (handler) Promise.resolve(handler(request, response)).catch(() => response.destroy());
  else fail(response, 405, "POST and DELETE only: there is no stream to listen to");
});

// A server that cannot run at all ends the sandbox now, and not with the first call.
const probe = new Session(withoutSession);
setTimeout(() => {
  if (!probe.alive) process.exit(1);
  sessions.set("", probe);
  server.listen(Number(port), "0.0.0.0");
}, 300);
