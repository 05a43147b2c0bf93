"""A server of tools for cases, without anybody's SDK: one message a line.

Its first argument says how it behaves as a server, its tools do what their
names say. It lies in the workspace of a world and is started there only.
"""

import json
import os
import socket
import sys
import time

MANNER = sys.argv[1] if len(sys.argv) > 1 else "well"
# A picture of one dot.
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
calls = 0


def form(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


WORDS = {"type": "string", "description": "any words"}
NUMBER = {"type": "integer"}
TOOLS = [
    {"name": "echo", "description": "Gives the words back.", "inputSchema": form(["words"], words=WORDS)},
    {"name": "add", "description": "Adds two numbers.", "inputSchema": form(["a", "b"], a=NUMBER, b=NUMBER)},
    {
        "name": "find-notes.v2",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "definitions": {"kind": {"enum": ["new", "old"]}},
            "properties": {
                "kind": {"$ref": "#/definitions/kind"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Limit"},
            },
            "required": ["kind", "nothing"],
        },
    },
    {
        "name": "order",
        "description": "Says what it was given.",
        "inputSchema": form(
            count=NUMBER,
            price={"type": "number"},
            fast={"type": "boolean"},
            tags={"type": "array", "items": {"type": "string"}},
            lines={"type": "array", "items": form(of={"type": "array"}, about={"type": "string"})},
            note={"anyOf": [{"type": "string"}, {"type": "null"}]},
            either={"type": ["integer", "string"]},
            more={"type": "object"},
        ),
    },
    {
        "name": "look",
        "title": "Look around",
        "description": "Looks. \u4f60\u597d \U0001f980",
        "inputSchema": {"type": "object"},
        "outputSchema": form(["seen"], seen=NUMBER),
        "annotations": {"title": "Look", "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
    },
]


def text(*parts):
    return {"content": [{"type": "text", "text": part} for part in parts]}


def resource(**fields):
    return {"type": "resource", "resource": {"uri": "desk:a%20b", **fields}}


def called(name, args):
    """What comes of a call: a result, or an error of the protocol."""
    global calls
    calls += 1
    if name == "echo":
        return text(args["words"])
    if name == "add":
        if not all(type(args.get(key)) is int for key in ("a", "b")):
            return {**text(f"a and b are numbers, not {json.dumps(args)}"), "isError": True}
        return {**text(str(args["a"] + args["b"])), "structuredContent": {"sum": args["a"] + args["b"]}}
    if name == "find-notes.v2":
        return text(*(f"{args.get('kind')} {number}" for number in range(args.get("limit") or 2)))
    if name == "look":
        return {"content": [], "structuredContent": {"seen": 3, "who": ["\u4f60", None, 1.5, True]}}
    if name == "order":
        return text(json.dumps(args))
    if name == "count":
        return text(str(calls))
    if name == "parts":
        return text("a", "", "b\nc", " ")
    if name == "nothing":
        return {"content": []}
    if name == "fail":
        return {**text("no such note: ", "a.txt (token=abc)"), "isError": True}
    if name == "huge":
        return text("0123456789" * args["tens"])
    if name == "picture":
        return {"content": [{"type": "text", "text": "a dot"}, {"type": "image", "data": DOT, "mimeType": "image/png"}]}
    if name == "false_picture":
        return {"content": [{"type": "image", "data": "PGh0bWw+", "mimeType": "image/png"}, *text("a page")["content"]]}
    if name == "sound":
        return {"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]}
    if name == "link":
        return {"content": [{"type": "resource_link", "uri": "desk:notes/1", "name": "one", "mimeType": "text/plain"}]}
    if name == "page":
        return {"content": [resource(text="inside", mimeType="text/plain")]}
    if name == "blob":
        return {"content": [resource(blob="AAEC", mimeType="application/pdf")]}
    if name == "die":
        os._exit(3)
    if name == "hang":
        time.sleep(600)
    if name == "babble":
        print("this is no message\n{]\n\n[1]", flush=True)
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "by the way"}})
        say({"jsonrpc": "2.0", "id": 987654, "result": {"content": []}})
        return text("all the same")
    if name == "write":
        with open(args["path"], "w") as file:
            file.write(args["words"])
        return text("written")
    if name == "read":
        with open(args["path"]) as file:
            return text(file.read())
    if name == "connect":
        socket.create_connection(("127.0.0.1", args["port"]), 2).close()
        return text("connected")
    if name == "word":
        return text(os.environ.get("WORD", "none"), os.environ.get("HOME", "none"))
    raise LookupError(f"Unknown tool: {name}")


def say(message):
    print(json.dumps(message, ensure_ascii=False), flush=True)


def listed():
    if MANNER == "shelf":
        return [{"name": "echo", "description": "Says who it is.", "inputSchema": form(["words"], words=WORDS)}]
    more = ["count", "parts", "nothing", "fail", "huge", "picture", "false_picture", "sound", "link", "page", "blob", "die", "hang"]
    more += ["babble", "write", "read", "connect", "word", "refuse"]
    return TOOLS + [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in more]


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "desk", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list" and MANNER == "pages":
        # One tool a page.
        at = int(params.get("cursor") or 0)
        page = {"tools": TOOLS[at : at + 1]}
        return {**page, "nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else page
    if method == "tools/list":
        return {"tools": listed()}
    if method == "tools/call" and MANNER == "shelf":
        return text(f"the shelf: {params['arguments']['words']}")
    if method == "tools/call":
        return called(params["name"], params.get("arguments") or {})
    raise LookupError(f"Method not found: {method}")


def serve():
    print("a word for nobody", file=sys.stderr, flush=True)
    if MANNER == "leaves":
        sys.exit(3)
    if MANNER == "babbles":
        print("welcome to the desk\n{]", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message or MANNER == "silent":
            continue
        told = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            told["result"] = answer(message)
        except LookupError as error:
            told["error"] = {"code": -32602, "message": str(error.args[0])}
        except OSError as error:
            told["result"] = {**text(type(error).__name__), "isError": True}
        say(told)


serve()
