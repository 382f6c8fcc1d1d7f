"""An MCP server for Weir: Streamable HTTP on port 8000."""

import os
from pathlib import Path

import uvicorn
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("example")


def read_secret(name: str, default: str = "") -> str:
    """A secret set with `weir secret set`, or an environment variable of that name."""
    path = Path("/run/secrets") / name
    return path.read_text().strip() if path.exists() else os.environ.get(name, default)


@mcp.tool()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@mcp.tool()
def has_secret(name: str) -> bool:
    """Say whether a secret is there. Its value stays in the sandbox."""
    return bool(read_secret(name))


if __name__ == "__main__":
    uvicorn.run(mcp.streamable_http_app(), host="0.0.0.0", port=8000)
