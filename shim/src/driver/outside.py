"""Servers of tools, met as each of Hermes' front ends meets them when it starts."""

import json


def meet():
    """Start or reach what the settings name, and learn which tools there are."""
    from tools.mcp_tool import discover_mcp_tools

    discover_mcp_tools()


def toolsets(front):
    """What a front end switches on: its own tools, and those of each server of the settings."""
    from hermes_cli.config import load_config
    from hermes_cli.tools_config import enabled_mcp_server_names

    return [front.toolset, *sorted(enabled_mcp_server_names(load_config()))]


def form(front, name):
    """The form of a tool's arguments as a model is offered it, without the words, as JSON text."""
    from model_tools import get_tool_definitions
    from tools.registry import registry
    from toolsets import resolve_toolset

    # The other tools are not asked whether they could work: some write down that they cannot.
    own = registry.get_toolset_for_tool(name) if name in resolve_toolset(front.toolset) else None
    definitions = get_tool_definitions(enabled_toolsets=[own], quiet_mode=True) if own else []
    forms = [one["function"]["parameters"] for one in definitions if one["function"]["name"] == name]
    return json.dumps(without_words(forms[0]) if forms else None)


def without_words(form):
    """The same without descriptions; a property may be called like one."""
    return {
        key: {name: without_words(one) for name, one in value.items()} if key == "properties"
        else without_words(value) if isinstance(value, dict) else value
        for key, value in form.items()
        if key != "description"
    }


def offered(front):
    """The tools of servers as a model is offered them, as JSON text."""
    from model_tools import get_tool_definitions
    from tools.mcp_tool import MCP_TOOL_NAME_PREFIX

    definitions = get_tool_definitions(enabled_toolsets=toolsets(front), quiet_mode=True)
    functions = [definition["function"] for definition in definitions]
    named = [function for function in functions if function["name"].startswith(MCP_TOOL_NAME_PREFIX)]
    return json.dumps([{key: one[key] for key in ("name", "description", "parameters")} for one in named])
