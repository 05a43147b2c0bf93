//! What the user of a sequence answers, and what happens before that.

use std::fmt;

use arbitrary::Unstructured;
use bisim_world::protocol::{Answer, Meanwhile, Mode, Step, Word};

use super::ANSWERS;
use super::moves::ADVANCES;

/// One answer: a place in [`ANSWERS`], and what happens while the question waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The word.
    pub word: usize,
    /// What happens first.
    pub first: Option<Doing>,
}

/// What the person does elsewhere; the numbers are those of the moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The grant with this number, modulo those of the whole script, is revoked.
    Revoke(usize),
    /// The clock moves on.
    Advance(usize),
    /// The session ends.
    End,
    /// The mode refuses from here on.
    Refuse,
    /// What outlives a session is taken back.
    Withdraw,
    /// The child with this number, modulo those of the whole script, is ended.
    EndChild(usize),
}

/// What there is that something can happen to while a question waits.
#[derive(Clone, Debug, Default)]
pub struct Around<'c> {
    /// Grants, by the case's names.
    pub grants: Vec<&'c str>,
    /// Children, by the case's names.
    pub children: Vec<&'c str>,
    /// Something outlives the session.
    pub keeps: bool,
    /// The session may end.
    pub may_end: bool,
}

impl<'c> Around<'c> {
    /// In a script of moves. No session ends that has children: where only one of the two
    /// subjects asks, the other's would go on working, and the two would be compared for that.
    pub(super) fn script(script: &'c [Step]) -> Self {
        let has = |wanted: fn(&Step) -> bool| script.iter().any(wanted);
        Self {
            grants: script
                .iter()
                .filter_map(|step| Some(step.granted()?.id.as_str()))
                .collect(),
            children: script.iter().filter_map(Step::started).collect(),
            keeps: has(|step| matches!(step, Step::Restart(_))),
            may_end: !has(|step| matches!(step, Step::Spawn { .. })),
        }
    }
}

impl Reply {
    /// The word alone.
    pub fn arbitrary(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let word = bytes.choose_index(ANSWERS.len())?;
        Ok(Self { word, first: None })
    }

    /// The same answer, with something before it or nothing.
    pub fn after(self, bytes: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let first = match bytes.int_in_range(0..=9_u8)? {
            0..=4 => None,
            5..=6 => Some(Doing::Revoke(bytes.choose_index(4)?)),
            7 => Some(Doing::Advance(bytes.choose_index(ADVANCES.len())?)),
            8 if bytes.arbitrary()? => Some(Doing::EndChild(bytes.choose_index(3)?)),
            8 => Some(Doing::Refuse),
            _ if bytes.arbitrary()? => Some(Doing::End),
            _ => Some(Doing::Withdraw),
        };
        Ok(Self { first, ..self })
    }

    /// As a case writes it. A doing that refers to nothing is left out.
    pub fn word(&self, around: &Around<'_>) -> Option<Word> {
        let word = *ANSWERS.get(self.word)?;
        let first = match self.first {
            None => None,
            Some(Doing::Revoke(number)) => {
                named(number, &around.grants).map(|grant| Meanwhile::Revoke { grant })
            }
            Some(Doing::EndChild(number)) => {
                named(number, &around.children).map(|child| Meanwhile::EndAgent { child })
            }
            Some(Doing::Advance(number)) => ADVANCES
                .get(number)
                .map(|seconds| Meanwhile::Advance { seconds: *seconds }),
            Some(Doing::End) => around.may_end.then_some(Meanwhile::EndSession {}),
            Some(Doing::Refuse) => Some(Meanwhile::Mode {
                to: Mode::RejectAll,
            }),
            Some(Doing::Withdraw) => around.keeps.then_some(Meanwhile::Withdraw {}),
        };
        Some(match first {
            None => word.into(),
            Some(first) => Word::After(Answer {
                answer: word.to_owned(),
                first: vec![first],
            }),
        })
    }

    /// The answer with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (word, first) = match name.split_once('!') {
            None => (name, None),
            Some((word, first)) => (word, Some(Doing::named(first)?)),
        };
        let word = word.parse().ok().filter(|n| *n < ANSWERS.len())?;
        Some(Self { word, first })
    }
}

impl Doing {
    /// Its kind.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Revoke(_) => "revocation-while-asked",
            Self::Advance(_) => "clock-while-asked",
            Self::End => "session-end-while-asked",
            Self::Refuse => "refusing-while-asked",
            Self::Withdraw => "withdrawal-while-asked",
            Self::EndChild(_) => "child-end-while-asked",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_at_checked(1)?;
        let number = || rest.parse::<usize>().ok();
        Some(match kind {
            "r" => Self::Revoke(number()?),
            "a" => Self::Advance(number().filter(|n| *n < ADVANCES.len())?),
            "e" if rest.is_empty() => Self::End,
            "m" if rest.is_empty() => Self::Refuse,
            "w" if rest.is_empty() => Self::Withdraw,
            "k" => Self::EndChild(number()?),
            _ => return None,
        })
    }
}

/// The thing with this number, modulo those that there are.
fn named(number: usize, all: &[&str]) -> Option<String> {
    let place = number.checked_rem(all.len())?;
    all.get(place).map(|name| (*name).to_owned())
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.word)?;
        match self.first {
            None => Ok(()),
            Some(Doing::Revoke(number)) => write!(f, "!r{number}"),
            Some(Doing::Advance(number)) => write!(f, "!a{number}"),
            Some(Doing::End) => f.write_str("!e"),
            Some(Doing::Refuse) => f.write_str("!m"),
            Some(Doing::Withdraw) => f.write_str("!w"),
            Some(Doing::EndChild(number)) => write!(f, "!k{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Sequence;

    #[test]
    fn what_happens_before_an_answer_refers_to_something() {
        for (name, first) in [
            ("1!r0+h0+c2.0", r#"[{"revoke":{"grant":"g0"}}]"#),
            ("1!r1+h0+c2.0", r#"[{"revoke":{"grant":"g0"}}]"#),
            ("1!r1+h0+c2.0+h2+c2.0", r#"[{"revoke":{"grant":"g2"}}]"#),
            ("1!r0+c2.0", ""),
            ("1!a2+c2.0", r#"[{"advance":{"seconds":61}}]"#),
            ("1!e+c2.0", r#"[{"end_session":{}}]"#),
            ("1!e+h0+s1+c2.1", ""),
            ("1!m+c2.0", r#"[{"mode":{"to":"reject_all"}}]"#),
            ("1!w+c2.0", ""),
            ("1!w+x0+c2.0", r#"[{"withdraw":{}}]"#),
            ("1!k1+h0+s1+c2.1", r#"[{"end_agent":{"child":"k1"}}]"#),
            ("1!k0+h0+c2.0", ""),
            ("1+c2.0", ""),
        ] {
            let sequence = Sequence::named(name).unwrap();
            assert_eq!(sequence.to_string(), name);
            let user = sequence.case_file().user.unwrap();
            let doings: Vec<&Meanwhile> = user.doings().collect();
            let told = serde_json::to_string(&doings).unwrap();
            let expected = if first.is_empty() { "[]" } else { first };
            assert_eq!(told, expected, "{name}");
        }
        for name in ["1!+c2.0", "1!z+c2.0", "1!a9+c2.0", "1!e1+c2.0", "9!e+c2.0"] {
            assert_eq!(Sequence::named(name), None, "{name}");
        }
    }
}
