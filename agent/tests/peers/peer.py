"""A client built on the Python SDK: does what its input says, tells what came.

Input, one JSON object: {"command": [...], "cwd": dir, "steps": [...]}. A step is
{"prompt": text, "answers": [...]}, {"mode": id}, {"option": [id, value]} or {"again":
"load" or "resume"} (the session is listed, closed and taken up again). An answer is
an option's id, "cancelled", "error", "silence", "cancel" (the turn is cancelled while
it is asked) or "die" (the client ends at once). A file's text is what is on the disk;
of `unsaved.txt` it is "typed". Output: one JSON object.
"""

import asyncio
import json
import os
import pathlib
import sys

import acp
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
)


class Peer:
    def __init__(self):
        self.updates = []
        self.asked = []
        self.answers = []
        self.agent = None

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(
            {
                "toolCall": tool_call.model_dump(mode="json", by_alias=True, exclude_none=True),
                "options": [option.option_id for option in options],
            }
        )
        answer = self.answers.pop(0)
        if answer == "error":
            raise acp.RequestError.internal_error()
        if answer == "silence":
            await asyncio.sleep(3600)
        if answer == "die":
            os._exit(9)
        if answer == "cancel":
            await self.agent.cancel(session_id=session_id)
            answer = "cancelled"
        if answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=answer)
        )

    async def session_update(self, session_id, update, **_):
        self.updates.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def read_text_file(self, session_id, path, **_):
        if path.endswith("/unsaved.txt"):
            return ReadTextFileResponse(content="typed\n")
        try:
            return ReadTextFileResponse(content=pathlib.Path(path).read_text())
        except OSError:
            raise acp.RequestError.resource_not_found(path) from None

    async def ext_method(self, method, params):
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method, params):
        return None

    def on_connect(self, conn):
        self.agent = conn


async def again(agent, how, session, cwd):
    """Whether the session was listed, and what was taken up."""
    listed = await agent.list_sessions(cwd=cwd)
    await agent.close_session(session_id=session)
    take_up = agent.load_session if how == "load" else agent.resume_session
    taken_up = await take_up(cwd=cwd, session_id=session, mcp_servers=[])
    return session in [one.session_id for one in listed.sessions], taken_up.modes.current_mode_id


async def main():
    given = json.load(sys.stdin)
    peer = Peer()
    stops, told = [], []
    can = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True))
    # A line of the wire may be as long as the files it shows.
    async with acp.spawn_agent_process(
        peer, *given["command"], transport_kwargs={"limit": 64 << 20}
    ) as (agent, _process):
        peer.agent = agent
        await agent.initialize(protocol_version=1, client_capabilities=can)
        session = (await agent.new_session(cwd=given["cwd"], mcp_servers=[])).session_id
        for step in given["steps"]:
            if "mode" in step:
                await agent.set_session_mode(session_id=session, mode_id=step["mode"])
            elif "option" in step:
                name, value = step["option"]
                set_to = await agent.set_config_option(
                    config_id=name, session_id=session, value=value
                )
                told.append(len(set_to.config_options))
            elif "again" in step:
                told += await again(agent, step["again"], session, given["cwd"])
            else:
                peer.answers = list(step["answers"])
                done = await agent.prompt(
                    session_id=session, prompt=[acp.text_block(step["prompt"])]
                )
                stops.append(done.stop_reason)
    print(
        json.dumps({"stops": stops, "told": told, "asked": peer.asked, "updates": peer.updates})
    )


asyncio.run(main())
