//! One generated command: a seed and a chain of operators, by name.
//!
//! The description is the whole truth: rendering is a pure function of it, so
//! a finding is replayed from its name alone and shrinks link by link.

use std::fmt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use bisim_world::protocol::Context;

use super::effect::{Effect, SEEDS, Seed};
use super::operator::{Class, Operator, Salt};
use super::rendered::Rendered;
use super::surroundings::{self, CONTEXTS, USUAL};
use super::targeted::TARGETED;
use super::{judge, operators};
use crate::case::{CaseFile, Expect, Must};

/// The longest chain of operators.
pub const DEPTH_MAX: usize = 3;
/// Longer commands are not kept: Hermes refuses them by length alone.
const LETTERS_MAX: usize = 4096;

static OPERATORS: LazyLock<Vec<&'static Operator>> = LazyLock::new(|| operators::all().collect());

/// An operator and the place it is applied at.
#[derive(Clone, Copy)]
pub struct Link {
    /// What is done.
    pub operator: &'static Operator,
    /// Where.
    pub salt: Salt,
}

/// A seed, what is done to it, in order, and where it is said.
#[derive(Clone)]
pub struct Variant {
    /// The plain command.
    pub seed: &'static Seed,
    /// At most [`DEPTH_MAX`].
    pub chain: Vec<Link>,
    /// The surroundings Hermes' approval gate distinguishes.
    pub context: Context,
}

impl Variant {
    /// One that a person at a terminal is asked about.
    #[must_use]
    pub const fn at_a_terminal(seed: &'static Seed, chain: Vec<Link>) -> Self {
        Self {
            seed,
            chain,
            context: USUAL,
        }
    }

    /// The text, or `None` where an operator of the chain does not apply.
    #[must_use]
    pub fn render(&self) -> Option<Rendered> {
        let shows = matches!(self.seed.effect, Effect::Shown(_));
        if shows && self.chain.iter().any(|link| link.operator.is_silent) {
            return None;
        }
        let mut script = self.seed.script();
        let mut before = Vec::new();
        for link in &self.chain {
            // No call uses the name of a file that one before it made.
            let stem = format!("zq{}", "s".repeat(before.len()));
            let calls = link.operator.apply(&script, link.salt, &stem)?;
            before.extend(calls.before);
            script = calls.last;
        }
        let rendered = Rendered {
            before,
            command: script.print(),
            effect: self.seed.effect,
            preserves_effect: self
                .chain
                .iter()
                .all(|l| l.operator.class.preserves_effect()),
        };
        let fits = |call: &str| call.len() <= LETTERS_MAX && !call.contains('\0');
        let is_short = rendered.calls().all(fits);
        is_short.then_some(rendered)
    }

    /// The case in which both subjects run it, its user denying every prompt.
    #[must_use]
    pub fn case_file(&self, rendered: &Rendered) -> CaseFile {
        let script = judge::job_of(rendered).script;
        CaseFile {
            user: None,
            held: None,
            settings: serde_json::Map::new(),
            deadline_ms: Some(30_000),
            expect: Some(Expect {
                agent: Must::MustDeny,
                ..surroundings::either("nothing outside the workspace is granted")
            }),
            ..surroundings::case_file(self.to_string(), self.context, script)
        }
    }

    /// Programs it needs, each once.
    #[must_use]
    pub fn needs(&self) -> Vec<&'static str> {
        let chain = self.chain.iter().flat_map(|link| link.operator.needs);
        let mut needs: Vec<&'static str> = self.seed.needs.iter().chain(chain).copied().collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// The classes of its operators, in order.
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        self.chain.iter().map(|link| link.operator.class).collect()
    }

    /// Variants with one link less, and the same where a person is asked: the
    /// shortest ways to shrink it.
    pub fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let usual = (self.context != USUAL).then(|| Self {
            context: USUAL,
            ..self.clone()
        });
        self.shorter().chain(usual)
    }

    /// Variants with one link less.
    pub fn shorter(&self) -> impl Iterator<Item = Self> + '_ {
        (0..self.chain.len()).map(|without| {
            let mut chain = self.chain.clone();
            chain.remove(without);
            Self {
                chain,
                ..self.clone()
            }
        })
    }

    /// The variant with this name, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, context) = surroundings::split(name)?;
        let mut parts = name.split('+');
        let seed_name = parts.next()?;
        let seed = SEEDS
            .iter()
            .chain(TARGETED)
            .find(|seed| seed.name == seed_name)?;
        let chain: Option<Vec<Link>> = parts
            .map(|part| {
                let (operator, salt) = part.split_once('~')?;
                Some(Link {
                    operator: operators::named(operator)?,
                    salt: Salt(salt.parse().ok()?),
                })
            })
            .collect();
        let chain = chain.filter(|chain| chain.len() <= DEPTH_MAX)?;
        Some(Self {
            seed,
            chain,
            context,
        })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.seed.name)?;
        for link in &self.chain {
            write!(f, "+{}~{}", link.operator.name, link.salt.0)?;
        }
        f.write_str(&surroundings::suffix(self.context))
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'a> Arbitrary<'a> for Variant {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let seed = bytes.choose(SEEDS)?;
        let all = LazyLock::force(&OPERATORS);
        let depth = bytes.int_in_range(1..=DEPTH_MAX)?;
        let mut chain = Vec::with_capacity(depth);
        for _ in 0..depth {
            chain.push(Link {
                operator: bytes.choose(all)?,
                salt: Salt(bytes.arbitrary()?),
            });
        }
        let context = *bytes.choose(&CONTEXTS)?;
        Ok(Self {
            seed,
            chain,
            context,
        })
    }
}
