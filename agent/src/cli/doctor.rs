//! `doctor`: what isolates commands, when the user is asked, and whether the
//! ledger and the store hold; with `--repair`, putting these in order.

use std::path::Path;

use clap::Args;
use hermitcrab_core::rules::Isolation;

use super::{Trouble, Where, caps, open, say};
use crate::{
    ambient::{self, TerminalUser},
    audit::{self, LedgerError},
    exit,
    store::{State, repair},
};

/// What `doctor` is to do.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    place: Where,
    /// Put ledger and store in order; everything found is kept in a copy
    #[arg(long)]
    repair: bool,
}

pub fn doctor(doctor: &Doctor) -> u8 {
    let ground = match open::ground(&doctor.place) {
        Ok(ground) => ground,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    if doctor.repair {
        return match repaired(&ground) {
            Ok(code) => code,
            Err((message, code)) => {
                say(&message);
                code
            }
        };
    }
    let isolation = match isolation() {
        Ok(isolation) => isolation,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    mode(&ground);
    let kept = kept(&ground, isolation);
    match (isolation, kept) {
        (Isolation::Isolated, Ok(())) => exit::OK,
        (Isolation::Unisolated | Isolation::Unknown, _) => exit::ENVIRONMENT,
        (Isolation::Isolated, Err(code)) => code,
    }
}

/// The first axis: what was seen to isolate.
fn isolation() -> Result<Isolation, Trouble> {
    let profile = ambient::probe(&hermitcrab_sandbox::SpawnerProgram::Own).map_err(|error| {
        (
            format!("cannot try out the sandbox: {error}"),
            exit::ENVIRONMENT,
        )
    })?;
    for row in &profile.rows {
        let works = match row.available {
            Some(true) => "works",
            Some(false) => "missing",
            None => "not seen",
        };
        println!("{:<26} {works:<9} {}", row.mechanism.as_str(), row.seen);
        if row.available != Some(true) {
            println!("{:<26} {:<9} without it: {}", "", "", row.lost_without);
        }
    }
    if let Some(failure) = &profile.failure {
        say(&failure.to_string());
    }
    println!(
        "{}",
        match profile.isolation {
            Isolation::Isolated => "isolation: isolated; commands run",
            Isolation::Unisolated => "isolation: unisolated; commands are refused",
            Isolation::Unknown => "isolation: unknown, so commands are refused",
        }
    );
    Ok(profile.isolation)
}

/// The second axis: when the user is asked.
fn mode(ground: &open::Ground) {
    let somebody = TerminalUser::open().is_some();
    let asking = ground.asking(None, somebody);
    let from = match (ground.admin.mode(), ground.config.mode()) {
        (Some(admin), _) if admin == asking => "the administrator's file",
        (_, Some(user)) if user == asking => "your file",
        _ if !somebody => "no terminal is there to ask at",
        _ => "nothing else is configured",
    };
    println!("mode: {asking} ({from}); {}", asking.sentence());
}

/// Whether what is kept holds.
fn kept(ground: &open::Ground, isolation: Isolation) -> Result<(), u8> {
    let dir = &ground.state_dir;
    if !dir.exists() {
        println!("ledger and store: none yet in `{}`", dir.display());
        return Ok(());
    }
    let mut result = Ok(());
    let mut bad = |message: &str| {
        say(message);
        result = Err(exit::LEDGER);
    };
    let state = match State::look(dir) {
        Ok(state) => state,
        Err(error) => {
            bad(&error.to_string());
            None
        }
    };
    let known: Vec<_> = state
        .as_ref()
        .and_then(|state| state.anchor.place())
        .map(|place| place.head)
        .into_iter()
        .collect();
    match audit::verify_against(dir, &known) {
        Ok(verified) => println!("ledger: {verified}"),
        Err(LedgerError::Own(error)) if error.is_missing() && known.is_empty() => {
            println!("ledger: none yet");
        }
        Err(error) => bad(&error.to_string()),
    }
    if let Some(state) = state {
        match ground.keeper(state, isolation) {
            Ok(keeper) => {
                let all = keeper.contents();
                println!(
                    "store: holds; {} standing grants, {} of them count here, {} wait to be confirmed, {} remembered answers",
                    all.standing.len(),
                    keeper.live().count(),
                    keeper.due().count(),
                    all.remembered.len()
                );
            }
            Err((message, _)) => bad(&message),
        }
    }
    result
}

fn repaired(ground: &open::Ground) -> Result<u8, Trouble> {
    let dir: &Path = &ground.state_dir;
    if !dir.exists() {
        println!("there is nothing to repair in `{}`", dir.display());
        return Ok(exit::OK);
    }
    let stamp = ambient::wall_time().as_millis() / 1000;
    let repaired = repair::repair(dir, stamp).map_err(|error| (error.to_string(), exit::LEDGER))?;
    if repaired.done.is_empty() {
        println!("ledger and store hold; nothing was changed");
        return Ok(exit::OK);
    }
    for line in &repaired.done {
        println!("{line}");
    }
    if let Some(copy) = &repaired.copy {
        println!("everything as it was found: `{}`", copy.display());
    }
    caps::recorded(ground, "repaired by command", || {
        Ok(format!("repaired: {}", repaired.done.join("; ")))
    })?;
    Ok(exit::OK)
}
