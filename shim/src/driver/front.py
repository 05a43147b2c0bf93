"""How each of Hermes' front ends surrounds a session.

A front end says who can be asked and how: flags in the process, variables of
the context, a callback of the thread. Each class here sets what the front end
of the installed package was seen to set, with its own functions, and passes
the case's answer on. Nothing here decides anything.
"""

import inspect
import os

# What a case says of a user who never answers.
SILENCE = "(silence)"

# How the words of a user are called by an editor's dialogs.
OPTIONS = {"once": "allow_once", "session": "allow_session", "always": "allow_always"}


class Headless:
    """A script or library use: no flag, nobody to ask."""

    platform = "cli"
    toolset = "hermes-cli"
    # Whether there is a way to put a model's own question to a person.
    asks = False

    def __init__(self, session):
        self.session = session

    def task(self):
        """The id its agent works under, by which file tools know where its shell is."""
        return self.session.key

    def enter_process(self):
        """What the front end sets once for its whole process."""

    def bind(self):
        """What it sets for one run of the agent, in the thread that runs it."""

    def leave(self):
        """What it undoes when a session ends."""


class Terminal(Headless):
    """The command line: a flag in the environment and a callback in the thread."""

    asks = True

    def enter_process(self):
        os.environ["HERMES_INTERACTIVE"] = "1"

    def bind(self):
        from tools import approval, terminal_tool

        approval.set_current_session_key(self.session.key)
        terminal_tool.set_approval_callback(self.ask)

    def ask(self, command, description, **details):
        return self.session.asked(f"{description}: {command}")


class Chat(Headless):
    """The gateway: a flag in the environment, the chat in the context, answers through a queue."""

    platform = "telegram"
    toolset = "hermes-telegram"
    asks = True

    def task(self):
        # The agent has its conversation's id; the shell is kept under the chat's.
        return f"conversation-{self.session.key}"

    def enter_process(self):
        os.environ["HERMES_EXEC_ASK"] = "1"

    def bind(self):
        from gateway import session_context
        from tools import approval

        key = self.session.key
        said = {"platform": "telegram", "chat_id": "1", "user_id": "1", "session_key": key, "session_id": key}
        # Older releases know fewer of them.
        known = inspect.signature(session_context.set_session_vars).parameters
        session_context.set_session_vars(**{name: value for name, value in said.items() if name in known})
        approval.set_current_session_key(key)
        approval.register_gateway_notify(key, self.ask)

    def leave(self):
        from tools import approval

        approval.unregister_gateway_notify(self.session.key)

    def ask(self, request):
        from tools import approval

        answer = self.session.asked(f"{request.get('description', '')}: {request.get('command', '')}")
        # Who says nothing leaves the request where it is until the gate gives up waiting.
        if answer == SILENCE:
            return
        # The request is queued before its notice is sent, so the answer can come at once.
        approval.resolve_gateway_approval(self.session.key, answer)


class Cron(Headless):
    """A scheduled job: a flag in the environment, a context without a chat."""

    platform = "cron"
    toolset = "hermes-cron"

    def enter_process(self):
        os.environ["HERMES_CRON_SESSION"] = "1"

    def bind(self):
        from gateway import session_context

        session_context.set_session_vars(async_delivery=False)


class Editor(Headless):
    """The agent client protocol: the package's own gates, asking over its own bridge."""

    platform = "acp"
    toolset = "hermes-acp"

    def __init__(self, session):
        super().__init__(session)
        self.loop = None
        # What the editor's session mode means to the gate on edits.
        self.mode = "default"

    def leave(self):
        self.mode = "default"

    def bind(self):
        from acp_adapter import edit_approval, permissions
        from gateway import session_context
        from tools import approval, terminal_tool

        key = self.session.key
        loop = self.running_loop()
        session_context.set_session_vars(session_key=key)
        terminal_tool.set_approval_callback(
            permissions.make_approval_callback(self.request_permission, loop, key)
        )
        edit_approval.set_edit_approval_requester(
            edit_approval.make_acp_edit_approval_requester(
                self.request_permission, loop, key, auto_approve_getter=self.edit_rule
            )
        )
        approval.set_hermes_interactive_context(True)
        os.environ["HERMES_SESSION_ID"] = key

    def edit_rule(self):
        rules = {"accept_edits": "workspace_session", "dont_ask": "session"}
        return rules.get(self.mode, "ask"), self.session.cwd

    def running_loop(self):
        """The loop the editor's connection lives on, in a thread of its own."""
        if self.loop is None:
            import asyncio
            import threading

            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return self.loop

    async def request_permission(self, session_id, tool_call, options):
        from acp.schema import AllowedOutcome, RequestPermissionResponse

        shown = [tool_call.title or ""]
        for part in tool_call.content or []:
            shown += [text for text in (getattr(part, "path", None), getattr(part, "new_text", None)) if text]
        offered = {option.option_id for option in options}
        word = self.session.next_answer()
        chosen = OPTIONS.get(word, word)
        if chosen not in offered and chosen in OPTIONS.values():
            # A dialog has only the buttons it has: the nearest one that says yes.
            chosen = "allow_once"
        self.session.asked("\n".join(shown), chosen)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))


FRONTS = {
    "headless": Headless,
    "interactive": Terminal,
    "gateway": Chat,
    "cron": Cron,
    "acp": Editor,
}
