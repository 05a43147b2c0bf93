//! `undo`: taking back what commands did, or giving up that it can be.
//!
//! The person's own command is the authority: for this one run it is lent what
//! bringing the former state back needs, in the directories it happens in.

mod earlier;
mod editor;
mod forget;
mod listed;

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use hermitcrab_core::{grant::GrantId, letters::is_unseen, tool::Tool};
use hermitcrab_sandbox::journal::{CommitId, Kept, KeptChange};

pub(super) use self::editor::undoing;
use super::{
    Trouble, Where,
    as_json::print_json,
    open::{self, Ground, open_bare},
    say, tell,
};
use crate::{
    ambient, exit,
    runtime::{GrantWords, Runtime, UndoTrouble, in_bytes},
};

/// Names shown of one commit in a list.
const SHOWN_MAX: usize = 5;

/// What is to be taken back or given up.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Show what could be taken back, newest first
    #[arg(long, conflicts_with_all = ["id", "last", "forget"])]
    list: bool,
    /// With --list or --forget: also what happened in other directories
    #[arg(long, conflicts_with_all = ["id", "last"])]
    all: bool,
    /// With --list: one JSON object for each
    #[arg(long, requires = "list")]
    json: bool,
    /// This one instead of the last, as `--list` numbers them
    #[arg(conflicts_with_all = ["last", "forget"], value_parser = number)]
    id: Option<u64>,
    /// The last so many, one after the other
    #[arg(long, value_name = "N", conflicts_with = "forget")]
    last: Option<usize>,
    /// Take nothing back: remove what is kept of these, which makes room and leaves nothing to take back
    #[arg(long, value_name = "ID", num_args = 0..)]
    forget: Option<Vec<u64>>,
    #[command(flatten)]
    which: forget::Which,
    #[command(flatten)]
    place: Where,
}

fn number(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| "it is the number of a commit, as `undo --list` shows them".to_owned())
}

/// Runs the command.
pub fn undo(arguments: &Arguments) -> u8 {
    let place = &arguments.place;
    let done = match (&arguments.forget, arguments.list) {
        (Some(ids), _) => forget::forget(ids, &arguments.which, arguments.all, place),
        (None, false) if arguments.all => Err((
            "`--all` goes with `--list` or `--forget`".to_owned(),
            exit::USAGE,
        )),
        (None, _) => standing(place, arguments.all).and_then(|ground| {
            let mut runtime = open_bare(&ground)?;
            let shown = in_session(&mut runtime, &ground, arguments);
            let ended = runtime
                .end_session()
                .map_err(|error| (error.to_string(), exit::LEDGER));
            shown.and(ended)
        }),
    };
    match done {
        Ok(()) => exit::OK,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn in_session(
    runtime: &mut Runtime,
    ground: &Ground,
    arguments: &Arguments,
) -> Result<(), Trouble> {
    if arguments.list {
        let (everywhere, json) = (arguments.all, arguments.json);
        let shown = match json {
            true => show_for_programs(runtime, ground, everywhere),
            false => show(runtime, ground, everywhere),
        };
        return shown.and_then(|()| earlier::show(runtime, ground, everywhere, json));
    }
    let again = "hermitcrab undo";
    let last = arguments.last.unwrap_or(1);
    take_back(runtime, ground, again, arguments.id, last)
}

/// Where somebody stands who asks about what happened there, or everywhere: only there it has
/// to be a place that can be worked in.
fn standing(place: &Where, everywhere: bool) -> Result<Ground, Trouble> {
    match everywhere {
        true => open::seen_from(place),
        false => open::ground(place),
    }
}

fn commits(runtime: &Runtime) -> Result<Vec<Kept>, Trouble> {
    runtime
        .commits()
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))
}

/// The same with those that wait for a directory, which nobody takes back by hand.
fn with_waiting(runtime: &Runtime) -> Result<Vec<Kept>, Trouble> {
    let mut all = commits(runtime)?;
    let waiting = runtime.commits_waiting();
    all.extend(waiting.map_err(|error| (error.to_string(), exit::ENVIRONMENT))?);
    all.sort_by_key(|commit| commit.id);
    Ok(all)
}

/// Shows what can be taken back in the workspace, or everywhere.
pub(super) fn show(runtime: &Runtime, ground: &Ground, everywhere: bool) -> Result<(), Trouble> {
    show_to(runtime, ground, everywhere, &mut tell)
}

/// The same, told line by line.
fn show_to(
    runtime: &Runtime,
    ground: &Ground,
    everywhere: bool,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Trouble> {
    let commits = with_waiting(runtime)?;
    let (shown, elsewhere): (Vec<&Kept>, Vec<&Kept>) = commits
        .iter()
        .rev()
        .partition(|commit| everywhere || is_here(runtime, ground, commit));
    if shown.is_empty() {
        tell(&format!(
            "there is nothing to undo{}",
            here(runtime, &elsewhere)
        ));
    }
    for commit in shown {
        tell(&described(commit));
    }
    if !elsewhere.is_empty() {
        tell(&format!(
            "{} in other directories; `hermitcrab undo --list --all` shows {}",
            match elsewhere.len() {
                1 => "1 more is".to_owned(),
                number => format!("{number} more are"),
            },
            if elsewhere.len() == 1 { "it" } else { "them" }
        ));
    }
    Ok(())
}

/// The same for programs; nothing where there is nothing.
fn show_for_programs(runtime: &Runtime, ground: &Ground, everywhere: bool) -> Result<(), Trouble> {
    let commits = with_waiting(runtime)?;
    let here = |commit: &&Kept| everywhere || is_here(runtime, ground, commit);
    for commit in commits.iter().rev().filter(here) {
        print_json(&listed::commit(commit, None));
    }
    Ok(())
}

/// Prints a commit with the first names it touched.
fn describe(commit: &Kept) {
    tell(&described(commit));
}

/// A commit with the first names it touched, in lines.
fn described(commit: &Kept) -> String {
    let mut lines = vec![format!(
        "{:>4}  {}  {}{}",
        commit.id,
        ambient::date(commit.made_at),
        one_line(&commit.note),
        match (commit.is_stuck, commit.is_waiting) {
            (true, _) =>
                "  (cut off; what it was to change was changed otherwise since, or is lost)",
            (_, true) => "  (cut off; taken back when its directories can be reached)",
            (false, false) => "",
        }
    )];
    for change in commit.touched.iter().take(SHOWN_MAX) {
        lines.push(format!(
            "      {} {}/{}",
            change.verb,
            one_line(&String::from_utf8_lossy(&change.root)),
            change.path
        ));
    }
    let more = commit.touched.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("      and {more} more"));
    }
    if commit.bytes > 0 {
        lines.push(format!("      {} kept of it", in_bytes(commit.bytes)));
    }
    lines.join("\n")
}

/// Where there is nothing to undo, if there is something elsewhere.
fn here(runtime: &Runtime, elsewhere: &[&Kept]) -> String {
    if elsewhere.is_empty() {
        return String::new();
    }
    format!(" in `{}`", runtime.workspace().display())
}

/// Takes back one commit, or the last; `again` and a number is how one says it here
/// to take that back in turn.
pub(super) fn take_back(
    runtime: &mut Runtime,
    ground: &Ground,
    again: &str,
    id: Option<u64>,
    last: usize,
) -> Result<(), Trouble> {
    take_back_to(runtime, ground, again, (id, last), &mut tell)
}

/// The same, told line by line.
fn take_back_to(
    runtime: &mut Runtime,
    ground: &Ground,
    again: &str,
    (id, last): (Option<u64>, usize),
    tell: &mut dyn FnMut(&str),
) -> Result<(), Trouble> {
    let commits = commits(runtime)?;
    let chosen: Vec<&Kept> = match id {
        Some(id) => commits
            .iter()
            .filter(|commit| commit.id == CommitId::new(id))
            .collect(),
        // An undo is undone by its number only: going back twice goes back twice. So is what
        // happened in another directory: nobody there asked for it. What this session made
        // comes before what another one did in the same workspace meanwhile.
        None => {
            let (own, others): (Vec<&Kept>, Vec<&Kept>) = commits
                .iter()
                .rev()
                .filter(|commit| is_open(commit) && is_here(runtime, ground, commit))
                .partition(|commit| runtime.has_made(commit));
            let all: Vec<&Kept> = own.into_iter().chain(others).collect();
            // Who names more than there is may have meant the commit of that number.
            if last > all.len() && !all.is_empty() {
                return Err((fewer(again, &commits, all.len(), last), exit::USAGE));
            }
            all.into_iter().take(last).collect()
        }
    };
    if chosen.is_empty() {
        return Err(match id {
            Some(id) if is_waiting(runtime, id)? => (
                format!(
                    "commit {id} was cut off and is taken back by itself when its directories can be reached; only if one is gone for good, `hermitcrab undo --forget {id}` gives it up"
                ),
                exit::REFUSED,
            ),
            Some(id) => (
                format!(
                    "there is no commit {id}; `{}` shows those there are",
                    list(again)
                ),
                exit::USAGE,
            ),
            None => (nothing(runtime, ground, again, &commits), exit::TOOL_FAILED),
        });
    }
    for commit in chosen {
        one(runtime, again, commit, tell)?;
    }
    Ok(())
}

fn is_waiting(runtime: &Runtime, id: u64) -> Result<bool, Trouble> {
    let all = with_waiting(runtime)?;
    let mut waiting = all.iter().filter(|commit| commit.is_waiting);
    Ok(waiting.any(|commit| commit.id == CommitId::new(id)))
}

/// How one says that what can be taken back is to be shown, where one says `again` before a number.
fn list(again: &str) -> String {
    format!("{} --list", again.trim_end_matches(" commit"))
}

/// More is to be taken back than there is.
fn fewer(again: &str, commits: &[Kept], all: usize, last: usize) -> String {
    let changes = if all == 1 { "change" } else { "changes" };
    let has = |commit: &Kept| u64::try_from(last).is_ok_and(|id| commit.id == CommitId::new(id));
    let meant = match commits.iter().any(has) {
        true => format!("; `{again} {last}` takes back commit {last}"),
        false => String::new(),
    };
    format!(
        "nothing was taken back: there are not {last} changes to take back here, but {all} {changes}; `{}` shows what there is{meant}",
        list(again)
    )
}

/// Whether a commit changed something in the workspace, or nothing but what sessions here work
/// with besides, or this session made it.
fn is_here(runtime: &Runtime, ground: &Ground, commit: &Kept) -> bool {
    runtime.has_made(commit) || is_of(commit, ground, |place| runtime.may_change(place))
}

/// The same of what is kept, whoever made it. A directory that is configured is there for every
/// workspace: what lies in one tells where something was done only if nothing else does.
fn is_of(commit: &Kept, ground: &Ground, is_held: impl Fn(&Path) -> bool) -> bool {
    let places: Vec<PathBuf> = commit.touched.iter().map(place_of).collect();
    places
        .iter()
        .any(|place| place.starts_with(&ground.workspace))
        || !places.is_empty()
            && places
                .iter()
                .all(|place| ground.shows(place) || is_held(place))
}

fn place_of(change: &KeptChange) -> PathBuf {
    Path::new(OsStr::from_bytes(&change.root)).join(OsStr::from_bytes(change.path.as_bytes()))
}

fn is_open(commit: &Kept) -> bool {
    commit.undoes.is_none() && !commit.is_stuck
}

/// Nothing here; what was last taken back here, or done elsewhere, is told, and taken back by
/// its number only.
fn nothing(runtime: &Runtime, ground: &Ground, again: &str, commits: &[Kept]) -> String {
    let undone = |commit: &&Kept| {
        commit.undoes.is_some() && !commit.is_stuck && is_here(runtime, ground, commit)
    };
    let undone = commits.iter().rev().find(undone).map(|undone| {
        let note = one_line(&undone.note);
        format!("`{again} {}` takes back `{note}`", undone.id)
    });
    let newest = commits.iter().rev().find(|commit| is_open(commit));
    let elsewhere = newest.and_then(|commit| Some((commit, commit.touched.first()?)));
    match (elsewhere, undone) {
        (None, None) => "there is nothing to undo".to_owned(),
        (None, Some(undone)) => format!("there is nothing to undo but an undo: {undone}"),
        (Some((newest, change)), undone) => format!(
            "there is nothing to undo{}; the last change elsewhere is commit {} in `{}`: `{again} {}` takes it back{}",
            here(runtime, &[newest]),
            newest.id,
            String::from_utf8_lossy(&change.root),
            newest.id,
            undone.map_or_else(String::new, |undone| format!("; here {undone}")),
        ),
    }
}

fn one(
    runtime: &mut Runtime,
    again: &str,
    commit: &Kept,
    tell: &mut dyn FnMut(&str),
) -> Result<(), Trouble> {
    let mut granted = Vec::new();
    let undone = granted_for(runtime, commit, &mut granted)
        .map(|()| runtime.undo(runtime.first_agent(), commit.id));
    // What was granted for this is nobody's to use afterwards, whatever came of it; that one
    // of them cannot be recorded keeps none of the others.
    let mut ended = Ok(());
    for grant in granted {
        if let Err(denial) = runtime.revoke(grant) {
            ended = Err((denial.to_string(), exit::INTERNAL));
        }
    }
    let undone = undone?;
    ended?;
    match undone {
        Ok(report) => {
            let changes = match report.undone.touched.len() {
                1 => "1 change".to_owned(),
                number => format!("{number} changes"),
            };
            tell(&format!(
                "took back commit {}: {} ({changes}{}); `{again} {}` brings it back",
                report.undone.id,
                one_line(&report.undone.note),
                elsewhere(runtime, &report.undone),
                report.id
            ));
            Ok(())
        }
        Err(trouble) => {
            let code = match trouble {
                UndoTrouble::Undo(_) | UndoTrouble::Refused(..) => exit::REFUSED,
                UndoTrouble::Runtime(_) => exit::ENVIRONMENT,
                UndoTrouble::Failed(_) => exit::INTERNAL,
            };
            Err((trouble.to_string(), code))
        }
    }
}

/// Where that was, if nothing of it was in the workspace.
fn elsewhere(runtime: &Runtime, commit: &Kept) -> String {
    let mut places = commit.touched.iter().map(place_of);
    match commit.touched.first() {
        Some(change) if !places.any(|place| place.starts_with(runtime.workspace())) => {
            format!(" in {}", one_line(&String::from_utf8_lossy(&change.root)))
        }
        Some(_) | None => String::new(),
    }
}

/// What bringing the former state back needs, where it happens.
fn granted_for(
    runtime: &mut Runtime,
    commit: &Kept,
    granted: &mut Vec<GrantId>,
) -> Result<(), Trouble> {
    let agent = runtime.first_agent();
    runtime
        .open_changed(commit)
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let mut roots: Vec<&Vec<u8>> = commit.touched.iter().map(|change| &change.root).collect();
    roots.sort();
    roots.dedup();
    for root in roots {
        for verb in ["fs.create", "fs.modify", "fs.delete"] {
            let words = GrantWords::new(verb, &String::from_utf8_lossy(root));
            let grant = runtime
                .lend(agent, Tool::Undo, &words)
                .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
            granted.push(grant);
        }
    }
    Ok(())
}

/// A command's first line, nothing in it able to draw on the terminal.
fn one_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .flat_map(|letter| {
            if letter.is_control() || is_unseen(letter) {
                letter.escape_unicode().collect::<Vec<_>>()
            } else {
                vec![letter]
            }
        })
        .take(100)
        .collect()
}
