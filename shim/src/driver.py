"""Calls Hermes' own functions the way its own front ends do.

Nothing here decides anything: a session is begun, tools are called, the user's
answers come from the case. Facts about the installed package only.
"""

import os
import signal
import sys

from hermes_shim_memory import share_heap
from hermes_shim_warmth import warm_up, warm_up_for  # noqa: F401


def load():
    """Import Hermes and say which version it is. Runs once, before any fork."""
    from importlib.metadata import version

    refuse_outside()
    IGNORED.update(ignored())
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

    share_heap()
    warm_up()
    if threading.active_count() != 1:
        raise RuntimeError(f"{threading.active_count()} threads after import: forking would be unsound")
    # What the import left in the home is not part of the tree cases start from;
    # Hermes makes it again when it needs it.
    for path in sorted(set(tree()) - before, key=len, reverse=True):
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    return version("hermes-agent")


# Where a world has its interpreter; what is there can be written to by nobody.
HARNESS = "/.hx"


def refuse_outside():
    """Fail unless this is the interpreter of a world.

    Hermes installs packages beside itself as it is imported, and `load` removes what
    the import left in the home and in the temporary directory: both are a world's own,
    or somebody's.
    """
    inside = os.path.join(HARNESS, "venv")
    if sys.prefix != inside:
        why = f"the interpreter is that of {sys.prefix}, and a world's is that of {inside}"
    elif not os.statvfs(HARNESS).f_flag & os.ST_RDONLY:
        why = f"{HARNESS} can be written to, and a world's cannot"
    else:
        return
    raise RuntimeError(
        f"Hermes is not loaded outside a world: {why}. It would install packages there and remove "
        f"new files below {os.environ.get('HOME')} and /tmp. `cargo bisim check` starts it in worlds"
    )


def tree():
    """Every path below the home and the temporary directory."""
    for top in (os.environ["HOME"], "/tmp"):
        for place, directories, files in os.walk(top):
            for name in directories + files:
                yield os.path.join(place, name)


# What this process was started to ignore; every world's process is forked from it.
IGNORED = {}


def ignored():
    """Each signal that is ignored, and what is usual instead."""
    kept = {signal.SIGPIPE, signal.SIGXFSZ}  # Python ignores these itself.
    for number in signal.valid_signals() - kept:
        if signal.getsignal(number) == signal.SIG_IGN:
            yield number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


def heed_signals():
    """What `nohup` and shells without jobs leave ignored would be, in commands, too."""
    for number, usual in IGNORED.items():
        signal.signal(number, usual)


class Session:
    """One session of the case's own agent, and the children it delegates to."""

    def __init__(self, context, answers, cwd, plan, has_servers):
        """`plan` names who makes each call still to come; `None` unless a model does.
        `has_servers`: the settings name servers of tools."""
        from hermes_shim_front import FRONTS
        from tools import terminal_tool

        self.answers = answers
        self.cwd = cwd
        self.plan = plan
        self.questions = []
        # What happened since the last question, and what of it Hermes has no notion of.
        self.meanwhile = []
        self.has_ended = False
        # The case's grants that something here corresponds to, and its kind.
        self.given = {}
        self.children = {}
        self.conversation = None
        self.number = 0
        os.environ["PWD"] = cwd
        heed_signals()
        terminal_tool.set_sudo_password_callback(lambda *args, **kwargs: "")
        self.front = FRONTS[context](self)
        self.front.enter_process()
        self.has_servers = has_servers
        if has_servers:
            from hermes_shim_outside import meet

            meet()
        self.begin()

    def begin(self):
        self.number += 1
        self.todos = None
        self.memories = None
        self.database = None
        self.key = f"case-{self.number}"
        if self.plan is None:
            self.front.bind()

    def end(self):
        from tools import approval

        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None
        self.front.leave()
        approval.clear_session(self.key)
        self.children.clear()
        self.begin()

    def stop(self):
        """The process ends: nothing that only memory held is left."""
        from tools import approval, file_state, file_tools, terminal_tool

        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None
        self.front.leave()
        approval.clear_session(self.key)
        approval._permanent_approved.clear()
        # What was read and written, by whom, and the shell of each session.
        file_tools._read_tracker.clear()
        file_tools._patch_failure_tracker.clear()
        file_state.get_registry().clear()
        for task in list(terminal_tool._active_environments):
            terminal_tool.cleanup_vm(task)
        self.children.clear()

    def start(self):
        """Another process: what the module reads when it is imported is read again."""
        from tools import approval

        approval.load_permanent_allowlist()
        self.begin()

    def toolsets(self):
        """What its agent is given of tools."""
        if not self.has_servers:
            return [self.front.toolset]
        from hermes_shim_outside import toolsets

        return toolsets(self.front)

    def offered(self):
        """What a model is offered of the tools of servers, as JSON text."""
        from hermes_shim_outside import offered

        return offered(self.front)

    def form(self, name):
        """The form of a tool's arguments as a model is offered it, as JSON text."""
        from hermes_shim_outside import form

        return form(self.front, name)

    def withdraw_always(self):
        """The person takes out of the settings what was allowed for good, if anything was: who
        finds nothing writes nothing."""
        from hermes_cli.config import load_config
        from tools import approval

        if load_config().get("command_allowlist"):
            approval.save_permanent_allowlist(set())

    def asked(self, shown, answer=None):
        """The user is asked; what the case says they answer."""
        if answer is None:
            answer = self.next_answer()
        self.questions.append((shown, answer, self.meanwhile))
        self.meanwhile = []
        return answer

    def next_answer(self):
        """The user's words in turn, and what they do elsewhere before each; the last word
        goes on, and without any it is a no."""
        word, first = self.next_word()
        self.meanwhile = [(what, self.happen(what)) for what in first]
        return word

    def next_word(self):
        if len(self.answers) > 1:
            return self.answers.pop(0)
        if not self.answers:
            return "deny", []
        word, first = self.answers[0]
        self.answers = [(word, [])]
        return word, first

    def happen(self, what):
        """The person does something elsewhere while Hermes waits; the notion it lacks, if any."""
        import json

        ((kind, of),) = json.loads(what).items()
        if kind == "revoke":
            return "" if self.withdraw(of["grant"]) else "no-revocation"
        if kind == "advance":
            return "no-expiry"
        if kind == "end_session":
            from tools import approval

            # What a front end does at once; the rest waits until the call is over.
            approval.clear_session(self.key)
            self.has_ended = True
            return ""
        if kind == "withdraw":
            self.withdraw_always()
            return ""
        return {"end_agent": "no-end-of-an-agent", "others": "no-uses"}.get(kind, "no-mode")

    def hush(self):
        """Whoever is asked from here on says no."""
        self.kept = [(word, []) for word, _ in self.answers[-1:]]
        self.answers = []

    def speak(self):
        """The last of the words before goes on."""
        self.answers = self.kept

    def spawn(self, child):
        """Start a child; what the model is told about it."""
        if self.plan is not None:
            told = self.talk().delegate(child)
            self.dismiss_idle()
            return told
        from tools.daemon_pool import DaemonThreadPoolExecutor
        from tools import delegate_tool, terminal_tool

        # As delegate_task runs a child: a bare worker thread with the fixed
        # callback; the parent's context variables do not come along.
        self.children[child] = DaemonThreadPoolExecutor(
            max_workers=1,
            initializer=terminal_tool.set_approval_callback,
            initargs=(delegate_tool._get_subagent_approval_callback(),),
        )
        return ""

    def call(self, tool, args, by):
        self.questions = []
        text, raised = "", None
        try:
            if self.plan is not None:
                self.plan.pop(0)
                text = self.talk().call(tool, args, by)
                self.dismiss_idle()
            elif by is None:
                text = self.dispatch(tool, args, self.front.task())
            elif by in self.children:
                text = self.children[by].submit(self.dispatch, tool, args, f"child-{by}").result()
            else:
                raised = f"no child named {by} was spawned"
        except BaseException as error:  # noqa: BLE001 - whatever Hermes raises is the observation
            raised = f"{type(error).__name__}: {error}"
        if not isinstance(text, str):
            import json

            text = json.dumps(text)
        if self.has_ended:
            self.has_ended = False
            self.end()
        return {"text": text, "raised": raised, "questions": list(self.questions)}

    def batch(self, calls):
        """Calls of one answer; what the model is told of each, as JSON text."""
        import json

        if self.plan is None:
            raise RuntimeError("only a model makes several calls in one answer")
        wanted = [(call["name"], call["arguments"]) for call in json.loads(calls)["calls"]]
        return json.dumps(self.talk().batch(wanted))

    def converse(self, script):
        """A whole conversation whose models have their answers beforehand; what they were told, as JSON text."""
        import json

        from hermes_shim_scripted import Scripted

        if self.plan is None:
            raise RuntimeError("only models have a conversation")
        if self.conversation is not None:
            self.conversation.close()
        wanted = json.loads(script)
        self.conversation = Scripted(self, wanted["script"], wanted.get("user", ()))
        return json.dumps(self.conversation.play())

    def bare(self, wanted):
        """A case's calls over and over, each round as a session of its own, and nobody
        who looks; microseconds of the processor and of the clock for each round, and
        whether its calls told what they told the first time."""
        import json
        import resource
        import time

        from tools.terminal_tool import cleanup_vm

        def used():
            own, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
            return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime

        wanted = json.loads(wanted)
        rounds, first = [], None
        for number in range(wanted["rounds"]):
            before, begun = used(), time.perf_counter()
            task = f"round-{number}"
            told = [self.dispatch(call["tool"], call["args"], task) for call in wanted["calls"]]
            # A session has a shell environment of its own; Hermes keeps it under one of these.
            for name in (task, "default"):
                cleanup_vm(name)
            self.end()
            spent = [used() - before, time.perf_counter() - begun]
            first = told if first is None else first
            rounds.append([round(seconds * 1e6) for seconds in spent] + [told == first])
        return json.dumps(rounds)

    def talk(self):
        """The conversation, begun when it is first needed."""
        if self.conversation is None:
            from hermes_shim_conversation import Conversation

            self.conversation = Conversation(self)
        return self.conversation

    def dismiss_idle(self):
        """Children the script has no more steps for are told that they are done."""
        for actor in list(self.conversation.waiting):
            if actor != "parent" and actor not in self.plan:
                self.conversation.dismiss(actor)

    def dispatch(self, tool, args, task):
        import model_tools

        if tool == "clarify":
            # A front end brings its own way to the person; without one there is nobody to ask.
            from tools.clarify_tool import clarify_tool

            ask = (lambda question, choices: self.next_word()[0]) if self.front.asks else None
            return clarify_tool(question=args.get("question", ""), choices=args.get("choices"), callback=ask)
        if tool == "todo":
            # This and the next are done by the agent's loop, on stores of its own.
            from tools.todo_tool import todo_tool

            return todo_tool(todos=args.get("todos"), merge=args.get("merge", False), store=self.todo())
        if tool == "memory":
            from tools.memory_tool import memory_tool

            return memory_tool(
                action=args.get("action"),
                target=args.get("target", "memory"),
                content=args.get("content"),
                old_text=args.get("old_text"),
                operations=args.get("operations"),
                store=self.memory(),
            )
        if tool == "session_search":
            from hermes_shim_earlier import look

            if self.database is None:
                from hermes_state import SessionDB

                self.database = SessionDB()
            return look(args, self.database)
        return model_tools.handle_function_call(tool, args, task_id=task, session_id=self.key)

    def todo(self):
        if self.todos is None:
            from tools.todo_tool import TodoStore

            self.todos = TodoStore()
        return self.todos

    def memory(self):
        if self.memories is None:
            from tools.memory_tool import load_on_disk_store

            self.memories = load_on_disk_store()
        return self.memories

    def stand(self, grant, kind, words):
        """Give a standing approval, the way the front end would keep it; whether there is one.
        `grant` is the case's name for it."""
        from tools import approval

        if kind == "session":
            for word in words:
                approval.approve_session(self.key, word)
        elif kind in ("always", "commands"):
            for word in words:
                approval.approve_permanent(word)
        elif kind == "mode" and hasattr(self.front, "mode"):
            self.front.mode = words[0]
        else:
            return False
        self.given[grant] = kind
        return True

    def withdraw(self, grant):
        """Take a standing approval back, where a front end can; whether it could."""
        if self.given.get(grant) == "mode" and hasattr(self.front, "mode"):
            del self.given[grant]
            self.front.mode = "default"
            return True
        return False
