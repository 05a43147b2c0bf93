"""Makes a home with years of history out of a small one.

    python3 many.py HOME CALLS

The sessions of HOME's `state.db` are repeated in place, under new ids and with
other figures in them, until it holds CALLS calls.
"""

import pathlib
import sqlite3
import sys


def main(home, wanted):
    database = sqlite3.connect(pathlib.Path(home) / "state.db")
    # Only what is read is repeated: the search index would be most of the size.
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f'DROP TRIGGER "{name}"')
    sessions = database.execute("SELECT id, source, cwd, started_at FROM sessions").fetchall()
    columns = "role, content, tool_call_id, tool_calls, tool_name, timestamp"
    rows = {
        identity: database.execute(f"SELECT {columns} FROM messages WHERE session_id = ? ORDER BY id", (identity,)).fetchall()
        for identity, *_ in sessions
    }
    calls = sum(1 for below in rows.values() for row in below if row[0] == "tool")
    made, turn = calls, 0
    while made < wanted:
        turn += 1
        for identity, source, cwd, started in sessions:
            new = f"{identity}_{turn}"
            database.execute("INSERT INTO sessions (id, source, cwd, started_at) VALUES (?, ?, ?, ?)", (new, source, cwd, started - turn * 3600))
            for role, content, answered, called, name, at in rows[identity]:
                if called:
                    called = called.replace("first", f"first {turn}")
                database.execute(
                    f"INSERT INTO messages (session_id, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (new, role, content, answered, called, name, at),
                )
                made += role == "tool"
            if made >= wanted:
                break
    database.commit()
    database.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
