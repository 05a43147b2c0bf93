"""Many sessions at once in one `hermitcrab acp`: nothing lost, nothing mixed up.

    python3 agent/tests/peers/load.py target/debug/hermitcrab --sessions 100 --prompts 10

Every session works in a directory of its own. Every second prompt of it writes a
file, is asked about it and is answered, yes and no in turn; every prompt says a
word back that only it knows. Needs nothing but the standard library. Prints
latencies and memory, with `--report FILE` also as a page; status 1 if anything
was lost.
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


def memory(pid, what="VmRSS"):
    """Kilobytes: resident now, or (`VmHWM`) at most so far."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what))


def kept(home):
    """Kilobytes of ledgers, keys and conversations."""
    files = pathlib.Path(home, ".local/state/hermitcrab").rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file()) / 1024


async def session(editor, place, number, prompts, times, lost):
    cwd = place / f"w{number}"
    started = time.perf_counter()
    opened = await editor.request("session/new", {"cwd": str(cwd), "mcpServers": []})
    times["open"].append(time.perf_counter() - started)
    if "result" not in opened:
        lost.append(f"session {number} did not open: {opened}")
        return
    name = opened["result"]["sessionId"]
    expected, words, own = None, [], []
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
        own.append(time.perf_counter() - started)
        times["edit" if turn % 2 else "talk"].append(own[-1])
        words.append(word)
        if done.get("result", {}).get("stopReason") != "end_turn":
            lost.append(f"session {number}, prompt {turn}: {done}")
    if editor.words.get(name) != words:
        lost.append(f"session {number} did not say its own words")
    times["session"].append(sum(own) / len(own))
    file = cwd / "f.txt"
    content = file.read_text() if file.exists() else None
    if content != expected:
        lost.append(f"session {number}: {content!r} instead of {expected!r}")


def at(times, part):
    """The time that this part of all is not above, in milliseconds."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


async def run(program, sessions, prompts):
    """One agent with so many sessions at once; what was measured, what was lost."""
    server = await asyncio.start_server(model, "127.0.0.1", 0, limit=LINE_BYTES_MAX)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        place = pathlib.Path(home)
        for number in range(sessions):
            (place / f"w{number}").mkdir()
        process = await asyncio.create_subprocess_exec(
            os.path.abspath(program),
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
        before = memory(process.pid)
        times = {"open": [], "talk": [], "edit": [], "session": []}
        lost = []
        started = time.perf_counter()
        await asyncio.gather(
            *(session(editor, place, number, prompts, times, lost) for number in range(sessions))
        )
        took = time.perf_counter() - started
        after, most = memory(process.pid), memory(process.pid, "VmHWM")
        process.stdin.close()
        code = await process.wait()
        await reading
        if code:
            lost.append(f"the agent ended with {code}")
        disk = kept(home)
    server.close()
    return {
        "sessions": sessions,
        "prompts": len(times["talk"]) + len(times["edit"]),
        "questions": editor.asked,
        "took": took,
        "times": times,
        "memory": (before, after, most),
        "disk": disk,
        "lost": lost,
    }


def spread(times):
    return f"{at(times, 0.5):.0f} ms, 95 % within {at(times, 0.95):.0f} ms, all within {at(times, 1):.0f} ms"


def page(many, one):
    """A report in Markdown."""
    times, (before, after, most) = many["times"], many["memory"]
    rows = [
        (
            f"{many['sessions']} sessions at once, {many['prompts']} prompts, "
            f"{many['questions']} questions",
            f"{many['took']:.1f} s, {len(many['lost'])} lost",
        ),
        ("opening a session, all at once", spread(times["open"])),
        ("a prompt that is only answered", spread(times["talk"])),
        ("a prompt with an edit: asked, answered, written", spread(times["edit"])),
        ("the mean of a session's prompts, over the sessions", spread(times["session"])),
        ("a prompt that is only answered, one session alone", spread(one["times"]["talk"])),
        ("a prompt with an edit, one session alone", spread(one["times"]["edit"])),
        (
            "memory",
            f"{before} KiB without a session, {after} KiB with all of them, {most} KiB at most",
        ),
        ("memory of a session", f"{(after - before) / many['sessions']:.0f} KiB"),
        ("kept on the disk for a session", f"{many['disk'] / many['sessions']:.0f} KiB"),
    ]
    table = "".join(f"| {what} | {figure} |\n" for what, figure in rows)
    return f"""# Many sessions in one editor's agent

Written by `python3 agent/tests/peers/load.py target/debug/hermitcrab --report
docs/benchmarks/acp.md`, in one run on one machine with {os.cpu_count()} processors, which the
client and its scripted model share with the agent. The program was built without
optimisation. The middle time stands first.

| What | Figure |
|---|---|
{table}"""


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--prompts", type=int, default=10, help="of each session")
    parser.add_argument("--report", type=pathlib.Path, help="where to write the page")
    given = parser.parse_args()
    many = await run(given.program, given.sessions, given.prompts)
    times, (before, after, _) = many["times"], many["memory"]
    print(
        f"{given.sessions} sessions, {many['prompts']} prompts, {many['questions']} questions in "
        f"{many['took']:.1f} s; a prompt: {spread(times['talk'] + times['edit'])}; "
        f"memory: {before} KiB, then {after} KiB, {(after - before) / given.sessions:.0f} KiB a session; "
        f"lost: {len(many['lost'])}"
    )
    lost = many["lost"]
    if given.report:
        one = await run(given.program, 1, 50)
        lost = lost + one["lost"]
        given.report.write_text(page(many, one))
    for line in lost[:20]:
        print(line, file=sys.stderr)
    sys.exit(bool(lost))


if __name__ == "__main__":
    asyncio.run(main())
