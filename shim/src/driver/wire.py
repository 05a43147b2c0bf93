"""Hermes' own server for editors, in a process of its own.

What is started is the function behind `hermes acp`; all that passes goes over
its standard streams. Nothing here decides anything.
"""

import os


def serve(requests, answers):
    """Start the server on these descriptors; its process."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        logs = os.path.join(os.environ["HERMES_HOME"], "logs")
        os.makedirs(logs, exist_ok=True)
        log = os.open(os.path.join(logs, "server.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 2)
        # The streams above end where the client lets go of them, so nobody else may hold them.
        os.closerange(3, 1024)
        os.chdir(os.environ["HOME"])
        os.environ["PWD"] = os.environ["HOME"]
        from acp_adapter.entry import main

        main([])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(status)
