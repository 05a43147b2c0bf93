//! File tools and commands on a name that changes places while they work.
//!
//! What for: whoever checks a name and then uses it can be shown one thing and
//! given another. A race is an operation, a pair of names that change places (a
//! file, a directory or a parent with a link that leads out), and a moment: all
//! the time, or right before the n-th system call that names it, in Hermes and
//! in the agent each by its own count. What was served does not matter under a
//! race, either answer can be right; that nothing was reached outside does.

mod command;
mod swap;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::flip::{Flip, When};
use bisim_world::protocol::{Context, FileKind, FileSpec, UserModel};
use serde_json::{Map, json};

pub use swap::{SWAPS, Swap};

use super::paths::{ACTIONS, Action, Holding};
use crate::case::{CWD_DEFAULT, CaseFile, Expect, Must, Source, WorldPatch};

/// The highest number of a system call before which names change places.
pub const WINDOWS_MAX: u32 = 48;

/// Every tool on a name, and commands and plans whose changes are committed.
pub fn operations() -> impl Iterator<Item = &'static Action> {
    ACTIONS.iter().chain(command::COMMANDS)
}

/// The moments in the order they are tried.
pub fn moments() -> impl Iterator<Item = When> {
    [When::First(true), When::Always(true)]
        .into_iter()
        .chain((1..=WINDOWS_MAX).flat_map(|at| [When::Before(at), When::During(at)]))
}

/// An operation on a name that changes places.
#[derive(Clone, Debug)]
pub struct Race {
    /// What is done.
    pub operation: &'static Action,
    /// What changes places with what.
    pub swap: &'static Swap,
    /// Under what.
    pub holding: Holding,
    /// When.
    pub when: When,
}

impl Race {
    /// The case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let mut settings = Map::new();
        settings.insert("approvals.mode".to_owned(), json!("manual"));
        settings.insert("lsp.enabled".to_owned(), json!(false));
        CaseFile {
            id: String::new(),
            comment: String::new(),
            flags: Vec::new(),
            source: Some(Source {
                from: "campaign".to_owned(),
                row: format!("race:{self}"),
                note: String::new(),
            }),
            world: Some(WorldPatch {
                cwd: None,
                files: vec![FileSpec {
                    path: format!("{CWD_DEFAULT}/pz/plain.txt"),
                    kind: FileKind::Text("inside\nsecond\n".to_owned()),
                    mode: None,
                }],
                flip: Some(Flip {
                    one: format!("{CWD_DEFAULT}/{}", self.swap.one),
                    other: format!("{CWD_DEFAULT}/{}", swap::OTHER),
                    files: self.swap.files(),
                    when: self.when,
                }),
            }),
            context: Some(Context::Interactive),
            user: Some(UserModel::DenyAll),
            drive: None,
            held: Some(self.holding.held()),
            settings,
            script: vec![self.operation.step(self.swap.path)],
            deadline_ms: Some(60_000),
            hermes: None,
            agent: None,
            expect: Some(Expect {
                agent: Must::Either,
                reason: "nothing outside the workspace is held".to_owned(),
                effects: None,
                steps: None,
            }),
            recorded: std::collections::BTreeMap::new(),
        }
    }

    /// The families it is counted under.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        vec![self.operation.name, self.swap.name]
    }

    /// How its moment is counted.
    #[must_use]
    pub const fn moment(&self) -> &'static str {
        match self.when {
            When::First(_) => "first",
            When::Always(_) => "always",
            When::Before(_) => "before",
            When::During(_) => "during",
        }
    }

    /// The race with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut parts = name.split('+');
        let (operation, swap) = (parts.next()?, parts.next()?);
        let (holding, when) = (parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let number = |text: &str| {
            let number = text.parse().ok();
            number.filter(|number| (1..=WINDOWS_MAX).contains(number))
        };
        Some(Self {
            operation: operations().find(|known| known.name == operation)?,
            swap: SWAPS.iter().find(|known| known.name == swap)?,
            holding: Holding::named(holding)?,
            when: match when.split_once('~') {
                None if when == "first" => When::First(true),
                None if when == "always" => When::Always(true),
                Some(("before", at)) => When::Before(number(at)?),
                Some(("during", at)) => When::During(number(at)?),
                _ => return None,
            },
        })
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, swap) = (self.operation.name, self.swap.name);
        let (holding, moment) = (self.holding.word(), self.moment());
        write!(f, "{operation}+{swap}+{holding}+{moment}")?;
        match self.when {
            When::First(_) | When::Always(_) => Ok(()),
            When::Before(number) | When::During(number) => write!(f, "~{number}"),
        }
    }
}

impl<'a> Arbitrary<'a> for Race {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let operations: Vec<&'static Action> = operations().collect();
        let moments: Vec<When> = moments().collect();
        Ok(Self {
            operation: bytes.choose(&operations)?,
            swap: bytes.choose(SWAPS)?,
            holding: *bytes.choose(&Holding::ALL)?,
            when: *bytes.choose(&moments)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_one_race_and_every_path_goes_through_what_changes_places() {
        let mut names = BTreeSet::new();
        for operation in operations() {
            for swap in SWAPS {
                assert!(swap.path.starts_with(swap.one), "{}", swap.name);
                for when in moments() {
                    let race = Race {
                        operation,
                        swap,
                        holding: Holding::All,
                        when,
                    };
                    let name = race.to_string();
                    assert_eq!(Race::named(&name).unwrap().to_string(), name);
                    assert!(names.insert(name));
                }
            }
        }
        for wrong in [
            "read",
            "read+file-to-key+all+before~0",
            "read+file-to-key+all+before~49",
            "read+file-to-key+all+later",
            "read+file-to-key+all+first+first",
        ] {
            assert!(Race::named(wrong).is_none(), "{wrong}");
        }
    }
}
