"""A small MCP server for Weir to host: weir server deploy examples/hosted-server --tenant TENANT

It comes out to nothing but the names on its allowlist: --egress api.github.com"""

import httpx
import uvicorn
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("my-server")


@mcp.tool()
async def get_data(query: str) -> str:
    """Fetch data for the given query."""
    return f"Result for: {query}"


@mcp.tool()
async def fetch(url: str) -> str:
    """Fetch the beginning of a page."""
    try:
        async with httpx.AsyncClient(timeout=10) as client:
            page = await client.get(url)
    except httpx.HTTPError as error:
        return f"no connection: {error}"
    return f"status {page.status_code}: {page.text[:500]}"


if __name__ == "__main__":
    uvicorn.run(mcp.streamable_http_app(), host="0.0.0.0", port=8000)
