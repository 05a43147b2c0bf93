//! How well the buckets of a campaign tell causes apart.
//!
//! A labelled set: every fault in turn is planted, generated cases are run as a
//! campaign runs them and laws are asked; each finding that is none without the
//! fault is made small as a campaign makes it small, and its label is the fault.
//! Hermes' escapes have a label as well: one operator that gets past a pattern by
//! itself, among others that do not.

mod escapes;
mod kept;
mod measure;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hermitcrab_core::fault::Fault;

use self::kept::Kept;
use self::measure::{Labelled, report};
use super::Hunt;
#[cfg(feature = "planted-faults")]
use super::inputs;
use crate::campaign::{self, Symptom};
use crate::case::{Case, Defaults};
use crate::cli::SelftestArgs;
use crate::exit;
use crate::figures::grouped;
use crate::generate::{Specimen, Target};
use crate::pulse::{Done, Pulse};
use crate::subject::{Restarting, Subjects};

/// What a campaign finds faults with; a race is judged by luck.
const TARGETS: [Target; 5] = [
    Target::Commands,
    Target::Paths,
    Target::Sequences,
    Target::Plans,
    Target::BenignTools,
];

/// How many inputs that break a law are kept of each fault and law.
#[cfg(feature = "planted-faults")]
const BROKEN_MAX: usize = 5;

/// Of so many inputs of a hunt for a fault one is asked here.
#[cfg(feature = "planted-faults")]
const INPUTS_OF: u32 = 10;

/// How often the smallest case of a finding is run again without the fault.
const SOUND_AGAIN: usize = 3;

/// From one place to the next, so that every kind of place is met.
const STRIDE: u64 = 97;

/// Runs it; returns the exit code.
pub(super) fn command(
    hunt: &Hunt<'_>,
    faults: &[Fault],
    first: Subjects,
    args: &SelftestArgs,
) -> u8 {
    let specimens = specimens(args.seed, args.count);
    let mut pairs = hunt.pairs(first, faults.len());
    let sound = each(
        &mut pairs,
        (&specimens, "generated cases looked at"),
        |pair, specimen| is_sound(hunt, pair, specimen).then(|| specimen.clone()),
    );
    let sound: Vec<Specimen> = sound.into_iter().flatten().collect();
    eprintln!(
        "{} of {} generated cases are no findings without a fault",
        sound.len(),
        specimens.len()
    );
    let kept = Kept::new(args.write.as_deref());
    let written = each(&mut pairs, (faults, "faults met"), |pair, fault| {
        if hunt.interrupt.is_set() {
            return Ok(false);
        }
        let all = of_fault(hunt, pair, *fault, (args.seed, &sound));
        eprintln!("{:28} {} findings", fault.name(), all.len());
        let written = kept.add(all);
        if written.is_err() {
            hunt.interrupt.set();
        }
        written.map(|()| !hunt.interrupt.is_set())
    });
    let met = match written.into_iter().collect::<Result<Vec<bool>, String>>() {
        Ok(met) => met.into_iter().filter(|whole| *whole).count(),
        Err(message) => {
            eprintln!("error: {message}");
            return exit::ENVIRONMENT;
        }
    };
    if let Some(pair) = pairs.first_mut()
        && !hunt.interrupt.is_set()
    {
        let escapes = escapes::labelled(&mut pair.hermes, args.seed, args.count)
            .map_err(|error| error.to_string());
        if let Err(message) = escapes.and_then(|escapes| kept.add(escapes))
            && !hunt.interrupt.is_set()
        {
            eprintln!("error: {message}");
            return exit::INTERNAL;
        }
    }
    if hunt.interrupt.is_set() {
        let (found, part) = kept.stop();
        report(&found);
        eprintln!("stopped after {met} of {} faults", faults.len());
        if let Some(part) = part {
            eprintln!("what was found until then: {}", part.display());
        }
        return exit::INCONCLUSIVE;
    }
    match kept.finish() {
        Ok(found) => report(&found),
        Err(message) => {
            eprintln!("error: {message}");
            exit::ENVIRONMENT
        }
    }
}

/// Does something with each of them, on all pairs of workers.
fn each<T: Sync, R: Send>(
    pairs: &mut [Subjects],
    (all, what): (&[T], &'static str),
    work: impl Fn(&mut Subjects, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, R>> = Mutex::default();
    let (tried, total) = (Done::default(), all.len() as u64);
    let told = tried.clone();
    let _pulse = Pulse::lines(move || {
        let (tried, total) = (grouped(told.so_far()), grouped(total));
        format!("{tried} of {total} {what}")
    });
    std::thread::scope(|scope| {
        for pair in pairs {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(place) else { return };
                    let result = work(pair, one);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.insert(place, result);
                    tried.add(1);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

/// As many of each kind, each once.
fn specimens(seed: u64, count: u64) -> Vec<Specimen> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for target in TARGETS {
        let dealt = (0..count).filter_map(|place| campaign::specimen(target, seed, place * STRIDE));
        all.extend(dealt.filter(|specimen| names.insert(specimen.to_string())));
    }
    all
}

fn case(specimen: &Specimen) -> Option<Case> {
    let file = specimen.case_file()?;
    Some(Case::resolve("generated", &Defaults::default(), file))
}

/// Whether it is no finding without a fault.
fn is_sound(hunt: &Hunt<'_>, pair: &mut Subjects, specimen: &Specimen) -> bool {
    if hunt.interrupt.is_set() {
        return false;
    }
    let Some(case) = case(specimen) else {
        return false;
    };
    let result = crate::check::run_case(&case, &hunt.judge, pair);
    result.verdict.kind != crate::verdict::Kind::Inconclusive
        && campaign::found(specimen, &case, &result).is_none()
}

fn of_fault(
    hunt: &Hunt<'_>,
    pair: &mut Subjects,
    fault: Fault,
    (seed, specimens): (u64, &[Specimen]),
) -> Vec<Labelled> {
    let mut all = of_laws(hunt, fault, seed);
    let Some(mut faulty) = hunt.faulty(fault) else {
        return all;
    };
    for specimen in specimens {
        if hunt.interrupt.is_set() {
            break;
        }
        if let Some(symptom) = finding(hunt, pair, &mut faulty, specimen) {
            all.push(Labelled::finding(fault, specimen, symptom));
        }
    }
    all
}

/// What is seen of a finding once it is small; `None` where it is none, or where what is
/// left of it is one now and then without the fault as well.
fn finding(
    hunt: &Hunt<'_>,
    pair: &mut Subjects,
    faulty: &mut Restarting,
    specimen: &Specimen,
) -> Option<Symptom> {
    let run = &mut |case: &Case| hunt.result(case, pair, faulty);
    let whole = case(specimen)?;
    let result = run(&whole)?;
    let kind = campaign::found(specimen, &whole, &result)?;
    if kind == crate::verdict::Kind::Inconclusive {
        return None;
    }
    let (smallest, symptom) = campaign::smallest(specimen, kind, run)?;
    let sound = (0..SOUND_AGAIN).all(|_| is_sound(hunt, pair, &smallest));
    sound.then_some(symptom)
}

/// Inputs of laws that hold without the fault and not with it.
#[cfg(feature = "planted-faults")]
fn of_laws(hunt: &Hunt<'_>, fault: Fault, seed: u64) -> Vec<Labelled> {
    use hermitcrab_core::fault::plant;
    // A planted fault is one for the whole process.
    let _alone = hunt.planting.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = Vec::new();
    // Another seed begins somewhere else.
    let first = campaign::Numbers::new(seed, 0, 0).below(u32::MAX as usize);
    let first = u32::try_from(first).unwrap_or(0);
    for law in super::LAWS_FOR_FAULTS
        .iter()
        .filter_map(|law| crate::law::named(law))
    {
        // The law that works on a disk is slow, and about commits alone.
        if law.name == "journal" && !all.is_empty() {
            break;
        }
        let count = inputs::count(law.name) / INPUTS_OF;
        let inputs = (0..count)
            .take_while(|_| !hunt.interrupt.is_set())
            .map(|place| inputs::noise(first.wrapping_add(place)));
        let broken = inputs.filter_map(|bytes| {
            let sound = (law.check)(&bytes).is_ok();
            plant(Some(fault));
            let broken = (law.check)(&bytes).err();
            plant(None);
            broken.filter(|_| sound)
        });
        all.extend(
            broken
                .take(BROKEN_MAX)
                .map(|why| Labelled::law(fault, law.name, &why)),
        );
    }
    all
}

#[cfg(not(feature = "planted-faults"))]
fn of_laws(_hunt: &Hunt<'_>, _fault: Fault, _seed: u64) -> Vec<Labelled> {
    Vec::new()
}
