//! `audit`: the ledger, shown, followed, checked.

mod archive;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::mpsc,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand};
use data_encoding::HEXLOWER;
use hermitcrab_core::{
    audit::{Head, Record},
    digest::Digest,
};

use serde_json::{Value, json};

use super::{as_json::print_json, say, state_dir, tell};
use crate::{
    ambient,
    audit::{
        self, LedgerError, Tail, Verified,
        beside::{self, Place, Whose},
        printed::Printed,
        show::{LOOK_AGAIN, NAME_LETTERS_MIN, Selection},
    },
    exit, printing,
    screen::visible,
    store::State,
    text::rows,
};

/// What to do with the ledger.
#[derive(Debug, Args)]
pub struct Audit {
    /// Go on showing what is written from now on
    #[arg(long)]
    follow: bool,
    /// Only this session's records: as `hermitcrab session` and its first record name it, or the beginning of that; or all of an editor's session or a job, by its id
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// One JSON object a line, for programs, as it is in the file, whose end may be room, which is no JSON; a record of another ledger than the first says which in `ledger`
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
        /// One JSON object a ledger, for programs
        #[arg(long)]
        json: bool,
    },
    /// Print where the ledger stands, to be kept elsewhere
    Head,
    /// Move what is on record into a directory that is made for it, and begin anew
    Archive {
        /// The directory, which is not there yet
        dir: PathBuf,
    },
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
        Some(What::Verify { expect, json }) => verify(&dir, expect, *json || audit.json),
        Some(What::Head) => head(&dir),
        Some(What::Archive { .. }) if audit.follow || audit.session.is_some() || audit.json => {
            say(
                "`--follow`, `--session` and `--json` are for what is shown; `archive` takes none of them",
            );
            exit::USAGE
        }
        Some(What::Archive { dir: to }) => archive::archive(audit.state_dir.as_deref(), &dir, to),
        None => show(&dir, audit),
    }
}

/// How long before it was looked at a ledger must have been written last, so that the time of
/// that tells whether it was written since.
const STAMP_AGE_MIN: Duration = Duration::from_secs(2);

/// Every ledger of a state directory in which something is recorded, or should be.
fn ledgers(dir: &Path) -> Result<Vec<Place>, u8> {
    let mut all = every(dir)?;
    all.retain(|place| !is_nothing(&place.dir));
    Ok(all)
}

/// Every directory that could have one; that it cannot be told which is said.
fn every(dir: &Path) -> Result<Vec<Place>, u8> {
    beside::every(dir).map_err(|(above, error)| {
        let above = visible(&above.display().to_string());
        say(&format!(
            "cannot tell which ledgers there are in `{above}`: {error}; see who changed it"
        ));
        exit::LEDGER
    })
}

/// What a ledger is called beside others; nothing if it is the first.
fn called(place: &Place) -> String {
    match place.is_first() {
        true => String::new(),
        false => format!("{}: ", place.name),
    }
}

/// Whether an editor's session or a job is meant by its id, as its ledger is called or the beginning of that.
fn is_meant(place: &Place, wanted: &str) -> bool {
    let own = match place.whose {
        Whose::Own => return false,
        Whose::Editor | Whose::Job => place.dir.file_name().unwrap_or_default(),
    };
    let begins = own.to_str().is_some_and(|own| own.starts_with(wanted));
    place.name == wanted || (wanted.len() >= NAME_LETTERS_MIN && begins)
}

/// What of a ledger is to be shown.
fn selection(place: &Place, session: Option<&String>, follow: bool) -> Selection {
    Selection {
        session: session.filter(|session| !is_meant(place, session)).cloned(),
        follow,
    }
}

fn verify(dir: &Path, expect: &[Head], is_json: bool) -> u8 {
    let mut ledgers = match ledgers(dir) {
        Ok(ledgers) => ledgers,
        Err(code) => return code,
    };
    if ledgers.is_empty() && expect.is_empty() {
        if !is_json {
            println!("nothing is recorded yet");
        }
        return exit::OK;
    }
    // A head published earlier is one of any of them; what none of them has was cut
    // off, and is told of the first.
    let holds = |head: &Head| {
        let mut places = ledgers.iter();
        places.any(|place| audit::verify_against(&place.dir, &[*head]).is_ok())
    };
    let (_, lacking): (Vec<Head>, Vec<Head>) = expect.iter().partition(|head| holds(head));
    // Also where the first is gone with all that tells of it, and others are left.
    if !lacking.is_empty() && !ledgers.iter().any(Place::is_first) {
        ledgers.insert(0, Place::first(dir));
    }
    let mut code = exit::OK;
    for place in &ledgers {
        let mut known = if place.is_first() {
            lacking.clone()
        } else {
            Vec::new()
        };
        match State::look(&place.dir) {
            Ok(state) => known.extend(
                state
                    .and_then(|state| state.anchor.place())
                    .map(|place| place.head),
            ),
            Err(error) => {
                say(&format!("{}{error}", called(place)));
                code = exit::LEDGER;
            }
        }
        let verified = audit::verify_against(&place.dir, &known);
        if is_json {
            print_json(&as_json(place, &verified));
        }
        match verified {
            Ok(_) if is_json => {}
            Ok(verified) => tell(&format!("{}{verified}", called(place))),
            Err(error) => {
                say(&error.to_string());
                code = exit::LEDGER;
            }
        }
    }
    code
}

/// What was found of one ledger: whether it `holds`, and where it ends, or why it does not.
/// `ledger` is empty for the first, as in `audit --json`.
fn as_json(place: &Place, verified: &Result<Verified, LedgerError>) -> Value {
    let name = if place.is_first() { "" } else { &place.name };
    match verified {
        Ok(verified) => json!({
            "ledger": name,
            "holds": true,
            "records": verified.head.next,
            "head": format!("{}:{}", verified.head.next, verified.head.digest),
            "cut_off_bytes": match verified.tail {
                Tail::Whole => 0,
                Tail::CutOff { bytes } => bytes,
            },
            "unfinished": verified.unfinished.iter().map(|call| json!({
                "record": call.seq,
                "session": call.session,
                "call": call.call,
            })).collect::<Vec<_>>(),
        }),
        Err(error) => json!({"ledger": name, "holds": false, "why": error.to_string()}),
    }
}

/// Is there no ledger, where nothing says that there was one?
pub(super) fn is_nothing(dir: &Path) -> bool {
    let missing = std::fs::symlink_metadata(dir.join(audit::FILE_NAME))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    missing
        && State::look(dir)
            .is_ok_and(|state| state.is_none_or(|state| state.anchor.place().is_none()))
}

fn head(dir: &Path) -> u8 {
    let ledgers = match ledgers(dir) {
        Ok(ledgers) => ledgers,
        Err(code) => return code,
    };
    if ledgers.is_empty() {
        println!("{}:{}", Head::EMPTY.next, Head::EMPTY.digest);
    }
    for place in ledgers {
        match audit::verify(&place.dir) {
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
    /// How wide the terminal is, if one reads.
    columns: Option<usize>,
    /// The ledger of the last record; before any, the first.
    last: String,
    /// What is known of each ledger, and the number of its next record.
    seen: BTreeMap<String, (Printed, u64)>,
}

impl Page {
    /// A reader that went away has seen enough.
    fn put(&mut self, ledger: &str, record: &Record) -> ControlFlow<()> {
        let mut out = std::io::stdout().lock();
        let (printed, next) = self.seen.entry(ledger.to_owned()).or_default();
        *next = record.seq.saturating_add(1);
        let written = if self.is_json {
            writeln!(out, "{}", audit::line_of(ledger, record))
        } else {
            let heading = match ledger {
                ledger if ledger == self.last => Ok(()),
                "" => writeln!(out, "the first ledger:"),
                ledger => writeln!(out, "{ledger}:"),
            };
            ledger.clone_into(&mut self.last);
            let line = rows::told(&printed.line(record), self.columns);
            heading.and_then(|()| writeln!(out, "{line}"))
        };
        let written = written.and_then(|()| out.flush());
        printing::note(&written);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

fn show(dir: &Path, audit: &Audit) -> u8 {
    let mut ledgers = match ledgers(dir) {
        Ok(ledgers) => ledgers,
        Err(code) => return code,
    };
    // What happened last stands at the end, in whichever of them.
    ledgers.sort_by_key(modified);
    if !audit.follow && ledgers.is_empty() {
        say("nothing is recorded yet");
        return exit::OK;
    }
    let mut page = Page {
        is_json: audit.json,
        columns: ambient::screen().columns_of(&std::io::stdout()),
        last: String::new(),
        seen: BTreeMap::new(),
    };
    let mut code = exit::OK;
    let mut at_rest = BTreeMap::new();
    for place in ledgers {
        let written = written_last(&place).filter(|_| audit.follow);
        let mut has_enough = false;
        let selection = selection(&place, audit.session.as_ref(), false);
        let shown = audit::show::selected(&place.dir, &selection, |record| {
            let flow = page.put(&place.name, record);
            has_enough = flow.is_break();
            flow
        });
        match shown {
            Ok(()) if has_enough => return exit::OK,
            Ok(()) => {}
            // The others are there all the same.
            Err(error) => {
                say(&error.to_string());
                code = exit::LEDGER;
            }
        }
        at_rest.extend(written.map(|written| (place.name, written)));
    }
    if audit.follow && code == exit::OK {
        return follow(dir, audit, page, &at_rest);
    }
    match &audit.session {
        Some(session) if page.seen.is_empty() && code == exit::OK => {
            say(&format!(
                "no session `{}` is on record; `hermitcrab audit` shows all, each with its number at its beginning",
                visible(session)
            ));
            exit::USAGE
        }
        Some(_) | None => code,
    }
}

/// When a ledger that can be many was written last, if that is long enough ago to tell by it
/// whether it was written since. Of sessions of editors and of jobs hundreds may have ended,
/// and nobody waits at each for what never comes.
fn written_last(place: &Place) -> Option<SystemTime> {
    match place.whose {
        Whose::Own => return None,
        Whose::Editor | Whose::Job => {}
    }
    let written = modified(place)?;
    let since = written.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(ambient::wall_time().as_millis());
    let age = now.checked_sub(since)?;
    (age >= STAMP_AGE_MIN).then_some(written)
}

fn modified(place: &Place) -> Option<SystemTime> {
    let seen = std::fs::symlink_metadata(place.dir.join(audit::FILE_NAME)).ok()?;
    seen.modified().ok()
}

/// Goes on with what is written to any of them, those included that begin later. Of those
/// `at_rest` it is known when they were written last, before they were shown.
fn follow(dir: &Path, audit: &Audit, mut page: Page, at_rest: &BTreeMap<String, SystemTime>) -> u8 {
    let (tell, told) = mpsc::channel();
    let mut followed = BTreeSet::new();
    loop {
        let places = match every(dir) {
            Ok(places) => places,
            Err(code) => return code,
        };
        for place in places {
            let rests = || {
                let written = at_rest.get(&place.name);
                written.is_some() && modified(&place).as_ref() == written
            };
            if followed.contains(&place.name)
                || (!place.is_first() && is_nothing(&place.dir))
                || rests()
            {
                continue;
            }
            followed.insert(place.name.clone());
            let next = page.seen.get(&place.name).map_or(0, |(_, next)| *next);
            let selection = selection(&place, audit.session.as_ref(), true);
            let tell = tell.clone();
            // It ends with the program: whoever follows does so until they leave.
            std::thread::spawn(move || {
                let ended = audit::show::selected(&place.dir, &selection, |record| {
                    let is_shown = record.seq < next;
                    let told = || (place.name.clone(), Ok(record.clone()));
                    if is_shown || tell.send(told()).is_ok() {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                });
                if let Err(error) = ended {
                    // Nobody waits for it any more.
                    let _sent = tell.send((place.name, Err(error)));
                }
            });
        }
        match told.recv_timeout(LOOK_AGAIN) {
            Ok((ledger, Ok(record))) => {
                if page.put(&ledger, &record).is_break() {
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
