"""What the benchmark hosts, and runs beside it without a sandbox: a tool that answers what it is sent."""

import os

import uvicorn
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("bench-server")


@mcp.tool()
async def echo(text: str) -> str:
    """Answer the text."""
    return text


if __name__ == "__main__":
    # Without a sandbox it may listen on loopback only, and on whatever port is free.
    host, port = os.environ.get("BENCH_LISTEN", "0.0.0.0:8000").split(":")
    uvicorn.run(mcp.streamable_http_app(), host=host, port=int(port), log_level="warning")
