"""Speaks Streamable HTTP on a port and JSON lines to a stdio MCP server: one process per session, and one for all requests
of the stateless era, which get a handshake of the shim's own if the server knows nothing else.

Standard library only, started with -I: nothing of the tenant's is imported here. It is not a wall (the server could
as well have listened itself); the sandbox is.
"""
import collections, io, json, math, os, queue, re, secrets, signal, subprocess, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSION_KB, SESSIONS_MAX = 48 * 1024, 64
BODY_MAX = 8 * 1024 * 1024
# A message as long as the gateway may be told to take. What a line says first and last is enough to tell whose answer it is.
LINE_MAX, ENDS_KEPT, READ_BYTES = 64 * 1024 * 1024, 200, 256 * 1024
# Refusals that a server has not read yet.
REFUSED_MAX = 1000
ANSWER_S, PROBE_S, HELLO_S = 900, 5, 60
STATELESS = "2026-07-28"

# A server that ends before it has said anything is started again after this long, then after twice as long, and so on.
AGAIN_S, AGAIN_S_MAX = 0.25, 30
ENDED = "the server has ended"
ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*\}\s*$')
KIND = re.compile(rb'"(method|result|error)"\s*:')
CANCELLED = "notifications/cancelled"
# Whether the probe has ended a server that knows the handshake only: the next one gets the handshake first.
probe_ends_it = False

WHO = {"name": "weir", "version": "1"}

PORT, COMMAND = int(sys.argv[1]), sys.argv[3:]


class Unanswered(Exception):
    """There is no answer, and why."""


class Unsent(Unanswered):
    """The same, and the call was not sent: another process may take it."""


def not_json(text):
    raise ValueError(text + " is no JSON")


def finite(text):
    number = float(text)
    return number if math.isfinite(number) else not_json(text)


def parsed(text):
    """Strictly: what this takes, a client can read."""
    return json.loads(text, parse_constant=not_json, parse_float=finite)


def answered(ends):
    """The number of the call that a line answers, as far as its ends tell; None of what is no answer at all."""
    kind = KIND.search(ends[:ENDS_KEPT])
    if kind and kind[1] == b"method":
        return None
    found = ID_FIRST.match(ends) or ID_LAST.search(ends[-ENDS_KEPT:])
    return int(found[1]) if found else 0


def packed(message):
    try:
        return json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can say and UTF-8 cannot
        return json.dumps(message).encode()


def lines_of(file):
    """The lines that end, each with whether it was too long; of those that were, only both ends."""
    while line := file.readline(LINE_MAX + 1):
        if line.endswith(b"\n"):
            yield line, False
            continue
        if len(line) <= LINE_MAX:
            return  # cut off by the end
        first, last = line[:ENDS_KEPT], line
        del line
        while not last.endswith(b"\n"):
            part = file.readline(READ_BYTES)
            if not part:
                return
            last = last[-ENDS_KEPT:] + part
        yield first + last[-ENDS_KEPT:], True


class Starts:
    """When a process may be started: servers that end at once would otherwise be started with every call."""

    def __init__(self):
        self.failed, self.after = 0, 0.0

    def may(self):
        wait = self.after - time.monotonic()
        if wait > 0:
            raise Unanswered(f"the server ends as soon as it is started, {self.failed} times by now; it is started again in {wait:.1f} s")

    def ended(self, said):
        if said:
            return
        self.failed += 1
        self.after = time.monotonic() + min(AGAIN_S_MAX, AGAIN_S * 2 ** min(self.failed - 1, 20))

    def good(self):
        """A process has spoken."""
        self.failed, self.after = 0, 0.0


# What ends the process without sessions does not end those that have one.
with_session, without_session = Starts(), Starts()


class Session:
    def __init__(self, starts):
        self.starts = starts
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.waiting, self.lock, self.next = {}, threading.Lock(), 0
        # The numbers of a client's calls, by its own ids.
        self.numbers = {}
        self.writing = threading.Lock()
        self.facing, self.hello = threading.Lock(), None
        self.refused, self.refusing = collections.deque(), False
        self.said = self.asked_to_end = self.deaf = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        threading.Thread(target=self.watch, daemon=True).start()

    def read(self):
        try:
            for line, too_long in lines_of(io.BufferedReader(self.process.stdout, READ_BYTES)):
                self.too_long(line) if too_long else self.take(line)
        finally:
            self.over()

    def watch(self):
        """A process may end while a child of its own holds its output open."""
        self.process.wait()
        self.reader.join(1)
        self.over()

    def take(self, line):
        try:
            message = parsed(line.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            self.spoiled(line)
            return
        if not self.said:
            self.said = True
            self.starts.good()
        if isinstance(message, dict) and "method" not in message and "id" in message:
            with self.lock:
                known = self.waiting and type(message["id"]) is int
                box = self.waiting.pop(message["id"], None) if known else None
            if box:
                box.put(message)
            return
        if isinstance(message, dict) and "id" in message:
            self.refuse(message)

    def too_long(self, ends):
        """Whoever waits for it is told; if it cannot be seen who that is, all who wait."""
        reason = f"the server wrote a message of more than {LINE_MAX} bytes"
        print(reason, file=sys.stderr, flush=True)
        number = answered(ends)
        if number is None:
            return
        with self.lock:
            waiting = self.waiting or {}
            mine = [number] if number in waiting else list(waiting)
            boxes = [waiting.pop(number) for number in mine]
        for box in boxes:
            box.put({"jsonrpc": "2.0", "error": {"code": -32000, "message": reason}})

    def spoiled(self, line):
        """No JSON: a stray print, or an answer that somebody waits for."""
        number = answered(line)
        with self.lock:
            box = self.waiting.pop(number, None) if self.waiting and number else None
        if box:
            box.put({"jsonrpc": "2.0", "error": {"code": -32603, "message": "the server's answer is not JSON"}})

    def refuse(self, request):
        """Nobody would answer it, and the call that it belongs to would wait. Not sent by the reader: the server may not read before
        it is read."""
        id = request["id"]
        if type(id) is not int and not (isinstance(id, str) and len(id) <= ENDS_KEPT):
            return
        outcome = {"error": {"code": -32601, "message": "no client can be asked through this host"}}
        if request["method"] == "ping":
            outcome = {"result": {}}
        with self.lock:
            if len(self.refused) < REFUSED_MAX:
                self.refused.append({"jsonrpc": "2.0", "id": id, **outcome})
            if self.refusing:
                return
            self.refusing = True
        threading.Thread(target=self.send_refusals, daemon=True).start()

    def send_refusals(self):
        while True:
            with self.lock:
                if not self.refused:
                    self.refusing = False
                    return
                refusal = self.refused.popleft()
            try:
                self.send(refusal)
            except Unanswered:
                pass  # it has ended, and asks no more

    def over(self):
        """The process has ended, or says nothing any more; the next call begins another one."""
        with self.lock:
            waiting, self.waiting = self.waiting, None
            if waiting is None:
                return
            if not self.asked_to_end:
                self.starts.ended(self.said)
        for box in waiting.values():
            box.put(None)
        self.end()

    def alive(self):
        return self.waiting is not None and not self.deaf and self.process.poll() is None

    def send(self, message, wait=ANSWER_S):
        """One at a time: a pipe takes long messages in pieces."""
        rest = memoryview(packed(message) + b"\n")
        if not self.writing.acquire(timeout=wait):
            raise Unanswered("the server does not read what it is sent")
        try:
            while rest:
                rest = rest[self.process.stdin.write(rest):]
        except (OSError, ValueError):
            # Its last words may still be on their way. One that has closed its input takes no call any more.
            if not self.deaf:
                self.deaf = True
                ends = threading.Timer(1, self.over)
                ends.daemon = True
                ends.start()
            raise Unanswered(ENDED) from None
        finally:
            self.writing.release()

    def ask(self, message, wait=ANSWER_S):
        box = queue.Queue(1)
        with self.lock:
            if self.waiting is None:
                raise Unanswered(ENDED)
            self.next += 1
            number, own = self.next, packed(message["id"])
            self.waiting[number] = box
            self.numbers[own] = number
        try:
            self.send({**message, "id": number}, wait)
            answer = box.get(timeout=wait)
        except queue.Empty:
            raise Unanswered(f"the server did not answer within {wait} s") from None
        finally:
            with self.lock:
                if self.waiting:
                    self.waiting.pop(number, None)
                if self.numbers.get(own) == number:
                    del self.numbers[own]
        if answer is None:
            raise Unanswered(ENDED)
        return {**answer, "id": message["id"]}

    def cancel(self, message):
        """The server knows a call by its number. Whoever is cancelled need not answer, so this does. What is over already is nothing
        to it."""
        params = message.get("params")
        if not isinstance(params, dict):
            return
        with self.lock:
            number = self.numbers.get(packed(params.get("requestId")))
        if number is None:
            return
        self.send({**message, "params": {**params, "requestId": number}})
        with self.lock:
            box = self.waiting.pop(number, None) if self.waiting else None
        if box:
            box.put({"jsonrpc": "2.0", "error": {"code": -32000, "message": "the call was cancelled"}})

    def face(self):
        """What a server that knows the handshake only said in it; {} of one that speaks the stateless era itself."""
        with self.facing:
            if self.hello is not None:
                return self.hello
            global probe_ends_it
            if self.waiting is None:
                raise Unsent(ENDED)
            probed = not probe_ends_it
            if probed and self.knows_the_stateless_era():
                self.hello = {}
                return self.hello
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": WHO}
            answer = self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, HELLO_S)
            if isinstance(answer.get("result"), dict):
                self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
                self.hello = answer["result"]
                return self.hello
            # It was something else that ended the one before.
            probe_ends_it = False
            if not probed and self.knows_the_stateless_era():
                self.hello = {}
                return self.hello
            raise Unanswered("the server refuses the handshake")

    def knows_the_stateless_era(self):
        global probe_ends_it
        meta = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": WHO}
        meta = {"io.modelcontextprotocol/" + name: value for name, value in meta.items()}
        try:
            return "result" in self.ask({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta}}, PROBE_S)
        except Unanswered:
            if self.alive():
                return False  # some say nothing before the handshake
        if not probe_ends_it:
            # The probe's fault, so the next one need not wait.
            probe_ends_it = True
            self.over()
            self.starts.good()
        raise Unsent(ENDED)

    def ask_without_session(self, message):
        """A request of the stateless era."""
        hello = self.face()
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
        result = answer.get("result")
        if isinstance(result, dict):  # what the newer revision asks for
            result.setdefault("resultType", "complete")
            if message["method"].endswith("/list") or message["method"] in ("resources/read", "server/discover"):
                result.setdefault("ttlMs", 0)
                result.setdefault("cacheScope", "private")
        return answer

    def end(self):
        self.asked_to_end = True
        try:
            if self.writing.acquire(timeout=2):
                self.process.stdin.close()
                self.writing.release()
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


def living(key):
    """The session, if its process lives."""
    session = sessions.get(key)
    if session is not None and not session.alive():
        del sessions[key]
        return None
    return session


def opened(key):
    """The session, made if it is not there. The one that was not used for longest makes room; its client begins anew."""
    session = living(key)
    sessions.pop(key, None)
    if session is None:
        starts = with_session if key else without_session
        starts.may()
        if len(sessions) >= MAX:
            idle = next((k for k, s in sessions.items() if k and not s.waiting), None)
            if idle is None:
                raise Unanswered("too many sessions")
            threading.Thread(target=sessions.pop(idle).end, daemon=True).start()
        try:
            session = Session(starts)
        except (OSError, RuntimeError) as error:
            raise Unanswered(f"the server cannot be started: {error}") from None
    sessions[key] = session  # at the end: used last
    return session


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=None, headers=()):
        data = b"" if body is None else packed(body)
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

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_MAX:
            self.close_connection = True
            return self.fail(413, "the body has no length or is too long")
        try:
            message = parsed(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self.fail(400, "the body is not JSON")
        if not isinstance(message, dict):
            return self.fail(400, "the body is not one message")
        key, headers = self.headers.get("Mcp-Session-Id", ""), []
        fresh = message.get("method") == "initialize"
        if fresh:
            key = secrets.token_hex(16)
            headers = [("Mcp-Session-Id", key)]
        with sessions_lock:
            if not fresh and key and living(key) is None:
                return self.fail(404, "no such session", message.get("id"))
            # A client without sessions has one process for all its calls.
            try:
                session = opened(key)
            except Unanswered as reason:
                return self.fail(503, str(reason), message.get("id"))
        try:
            if "id" not in message or "method" not in message:
                # Without sessions clients share ids, and it cannot be told whose call is meant.
                if message.get("method") != CANCELLED:
                    session.send(message)
                elif key:
                    session.cancel(message)
                return self.reply(202, None, headers)
            answer = session.ask(message) if key else self.ask_without_session(session, message)
        except Unanswered as reason:
            return self.fail(502, str(reason), message.get("id"))
        self.reply(200, answer, headers)

    def ask_without_session(self, session, message):
        try:
            return session.ask_without_session(message)
        except Unsent:
            with sessions_lock:
                session = opened("")
            return session.ask_without_session(message)

    def do_GET(self):
        self.fail(405, "POST and DELETE only: there is no stream to listen to")

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
    probe = Session(without_session)
    try:
        code = probe.process.wait(0.3)
        sys.exit(code or 1)
    except subprocess.TimeoutExpired:
        sessions[""] = probe
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Server(("0.0.0.0", PORT), Handler).serve_forever()


main()
