"""A server of tools over HTTP, made with the official SDK: the port is its argument."""

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


server.run(
    "streamable-http",
    host="127.0.0.1",
    port=int(sys.argv[1]),
    json_response="--json" in sys.argv,
    stateless_http="--stateless" in sys.argv,
)
