//! File tools and commands on a name that changes places while they work.
//!
//! What for: whoever checks a name and then uses it can be shown one thing and
//! given another. A race is an operation, a pair of names that change places (a
//! file, a directory or a parent with a link that leads out), and a moment: all
//! the time, or right before the n-th system call that names it, in Hermes and
//! in the agent each by its own count. The agent may be killed in the middle
//! besides: then its next start, which puts in order what was begun, is raced as
//! well. What was served does not matter under a race, either answer can be
//! right; that nothing was reached outside does.

mod command;
mod swap;

use std::fmt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{FileKind, FileSpec};
use bisim_world::protocol::{Flip, When};

pub use swap::{SWAPS, Swap};

use super::crashes::{self, CHANGES_MAX};
use super::paths::{ACTIONS, Action, Holding};
use super::surroundings::{self, USUAL};
use crate::case::{CWD_DEFAULT, CaseFile};

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
    /// The change right before which the agent is killed in the middle of it; what is
    /// raced then is the next start as well.
    pub cut: Option<u32>,
}

impl Race {
    /// The case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let plain = FileSpec {
            path: format!("{CWD_DEFAULT}/pz/plain.txt"),
            kind: FileKind::Text("inside\nsecond\n".to_owned()),
            mode: None,
        };
        let flip = Flip {
            one: format!("{CWD_DEFAULT}/{}", self.swap.one),
            other: format!("{CWD_DEFAULT}/{}", swap::OTHER),
            files: self.swap.files(),
            when: self.when,
        };
        let step = self.operation.step(self.swap.path);
        let script = vec![match self.cut {
            Some(before) => crashes::cut_off(step, before),
            None => step,
        }];
        CaseFile {
            world: surroundings::world(vec![plain], Some(flip)),
            held: Some(self.holding.held()),
            expect: Some(surroundings::either(
                "nothing outside the workspace is held",
            )),
            ..surroundings::case_file(format!("race:{self}"), USUAL, script)
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
        let cut = match parts.next() {
            None => None,
            Some(part) => Some(crashes::change(part.strip_prefix("cut~")?)?),
        };
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
            cut,
        })
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, swap) = (self.operation.name, self.swap.name);
        let (holding, moment) = (self.holding.word(), self.moment());
        write!(f, "{operation}+{swap}+{holding}+{moment}")?;
        match self.when {
            When::First(_) | When::Always(_) => {}
            When::Before(number) | When::During(number) => write!(f, "~{number}")?,
        }
        match self.cut {
            Some(before) => write!(f, "+cut~{before}"),
            None => Ok(()),
        }
    }
}

impl<'a> Arbitrary<'a> for Race {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        static OPERATIONS: LazyLock<Vec<&'static Action>> =
            LazyLock::new(|| operations().collect());
        static MOMENTS: LazyLock<Vec<When>> = LazyLock::new(|| moments().collect());
        Ok(Self {
            operation: bytes.choose(&OPERATIONS)?,
            swap: bytes.choose(SWAPS)?,
            holding: *bytes.choose(&Holding::ALL)?,
            when: *bytes.choose(&MOMENTS)?,
            cut: bytes
                .ratio(1_u8, 4_u8)?
                .then(|| bytes.int_in_range(1..=CHANGES_MAX))
                .transpose()?,
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
                        cut: None,
                    };
                    let cut = Race {
                        cut: Some(CHANGES_MAX),
                        ..race.clone()
                    };
                    for race in [race, cut] {
                        let name = race.to_string();
                        assert_eq!(Race::named(&name).unwrap().to_string(), name);
                        assert!(names.insert(name));
                    }
                }
            }
        }
        for wrong in [
            "read",
            "read+file-to-key+all+before~0",
            "read+file-to-key+all+before~49",
            "read+file-to-key+all+later",
            "read+file-to-key+all+first+first",
            "read+file-to-key+all+first+cut~0",
            "read+file-to-key+all+first+cut~3+cut~3",
        ] {
            assert!(Race::named(wrong).is_none(), "{wrong}");
        }
    }
}
