"""Batch planning of the installed Hermes, asked directly.

Each function takes a probe's input and returns its value; nothing here decides
anything itself. Paths are made canonical against the working directory and the
links of the world the interpreter is in.
"""

import json
from pathlib import Path
from types import SimpleNamespace

from hermes_shim_probe_place import standing_in


def _path(value):
    """``None``, a path text, or the recorder's ``{"$path": text}``."""
    if isinstance(value, dict):
        value = value["$path"]
    return None if value is None else Path(value)


def _text(path):
    return None if path is None else str(path)


def _scope(raw):
    from agent.tool_dispatch_helpers import _extract_parallel_scope_path

    return _extract_parallel_scope_path("write_file", {"path": raw})


def paths_overlap(given):
    from agent.tool_dispatch_helpers import _paths_overlap

    return {"overlap": _paths_overlap(Path(given["left"]), Path(given["right"]))}


def scope_and_overlap(given):
    from agent.tool_dispatch_helpers import _paths_overlap

    left, right = _scope(given["left"]), _scope(given["right"])
    overlap = None if left is None or right is None else _paths_overlap(left, right)
    return {"left": _text(left), "right": _text(right), "overlap": overlap}


def canonical_path(given):
    from agent.tool_dispatch_helpers import _canonical_path

    raw, *rest = given["args"]
    return {"result": _text(_canonical_path(raw, *(_path(item) for item in rest)))}


def extract_parallel_scope_path(given):
    from agent.tool_dispatch_helpers import _extract_parallel_scope_path

    options = {name: _path(value) for name, value in given.get("kwargs", {}).items()}
    return {"result": _text(_extract_parallel_scope_path(*given["args"], **options))}


def plan_tool_batch_segments(given):
    from agent.tool_dispatch_helpers import _plan_tool_batch_segments

    calls = []
    raw = True
    for index, call in enumerate(given["calls"]):
        arguments = call["arguments"]
        if not isinstance(arguments, str):
            raw = False
            arguments = json.dumps(arguments)
        function = SimpleNamespace(name=call["name"], arguments=arguments)
        calls.append(SimpleNamespace(id=str(index), function=function))
    segments = _plan_tool_batch_segments(calls, execution_cwd=_path(given.get("execution_cwd")))
    # Calls as a model wrote them are counted, calls of a table are named.
    return {
        "segments": [
            [kind, len(members) if raw else [call.id for call in members]]
            for kind, members in segments
        ]
    }


def answer(name, text):
    """The probe's answer as JSON text."""
    given = json.loads(text)
    with standing_in(given.get("cwd")):
        value = globals()[name](given)
    return json.dumps({"decision": "none", "value": value})
