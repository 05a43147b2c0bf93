//! Ordinary work with the tools, on files of a workspace that is held.
//!
//! What for: what is harmless must be served as Hermes serves it. An errand is
//! a kind of work and a number; from these come a few files and the calls, the
//! same every time. Nothing here says what the result is: both subjects are
//! asked, and the relation compares.

mod draw;
mod errands;
mod hour;
mod letters;
mod mend;
mod notes;
mod programs;
mod text;
mod trees;
mod versions;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, Drive, FileKind, FileSpec, Held, Step, UserModel};

pub use self::draw::Draw;
use self::errands::{Files, batch, read, replace, search, shell, v4a, write};
use super::paths::Holding;
use super::surroundings::{self, CONTEXTS, USUAL};
use crate::case::{CWD_DEFAULT, CaseFile};

/// A kind of work: its name, and what makes its files and steps.
pub type Kind = (&'static str, fn(&mut Draw, &mut Files) -> Vec<Step>);

/// All kinds, in a fixed order.
pub const KINDS: &[Kind] = &[
    ("replace", replace),
    ("v4a", v4a),
    ("read", read),
    ("search", search),
    ("shell", shell),
    ("write", write),
    (BATCH, batch),
    ("todo", notes::todo),
    ("notes", notes::notes),
    ("skills", notes::skills),
    ("code", programs::code),
    ("running", programs::running),
    ("hour", hour::hour),
    (WANDER, hour::wander),
    ("beside", programs::beside),
    ("versions", versions::versions),
    ("mend", mend::mend),
    ("trees", trees::trees),
    ("long", trees::long),
    ("letters", letters::letters),
    ("settings", letters::settings),
];

/// Files are named from where the shell is, which Hermes' file tools do not know in a chat
/// (`files-follow-the-shell-of-a-chat`): everything after it would be another.
const WANDER: &str = "wander";

/// Calls of one answer need a conversation.
const BATCH: &str = "batch";

/// Some ordinary work.
#[derive(Clone, Debug)]
pub struct Errand {
    /// What kind.
    pub kind: &'static Kind,
    /// Which of its kind.
    pub salt: u32,
    /// How many of its steps, from the first on; all of them if there are fewer.
    pub steps: u8,
    /// Where it is done.
    pub context: Context,
}

impl Errand {
    fn made(&self) -> (Files, Vec<Step>) {
        let mut files = Files::new();
        let (_, make) = self.kind;
        let mut steps = make(&mut Draw::from(self.salt), &mut files);
        steps.truncate(usize::from(self.steps).max(1));
        (files, steps)
    }

    /// The case.
    #[must_use]
    pub fn case_file(&self) -> CaseFile {
        let (files, script) = self.made();
        let is_batch = self.kind.0 == BATCH;
        let files = files.into_iter().map(|(name, text)| FileSpec {
            path: match name.starts_with('/') {
                true => name,
                false => format!("{CWD_DEFAULT}/{name}"),
            },
            kind: FileKind::Text(text),
            mode: None,
        });
        CaseFile {
            world: surroundings::world(files.collect(), None),
            user: Some(if is_batch {
                UserModel::GrantOnce
            } else {
                UserModel::DenyAll
            }),
            drive: is_batch.then_some(Drive::Conversation),
            held: Some(self.held()),
            ..surroundings::case_file(format!("work:{self}"), self.context, script)
        }
    }

    /// The workspace, and where that is the work what is kept beyond it.
    fn held(&self) -> Vec<Held> {
        let mut held = Holding::All.held();
        let more = match self.kind.0 {
            "notes" => Some(surroundings::MEMORIES),
            "skills" => Some(surroundings::SKILLS),
            _ => None,
        };
        if let Some(on) = more {
            let like = held.first().cloned();
            held.extend(like.map(|like| Held {
                id: self.kind.0.to_owned(),
                on: on.to_owned(),
                ..like
            }));
        }
        held
    }

    /// The families it is counted under.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        vec![self.kind.0]
    }

    /// The same without its last step, and the same at a terminal.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let (_, script) = self.made();
        let steps = u8::try_from(script.len()).ok();
        let fewer = steps.and_then(|steps| steps.checked_sub(1));
        let fewer = fewer.filter(|steps| *steps > 0).map(|steps| Self {
            steps,
            ..self.clone()
        });
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        fewer.into_iter().chain(usual)
    }

    /// The errand with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('~');
        let (kind, salt) = (parts.next()?, parts.next()?);
        let steps = parts
            .next()
            .map_or(Some(u8::MAX), |text| text.parse().ok())?;
        if parts.next().is_some() || steps == 0 {
            return None;
        }
        Some(Self {
            kind: KINDS.iter().find(|(known, _)| *known == kind)?,
            salt: salt.parse().ok()?,
            steps,
            context,
        })
    }
}

impl fmt::Display for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.kind.0, self.salt)?;
        if self.steps != u8::MAX {
            write!(f, "~{}", self.steps)?;
        }
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl<'a> Arbitrary<'a> for Errand {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let (kind, salt) = (bytes.choose(KINDS)?, bytes.arbitrary()?);
        let context = match *bytes.choose(&CONTEXTS)? {
            Context::Gateway if kind.0 == WANDER => USUAL,
            any => any,
        };
        Ok(Self {
            kind,
            salt,
            steps: u8::MAX,
            context,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_number_is_the_same_work_and_others_are_other_work() {
        for kind in KINDS {
            let texts = |salts: std::ops::Range<u32>| -> BTreeSet<String> {
                salts
                    .map(|salt| Errand {
                        kind,
                        salt,
                        steps: u8::MAX,
                        context: USUAL,
                    })
                    .map(|errand| {
                        let (files, steps) = errand.made();
                        assert!(!steps.is_empty());
                        serde_json::to_string(&(files, steps)).unwrap()
                    })
                    .collect()
            };
            let once = texts(0..200);
            assert_eq!(once, texts(0..200), "{}", kind.0);
            assert!(once.len() > 190, "{}: {}", kind.0, once.len());
        }
    }

    #[test]
    fn work_shrinks_step_by_step_and_its_names_are_read() {
        let mut errand = Errand::named("shell~3").unwrap();
        let mut lengths = vec![errand.case_file().script.len()];
        loop {
            let smaller = errand.smaller().next();
            let Some(smaller) = smaller else { break };
            errand = Errand::named(&smaller.to_string()).unwrap();
            lengths.push(errand.case_file().script.len());
        }
        assert_eq!(lengths.last(), Some(&1));
        assert!(lengths.is_sorted_by(|more, less| more == &(less + 1)));
        for wrong in ["shell", "shell~x", "shell~1~0", "shell~1~2~3", "swim~1"] {
            assert!(Errand::named(wrong).is_none(), "{wrong}");
        }
    }
}
