"""inspector.py http|sse legacy|modern URL CALLS ['Header: value' ...]   the Inspector's command line; output as in common.mjs"""
import json, os, subprocess, sys

kind, era, url, calls, *lines = sys.argv[1:]
base = ["node", os.environ["WEIR_KIT"] + "/inspector/node_modules/.bin/mcp-inspector", "--cli", url, "--transport", kind]
if kind == "http":
    base += ["--protocol-era", era]
for l in lines:
    base += ["--header", l]


def inspector(*args):
    return subprocess.run(base + list(args), capture_output=True, text=True, timeout=60)


for name, args in json.loads(calls):
    flags = [x for k, v in args.items() for x in ("--tool-arg", f"{k}={v if isinstance(v, str) else json.dumps(v)}")]
    r = inspector("--method", "tools/call", "--tool-name", name, *flags)
    try:
        result = json.loads(r.stdout)
        line = {"outcome": "tool_error" if result.get("isError") else "result", "text": json.dumps(result.get("content"))}
    except ValueError:
        line = {"outcome": "throw", "text": (r.stdout + r.stderr)[-400:]}
    try:
        line["tools"] = len(json.loads(inspector("--method", "tools/list").stdout)["tools"])
    except (ValueError, KeyError):
        line["tools"] = -1
    print(json.dumps(line), flush=True)
