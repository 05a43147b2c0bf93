//! Every key a person can set by name, what it means and what counts without it.

/// One key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// With its tables, such as `limits.pids_max`.
    pub name: &'static str,
    /// What counts if it is not set.
    pub usual: &'static str,
    /// What it is for.
    pub about: &'static str,
}

impl Key {
    /// Whether this is the key of that name, or lies in the table of it.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

const fn key(name: &'static str, usual: &'static str, about: &'static str) -> Key {
    Key { name, usual, about }
}

/// All of them, as they are shown.
pub const KEYS: [Key; 68] = [
    key(
        "mode",
        "prompt",
        "approve_all, prompt or reject_all: what becomes of what is not granted",
    ),
    key(
        "directories",
        "[]",
        "directories the agent may list and read besides its workspace",
    ),
    key(
        "safety.confirm_before_execute",
        "false",
        "ask before each command, although it runs on a copy",
    ),
    key(
        "safety.require_confirmation_for_delete",
        "false",
        "ask before each deletion, even a granted one",
    ),
    key(
        "safety.block_rm_rf",
        "false",
        "never delete a directory with something in it",
    ),
    key(
        "safety.dry_run_by_default",
        "false",
        "show what would change and keep nothing, unless told `--for-real`",
    ),
    key(
        "safety.max_files_per_operation",
        "no limit",
        "files and directories one operation may change",
    ),
    key(
        "limits.memory_max_mb",
        "512",
        "memory of a command and everything it starts, in MiB",
    ),
    key(
        "limits.cpu_quota_percent",
        "50",
        "processor time of it, in hundredths of one processor",
    ),
    key(
        "limits.pids_max",
        "100",
        "processes and threads of it at once",
    ),
    key(
        "limits.changes_max_mb",
        "512 in memory, 8192 on disk",
        "what it may change before that is decided, in MiB; see `sandbox.layers`",
    ),
    key(
        "limits.tmp_max_mb",
        "256, or half of the memory",
        "what its `/tmp` holds, whichever of the two is more, in MiB; it takes memory",
    ),
    key(
        "limits.timeout_seconds",
        "as asked",
        "the longest time it may run",
    ),
    key(
        "limits.script_timeout_seconds",
        "300",
        "the time a script that calls tools may run",
    ),
    key(
        "limits.script_calls_max",
        "50",
        "calls such a script may make",
    ),
    key(
        "sandbox.interpreters",
        "[\"sh\", \"bash\", \"python3\"]",
        "started before their script is known, to be quick; `[]` for none",
    ),
    key(
        "sandbox.fresh",
        "false",
        "nothing of a sandbox serves a second command, however empty it is; takes more processor time",
    ),
    key(
        "sandbox.layers",
        "auto",
        "auto, memory or disk: where what a command changed lies until that is decided; on disk there is more room, and some time to write beyond it. By `auto` it is memory, and disk in a workspace from the first command on that needed more",
    ),
    key(
        "sandbox.copy_for_owners",
        "true",
        "where root runs the agent and a file system takes no id map, copy what a command may write so that it is the command's own; `false` leaves it a stranger's rights there",
    ),
    key(
        "sandbox.caches",
        "[\"__pycache__\", \".mypy_cache\", \".pytest_cache\", \".ruff_cache\", \"node_modules/.cache\", \"node_modules/.vite\"]",
        "directories of these names hold what programs make again: what a command leaves there is left out where it is not held, without a question; `[]` for none",
    ),
    key(
        "chat.stop_loops",
        "false",
        "end a turn in which the model goes round in circles",
    ),
    key(
        "chat.warn_loops",
        "true",
        "tell the model that it goes round in circles",
    ),
    key(
        "chat.same_call_max",
        "5",
        "failures of the same call after which it is not made again, if loops are stopped",
    ),
    key(
        "chat.same_tool_max",
        "8",
        "failures of one tool in a row that end the turn, if loops are stopped",
    ),
    key(
        "chat.same_answer_max",
        "5",
        "equal answers after which a question is not put again, if loops are stopped",
    ),
    key(
        "chat.name_unwritten",
        "true",
        "name the files that a turn was to change and did not, below its last words",
    ),
    key(
        "chat.ask_for_checks",
        "true",
        "remind a model, twice a turn at most, that ends without a check of the code it changed",
    ),
    key(
        "chat.advise_on_checks",
        "true",
        "add advice on checking and cleaning to that",
    ),
    key(
        "chat.children_max",
        "3",
        "tasks the model may hand to other agents at once",
    ),
    key(
        "chat.children_depth_max",
        "1",
        "how deep agents may start agents; 1 is the first one only",
    ),
    key(
        "chat.children_rounds_max",
        "50",
        "answers of the model a handed-out task may take",
    ),
    key(
        "chat.conversations_kept",
        "200",
        "conversations at a terminal that can be gone on with, the newest; 0 for none",
    ),
    key("models.planner.backend", "http", "http, llama or scripted"),
    key(
        "models.planner.model",
        "none",
        "the name of the model that works for you",
    ),
    key(
        "models.planner.base_url",
        "http://127.0.0.1:8080/v1",
        "where it is",
    ),
    key(
        "models.planner.file",
        "none",
        "the answers of a scripted one, the GGUF file of llama",
    ),
    key(
        "models.planner.key_env",
        "none",
        "the variable that holds its key",
    ),
    key(
        "models.planner.key_file",
        "none",
        "the file that holds its key",
    ),
    key(
        "models.planner.key_keyring",
        "none",
        "its name in the keyring of the desktop",
    ),
    key(
        "models.planner.structured",
        "json_schema",
        "json_schema, json_object, gbnf or none",
    ),
    key("models.planner.proxy", "none", "an address to go through"),
    key(
        "models.planner.timeout_seconds",
        "600",
        "how long one answer may take",
    ),
    key(
        "models.planner.retries",
        "2",
        "further tries where nobody answered",
    ),
    key(
        "models.planner.tokens_max",
        "the backend's",
        "how long an answer may be, in tokens",
    ),
    key(
        "models.planner.reply_bytes_max",
        "16777216",
        "how long an answer may be, in bytes",
    ),
    key(
        "models.planner.temperature",
        "the backend's",
        "how freely it chooses its words",
    ),
    key(
        "models.planner.context_tokens",
        "the backend's",
        "how long a conversation may be, in tokens; 16384 for llama",
    ),
    key(
        "models.planner.threads",
        "one a processor",
        "threads that count, for llama",
    ),
    key(
        "models.planner.memory_max_mb",
        "what is free",
        "memory besides the file, in MiB, for llama",
    ),
    key(
        "models.planner.seed",
        "0",
        "what chance begins with, for llama",
    ),
    key(
        "models.quarantined.backend",
        "the planner's",
        "http, llama or scripted",
    ),
    key(
        "models.quarantined.model",
        "the planner's",
        "the model that reads what nobody vouches for",
    ),
    key(
        "models.quarantined.base_url",
        "the planner's",
        "where it is",
    ),
    key(
        "models.quarantined.file",
        "none",
        "the answers of a scripted one, the GGUF file of llama",
    ),
    key(
        "models.quarantined.key_env",
        "none",
        "the variable that holds its key",
    ),
    key(
        "models.quarantined.key_file",
        "none",
        "the file that holds its key",
    ),
    key(
        "models.quarantined.key_keyring",
        "none",
        "its name in the keyring of the desktop",
    ),
    key(
        "models.quarantined.structured",
        "json_schema",
        "json_schema, json_object, gbnf or none",
    ),
    key(
        "models.quarantined.proxy",
        "none",
        "an address to go through",
    ),
    key(
        "models.quarantined.timeout_seconds",
        "600",
        "how long one answer may take",
    ),
    key(
        "models.quarantined.retries",
        "2",
        "further tries where nobody answered",
    ),
    key(
        "models.quarantined.tokens_max",
        "the backend's",
        "how long an answer may be, in tokens",
    ),
    key(
        "models.quarantined.reply_bytes_max",
        "16777216",
        "how long an answer may be, in bytes",
    ),
    key(
        "models.quarantined.temperature",
        "the backend's",
        "how freely it chooses its words",
    ),
    key(
        "models.quarantined.context_tokens",
        "the backend's",
        "how long a conversation may be, in tokens; 16384 for llama",
    ),
    key(
        "models.quarantined.threads",
        "one a processor",
        "threads that count, for llama",
    ),
    key(
        "models.quarantined.memory_max_mb",
        "what is free",
        "memory besides the file, in MiB, for llama",
    ),
    key(
        "models.quarantined.seed",
        "0",
        "what chance begins with, for llama",
    ),
];

/// The key of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The most similar of some words, if one is similar at all.
#[must_use]
pub fn nearest<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    words
        .into_iter()
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|one, two| one.0.total_cmp(&two.0))
        .map(|(_, known)| known)
}

/// A key that does not exist, with the one that may be meant. The last part
/// alone is enough to be understood.
#[must_use]
pub fn unknown(name: &str) -> String {
    let same_end = KEYS
        .iter()
        .map(|key| key.name)
        .find(|known| known.rsplit('.').next() == name.rsplit('.').next());
    let meant = same_end.or_else(|| nearest(name, KEYS.iter().map(|key| key.name)));
    match meant {
        Some(meant) => format!("there is no key `{name}`; did you mean `{meant}`?"),
        None => format!("there is no key `{name}`; `hermitcrab config show` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::{find, nearest, unknown};

    #[test]
    fn a_slip_of_the_pen_is_answered_with_what_was_meant() {
        assert!(find("limits.pids_max").is_some());
        for (slip, meant) in [
            ("limits.pid_max", "limits.pids_max"),
            ("memory_max_mb", "limits.memory_max_mb"),
            ("saftey.block_rm_rf", "safety.block_rm_rf"),
            ("mod", "`mode`"),
        ] {
            assert!(unknown(slip).contains(meant), "{}", unknown(slip));
        }
        assert!(!unknown("colour.of.the.sky").contains("did you mean"));
        assert_eq!(nearest("rulse", ["mode", "rules"]), Some("rules"));
    }
}
