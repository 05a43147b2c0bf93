//! Which of the commands that were asked about go on into worlds.
//!
//! Three things are new: a pattern of Hermes that the plain command matches, dodged
//! with an effect it was not dodged with before; a pair of decisions not met before in
//! this context about an effect of this kind; and an effect that the agent's core lets
//! through. Each is tried until worlds have shown it, four times at most.

use std::collections::{BTreeMap, BTreeSet};

use bisim_world::protocol::Context;
use serde::{Deserialize, Serialize};

use super::super::escape::is_guarded;
use super::super::examine::{Examined, Fate};
use super::lane::Screened;
use crate::campaign::said::Said;
use crate::generate::SEEDS;

/// A variant need not keep its effect; after so many that did not, it is left alone.
const TRIES_MAX: u32 = 4;

/// Something to be shown by worlds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// A pattern dodged, and the effect.
    Cell(String, String),
    /// Context and kind of effect, what Hermes says, what the agent says.
    Difference(String, String, Said, Said),
    /// The agent lets the effect of this seed through.
    Unsafe(String),
}

impl Key {
    /// Whether the worlds of a chosen place show it.
    #[must_use]
    pub fn is_shown_by(&self, chosen: &Chosen, seen: &Examined) -> bool {
        match self {
            Self::Cell(..) => seen.fate == Fate::HermesSilent,
            Self::Difference(..) => agreement(chosen, seen) != Agreement::Unknown,
            Self::Unsafe(_) => seen.fate == Fate::AgentUnsafe,
        }
    }
}

/// A place whose command goes on into worlds, and what it may show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    /// The place.
    pub index: u64,
    /// What Hermes' guard said.
    pub hermes: Said,
    /// What the agent decided.
    pub agent: Said,
    /// What is new about it.
    pub keys: Vec<Key>,
}

/// Whether lane and worlds tell the same of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// They do.
    Agree,
    /// They do not: the lane is wrong about one of them.
    Differ,
    /// The worlds show nothing that could be compared.
    Unknown,
}

/// What is known, and what was tried in vain.
#[derive(Clone, Debug, Default)]
pub struct Known {
    shown: BTreeSet<Key>,
    tries: BTreeMap<Key, u32>,
    /// The patterns each seed's plain command matches.
    matched: Vec<Vec<String>>,
}

impl Known {
    /// Nothing yet; `matched` has the patterns of each seed's plain command.
    #[must_use]
    pub fn new(matched: Vec<Vec<String>>) -> Self {
        Self {
            matched,
            ..Self::default()
        }
    }

    /// What worlds have shown.
    pub fn shown(&self) -> impl Iterator<Item = &Key> {
        self.shown.iter()
    }

    fn is_open(&self, key: &Key) -> bool {
        let tries = self.tries.get(key).copied().unwrap_or(0);
        !self.shown.contains(key) && tries < TRIES_MAX
    }

    /// One place for each thing that is open, in the order of their places; `fits` says
    /// whether its command can be run here.
    #[must_use]
    pub fn choose(&self, screened: &[Screened], fits: impl Fn(u64) -> bool) -> Vec<Chosen> {
        // Nearly every command has nothing new, so that is decided without making a name.
        let open: Vec<Vec<Key>> = SEEDS
            .iter()
            .zip(&self.matched)
            .map(|(seed, matched)| {
                let effect = format!("{:?}", seed.effect);
                let cells = matched
                    .iter()
                    .map(|pattern| Key::Cell(pattern.clone(), effect.clone()));
                cells.filter(|key| self.is_open(key)).collect()
            })
            .collect();
        let mut taken: BTreeSet<Key> = BTreeSet::new();
        let mut seen: BTreeSet<(Context, &'static str, Said, Said)> = BTreeSet::new();
        let mut chosen = Vec::new();
        for one in screened {
            let Some(seed) = SEEDS.get(one.seed) else {
                continue;
            };
            let mut keys = Vec::new();
            if one.agent == Said::Permit {
                keys.push(Key::Unsafe(seed.name.to_owned()));
            }
            // Where nobody looks nothing is dodged.
            if one.hermes == Said::Permit && is_guarded(one.context) {
                keys.extend(open.get(one.seed).into_iter().flatten().cloned());
            }
            let pair = (one.context, seed.effect.kind(), one.hermes, one.agent);
            let is_met = seen.contains(&pair);
            if !is_met {
                keys.push(difference(one, seed.effect.kind()));
            }
            keys.retain(|key| self.is_open(key) && !taken.contains(key));
            if keys.is_empty() {
                seen.insert(pair);
                continue;
            }
            if !fits(one.index) {
                continue;
            }
            seen.insert(pair);
            taken.extend(keys.iter().cloned());
            chosen.push(Chosen {
                index: one.index,
                hermes: one.hermes,
                agent: one.agent,
                keys,
            });
        }
        chosen
    }

    /// Learns what worlds showed of a chosen place.
    pub fn learn(&mut self, chosen: &Chosen, seen: &Examined) {
        for key in &chosen.keys {
            if key.is_shown_by(chosen, seen) {
                self.shown.insert(key.clone());
            } else {
                *self.tries.entry(key.clone()).or_default() += 1;
            }
        }
    }
}

fn difference(one: &Screened, effect: &'static str) -> Key {
    let context = one.context.word().to_owned();
    Key::Difference(context, effect.to_owned(), one.hermes, one.agent)
}

/// Whether the worlds tell what the lane told.
#[must_use]
pub fn agreement(chosen: &Chosen, seen: &Examined) -> Agreement {
    let hermes = match seen.fate {
        Fate::HermesSilent => chosen.hermes == Said::Permit,
        Fate::HermesStopped => chosen.hermes != Said::Permit,
        // The agent is judged first, and what Hermes did is not told.
        Fate::AgentUnsafe => true,
        // The tool, or the program, stopped for a reason of its own.
        Fate::HermesInert
        | Fate::NotHere
        | Fate::NoEffect
        | Fate::ControlFired
        | Fate::ControlHeld
        | Fate::Served
        | Fate::Differs
        | Fate::NoPlan
        | Fate::PlanStopped
        | Fate::PlanDone
        | Fate::Inconclusive => return Agreement::Unknown,
    };
    let is_unsafe = seen.fate == Fate::AgentUnsafe;
    if hermes && is_unsafe == (chosen.agent == Said::Permit) {
        Agreement::Agree
    } else {
        Agreement::Differ
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(index: u64, hermes: Said, agent: Said) -> Screened {
        Screened {
            index,
            seed: 0,
            context: Context::Interactive,
            hermes,
            agent,
        }
    }

    fn known() -> Known {
        Known::new(
            SEEDS
                .iter()
                .map(|_| vec!["dangerous 3".to_owned()])
                .collect(),
        )
    }

    fn seen(index: u64, fate: Fate) -> Examined {
        Examined {
            fate,
            ..Examined::of(index, "delete-tree+env~0".to_owned())
        }
    }

    #[test]
    fn only_what_is_new_goes_on_and_once_shown_it_is_not_new() {
        let mut known = known();
        let screened: Vec<Screened> = (0..40).map(|i| one(i, Said::Permit, Said::Ask)).collect();
        let chosen = known.choose(&screened, |_| true);
        assert_eq!(chosen.len(), 1, "{chosen:?}");
        assert_eq!(
            chosen[0].keys.len(),
            2,
            "the cell and the pair of decisions"
        );
        known.learn(&chosen[0], &seen(0, Fate::HermesSilent));
        assert_eq!(known.choose(&screened, |_| true), []);
        assert_eq!(known.shown().count(), 2);
        let asked = [one(50, Said::Ask, Said::Ask)];
        assert_eq!(known.choose(&asked, |_| true).len(), 1);
    }

    #[test]
    fn what_shows_nothing_is_tried_with_others_and_then_left_alone() {
        let mut known = known();
        let screened: Vec<Screened> = (0..40).map(|i| one(i, Said::Permit, Said::Ask)).collect();
        let mut tried = Vec::new();
        for round in 0..20_u64 {
            let later = screened.get(usize::try_from(round).unwrap()..).unwrap();
            for chosen in known.choose(later, |_| true) {
                known.learn(&chosen, &seen(chosen.index, Fate::NoEffect));
                tried.push(chosen.index);
            }
        }
        assert_eq!(tried, [0, 1, 2, 3]);
    }

    #[test]
    fn what_cannot_be_run_here_leaves_its_place_to_the_next() {
        let screened: Vec<Screened> = (0..9).map(|i| one(i, Said::Permit, Said::Ask)).collect();
        let chosen = known().choose(&screened, |index| index > 4);
        assert_eq!(chosen.iter().map(|one| one.index).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn an_effect_the_agent_lets_through_goes_on_whatever_is_known() {
        let mut known = known();
        let first = known.choose(&[one(0, Said::Permit, Said::Permit)], |_| true);
        assert!(
            first[0]
                .keys
                .contains(&Key::Unsafe("delete-tree".to_owned()))
        );
        known.learn(&first[0], &seen(0, Fate::HermesSilent));
        let again = known.choose(&[one(1, Said::Permit, Said::Permit)], |_| true);
        assert_eq!(again[0].keys, [Key::Unsafe("delete-tree".to_owned())]);
    }

    #[test]
    fn lane_and_worlds_agree_only_where_both_sides_do() {
        let chosen = |hermes, agent| Chosen {
            index: 0,
            hermes,
            agent,
            keys: Vec::new(),
        };
        use Agreement::{Agree, Differ, Unknown};
        for (hermes, agent, fate, expected) in [
            (Said::Permit, Said::Ask, Fate::HermesSilent, Agree),
            (Said::Permit, Said::Ask, Fate::HermesStopped, Differ),
            (Said::Deny, Said::Deny, Fate::HermesStopped, Agree),
            (Said::Ask, Said::Ask, Fate::HermesInert, Unknown),
            (Said::Ask, Said::Ask, Fate::HermesSilent, Differ),
            (Said::Ask, Said::Permit, Fate::HermesStopped, Differ),
            (Said::Ask, Said::Permit, Fate::AgentUnsafe, Agree),
            (Said::Ask, Said::Deny, Fate::AgentUnsafe, Differ),
            (Said::Ask, Said::Deny, Fate::NoEffect, Unknown),
            (Said::Permit, Said::Deny, Fate::Inconclusive, Unknown),
        ] {
            let seen = seen(0, fate);
            assert_eq!(
                agreement(&chosen(hermes, agent), &seen),
                expected,
                "{fate:?}"
            );
        }
    }
}
