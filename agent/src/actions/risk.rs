//! How much a step can break: from the operation and what the plan itself
//! says, never from the spelling of a command.

use std::path::Path;

use hermitcrab_core::plan::{Expr, Raw, StatedRisk, Step, Toolbox, What};

use crate::runtime::lexical;

/// How much a step can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// It only looks.
    Low,
    /// It adds or moves, and can be undone.
    Medium,
    /// It removes, replaces, or runs a program that reads programs.
    High,
    /// It can never be done.
    Blocked,
}

impl Risk {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
            Risk::Blocked => "blocked",
        }
    }
}

fn literal<'w>(with: &'w [(String, Expr)], name: &str) -> Option<&'w Expr> {
    with.iter()
        .find(|(known, _)| known == name)
        .map(|(_, expr)| expr)
}

/// Every text the plan itself writes in an expression.
fn texts<'e>(expr: &'e Expr, found: &mut Vec<&'e str>) {
    match expr {
        Expr::Literal(Raw::Text(text)) => found.push(text),
        Expr::List(parts) => {
            for part in parts {
                texts(part, found);
            }
        }
        Expr::Literal(_)
        | Expr::Ref { .. }
        | Expr::Record(_)
        | Expr::Text(_)
        | Expr::Apply(..)
        | Expr::Over { .. } => {}
    }
}

/// Does a path written in the plan lead out of the workspace?
fn leads_out(path: &str, workspace: &Path) -> bool {
    if path.contains('\0') || path.starts_with('~') {
        return true;
    }
    lexical(&workspace.join(path)).is_none_or(|path| !path.starts_with(workspace))
}

fn is_workspace(path: &str, workspace: &Path) -> bool {
    lexical(&workspace.join(path)).is_some_and(|path| path == workspace)
}

/// The places that the plan itself writes for a call.
fn places(with: &[(String, Expr)]) -> Vec<&str> {
    let mut places = Vec::new();
    for name in ["path", "paths", "from", "to", "into"] {
        if let Some(expr) = literal(with, name) {
            texts(expr, &mut places);
        }
    }
    places
}

/// Why a call can never be made: what it names, and what is wrong with that.
#[must_use]
pub fn never<'s>(step: &'s Step, workspace: &Path) -> Option<(&'s str, &'static str)> {
    let What::Call { tool, with } = &step.what else {
        return None;
    };
    places(with).into_iter().find_map(|path| {
        if leads_out(path, workspace) {
            return Some((path, "outside the workspace"));
        }
        let is_all = tool == "delete_files" && is_workspace(path, workspace);
        is_all.then_some((path, "the workspace itself"))
    })
}

/// The risk of a step, seen from the workspace. What a tool outside can break
/// is its user's word; without one it counts as the worst.
#[must_use]
pub fn of(step: &Step, workspace: &Path, toolbox: &Toolbox) -> Risk {
    let What::Call { tool, with } = &step.what else {
        return match &step.what {
            What::Delegate { .. } => Risk::High,
            What::ForEach { steps, .. } => worst(steps, workspace, toolbox),
            What::If { then, or_else, .. } => {
                worst(then, workspace, toolbox).max(worst(or_else, workspace, toolbox))
            }
            What::Call { .. }
            | What::Let(_)
            | What::Extract { .. }
            | What::AskUser { .. }
            | What::Confirm(_)
            | What::Answer(_)
            | What::Fail(_) => Risk::Low,
        };
    };
    if never(step, workspace).is_some() {
        return Risk::Blocked;
    }
    let says_true = |name| matches!(literal(with, name), Some(expr) if *expr != Expr::Literal(Raw::Truth(false)));
    match tool.as_str() {
        "list_files" | "find_files" | "read_file" | "file_info" => Risk::Low,
        "create_file" if says_true("replace") => Risk::High,
        "create_file" | "create_directory" | "copy_file" | "move_file" | "move_files"
        | "organize_by_type" => Risk::Medium,
        "run_command" => Risk::Medium,
        other => match toolbox.get(other).and_then(|tool| tool.risk) {
            Some(StatedRisk::Low) => Risk::Low,
            Some(StatedRisk::Medium) => Risk::Medium,
            Some(StatedRisk::High) | None => Risk::High,
        },
    }
}

/// The highest risk of some steps.
#[must_use]
pub fn worst(steps: &[Step], workspace: &Path, toolbox: &Toolbox) -> Risk {
    steps
        .iter()
        .map(|step| of(step, workspace, toolbox))
        .max()
        .unwrap_or(Risk::Low)
}
