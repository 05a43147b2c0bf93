"""What the installed Hermes makes of tools of MCP servers, asked directly.

The server itself is a stand-in: a session whose one call gives the answer the
case names. What Hermes offers of a tool, and what it tells of an answer, are its
own functions' doing.
"""

import asyncio
import json
from types import SimpleNamespace


def mcp_tool_offer(given):
    from tools.mcp_tool import _convert_mcp_schema

    tool = SimpleNamespace(
        name=given["tool"], description=given.get("description"), inputSchema=given.get("form")
    )
    offer = _convert_mcp_schema(given["server"], tool)
    return {key: offer[key] for key in ("name", "description", "parameters")}


def _as_object(value):
    """A block of an answer with attributes; data stays data."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: _as_object(part) for key, part in value.items()})
    return value


class McpError(Exception):
    """What the protocol's SDK raises where a server says that it cannot."""


class _Session:
    def __init__(self, given):
        self.given = given

    async def call_tool(self, tool, arguments=None):
        if "refused" in self.given:
            raise McpError(self.given["refused"])
        answer = self.given["answer"]
        return SimpleNamespace(
            content=[_as_object(block) for block in answer.get("content", [])],
            isError=answer.get("isError", False),
            structuredContent=answer.get("structuredContent"),
        )


def mcp_tool_answer(given):
    from tools import mcp_tool

    server = given["server"]
    mcp_tool._ensure_mcp_loop()
    mcp_tool._servers[server] = SimpleNamespace(
        name=server,
        session=_Session(given),
        _rpc_lock=asyncio.Lock(),
        _pending_call_context=None,
    )
    handler = mcp_tool._make_tool_handler(server, given["tool"], 30)
    return {"text": handler({})}


def tool_result_framed(given):
    from agent.tool_dispatch_helpers import make_tool_result_message

    return {"text": make_tool_result_message(given["tool"], given["text"], "c1")["content"]}


_PROBES = {
    "mcp_tool_offer": mcp_tool_offer,
    "mcp_tool_answer": mcp_tool_answer,
    "tool_result_framed": tool_result_framed,
}


def answer(name, text):
    return json.dumps({"decision": "none", "value": _PROBES[name](json.loads(text))})
