"""Tools of the agent, called from a script; the calls go over descriptor 3."""
# Scripts that take everything by `import *` get these modules with the tools, and use them.
import json
import os
import shlex
import socket
import threading
import time

_turn = threading.Lock()
_line = socket.socket(fileno=os.dup(int(os.environ["HERMITCRAB_RPC"])))


def _call(tool, args):
    with _turn:
        _line.sendall(json.dumps({"tool": tool, "args": args}).encode() + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            piece = _line.recv(65536)
            if not piece:
                raise RuntimeError("Agent process disconnected")
            answer += piece
    value = json.loads(answer)
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def json_parse(text: str):
    return json.loads(text, strict=False)


def shell_quote(s: str) -> str:
    return shlex.quote(s)


def retry(fn, max_attempts=3, delay=2):
    failure = None
    for attempt in range(max_attempts):
        try:
            return fn()
        except Exception as why:
            failure = why
            if attempt + 1 < max_attempts:
                time.sleep(delay * 2**attempt)
    raise failure


def terminal(command: str, timeout: int = None, workdir: str = None):
    return _call("terminal", {"command": command, "timeout": timeout, "workdir": workdir})


def read_file(path: str, offset: int = 1, limit: int = 500):
    return _call("read_file", {"path": path, "offset": offset, "limit": limit})


def write_file(path: str, content: str, cross_profile: bool = False):
    return _call("write_file", {"path": path, "content": content})


def search_files(
    pattern: str, target: str = "content", path: str = ".", file_glob: str = None,
    limit: int = 50, offset: int = 0, output_mode: str = "content", context: int = 0,
):
    return _call("search_files", {
        "pattern": pattern, "target": target, "path": path, "file_glob": file_glob,
        "limit": limit, "offset": offset, "output_mode": output_mode, "context": context,
    })


def patch(
    path: str = None, old_string: str = None, new_string: str = None, replace_all: bool = False,
    mode: str = "replace", patch: str = None, cross_profile: bool = False,
):
    return _call("patch", {
        "path": path, "old_string": old_string, "new_string": new_string,
        "replace_all": replace_all, "mode": mode, "patch": patch,
    })


def web_search(query: str, limit: int = 5):
    return _call("web_search", {"query": query, "limit": limit})


def web_extract(urls: list, char_limit: int = None):
    return _call("web_extract", {"urls": urls, "char_limit": char_limit})
