//! mcp-codec
