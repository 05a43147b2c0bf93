"""The edit gate of the installed Hermes, asked directly.

Each function takes a probe's input and returns its decision and value; nothing
here decides anything itself. Files are looked at in the world the interpreter
is in; none is written.
"""

import json

from hermes_shim_probe_place import standing_in


def _call(given):
    """Tool and arguments, from a call of a table or from recorded positional arguments."""
    if "args" in given:
        return tuple(given["args"][:2])
    return given["tool"], given["arguments"]


def build_edit_proposal(given):
    from acp_adapter.edit_approval import build_edit_proposal as build

    try:
        proposal = build(*_call(given))
    except Exception as error:
        return "none", {"raised": type(error).__name__, "message": str(error)}
    if "args" in given:
        fields = None
        if proposal is not None:
            fields = {"$dc": type(proposal).__name__, **vars(proposal)}
        return "none", {"result": fields}
    if proposal is None:
        return "none", {"proposal": None}
    return "none", {
        "proposal": {
            "tool": proposal.tool_name,
            "path": proposal.path,
            "old_text": proposal.old_text,
            "new_text": proposal.new_text,
        }
    }


def should_auto_approve_edit(given):
    from acp_adapter.edit_approval import EditProposal, should_auto_approve_edit as approves

    if "args" in given:
        fields, policy, cwd = given["args"]
        fields = {name: value for name, value in fields.items() if name != "$dc"}
    else:
        policy, cwd = given["policy"], given["cwd"]
        fields = {
            "tool_name": "write_file",
            "path": given["path"],
            "old_text": None,
            "new_text": "",
            "arguments": {},
        }
    approved = approves(EditProposal(**fields), policy, cwd)
    return ("permit" if approved else "ask"), None


def _is_sensitive_auto_approve_path(given):
    from acp_adapter.edit_approval import _is_sensitive_auto_approve_path as sensitive

    return ("ask" if sensitive(*given["args"]) else "permit"), None


def maybe_require_edit_approval(given):
    from acp_adapter import edit_approval

    def requester(_proposal):
        if given["requester"] == "raise":
            raise RuntimeError("the client is gone")
        return given["requester"]

    token = edit_approval.set_edit_approval_requester(requester)
    try:
        refusal = edit_approval.maybe_require_edit_approval(*_call(given))
    finally:
        edit_approval.reset_edit_approval_requester(token)
    return ("permit" if refusal is None else "deny"), None


def permission_options(given):
    from acp_adapter.permissions import _build_permission_options

    options = _build_permission_options(
        allow_permanent=given["allow_permanent"], smart_denied=given["smart_denied"]
    )
    return "none", {"options": [[option.option_id, option.kind] for option in options]}


def _map_outcome_to_hermes(given):
    from acp.schema import AllowedOutcome, DeniedOutcome
    from acp_adapter.permissions import _map_outcome_to_hermes as meaning

    recorded = given["args"][0]
    if recorded["$obj"] == "AllowedOutcome":
        outcome = AllowedOutcome(outcome="selected", option_id=recorded["option_id"])
    else:
        outcome = DeniedOutcome(outcome="cancelled")
    offered = set(given["kwargs"]["allowed_option_ids"]["$set"])
    return "none", {"result": meaning(outcome, allowed_option_ids=offered)}


def parse_v4a_patch(given):
    from tools.patch_parser import parse_v4a_patch as parse

    operations, error = parse(given["patch"])
    ops = [
        {"op": found.operation.name, "path": found.file_path, "new_path": found.new_path}
        for found in operations
    ]
    return "none", {"ops": ops, "error": error is not None}


def answer(name, text):
    """The probe's answer as JSON text."""
    given = json.loads(text)
    # A gate's input may name the directory of the process and, apart from it, that of the session.
    cwd = given.get("process_cwd") or (given.get("cwd") if "args" in given else None)
    with standing_in(cwd):
        decision, value = globals()[name](given)
    return json.dumps({"decision": decision, "value": value})
