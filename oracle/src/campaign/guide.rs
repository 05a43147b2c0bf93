//! What a campaign with commands deals, by what paid before.
//!
//! What pays is a cell nobody has seen: a pattern of Hermes that the plain
//! command matches, dodged with the command's effect there. Places are dealt in
//! rounds. What a round deals is fixed when it opens, from the results of all
//! rounds before it in the order of their places; so neither the order in which
//! results come back, nor the number of workers, nor a kill in the middle
//! changes what is dealt, only what was seen can.

use std::collections::{BTreeMap, BTreeSet};

use super::escape::is_guarded;
use super::examine::{Examined, Fate};
use super::patterns::Bandit;
use super::plan::{self, Numbers, SINGLES};
use crate::generate::{
    CONTEXTS, Class, DEPTH_MAX, Link, Operator, SEEDS, Salt, Variant, operators,
};

/// Places of a round.
pub(super) const ROUND: u64 = 64;
/// Of so many guided places one is dealt evenly, so that nothing is shut out.
const EVEN_OF: u64 = 4;
/// How often another choice is tried where an operator does not apply.
const TRIES: u64 = 64;

/// Whether what is dealt at this place does not depend on what paid before. What is said of all
/// commands is said of these: the others are chosen for getting past Hermes.
pub(super) fn is_even(index: u64) -> bool {
    index < *SINGLES || index.is_multiple_of(EVEN_OF)
}

/// A pattern dodged, and an effect.
pub(super) type Cell = (String, String);

/// What is known when a round opens.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    seeds: Bandit,
    classes: Bandit,
    cells: BTreeSet<Cell>,
    /// The patterns the plain command of a seed matches, by its place.
    matched: BTreeMap<usize, Vec<String>>,
}

impl Guide {
    /// Nothing is known yet.
    pub(super) fn new() -> Self {
        Self {
            seeds: Bandit::new(SEEDS.len()),
            classes: Bandit::new(Class::ALL.len()),
            cells: BTreeSet::new(),
            matched: BTreeMap::new(),
        }
    }

    /// Learns a round's results, which are given by place.
    pub(super) fn learn<'e>(&mut self, results: impl Iterator<Item = &'e Examined>) {
        for seen in results {
            let Some(variant) = Variant::named(&seen.variant) else {
                continue;
            };
            let place = SEEDS.iter().position(|seed| seed.name == variant.seed.name);
            let class = first_class(&variant);
            if let (Some(place), Some(matched)) = (place, &seen.matched) {
                self.matched.insert(place, matched.clone());
            }
            let mut paid = false;
            for cell in cells(seen) {
                paid |= self.cells.insert(cell);
            }
            if let (Some(place), Some(class)) = (place, class) {
                self.seeds.reward(place, paid);
                self.classes.reward(class, paid);
            }
        }
    }

    /// What the round from this place on deals, in order. Within a round every
    /// choice counts as one that did not pay, so that it is not one choice alone.
    pub(super) fn deal(&self, seed: u64, from: u64) -> Vec<Option<Variant>> {
        let (mut seeds, mut classes) = (self.seeds.clone(), self.classes.clone());
        let places = from..from.saturating_add(ROUND);
        places
            .map(|index| {
                if is_even(index) {
                    return plan::variant(seed, index);
                }
                let mut numbers = Numbers::new(seed, index, 0);
                let place = seeds.choose_among(&mut numbers, |place| self.is_open(place));
                let class = classes.choose(&mut numbers, 0);
                seeds.reward(place, false);
                classes.reward(class, false);
                (0..TRIES)
                    .filter_map(|again| chain(place, class, &mut Numbers::new(seed, index, again)))
                    .find(|variant| variant.render().is_some())
                    .or_else(|| plan::variant(seed, index))
            })
            .collect()
    }

    /// Whether a seed can still pay: nothing is known of it, or a cell is open.
    fn is_open(&self, place: usize) -> bool {
        let (Some(seed), Some(matched)) = (SEEDS.get(place), self.matched.get(&place)) else {
            return true;
        };
        let effect = format!("{:?}", seed.effect);
        matched
            .iter()
            .any(|pattern| !self.cells.contains(&(pattern.clone(), effect.clone())))
    }
}

/// The cells a result shows.
pub(super) fn cells(seen: &Examined) -> Vec<Cell> {
    let (Fate::HermesSilent, Some(matched)) = (seen.fate, &seen.matched) else {
        return Vec::new();
    };
    // Where nobody looks nothing is dodged.
    let variant = Variant::named(&seen.variant).filter(|v| is_guarded(v.context));
    let effect = variant.map(|variant| format!("{:?}", variant.seed.effect));
    let effect = effect.into_iter();
    effect
        .flat_map(|effect| {
            matched
                .iter()
                .map(move |name| (name.clone(), effect.clone()))
        })
        .collect()
}

fn first_class(variant: &Variant) -> Option<usize> {
    let first = variant.chain.first()?.operator.class;
    Class::ALL.iter().position(|class| *class == first)
}

/// Up to [`DEPTH_MAX`] operators on a seed, the first of this class.
fn chain(place: usize, class: usize, numbers: &mut Numbers) -> Option<Variant> {
    let class = Class::ALL.get(class)?;
    let every: Vec<&'static Operator> = operators::all().collect();
    let first: Vec<&'static Operator> = operators::all().filter(|o| o.class == *class).collect();
    let depth = 1 + numbers.below(DEPTH_MAX);
    let chain = (0..depth).map(|link| {
        let from = if link == 0 { &first } else { &every };
        Some(Link {
            operator: from.get(numbers.below(from.len()))?,
            salt: Salt(u16::try_from(numbers.below(usize::from(u16::MAX))).ok()?),
        })
    });
    Some(Variant {
        seed: SEEDS.get(place)?,
        chain: chain.collect::<Option<_>>()?,
        context: *CONTEXTS.get(numbers.below(CONTEXTS.len()))?,
    })
}
