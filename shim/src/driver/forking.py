"""How the zygote becomes the first process of a world.

`os.fork` has the interpreter put in order, on both sides, what other threads may have
left half done. The zygote has one thread, so nothing is, and putting it in order writes
to pages all over an interpreter that a world would not touch otherwise: a third of all
that it copies. So the C library forks here, while this thread holds the interpreter.
What a process has of its own beside its number is made anew: the state of `random`, and
the number of its thread.
"""

import ctypes
import random
import threading

# Unlike a library of the other kind it does not let go of the interpreter during a call.
LIBRARY = ctypes.PyDLL(None)

# Called by itself: each page that the zygote writes to while a world lives is copied, and a
# huge page that holds it is taken apart for good. Code that runs writes to many.
fork = LIBRARY.fork
fork.argtypes = ()


def check():
    """Say no to a fork of a process with more threads than one."""
    if threading.active_count() != 1:
        raise RuntimeError(f"{threading.active_count()} threads: forking would be unsound")


def born():
    """Give the new process what each has of its own."""
    random.seed()
    threading.main_thread()._set_native_id()
