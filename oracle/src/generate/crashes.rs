//! Calls in whose middle the program is killed.
//!
//! What for: what a call changes is one commit, and a kill at any moment must leave all
//! of it or nothing, once the program has been started again. A crash is an operation
//! and a number: the agent is killed right before its so-many-th system call that
//! changes files. Hermes makes the whole call, which says what all of it is. Afterwards
//! another call shows that the program works on.

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, Cut, FileKind, FileSpec, Restart, Step};
use serde_json::{Value, json};

use super::paths::Holding;
use super::surroundings::{self, CONTEXTS, USUAL};
use crate::case::{CWD_DEFAULT, CaseFile};
use crate::subject::agent_world::PLAN_PROBE;

/// The highest number of a change right before which the agent is killed.
pub const CHANGES_MAX: u32 = 160;

/// A call that changes files: its name, and the call.
pub type Operation = (&'static str, fn() -> Step);

/// All of them, in a fixed order.
pub const CRASHES: &[Operation] = &[
    ("write-new", || {
        tool(
            "write_file",
            json!({ "path": "cz/deep/new.txt", "content": "new\n" }),
        )
    }),
    ("write-over", || {
        tool(
            "write_file",
            json!({ "path": "cz/one.txt", "content": "written\n" }),
        )
    }),
    ("replace", || {
        tool(
            "patch",
            json!({ "mode": "replace", "path": "cz/two.txt", "old_string": "two", "new_string": "2" }),
        )
    }),
    ("patch-many", || {
        let patch = "*** Begin Patch\n\
            *** Add File: cz/added.txt\n+added\n\
            *** Update File: cz/one.txt\n@@\n-one\n+1\n\
            *** Update File: cz/two.txt\n@@\n-two\n+2\n\
            *** Delete File: cz/three.txt\n\
            *** End Patch\n";
        tool("patch", json!({ "mode": "patch", "patch": patch }))
    }),
    ("command-write", || command("echo written > cz/one.txt")),
    ("command-append", || command("echo more >> cz/two.txt")),
    ("command-create", || {
        command("mkdir -p cz/d/e; echo a > cz/d/a; echo b > cz/d/e/b")
    }),
    ("command-delete", || command("rm cz/one.txt cz/two.txt")),
    ("command-move", || command("mv cz/one.txt cz/d.txt")),
    ("command-mode", || {
        command("chmod 600 cz/one.txt; chmod 750 cz")
    }),
    ("command-link", || command("ln -s one.txt cz/link")),
    ("command-many", || {
        command(
            "echo a > cz/one.txt; mkdir cz/n; echo b > cz/n/b; rm cz/two.txt; \
             mv cz/three.txt cz/n/c; chmod 600 cz/four.txt; ln -s one.txt cz/link; rmdir cz/empty",
        )
    }),
    ("plan-create", || plan(&CREATE, false)),
    ("plan-move", || plan(&MOVE, false)),
    ("plan-directory", || plan(&DIRECTORY, false)),
    ("plan-delete", || plan(&DELETE, false)),
    ("undo-create", || plan(&CREATE, true)),
    ("undo-move", || plan(&MOVE, true)),
    ("undo-directory", || plan(&DIRECTORY, true)),
    ("undo-delete", || plan(&DELETE, true)),
    ("command-move-directory", || {
        command("mv cz/full cz/moved; echo more >> cz/one.txt")
    }),
    ("command-move-between", || {
        command("mkdir cz/n; mv cz/full/in.txt cz/two.txt cz/n; rm -r cz/full")
    }),
];

/// A step of a plan, and the call by which Hermes does the same.
type Same = (&'static str, fn() -> Value, fn() -> Value);

const CREATE: Same = (
    "create_file",
    || json!({ "path": "cz/new.txt", "text": "new\n" }),
    || json!({ "tool": "write_file", "args": { "path": "cz/new.txt", "content": "new\n" } }),
);
const MOVE: Same = (
    "move_file",
    || json!({ "from": "cz/one.txt", "to": "cz/moved.txt" }),
    || run("mv cz/one.txt cz/moved.txt"),
);
const DIRECTORY: Same = (
    "create_directory",
    || json!({ "path": "cz/d/e" }),
    || run("mkdir -p cz/d/e"),
);
const DELETE: Same = (
    "delete_files",
    || json!({ "paths": ["cz/one.txt", "cz/two.txt"] }),
    || run("rm cz/one.txt cz/two.txt"),
);

/// A crash.
#[derive(Clone, Debug)]
pub struct Crash {
    /// In the middle of what.
    pub operation: &'static Operation,
    /// Right before which change.
    pub before: u32,
    /// Where it is called.
    pub context: Context,
}

impl Crash {
    /// The case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let (_, step) = self.operation;
        let held = Holding::All.held();
        let mut script = vec![cut_off(step(), self.before)];
        // What was held is gone with the session.
        script.extend(held.iter().map(|held| {
            let mut again = held.clone();
            again.id = "again".to_owned();
            Step::Grant(again)
        }));
        script.push(tool(
            "write_file",
            json!({ "path": "cz/after.txt", "content": "after\n" }),
        ));
        CaseFile {
            world: surroundings::world(files(), None),
            held: Some(held),
            ..surroundings::case_file(format!("crash:{self}"), self.context, script)
        }
    }

    /// The families it is counted under.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        vec![self.operation.0]
    }

    /// The same at a terminal.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        usual.into_iter()
    }

    /// The crash with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let (operation, before) = name.split_once('~')?;
        Some(Self {
            operation: CRASHES.iter().find(|(known, _)| *known == operation)?,
            before: change(before)?,
            context,
        })
    }
}

/// The number of a change.
pub(super) fn change(text: &str) -> Option<u32> {
    let number = text.parse().ok();
    number.filter(|number| (1..=CHANGES_MAX).contains(number))
}

/// The step, cut off right before this change.
pub(super) fn cut_off(step: Step, before: u32) -> Step {
    Step::Restart(Restart {
        during: Some(Box::new(Cut { step, before })),
        ..Restart::default()
    })
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.operation.0, self.before)?;
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl<'a> Arbitrary<'a> for Crash {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self {
            operation: bytes.choose(CRASHES)?,
            before: bytes.int_in_range(1..=CHANGES_MAX)?,
            context: *bytes.choose(&CONTEXTS)?,
        })
    }
}

fn tool(tool: &str, args: Value) -> Step {
    Step::Call {
        tool: tool.to_owned(),
        args,
        by: None,
    }
}

fn command(text: &str) -> Step {
    tool("terminal", json!({ "command": text }))
}

/// A command, as a call of Hermes.
fn run(command: &str) -> Value {
    json!({ "tool": "terminal", "args": { "command": command } })
}

fn plan((action, with, call): &Same, undo: bool) -> Step {
    Step::Probe {
        name: PLAN_PROBE.to_owned(),
        input: json!({
            "plan": { "version": 1, "steps": [{ "id": "one", "call": action, "with": with() }] },
            "calls": [call()],
            "undo": undo,
        }),
    }
}

fn files() -> Vec<FileSpec> {
    let spec = |path: &str, kind| FileSpec {
        path: format!("{CWD_DEFAULT}/{path}"),
        kind,
        mode: None,
    };
    let texts = [
        ("cz/one.txt", "one\n"),
        ("cz/two.txt", "two\n"),
        ("cz/three.txt", "three\n"),
        ("cz/four.txt", "four\n"),
        ("cz/full/in.txt", "in\n"),
        ("cz/full/deep/more.txt", "more\n"),
    ];
    let texts = texts.map(|(path, text)| spec(path, FileKind::Text(text.to_owned())));
    let empty = spec("cz/empty", FileKind::Dir(true));
    texts.into_iter().chain([empty]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_one_crash_and_leads_back() {
        let mut names = BTreeSet::new();
        for operation in CRASHES {
            for before in [1, CHANGES_MAX] {
                for context in [Context::Interactive, Context::Cron] {
                    let crash = Crash {
                        operation,
                        before,
                        context,
                    };
                    let name = crash.to_string();
                    assert_eq!(Crash::named(&name).unwrap().to_string(), name);
                    assert!(names.insert(name));
                }
            }
        }
        for wrong in ["write-new", "write-new~0", "write-new~161", "swim~1"] {
            assert!(Crash::named(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn the_first_step_is_cut_off_and_the_last_is_a_call_that_is_held() {
        for operation in CRASHES {
            let crash = Crash {
                operation,
                before: 7,
                context: USUAL,
            };
            let script = crash.case_file().script;
            assert_eq!(script[0].cut().map(|cut| cut.before), Some(7));
            assert!(script[1..].iter().all(|step| step.cut().is_none()));
            assert!(matches!(script.last(), Some(Step::Call { .. })));
        }
    }
}
