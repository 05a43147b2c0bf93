"""Many commands before the guard that Hermes' terminal tool asks, in one interpreter.

Nothing is run: the guard says what it would let through, what it asks the user about
and what it refuses. It is the tool's own entry, with the callback, the settings and the
session of this world; only the loop around it is here.
"""

import json
import resource

PERMIT, ASK, DENY = "p", "a", "d"


def guard():
    """What the terminal tool asks before it runs a command on this machine."""
    from tools import terminal_tool

    ask = terminal_tool._check_all_guards
    return lambda command: ask(command, "local")


def screen(session, wanted):
    """A letter for each command, in order."""
    check, asked, letters = guard(), session.questions, []
    for command in json.loads(wanted)["commands"]:
        asked.clear()
        verdict = check(command)
        if verdict["approved"]:
            letters.append(PERMIT)
        else:
            pending = verdict.get("status") in ("pending_approval", "approval_required")
            letters.append(ASK if asked or pending else DENY)
    return "".join(letters)


def used():
    own, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime


def bare(wanted):
    """Microseconds of the processor for the same commands in a plain loop, after a few
    of them have warmed the interpreter up."""
    wanted = json.loads(wanted)
    check, commands = guard(), wanted["commands"]
    for command in commands[: wanted["warm"]]:
        check(command)
    before = used()
    for command in commands:
        check(command)
    return round((used() - before) * 1e6)
