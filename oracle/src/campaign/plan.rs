//! What comes at which place: first every operator alone (every place a name can
//! lead to, with every action), then whatever the numbers say.

use std::sync::LazyLock;

use crate::generate::crashes::CHANGES_MAX;
use crate::generate::paths::{ACTIONS, Holding, PLACES};
use crate::generate::plans::{DATA, SHAPES, TWISTS, Way};
use crate::generate::{
    CONTEXTS, CRASHES, Crash, Link, Operator, PathCall, Rendered, SEEDS, Salt, Specimen, Target,
    Trial, USUAL, Variant, operators,
};
use arbitrary::{Arbitrary as _, Unstructured};

/// Variants with a single operator at the front of every campaign: each operator on
/// three seeds, each where the numbers say, so that a short campaign meets all contexts.
pub static SINGLES: LazyLock<u64> = LazyLock::new(|| 3 * OPERATORS.len() as u64);

static OPERATORS: LazyLock<Vec<&'static Operator>> = LazyLock::new(|| operators::all().collect());

/// How often another choice is tried where an operator does not apply.
const TRIES: u64 = 64;

/// What this kind of campaign has at this place, or `None` where nothing was found.
#[must_use]
pub fn specimen(target: Target, seed: u64, index: u64) -> Option<Specimen> {
    if target == Target::Commands {
        return variant(seed, index).map(Specimen::Command);
    }
    (0..TRIES)
        .filter_map(|again| {
            let mut numbers = Numbers::new(seed, index, again);
            if target == Target::Crashes && index < CRASH_SINGLES {
                return plain_crash(seed, index).map(Specimen::Crash);
            }
            if target == Target::Plans && index < PLAN_SINGLES {
                return plain_plan(seed, index).map(Specimen::Plan);
            }
            if target == Target::Paths && index < PATH_SINGLES {
                return plain_path(index, &mut numbers).map(Specimen::Path);
            }
            let bytes: Vec<u8> = (0..16).flat_map(|_| numbers.next().to_le_bytes()).collect();
            Specimen::of(target, &mut Unstructured::new(&bytes)).ok()
        })
        .find(|specimen| specimen.case_file().is_some())
}

/// Bytes that are this campaign's at this place.
pub fn bytes_at(seed: u64, index: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed, index, 0);
    (0..BYTES_OF_WORK / 8)
        .flat_map(|_| numbers.next().to_le_bytes())
        .collect()
}

/// Enough for a line of four parts.
const BYTES_OF_WORK: usize = 320;

/// Every action on every place, its name spelled plainly.
const PATH_SINGLES: u64 = (ACTIONS.len() * PLACES.len()) as u64;

/// Every shape of plan with every text, and then with every twist.
const PLAN_SINGLES: u64 = (SHAPES.len() * (DATA.len() + TWISTS.len())) as u64;

/// From one place to the next, so that the first of them are of every kind; it
/// shares no divisor with the number of places.
const PLAN_STRIDE: u64 = 1009;

/// Proposed under all of the workspace; the seed says where they begin, and
/// which text and way go with a twist.
fn plain_plan(seed: u64, index: u64) -> Option<Trial> {
    let mut numbers = Numbers::new(seed, index, 0);
    let begin = Numbers::new(seed, 0, 0).next().checked_rem(PLAN_SINGLES)?;
    let place = index.checked_mul(PLAN_STRIDE)?.checked_add(begin)?;
    let place = usize::try_from(place.checked_rem(PLAN_SINGLES)?).ok()?;
    let (shape, other) = (
        place.checked_rem(SHAPES.len())?,
        place.checked_div(SHAPES.len())?,
    );
    let twist = other.checked_sub(DATA.len());
    let salt = Salt(u16::try_from(numbers.next() & 0xFFFF).ok()?);
    Some(Trial {
        shape: SHAPES.get(shape)?,
        datum: DATA
            .get(other)
            .or_else(|| DATA.get(numbers.below(DATA.len())))?,
        holding: Holding::All,
        way: *Way::ALL.get(numbers.below(Way::ALL.len()))?,
        twists: match twist {
            None => Vec::new(),
            Some(twist) => vec![(TWISTS.get(twist)?, salt)],
        },
        context: USUAL,
    })
}

/// Every operation, killed right before every change.
const CRASH_SINGLES: u64 = CRASHES.len() as u64 * CHANGES_MAX as u64;

/// All operations at one change, before the next change; the seed says with which they
/// begin.
fn plain_crash(seed: u64, index: u64) -> Option<Crash> {
    let all = CRASHES.len() as u64;
    let begin = Numbers::new(seed, 0, 0).next().checked_rem(CRASH_SINGLES)?;
    let index = index.checked_add(begin)?.checked_rem(CRASH_SINGLES)?;
    let operation = usize::try_from(index.checked_rem(all)?).ok()?;
    let before = u32::try_from(index.checked_div(all)?).ok()?;
    Some(Crash {
        operation: CRASHES.get(operation)?,
        before: before.checked_add(1)?,
        context: USUAL,
    })
}

fn plain_path(index: u64, numbers: &mut Numbers) -> Option<PathCall> {
    let place = usize::try_from(index).ok()?;
    let holding =
        usize::try_from(numbers.next().checked_rem(Holding::OF_PATHS.len() as u64)?).ok()?;
    Some(PathCall {
        action: ACTIONS.get(place.checked_rem(ACTIONS.len())?)?,
        place: PLACES.get(place.checked_div(ACTIONS.len())?)?,
        holding: *Holding::OF_PATHS.get(holding)?,
        forms: Vec::new(),
        context: USUAL,
    })
}

/// The variant at this place, or `None` where none was found.
#[must_use]
pub fn variant(seed: u64, index: u64) -> Option<Variant> {
    rendered(seed, index).map(|(variant, _)| variant)
}

/// The variant at this place with its text, or `None` where none was found.
#[must_use]
pub fn rendered(seed: u64, index: u64) -> Option<(Variant, Rendered)> {
    (0..TRIES).find_map(|again| {
        let mut numbers = Numbers::new(seed, index, again);
        let variant = if index < *SINGLES {
            single(index, &mut numbers)
        } else {
            let bytes: Vec<u8> = (0..8).flat_map(|_| numbers.next().to_le_bytes()).collect();
            Variant::arbitrary(&mut Unstructured::new(&bytes)).ok()
        }?;
        let rendered = variant.render()?;
        Some((variant, rendered))
    })
}

fn single(index: u64, numbers: &mut Numbers) -> Option<Variant> {
    let place = usize::try_from(index.checked_rem(OPERATORS.len() as u64)?).ok()?;
    let operator = OPERATORS.get(place)?;
    let seed = usize::try_from(numbers.next().checked_rem(SEEDS.len() as u64)?).ok()?;
    let salt = Salt(u16::try_from(numbers.next() & 0xFFFF).ok()?);
    Some(Variant {
        seed: SEEDS.get(seed)?,
        chain: vec![Link { operator, salt }],
        context: *CONTEXTS.get(numbers.below(CONTEXTS.len()))?,
    })
}

/// Numbers from a seed: splitmix64 (Steele, Lea and Flood, 2014), which needs
/// no state between two places of a campaign.
pub struct Numbers(u64);

impl Numbers {
    /// Those of one place of a campaign.
    #[must_use]
    pub fn new(seed: u64, index: u64, again: u64) -> Self {
        let mut start = Self(seed);
        let mixed = start.next() ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(mixed.wrapping_add(again << 48))
    }

    /// One below `count`; 0 where that is none.
    pub fn below(&mut self, count: usize) -> usize {
        let rest = self.next().checked_rem(count as u64).unwrap_or(0);
        usize::try_from(rest).unwrap_or(0)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bisim_world::protocol::Context;

    use super::*;
    use crate::generate::{Class, conversations};

    #[test]
    fn a_place_has_one_variant_and_a_seed_gives_another_campaign() {
        let names = |seed| -> Vec<String> {
            (0..3000)
                .filter_map(|index| variant(seed, index))
                .map(|v| v.to_string())
                .collect()
        };
        let (a, b) = (names(1), names(2));
        assert_eq!(a, names(1));
        assert_ne!(a, b);
        assert!(a.len() > 2900, "{}", a.len());
        let different: BTreeSet<&String> = a.iter().collect();
        assert!(different.len() > 2800, "{}", different.len());
    }

    #[test]
    fn campaigns_of_every_kind_deal_the_same_again_and_enough_that_differs() {
        for target in Target::ALL {
            let names = |seed| -> Vec<String> {
                (0..600)
                    .map(|place| place + 2000)
                    .filter_map(|index| specimen(target, seed, index))
                    .map(|specimen| specimen.to_string())
                    .collect()
            };
            let (a, b) = (names(1), names(2));
            assert_eq!(a, names(1));
            assert_ne!(a, b);
            let different: BTreeSet<&String> = a.iter().collect();
            assert!(different.len() > 500, "{target:?}: {}", different.len());
        }
    }

    #[test]
    fn every_action_meets_every_place_at_the_front_of_a_campaign_with_paths() {
        let seen: BTreeSet<(&str, &str)> = (0..PATH_SINGLES)
            .filter_map(|index| match specimen(Target::Paths, 7, index)? {
                Specimen::Path(call) => Some((call.action.name, call.place.name)),
                Specimen::Command(_)
                | Specimen::Sequence(_)
                | Specimen::Race(_)
                | Specimen::Crash(_)
                | Specimen::Plan(_)
                | Specimen::Work(_)
                | Specimen::Talk(_) => None,
            })
            .collect();
        assert_eq!(seen.len(), ACTIONS.len() * PLACES.len());
    }

    #[test]
    fn every_operation_is_killed_before_every_change_of_a_campaign_with_crashes() {
        let seen: BTreeSet<String> = (0..CRASH_SINGLES)
            .filter_map(|index| specimen(Target::Crashes, 7, index))
            .map(|specimen| specimen.to_string())
            .collect();
        assert_eq!(seen.len() as u64, CRASH_SINGLES);
    }

    #[test]
    fn every_move_and_every_call_beyond_comes_in_conversations_and_half_of_them_are_ordinary() {
        let mut seen = BTreeSet::new();
        let mut ordinary = 0;
        for index in 0..2_000 {
            let Some(Specimen::Talk(talk)) = specimen(Target::Conversations, 5, index) else {
                panic!("no conversation at {index}");
            };
            ordinary += u32::from(talk.is_ordinary());
            seen.extend(talk.classes());
        }
        assert_eq!(seen, conversations::families().collect());
        assert!((800..1_200).contains(&ordinary), "{ordinary}");
    }

    #[test]
    fn every_shape_of_plan_meets_every_text_and_every_twist_at_the_front() {
        let (mut texts, mut twists) = (BTreeSet::new(), BTreeSet::new());
        for index in 0..PLAN_SINGLES {
            // A twist need not apply to every shape.
            let Some(Specimen::Plan(trial)) = specimen(Target::Plans, 7, index) else {
                continue;
            };
            match trial.twists.as_slice() {
                [] => drop(texts.insert((trial.shape.name, trial.datum.name))),
                [(twist, _), ..] => drop(twists.insert(twist.name)),
            }
        }
        assert_eq!(texts.len(), SHAPES.len() * DATA.len());
        assert_eq!(twists.len(), TWISTS.len());
    }

    #[test]
    fn every_class_of_operators_meets_every_context_in_every_campaign() {
        let seen: BTreeSet<(Class, Context)> = (0..*SINGLES + 3000)
            .filter_map(|index| variant(7, index))
            .flat_map(|variant| {
                let context = variant.context;
                variant
                    .classes()
                    .into_iter()
                    .map(move |class| (class, context))
            })
            .collect();
        assert_eq!(seen.len(), Class::ALL.len() * Context::ALL.len());
    }

    #[test]
    fn the_first_hundred_places_and_every_share_of_them_meet_all_contexts() {
        for seed in [7, 11, 229] {
            for part in 0..4 {
                let mine = (0..400).filter(|index| index % 4 == part);
                let contexts: Vec<Context> = mine
                    .filter_map(|index| variant(seed, index))
                    .map(|variant| variant.context)
                    .collect();
                let usual = contexts.iter().filter(|one| **one == USUAL).count();
                assert!((30..70).contains(&usual), "{seed} {part}: {usual}");
                let different: BTreeSet<Context> = contexts.into_iter().collect();
                assert_eq!(different.len(), Context::ALL.len(), "{seed} {part}");
            }
        }
    }

    #[test]
    fn every_operator_comes_first_in_every_campaign() {
        let seen: BTreeSet<&str> = (0..*SINGLES)
            .filter_map(|index| variant(7, index))
            .flat_map(|variant| variant.chain)
            .map(|link| link.operator.name)
            .collect();
        assert_eq!(seen.len(), OPERATORS.len());
    }
}
