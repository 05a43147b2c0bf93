"""What is imported, read and compiled before the fork.

Each world would otherwise do it again. What every world needs comes first; the rest is added
the first time that a case of its kind is asked for. No tool runs.
"""

from hermes_shim_memory import compact, fill, join


# What a world of each kind imports, so that the zygote has it already.
EVERY_CASE = (
    "acp_adapter.edit_approval",
    "agent.bedrock_adapter",
    "agent.coding_context",
    "agent.lsp.manager",
    "agent.prompt_builder",
    "agent.runtime_cwd",
    "agent.verification_evidence",
    "cron.lifecycle_guard",
    "cron.scheduler_provider",
    "encodings.cp437",
    "encodings.utf_8_sig",
    "gateway.session_context",
    "glob",
    "hermes_cli.env_loader",
    "hermes_cli.runtime_provider",
    "tomllib",
    "tools.ansi_strip",
    "tools.daemon_pool",
    "tools.env_passthrough",
    "tools.fuzzy_match",
    "tools.lazy_deps",
    "tools.patch_parser",
    "tools.path_security",
    "tools.read_extract",
    "tools.skill_provenance",
    "tools.skill_usage",
    "tools.tirith_security",
    "tools.tool_output_limits",
    "tools.tool_search",
    "tools.write_approval",
)
EDITORS = (
    "acp.schema",
    "acp_adapter.permissions",
    "agent.async_utils",
)
CONVERSATIONS = (
    "run_agent",
    "openai",
    "openai.lib.streaming.chat",
    "openai.resources",
    "openai.types.chat",
    "agent.agent_init",
    "agent.agent_runtime_helpers",
    "agent.anthropic_adapter",
    "agent.aux_accounting",
    "agent.chat_completion_helpers",
    "agent.context_compressor",
    "agent.conversation_loop",
    "agent.credits_tracker",
    "agent.gemini_native_adapter",
    "agent.kanban_stop",
    "agent.lmstudio_reasoning",
    "agent.moonshot_schema",
    "agent.nous_rate_guard",
    "agent.rate_limit_tracker",
    "agent.ssl_guard",
    "agent.ssl_verify",
    "agent.system_prompt",
    "agent.title_generator",
    "agent.tool_executor",
    "agent.transports",
    "agent.transports.anthropic",
    "agent.transports.bedrock",
    "agent.transports.chat_completions",
    "agent.transports.codex",
    "agent.turn_finalizer",
    "agent.verification_stop",
    "agent.verify_hooks",
    "hermes_cli.codex_models",
    "hermes_cli.moa_config",
    "hermes_cli.model_normalize",
    "hermes_cli.models",
    "hermes_cli.nous_account",
    "hermes_cli.nous_subscription",
    "hermes_cli.skin_engine",
    "hermes_state",
    "tools.async_delegation",
    "tools.checkpoint_manager",
    "tools.computer_use.cua_backend",
    "tools.delegation_live_log",
    "tools.env_probe",
    "tools.hook_output_spill",
    "tools.schema_sanitizer",
    "tools.tool_result_storage",
    "tools.tts_tool",
    "aiohttp",
    "http.server",
    "httpcore",
    "netrc",
    "socksio",
    "unittest.mock",
)
SERVERS = (
    "acp",
    "acp_adapter.entry",
    "acp_adapter.server",
    "hermes_cli.profiles",
    "hermes_cli.runtime_provider",
    "tools.mcp_tool",
    "agent.image_routing",
)


def import_all(names):
    """Import what there is of these modules."""
    import importlib

    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            # Another version keeps it elsewhere; then each world imports its own.
            pass


def settle():
    """Make what was imported fit to be forked from."""
    import gc
    import threading

    if threading.active_count() != 1:
        raise RuntimeError(f"{threading.active_count()} threads after import: forking would be unsound")
    # Objects made so far are never collected, so forks share their memory.
    gc.collect()
    gc.freeze()
    fill()
    compact()
    join()


# An interpreter makes code fit for what passes through it when it has run it often enough.
OFTEN = 16


# A patch with each thing that a reader of patches looks for.
PATCH = """*** Begin Patch
*** Add File: a
+one
*** Update File: b
@@ two @@
 three
-four
+five
*** Move File: c -> d
*** Delete File: e
*** End Patch
"""

# What only looks at what it is given, or at a settings file whose time and size it
# remembers: module, name, arguments.
ONLY_LOOKS = (
    ("hermes_cli.config", "load_config", ()),
    ("hermes_cli.config", "load_config_readonly", ()),
    ("hermes_cli.config", "read_raw_config", ()),
    ("hermes_cli.config", "load_env", ()),
    ("tools.terminal_tool", "_foreground_background_guidance", ("echo 'a' \"b\" `c`",)),
    ("tools.patch_parser", "parse_v4a_patch", (PATCH,)),
    ("tools.fuzzy_match", "fuzzy_find_and_replace", ("a\n  b\nc\n", "b", "d")),
    ("tools.cronjob_tools", "_scan_cron_prompt", ("look",)),
    ("tools.threat_patterns", "scan_for_threats", ("look",)),
    ("agent.redact", "redact_terminal_output", ("a", "echo a | cat")),
    ("agent.skill_utils", "parse_frontmatter", ("---\nname: a\n---\nb\n",)),
)


def functions(names):
    """Those of these functions that this version has, each to be called with its arguments."""
    import functools
    import importlib

    for module, name, arguments in names:
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        yield functools.partial(found, *arguments)


def warm_up():
    """Do once what every world would otherwise do again: import what calls import
    late, read the settings, compile the detectors. No tool runs."""
    import_all(EVERY_CASE)
    from tools import approval

    looking = list(functions(ONLY_LOOKS))
    for _ in range(OFTEN):
        for look in looking:
            look()
        for command in ("true", "cat 'a b' | grep -c x > out.txt; echo $?"):
            approval.detect_dangerous_command(command)
            approval.detect_hardline_command(command)
    settle()


# What is imported where servers of tools are named: the protocol's own package is most of it.
OUTSIDE = (
    "tools.mcp_tool",
    "tools.osv_check",
    "hermes_cli.tools_config",
    "gateway.status",
    "gateway.platforms.base",
)

# What only some worlds import, by what asks for it; imported the first time one does.
LATER = {
    "editor": EDITORS,
    "outside": OUTSIDE,
    "earlier": ("hermes_state", "tools.session_search_tool"),
    "loop": EDITORS + CONVERSATIONS,
    "server": EDITORS + CONVERSATIONS + SERVERS,
}
WARM = set()


def warm_up_for(kind):
    """Import what a world of this kind needs, the first time one is asked for."""
    if kind in WARM:
        return
    import_all(LATER[kind])
    settle()
    WARM.add(kind)
