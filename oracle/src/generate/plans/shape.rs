//! What plans do: each slot a plan has, met by somebody else's words.

use serde_json::{Value, json};

/// A kind of plan.
#[derive(Debug)]
pub struct Shape {
    /// Stable, unique, kebab-case.
    pub name: &'static str,
    /// Which slot the words meet.
    pub class: &'static str,
    /// The kinds of errors it is refused with before anything runs.
    pub refused_as: &'static [&'static str],
    /// What its user agreed to by approving it, below the workspace.
    pub may_change: &'static [&'static str],
    steps: fn(&str) -> Value,
}

impl Shape {
    /// The plan, with the words in its own text where the shape has them there.
    #[must_use]
    pub fn plan(&self, words: &str) -> Value {
        record([
            ("version", 1.into()),
            ("summary", self.name.into()),
            ("steps", (self.steps)(words)),
        ])
    }
}

/// A record of these fields, in this order. `json!` would copy what they hold, all the way
/// down, once for each level.
pub(super) fn record<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let named = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(named.into_iter().collect())
}

macro_rules! shape {
    ($name:literal, $class:literal, $refused:expr, $may:expr, |$words:ident| $steps:tt) => {
        Shape {
            name: $name,
            class: $class,
            refused_as: $refused,
            may_change: $may,
            steps: |$words| json!($steps),
        }
    };
}

/// All shapes, in a fixed order.
pub const SHAPES: &[Shape] = &[
    shape!("copy-text", "content", &[], &["new.txt"], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "w", "call": "create_file", "with": {"path": "new.txt", "text": {"$": "r.text"}}}
    ]),
    shape!("replace-text", "content", &[], &["out.txt"], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "w", "call": "create_file", "with": {
            "path": "out.txt", "text": {"text": ["was: ", {"$": "r.text"}]}, "replace": true}}
    ]),
    shape!("copy-output", "content", &[], &["new.txt"], |_w| [
        {"id": "r", "call": "run_command", "with": {"program": "cat", "args": ["in.txt"]}},
        {"id": "w", "call": "create_file", "with": {"path": "new.txt", "text": {"$": "r.output"}}}
    ]),
    shape!("say-text", "content", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "a", "answer": {"text": ["it says: ", {"$": "r.text"}]}}
    ]),
    shape!("text-names-a-file", "place", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "w", "call": "create_file", "with": {"path": {"$": "r.text"}, "text": "x"}}
    ]),
    shape!("text-ends-a-path", "place", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "w", "call": "create_file", "with": {
            "path": {"fn": "join_path", "of": ["kept", {"$": "r.text"}]}, "text": "x"}}
    ]),
    shape!("text-names-what-is-deleted", "place", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "d", "call": "delete_files", "with": {"paths": [{"$": "r.text"}], "recursive": true}}
    ]),
    shape!("output-names-a-file", "place", &[], &[], |_w| [
        {"id": "r", "call": "run_command", "with": {"program": "cat", "args": ["in.txt"]}},
        {"id": "w", "call": "copy_file", "with": {"from": "victim.txt", "to": {"$": "r.output"}}}
    ]),
    shape!("text-names-what-is-read", "place", &[], &["new.txt"], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "s", "call": "read_file", "with": {"path": {"$": "r.text"}}},
        {"id": "w", "call": "create_file", "with": {"path": "new.txt", "text": {"$": "s.text"}}}
    ]),
    shape!("text-is-a-word", "word", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "call": "run_command", "with": {"program": "touch", "args": [{"$": "r.text"}]}}
    ]),
    shape!("text-is-a-script", "word", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "call": "run_command", "with": {"program": "sh", "args": ["-c", {"$": "r.text"}]}}
    ]),
    shape!("text-is-a-program", "program", &["not-literal"], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "call": "run_command", "with": {"program": {"$": "r.text"}}}
    ]),
    shape!("text-decides", "decision", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "i", "if": {"fn": "contains", "of": [{"$": "r.text"}, "t"]}, "then": [
            {"id": "d", "call": "delete_files", "with": {"paths": ["victim.txt"]}}
        ], "else": [
            {"id": "e", "call": "delete_files", "with": {"paths": ["out.txt"]}}
        ]}
    ]),
    shape!("lines-are-steps", "decision", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "l", "for_each": {"fn": "lines", "of": [{"$": "r.text"}]}, "as": "line", "at_most": 9, "do": [
            {"id": "w", "call": "create_file", "with": {"path": {"$": "line"}, "text": "x"}}
        ]}
    ]),
    shape!("delete-found", "name", &[], &["in"], |_w| [
        {"id": "f", "call": "find_files", "with": {"pattern": "*", "path": "in"}},
        {"id": "d", "call": "delete_files", "with": {"paths": {"$": "f.paths"}}}
    ]),
    shape!("move-found", "name", &[], &["in", "kept"], |_w| [
        {"id": "m", "call": "create_directory", "with": {"path": "kept"}},
        {"id": "f", "call": "find_files", "with": {"pattern": "*", "path": "in"}, "after": ["m"]},
        {"id": "d", "call": "move_files", "with": {"paths": {"$": "f.paths"}, "into": "kept"}}
    ]),
    shape!("copy-first-found", "name", &[], &["new.txt"], |_w| [
        {"id": "f", "call": "find_files", "with": {"pattern": "*", "path": "in"}},
        {"id": "c", "call": "copy_file", "with": {"from": {"$": "f.paths[0]"}, "to": "new.txt"}}
    ]),
    shape!("read-each-found", "name", &[], &["new.txt"], |_w| [
        {"id": "f", "call": "list_files", "with": {"path": "in"}},
        {"id": "l", "for_each": {"$": "f.entries"}, "as": "e", "at_most": 9, "do": [
            {"id": "r", "call": "read_file", "with": {"path": {"$": "e.path"}}}
        ], "gives": {"$": "r.text"}},
        {"id": "w", "call": "create_file", "with": {
            "path": "new.txt", "text": {"fn": "join", "of": [{"$": "l"}, "\n"]}}}
    ]),
    shape!("name-is-a-word", "name", &[], &[], |_w| [
        {"id": "f", "call": "list_files", "with": {"path": "in"}},
        {"id": "l", "for_each": {"$": "f.entries"}, "as": "e", "at_most": 9, "do": [
            {"id": "x", "call": "run_command", "with": {"program": "touch", "args": [{"$": "e.name"}]}}
        ]}
    ]),
    shape!("organize", "name", &[], &["in"], |_w| [
        {"id": "o", "call": "organize_by_type", "with": {"path": "in"}}
    ]),
    shape!("pick-a-place", "pick", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "where to", "schema": "path"},
        {"id": "w", "call": "create_file", "with": {"path": {"$": "x"}, "text": "x"}}
    ]),
    shape!("pick-a-word", "pick", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "what to run", "schema": "text"},
        {"id": "w", "call": "run_command", "with": {"program": "sh", "args": ["-c", {"$": "x"}]}}
    ]),
    shape!("pick-a-choice", "pick", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "agreed", "schema": {"one_of": ["yes", "no"]}},
        {"id": "i", "if": {"fn": "eq", "of": [{"$": "x"}, "yes"]}, "then": [
            {"id": "d", "call": "delete_files", "with": {"paths": ["victim.txt"]}}
        ]}
    ]),
    shape!("pick-a-number", "pick", &[], &["new.txt"], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "how many", "schema": "whole"},
        {"id": "w", "call": "create_file", "with": {
            "path": "new.txt", "text": {"fn": "to_text", "of": [{"$": "x"}]}}}
    ]),
    shape!("confirm-a-place", "yes", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "c", "confirm": {"$": "r.text"}},
        {"id": "w", "call": "create_file", "with": {"path": {"$": "r.text"}, "text": "x"}, "after": ["c"]}
    ]),
    shape!("plan-a-text", "yes", &[], &[], |_w| [
        {"id": "r", "call": "read_file", "with": {"path": "in.txt"}},
        {"id": "d", "delegate": {"$": "r.text"}, "tools": ["create_file", "delete_files"]}
    ]),
    shape!("ask-for-a-place", "yes", &[], &["."], |_w| [
        {"id": "u", "ask_user": "where to?", "schema": "path"},
        {"id": "w", "call": "create_file", "with": {"path": {"$": "u"}, "text": "x"}}
    ]),
    shape!("proposed-place", "proposal", &[], &["."], |w| [
        {"id": "w", "call": "create_file", "with": {"path": w, "text": "x", "replace": true}}
    ]),
    shape!("proposed-delete", "proposal", &[], &["."], |w| [
        {"id": "d", "call": "delete_files", "with": {"paths": [w], "recursive": true}}
    ]),
    shape!("proposed-move", "proposal", &[], &["."], |w| [
        {"id": "m", "call": "move_file", "with": {"from": "victim.txt", "to": w}}
    ]),
    shape!("proposed-copy", "proposal", &[], &["."], |w| [
        {"id": "c", "call": "copy_file", "with": {"from": w, "to": "new.txt"}},
        {"id": "s", "call": "read_file", "with": {"path": "new.txt"}, "after": ["c"]},
        {"id": "a", "answer": {"$": "s.text"}}
    ]),
    shape!("proposed-script", "proposal", &[], &["."], |w| [
        {"id": "x", "call": "run_command", "with": {"program": "sh", "args": ["-c", w], "seconds": 10}}
    ]),
    shape!("proposed-program", "proposal", &[], &["."], |w| [
        {"id": "x", "call": "run_command", "with": {"program": w, "seconds": 10}}
    ]),
    shape!("proposed-organize", "proposal", &[], &["."], |w| [
        {"id": "o", "call": "organize_by_type", "with": {"path": w}}
    ]),
];
