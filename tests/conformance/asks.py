"""asks.py   a stdio server of mcp 1.x whose tool `ask` has its client's model answer (sampling)"""
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent

server = FastMCP("asks")


@server.tool()
async def ask(question: str, ctx: Context) -> str:
    content = TextContent(type="text", text=question)
    said = await ctx.session.create_message([SamplingMessage(role="user", content=content)], max_tokens=50)
    return f"the model says {said.content.text}"


server.run()
