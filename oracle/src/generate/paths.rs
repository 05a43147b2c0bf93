//! File tools on names that lead elsewhere.
//!
//! What for: what is held is a directory, and a name is only a way to it. A
//! path call is an action (read, write, replace, ...), a place that was
//! prepared in the world (a link out, a loop, a pipe, ...), and at most three
//! ways to spell the name differently; it is run under nothing, a right to
//! read, or all rights on the workspace. What may happen is judged by the
//! relation, never here.

mod action;
mod form;
mod place;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, Decision, FileKind, FileSpec, Held, Rule};

pub use action::{ACTIONS, Action};
pub(super) use action::{action, planned, undone, v4a};
pub use form::{FORMS, Form};
pub use place::{PLACES, Place};

use super::operator::Salt;
use super::surroundings::{self, CONTEXTS, USUAL};
use crate::case::{CWD_DEFAULT, CaseFile};

/// The most respellings of one name.
pub const FORMS_MAX: usize = 3;
/// Longer names are not kept: no kernel takes them.
const LETTERS_MAX: usize = 20_000;

/// What is held on the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Nothing.
    Nothing,
    /// It may be read.
    Reading,
    /// All file verbs.
    All,
    /// The same, and a rule of the user's that withholds all prepared places in it.
    Ruled,
}

impl Holding {
    /// Those without a rule.
    pub const ALL: [Self; 3] = [Self::All, Self::Reading, Self::Nothing];
    /// Those of file tools.
    pub const OF_PATHS: [Self; 4] = [Self::All, Self::Reading, Self::Nothing, Self::Ruled];

    /// Its word.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Reading => "reading",
            Self::All => "all",
            Self::Ruled => "ruled",
        }
    }

    /// The one without a rule that has this word.
    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|holding| holding.word() == word)
    }

    /// The grants of a case.
    pub(crate) fn held(self) -> Vec<Held> {
        let verb = match self {
            Self::Nothing => return Vec::new(),
            Self::Reading => "fs.read",
            Self::All | Self::Ruled => "fs.*",
        };
        vec![Held {
            id: "ws".to_owned(),
            verb: verb.to_owned(),
            on: CWD_DEFAULT.to_owned(),
            uses: None,
            seconds: None,
            holder: None,
            hermes: None,
        }]
    }

    /// The rules of a case.
    fn rules(self) -> Option<Vec<Rule>> {
        (self == Self::Ruled).then(|| {
            vec![Rule {
                id: "prepared".to_owned(),
                decision: Decision::Deny,
                verbs: vec!["fs.*".to_owned()],
                on: Some(format!("{CWD_DEFAULT}/{}", place::PREPARED)),
                named: None,
                host: None,
            }]
        })
    }

    /// The files of a case: who shows one that a rule withholds shows a secret.
    fn files(self, mut files: Vec<FileSpec>) -> Vec<FileSpec> {
        let withheld = format!("{CWD_DEFAULT}/{}/", place::PREPARED);
        for file in &mut files {
            if let FileKind::Text(text) = &mut file.kind
                && self == Self::Ruled
                && file.path.starts_with(&withheld)
            {
                *text = text.replace("inside", "CANARY-INSIDE");
            }
        }
        files
    }
}

/// A call of a file tool on a prepared place.
#[derive(Clone, Debug)]
pub struct PathCall {
    /// What is done.
    pub action: &'static Action,
    /// Where.
    pub place: &'static Place,
    /// Under what.
    pub holding: Holding,
    /// How the name is spelled; at most [`FORMS_MAX`].
    pub forms: Vec<(&'static Form, Salt)>,
    /// Where it is called.
    pub context: Context,
}

impl PathCall {
    /// The name as the tool is given it, or `None` where a form does not apply.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        let mut path = self.place.path();
        for (form, salt) in &self.forms {
            path = form.apply(&path, *salt)?;
        }
        (path.len() <= LETTERS_MAX).then_some(path)
    }

    /// The case, or `None` where a form does not apply.
    #[must_use]
    pub fn case_file(&self) -> Option<CaseFile> {
        let path = self.path()?;
        let script = vec![self.action.step(&path)];
        Some(CaseFile {
            world: surroundings::world(self.holding.files(self.place.files()), None),
            held: Some(self.holding.held()),
            rules: self.holding.rules(),
            deadline_ms: Some(30_000),
            ..surroundings::case_file(format!("path:{self}"), self.context, script)
        })
    }

    /// The families it is counted under.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        let forms = self.forms.iter().map(|(form, _)| form.class);
        std::iter::once(self.place.class).chain(forms).collect()
    }

    /// Calls with one form less, and the same at a terminal.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let forms = (0..self.forms.len()).map(|without| {
            let mut smaller = self.clone();
            smaller.forms.remove(without);
            smaller
        });
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        forms.chain(usual)
    }

    /// The call with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('+');
        let (action, place, holding) = (parts.next()?, parts.next()?, parts.next()?);
        let forms: Option<Vec<(&'static Form, Salt)>> = parts
            .map(|part| {
                let (form, salt) = part.split_once('~')?;
                let form = FORMS.iter().find(|known| known.name == form)?;
                Some((form, Salt(salt.parse().ok()?)))
            })
            .collect();
        Some(Self {
            action: ACTIONS.iter().find(|known| known.name == action)?,
            place: PLACES.iter().find(|known| known.name == place)?,
            holding: Holding::OF_PATHS
                .into_iter()
                .find(|known| known.word() == holding)?,
            forms: forms.filter(|forms| forms.len() <= FORMS_MAX)?,
            context,
        })
    }
}

impl fmt::Display for PathCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (action, place) = (self.action.name, self.place.name);
        write!(f, "{action}+{place}+{}", self.holding.word())?;
        for (form, salt) in &self.forms {
            write!(f, "+{}~{}", form.name, salt.0)?;
        }
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl<'a> Arbitrary<'a> for PathCall {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let action = bytes.choose(ACTIONS)?;
        let place = bytes.choose(PLACES)?;
        let holding = *bytes.choose(&Holding::OF_PATHS)?;
        let count = bytes.int_in_range(0..=FORMS_MAX)?;
        let mut forms = Vec::with_capacity(count);
        for _ in 0..count {
            forms.push((bytes.choose(FORMS)?, Salt(bytes.arbitrary()?)));
        }
        let context = *bytes.choose(&CONTEXTS)?;
        Ok(Self {
            action,
            place,
            holding,
            forms,
            context,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_withholds_every_secret_that_ruled_cases_hold_under_every_name() {
        let withheld = format!("{CWD_DEFAULT}/{}/", place::PREPARED);
        let mut secrets = 0;
        for place in PLACES {
            for file in Holding::Ruled.files(place.files()) {
                let is_withheld = file.path.starts_with(&withheld);
                match &file.kind {
                    FileKind::Text(text) if text.contains("CANARY-INSIDE") => {
                        assert!(is_withheld, "{}: {}", place.name, file.path);
                        secrets += 1;
                    }
                    FileKind::Hardlink(of) | FileKind::Mount(of) => {
                        let is_another_name = of.starts_with(&withheld) && !is_withheld;
                        assert!(!is_another_name, "{}: {}", place.name, file.path);
                    }
                    _ => {}
                }
            }
        }
        assert!(secrets >= PLACES.len());
        let plain = Holding::All.files(PLACES[0].files());
        assert_eq!(plain, PLACES[0].files());
    }
}
