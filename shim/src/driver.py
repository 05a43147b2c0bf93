"""Calls Hermes' own functions the way its own front ends do.

Nothing here decides anything: a session is begun, tools are called, the user's
answers come from the case. Facts about the installed package only.
"""

import os
import sys


def load():
    """Import Hermes and say which version it is. Runs once, before any fork."""
    from importlib.metadata import version

    # What only starts the interpreter is not part of a world's environment.
    for name in ("HERMES_SHIM_INSIDE", "PYTHONDONTWRITEBYTECODE", "LD_LIBRARY_PATH"):
        os.environ.pop(name, None)
    os.chdir(os.environ["HOME"])
    before = set(tree())
    import model_tools  # noqa: F401
    import gateway.session_context  # noqa: F401
    import tools.approval  # noqa: F401
    import tools.delegate_tool  # noqa: F401
    import tools.terminal_tool  # noqa: F401
    import threading

    warm_up()
    if threading.active_count() != 1:
        raise RuntimeError(f"{threading.active_count()} threads after import: forking would be unsound")
    # What the import left in the home is not part of the tree cases start from;
    # Hermes makes it again when it needs it.
    for path in sorted(set(tree()) - before, key=len, reverse=True):
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    return version("hermes-agent")


def warm_up():
    """Do once what every world would otherwise do again: import what calls import
    late, read the settings, compile the detectors. No tool runs."""
    import gc
    import importlib

    for name in (
        "acp_adapter.edit_approval",
        "agent.coding_context",
        "agent.lsp.manager",
        "agent.verification_evidence",
        "tools.ansi_strip",
        "tools.daemon_pool",
        "tools.env_passthrough",
        "tools.fuzzy_match",
        "tools.read_extract",
        "tools.tirith_security",
        "tools.tool_output_limits",
        "tools.tool_search",
    ):
        try:
            importlib.import_module(name)
        except ImportError:
            # Another version keeps it elsewhere; then each world imports its own.
            pass
    from hermes_cli.config import load_config
    from tools import approval

    load_config()
    approval.detect_dangerous_command("true")
    approval.detect_hardline_command("true")
    # Objects made so far are never collected, so forks share their memory.
    gc.collect()
    gc.freeze()


def tree():
    """Every path below the home and the temporary directory."""
    for top in (os.environ["HOME"], "/tmp"):
        for place, directories, files in os.walk(top):
            for name in directories + files:
                yield os.path.join(place, name)


class Session:
    """One session of the case's own agent, and the children it delegates to."""

    def __init__(self, context, answer, cwd):
        self.context = context
        self.answer = answer
        self.cwd = cwd
        self.questions = []
        self.children = {}
        self.number = 0
        os.environ["PWD"] = cwd
        from tools import terminal_tool

        terminal_tool.set_sudo_password_callback(lambda *args, **kwargs: "")
        self.begin()

    def begin(self):
        from gateway import session_context
        from tools import approval, terminal_tool

        self.number += 1
        self.key = f"case-{self.number}"
        if self.context == "interactive":
            approval.set_hermes_interactive_context(True)
            approval.set_current_session_key(self.key)
            terminal_tool.set_approval_callback(self.ask_at_terminal)
        elif self.context == "gateway":
            session_context.set_session_vars(
                platform="telegram", chat_id="1", user_id="1", session_key=self.key, session_id=self.key
            )
            approval.set_current_session_key(self.key)
            approval.register_gateway_notify(self.key, self.ask_in_chat)

    def end(self):
        from tools import approval

        if self.context == "gateway":
            approval.unregister_gateway_notify(self.key)
        approval.clear_session(self.key)
        self.children.clear()
        self.begin()

    def spawn(self, child):
        from tools.daemon_pool import DaemonThreadPoolExecutor
        from tools import delegate_tool, terminal_tool

        # As delegate_task runs a child: a bare worker thread with the fixed
        # callback; the parent's context variables do not come along.
        self.children[child] = DaemonThreadPoolExecutor(
            max_workers=1,
            initializer=terminal_tool.set_approval_callback,
            initargs=(delegate_tool._get_subagent_approval_callback(),),
        )

    def call(self, tool, args, by):
        self.questions = []
        text, raised = "", None
        try:
            if by is None:
                text = self.dispatch(tool, args, "case")
            elif by in self.children:
                text = self.children[by].submit(self.dispatch, tool, args, f"child-{by}").result()
            else:
                raised = f"no child named {by} was spawned"
        except BaseException as error:  # noqa: BLE001 - whatever Hermes raises is the observation
            raised = f"{type(error).__name__}: {error}"
        if not isinstance(text, str):
            import json

            text = json.dumps(text)
        return {"text": text, "raised": raised, "questions": list(self.questions)}

    def dispatch(self, tool, args, task):
        import model_tools

        return model_tools.handle_function_call(tool, args, task_id=task, session_id=self.key)

    def ask_at_terminal(self, command, description, **details):
        self.questions.append((f"{description}: {command}", self.answer))
        return self.answer

    def ask_in_chat(self, request):
        from tools import approval

        self.questions.append((f"{request.get('description', '')}: {request.get('command', '')}", self.answer))
        # The request is queued before its notice is sent, so the answer can come at once.
        approval.resolve_gateway_approval(self.key, self.answer)
