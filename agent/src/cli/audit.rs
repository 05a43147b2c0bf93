//! `audit`: the ledger, shown, followed, checked.

use std::{
    io::Write as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use hermitcrab_core::{audit::Head, digest::Digest};

use super::{say, state_dir};
use crate::{
    audit::{self, printed::Printed, show::Selection},
    exit,
    store::State,
};

/// What to do with the ledger.
#[derive(Debug, Args)]
pub struct Audit {
    /// Go on showing what is written from now on
    #[arg(long)]
    follow: bool,
    /// Only this session's records; its number, as in its first record
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// One JSON object a line, for programs; the file itself may end with room, which is no JSON
    #[arg(long)]
    json: bool,
    /// Where the ledger is kept
    #[arg(long, value_name = "DIR", global = true)]
    state_dir: Option<PathBuf>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check every record; name the first that does not hold
    Verify {
        /// A head published earlier, as `audit head` prints it; may be given several times
        #[arg(long, value_name = "RECORDS:DIGEST", value_parser = head_of)]
        expect: Vec<Head>,
    },
    /// Print where the ledger stands, to be kept elsewhere
    Head,
}

pub fn audit(audit: &Audit) -> u8 {
    let dir = match state_dir(audit.state_dir.as_deref()) {
        Ok(dir) => dir,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    match &audit.what {
        Some(What::Verify { expect }) => verify(&dir, expect),
        Some(What::Head) => head(&dir),
        None => show(&dir, audit),
    }
}

fn verify(dir: &Path, expect: &[Head]) -> u8 {
    let mut known = expect.to_vec();
    let mut code = exit::OK;
    match State::look(dir) {
        Ok(state) => known.extend(
            state
                .and_then(|state| state.anchor.place())
                .map(|place| place.head),
        ),
        Err(error) => {
            say(&error.to_string());
            code = exit::LEDGER;
        }
    }
    if code == exit::OK && known.is_empty() && is_nothing(dir) {
        println!("nothing is recorded yet");
        return exit::OK;
    }
    match audit::verify_against(dir, &known) {
        Ok(verified) => {
            println!("{verified}");
            code
        }
        Err(error) => {
            say(&error.to_string());
            exit::LEDGER
        }
    }
}

/// Is there no ledger, where nothing says that there was one?
fn is_nothing(dir: &Path) -> bool {
    let missing = std::fs::symlink_metadata(dir.join(audit::FILE_NAME))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    missing
        && State::look(dir)
            .is_ok_and(|state| state.is_none_or(|state| state.anchor.place().is_none()))
}

fn head(dir: &Path) -> u8 {
    if is_nothing(dir) {
        println!("{}:{}", Head::EMPTY.next, Head::EMPTY.digest);
        return exit::OK;
    }
    match audit::verify(dir) {
        Ok(verified) => {
            println!("{}:{}", verified.head.next, verified.head.digest);
            exit::OK
        }
        Err(error) => {
            say(&error.to_string());
            exit::LEDGER
        }
    }
}

fn show(dir: &Path, audit: &Audit) -> u8 {
    if !audit.follow && is_nothing(dir) {
        say("nothing is recorded yet");
        return exit::OK;
    }
    let selection = Selection {
        session: audit.session.clone(),
        follow: audit.follow,
    };
    let mut out = std::io::stdout().lock();
    let mut printed = Printed::default();
    let shown = audit::show::selected(dir, &selection, |record| {
        let written = if audit.json {
            writeln!(out, "{}", audit::line(record))
        } else {
            let text = printed.text(record);
            writeln!(out, "{:>6} {:<9} {text}", record.seq, record.kind)
        };
        // A reader that went away has seen enough.
        match written.and_then(|()| out.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    match shown {
        Ok(()) => exit::OK,
        Err(error) => {
            say(&error.to_string());
            exit::LEDGER
        }
    }
}

fn head_of(text: &str) -> Result<Head, String> {
    let wrong = || String::from("a head is RECORDS:DIGEST, as `hermitcrab audit head` prints it");
    let (records, digest) = text.split_once(':').ok_or_else(wrong)?;
    let digest: [u8; 32] = HEXLOWER
        .decode(digest.as_bytes())
        .ok()
        .and_then(|digest| digest.try_into().ok())
        .ok_or_else(wrong)?;
    Ok(Head {
        next: records.parse().map_err(|_| wrong())?,
        digest: Digest::from_bytes(digest),
    })
}
