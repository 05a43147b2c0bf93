"""A user who saves the very file the agent edits, all the time.

`python3 saves.py PROGRAM --saves 20000`: the user saves by rename, in bursts, with
pauses and just after a yes, when the edit is being committed, while one prompt
after the other edits the same file and every edit is approved as it is shown.

Two things must hold. *At rest*, whenever a prompt has ended, the file is the user's
newest version, or an edit that landed and showed that version as the old text (or
an edit that showed such an edit). *In between*, each version was taken out by the
user's next save, or shown as the old text of an edit that landed, with one
exception that loses nothing: who saves while an edit is being taken back takes out
that edit, or a version that was just being put back, and what is older than that
save goes. Whether the edit was being taken back is known afterwards: it was asked
about once more, or failed. Prints what became of them; status 1 if one is lost.
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
        # The edit under way, what each one showed last, how often it was asked about.
        self.edit = None
        self.base_of = {}
        self.asked_of = {}
        self.failed = set()
        self.said_yes = asyncio.Event()

    async def read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self.asked += 1
                self.asked_of[self.edit] = self.asked_of.get(self.edit, 0) + 1
                for part in message["params"]["toolCall"]["content"]:
                    if part["type"] == "diff":
                        self.shown.add(part.get("oldText"))
                        self.base_of[self.edit] = part.get("oldText")
                outcome = {"outcome": "selected", "optionId": "allow-once"}
                self.send({"id": message["id"], "result": {"outcome": outcome}})
                self.said_yes.set()
            elif message.get("method") == "session/update":
                if message["params"]["update"].get("status") == "failed":
                    self.failed.add(self.edit)
            elif "id" in message and "method" not in message:
                self.waiting.pop(message["id"]).set_result(message)


class Saves:
    """The user's versions, and what each of them took the place of."""

    def __init__(self, file, editor):
        self.file = file
        self.editor = editor
        self.replaced = []
        # The edit under way at each save, and how often it had been asked about.
        self.during = []

    def save(self, beside):
        beside.write_text(f"user {len(self.replaced)}\n")
        # What editors do is a rename over the file; exchanging says what was under it.
        exchange(beside, self.file)
        edit = self.editor.edit
        self.during.append((edit, self.editor.asked_of.get(edit, 0)))
        self.replaced.append(beside.read_text())

    async def all(self, count):
        beside = self.file.with_suffix(".saving")
        while len(self.replaced) < count:
            self.save(beside)
            if random.random() < 0.5:
                # While it is being committed.
                self.editor.said_yes.clear()
                try:
                    await asyncio.wait_for(self.editor.said_yes.wait(), 0.1)
                except TimeoutError:
                    pass
                await asyncio.sleep(random.choice((0, random.uniform(0, 0.02))))
            else:
                await asyncio.sleep(random.choice((0, 0, 0.001, 0.005, 0.02, 0.06)))
        beside.unlink()

    def at_rest(self):
        """What is wrong with the file now that no edit is under way, if anything."""
        there = content = self.file.read_text()
        newest = f"user {len(self.replaced) - 1}\n" if self.replaced else "begin\n"
        while content.startswith("agent"):
            if content in self.editor.failed:
                return f"{content!r} failed and is there"
            content = self.editor.base_of.get(content, "")
        return "" if content == newest else f"{there!r} is there and never showed {newest!r}"

    def is_lost(self, number, last):
        version = f"user {number}\n"
        if version in self.accounted or version == last:
            return False
        if number + 1 == len(self.replaced):
            return True
        # What the next version took the place of, and what was going on then.
        instead = self.replaced[number + 1]
        edit, asked = self.during[number + 1]
        was_taken_back = edit is not None and (
            edit in self.editor.failed or asked < self.editor.asked_of[edit]
        )
        is_older = instead.startswith("user") and int(instead.split()[1]) < number
        return not (was_taken_back and (instead == edit or is_older))

    def lost(self, last):
        self.accounted = set(self.replaced) | self.editor.shown
        return [n for n in range(len(self.replaced)) if self.is_lost(n, last)]


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
        edits, name, wrong = 0, None, []
        saves = Saves(file, editor)
        saving = asyncio.create_task(saves.all(given.saves))
        while not saving.done() or edits == 0:
            # A conversation that grows for hours is another test.
            if edits % 100 == 0:
                if name:
                    await editor.request("session/close", {"sessionId": name})
                opened = await editor.request("session/new", {"cwd": str(place), "mcpServers": []})
                name = opened["result"]["sessionId"]
            content = f"agent {edits}\n"
            script = [["write_file", {"path": "f.txt", "content": content}], "done"]
            text = [{"type": "text", "text": json.dumps(script)}]
            editor.edit = content
            await editor.request("session/prompt", {"sessionId": name, "prompt": text})
            editor.edit = None
            edits += 1
            if why := saves.at_rest():
                wrong.append(why)
        await saving
        if why := saves.at_rest():
            wrong.append(why)
        last = file.read_text()
        process.stdin.close()
        code = await process.wait()
        await reading
    wrong += [f"user {number} was lost" for number in saves.lost(last)]
    overtaken = sum(
        version not in saves.accounted and version != last
        for version in (f"user {number}\n" for number in range(given.saves))
    )
    print(
        f"{given.saves} saves during {edits} edits with {editor.asked} questions: "
        f"{edits - len(editor.failed)} edits landed, {editor.asked - edits + len(editor.failed)} were "
        f"taken back or not made because the user had saved, {overtaken} of the user's versions "
        f"were overtaken by the user's next while that happened, {len(wrong)} lost"
    )
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    sys.exit(bool(wrong or code))


if __name__ == "__main__":
    asyncio.run(main())
