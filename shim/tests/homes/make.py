"""Makes a Hermes home with a history, by the real Hermes and a scripted model.

    PYTHON make.py OUT

PYTHON is one that has a hermes-agent installed; OUT must not exist. The model
is a stub on the loopback that says one scripted answer after the other; all the
rest is Hermes' own: which calls run, what they answer, what is recorded, and how
`config.yaml` is written when a class of commands is allowed for good. Commands
touch only OUT. The secrets are planted: tests look for them in everything that is
made from such a home.
"""

import json
import os
import pathlib
import queue
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Not secrets of anybody; each part alone means nothing.
PLANTED_KEY = "-".join(["sk", "proj", "planted0Q7xV2mK9pL4rT8wZ1cB6nH3"])
PLANTED_WORD = "-".join(["correct", "horse", "planted", "41"])
PLANTED_TOKEN = "_".join(["ghp", "planted5aB7cD9eF1gH3iJ5kL7mN9oP2qR"])

# What a migration reads.
KEPT = ("config.yaml", ".env", "cron/jobs.json", "state.db")

CONFIG = """\
# Written by hand, then kept by Hermes.
model:
  default: scripted
  provider: custom
approvals:
  mode: manual
  timeout: 45
  cron_mode: deny
  deny:
    - "git push --force*"
    - "sudo *"
    - "curl *"
security:
  tirith_enabled: false
  website_blocklist:
    enabled: true
    domains:
      - ads.example.com
terminal:
  backend: local
  timeout: 120
delegation:
  subagent_auto_approve: true
mcp_servers:
  notes:
    command: notes-server
    args: ["--stdio"]
    env:
      NOTES_TOKEN: "@TOKEN@"
  issues:
    url: https://issues.example.com/mcp
"""

SKILL = """\
---
name: weekly-report
description: Writes the weekly report from the notes.
---

# Weekly report

Read `notes.md` and write `report.md`.
"""

JOBS = {
    "jobs": [
        {
            "id": "a1b2c3d4e5f6",
            "name": "report",
            "prompt": "Write the weekly report.",
            "skills": ["weekly-report"],
            "schedule": {"kind": "cron", "expr": "0 9 * * 1", "display": "0 9 * * 1"},
            "enabled": True,
        }
    ]
}


def call(tool, **arguments):
    return {"name": tool, "arguments": json.dumps(arguments)}


def sessions(work):
    """What the model calls, turn by turn; each turn is a list of calls made together."""
    yield "20260601_090000_notes", "cli", [
        [call("write_file", path="notes.md", content="# Notes\n\n- first\n- second\n")],
        [call("read_file", path="notes.md")],
        [call("patch", mode="replace", path="notes.md", old_string="- second\n", new_string="- second\n- third\n")],
        [call("search_files", pattern="third", path=".")],
        [call("terminal", command="mkdir -p build && printf 'made\\n' > build/out.txt")],
        [call("terminal", command="wc -l notes.md"), call("terminal", command="cat build/out.txt")],
        [call("terminal", command="rm -r build")],
    ]
    yield "20260602_101500_code", "cli", [
        [call("write_file", path=f"{work}/src/tool.py", content="import sys\n\n\ndef main():\n    print(len(sys.argv))\n\n\nmain()\n")],
        [call("terminal", command="python3 src/tool.py a b")],
        [call("terminal", command="git push --force origin main")],
        [call("terminal", command=f"KEY={PLANTED_KEY} printenv KEY | wc -c")],
        [call("terminal", command="cat no-such-file.txt")],
        [call("terminal", command="no-such-program-at-all --help")],
        [call("terminal", command="chmod 777 src/tool.py")],
    ]
    yield "20260603_080000_chat", "telegram", [
        [call("terminal", command="ls")],
        [call("read_file", path="src/tool.py", offset=3, limit=2)],
        [call("write_file", path="../elsewhere.txt", content="outside the workspace\n")],
        [call("write_file", path="settings.env", content=f"PASSWORD={PLANTED_WORD}\nPORT=80\n")],
        [call("todo", todos=[{"id": "1", "content": "ship it", "status": "pending"}])],
        [call("terminal", command="python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:9/x', timeout=3)\"")],
        [call("no_such_tool", x=1)],
        [call("terminal", command=f"git config credential.helper '!echo {PLANTED_TOKEN}' || echo none")],
    ]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def do_GET(self):
        self.send_json(404, {"error": "no such thing"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        if "messages" not in body:
            return self.send_json(404, {"error": "no such thing"})
        # Titles and the like come without tools and are no turn of the script.
        turns = self.server.turns
        calls = turns.get_nowait() if body.get("tools") and not turns.empty() else None
        if calls is None:
            message = {"role": "assistant", "content": "Done."}
        else:
            made = []
            for place, function in enumerate(calls):
                self.server.count += 1
                made.append({"index": place, "id": f"call_{self.server.count:04}", "type": "function", "function": function})
            message = {"role": "assistant", "content": None, "tool_calls": made}
        finish = "tool_calls" if calls else "stop"
        head = {"id": "scripted", "created": 0, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return self.send_json(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
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


def make(out):
    home, work = out / "home" / ".hermes", out / "home" / "work"
    work.mkdir(parents=True)
    home.mkdir()
    os.environ.clear()
    os.environ.update(HOME=str(out / "home"), HERMES_HOME=str(home), PATH="/usr/local/bin:/usr/bin:/bin", LANG="C.UTF-8", TZ="UTC")
    os.chdir(work)
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    (home / "config.yaml").write_text(CONFIG.replace("@TOKEN@", PLANTED_TOKEN))
    (home / ".env").write_text(f"# keys\nOPENAI_API_KEY={PLANTED_KEY}\nMAIL_PASSWORD='{PLANTED_WORD}'\nEDITOR=vi\n")
    (home / ".env").chmod(0o600)
    (home / "skills" / "office" / "weekly-report").mkdir(parents=True)
    (home / "skills" / "office" / "weekly-report" / "SKILL.md").write_text(SKILL)
    (home / "cron").mkdir()
    (home / "cron" / "jobs.json").write_text(json.dumps(JOBS, indent=2))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.turns, server.count = queue.Queue(), 0
    threading.Thread(target=server.serve_forever, daemon=True).start()

    from hermes_state import SessionDB
    from run_agent import AIAgent

    database = SessionDB()
    for identity, source, turns in sessions(work):
        for turn in turns:
            server.turns.put(turn)
        agent = AIAgent(
            base_url=f"http://127.0.0.1:{server.server_address[1]}/v1",
            api_key="none",
            provider="custom",
            api_mode="chat_completions",
            model="scripted",
            quiet_mode=True,
            skip_context_files=True,
            skip_memory=True,
            save_trajectories=source == "cli",
            platform=source,
            enabled_toolsets=["terminal", "file", "todo"],
            session_id=identity,
            session_db=database,
        )
        agent.session_cwd = str(work)
        agent.run_conversation(user_message="Please do what the script says.", task_id=identity)
        # Older releases record a session's directory elsewhere, or not at all.
        if hasattr(database, "update_session_cwd"):
            database.update_session_cwd(identity, str(work))
    database.close()

    from tools import approval

    # What the prompt's "always" does; and a command somebody listed by hand.
    detector = approval.detect_dangerous_command("rm -r build")
    approval.save_permanent_allowlist({detector[1], "git status"})
    for moved in work.glob("*trajector*.jsonl"):
        moved.rename(home / moved.name)


def slim(home):
    """Leave what a migration reads, without the texts that are Hermes' own (prompts, manuals)."""
    for path in sorted(home.rglob("*"), reverse=True):
        name = str(path.relative_to(home))
        kept = name in KEPT or name.startswith("skills/office") or "trajector" in name
        if path.is_file() and not kept:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    database = sqlite3.connect(home / "state.db")
    database.execute("UPDATE sessions SET system_prompt = NULL")
    database.commit()
    database.execute("VACUUM")
    database.close()
    config = (home / "config.yaml").read_text().splitlines()
    (home / "config.yaml").write_text("".join(f"{line}\n" for line in config if not line.startswith("#")).rstrip() + "\n")
    for path in home.glob("*trajector*.jsonl"):
        lines = []
        for line in path.read_text().splitlines():
            conversation = json.loads(line)
            for turn in conversation["conversations"]:
                if turn["from"] == "system":
                    turn["value"] = ""
            lines.append(json.dumps(conversation, ensure_ascii=False))
        path.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]).resolve()
    if target.exists():
        sys.exit(f"`{target}` is there already")
    make(target)
    slim(target / "home" / ".hermes")
    # Threads of the model's client may still sit in a poll.
    sys.stdout.flush()
    os._exit(0)
