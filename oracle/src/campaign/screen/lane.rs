//! From places of a campaign to what both sides say of the commands there.

use std::collections::BTreeMap;
use std::ops::Range;

use bisim_world::WorldError;
use bisim_world::protocol::Context;

use super::super::plan;
use super::desk::Desk;
use super::guard::Guard;
use crate::campaign::said::Said;
use crate::cli::Shard;
use crate::generate::{Effect, SEEDS};

/// A session of a person is shorter; one that is longer remembers more than it needs.
const DECISIONS_PER_SESSION: usize = 1000;

/// Commands the guard is asked about at once: some seconds of its time, so that whoever has no
/// more of it stops in good time, and many enough that the world around them is little.
const COMMANDS_PER_ANSWER: usize = 256;

/// What was said of the command at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screened {
    /// The place in the campaign.
    pub index: u64,
    /// The place of its seed among all.
    pub seed: usize,
    /// Where it was said.
    pub context: Context,
    /// What Hermes' guard says.
    pub hermes: Said,
    /// What the agent decides about it and its effect.
    pub agent: Said,
}

/// What a piece of a campaign gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// By place.
    pub screened: Vec<Screened>,
    /// Look-alikes, which have no effect to decide about.
    pub controls: u64,
    /// Places at which nothing applies.
    pub empty: u64,
}

/// The commands of one context, with their places and what they do.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    places: Vec<(u64, usize, Effect)>,
    /// In the order of their places.
    pub commands: Vec<String>,
}

/// What is at these places, by context; counts what is not asked about.
#[must_use]
pub fn deal(
    seed: u64,
    places: Range<u64>,
    shard: Option<Shard>,
    piece: &mut Piece,
) -> BTreeMap<Context, Batch> {
    let mut batches: BTreeMap<Context, Batch> = BTreeMap::new();
    for index in places.filter(|index| {
        shard.is_none_or(|shard| shard.takes(usize::try_from(*index).unwrap_or(usize::MAX)))
    }) {
        let Some((variant, rendered)) = plan::rendered(seed, index) else {
            piece.empty += 1;
            continue;
        };
        if !rendered.preserves_effect {
            piece.controls += 1;
            continue;
        }
        let name = variant.seed.name;
        let Some(place) = SEEDS.iter().position(|seed| seed.name == name) else {
            piece.empty += 1;
            continue;
        };
        let batch = batches.entry(variant.context).or_default();
        batch.places.push((index, place, rendered.effect));
        batch.commands.push(rendered.command);
    }
    batches
}

/// Has both sides say what they think of everything at these places.
///
/// # Errors
/// A side gives no answer.
pub fn screen(
    seed: u64,
    places: Range<u64>,
    shard: Option<Shard>,
    guard: &mut dyn Guard,
) -> Result<Piece, WorldError> {
    let whole = screen_while(seed, places, shard, guard, &|_| true)?;
    whole.ok_or_else(|| WorldError::new("ask the guard", "nobody waited for the answers"))
}

/// The same as long as somebody waits for it, who is told after each answer about how many
/// commands it was; `None` once nobody does.
///
/// # Errors
/// A side gives no answer.
pub fn screen_while(
    seed: u64,
    places: Range<u64>,
    shard: Option<Shard>,
    guard: &mut dyn Guard,
    is_awaited: &dyn Fn(u64) -> bool,
) -> Result<Option<Piece>, WorldError> {
    let mut piece = Piece::default();
    for (context, batch) in deal(seed, places, shard, &mut piece) {
        let agent = decide(context, &batch)?;
        let mut hermes = Vec::with_capacity(batch.commands.len());
        for commands in batch.commands.chunks(COMMANDS_PER_ANSWER) {
            hermes.extend(guard.say(context, commands.to_vec())?);
            if !is_awaited(commands.len() as u64) {
                return Ok(None);
            }
        }
        let both = batch.places.into_iter().zip(hermes.into_iter().zip(agent));
        piece
            .screened
            .extend(both.map(|((index, seed, _), (hermes, agent))| Screened {
                index,
                seed,
                context,
                hermes,
                agent,
            }));
    }
    piece.screened.sort_unstable_by_key(|one| one.index);
    Ok(Some(piece))
}

fn decide(context: Context, batch: &Batch) -> Result<Vec<Said>, WorldError> {
    let broken = |why: String| WorldError::new("ask the agent's core", why);
    let mut decided = Vec::with_capacity(batch.commands.len());
    let all: Vec<_> = batch.commands.iter().zip(&batch.places).collect();
    for session in all.chunks(DECISIONS_PER_SESSION) {
        let mut desk = Desk::open(context).map_err(broken)?;
        for (command, (_, _, effect)) in session {
            decided.push(desk.decide(command, *effect).map_err(broken)?);
        }
    }
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use super::super::guard::NoGuard;
    use super::*;

    fn shard(text: &str) -> Option<Shard> {
        Some(crate::cli::parse_shard(text).unwrap())
    }

    #[test]
    fn shards_screen_every_place_once_and_nothing_is_lost() {
        let places = 1000..2200;
        let whole = screen(5, places.clone(), None, &mut NoGuard).unwrap();
        let count = whole.screened.len() as u64 + whole.controls + whole.empty;
        assert_eq!(count, 1200);
        assert!(whole.screened.len() > 1000, "{}", whole.screened.len());
        let mut parts = Vec::new();
        for part in ["1/3", "2/3", "3/3"] {
            let part = screen(5, places.clone(), shard(part), &mut NoGuard).unwrap();
            parts.extend(part.screened);
        }
        parts.sort_by_key(|one| one.index);
        assert_eq!(parts, whole.screened);
    }

    /// Counts how often it is asked, and about how many at most.
    #[derive(Default)]
    struct Counting(Vec<usize>);

    impl Guard for Counting {
        fn say(&mut self, _: Context, commands: Vec<String>) -> Result<Vec<Said>, WorldError> {
            self.0.push(commands.len());
            Ok(vec![Said::Deny; commands.len()])
        }
    }

    #[test]
    fn whoever_waits_no_longer_is_answered_no_more_and_else_all_is_as_it_was() {
        let places = 0..4096;
        let whole = screen(5, places.clone(), None, &mut NoGuard).unwrap();
        let all: u64 = whole.screened.len() as u64;
        let told = std::cell::Cell::new(0);
        let waits = |until: u64| {
            let told = &told;
            move |commands: u64| {
                told.set(told.get() + commands);
                told.get() < until
            }
        };
        let mut guard = Counting::default();
        let piece = screen_while(5, places.clone(), None, &mut guard, &waits(u64::MAX)).unwrap();
        let piece = piece.unwrap();
        assert_eq!(told.replace(0), all, "each command is told of once");
        assert!(guard.0.iter().all(|asked| *asked <= 256), "{:?}", guard.0);
        let agent = |piece: &Piece| -> Vec<_> {
            let said = piece.screened.iter();
            said.map(|one| (one.index, one.agent)).collect()
        };
        assert_eq!(agent(&piece), agent(&whole));

        let mut guard = Counting::default();
        let cut = screen_while(5, places, None, &mut guard, &waits(600)).unwrap();
        assert_eq!(cut, None);
        assert!(guard.0.len() < 5, "{:?}", guard.0);
    }

    #[test]
    fn the_agent_lets_no_effect_through_that_nobody_granted() {
        let piece = screen(9, 0..1500, None, &mut NoGuard).unwrap();
        assert!(piece.screened.iter().all(|one| one.agent != Said::Permit));
        let contexts: std::collections::BTreeSet<_> =
            piece.screened.iter().map(|one| one.context).collect();
        assert_eq!(contexts.len(), Context::ALL.len());
    }
}
