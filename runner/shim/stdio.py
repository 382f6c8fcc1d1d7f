"""Speaks Streamable HTTP on a port and JSON lines to a stdio MCP server: one process per session, and one for all requests
of the stateless era, which get a handshake of the shim's own if the server knows nothing else.

A call is answered as JSON. Where the server says something else first, it is answered as a stream of events:

    caller                    shim                     server
      POST tools/call  ---->    id 7           ---->
           <----  event         progress on 7  <----
           <----  event         elicitation/create 1 <---
      POST answer to 1 ---->                   ---->       of the same session, or it is refused
           <----  event, end    answer to 7    <----

Standard library only, started with -I: nothing of the tenant's is imported here. It is not a wall (the server could
as well have listened itself); the sandbox is.
"""
import collections, io, json, math, os, queue, re, secrets, select, signal, socket, subprocess, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSION_KB, SESSIONS_MAX = 48 * 1024, 64
BODY_MAX = 8 * 1024 * 1024
# A message as long as the gateway may be told to take. What a line says first and last is enough to tell whose answer it is.
LINE_MAX, ENDS_KEPT, READ_BYTES = 64 * 1024 * 1024, 200, 256 * 1024
# Refusals that a server has not read yet.
REFUSED_MAX = 1000
# Of what a server says during a call, as far as its caller has not read it.
EVENTS_MAX, EVENTS_BYTES_MAX = 1000, 1024 * 1024
# What a server may have asked a client that has not answered.
ASKED_MAX = 64
# How often it is looked whether a caller who is told events is still there, and whether the server still reads.
LOOK_S = 1
# How long one that reads no more may take to answer what it has read before.
DEAF_S = 2
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

NOT_HERE = {"code": -32601, "message": "no client can be asked this here"}
WHO = {"name": "weir", "version": "1"}

PORT, COMMAND = int(sys.argv[1]), sys.argv[3:]


class Unanswered(Exception):
    """There is no answer, and why."""


class Unsent(Unanswered):
    """The same, and the call was not sent: another process may take it."""


class Gone(Exception):
    """A caller has closed its connection."""


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


def refusal(text, id):
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": text}}


def params_of(message):
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def numbered(message, number):
    """With a number of the shim's own for its id, and for the token of its progress: those of different clients may be alike.
    And the client's token, if it gave one."""
    params = params_of(message)
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get("progressToken") is None:
        return {**message, "id": number}, None
    params = {**params, "_meta": {**meta, "progressToken": number}}
    return {**message, "id": number, "params": params}, meta["progressToken"]


def may_be_an_id(id):
    return type(id) is int or isinstance(id, str) and len(id) <= ENDS_KEPT


class Call:
    """One under way: what is heard of it, events as bytes and last its answer, and who takes events, if anybody does."""

    def __init__(self, caller):
        self.caller, self.number, self.token = caller, 0, None
        self.heard, self.bytes = queue.SimpleQueue(), 0


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
        # Calls by their numbers, the one that began last at the end.
        self.waiting, self.lock, self.next = {}, threading.Lock(), 0
        # The numbers of a client's calls, by its own ids.
        self.numbers = {}
        # Whether all calls are one client's, and what that can be asked. Without sessions they are anybody's.
        self.of_one, self.can = starts is with_session, set()
        # What the server asked and the client has not answered, by the server's ids: on which call, and when. And what came to
        # nothing lately: an answer to that is late, not wrong.
        self.asked, self.past = {}, collections.deque(maxlen=ASKED_MAX)
        self.lost = 0
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
                call = self.waiting.pop(message["id"], None) if known else None
            if call:
                call.heard.put(message)
        elif isinstance(message, dict) and "method" in message and not self.pass_on(message) and "id" in message:
            # Nobody would answer it, and the call that it belongs to would wait.
            self.refuse(message["id"], message["method"])

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
            calls = [waiting.pop(number) for number in mine]
        for call in calls:
            call.heard.put({"jsonrpc": "2.0", "error": {"code": -32000, "message": reason}})

    def spoiled(self, line):
        """No JSON: a stray print, or an answer that somebody waits for."""
        number = answered(line)
        with self.lock:
            call = self.waiting.pop(number, None) if self.waiting and number else None
        if call:
            call.heard.put({"jsonrpc": "2.0", "error": {"code": -32603, "message": "the server's answer is not JSON"}})

    def pass_on(self, message):
        """Whether a notification or a request goes to a caller."""
        with self.lock:
            call, message = self.belonging(message)
            if call is None or "id" in message and not self.may_ask(message):
                return False
            event = b"data: " + packed(message) + b"\n\n"
            if call.heard.qsize() >= EVENTS_MAX or call.bytes + len(event) > EVENTS_BYTES_MAX:
                self.lost += 1
                if self.lost & (self.lost - 1) == 0:  # 1, 2, 4, 8...
                    print(f"{self.lost} messages of the server were lost: too long, or not read by their caller", file=sys.stderr, flush=True)
                return False
            if "id" in message:
                self.asked[packed(message["id"])] = (call.number, time.monotonic())
            elif message["method"] == CANCELLED:
                self.drop(packed(params_of(message).get("requestId")))
            call.bytes += len(event)
            call.heard.put(event)
            return True

    def belonging(self, message):
        """The call that a message belongs to, as far as that can be seen, and the message in its client's words."""
        calls = self.waiting or {}
        if message["method"] == "notifications/progress":
            params = params_of(message)
            number = params.get("progressToken")
            call = calls.get(number) if type(number) is int else None
            if call is None or call.caller is None or call.token is None:
                return None, message
            return call, {**message, "params": {**params, "progressToken": call.token}}
        last = next((call for call in reversed(calls.values()) if call.caller), None)
        return last if self.of_one else None, message

    def may_ask(self, request):
        """Whether the client can be asked this: it said so in its handshake. A handshake of Weir's own says nothing, as nobody
        could answer."""
        id, method = request["id"], request["method"]
        if not may_be_an_id(id) or not isinstance(method, str) or method.split("/")[0] not in self.can:
            return False
        oldest = next(iter(self.asked), None)
        if len(self.asked) >= ASKED_MAX and time.monotonic() - self.asked[oldest][1] > ANSWER_S:
            self.drop(oldest)
        return len(self.asked) < ASKED_MAX and packed(id) not in self.asked

    def drop(self, key):
        """Nobody waits for an answer to this any more."""
        if self.asked.pop(key, None):
            self.past.append(key)

    def answers(self, message):
        """The client's answer goes to the server, if that has asked; one that is late goes nowhere. False: it has not."""
        key = packed(message.get("id"))
        with self.lock:
            if self.asked.pop(key, None) is None:
                return key in self.past
        self.send(message)
        return True

    def left(self, number):
        """A caller has gone who was told events: nobody will hear the answer, or answer what was asked on its stream."""
        with self.lock:
            mine = [key for key, (on, _) in self.asked.items() if on == number]
            for key in mine:
                self.drop(key)
        try:
            for key in mine:
                self.send({"jsonrpc": "2.0", "id": json.loads(key), "error": NOT_HERE})
            self.send({"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": number, "reason": "the client has gone"}})
        except Unanswered:
            pass  # so has the server

    def refuse(self, id, method):
        """Not sent by the reader: the server may not read before it is read."""
        if not may_be_an_id(id):
            return
        outcome = {"result": {}} if method == "ping" else {"error": NOT_HERE}
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
        for call in waiting.values():
            call.heard.put(None)
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
            self.reads_no_more()
            raise Unanswered(ENDED) from None
        finally:
            self.writing.release()

    def reads_no_more(self):
        """One that has closed its input takes no call any more. Its last words may still be on their way."""
        with self.lock:
            if self.deaf:
                return
            self.deaf = True
        ends = threading.Timer(DEAF_S, self.over)
        ends.daemon = True
        ends.start()

    def look(self):
        """Whoever closes its input forgets what it was sent and had not read, so that a call may be lost without a word."""
        if not self.writing.acquire(blocking=False):
            return  # whoever is sending will see it
        try:
            poll = select.poll()
            poll.register(self.process.stdin, 0)
            closed = poll.poll(0)
        except ValueError:
            return  # it is being ended
        finally:
            self.writing.release()
        if closed:
            self.reads_no_more()

    def ask(self, message, wait=ANSWER_S, caller=None):
        """The answer. What is said before it goes to the caller, if there is one who takes it."""
        call, own = Call(caller), packed(message["id"])
        with self.lock:
            if self.waiting is None:
                raise Unanswered(ENDED)
            self.next += 1
            number = call.number = self.next
            ours, call.token = numbered(message, number)
            self.waiting[number] = call
            self.numbers[own] = number
        try:
            self.send(ours, wait)
            answer = self.heard_of(call, wait)
        except Gone:
            self.left(number)
            raise
        finally:
            with self.lock:
                if self.waiting:
                    self.waiting.pop(number, None)
                if self.numbers.get(own) == number:
                    del self.numbers[own]
        if answer is None:
            raise Unanswered(ENDED)
        return {**answer, "id": message["id"]}

    def heard_of(self, call, wait):
        until = time.monotonic() + wait
        while True:
            rest = until - time.monotonic()
            looks = call.caller and call.caller.told
            try:
                said = call.heard.get(timeout=max(0, min(rest, LOOK_S)))
            except queue.Empty:
                if time.monotonic() >= until:
                    raise Unanswered(f"the server did not answer within {wait} s") from None
                if looks:
                    call.caller.look()
                self.look()
                continue
            if not isinstance(said, bytes):
                return said
            call.caller.tell(said)
            with self.lock:
                call.bytes -= len(said)

    def cancel(self, message):
        """The server knows a call by its number. Whoever is cancelled need not answer, so this does. What is over already is nothing
        to it."""
        params = params_of(message)
        with self.lock:
            number = self.numbers.get(packed(params.get("requestId")))
        if number is None:
            return
        self.send({**message, "params": {**params, "requestId": number}})
        with self.lock:
            call = self.waiting.pop(number, None) if self.waiting else None
        if call:
            call.heard.put({"jsonrpc": "2.0", "error": {"code": -32000, "message": "the call was cancelled"}})

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

    def ask_without_session(self, message, caller):
        """A request of the stateless era."""
        hello = self.face()
        if not hello:
            return self.ask(message, caller=caller)
        if message["method"] == "server/discover":
            result = {"supportedVersions": [STATELESS], "capabilities": hello.get("capabilities", {})}
            if "instructions" in hello:
                result["instructions"] = hello["instructions"]
            if "serverInfo" in hello:
                result["_meta"] = {"io.modelcontextprotocol/serverInfo": hello["serverInfo"]}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        else:
            answer = self.ask(message, caller=caller)
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


class Caller:
    """Whoever takes events before an answer. With the first one the answer becomes a stream."""

    def __init__(self, handler):
        self.handler, self.told = handler, False

    def tell(self, event, end=b""):
        try:
            if not self.told:
                self.told = True
                self.handler.send_response(200)
                self.handler.send_header("Content-Type", "text/event-stream")
                self.handler.send_header("Transfer-Encoding", "chunked")
                self.handler.end_headers()
            self.handler.wfile.write(b"%x\r\n%b\r\n%b" % (len(event), event, end))
        except OSError:
            raise Gone from None

    def end(self, answer):
        self.tell(b"data: " + packed(answer) + b"\n\n", b"0\r\n\r\n")

    def look(self):
        """A connection that has ended can be read to its end; what a caller may have sent already is left there."""
        try:
            gone = not self.handler.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            gone = True
        if gone:
            raise Gone


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an event does not wait for the one before to arrive

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
        self.reply(status, refusal(text, id))

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
        if fresh:
            can = params_of(message).get("capabilities")
            session.can = set(can) if isinstance(can, dict) else set()
        # What the handshake brings with it has no place among events: the id of the session.
        events = not fresh and "text/event-stream" in self.headers.get("Accept", "").lower()
        caller = Caller(self) if events else None
        try:
            if "method" not in message:
                if not session.answers(message):
                    return self.fail(400, "the server has asked nothing with this id", message.get("id"))
                return self.reply(202)
            if "id" not in message:
                # Without sessions clients share ids, and it cannot be told whose call is meant.
                if message["method"] != CANCELLED:
                    session.send(message)
                elif key:
                    session.cancel(message)
                return self.reply(202, None, headers)
            answer = session.ask(message, caller=caller) if key else self.ask_without_session(session, message, caller)
        except Unanswered as reason:
            if caller and caller.told:
                return caller.end(refusal(str(reason), message["id"]))
            return self.fail(502, str(reason), message.get("id"))
        if caller and caller.told:
            return caller.end(answer)
        self.reply(200, answer, headers)

    def ask_without_session(self, session, message, caller):
        try:
            return session.ask_without_session(message, caller)
        except Unsent:
            with sessions_lock:
                session = opened("")
            return session.ask_without_session(message, caller)

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
