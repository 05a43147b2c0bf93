"""Where a probe is asked from."""

import os
from contextlib import contextmanager


@contextmanager
def standing_in(cwd):
    """Work in ``cwd`` (if given) and go back, whatever happens."""
    if not cwd:
        yield
        return
    before = os.getcwd()
    os.chdir(cwd)
    try:
        yield
    finally:
        os.chdir(before)
