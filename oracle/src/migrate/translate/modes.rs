//! When Hermes asks, and when the agent would.

use super::{Proposal, ProposedGrant, Settings};

pub(super) fn proposals(settings: &Settings) -> Vec<Proposal> {
    vec![mode(settings), files(), cron(settings), children(settings)]
}

fn mode(settings: &Settings) -> Proposal {
    let stated = settings.mode.as_deref();
    let (in_hermes, here, confirm) = match stated {
        Some("off") => (
            "nothing is asked; only the short list of catastrophic spellings and your deny globs stop a command",
            "what is not held is asked about. `approve_all` exists, keeps every denial, and is never proposed",
            "that you will be asked again, at first often; the suggested grants say how often",
        ),
        Some("smart") | None => (
            "a model judges commands that look dangerous and may let them run without asking you",
            "what is not held is asked about, by you alone. A judge model can propose (`hermitcrab chat --judge`) and never grant",
            "that no model says yes for you",
        ),
        Some("manual") => (
            "a command that looks dangerous is asked about; every other command and every edit of a file is not",
            "what is not held is asked about, whatever it looks like",
            "",
        ),
        Some(_) => (
            "Hermes does not know this mode and treats it as one of its own",
            "what is not held is asked about",
            "which mode was meant",
        ),
    };
    Proposal {
        id: "mode".to_owned(),
        from: "approvals.mode".to_owned(),
        said: stated
            .unwrap_or("not stated: smart since 0.19, manual before")
            .to_owned(),
        in_hermes: in_hermes.to_owned(),
        here: here.to_owned(),
        confirm: confirm.to_owned(),
        setting: Some(("mode".to_owned(), "prompt".to_owned())),
        ..Proposal::default()
    }
}

/// What no list of Hermes says, because it never asks.
fn files() -> Proposal {
    Proposal {
        id: "edits".to_owned(),
        from: "(no setting: how Hermes is)".to_owned(),
        said: "files are written without asking, but for an editor's session".to_owned(),
        in_hermes: "every file the user may write can be made or changed unasked, but for a list of protected names".to_owned(),
        here: "files of the workspace may be made and changed unasked until the grants end; deleting, and everything outside, is asked about".to_owned(),
        confirm: "that edits in the workspace need no question; without these grants each is shown as a diff first".to_owned(),
        grants: vec![
            ProposedGrant::new("fs.create", "."),
            ProposedGrant::new("fs.modify", "."),
        ],
        ..Proposal::default()
    }
}

fn cron(settings: &Settings) -> Proposal {
    let said = settings.cron_mode.as_deref();
    Proposal {
        id: "cron".to_owned(),
        from: "approvals.cron_mode".to_owned(),
        said: said.unwrap_or("not stated: deny").to_owned(),
        in_hermes: match said {
            Some("approve") => "a scheduled job runs every command that looks dangerous, with nobody there",
            _ => "a scheduled job's commands that look dangerous are blocked; all others, and edits, are not asked about",
        }
        .to_owned(),
        here: "a job holds what `hermitcrab cron grant` gave that very job, and nothing else; there is nobody to ask".to_owned(),
        confirm: "for each job what it may do: see the jobs below".to_owned(),
        ..Proposal::default()
    }
}

fn children(settings: &Settings) -> Proposal {
    let on = settings.is_on("delegation.subagent_auto_approve");
    Proposal {
        id: "delegation".to_owned(),
        from: "delegation.subagent_auto_approve".to_owned(),
        said: if on { "true" } else { "false, or not stated" }.to_owned(),
        in_hermes: if on {
            "a child agent's commands that look dangerous are all approved"
        } else {
            "a child agent's commands that look dangerous are refused, but its edits are not asked about, and in an editor's session it escapes the questions its parent gets"
        }
        .to_owned(),
        here: "a child agent holds the grants forwarded to it by name, and nothing else".to_owned(),
        confirm: if on { "that children are no longer approved in general" } else { "" }.to_owned(),
        ..Proposal::default()
    }
}
