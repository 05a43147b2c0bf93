"""A user who saves the very file the agent edits, all the time.

`python3 saves.py PROGRAM --saves 20000`: the user saves by rename, in bursts and
with pauses, while one prompt after the other edits the same file and every edit
is approved as it is shown. Each of the user's versions must have been replaced by
the user, or by an edit that showed this very version as the old text, or be
there at the end. Who saves while an edit is being taken back takes out that edit
and not the version before it; that is the user's own replacing as well, and told
apart by whether that edit landed on what it showed last. Prints what became of them; status 1 if one is lost.
"""

import argparse
import asyncio
import ctypes
import json
import os
import pathlib
import random
import sys
import tempfile

import load

AT_FDCWD = -100
EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)


def exchange(one, two):
    names = os.fsencode(one), os.fsencode(two)
    if libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], EXCHANGE):
        raise OSError(ctypes.get_errno(), "cannot exchange")


class Editor(load.Editor):
    """Approves everything, and remembers what was shown."""

    def __init__(self, process):
        super().__init__(process)
        self.shown = set()
        self.edit = None
        self.base_of = {}
        self.failed = set()

    async def read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self.asked += 1
                for part in message["params"]["toolCall"]["content"]:
                    if part["type"] == "diff":
                        self.shown.add(part.get("oldText"))
                        self.base_of[self.edit] = part.get("oldText")
                outcome = {"outcome": "selected", "optionId": "allow-once"}
                self.send({"id": message["id"], "result": {"outcome": outcome}})
            elif message.get("method") == "session/update":
                if message["params"]["update"].get("status") == "failed":
                    self.failed.add(self.edit)
            elif "id" in message and "method" not in message:
                self.waiting.pop(message["id"]).set_result(message)


async def save(file, count, replaced):
    """Saves `count` versions; `replaced` gets what each of them took the place of."""
    beside = file.with_suffix(".saving")
    for number in range(count):
        beside.write_text(f"user {number}\n")
        # What editors do is a rename over the file; exchanging says what was under it.
        while True:
            try:
                exchange(beside, file)
                break
            except FileNotFoundError:
                await asyncio.sleep(0)
        replaced.append(beside.read_text())
        await asyncio.sleep(random.choice((0, 0, 0.001, 0.005, 0.02, 0.06)))
    beside.unlink()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--saves", type=int, default=200)
    given = parser.parse_args()
    server = await asyncio.start_server(load.model, "127.0.0.1", 0, limit=load.LINE_BYTES_MAX)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        place = pathlib.Path(home) / "w"
        place.mkdir()
        file = place / "f.txt"
        file.write_text("begin\n")
        process = await asyncio.create_subprocess_exec(
            os.path.abspath(given.program),
            "acp",
            "--model=m",
            f"--base-url=http://127.0.0.1:{port}/v1",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=load.LINE_BYTES_MAX,
            env={"HOME": home, "PATH": os.environ["PATH"]},
        )
        editor = Editor(process)
        reading = asyncio.create_task(editor.read())
        await editor.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        edits = landed = 0
        name, replaced = None, []
        saving = asyncio.create_task(save(file, given.saves, replaced))
        while not saving.done() or edits == 0:
            # A conversation that grows for hours is another test.
            if edits % 100 == 0:
                if name:
                    await editor.request("session/close", {"sessionId": name})
                opened = await editor.request("session/new", {"cwd": str(place), "mcpServers": []})
                name = opened["result"]["sessionId"]
            content = f"agent {edits}\n"
            editor.edit = content
            script = [["write_file", {"path": "f.txt", "content": content}], "done"]
            text = [{"type": "text", "text": json.dumps(script)}]
            await editor.request("session/prompt", {"sessionId": name, "prompt": text})
            edits += 1
        await saving
        last = file.read_text()
        process.stdin.close()
        code = await process.wait()
        await reading
    for number in range(edits):
        content = f"agent {number}\n"
        landed += content in replaced or content in editor.shown or content == last
    accounted = set(replaced) | editor.shown | {last}

    def is_lost(number):
        if f"user {number}\n" in accounted:
            return False
        # What the user's next version took the place of.
        edit = replaced[number + 1] if number + 1 < given.saves else last
        was_taken_back = edit in editor.failed or editor.base_of.get(edit) not in replaced
        return not (edit.startswith("agent") and was_taken_back)

    lost = [f"user {number}" for number in range(given.saves) if is_lost(number)]
    under_an_edit = sum(f"user {n}\n" not in replaced for n in range(given.saves))
    print(
        f"{given.saves} saves during {edits} edits with {editor.asked} questions: "
        f"at least {landed} edits landed, {under_an_edit} of the user's versions went under an edit "
        f"that showed them or stayed, {len(lost)} lost"
    )
    for line in lost[:20]:
        print(line, file=sys.stderr)
    sys.exit(bool(lost or code))


if __name__ == "__main__":
    asyncio.run(main())
