//! `bisim patterns`: each pattern of Hermes' detector, from both sides.
//!
//! What for: a pattern is a promise about a spelling. For every one of them the
//! table has a command that it flags and that has its effect in a bare shell,
//! and one that has the same effect and that no guard of Hermes flags. A pattern
//! that lacks either is named. Hermes is only asked here; what has an effect is
//! found out in a world without any guard.

mod bandit;
mod bench;
mod cell;
mod made_of;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use bisim_world::WorldError;

pub(super) use self::bandit::Bandit;
use self::bench::Bench;
pub use self::bench::flagged;
pub(super) use self::bench::matched;
use self::made_of::MadeOf;
pub use self::made_of::outdated;
use super::plan::Numbers;
use crate::ambient::Ambient;
use crate::cli::PatternArgs;
use crate::figures::grouped;
use crate::generate::{Class, DEPTH_MAX, Link, Operator, Rendered, Salt, Seed, Variant, operators};
use crate::interrupt::Interrupt;
use crate::pulse::{Done, Pulse};
use crate::subject::Processes;
use crate::{environment, exit};

/// How many variants Hermes is asked about at once.
const BATCH: usize = 24;
/// How often that is done for one seed.
const BATCHES_MAX: usize = 10;
/// How many of a batch are tried in a shell.
const TRIED_MAX: usize = 3;

/// A pattern, as Hermes lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// `dangerous` (a person is asked) or `hardline` (nobody is).
    pub guard: String,
    /// Its place in the list.
    pub number: u64,
    /// What Hermes calls it.
    pub description: String,
}

/// Both sides of a pattern.
#[derive(Clone, Debug, Default)]
struct Sides {
    flagged: Option<String>,
    unflagged: Option<Variant>,
}

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &PatternArgs) -> u8 {
    if let Err(unwritten) = environment::writable(args.write.as_deref(), "--write") {
        return unwritten.exit();
    }
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch_a_whole(processes.clone());
    let logs = ambient.reports.join("target/bisim/patterns");
    let starts = match environment::prepare(ambient, &args.hermes, &logs, &processes) {
        Ok(starts) => starts,
        Err(lack) => return lack.exit(&interrupt),
    };
    let starting = Pulse::start("starting a bare shell and Hermes, which takes some seconds");
    let done = Bench::open(&starts, &processes).and_then(|mut bench| {
        let all = bench.patterns(None)?;
        drop(starting);
        match args.compare {
            None => both_sides(&mut bench, all, args),
            Some(cases) => compare(&mut bench, args.seed, cases),
        }
    });
    match done {
        Ok(code) => code,
        Err(_) if interrupt.is_set() => exit::INCONCLUSIVE,
        Err(error) => {
            eprintln!("error: {error}");
            exit::INTERNAL
        }
    }
}

/// Every seed, with the patterns its plain command matches.
fn seeds(bench: &mut Bench) -> Result<Vec<(&'static Seed, Vec<Pattern>)>, WorldError> {
    let mut all = Vec::new();
    let (done, total) = (Done::default(), made_of::seeds().count() as u64);
    let _pulse = Pulse::counting(&done, move |done| {
        format!("Hermes was asked about {done} of {total} plain commands")
    });
    for seed in made_of::seeds() {
        done.add(1);
        if bench.can_run(seed.needs) {
            let matched = bench.patterns(Some(&seed.script().print()))?;
            all.push((seed, matched));
        }
    }
    Ok(all)
}

fn both_sides(bench: &mut Bench, all: Vec<Pattern>, args: &PatternArgs) -> Result<u8, WorldError> {
    let mut sides: BTreeMap<Pattern, Sides> = all
        .into_iter()
        .map(|pattern| (pattern, Sides::default()))
        .collect();
    let mut bandit = Bandit::new(Class::ALL.len());
    let seeds = seeds(bench)?;
    let (done, total) = (Done::default(), seeds.len() as u64);
    let pulse = Pulse::counting(&done, move |done| {
        format!("{done} of {total} plain commands tried, with variants of each that nothing flags")
    });
    for (place, (seed, matched)) in seeds.into_iter().enumerate() {
        done.add(1);
        let open = |sides: &BTreeMap<Pattern, Sides>| {
            let of = |pattern| sides.get(pattern);
            matched
                .iter()
                .filter_map(of)
                .any(|sides| sides.flagged.is_none() || sides.unflagged.is_none())
        };
        let plain = Variant::at_a_terminal(seed, Vec::new());
        if !open(&sides) || !bench.has_effect(&plain)? {
            continue;
        }
        for pattern in &matched {
            if let Some(sides) = sides.get_mut(pattern) {
                sides.flagged.get_or_insert_with(|| seed.script().print());
            }
        }
        if !open(&sides) {
            continue;
        }
        let mut numbers = Numbers::new(args.seed, place as u64, 0);
        if let Some(variant) = past_every_guard(bench, &mut bandit, &mut numbers, seed)? {
            for pattern in &matched {
                if let Some(sides) = sides.get_mut(pattern) {
                    sides.unflagged.get_or_insert_with(|| variant.clone());
                }
            }
        }
    }
    drop(pulse);
    let made_of = MadeOf {
        seed: args.seed,
        lacking: bench.lacking(),
    };
    let text = table::render(&sides, bench.version(), &made_of);
    print!("{text}");
    if let Some(file) = &args.write {
        std::fs::write(file, &text)
            .map_err(|error| WorldError::new(format!("write `{}`", file.display()), error))?;
    }
    let whole = |sides: &Sides| sides.flagged.is_some() && sides.unflagged.is_some();
    Ok(if sides.values().all(whole) {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    })
}

/// Whether all of it stands in one text, as a row of the page does.
fn is_one_call(rendered: &Rendered) -> bool {
    rendered.preserves_effect && rendered.before.is_empty()
}

/// A variant with the effect of its seed that nothing flags, if one is found.
fn past_every_guard(
    bench: &mut Bench,
    bandit: &mut Bandit,
    numbers: &mut Numbers,
    seed: &'static Seed,
) -> Result<Option<Variant>, WorldError> {
    for _ in 0..BATCHES_MAX {
        let mut batch: Vec<(usize, Variant, String)> = Vec::new();
        for turn in 0..BATCH * 4 {
            let class = bandit.choose(numbers, turn);
            let Some(variant) = chain(seed, class, 1, numbers) else {
                continue;
            };
            if let Some(rendered) = variant.render().filter(is_one_call)
                && bench.can_run(&variant.needs())
            {
                batch.push((class, variant, rendered.command));
            }
            if batch.len() == BATCH {
                break;
            }
        }
        let commands: Vec<&str> = batch.iter().map(|(.., command)| command.as_str()).collect();
        let flagged = bench.flagged(&commands)?;
        let mut tried = 0;
        for ((class, variant, _), flagged) in batch.into_iter().zip(flagged) {
            if flagged || tried == TRIED_MAX {
                bandit.reward(class, false);
                continue;
            }
            tried += 1;
            let kept = bench.has_effect(&variant)?;
            bandit.reward(class, kept);
            if kept {
                return Ok(Some(variant));
            }
        }
    }
    Ok(None)
}

/// `depth` operators on a seed, the first of this class.
fn chain(
    seed: &'static Seed,
    class: usize,
    depth: usize,
    numbers: &mut Numbers,
) -> Option<Variant> {
    let first: Vec<&'static Operator> = operators::all()
        .filter(|operator| Some(&operator.class) == Class::ALL.get(class))
        .collect();
    let every: Vec<&'static Operator> = operators::all().collect();
    let mut links = Vec::new();
    for place in 0..depth {
        let from = if place == 0 { &first } else { &every };
        links.push(Link {
            operator: from.get(numbers.below(from.len()))?,
            salt: Salt(u16::try_from(numbers.below(usize::from(u16::MAX))).ok()?),
        });
    }
    Some(Variant::at_a_terminal(seed, links))
}

/// Cells (pattern dodged, effect) found by choosing by what paid, and evenly.
fn compare(bench: &mut Bench, seed: u64, cases: u64) -> Result<u8, WorldError> {
    let seeds = seeds(bench)?;
    let mut found = Vec::new();
    let done = Done::default();
    let pulse = Pulse::counting(&done, move |done| {
        format!(
            "{} of {} cases tried",
            grouped(done),
            grouped(cases.saturating_mul(2))
        )
    });
    for guided in [true, false] {
        found.push(cells(bench, &seeds, (seed, cases), guided, &done)?.len());
    }
    drop(pulse);
    if let [guided, even] = found.as_slice() {
        println!(
            "{cases} cases each, seed {seed}: {guided} cells (pattern dodged, effect) by what paid before, {even} by even choice"
        );
    }
    Ok(exit::CONFORM)
}

fn cells(
    bench: &mut Bench,
    seeds: &[(&'static Seed, Vec<Pattern>)],
    (seed, cases): (u64, u64),
    guided: bool,
    done: &Done,
) -> Result<BTreeSet<(Pattern, String)>, WorldError> {
    let mut cells = BTreeSet::new();
    let (mut by_seed, mut by_class) = (Bandit::new(seeds.len()), Bandit::new(Class::ALL.len()));
    for case in 0..cases {
        done.add(1);
        let mut numbers = Numbers::new(seed, case, u64::from(guided));
        let of = |place: usize| -> Vec<(Pattern, String)> {
            seeds
                .get(place)
                .map(|(seed, matched)| {
                    let effect = format!("{:?}", seed.effect);
                    let cell = |pattern: &Pattern| (pattern.clone(), effect.clone());
                    matched.iter().map(cell).collect()
                })
                .unwrap_or_default()
        };
        let (place, class) = if guided {
            let is_open = |place: usize| of(place).iter().any(|cell| !cells.contains(cell));
            (
                by_seed.choose_among(&mut numbers, is_open),
                by_class.choose(&mut numbers, 0),
            )
        } else {
            (numbers.below(seeds.len()), numbers.below(Class::ALL.len()))
        };
        let depth = 1 + numbers.below(DEPTH_MAX);
        let Some((seed, _)) = seeds.get(place) else {
            continue;
        };
        let variant = chain(seed, class, depth, &mut numbers);
        let text = variant.as_ref().and_then(Variant::render);
        let mut new = 0;
        if let (Some(variant), Some(text)) = (variant, text)
            && text.preserves_effect
            && bench.can_run(&variant.needs())
            && !bench.flagged(&[&text.command])?.contains(&true)
            && bench.has_effect(&variant)?
        {
            for cell in of(place) {
                new += usize::from(cells.insert(cell));
            }
        }
        by_seed.reward(place, new > 0);
        by_class.reward(class, new > 0);
    }
    Ok(cells)
}
