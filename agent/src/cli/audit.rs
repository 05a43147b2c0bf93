//! `audit`: the ledger, shown, followed, checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::mpsc,
};

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use hermitcrab_core::{
    audit::{Head, Record},
    digest::Digest,
};

use super::{say, state_dir};
use crate::{
    audit::{
        self, beside,
        printed::Printed,
        show::{LOOK_AGAIN, Selection},
    },
    exit,
    screen::visible,
    store::State,
};

/// What to do with the ledger.
#[derive(Debug, Args)]
pub struct Audit {
    /// Go on showing what is written from now on
    #[arg(long)]
    follow: bool,
    /// Only this session's records: as `hermitcrab session` and its first record name it, or the beginning of that
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

/// Every ledger of a state directory in which something is recorded, or should be.
fn ledgers(dir: &Path) -> Vec<(u32, PathBuf)> {
    let mut all = beside::all(dir);
    all.retain(|(_, place)| !is_nothing(place));
    all
}

/// What a ledger is called beside others; nothing if it is the first.
fn called(number: u32) -> String {
    match number {
        0 => String::new(),
        number => format!("{}/{number}: ", beside::DIR_NAME),
    }
}

fn verify(dir: &Path, expect: &[Head]) -> u8 {
    let mut ledgers = ledgers(dir);
    if ledgers.is_empty() && expect.is_empty() {
        println!("nothing is recorded yet");
        return exit::OK;
    }
    // A head published earlier is one of any of them; what none of them has was cut
    // off, and is told of the first.
    let holds = |head: &Head| {
        let mut places = ledgers.iter();
        places.any(|(_, place)| audit::verify_against(place, &[*head]).is_ok())
    };
    let (_, lacking): (Vec<Head>, Vec<Head>) = expect.iter().partition(|head| holds(head));
    // Also where the first is gone with all that tells of it, and others are left.
    if !lacking.is_empty() && ledgers.iter().all(|(number, _)| *number != 0) {
        ledgers.insert(0, (0, dir.to_owned()));
    }
    let mut code = exit::OK;
    for (number, place) in &ledgers {
        let mut known = if *number == 0 {
            lacking.clone()
        } else {
            Vec::new()
        };
        match State::look(place) {
            Ok(state) => known.extend(
                state
                    .and_then(|state| state.anchor.place())
                    .map(|place| place.head),
            ),
            Err(error) => {
                say(&format!("{}{error}", called(*number)));
                code = exit::LEDGER;
            }
        }
        match audit::verify_against(place, &known) {
            Ok(verified) => println!("{}{verified}", called(*number)),
            Err(error) => {
                say(&error.to_string());
                code = exit::LEDGER;
            }
        }
    }
    code
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
    let ledgers = ledgers(dir);
    if ledgers.is_empty() {
        println!("{}:{}", Head::EMPTY.next, Head::EMPTY.digest);
    }
    for (_, place) in ledgers {
        match audit::verify(&place) {
            Ok(verified) => println!("{}:{}", verified.head.next, verified.head.digest),
            Err(error) => {
                say(&error.to_string());
                return exit::LEDGER;
            }
        }
    }
    exit::OK
}

/// Records on their way to a reader, those of several ledgers under the names of theirs.
struct Page {
    is_json: bool,
    /// The ledger of the last record; before any, the first.
    last: u32,
    /// What is known of each ledger, and the number of its next record.
    seen: BTreeMap<u32, (Printed, u64)>,
}

impl Page {
    /// A reader that went away has seen enough.
    fn put(&mut self, number: u32, record: &Record) -> ControlFlow<()> {
        let mut out = std::io::stdout().lock();
        let (printed, next) = self.seen.entry(number).or_default();
        *next = record.seq.saturating_add(1);
        let written = if self.is_json {
            writeln!(out, "{}", audit::line(record))
        } else {
            let heading = match number {
                number if number == self.last => Ok(()),
                0 => writeln!(out, "the first ledger:"),
                number => writeln!(out, "{}/{number}:", beside::DIR_NAME),
            };
            self.last = number;
            let line = printed.line(record);
            heading.and_then(|()| writeln!(out, "{line}"))
        };
        match written.and_then(|()| out.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

fn show(dir: &Path, audit: &Audit) -> u8 {
    let ledgers = ledgers(dir);
    if !audit.follow && ledgers.is_empty() {
        say("nothing is recorded yet");
        return exit::OK;
    }
    let selection = Selection {
        session: audit.session.clone(),
        follow: false,
    };
    let mut page = Page {
        is_json: audit.json,
        last: 0,
        seen: BTreeMap::new(),
    };
    for (number, place) in ledgers {
        let mut has_enough = false;
        let shown = audit::show::selected(&place, &selection, |record| {
            let flow = page.put(number, record);
            has_enough = flow.is_break();
            flow
        });
        match shown {
            Ok(()) if has_enough => return exit::OK,
            Ok(()) => {}
            Err(error) => {
                say(&error.to_string());
                return exit::LEDGER;
            }
        }
    }
    if audit.follow {
        return follow(dir, audit, page);
    }
    match &audit.session {
        Some(session) if page.seen.is_empty() => {
            say(&format!(
                "no session `{}` is on record; `hermitcrab audit` shows all, each with its number at its beginning",
                visible(session)
            ));
            exit::USAGE
        }
        Some(_) | None => exit::OK,
    }
}

/// Goes on with what is written to any of them, those included that begin later.
fn follow(dir: &Path, audit: &Audit, mut page: Page) -> u8 {
    let (tell, told) = mpsc::channel();
    let mut followed = BTreeSet::new();
    loop {
        for (number, place) in beside::all(dir) {
            if (number != 0 && is_nothing(&place)) || !followed.insert(number) {
                continue;
            }
            let next = page.seen.get(&number).map_or(0, |(_, next)| *next);
            let selection = Selection {
                session: audit.session.clone(),
                follow: true,
            };
            let tell = tell.clone();
            // It ends with the program: whoever follows does so until they leave.
            std::thread::spawn(move || {
                let ended = audit::show::selected(&place, &selection, |record| {
                    let is_shown = record.seq < next;
                    if is_shown || tell.send((number, Ok(record.clone()))).is_ok() {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                });
                if let Err(error) = ended {
                    // Nobody waits for it any more.
                    let _sent = tell.send((number, Err(error)));
                }
            });
        }
        match told.recv_timeout(LOOK_AGAIN) {
            Ok((number, Ok(record))) => {
                if page.put(number, &record).is_break() {
                    return exit::OK;
                }
            }
            Ok((_, Err(error))) => {
                say(&error.to_string());
                return exit::LEDGER;
            }
            // Ledgers may have come meanwhile.
            Err(_) => {}
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
