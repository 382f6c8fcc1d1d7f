"""FastMCP's own proxy in front of an MCP server: fastmcp_proxy.py URL PORT."""

import sys

from fastmcp.server import create_proxy

proxy = create_proxy(sys.argv[1], name="peer")
proxy.run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[2]),
    path="/mcp",
    show_banner=False,
    log_level="ERROR",
)
