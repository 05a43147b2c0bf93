"""Many sessions at once in one `hermitcrab acp`: nothing lost, nothing mixed up.

    python3 agent/tests/peers/load.py target/debug/hermitcrab --sessions 100 --prompts 10

Every session works in a directory of its own. Every second prompt of it writes a
file, is asked about it and is answered, yes and no in turn; every prompt says a
word back that only it knows. Needs nothing but the standard library. Prints
latencies and memory; status 1 if anything was lost.
"""

import argparse
import asyncio
import json
import os
import pathlib
import sys
import tempfile
import time

LINE_BYTES_MAX = 64 << 20


async def model(reader, writer):
    """Does as the user's last words say, which are a list of answers."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            )
            messages = json.loads(await reader.readexactly(length))["messages"]
            last = max(i for i, m in enumerate(messages) if m["role"] == "user")
            script = json.loads(messages[last]["content"])
            said = sum(m["role"] == "assistant" for m in messages[last:])
            answer = script[said]
            if isinstance(answer, list):
                tool, arguments = answer
                call = {"name": tool, "arguments": json.dumps(arguments)}
                message = {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": call}],
                }
            else:
                message = {"role": "assistant", "content": answer}
            body = json.dumps({"choices": [{"message": message}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


class Editor:
    def __init__(self, process):
        self.process = process
        self.waiting = {}
        self.words = {}
        self.answers = {}
        self.asked = 0
        self.count = 0

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def request(self, method, params):
        self.count += 1
        future = asyncio.get_running_loop().create_future()
        self.waiting[self.count] = future
        self.send({"id": self.count, "method": method, "params": params})
        return await future

    async def read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self.asked += 1
                option = self.answers[message["params"]["sessionId"]]
                outcome = {"outcome": "selected", "optionId": option}
                self.send({"id": message["id"], "result": {"outcome": outcome}})
            elif message.get("method") == "session/update":
                update = message["params"]["update"]
                if update["sessionUpdate"] == "agent_message_chunk":
                    words = self.words.setdefault(message["params"]["sessionId"], [])
                    words.append(update["content"]["text"])
            elif "id" in message:
                self.waiting.pop(message["id"]).set_result(message)


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


async def session(editor, place, number, prompts, latencies, lost):
    cwd = place / f"w{number}"
    opened = await editor.request("session/new", {"cwd": str(cwd), "mcpServers": []})
    if "result" not in opened:
        lost.append(f"session {number} did not open: {opened}")
        return
    name = opened["result"]["sessionId"]
    expected, words = None, []
    for turn in range(prompts):
        word = f"word-{number}-{turn}"
        script = [word]
        if turn % 2:
            approved = turn % 4 == 1
            editor.answers[name] = "allow-once" if approved else "reject-once"
            content = f"{number} {turn}\n"
            script.insert(0, ["write_file", {"path": "f.txt", "content": content}])
            if approved:
                expected = content
        started = time.perf_counter()
        text = [{"type": "text", "text": json.dumps(script)}]
        done = await editor.request("session/prompt", {"sessionId": name, "prompt": text})
        latencies.append(time.perf_counter() - started)
        words.append(word)
        if done.get("result", {}).get("stopReason") != "end_turn":
            lost.append(f"session {number}, prompt {turn}: {done}")
    if editor.words.get(name) != words:
        lost.append(f"session {number} did not say its own words")
    file = cwd / "f.txt"
    content = file.read_text() if file.exists() else None
    if content != expected:
        lost.append(f"session {number}: {content!r} instead of {expected!r}")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--prompts", type=int, default=10, help="of each session")
    given = parser.parse_args()
    server = await asyncio.start_server(model, "127.0.0.1", 0, limit=LINE_BYTES_MAX)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        place = pathlib.Path(home)
        for number in range(given.sessions):
            (place / f"w{number}").mkdir()
        process = await asyncio.create_subprocess_exec(
            os.path.abspath(given.program),
            "acp",
            "--model=m",
            f"--base-url=http://127.0.0.1:{port}/v1",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            env={"HOME": home, "PATH": os.environ["PATH"]},
        )
        editor = Editor(process)
        reading = asyncio.create_task(editor.read())
        await editor.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        before = resident(process.pid)
        latencies, lost = [], []
        started = time.perf_counter()
        await asyncio.gather(
            *(
                session(editor, place, number, given.prompts, latencies, lost)
                for number in range(given.sessions)
            )
        )
        took = time.perf_counter() - started
        after = resident(process.pid)
        process.stdin.close()
        code = await process.wait()
        await reading
        if code:
            lost.append(f"the agent ended with {code}")
    latencies.sort()

    def at(part):
        return latencies[min(len(latencies) - 1, int(len(latencies) * part))] * 1000

    print(
        f"{given.sessions} sessions, {len(latencies)} prompts, {editor.asked} questions in {took:.1f} s; "
        f"latency ms: median {at(0.5):.0f}, 95 % {at(0.95):.0f}, most {at(1):.0f}; "
        f"memory: {before} KiB, then {after} KiB, {(after - before) / given.sessions:.0f} KiB a session; "
        f"lost: {len(lost)}"
    )
    for line in lost[:20]:
        print(line, file=sys.stderr)
    sys.exit(bool(lost))


if __name__ == "__main__":
    asyncio.run(main())
