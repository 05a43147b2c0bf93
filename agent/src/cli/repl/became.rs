//! What became of the calls of a turn, on one line: how many were done, failed and were refused,
//! and what can be taken back.

use hermitcrab_sandbox::journal::CommitId;

use crate::{chat::Made, runtime::Fate};

/// Whether a call did something before it came to nothing: a script may have called tools.
fn has_begun(made: &Made) -> bool {
    match made.fate {
        Fate::Ran | Fate::RanDiscarded(_) | Fate::ToolError | Fate::Failed(_) => true,
        Fate::Refused(_) | Fate::AskedRefused(_) => false,
    }
}

/// The line under a turn, if anything was called. Of what was refused, so many were called off,
/// which is told elsewhere: nobody refused these. `kept` is the last commit there is since the
/// turn began.
pub(super) fn line(made: &[Made], called_off: usize, kept: Option<CommitId>) -> Option<String> {
    let (mut done, mut refused, mut failed) = (0_usize, 0_usize, 0_usize);
    for made in made {
        match &made.fate {
            Fate::Ran => done += 1,
            Fate::RanDiscarded(_) | Fate::Refused(_) | Fate::AskedRefused(_) => refused += 1,
            Fate::ToolError | Fate::Failed(_) => failed += 1,
        }
    }
    let refused = refused.saturating_sub(called_off);
    if done + refused + failed == 0 {
        return None;
    }
    let undo = match kept {
        None => String::new(),
        // None of the calls did it, so it is not the last of theirs.
        Some(id) if done == 0 && !made.iter().any(has_begun) => format!(
            "; what a background command changed is kept as commit {id}, and `undo` takes it back"
        ),
        Some(id) => format!("; `undo` takes back the last, commit {id}"),
    };
    let counts = [(done, "done"), (failed, "failed"), (refused, "refused")];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    Some(format!("  {}{undo}", counts.join(", ")))
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{grant::AgentId, outcome::DenialCode};

    use super::*;

    fn made(fates: &[Fate]) -> Vec<Made> {
        let one = |fate: &Fate| Made {
            agent: AgentId::FIRST,
            tool: "write_file".to_owned(),
            fate: fate.clone(),
            questions: 0,
        };
        fates.iter().map(one).collect()
    }

    #[test]
    fn a_commit_is_the_last_of_calls_only_where_one_of_them_was_done() {
        let no = Fate::AskedRefused(DenialCode::RejectedByUser);
        let kept = Some(CommitId::new(4));
        for (fates, called_off, kept, told) in [
            (vec![], 0, None, None),
            (vec![], 0, kept, None),
            (vec![no.clone()], 1, None, None),
            (vec![no.clone()], 0, None, Some("  1 refused")),
            (
                // A script's own changes, after a tool it called.
                vec![Fate::RanDiscarded(DenialCode::NoCap)],
                0,
                kept,
                Some("  1 refused; `undo` takes back the last, commit 4"),
            ),
            (
                vec![Fate::Ran, no.clone(), Fate::ToolError],
                0,
                kept,
                Some("  1 done, 1 failed, 1 refused; `undo` takes back the last, commit 4"),
            ),
            (
                vec![no],
                0,
                kept,
                Some(
                    "  1 refused; what a background command changed is kept as commit 4, and `undo` takes it back",
                ),
            ),
        ] {
            assert_eq!(line(&made(&fates), called_off, kept).as_deref(), told);
        }
    }
}
