"""A server of tools, made with the official SDK: over HTTP, where the port is its
argument, or with `--stdio` over its input and output."""

import sys

from mcp.server import MCPServer

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
