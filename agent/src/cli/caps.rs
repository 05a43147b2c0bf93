//! `caps` and `remembered`: what is kept between sessions, listed and ended.
//!
//! What a command here does is the word of the person who typed it. It is
//! written into a ledger before and after; a session that runs notices, too, and
//! writes what it means for it into its own.

mod listed;

use std::{os::fd::AsFd as _, path::PathBuf};

use clap::{Args, Subcommand};
use hermitcrab_core::{
    audit::Head,
    rules::Isolation,
    session::{Asking, Event, Session, SessionConfig},
    standing::{Due, Kept, StandingId},
    time::Millis,
};

use super::{Setting, Trouble, Where, as_json::print_json, open, say, span, tell};
use crate::{
    ambient::{self, BootClock},
    audit::LedgerError,
    digest::sha256,
    exit,
    ports::Clock as _,
    state_dir::own_file::OwnFileError,
    store::{
        self, StoreError,
        contents::KeptGrant,
        keeper::{self, Keeper},
        site::site,
    },
};

/// Grants that are kept.
#[derive(Debug, Args)]
pub struct Caps {
    #[command(flatten)]
    place: Where,
    /// As `list` takes it, which is what is done without a command
    #[arg(long)]
    all: bool,
    /// As `list` takes it
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<CapsWhat>,
}

#[derive(Debug, Subcommand)]
enum CapsWhat {
    /// Show the standing grants of this workspace
    List {
        /// Those of every workspace, and those that ended
        #[arg(long)]
        all: bool,
        /// As JSON, one for each line
        #[arg(long)]
        json: bool,
    },
    /// Keep a grant for this workspace, until it is revoked or has to be confirmed again
    Grant {
        /// Such as fs.modify=./src or net.connect=example.org:443
        #[arg(required = true, value_name = "VERB=OBJECT")]
        grants: Vec<String>,
    },
    /// Say yes again to grants that wait for it
    Confirm {
        /// As listed
        #[arg(required = true, value_name = "ID", value_parser = standing_id)]
        ids: Vec<StandingId>,
    },
    /// End grants for good; a session that runs ends them, too
    Revoke {
        /// As listed
        #[arg(required = true, value_name = "ID", value_parser = standing_id)]
        ids: Vec<StandingId>,
    },
    /// Print a reference that gives a grant to the agent of another workspace
    Share {
        /// As listed
        #[arg(value_name = "ID", value_parser = standing_id)]
        id: StandingId,
        /// That workspace
        #[arg(long, value_name = "DIR")]
        with: PathBuf,
    },
}

/// Answers that are repeated.
#[derive(Debug, Args)]
pub struct Remembered {
    #[command(flatten)]
    place: Where,
    /// As `list` takes it, which is what is done without a command
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<RememberedWhat>,
}

#[derive(Debug, Subcommand)]
enum RememberedWhat {
    /// Show them
    List {
        /// As JSON, one for each line
        #[arg(long)]
        json: bool,
    },
    /// Forget one, or all
    Clear {
        /// As listed
        id: Option<u64>,
    },
}

fn standing_id(text: &str) -> Result<StandingId, String> {
    text.strip_prefix("standing")
        .unwrap_or(text)
        .parse()
        .map(StandingId::new)
        .map_err(|_| "it is the name of a standing grant, such as standing3".to_owned())
}

/// What is said where words of the list stand before another command.
pub(super) fn of_the_list(words: &str) -> Trouble {
    let why = format!("{words} for the list of what is kept, and not for this");
    (why, exit::USAGE)
}

pub fn caps(caps: &Caps) -> u8 {
    report(match &caps.what {
        None => list(&caps.place, caps.all, caps.json),
        Some(CapsWhat::List { all, json }) => {
            list(&caps.place, *all || caps.all, *json || caps.json)
        }
        Some(_) if caps.all || caps.json => Err(of_the_list("`--all` and `--json` are")),
        Some(CapsWhat::Grant { grants }) => grant(&caps.place, grants),
        Some(CapsWhat::Confirm { ids }) => confirm(&caps.place, ids),
        Some(CapsWhat::Revoke { ids }) => revoke(&caps.place, ids),
        Some(CapsWhat::Share { id, with }) => share(&caps.place, *id, with),
    })
}

pub fn remembered(remembered: &Remembered) -> u8 {
    report(match &remembered.what {
        None => answers(&remembered.place, remembered.json),
        Some(RememberedWhat::List { json }) => answers(&remembered.place, *json || remembered.json),
        Some(_) if remembered.json => Err(of_the_list("`--json` is")),
        Some(RememberedWhat::Clear { id }) => clear(&remembered.place, *id),
    })
}

fn report(done: Result<u8, Trouble>) -> u8 {
    done.unwrap_or_else(|(message, code)| {
        say(&message);
        code
    })
}

/// What is kept, as seen from a place where a session can begin: what is kept from here on
/// counts there.
fn desk(place: &Where) -> Result<(open::Ground, Keeper), Trouble> {
    at(open::ground(place)?)
}

/// The same from anywhere, to look at it or to end something.
fn shelf(place: &Where) -> Result<(open::Ground, Keeper), Trouble> {
    at(open::seen_from(place)?)
}

fn at(ground: open::Ground) -> Result<(open::Ground, Keeper), Trouble> {
    let state = ground.state()?.ok_or_else(|| {
        (
            "nothing that is kept can be trusted".to_owned(),
            exit::LEDGER,
        )
    })?;
    let isolation = ground.isolation()?;
    let keeper = ground.keeper(state, isolation)?;
    Ok((ground, keeper))
}

fn broken(error: StoreError) -> Trouble {
    let code = match &error {
        StoreError::File(OwnFileError::Io(..)) | StoreError::Write(..) => exit::ENVIRONMENT,
        StoreError::File(_)
        | StoreError::Busy(_)
        | StoreError::Damaged(..)
        | StoreError::Version(..)
        | StoreError::Older(..)
        | StoreError::Full
        | StoreError::Anchor(_) => exit::LEDGER,
    };
    (error.to_string(), code)
}

fn list(place: &Where, all: bool, json: bool) -> Result<u8, Trouble> {
    let (_, keeper) = shelf(place)?;
    let mut shown = false;
    for kept in &keeper.contents().standing {
        let ours = kept.standing.audience == keeper.here().audience;
        if all || (ours && kept.standing.kept == Kept::Confirmed) {
            match json {
                true => print_json(&listed::grant(kept, &keeper)),
                false => tell(&line(kept, &keeper)),
            }
            shown = true;
        }
    }
    if !shown && !json {
        let elsewhere = keeper
            .contents()
            .standing
            .iter()
            .any(|kept| kept.standing.kept == Kept::Confirmed);
        tell(&format!(
            "nothing is kept{}{}",
            if all { "" } else { " for this workspace" },
            if elsewhere && !all {
                "; `hermitcrab caps list --all` shows what is for others"
            } else {
                ""
            }
        ));
    }
    Ok(exit::OK)
}

fn line(kept: &KeptGrant, keeper: &Keeper) -> String {
    let standing = &kept.standing;
    let counts = match standing.check(keeper.here()) {
        // Wherever it counted before.
        _ if standing.kept == Kept::Revoked => Due::Revoked.to_string(),
        Ok(left) => format!("counts for another {}", span(left)),
        Err(due) if due.can_be_confirmed() => {
            format!("waits for `hermitcrab caps confirm {}`: {due}", standing.id)
        }
        Err(due) => format!("does not count here: {due}"),
    };
    let shared = keeper
        .contents()
        .sturdy
        .iter()
        .filter(|sturdy| sturdy.to == standing.id)
        .count();
    let shared = match shared {
        0 => String::new(),
        count => format!("; shared {count} times"),
    };
    format!(
        "{}  {}\n    for {}, proved {} when confirmed; {counts}{shared}",
        standing.id,
        standing.authority,
        kept.workspace.escape_debug(),
        keeper::isolation_word(standing.isolation)
    )
}

fn span(left: Millis) -> String {
    span::words(left.get() / 1000)
}

/// What is kept for a place and counts there, whether anything can be worked on there or not.
pub(super) fn held_at(place: &Where) -> Result<Vec<String>, Trouble> {
    let (_, keeper) = shelf(place)?;
    let held = keeper.contents().standing.iter().filter(|kept| {
        kept.standing.audience == keeper.here().audience && kept.standing.kept == Kept::Confirmed
    });
    Ok(held.map(|kept| line(kept, &keeper)).collect())
}

pub(super) fn grant(place: &Where, grants: &[String]) -> Result<u8, Trouble> {
    let (ground, mut keeper) = desk(place)?;
    // A session that is only imagined finds out what the words mean.
    let setting = Setting::at(place.clone());
    let mut runtime = open::imagine(&setting)?;
    for grant in grants {
        let words = open::words(grant, &ground.places.current)?;
        let agent = runtime.first_agent();
        let authority = runtime
            .portable_words(agent, &words)
            .map_err(|error| (error.to_string(), exit::USAGE))?;
        let mut id = None;
        recorded(
            &ground,
            &format!("to be kept by command: always {authority}"),
            || {
                id = Some(keeper.keep(&authority).map_err(broken)?);
                Ok(format!(
                    "kept by command as {}",
                    id.map_or_else(String::new, |id| id.to_string())
                ))
            },
        )?;
        if let Some(id) = id {
            tell(&format!("{id}  {authority}"));
        }
        open::tell_what_is_asked(&mut runtime, &words);
    }
    Ok(exit::OK)
}

/// Whether these words name something that can be granted there.
pub(super) fn read(place: &Where, grants: &[String]) -> Result<(), Trouble> {
    let ground = open::ground(place)?;
    grants
        .iter()
        .try_for_each(|grant| open::words(grant, &ground.places.current).map(drop))
}

/// Ends what is kept for a place, as `revoke` does.
pub(super) fn end_at(place: &Where) -> Result<(), Trouble> {
    let (_, keeper) = shelf(place)?;
    let here = &keeper.here().audience;
    let kept = keeper.contents().standing.iter();
    let ids: Vec<StandingId> = kept
        .filter(|kept| kept.standing.audience == *here && kept.standing.kept == Kept::Confirmed)
        .map(|kept| kept.standing.id)
        .collect();
    drop(keeper);
    revoke(place, &ids).map(drop)
}

fn confirm(place: &Where, ids: &[StandingId]) -> Result<u8, Trouble> {
    let (ground, mut keeper) = desk(place)?;
    let mut code = exit::OK;
    for id in ids {
        let mut outcome = String::new();
        recorded(
            &ground,
            &format!("to be confirmed by command: {id}"),
            || {
                let done = keeper.confirm(*id).map_err(broken)?;
                let mut kept = keeper.contents().standing.iter();
                let kept = kept.find(|kept| kept.standing.id == *id);
                // Who says yes again sees to what.
                let to_what =
                    kept.map_or_else(String::new, |kept| format!(": {}", kept.standing.authority));
                outcome = match done {
                    Ok(left) => format!("{id} counts for another {}{to_what}", span(left)),
                    Err(Some(due)) => format!("{id} cannot be confirmed: {due}"),
                    Err(None) => not_kept(*id),
                };
                match done {
                    Ok(_) => {}
                    Err(Some(_)) => code = exit::REFUSED,
                    Err(None) => code = exit::USAGE,
                }
                Ok(outcome.clone())
            },
        )?;
        tell(&outcome);
    }
    Ok(code)
}

fn revoke(place: &Where, ids: &[StandingId]) -> Result<u8, Trouble> {
    let (ground, mut keeper) = shelf(place)?;
    let mut code = exit::OK;
    for id in ids {
        let mut was = false;
        recorded(&ground, &format!("to be revoked by command: {id}"), || {
            was = keeper.revoke(*id).map_err(broken)?;
            Ok(if was {
                format!("revoked by command: {id}")
            } else {
                format!("there was no {id} to revoke")
            })
        })?;
        if was {
            tell(&format!("{id} is revoked"));
        } else {
            say(&not_kept(*id));
            code = exit::USAGE;
        }
    }
    Ok(code)
}

/// What is said of a grant that is not there.
fn not_kept(id: StandingId) -> String {
    format!("no grant {id} is kept; `hermitcrab caps` lists what is")
}

fn share(place: &Where, id: StandingId, with: &std::path::Path) -> Result<u8, Trouble> {
    let (ground, mut keeper) = desk(place)?;
    let with = ground.places.current.join(with);
    let (dir, with) = open::held(&with).map_err(|error| {
        (
            format!("cannot share with `{}`: {error}", with.display()),
            exit::USAGE,
        )
    })?;
    let audience = keeper::audience(&with)
        .ok_or_else(|| ("that workspace has no name".to_owned(), exit::USAGE))?;
    let mut shared = None;
    let intent = format!("to be shared by command: {id} with {}", audience.as_str());
    recorded(&ground, &intent, || {
        let made = keeper
            .share(id, (&audience, site(dir.as_fd())))
            .map_err(broken)?;
        let line = match &made {
            Ok(_) => format!("shared by command: {id}"),
            Err(denial) => format!("not shared: {}", denial.code()),
        };
        shared = Some(made);
        Ok(line)
    })?;
    match shared {
        Some(Ok(name)) => {
            println!("{}", name.reveal());
            Ok(exit::OK)
        }
        Some(Err(denial)) => Err((denial.to_string(), exit::REFUSED)),
        None => Ok(exit::INTERNAL),
    }
}

fn answers(place: &Where, json: bool) -> Result<u8, Trouble> {
    let (_, keeper) = shelf(place)?;
    let all = &keeper.contents().remembered;
    for answer in all {
        if json {
            print_json(&listed::answer(answer, &keeper));
            continue;
        }
        let counts = if keeper.is_current(answer) {
            "counts here"
        } else {
            "does not count here and now"
        };
        tell(&format!(
            "{}  {} to exactly {} (content {}), proved {}; {counts}",
            answer.id,
            answer.said.as_str(),
            answer.cap.asked(),
            answer.digest,
            keeper::isolation_word(answer.isolation)
        ));
    }
    if all.is_empty() && !json {
        tell("nothing is remembered");
    }
    Ok(exit::OK)
}

fn clear(place: &Where, id: Option<u64>) -> Result<u8, Trouble> {
    let (ground, mut keeper) = shelf(place)?;
    let mut forgot = 0;
    recorded(
        &ground,
        "remembered answers to be forgotten by command",
        || {
            forgot = keeper.forget(id).map_err(broken)?;
            Ok(format!("{forgot} remembered answers forgotten by command"))
        },
    )?;
    tell(&format!("{forgot} forgotten"));
    Ok(if forgot == 0 && id.is_some() {
        exit::REFUSED
    } else {
        exit::OK
    })
}

/// Does something between a record that says it will be done and one that says
/// what came of it; beside the ledger of a session that runs, if there is one.
pub(super) fn recorded(
    ground: &open::Ground,
    intent: &str,
    act: impl FnOnce() -> Result<String, Trouble>,
) -> Result<(), Trouble> {
    let code = |is_of_the_system| match is_of_the_system {
        true => exit::ENVIRONMENT,
        false => exit::LEDGER,
    };
    let trouble = |error: LedgerError| (error.to_string(), code(error.is_of_the_system()));
    let state = ground.state()?;
    let ((mut ledger, opened), _) =
        store::ledger(&ground.state_dir, state.map(|state| state.anchor))
            .map_err(|error| (error.to_string(), code(error.is_of_the_system())))?;
    let number =
        ambient::session_number().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let (mut session, mut records) = command_session(number, opened.head);
    let mut step = |event| session.step(BootClock.now(), event).into_parts().records;
    records.extend(step(Event::Note(format!(
        "{}, by command",
        ground.begun_now()
    ))));
    records.extend(step(Event::Note(intent.to_owned())));
    ledger.append(&records).map_err(trouble)?;
    ledger.settle().map_err(trouble)?;
    let done = act();
    let line = match &done {
        Ok(line) => line.clone(),
        Err((message, _)) => format!("failed: {message}"),
    };
    let mut records = step(Event::Note(line));
    records.extend(step(Event::End));
    ledger.append(&records).map_err(trouble)?;
    done.map(drop)
}

/// A session for a command of the person: no agent acts in it.
fn command_session(number: u64, ledger: Head) -> (Session, Vec<hermitcrab_core::audit::Record>) {
    Session::open(SessionConfig {
        id: number,
        hash: sha256,
        isolation: Isolation::Unknown,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger,
        opened_at: BootClock.now(),
    })
}
