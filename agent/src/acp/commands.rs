//! What a user types that is meant for the agent's own machinery and never
//! reaches the model.

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, UnstructuredCommandInput,
};

use crate::{config::keys, slash};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Show what is held.
    Caps,
    /// End a grant.
    Revoke(String),
    /// Show the last records of the ledger.
    Audit(usize),
    /// Show the plan.
    Plan,
    /// Make a plan for this, lock it, and carry it out if it is approved.
    MakePlan(String),
    /// Let the model work, and change nothing.
    DryRun(String),
    /// Leave a question that waits for words.
    Leave,
    /// Take back what was done.
    Undo(Undo),
}

/// What is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Nothing: what could be is shown.
    List,
    /// The last so many changes.
    Last(usize),
    /// The commit with this number.
    Commit(u64),
}

/// What they are called.
const NAMES: [&str; 8] = [
    "caps", "revoke", "audit", "plan", "dry-run", "undo", "leave", "help",
];
/// Records that are shown unless a number is given.
const RECORDS: usize = 20;
/// The most that are shown.
const RECORDS_MAX: usize = 500;

/// Reads a command; `None` if these words are for the model.
///
/// # Errors
/// What is missing, in one line.
pub fn read(typed: &str) -> Option<Result<Command, String>> {
    let typed = typed.trim();
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let rest = rest.trim();
    Some(match word {
        "/caps" => Ok(Command::Caps),
        "/revoke" if rest.is_empty() => {
            Err("say which: `/revoke grant3`, as `/caps` names them".to_owned())
        }
        "/revoke" => Ok(Command::Revoke(rest.to_owned())),
        "/audit" if rest.is_empty() => Ok(Command::Audit(RECORDS)),
        "/audit" => rest
            .parse()
            .map(|count: usize| Command::Audit(count.min(RECORDS_MAX)))
            .map_err(|_| "say how many records: `/audit 50`".to_owned()),
        "/plan" if rest.is_empty() => Ok(Command::Plan),
        "/plan" => Ok(Command::MakePlan(rest.to_owned())),
        "/dry-run" if rest.is_empty() => {
            Err("say what to do: `/dry-run rename the module`".to_owned())
        }
        "/dry-run" => Ok(Command::DryRun(rest.to_owned())),
        "/undo" => undo(rest).map(Command::Undo),
        "/leave" => Ok(Command::Leave),
        _ => return None,
    })
}

/// Said where a plan is asked for with more than it can be made of.
pub const PLANS_WORDS: &str = "There is no plan: `/plan` takes words, and files of this machine that are mentioned \
     and have plain names. What else is attached may have been written by somebody else, so no plan is made of it. \
     Name the files in your words.";

/// What a model is to work on in a dry run, what is attached to the words included.
#[must_use]
pub fn dry_run_of(words: &str) -> Option<&str> {
    let rest = words.trim_start().strip_prefix("/dry-run")?;
    let is_its_name = rest.starts_with(char::is_whitespace);
    Some(rest.trim()).filter(|rest| is_its_name && !rest.is_empty())
}

/// What of it is to be taken back, as at the prompt of a terminal.
fn undo(rest: &str) -> Result<Undo, String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let read = match words.as_slice() {
        [] => Some(Undo::Last(1)),
        ["list" | "--list"] => Some(Undo::List),
        ["commit", id] => id.parse().ok().map(Undo::Commit),
        [last] => last.parse().ok().filter(|last| *last > 0).map(Undo::Last),
        _ => None,
    };
    read.ok_or_else(|| {
        "say what: `/undo` takes back the last change, `/undo 3` the last three, `/undo commit 7` \
         that one, and `/undo list` shows them"
            .to_owned()
    })
}

/// What is said to a line that begins like a command and is none: it was hardly meant
/// for the model. `None` if it is for the model.
#[must_use]
pub fn mistyped(typed: &str) -> Option<String> {
    let typed = typed.trim();
    if !typed.starts_with('/') || slash::begins_with_path(typed) {
        return None;
    }
    let name = typed.split_whitespace().next()?.trim_start_matches('/');
    if name == "help" {
        let lines = available()
            .into_iter()
            .map(|command| format!("- `/{}`: {}", command.name, command.description));
        return Some(lines.collect::<Vec<_>>().join("\n"));
    }
    let hint = match keys::nearest(&name.to_lowercase(), NAMES) {
        Some(meant) => format!("did you mean `/{meant}`?"),
        None => format!("there are `/{}`.", NAMES.join("`, `/")),
    };
    Some(format!(
        "there is no command `/{name}`; {hint} The model has not seen these words; for it they \
         begin with something other than a slash."
    ))
}

/// The commands, for the client.
#[must_use]
pub fn available() -> Vec<AvailableCommand> {
    let command = |name: &str, words: &str, hint: Option<&str>| {
        let command = AvailableCommand::new(name, words);
        match hint {
            Some(hint) => command.input(AvailableCommandInput::Unstructured(
                UnstructuredCommandInput::new(hint),
            )),
            None => command,
        }
    };
    vec![
        command("caps", "Show what the agent may do now", None),
        command(
            "revoke",
            "End a grant and all that came from it",
            Some("grant3"),
        ),
        command(
            "audit",
            "Show the last records of this session's ledger",
            Some("20"),
        ),
        command(
            "plan",
            "Make a plan, lock it, and carry it out once you approve; without words, show the plan",
            Some("what to do"),
        ),
        command(
            "dry-run",
            "Let the agent work and change nothing: every change is shown and refused",
            Some("what to do"),
        ),
        command(
            "undo",
            "Take back the last change here; `/undo list` shows what can be taken back",
            Some("list, a number of changes, or `commit 7`"),
        ),
        command(
            "leave",
            "Leave a question that waits for your words, and end what asked it",
            None,
        ),
        command("help", "Say what each of these is for", None),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Command, NAMES, Undo, available, mistyped, read};

    #[test]
    fn commands_are_told_from_words_for_the_model() {
        let ok = |typed: &str, expected: Command| assert_eq!(read(typed), Some(Ok(expected)));
        ok("/caps", Command::Caps);
        ok(" /revoke  grant3 ", Command::Revoke("grant3".into()));
        ok("/audit", Command::Audit(20));
        ok("/audit 9999999", Command::Audit(500));
        ok("/dry-run a\nb", Command::DryRun("a\nb".into()));
        ok("/leave", Command::Leave);
        ok("/undo", Command::Undo(Undo::Last(1)));
        ok("/undo 3", Command::Undo(Undo::Last(3)));
        ok("/undo list", Command::Undo(Undo::List));
        ok("/undo  commit 7", Command::Undo(Undo::Commit(7)));
        for typed in [
            "/revoke",
            "/audit x",
            "/dry-run ",
            "/undo 0",
            "/undo -1",
            "/undo x",
            "/undo commit",
            "/undo 1 2",
            "/undo commit 1 2",
        ] {
            assert!(matches!(read(typed), Some(Err(_))), "{typed}");
        }
        for typed in ["", "caps", "/capsize", "/etc/passwd is what?", "/"] {
            assert_eq!(read(typed), None, "{typed}");
        }
    }

    #[test]
    fn a_slip_in_a_command_is_met_and_words_for_the_model_are_not() {
        let named: Vec<String> = available().into_iter().map(|one| one.name).collect();
        assert_eq!(named, NAMES);
        for (typed, meant) in [
            ("/cap", "`/caps`?"),
            (" /revke grant3", "`/revoke`?"),
            ("/AUDIT", "`/audit`?"),
            ("/dry_run x", "`/dry-run`?"),
            ("/xyzzy", "there are `/caps`"),
            ("/help", "- `/caps`: Show what the agent may do now"),
            ("/halp", "`/help`?"),
        ] {
            let said = mistyped(typed);
            assert!(
                said.as_ref().is_some_and(|said| said.contains(meant)),
                "{typed}: {said:?}"
            );
        }
        for typed in [
            "",
            "cap",
            "/",
            "/etc/passwd is what?",
            "/tmp is full",
            "a /cap",
        ] {
            assert_eq!(mistyped(typed), None, "{typed}");
        }
    }
}
