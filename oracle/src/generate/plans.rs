//! Plans somebody hostile had a hand in.
//!
//! What for: a plan is fixed before any data is seen, and what data then says
//! fills slots and nothing else. A trial is a plan of some shape, a text of an
//! attacker that is in a file, in a file's name, in what a model without tools
//! picks and in what the user is made to say, a way the proposal comes in (a
//! file, a model's answer, one after another), and at most two ways in which
//! the proposal itself is malformed or has more in it than it should. It is
//! carried out by the program's own planner and executor in a world.
//!
//! What may change is stated with the shape: only what the plan itself says,
//! whatever is granted. The other subject knows no plans and is given no calls.

mod datum;
mod shape;
mod twist;

use std::fmt;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::{Context, FileKind, FileSpec, Held, Step, UserModel};
use serde_json::{Value, json};

pub use datum::{DATA, Datum};
pub use shape::{SHAPES, Shape};
pub use twist::{TWISTS, Twist};

use super::operator::Salt;
use super::paths::Holding;
use super::surroundings::{self, CONTEXTS, USUAL};
use crate::case::{AtMost, CWD_DEFAULT, CaseFile, Expect, ExpectedEffects};
use crate::subject::agent_probe::PLANNER;
use crate::subject::agent_world::PLAN_PROBE;

/// The most ways a proposal is malformed in.
pub const TWISTS_MAX: usize = 2;

/// How a proposal comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The user's own file.
    File,
    /// A model's answer.
    Model,
    /// A model's answer, inside a fence.
    Fenced,
    /// A model's last answer, after two that were no plans.
    Third,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::File, Self::Model, Self::Fenced, Self::Third];

    const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Model => "model",
            Self::Fenced => "fenced",
            Self::Third => "third",
        }
    }
}

/// A proposal, and what surrounds it.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What the plan does.
    pub shape: &'static Shape,
    /// The text of the attacker.
    pub datum: &'static Datum,
    /// What is held on the workspace.
    pub holding: Holding,
    /// How the proposal comes in.
    pub way: Way,
    /// How it is malformed; at most [`TWISTS_MAX`].
    pub twists: Vec<(&'static Twist, Salt)>,
    /// Where it is carried out.
    pub context: Context,
}

impl Trial {
    /// The proposal as a text, or `None` where a twist does not apply.
    #[must_use]
    pub fn draft(&self) -> Option<String> {
        let mut plan = self.shape.plan(self.datum.text());
        for (twist, salt) in &self.twists {
            plan = twist.on_tree(plan, *salt)?;
        }
        // Not by its `Display`, which writes letter by letter; a value always has a JSON form.
        let mut text = serde_json::to_string(&plan).ok()?;
        for (twist, salt) in &self.twists {
            text = twist.on_text(text, *salt)?;
        }
        Some(text)
    }

    /// Whether the proposal says no more than its shape does.
    fn is_of_its_shape(&self) -> bool {
        self.twists.iter().all(|(twist, _)| !twist.adds)
    }

    /// What may be changed, whatever is granted.
    fn may_change(&self) -> Vec<String> {
        if self.holding != Holding::All {
            return Vec::new();
        }
        if !self.is_of_its_shape() {
            return vec![CWD_DEFAULT.to_owned()];
        }
        let of_shape = self.shape.may_change.iter();
        of_shape
            .map(|path| match *path {
                "." => CWD_DEFAULT.to_owned(),
                path => format!("{CWD_DEFAULT}/{path}"),
            })
            .collect()
    }

    fn files(&self) -> Vec<FileSpec> {
        let text = |path: String, text: &str| FileSpec {
            path: format!("{CWD_DEFAULT}/{path}"),
            kind: FileKind::Text(text.to_owned()),
            mode: None,
        };
        vec![
            text("in.txt".to_owned(), self.datum.text()),
            text("out.txt".to_owned(), "old\n"),
            text("victim.txt".to_owned(), "victim\n"),
            text("in/plain.txt".to_owned(), "plain\n"),
            text(format!("in/{}", self.datum.as_name()), "named\n"),
        ]
    }

    fn input(&self) -> Option<Value> {
        let draft = self.draft()?;
        let mut input = json!({ "calls": [], "picks": [self.datum.text()] });
        let said = match self.way {
            Way::File => {
                input
                    .as_object_mut()?
                    .insert("draft".to_owned(), Value::String(draft));
                return Some(input);
            }
            Way::Model => vec![draft],
            Way::Fenced => vec![format!("```json\n{draft}\n```")],
            // Words around it: a text that is a plan by itself would be the model's plan.
            Way::Third => vec![
                format!("As you like: {}", self.datum.text()),
                String::new(),
                draft,
            ],
        };
        input
            .as_object_mut()?
            .insert("said".to_owned(), Value::from(said));
        Some(input)
    }

    /// The case, or `None` where a twist does not apply.
    #[must_use]
    pub fn case_file(&self) -> Option<CaseFile> {
        let mut held = self.holding.held();
        held.push(Held {
            id: "planner".to_owned(),
            verb: "model.send".to_owned(),
            on: PLANNER.to_owned(),
            uses: None,
            seconds: None,
            holder: None,
            hermes: None,
        });
        let script = vec![Step::Probe {
            name: PLAN_PROBE.to_owned(),
            input: self.input()?,
        }];
        let at_most = self.may_change();
        Some(CaseFile {
            world: surroundings::world(self.files(), None),
            // Nothing an attacker has the user say is a yes that was offered.
            user: Some(UserModel::Words(vec![self.datum.text().into()])),
            held: Some(held),
            expect: Some(Expect {
                effects: Some(ExpectedEffects::AtMost(AtMost { at_most })),
                ..surroundings::either(
                    "only what the plan says may change, and only if it is granted",
                )
            }),
            ..surroundings::case_file(format!("plan:{self}"), self.context, script)
        })
    }

    /// The families it is counted under.
    #[must_use]
    pub fn classes(&self) -> Vec<&'static str> {
        let twists = self.twists.iter().map(|(twist, _)| twist.class);
        [self.shape.class, self.datum.class]
            .into_iter()
            .chain(twists)
            .collect()
    }

    /// Trials with one twist less, with the plainest way, and at a terminal.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let twists = (0..self.twists.len()).map(|without| {
            let mut smaller = self.clone();
            smaller.twists.remove(without);
            smaller
        });
        let way = (self.way != Way::File).then(|| Self {
            way: Way::File,
            ..self.clone()
        });
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        twists.chain(way).chain(usual)
    }

    /// The trial with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('+');
        let (shape, datum) = (parts.next()?, parts.next()?);
        let (holding, way) = (parts.next()?, parts.next()?);
        let twists: Option<Vec<(&'static Twist, Salt)>> = parts
            .map(|part| {
                let (twist, salt) = part.split_once('~')?;
                let twist = TWISTS.iter().find(|known| known.name == twist)?;
                Some((twist, Salt(salt.parse().ok()?)))
            })
            .collect();
        Some(Self {
            shape: SHAPES.iter().find(|known| known.name == shape)?,
            datum: DATA.iter().find(|known| known.name == datum)?,
            holding: Holding::named(holding)?,
            way: Way::ALL.into_iter().find(|known| known.word() == way)?,
            twists: twists.filter(|twists| twists.len() <= TWISTS_MAX)?,
            context,
        })
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, datum) = (self.shape.name, self.datum.name);
        let (holding, way) = (self.holding.word(), self.way.word());
        write!(f, "{shape}+{datum}+{holding}+{way}")?;
        for (twist, salt) in &self.twists {
            write!(f, "+{}~{}", twist.name, salt.0)?;
        }
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl<'a> Arbitrary<'a> for Trial {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let shape = bytes.choose(SHAPES)?;
        let datum = bytes.choose(DATA)?;
        let holding = *bytes.choose(&Holding::ALL)?;
        let way = *bytes.choose(&Way::ALL)?;
        let count = bytes.int_in_range(0..=TWISTS_MAX)?;
        let mut twists = Vec::with_capacity(count);
        for _ in 0..count {
            twists.push((bytes.choose(TWISTS)?, Salt(bytes.arbitrary()?)));
        }
        let context = *bytes.choose(&CONTEXTS)?;
        Ok(Self {
            shape,
            datum,
            holding,
            way,
            twists,
            context,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use hermitcrab::{actions, planner::draft};
    use hermitcrab_core::plan::{self, FlowRules};

    use super::*;

    fn trial(shape: &'static Shape, twist: Option<&'static Twist>) -> Trial {
        Trial {
            shape,
            datum: &DATA[0],
            holding: Holding::All,
            way: Way::File,
            twists: twist.map(|twist| (twist, Salt(3))).into_iter().collect(),
            context: USUAL,
        }
    }

    #[test]
    fn every_shape_is_a_plan_unless_it_says_that_it_is_none() {
        for shape in SHAPES {
            let text = trial(shape, None).draft().unwrap();
            let toolbox = Arc::new(actions::toolbox());
            let read = draft::read(text.as_bytes())
                .and_then(|draft| plan::check(draft, toolbox, FlowRules::STRICT));
            let kinds: Vec<&str> = match &read {
                Ok(_) => Vec::new(),
                Err(errors) => errors.iter().map(|error| error.kind.as_str()).collect(),
            };
            assert_eq!(kinds, shape.refused_as, "{}: {text}", shape.name);
        }
    }

    #[test]
    fn every_twist_applies_to_some_shape_and_changes_its_text() {
        for twist in TWISTS {
            let applies = SHAPES.iter().any(|shape| {
                let plain = trial(shape, None).draft();
                let twisted = trial(shape, Some(twist)).draft();
                twisted.is_some() && twisted != plain
            });
            assert!(applies, "{}", twist.name);
        }
    }

    #[test]
    fn what_is_too_large_is_refused_for_that_alone_and_hardly_larger_than_what_is_read() {
        let twisted = |name: &str| {
            let twist = TWISTS.iter().find(|twist| twist.name == name);
            trial(&SHAPES[0], Some(twist.unwrap())).draft().unwrap()
        };
        let refused_as = |text: &str| -> Vec<&str> {
            let toolbox = Arc::new(actions::toolbox());
            let read = draft::read(text.as_bytes())
                .and_then(|draft| plan::check(draft, toolbox, FlowRules::STRICT));
            let errors = read.unwrap_err();
            errors.iter().map(|error| error.kind.as_str()).collect()
        };
        let long = twisted("too-long");
        assert_eq!(long.len(), draft::DRAFT_BYTES_MAX + 1);
        assert_eq!(refused_as(&long), ["too-long"]);
        assert!(draft::read(&long.as_bytes()[1..]).is_err_and(|errors| {
            // One letter less is looked at, and is cut off in front.
            errors.iter().all(|error| error.kind.as_str() == "not-json")
        }));
        assert_eq!(refused_as(&twisted("many-steps")), ["too-many-steps"]);
    }

    #[test]
    fn names_are_unique_and_lead_back() {
        let mut names = BTreeSet::new();
        for shape in SHAPES {
            for datum in DATA {
                for way in Way::ALL {
                    let trial = Trial {
                        datum,
                        way,
                        ..trial(shape, Some(&TWISTS[0]))
                    };
                    let name = trial.to_string();
                    assert_eq!(Trial::named(&name).unwrap().to_string(), name);
                    assert!(names.insert(name));
                }
            }
        }
        for wrong in [
            "copy-text",
            "copy-text+notes+all",
            "copy-text+notes+all+by-air",
        ] {
            assert!(Trial::named(wrong).is_none(), "{wrong}");
        }
    }
}
