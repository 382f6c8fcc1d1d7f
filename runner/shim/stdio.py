"""Speaks Streamable HTTP on a port and JSON lines to a stdio MCP server: one process per session, and one for all requests
of the stateless era, which get a handshake of the shim's own if the server knows nothing else.

Standard library only, started with -I: nothing of the tenant's is imported here. It is not a wall (the server could
as well have listened itself); the sandbox is.
"""
import json, os, queue, secrets, signal, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSION_KB, SESSIONS_MAX = 48 * 1024, 64
BODY_MAX = 8 * 1024 * 1024
QUEUE_MAX = 1000
ANSWER_S, PROBE_S, HELLO_S = 900, 5, 60
STATELESS = "2026-07-28"

PORT, COMMAND = int(sys.argv[1]), sys.argv[3:]


class Session:
    def __init__(self):
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.waiting, self.lock, self.next = {}, threading.Lock(), 0
        self.facing, self.hello = threading.Lock(), None
        self.unasked = queue.Queue(QUEUE_MAX)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a stray print
            if isinstance(message, dict) and "method" not in message and "id" in message:
                with self.lock:
                    box = self.waiting.pop(message["id"], None) if isinstance(message["id"], int) else None
                if box:
                    box.put(message)
            else:
                try:
                    self.unasked.put_nowait(message)
                except queue.Full:
                    pass
        with self.lock:
            waiting, self.waiting = self.waiting, None
        for box in waiting.values():
            box.put(None)
        self.unasked.put(None) if not self.unasked.full() else None

    def send(self, message):
        self.process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, message, wait=ANSWER_S):
        box = queue.Queue(1)
        with self.lock:
            if self.waiting is None:
                return None
            self.next += 1
            number = self.next
            self.waiting[number] = box
        original = message["id"]
        try:
            self.send({**message, "id": number})
            answer = box.get(timeout=wait)
        except (OSError, queue.Empty):
            answer = None
        return answer and {**answer, "id": original}

    def face(self):
        """What a server that knows the handshake only said in it; {} of one that speaks the stateless era itself."""
        with self.facing:
            if self.hello is not None:
                return self.hello
            who = {"name": "weir", "version": "1"}
            meta = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": who}
            meta = {"io.modelcontextprotocol/" + name: value for name, value in meta.items()}
            answer = self.ask({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta}}, PROBE_S)
            if answer and "result" in answer:
                self.hello = {}
                return self.hello
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who}
            answer = self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, HELLO_S)
            if not answer or not isinstance(answer.get("result"), dict):
                return None
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self.hello = answer["result"]
            return self.hello

    def ask_without_session(self, message):
        """A request of the stateless era."""
        hello = self.face()
        if hello is None:
            return None
        if not hello:
            return self.ask(message)
        if message["method"] == "server/discover":
            result = {"supportedVersions": [STATELESS], "capabilities": hello.get("capabilities", {})}
            if "instructions" in hello:
                result["instructions"] = hello["instructions"]
            if "serverInfo" in hello:
                result["_meta"] = {"io.modelcontextprotocol/serverInfo": hello["serverInfo"]}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        else:
            answer = self.ask(message)
        result = answer and answer.get("result")
        if isinstance(result, dict):  # what the newer revision asks for
            result.setdefault("resultType", "complete")
            if message["method"].endswith("/list") or message["method"] in ("resources/read", "server/discover"):
                result.setdefault("ttlMs", 0)
                result.setdefault("cacheScope", "private")
        return answer

    def end(self):
        try:
            self.process.stdin.close()
            self.process.wait(2)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def sessions_max():
    """As many processes as the sandbox has memory for."""
    with open("/proc/meminfo") as lines:
        total = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    return max(4, min(SESSIONS_MAX, total // SESSION_KB))


MAX = sessions_max()
sessions, sessions_lock = {}, threading.Lock()


def opened(key):
    """The session, made if it is not there. The one that was not used for longest makes room; its client begins anew."""
    session = sessions.pop(key, None)
    if session is None:
        if len(sessions) >= MAX:
            idle = next((k for k, s in sessions.items() if k and not s.waiting), None)
            if idle is None:
                return None
            threading.Thread(target=sessions.pop(idle).end, daemon=True).start()
        session = Session()
    sessions[key] = session  # at the end: used last
    return session


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=None, headers=()):
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        if body is not None:
            self.send_header("Content-Type", "application/json")
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def fail(self, status, text, id=None):
        self.reply(status, {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": text}})

    def session(self):
        with sessions_lock:
            return sessions.get(self.headers.get("Mcp-Session-Id", ""))

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_MAX:
            self.close_connection = True
            return self.fail(413, "the body has no length or is too long")
        try:
            message = json.loads(self.rfile.read(int(length)))
        except ValueError:
            return self.fail(400, "the body is not JSON")
        if not isinstance(message, dict):
            return self.fail(400, "the body is not one message")
        key, headers = self.headers.get("Mcp-Session-Id", ""), []
        fresh = message.get("method") == "initialize"
        if fresh:
            key = secrets.token_hex(16)
            headers = [("Mcp-Session-Id", key)]
        with sessions_lock:
            # A client without sessions has one process for all its calls.
            if not fresh and key and key not in sessions:
                return self.fail(404, "no such session", message.get("id"))
            session = opened(key)
        if session is None:
            return self.fail(503, "too many sessions", message.get("id"))
        if "id" not in message or "method" not in message:
            try:
                session.send(message)
            except OSError:
                return self.fail(502, "the server has ended")
            return self.reply(202, None, headers)
        answer = session.ask(message) if key else session.ask_without_session(message)
        if answer is None:
            return self.fail(502, "the server has ended", message["id"])
        self.reply(200, answer, headers)

    def do_GET(self):
        session = self.session()
        if session is None:
            return self.fail(404 if "Mcp-Session-Id" in self.headers else 405, "no such session")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            try:
                message = session.unasked.get(timeout=15)
                if message is None:
                    return
                self.wfile.write(b"data: " + json.dumps(message, ensure_ascii=False).encode() + b"\n\n")
            except queue.Empty:
                self.wfile.write(b": still here\n\n")
            self.wfile.flush()

    def do_DELETE(self):
        with sessions_lock:
            session = sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
        if session is None:
            return self.fail(404, "no such session")
        session.end()
        self.reply(200)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a client that went away


def main():
    if not COMMAND:
        sys.exit("usage: stdio.py PORT -- COMMAND...")
    # A server that cannot run at all ends the sandbox now, and not with the first call.
    probe = Session()
    try:
        code = probe.process.wait(0.3)
        sys.exit(code or 1)
    except subprocess.TimeoutExpired:
        sessions[""] = probe
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Server(("0.0.0.0", PORT), Handler).serve_forever()


main()
