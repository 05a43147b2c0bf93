//! `undo --forget`: giving up what is kept of commits, which makes room.
//!
//! It changes no file of anybody's, and takes away the means to bring one back; so a person
//! says which, sees them, and says yes. It goes where the disk is so full that not even a
//! record fits: what is forgotten is on record afterwards then.

use clap::Args;
use hermitcrab_sandbox::{
    Journal,
    journal::{CommitId, Kept},
};

use super::{describe, is_of, standing};
use crate::{
    ambient,
    cli::{
        Trouble, Where,
        open::{Ground, open_bare},
        say, tell,
    },
    exit,
    person::TerminalUser,
    runtime::{Runtime, RuntimeError, forgotten_words, in_bytes, recovered_words},
    state_dir::room::Room,
};

/// With less room than this no session begins, or none that comes to its end.
const ROOM_BYTES_MIN: u64 = 64 << 10;

/// Which commits are forgotten, and how sure that is.
#[derive(Debug, Args)]
pub struct Which {
    /// With --forget: all that `--list` shows, but for the newest N
    #[arg(long, value_name = "N", requires = "forget", conflicts_with = "before")]
    all_but: Option<usize>,
    /// With --forget: all that `--list` shows that were made before this day, such as 2026-01-31
    #[arg(long, value_name = "DATE", requires = "forget", value_parser = day)]
    before: Option<String>,
    /// With --forget: without being asked
    #[arg(long, requires = "forget")]
    yes: bool,
}

/// A day as `--list` shows it.
fn day(text: &str) -> Result<String, String> {
    let is_day = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    match is_day {
        true => Ok(text.to_owned()),
        false => Err("it is a day such as 2026-01-31".to_owned()),
    }
}

/// Runs the command.
pub(super) fn forget(
    ids: &[u64],
    which: &Which,
    everywhere: bool,
    place: &Where,
) -> Result<(), Trouble> {
    let names_all = which.all_but.is_some() || which.before.is_some();
    if ids.is_empty() != names_all || (everywhere && !names_all) {
        let message = "say which: `--forget ID`, as `hermitcrab undo --list --all` numbers them, or `--forget --all-but N` or `--forget --before DATE`, with `--all` in other directories, too";
        return Err((message.to_owned(), exit::USAGE));
    }
    let ground = standing(place, everywhere || !names_all)?;
    let is_meant = |kept: &[Kept]| chosen(kept, ids, which, everywhere, &ground);
    if !has_room(&ground) {
        return without_session(&ground, which, is_meant);
    }
    open_bare(&ground).and_then(|mut runtime| {
        let done = in_session(&mut runtime, which, is_meant);
        let ended = runtime
            .end_session()
            .map_err(|error| (error.to_string(), exit::LEDGER));
        done.and(ended)
    })
}

fn has_room(ground: &Ground) -> bool {
    let room = Room::at(&ground.state_dir);
    room.is_none_or(|room| room.free_bytes >= ROOM_BYTES_MIN)
}

fn in_session(
    runtime: &mut Runtime,
    which: &Which,
    is_meant: impl Fn(&[Kept]) -> Result<Vec<Kept>, Trouble>,
) -> Result<(), Trouble> {
    let commits = super::with_waiting(runtime)?;
    let going = is_meant(&commits)?;
    if !is_wanted(&going, which)? {
        return Ok(());
    }
    let ids: Vec<CommitId> = going.iter().map(|commit| commit.id).collect();
    let taken_back = runtime
        .forget(&ids)
        .map_err(|error| (error.to_string(), exit::REFUSED))?;
    told(&going, &taken_back);
    Ok(())
}

/// The same where there is no room for the records of a session; these follow.
fn without_session(
    ground: &Ground,
    which: &Which,
    is_meant: impl Fn(&[Kept]) -> Result<Vec<Kept>, Trouble>,
) -> Result<(), Trouble> {
    let lacks = |error: &dyn std::fmt::Display| (error.to_string(), exit::ENVIRONMENT);
    if !Journal::is_at(&ground.state_dir) {
        return Err((
            "nothing is kept that could be forgotten".to_owned(),
            exit::ENVIRONMENT,
        ));
    }
    let (journal, recovered) =
        Journal::open(&ground.state_dir).map_err(|error| lacks(&RuntimeError::from(error)))?;
    let mut commits = journal.list().map_err(|error| lacks(&error))?;
    commits.extend(journal.list_waiting().map_err(|error| lacks(&error))?);
    let going = is_meant(&commits)?;
    if !is_wanted(&going, which)? {
        return Ok(());
    }
    let ids: Vec<CommitId> = going.iter().map(|commit| commit.id).collect();
    let forgot = journal.forget(&ids);
    let mut notes = recovered_words(&recovered);
    notes.extend(recovered_words(&journal.take_recovered()));
    drop(journal);
    let forgot = match forgot {
        Ok(taken_back) => {
            let is_gone = |id: &&CommitId| !taken_back.contains(id);
            let gone: Vec<CommitId> = ids.iter().filter(is_gone).copied().collect();
            if !gone.is_empty() {
                notes.push(forgotten_words(&gone));
            }
            told(&going, &taken_back);
            Ok(())
        }
        Err(error) => {
            notes.push(format!("forgetting: {error}"));
            Err((error.to_string(), exit::REFUSED))
        }
    };
    let noted = open_bare(ground).and_then(|mut runtime| {
        let failed = |error: &dyn std::fmt::Display| (error.to_string(), exit::LEDGER);
        for note in notes {
            runtime.note(note).map_err(|error| failed(&error))?;
        }
        runtime.end_session().map_err(|error| failed(&error))
    });
    if let Err((why, _)) = &noted {
        say(&format!("this cannot be recorded yet: {why}"));
    }
    forgot.and(noted)
}

/// The commits that are meant. One that could not be taken back whole is meant only by its
/// number, and then it is told why it stays; so is one that waits for its directories.
fn chosen(
    commits: &[Kept],
    ids: &[u64],
    which: &Which,
    everywhere: bool,
    ground: &Ground,
) -> Result<Vec<Kept>, Trouble> {
    let is_named = |id: &u64| commits.iter().any(|commit| commit.id == CommitId::new(*id));
    if let Some(unknown) = ids.iter().find(|id| !is_named(id)) {
        let message = format!("there is no commit {unknown}; see `hermitcrab undo --list --all`");
        return Err((message, exit::USAGE));
    }
    if !ids.is_empty() {
        let is_meant = |commit: &&Kept| ids.iter().any(|id| commit.id == CommitId::new(*id));
        return Ok(commits.iter().filter(is_meant).cloned().collect());
    }
    let is_listed = |commit: &&Kept| {
        let is_half = commit.is_stuck || commit.is_waiting;
        !is_half && (everywhere || is_of(commit, ground, |_| false))
    };
    let listed: Vec<&Kept> = commits.iter().filter(is_listed).collect();
    let older = match which.all_but {
        Some(stay) => listed.len().saturating_sub(stay),
        None => listed.len(),
    };
    let is_before = |commit: &&&Kept| {
        let before = which.before.as_deref();
        before.is_none_or(|day| ambient::date(commit.made_at).as_str() < day)
    };
    let going = listed.iter().take(older).filter(is_before);
    Ok(going.map(|commit| (*commit).clone()).collect())
}

/// Shows what would go, and asks.
fn is_wanted(going: &[Kept], which: &Which) -> Result<bool, Trouble> {
    if going.is_empty() {
        tell("there is nothing to forget");
        return Ok(false);
    }
    if which.yes {
        return Ok(true);
    }
    let Some(mut person) = TerminalUser::open() else {
        let message = "there is nobody to ask whether these are to be forgotten, so none is; `--yes` forgets without asking";
        return Err((message.to_owned(), exit::REFUSED));
    };
    for commit in going {
        describe(commit);
    }
    for commit in going.iter().filter(|commit| commit.is_waiting) {
        tell(&format!(
            "commit {} is half done where it cannot be reached, and stays so if it is forgotten: what it held before there is gone with it, or stays in a directory `.hermitcrab-…` there",
            commit.id
        ));
    }
    let question = format!(
        "forget {}? Nothing takes back what they did then; type the word `yes` to go on: ",
        counted(going)
    );
    match person.line(&question).as_deref() {
        Some("yes") => Ok(true),
        _ => Err(("nothing was forgotten".to_owned(), exit::REFUSED)),
    }
}

fn told(meant: &[Kept], taken_back: &[CommitId]) {
    for id in taken_back {
        tell(&format!(
            "commit {id} is taken back and not forgotten: its directory was there again"
        ));
    }
    let is_gone = |commit: &&Kept| !taken_back.contains(&commit.id);
    let gone: Vec<Kept> = meant.iter().filter(is_gone).cloned().collect();
    if !gone.is_empty() {
        tell(&format!("forgot {}", counted(&gone)));
    }
}

fn counted(commits: &[Kept]) -> String {
    let bytes = commits
        .iter()
        .fold(0_u64, |sum, commit| sum.saturating_add(commit.bytes));
    let kept = in_bytes(bytes);
    match commits {
        [one] => format!("commit {} ({kept} kept of it)", one.id),
        many => format!("{} commits ({kept} kept of them)", many.len()),
    }
}
