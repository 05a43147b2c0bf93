"""Whole conversations of Hermes' own loop, with models that say what a case says.

Unlike in a case of single steps, nobody waits between two calls: every agent's
model answers at once with the next answer the case has for it. What each model
was told is handed back. Between two turns of the user the front end's part is
done with Hermes' own functions: what background work came to is put into words
by Hermes and said in the user's place. What the user has to say besides, the
case says: it comes when nothing runs in the background any more.
"""

import json
import time

from hermes_shim_conversation import MARK, PARENT, Conversation

# What a model says for whom the case has no more answers.
NOTHING_MORE = "done"
# How often the front end looks whether work in the background is over.
LOOK_SECONDS = 0.02
# What stands for a place in an earlier result: its number among those its agent was given, and a JSON pointer.
FROM, AT = "$from", "at"
# Turns a case may take, those that tell of background work included.
TURNS_MAX = 20


class Scripted(Conversation):
    """A conversation in which each agent's model has its answers beforehand."""

    def __init__(self, session, script, words=()):
        self.script = {actor: list(answers) for actor, answers in script.items()}
        self.words = list(words)
        self.told = {}
        self.requests = {}
        self.last_words = ""
        self.ended_work = []
        super().__init__(session)

    def converse(self, agent):
        """The user's turns, and one more for each piece of background work that ends."""
        words, history = MARK + PARENT, None
        for _ in range(TURNS_MAX):
            came = agent.run_conversation(
                user_message=words, conversation_history=history, task_id=self.session.front.task()
            )
            self.last_words = came.get("final_response") or ""
            history = came["messages"]
            words = self.what_ended()
            if words is None:
                if not self.words:
                    return
                words = self.words.pop(0)
        raise RuntimeError(f"more than {TURNS_MAX} turns")

    def what_ended(self):
        """What finished work in the background has to say, in Hermes' words; `None` when there is none.

        Which of two pieces of work ends first is chance: they are told in the order in which they were handed out.
        """
        from tools.async_delegation import active_count
        from tools.process_registry import process_registry

        while active_count():
            time.sleep(LOOK_SECONDS)
        drained = process_registry.drain_notifications(owns_event=lambda event: True)
        self.ended_work += sorted(drained, key=lambda pair: pair[0].get("dispatched_at") or 0)
        return self.ended_work.pop(0)[1] if self.ended_work else None

    def play(self):
        """Answer every request until the conversation is over; what each model was told."""
        while True:
            actor, request = self.server.arrived.get()
            if request is None:
                break
            if actor is None:
                # Titles, summaries, judges and the like: no part of the case.
                request.reply.put({"role": "assistant", "content": "fine"})
                continue
            self.requests[actor] = self.requests.get(actor, 0) + 1
            self.told[actor] = request.messages
            request.reply.put(self.answer(actor, request.messages))
        if self.ended[PARENT] != self.OVER:
            raise RuntimeError(self.ended[PARENT])
        return {
            "last_words": self.last_words,
            "agents": {
                actor: {"requests": self.requests[actor], "told": [heard(m) for m in messages if m["role"] != "system"]}
                for actor, messages in sorted(self.told.items())
            },
        }

    def answer(self, actor, messages):
        results = [m.get("content") for m in messages if m["role"] == "tool"]
        answers = self.script.get(actor)
        said = answers.pop(0) if answers else {"text": NOTHING_MORE}
        message = {"role": "assistant", "content": said.get("text", "")}
        calls = []
        for index, call in enumerate(said.get("calls", [])):
            self.number += 1
            arguments = filled(call["arguments"], results)
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
            function = {"name": call["name"], "arguments": arguments}
            calls.append({"index": index, "id": f"call_{self.number}", "type": "function", "function": function})
        if calls:
            message["tool_calls"] = calls
        return message

    def close(self):
        self.thread.join()
        self.server.shutdown()
        self.server.server_close()


def filled(given, results):
    """Arguments with what stands for a place in an earlier result (`world::script`) filled in."""
    if isinstance(given, list):
        return [filled(item, results) for item in given]
    if not isinstance(given, dict):
        return given
    number = given.get(FROM)
    if set(given) == {FROM, AT} and isinstance(number, int):
        return found(results[number - 1] if 0 < number <= len(results) else None, given[AT])
    return {name: filled(item, results) for name, item in given.items()}


def found(result, pointer):
    try:
        value = json.loads(result)
        for key in pointer.split("/")[1:]:
            value = value[int(key)] if isinstance(value, list) else value[key]
    except (TypeError, ValueError, LookupError):
        return None
    return value


def heard(message):
    """One entry of a conversation: who speaks, the words, the tools called."""
    content = message.get("content")
    if not isinstance(content, str):
        content = json.dumps(content) if content else ""
    if message["role"] == "tool":
        return {"tool": content}
    if message["role"] == "user":
        return {"user": content}
    return {"said": content, "calls": [call["function"]["name"] for call in message.get("tool_calls") or []]}
