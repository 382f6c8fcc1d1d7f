"""py2.py legacy|auto|2026-07-28 URL CALLS ['Header: value' ...]   mcp 2.x; output as in common.mjs"""
import asyncio, json, sys
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

era, url, calls, *lines = sys.argv[1:]
headers = {l.split(":", 1)[0].strip(): l.split(":", 1)[1].strip() for l in lines}


async def model(context, params):
    return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="42"), model="m")


async def main():
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=era, read_timeout_seconds=20, sampling_callback=model) as c:
            await c.list_tools()
            for name, args in json.loads(calls):
                try:
                    r = await c.call_tool(name, args)
                    line = {"outcome": "tool_error" if r.is_error else "result", "text": str(r.content)}
                except Exception as e:
                    line = {"outcome": "throw", "text": f"{type(e).__name__} {e}"}
                try:
                    line["tools"] = len((await c.list_tools()).tools)
                except Exception:
                    line["tools"] = -1
                print(json.dumps(line), flush=True)


asyncio.run(main())
