//! What is done with a name: every file tool and mode that takes one.

use bisim_world::protocol::Step;
use serde_json::{Value, json};

/// One way to use a name.
#[derive(Debug)]
pub struct Action {
    /// Stable, unique, kebab-case.
    pub name: &'static str,
    by: By,
    args: fn(&str) -> Value,
}

/// Who does it.
#[derive(Debug)]
enum By {
    /// A tool of this name.
    Tool(&'static str),
    /// The same, and what it changed is taken back in a step of its own.
    Undone(&'static str),
    /// A plan that is carried out, and the calls of whoever has no plans.
    Plan,
}

impl Action {
    /// The call on this name.
    #[must_use]
    pub fn step(&self, path: &str) -> Step {
        let args = (self.args)(path);
        match self.by {
            By::Tool(tool) | By::Undone(tool) => Step::Call {
                tool: tool.to_owned(),
                args,
                by: None,
            },
            By::Plan => Step::Probe {
                name: crate::subject::agent_world::PLAN_PROBE.to_owned(),
                input: args,
            },
        }
    }

    /// The call, and what takes it back where that is meant: the last step is what the
    /// action is about.
    pub(in super::super) fn steps(&self, path: &str) -> Vec<Step> {
        let mut steps = vec![self.step(path)];
        if let By::Undone(_) = self.by {
            steps.push(taking_back());
        }
        steps
    }
}

/// Takes back the newest commit; whoever takes nothing back is given nothing to do.
fn taking_back() -> Step {
    Step::Probe {
        name: crate::subject::agent_world::UNDO_PROBE.to_owned(),
        input: json!({ "calls": [] }),
    }
}

/// An action.
pub(in super::super) const fn action(
    name: &'static str,
    tool: &'static str,
    args: fn(&str) -> Value,
) -> Action {
    let by = By::Tool(tool);
    Action { name, by, args }
}

/// The same, taken back afterwards.
pub(in super::super) const fn undone(
    name: &'static str,
    tool: &'static str,
    args: fn(&str) -> Value,
) -> Action {
    let by = By::Undone(tool);
    Action { name, by, args }
}

/// The same, by a plan.
pub(in super::super) const fn planned(name: &'static str, input: fn(&str) -> Value) -> Action {
    Action {
        name,
        by: By::Plan,
        args: input,
    }
}

pub(in super::super) fn v4a(lines: &str) -> Value {
    json!({
        "mode": "patch",
        "patch": format!("*** Begin Patch\n{lines}\n*** End Patch"),
    })
}

/// All actions, in a fixed order.
pub const ACTIONS: &[Action] = &[
    action("read", "read_file", |path| json!({ "path": path })),
    action(
        "read-part",
        "read_file",
        |path| json!({ "path": path, "offset": 2, "limit": 1 }),
    ),
    action(
        "write",
        "write_file",
        |path| json!({ "path": path, "content": "written\n" }),
    ),
    action(
        "write-nothing",
        "write_file",
        |path| json!({ "path": path, "content": "" }),
    ),
    action("replace", "patch", |path| {
        json!({
            "mode": "replace", "path": path,
            "old_string": "CANARY", "new_string": "gone", "replace_all": true,
        })
    }),
    action(
        "replace-inside",
        "patch",
        |path| json!({ "mode": "replace", "path": path, "old_string": "inside", "new_string": "new" }),
    ),
    action("patch-update", "patch", |path| {
        v4a(&format!("*** Update File: {path}\n-inside\n+new"))
    }),
    action("patch-add", "patch", |path| {
        v4a(&format!("*** Add File: {path}\n+added"))
    }),
    action("patch-delete", "patch", |path| {
        v4a(&format!("*** Delete File: {path}"))
    }),
    action("patch-move-there", "patch", |path| {
        v4a(&format!(
            "*** Update File: pz/plain.txt\n*** Move to: {path}\n-inside\n+new"
        ))
    }),
    action("patch-move-away", "patch", |path| {
        v4a(&format!("*** Move File: {path} -> pz/moved.txt"))
    }),
    action(
        "search-content",
        "search_files",
        |path| json!({ "pattern": "CANARY|inside", "path": path }),
    ),
    action(
        "search-names",
        "search_files",
        |path| json!({ "pattern": "*", "target": "files", "path": path }),
    ),
];
