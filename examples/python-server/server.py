"""A small MCP server to put Weir in front of: python server.py, then weir proxy --upstream http://127.0.0.1:8000/mcp"""
import os

import uvicorn
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("my-server")


@mcp.tool()
async def get_data(query: str) -> str:
    """Fetch data for the given query."""
    return f"Result for: {query}"


if __name__ == "__main__":
    uvicorn.run(mcp.streamable_http_app(), host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
