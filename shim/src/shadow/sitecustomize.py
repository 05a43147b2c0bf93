"""Watches the one door through which a live Hermes calls its tools.

Python imports this before anything else when its directory is on the path. It
wraps `model_tools.handle_function_call` when Hermes imports that module, and tells
whoever listens what was called and what came of it. It decides nothing, changes
nothing, waits for nobody, and whatever goes wrong in it stays in it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

DOOR = "model_tools"
NAME = "HERMITCRAB_SHADOW"
SOCKET = os.environ.get(NAME, "")
HERE = os.path.dirname(os.path.abspath(__file__))
# What waits to be told; more than this is forgotten and counted.
WAITING_MAX = 256
TEXT_MAX = 1 << 20


class Mirror:
    """Tells the listener, from a thread of its own."""

    def __init__(self, place):
        import collections
        import threading

        self.place = place
        self.waiting = collections.deque()
        self.arrived = threading.Event()
        self.lock = threading.Lock()
        self.forgotten = 0
        self.put_in, self.told = 0, 0
        self.broken = False
        threading.Thread(target=self.tell, name="shadow", daemon=True).start()

    def put(self, record):
        if self.broken:
            return
        # Hermes calls tools from several threads.
        with self.lock:
            if len(self.waiting) >= WAITING_MAX:
                self.forgotten += 1
                return
            self.put_in += 1
            self.waiting.append(record)
        self.arrived.set()

    def tell(self):
        import json
        import socket

        try:
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            link.settimeout(10)
            link.connect(self.place)
            while True:
                self.arrived.wait()
                self.arrived.clear()
                while self.waiting:
                    record = self.waiting.popleft()
                    record["forgotten"] = self.forgotten
                    link.sendall(json.dumps(record).encode() + b"\n")
                    self.told += 1
        except BaseException:  # noqa: BLE001 - the mirror is gone; Hermes goes on
            self.broken = True
            self.waiting.clear()

    def flush(self, seconds=10.0, patience=2.0):
        """At the end: let what waits be told; usually that is no time at all.

        A listener that has stopped listening is not waited for.
        """
        import time

        until = time.monotonic() + seconds
        seen, moved = self.told, time.monotonic()
        while self.told < self.put_in and not self.broken:
            now = time.monotonic()
            if self.told != seen:
                seen, moved = self.told, now
            if now > until or now - moved > patience:
                return
            time.sleep(0.01)


def wrapped(original, mirror):
    import functools
    import json
    import time

    @functools.wraps(original)
    def handle_function_call(function_name, function_args, *rest, **named):
        before = time.perf_counter_ns()
        try:
            # As it was made: a tool may change it.
            args = json.dumps(function_args)
        except BaseException:  # noqa: BLE001
            args = None
        called = time.perf_counter_ns()
        result = original(function_name, function_args, *rest, **named)
        done = time.perf_counter_ns()
        try:
            if args is not None and len(args) <= TEXT_MAX and isinstance(result, str):
                record = {
                    "tool": function_name,
                    "args": args,
                    "result": result[:TEXT_MAX],
                    "cut": len(result) > TEXT_MAX,
                    "session": str(named.get("session_id") or named.get("task_id") or ""),
                    "call": str(named.get("tool_call_id") or ""),
                    "cwd": os.getcwd(),
                    "took_us": (done - called) // 1000,
                }
                record["overhead_us"] = (called - before + time.perf_counter_ns() - done) // 1000
                mirror.put(record)
        except BaseException:  # noqa: BLE001
            pass
        return result

    return handle_function_call


class Finder(importlib.abc.MetaPathFinder):
    """Finds the door like everybody else, and stays beside it when it opens."""

    def find_spec(self, name, path=None, target=None):
        if name != DOOR:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        spec.loader = Loader(spec.loader)
        return spec


class Loader(importlib.abc.Loader):
    def __init__(self, inner):
        self.inner = inner

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        leave_no_trace()
        self.inner.exec_module(module)
        try:
            import atexit

            mirror = Mirror(SOCKET)
            module.handle_function_call = wrapped(module.handle_function_call, mirror)
            atexit.register(mirror.flush)
        except BaseException:  # noqa: BLE001
            pass

    def __getattr__(self, name):
        return getattr(self.inner, name)


def leave_no_trace():
    """This is Hermes: the commands it will start see the environment as it was."""
    os.environ.pop(NAME, None)
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [place for place in path if place and os.path.abspath(place) != HERE]
    if path:
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
    else:
        os.environ.pop("PYTHONPATH", None)


def next_of_this_name():
    """The machine's own module of this name, which stands behind this one."""
    path = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


try:
    if SOCKET:
        sys.meta_path.insert(0, Finder())
    next_of_this_name()
except BaseException:  # noqa: BLE001 - never the reason why Hermes does not start
    pass
