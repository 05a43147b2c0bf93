"""A client built on the Python SDK: does what its input says, tells what came.

Input, one JSON object: {"command": [...], "cwd": dir, "steps": [...]}. A step is
{"prompt": text, "answers": [...]}, {"mode": id}, or {"end": true}. An answer is an option's
id, "cancelled", "error", "silence", "cancel" (the turn is cancelled while it is
asked) or "die" (the client ends at once). Output: one JSON object.
"""

import asyncio
import json
import os
import sys

import acp
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
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

    async def ext_method(self, method, params):
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method, params):
        return None

    def on_connect(self, conn):
        self.agent = conn


async def main():
    given = json.load(sys.stdin)
    peer = Peer()
    stops = []
    # A line of the wire may be as long as the files it shows.
    async with acp.spawn_agent_process(
        peer, *given["command"], transport_kwargs={"limit": 64 << 20}
    ) as (agent, _process):
        peer.agent = agent
        await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
        session = await agent.new_session(cwd=given["cwd"], mcp_servers=[])
        for step in given["steps"]:
            if "mode" in step:
                await agent.set_session_mode(session_id=session.session_id, mode_id=step["mode"])
                continue
            peer.answers = list(step["answers"])
            done = await agent.prompt(
                session_id=session.session_id, prompt=[acp.text_block(step["prompt"])]
            )
            stops.append(done.stop_reason)
    print(json.dumps({"stops": stops, "asked": peer.asked, "updates": peer.updates}))


asyncio.run(main())
