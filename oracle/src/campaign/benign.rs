//! `bisim benign`: how often is work stopped that nobody should be asked about?

use std::collections::BTreeMap;
use std::time::Instant;

use arbitrary::{Arbitrary as _, Unstructured};

use super::plan::bytes_at;
use crate::cli::BenignArgs;
use crate::exit;
use crate::generate::benign::{Benign, Desk};

/// Alarms that are printed.
const SHOWN_MAX: usize = 20;
/// Jobs one session decides about; a session of a person is shorter.
const JOBS_PER_SESSION: u64 = 1000;

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(args: &BenignArgs) -> u8 {
    let started = Instant::now();
    let mut alarms = Vec::new();
    let (mut jobs, mut decisions) = (0_u64, 0_u64);
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut desk = None;
    for index in 0..args.count {
        if index.is_multiple_of(JOBS_PER_SESSION) {
            desk = Desk::open();
        }
        let Some(desk) = &mut desk else {
            eprintln!("error: the session does not open");
            return exit::INTERNAL;
        };
        let bytes = bytes_at(args.seed, index);
        let Ok(job) = Benign::arbitrary(&mut Unstructured::new(&bytes)) else {
            continue;
        };
        jobs += 1;
        *kinds.entry(job.kind).or_default() += 1;
        decisions += 1 + job.effects.len() as u64;
        if let Err(alarm) = desk.decide(&job) {
            alarms.push(alarm);
        }
    }
    for alarm in alarms.iter().take(SHOWN_MAX) {
        println!("ALARM {alarm}");
    }
    for (kind, count) in &kinds {
        println!("{kind}: {count} jobs");
    }
    let seconds = started.elapsed().as_secs_f64().max(0.001);
    println!(
        "{} false alarms in {jobs} benign jobs, {decisions} actions decided, {:.0} jobs a second, seed {}",
        alarms.len(),
        jobs as f64 / seconds,
        args.seed
    );
    if alarms.is_empty() {
        exit::CONFORM
    } else {
        exit::UNEXPLAINED
    }
}
