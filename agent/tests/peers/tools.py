"""A server of tools, made with the official SDK: over HTTP, where the port is its
argument, or with `--stdio` over its input and output."""

import sys
from typing import Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

server = MCPServer("peer")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def say(words: str) -> str:
    """Says it again."""
    return words


@server.tool()
def fail() -> str:
    """Does not work."""
    raise ValueError("it does not work")


@server.resource("peer://notes/one", mime_type="text/plain")
def one() -> str:
    """The first note."""
    return "grüße 🦀"


@server.resource("peer://notes/two", mime_type="application/pdf")
def two() -> bytes:
    return b"%PDF"


@server.prompt()
def greet(who: str) -> str:
    """Greets somebody."""
    return f"Greet {who}."


class Trip(BaseModel):
    nights: int = Field(ge=1, le=9, description="how long")
    room: Literal["single", "double"]
    quiet: bool = False


if "--asks" in sys.argv:

    @server.tool()
    async def book(where: str, ctx: Context) -> str:
        """Books a trip, once its user has said how long."""
        asked = await ctx.elicit(f"Book {where}?", Trip)
        if asked.action != "accept":
            return f"{asked.action}: nothing booked"
        trip = asked.data
        return f"{trip.nights} nights, {trip.room}, quiet {trip.quiet}"


if "--stdio" in sys.argv:
    server.run("stdio")
    sys.exit(0)
server.run(
    "streamable-http",
    host="127.0.0.1",
    port=int(sys.argv[1]),
    json_response="--json" in sys.argv,
    stateless_http="--stateless" in sys.argv,
)
