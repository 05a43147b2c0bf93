"""Conversations that were had before a case begins, in Hermes' own database of sessions.

They are entered by Hermes' own functions, as its front ends enter what is said.
"""

import json

# The numbers of the messages of two conversations lie so far apart: the n-th message of the
# c-th one, counted from none, is number c million and n. Who compares numbers goes by that.
APART = 1_000_000


def enter(conversations):
    """Enter these, given as JSON text, in order."""
    from hermes_state import SessionDB

    db = SessionDB()
    try:
        for place, one in enumerate(json.loads(conversations)):
            converse(db, place, one)
    finally:
        db.close()


def converse(db, place, one):
    """Enter one conversation."""
    identity = one["id"]
    db.create_session(identity, one["source"], model=one.get("model"))
    if one.get("title") is not None:
        db.set_session_title(identity, one["title"])
    # There is no function for when it began, nor for which numbers come next.
    begun = one["started"] / 1000
    db._execute_write(lambda conn: conn.execute("UPDATE sessions SET started_at = ? WHERE id = ?", (begun, identity)))
    db._execute_write(lambda conn: count_from(conn, place * APART))
    for number, message in enumerate(one["messages"], 1):
        given = say(db, identity, message)
        if given != place * APART + number:
            raise RuntimeError(f"message {number} of the conversation {identity} has the number {given}")
    kept = db.get_session(identity)
    wanted = (one.get("title"), one.get("model"), begun, len(one["messages"]))
    found = tuple(kept[name] for name in ("title", "model", "started_at", "message_count"))
    if found != wanted:
        raise RuntimeError(f"the conversation {identity} is kept with {found} and not {wanted}")


def count_from(conn, number):
    """Have the next message be the one after this number."""
    conn.execute("DELETE FROM sqlite_sequence WHERE name = 'messages'")
    conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', ?)", (number,))


def say(db, identity, message):
    """Enter one message; its number."""
    at = message["at"] / 1000
    if "user" in message:
        return db.append_message(identity, "user", message["user"], timestamp=at)
    if "tool" in message:
        return db.append_message(
            identity,
            "tool",
            message["text"],
            tool_name=message["tool"],
            tool_call_id=message["call"],
            timestamp=at,
        )
    calls = [
        {"id": call, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for call, tool, arguments in message.get("calls", ())
    ]
    return db.append_message(identity, "assistant", message["assistant"], tool_calls=calls or None, timestamp=at)


def look(args, db):
    """Call the tool that looks for them as the agent's loop does.

    The loop hands on no `profile`, and says which session it is in itself: in none that
    is in the database.
    """
    from tools.session_search_tool import session_search

    return session_search(
        query=args.get("query", ""),
        role_filter=args.get("role_filter"),
        limit=args.get("limit", 3),
        session_id=args.get("session_id"),
        around_message_id=args.get("around_message_id"),
        window=args.get("window", 5),
        sort=args.get("sort"),
        db=db,
        current_session_id=None,
    )
