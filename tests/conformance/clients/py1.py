"""py1.py http|sse URL CALLS ['Header: value' ...]   mcp 1.x; output as in common.mjs"""
import asyncio, json, sys
from datetime import timedelta
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.types import ElicitResult
from mcp.client.streamable_http import streamablehttp_client

kind, url, calls, *lines = sys.argv[1:]
headers = {l.split(":", 1)[0].strip(): l.split(":", 1)[1].strip() for l in lines}


async def answer(_, asked):
    return ElicitResult(action="accept", content={"name": "py1"})


async def main():
    # Who says that it can be asked is told more tools by some servers: only where a call is to ask.
    can = {"elicitation_callback": answer} if any(name.startswith("ask_") for name, _ in json.loads(calls)) else {}
    transport = sse_client if kind == "sse" else streamablehttp_client
    async with transport(url, headers=headers) as (r, w, *_), ClientSession(r, w, read_timeout_seconds=timedelta(seconds=20), **can) as c:
        await c.initialize()
        await c.list_tools()
        for name, args in json.loads(calls):
            told = []

            async def tell(progress, total, message):
                told.append(progress)

            try:
                x = await c.call_tool(name, args, progress_callback=tell)
                line = {"outcome": "tool_error" if x.isError else "result", "text": str(x.content)}
            except Exception as e:
                line = {"outcome": "throw", "text": f"{type(e).__name__} {e}"}
            try:
                line["tools"] = len((await c.list_tools()).tools)
            except Exception:
                line["tools"] = -1
            print(json.dumps({**line, "told": told}), flush=True)


asyncio.run(main())
