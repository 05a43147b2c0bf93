//! File tools and commands on a name that changes places while they work.
//!
//! What for: whoever checks a name and then uses it can be shown one thing and
//! given another. A race is an operation, a pair of names that change places (a
//! file, a directory or a parent with a link that leads out), and a moment: all
//! the time, or right before the n-th system call that names it, in Hermes and
//! in the agent each by its own count. The agent may be killed in the middle
//! besides: then its next start, which puts in order what was begun, is raced as
//! well. What was served does not matter under a race, either answer can be
//! right; that nothing was reached outside does. Where a race is about taking back what a
//! call changed, or about what is kept beyond the workspace, the steps before the last are
//! made in peace.

mod command;
mod own;
mod swap;
mod undone;

use std::fmt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{FileKind, FileSpec, Flip, Held, When};
use own::{OWN, Own};

pub use swap::{SWAPS, Swap};

use super::crashes::{self, CHANGES_MAX};
use super::paths::{ACTIONS, Action, Holding};
use super::surroundings::{self, USUAL};
use crate::case::{CWD_DEFAULT, CaseFile};

/// The highest number of a system call before which names change places.
pub const WINDOWS_MAX: u32 = 48;

/// Every tool on a name, commands and plans whose changes are committed, and what is
/// taken back.
fn operations() -> impl Iterator<Item = &'static Action> {
    let plain = ACTIONS.iter().chain(command::COMMANDS);
    plain.chain(undone::UNDONE)
}

/// Every operation with every pair of names it goes with, in a fixed order: all pairs of
/// the workspace, then what tools keep for themselves.
pub fn pairs() -> &'static [(&'static Action, &'static Swap)] {
    static PAIRS: LazyLock<Vec<(&'static Action, &'static Swap)>> = LazyLock::new(|| {
        let with =
            |operation, swaps: &'static [Swap]| swaps.iter().map(move |swap| (operation, swap));
        let workspace = operations().flat_map(|operation| with(operation, SWAPS));
        let own = OWN.iter().flat_map(|own| {
            let all = own.operations.iter();
            all.flat_map(move |operation| with(operation, own.swaps))
        });
        workspace.chain(own).collect()
    });
    &PAIRS
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
        let own = self.own();
        let mut script = Vec::new();
        // What is held is opened with the first step, and is what it is meant to be by then.
        if own.is_some() {
            script.extend(ACTIONS.first().map(|read| read.step("pz/plain.txt")));
        }
        script.extend(self.operation.steps(self.swap.path));
        let from = script.len().saturating_sub(1);
        let last = script.pop().into_iter();
        script.extend(last.map(|last| match self.cut {
            Some(before) => crashes::cut_off(last, before),
            None => last,
        }));
        let flip = Flip {
            one: swap::whole(self.swap.one),
            other: swap::whole(swap::OTHER),
            files: self.swap.files(),
            when: self.when,
            from,
        };
        let mut held = self.holding.held();
        let more: Option<Held> = held.first().zip(own).map(|(like, own)| Held {
            id: "own".to_owned(),
            on: own.on.to_owned(),
            ..like.clone()
        });
        held.extend(more);
        CaseFile {
            world: surroundings::world(vec![plain], Some(flip)),
            held: Some(held),
            expect: Some(surroundings::either(match own {
                None => "nothing outside the workspace is held",
                Some(_) => "nothing outside the workspace and what is kept is held",
            })),
            ..surroundings::case_file(format!("race:{self}"), USUAL, script)
        }
    }

    /// Where it is about what a tool keeps for itself.
    fn own(&self) -> Option<&'static Own> {
        OWN.iter().find(|own| {
            let mut swaps = own.swaps.iter();
            swaps.any(|swap| swap.name == self.swap.name)
        })
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
        let known = |(one, other): &&(&Action, &Swap)| one.name == operation && other.name == swap;
        let (operation, swap) = *pairs().iter().find(known)?;
        Some(Self {
            operation,
            swap,
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
        static MOMENTS: LazyLock<Vec<When>> = LazyLock::new(|| moments().collect());
        let (operation, swap) = *bytes.choose(pairs())?;
        Ok(Self {
            operation,
            swap,
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
        for (operation, swap) in pairs() {
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
        for wrong in [
            "read",
            "read+file-to-key+all+before~0",
            "read+file-to-key+all+before~49",
            "read+file-to-key+all+later",
            "read+file-to-key+all+first+first",
            "read+file-to-key+all+first+cut~0",
            "read+file-to-key+all+first+cut~3+cut~3",
            "read+notes-to-key+all+first",
            "note-add+file-to-key+all+first",
        ] {
            assert!(Race::named(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn only_the_last_step_is_raced_and_only_there_it_is_cut_off() {
        for (name, steps, held) in [
            ("write+file-to-key+all+first", 1, vec!["/home/u/proj"]),
            ("write+file-to-key+nothing+first", 1, vec![]),
            ("undo-write+file-to-key+all+first", 2, vec!["/home/u/proj"]),
            (
                "undo-command-delete+directory-to-keys+all+before~3",
                2,
                vec!["/home/u/proj"],
            ),
            ("undo-delete+file-to-key+all+first", 1, vec!["/home/u/proj"]),
            (
                "note-add+notes-to-key+all+always",
                2,
                vec!["/home/u/proj", "/home/u/.hermes/memories"],
            ),
            ("note-add+notes-to-key+nothing+always", 2, vec![]),
            (
                "skill-edit+skills-to-data+all+first",
                2,
                vec!["/home/u/proj", "/home/u/.hermes/skills"],
            ),
            (
                "job-create+jobs-to-key+all+during~4",
                2,
                vec!["/home/u/proj", "/home/u/.hermes/cron"],
            ),
        ] {
            for cut in ["", "+cut~7"] {
                let case = Race::named(&format!("{name}{cut}")).unwrap().case_file();
                let flip = case.world.unwrap().flip.unwrap();
                assert_eq!(case.script.len(), steps, "{name}");
                assert_eq!(flip.from, steps - 1, "{name}");
                let on: Vec<String> = case.held.unwrap().into_iter().map(|held| held.on).collect();
                assert_eq!(on, held, "{name}");
                let cuts: Vec<bool> = case
                    .script
                    .iter()
                    .map(|step| step.cut().is_some())
                    .collect();
                let last = cuts.len() - 1;
                for (place, is_cut) in cuts.into_iter().enumerate() {
                    assert_eq!(is_cut, place == last && !cut.is_empty(), "{name}{cut}");
                }
            }
        }
    }
}
