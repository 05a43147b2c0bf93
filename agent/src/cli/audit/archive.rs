//! `audit archive`: what is on record goes elsewhere, and the next records say where it ended.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    super::{Where, caps, open, say, tell},
    called, ledgers,
};
use crate::{
    audit::LedgerError,
    exit,
    screen::visible,
    store::archive::{self, ArchiveError},
};

/// Moves every ledger that no session writes into `to`, each to where it is in the state
/// directory, so that `to` can be looked at as one.
pub fn archive(named: Option<&Path>, state_dir: &Path, to: &Path) -> u8 {
    if fs::symlink_metadata(to).is_ok() {
        say(&format!(
            "`{}` is there already; name a directory that is not, and it is made",
            visible(&to.display().to_string())
        ));
        return exit::USAGE;
    }
    let place = Where {
        state_dir: named.map(Path::to_owned),
        ..Where::default()
    };
    // Before anything is moved: the next records are of a session that is begun here.
    let ground = match open::seen_from(&place) {
        Ok(ground) => ground,
        Err((message, code)) => {
            say(&message);
            return code;
        }
    };
    let ledgers = match ledgers(state_dir) {
        Ok(ledgers) => ledgers,
        Err(code) => return code,
    };
    let mut code = exit::OK;
    let mut ended: Vec<String> = Vec::new();
    for ledger in &ledgers {
        let copy: PathBuf = to.join(&ledger.name);
        match archive::archive(&ledger.dir, &copy) {
            Ok(None) => {}
            Ok(Some(one)) => {
                let head = format!("{}:{}", one.head.next, one.head.digest);
                println!(
                    "{}{} records, {} bytes; head {head}",
                    called(ledger),
                    one.head.next,
                    one.bytes
                );
                ended.push(format!("{}{head}", called(ledger)));
            }
            Err(ArchiveError::Ledger(LedgerError::Busy(_))) => {
                say(&format!(
                    "{}left where it is: a session writes it",
                    match ledger.is_first() {
                        true => "the first ledger: ".to_owned(),
                        false => called(ledger),
                    }
                ));
            }
            Err(error) => {
                say(&format!("{}{error}", called(ledger)));
                code = exit::LEDGER;
            }
        }
    }
    if ended.is_empty() {
        if code == exit::OK {
            println!("nothing was moved");
        }
        return code;
    }
    let place = visible(&to.display().to_string());
    // A note is as long as a line: one for each.
    for head in ended {
        let noted = caps::recorded(&ground, "archived by command", || {
            Ok(format!("archived {head} into {place}"))
        });
        if let Err((message, worse)) = noted {
            say(&message);
            return worse;
        }
    }
    tell(&format!(
        "they are in `{place}`; `hermitcrab audit --state-dir` shows them there, and `audit verify --state-dir` checks them"
    ));
    code
}
