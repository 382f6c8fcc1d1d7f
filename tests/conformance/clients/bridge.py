"""bridge.py CALLS -- COMMAND...   speaks 2025-11-25 over stdio to a bridge or a server; output as in common.mjs"""
import json, queue, subprocess, sys, threading

i = sys.argv.index("--")
calls = json.loads(sys.argv[1])
p = subprocess.Popen(sys.argv[i + 1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
answers = queue.Queue()


def read():
    for line in p.stdout:
        if line.startswith("{"):
            answers.put(json.loads(line))
    answers.put(None)


threading.Thread(target=read, daemon=True).start()
next_id = 0


def send(message):
    p.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    p.stdin.flush()


def ask(method, params):
    global next_id
    next_id += 1
    send({"id": next_id, "method": method, "params": params})
    while True:
        a = answers.get(timeout=30)
        if a is None:
            raise RuntimeError("the other side closed its stdout")
        if a.get("id") == next_id and "method" not in a:
            return a


ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bridge", "version": "1"}})
send({"method": "notifications/initialized"})
for name, args in calls:
    a = ask("tools/call", {"name": name, "arguments": args})
    r = a.get("result")
    if r is None:
        line = {"outcome": "throw", "text": json.dumps(a["error"])}
    else:
        line = {"outcome": "tool_error" if r.get("isError") else "result", "text": json.dumps(r["content"])}
    line["tools"] = len(ask("tools/list", {}).get("result", {}).get("tools", []))
    print(json.dumps(line), flush=True)
p.stdin.close()
try:
    p.wait(5)
except subprocess.TimeoutExpired:
    p.terminate()
    p.wait(10)
