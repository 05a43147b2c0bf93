"""Tools of the agent, called from a script; the calls go over descriptor 3."""
import json as _json
import os as _os
import shlex as _shlex
import socket as _socket
import threading as _threading
import time as _time

_turn = _threading.Lock()
_line = _socket.socket(fileno=_os.dup(int(_os.environ["HERMITCRAB_RPC"])))


def _call(tool, args):
    with _turn:
        _line.sendall(_json.dumps({"tool": tool, "args": args}).encode() + b"\n")
        answer = bytearray()
        while not answer.endswith(b"\n"):
            piece = _line.recv(65536)
            if not piece:
                raise RuntimeError("Agent process disconnected")
            answer += piece
    value = _json.loads(answer)
    if isinstance(value, str):
        try:
            return _json.loads(value)
        except ValueError:
            return value
    return value


def json_parse(text):
    return _json.loads(text, strict=False)


def shell_quote(text):
    return _shlex.quote(text)


def retry(fn, max_attempts=3, delay=2):
    for attempt in range(max_attempts):
        try:
            return fn()
        except Exception:
            if attempt + 1 == max_attempts:
                raise
            _time.sleep(delay * 2**attempt)


def terminal(command, timeout=None, workdir=None):
    return _call("terminal", {"command": command, "timeout": timeout, "workdir": workdir})


def read_file(path, offset=1, limit=500):
    return _call("read_file", {"path": path, "offset": offset, "limit": limit})


def write_file(path, content, cross_profile=False):
    return _call("write_file", {"path": path, "content": content})


def search_files(pattern, target="content", path=".", file_glob=None, limit=50, offset=0, output_mode="content", context=0):
    return _call("search_files", {
        "pattern": pattern, "target": target, "path": path, "file_glob": file_glob,
        "limit": limit, "offset": offset, "output_mode": output_mode, "context": context,
    })


def patch(path=None, old_string=None, new_string=None, replace_all=False, mode="replace", patch=None, cross_profile=False):
    return _call("patch", {
        "path": path, "old_string": old_string, "new_string": new_string,
        "replace_all": replace_all, "mode": mode, "patch": patch,
    })
