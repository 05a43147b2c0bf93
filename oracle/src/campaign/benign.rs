//! `bisim benign`: how often is work stopped that nobody should be asked about?
//!
//! Without more, lines that are put together of what was seen are decided about, by the hundred
//! thousand. `--observe` sees anew what each shape does; `--run` has worlds show that lines do what
//! is said of them, and that the agent asks nobody about them; `--contrast` asks Hermes' guard
//! about the same lines.

mod contrast;
mod dealt;
mod observe;
mod run;
mod worlds;

pub use self::observe::{observed, recorded};
pub use self::run::{Came, examined, otherwise};

use std::time::Instant;

use arbitrary::{Arbitrary as _, Unstructured};

use self::dealt::Dealt;
use super::plan::bytes_at;
use crate::ambient::Ambient;
use crate::cli::BenignArgs;
use crate::exit;
use crate::figures::{counted, grouped};
use crate::generate::benign::{Benign, Desk};
use crate::planting;
use crate::pulse::{Done, Pulse};

/// Alarms that are printed.
const SHOWN_MAX: usize = 20;
/// Jobs one session decides about; a session of a person is shorter.
const JOBS_PER_SESSION: u64 = 1000;

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &BenignArgs) -> u8 {
    if let Err((code, message)) = planting::possible("benign", args.fault.as_deref()) {
        eprintln!("error: {message}");
        return code;
    }
    if args.observe {
        return observe::command(ambient, args);
    }
    if let Some(many) = args.run {
        return run::command(ambient, args, many);
    }
    if let Some(many) = args.contrast {
        return contrast::command(ambient, args, many);
    }
    #[cfg(feature = "planted-faults")]
    if let Some(fault) = args
        .fault
        .as_deref()
        .and_then(|name| planting::named(name).ok())
    {
        hermitcrab_core::fault::plant(Some(fault));
    }
    decide(args)
}

/// The job at this place.
#[must_use]
pub fn job_at(seed: u64, index: u64) -> Option<Benign> {
    Benign::arbitrary(&mut Unstructured::new(&bytes_at(seed, index))).ok()
}

/// The first alarm among these many jobs of this seed, and how many jobs it took.
#[cfg(feature = "planted-faults")]
pub(crate) fn first_alarm(seed: u64, count: u64) -> Option<(u64, String)> {
    let mut desk = None;
    (0..count).find_map(|index| {
        if index.is_multiple_of(JOBS_PER_SESSION) {
            desk = Desk::open();
        }
        let alarm = desk.as_mut()?.decide(&job_at(seed, index)?).err()?;
        Some((index, alarm))
    })
}

fn decide(args: &BenignArgs) -> u8 {
    let started = Instant::now();
    let mut alarms = Vec::new();
    let mut dealt = Dealt::default();
    let mut desk = None;
    let decided = Done::default();
    let all = args.count;
    let pulse = Pulse::counting(&decided, move |decided| {
        format!(
            "{} of {} decided about",
            grouped(decided),
            counted(all, "job", "jobs")
        )
    });
    for index in 0..args.count {
        if index.is_multiple_of(JOBS_PER_SESSION) {
            desk = Desk::open();
        }
        let Some(desk) = &mut desk else {
            drop(pulse);
            eprintln!("error: the session does not open");
            return exit::INTERNAL;
        };
        let Some(job) = job_at(args.seed, index) else {
            continue;
        };
        dealt.add(&job);
        decided.add(1);
        if let Err(alarm) = desk.decide(&job) {
            alarms.push(alarm);
        }
    }
    drop(pulse);
    for alarm in alarms.iter().take(SHOWN_MAX) {
        println!("ALARM {alarm}");
    }
    print!("{dealt}");
    let seconds = started.elapsed().as_secs_f64().max(0.001);
    println!(
        "{} in {}, {} decided, {} a second, seed {}",
        counted(alarms.len() as u64, "false alarm", "false alarms"),
        counted(dealt.jobs(), "benign job", "benign jobs"),
        counted(dealt.decisions(), "action", "actions"),
        counted(
            (dealt.jobs() as f64 / seconds).round() as u64,
            "job",
            "jobs"
        ),
        args.seed
    );
    if alarms.is_empty() {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    }
}
