from mcp.server.fastmcp import FastMCP
import uvicorn

mcp = FastMCP("bench-server")


@mcp.tool()
async def get_data(query: str) -> str:
    """Fetch data for the given query."""
    return f"Result for: {query}"


if __name__ == "__main__":
    uvicorn.run(mcp.streamable_http_app(), host="0.0.0.0", port=8000)
