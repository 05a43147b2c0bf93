"""Hermes' own conversation loop, with a model that says what the case's script says.

The model is a stub on the world's loopback that speaks the chat completions
interface. A request to it waits until the script has a step for whoever sent
it, so that the steps happen one after the other, in the script's order, however
many agents run at once. Which tools are called is the script's business; all
the rest (the loop, the dispatch, children and their threads) is Hermes'.
"""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PARENT = "parent"
# Where the stub listens, so that a case's settings can send other requests there.
PORT = 8642
# A model of this name answers with the word that follows, such as a judge's.
SAYS = "says-"
# What the first message of a conversation begins with says whose it is.
MARK = "case conversation of "


class Request:
    """One request to the model, until it is answered."""

    def __init__(self, body):
        self.messages = body["messages"]
        self.model = str(body.get("model"))
        self.stream = bool(body.get("stream"))
        self.reply = queue.Queue(maxsize=1)

    def actor(self):
        for message in self.messages:
            if message.get("role") == "user":
                text = message.get("content")
                if not isinstance(text, str):
                    text = json.dumps(text)
                at = text.find(MARK)
                return None if at < 0 else text[at + len(MARK) :].split("\n")[0].strip(' "]}')
        return None

    def result_of(self, identity):
        """What came of a call made before, as the model is given it."""
        for message in reversed(self.messages):
            if message.get("role") == "tool" and message.get("tool_call_id") == identity:
                content = message.get("content")
                return content if isinstance(content, str) else json.dumps(content)
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def do_GET(self):
        self.send_json(404, {"error": "no such thing"})

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        try:
            body = json.loads(self.rfile.read(length))
        except ValueError:
            body = None
        if not isinstance(body, dict) or "messages" not in body:
            self.send_json(404, {"error": "no such thing"})
            return
        request = Request(body)
        self.server.arrived.put((request.actor(), request))
        message = request.reply.get()
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        head = {"id": "scripted", "created": 0, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not request.stream:
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self.send_json(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for part in (
            {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {"choices": [], "usage": usage},
        ):
            line = json.dumps({**head, "object": "chat.completion.chunk", **part})
            self.wfile.write(f"data: {line}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def send_json(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Conversation:
    """One session's conversation, and those of the children it delegates to."""

    # What is said of a conversation that came to its end.
    OVER = "the conversation is over"

    def __init__(self, session):
        self.session = session
        self.server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        self.server.daemon_threads = True
        self.server.arrived = queue.Queue()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.waiting = {}
        self.ended = {}
        self.number = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """The front end's thread: it binds what it binds and runs the agent."""
        import contextvars

        contextvars.copy_context().run(self.run_bound)

    def run_bound(self):
        front = self.session.front
        try:
            front.bind()
            from run_agent import AIAgent

            host, port = self.server.server_address
            agent = AIAgent(
                base_url=f"http://{host}:{port}/v1",
                api_key="none",
                provider="custom",
                api_mode="chat_completions",
                model="scripted",
                quiet_mode=True,
                skip_context_files=True,
                platform=front.platform,
                enabled_toolsets=self.session.toolsets(),
                session_id=self.session.key,
            )
            agent.session_cwd = self.session.cwd
            # No second conversation about what is to be noted or learned: nobody scripts its answers.
            agent._memory_nudge_interval = 0
            agent._skill_nudge_interval = 0
            self.converse(agent)
            ending = self.OVER
        except BaseException as error:  # noqa: BLE001 - whatever Hermes raises is the observation
            ending = f"{type(error).__name__}: {error}"
        self.ended[PARENT] = ending
        self.server.arrived.put((None, None))

    def converse(self, agent):
        """What is said to the agent."""
        agent.run_conversation(user_message=MARK + PARENT, task_id=self.session.front.task())

    def wait(self, wanted):
        """Wait until one of these actors asks the model; says which, or None if none will."""
        while True:
            for actor in wanted:
                if actor in self.waiting:
                    return actor
            if PARENT in self.ended and (wanted == [PARENT] or not self.waiting):
                return None
            actor, request = self.server.arrived.get()
            if request is None:
                continue
            if actor is None:
                # Titles, summaries, judges and the like: no step of the script.
                word = request.model.removeprefix(SAYS) if request.model.startswith(SAYS) else "fine"
                request.reply.put({"role": "assistant", "content": word})
                continue
            self.waiting[actor] = request

    def make(self, actor, tool, arguments):
        """Let an actor's model make one call; its identity."""
        return self.make_all(actor, [(tool, arguments)])[0]

    def make_all(self, actor, wanted):
        """Let an actor's model make several calls in one answer; their identities."""
        calls = []
        for index, (tool, arguments) in enumerate(wanted):
            self.number += 1
            function = {"name": tool, "arguments": json.dumps(arguments)}
            calls.append({"index": index, "id": f"call_{self.number}", "type": "function", "function": function})
        self.waiting.pop(actor).reply.put({"role": "assistant", "content": None, "tool_calls": calls})
        return [call["id"] for call in calls]

    def call(self, tool, arguments, by):
        """One call and what came of it."""
        actor = by or PARENT
        if self.wait([actor]) is None:
            raise RuntimeError(self.ended.get(actor) or f"no child named {actor} runs")
        identity = self.make(actor, tool, arguments)
        if self.wait([actor]) is None:
            raise RuntimeError(self.ended[PARENT])
        result = self.waiting[actor].result_of(identity)
        if result is None:
            raise RuntimeError("the call was not made")
        return result

    def batch(self, wanted):
        """Several calls of one answer, run by Hermes' own executor; what the model is told, in its order."""
        if self.wait([PARENT]) is None:
            raise RuntimeError(self.ended[PARENT])
        identities = self.make_all(PARENT, wanted)
        if self.wait([PARENT]) is None:
            raise RuntimeError(self.ended[PARENT])
        told = [m.get("tool_call_id") for m in self.waiting[PARENT].messages if m.get("role") == "tool"]
        order = [identity for identity in told if identity in identities]
        if order != [identity for identity in identities if identity in order]:
            raise RuntimeError(f"results in the order {order}, calls in the order {identities}")
        # Of a call that was not made nothing is told.
        return [self.waiting[PARENT].result_of(identity) for identity in identities]

    def delegate(self, child):
        """The model's own call for a child; what the parent was told, if it was yet."""
        if self.wait([PARENT]) is None:
            raise RuntimeError(self.ended[PARENT])
        identity = self.make(PARENT, "delegate_task", {"goal": MARK + child})
        # In the background the parent is told at once; otherwise the child comes first.
        self.wait([child, PARENT])
        if PARENT not in self.waiting:
            return ""
        told = self.waiting[PARENT].result_of(identity) or ""
        if '"error"' not in told:
            self.wait([child])
        return told

    def dismiss(self, actor):
        """Tell an actor that it is done."""
        if actor in self.waiting:
            self.waiting.pop(actor).reply.put({"role": "assistant", "content": "done"})

    def close(self):
        """End the conversation and wait for its loop."""
        for actor in [name for name in self.waiting if name != PARENT]:
            self.dismiss(actor)
        if self.wait([PARENT]) is not None:
            self.dismiss(PARENT)
        self.thread.join()
        self.server.shutdown()
        self.server.server_close()
