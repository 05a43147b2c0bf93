//! Generated commands in front of a real shell, in worlds without a guard.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::{Arbitrary as _, Unstructured};
use bisim::campaign::benign::{job_at, observed, otherwise, recorded};
use bisim::generate::Specimen;
use bisim::generate::benign::catalogue::entries;
use bisim::generate::{Class, Effect, Link, SEEDS, Salt, TARGETED, Variant, judge, operators};
use bisim::subject::{Processes, Restarting, Start, Subject as _};
use bisim_world::flip::Seen;
use bisim_world::protocol::Job;

fn shell(processes: &Processes) -> Option<Restarting> {
    let start = Start::Shell {
        program: env!("CARGO_BIN_EXE_bisim").into(),
    };
    let mut shell = Restarting::new(start, processes.clone(), None);
    match shell.ready() {
        Ok(_) => Some(shell),
        Err(error) => {
            println!("SKIPPED: worlds cannot be built here: {error}");
            None
        }
    }
}

fn has_effect(shell: &mut Restarting, variant: &Variant) -> bool {
    let rendered = variant.render().unwrap();
    let trace = shell.run(judge::job_of(&rendered)).unwrap();
    judge::happened(rendered.effect, &trace)
}

fn programs(shell: &mut Restarting) -> BTreeSet<&'static str> {
    let mut all: Vec<&'static str> = operators::all()
        .flat_map(|operator| operator.needs)
        .chain(SEEDS.iter().flat_map(|seed| seed.needs))
        .copied()
        .collect();
    all.sort_unstable();
    all.dedup();
    judge::present(shell, &all).unwrap()
}

fn can_run(variant: &Variant, present: &BTreeSet<&str>) -> bool {
    variant
        .needs()
        .iter()
        .all(|program| present.contains(program))
}

#[test]
fn every_seed_has_its_effect_and_a_harmless_command_has_none() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    let present = programs(&mut shell);
    let names: BTreeSet<&str> = SEEDS.iter().chain(TARGETED).map(|seed| seed.name).collect();
    assert_eq!(names.len(), SEEDS.len() + TARGETED.len());
    for seed in SEEDS {
        let variant = Variant::at_a_terminal(seed, Vec::new());
        if can_run(&variant, &present) {
            assert!(has_effect(&mut shell, &variant), "{}", seed.name);
        }
    }
    let trace = shell
        .run(judge::job("ls -l; echo hello; git status"))
        .unwrap();
    for seed in SEEDS {
        let wrongly = judge::happened(seed.effect, &trace);
        assert!(!wrongly, "{} is seen where nothing happened", seed.name);
    }
}

/// Each operator once, on the first seed it applies to, and the letters that
/// only look alike as the negative control.
#[test]
fn nineteen_of_twenty_variants_keep_their_effect_and_look_alikes_never_do() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    let present = programs(&mut shell);
    let (mut tried, mut kept, mut lost) = (0_usize, 0_usize, Vec::new());
    let mut by_class: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (place, operator) in operators::all().enumerate() {
        let seeds = SEEDS
            .iter()
            .cycle()
            .skip(place % SEEDS.len())
            .take(SEEDS.len());
        let variant = seeds
            .flat_map(|seed| (0..8).map(move |salt| (seed, Salt(salt * 8111))))
            .map(|(seed, salt)| Variant::at_a_terminal(seed, vec![Link { operator, salt }]))
            .find(|variant| variant.render().is_some());
        let Some(variant) = variant.filter(|variant| can_run(variant, &present)) else {
            continue;
        };
        let kept_here = has_effect(&mut shell, &variant);
        if operator.class == Class::Confusable {
            assert!(!kept_here, "{variant} is executable as it stands");
            continue;
        }
        let counts = by_class.entry(operator.class.as_str()).or_default();
        counts.1 += 1;
        tried += 1;
        if kept_here {
            counts.0 += 1;
            kept += 1;
        } else {
            lost.push(format!(
                "{variant}: {:?}",
                variant.render().unwrap().command
            ));
        }
    }
    println!("{kept} of {tried} keep their effect; by class {by_class:?}");
    for line in &lost {
        println!("lost {line}");
    }
    assert!(tried >= 250, "{tried}");
    assert!(kept * 20 >= tried * 19, "{kept} of {tried}");
}

#[test]
fn chains_of_operators_keep_their_effect_too() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    let present = programs(&mut shell);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut tried, mut kept, mut lost) = (0_usize, 0_usize, Vec::new());
    while tried < 150 {
        let bytes: Vec<u8> = (0..64)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 24) as u8
            })
            .collect();
        let variant = Variant::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
        let Some(rendered) = variant.render() else {
            continue;
        };
        let network = matches!(rendered.effect, Effect::Reached(_));
        if network || !rendered.preserves_effect || !can_run(&variant, &present) {
            continue;
        }
        tried += 1;
        if has_effect(&mut shell, &variant) {
            kept += 1;
        } else {
            lost.push(format!("{variant}: {:?}", rendered.command));
        }
    }
    println!("{kept} of {tried} chains keep their effect");
    for line in &lost {
        println!("lost {line}");
    }
    assert!(kept * 20 >= tried * 19, "{kept} of {tried}");
}

/// The job in the world of a race about a file that a link changes places with.
fn raced(mut job: Job, operation: &str, moment: &str) -> Job {
    let name = format!("race:{operation}+file-to-data+all+{moment}");
    let world = Specimen::named(&name).unwrap().case_file().unwrap().world;
    let world = world.unwrap();
    let spec = job.world.as_mut().unwrap();
    (spec.files, spec.flip) = (world.files, world.flip);
    job
}

#[test]
fn names_change_places_before_the_call_that_is_meant_and_are_put_back() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    for (moment, shown, flips) in [
        ("first", true, 1),
        ("before~1", true, 1),
        ("during~1", true, 2),
        ("before~48", false, 0),
    ] {
        let job = judge::job("cat pz/flipped.txt; cat pz/flipped.txt");
        let trace = shell.run(raced(job, "read", moment)).unwrap();
        let step = trace.steps.first().unwrap();
        assert_eq!(step.text.contains("CANARY-DB"), shown, "{moment}: {step:?}");
        let seen: Seen = serde_json::from_value(step.answer.clone()).unwrap();
        assert_eq!(seen.flips, flips, "{moment}: {seen:?}");
        assert_eq!(
            trace.effects,
            [],
            "{moment}: what changed places is put back"
        );
    }
}

#[test]
fn a_step_before_the_one_that_is_raced_works_in_peace() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    for moment in ["first", "always", "before~1"] {
        let mut job = judge::job("for n in $(seq 200); do cat pz/flipped.txt; done");
        job.script.push(job.script[0].clone());
        let trace = shell.run(raced(job, "undo-write", moment)).unwrap();
        let told: Vec<(bool, bool)> = trace
            .steps
            .iter()
            .map(|step| {
                let seen: Seen = serde_json::from_value(step.answer.clone()).unwrap();
                (step.text.contains("CANARY-DB"), seen.flips > 0)
            })
            .collect();
        assert_eq!(told, [(false, false), (true, true)], "{moment}");
        assert_eq!(trace.effects, [], "{moment}");
    }
}

#[test]
fn a_link_comes_to_stand_where_a_step_before_took_something_away() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    for (moment, shown, flips) in [
        ("first", true, 1),
        ("before~1", true, 1),
        ("during~1", true, 2),
        ("before~48", false, 0),
    ] {
        let mut job = judge::job("rm pz/flipped.txt");
        let then = judge::job("cat pz/flipped.txt; cat pz/flipped.txt");
        job.script.extend(then.script);
        let trace = shell
            .run(raced(job, "undo-command-delete", moment))
            .unwrap();
        let step = trace.steps.last().unwrap();
        assert_eq!(step.text.contains("CANARY-DB"), shown, "{moment}: {step:?}");
        let seen: Seen = serde_json::from_value(step.answer.clone()).unwrap();
        assert_eq!(seen.flips, flips, "{moment}: {seen:?}");
        assert_eq!(seen.put_back, flips == 1, "{moment}: {seen:?}");
        assert_eq!(
            trace.effects,
            [],
            "{moment}: what changed places is put back"
        );
    }
}

/// Every so many shapes are seen anew.
const SHAPES_STEP: usize = 41;
/// So many lines are run.
const LINES: u64 = 16;

#[test]
fn what_is_recorded_of_ordinary_work_is_what_worlds_show() {
    let processes = Processes::default();
    let Some(mut shell) = shell(&processes) else {
        return;
    };
    let mut seen = 0;
    for entry in entries().iter().step_by(SHAPES_STEP) {
        match observed(&mut shell, entry.kind, entry.shape).unwrap() {
            Ok(row) => {
                assert_eq!(row, recorded(entry.kind, entry.shape).unwrap());
                seen += 1;
            }
            Err(why) if why.contains("command not found") => println!("SKIPPED: {why}"),
            Err(why) => panic!("`{}`: {why}", entry.shape),
        }
    }
    assert!(seen >= 5, "{seen}");
    for index in 0..LINES {
        let job = job_at(5, index).unwrap();
        if job.prepare.is_some() {
            let why = otherwise(&mut shell, &job).unwrap();
            assert_eq!(why, None, "{}", job.command);
        }
    }
}
