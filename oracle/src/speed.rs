//! `bisim speed`: what the harness itself costs.
//!
//! Empty worlds, for each subject; real cases in worlds beside the same calls in
//! a plain loop of one interpreter; and the fuzz targets, where they are built.
//! It measures and writes; nothing is ever decided from it.

mod cases;
mod screen;
mod targets;
mod worlds;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use crate::ambient::Ambient;
use crate::cli::SpeedArgs;
use crate::interrupt::Interrupt;
use crate::pulse::Pulse;
use crate::subject::{Processes, Starts, Subjects};
use crate::{check, environment, exit};

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &SpeedArgs) -> u8 {
    if let Err(unwritten) = environment::writable(args.write.as_deref(), "--write") {
        return unwritten.exit();
    }
    if let Err(message) = args.targets.as_deref().map_or(Ok(()), targets::there) {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let (suites, _) = match check::load(&ambient.root.join("vectors")) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let logs = ambient.root.join("target/bisim-speed");
    let prepared =
        environment::prepare(ambient, &args.hermes, &logs, &processes).and_then(|mut starts| {
            let subjects = environment::try_out(&mut starts, &processes)?;
            Ok((starts, subjects))
        });
    let (starts, mut subjects) = match prepared {
        Ok(prepared) => prepared,
        Err(lack) => return lack.exit(&interrupt),
    };
    match measure(
        ambient,
        args,
        &suites.cases,
        &starts,
        &processes,
        &mut subjects,
    ) {
        Ok(()) if interrupt.is_set() => exit::INCONCLUSIVE,
        Ok(()) => exit::CONFORM,
        Err(_) if interrupt.is_set() => exit::INCONCLUSIVE,
        Err(message) => {
            eprintln!("error: {message}");
            exit::INTERNAL
        }
    }
}

fn measure(
    ambient: &Ambient,
    args: &SpeedArgs,
    all: &[crate::case::Case],
    starts: &Starts,
    processes: &Processes,
    subjects: &mut Subjects,
) -> Result<(), String> {
    let started = Instant::now();
    let mut lane = String::new();
    let mut text = String::from(
        "# What the harness costs\n\n\
         Written by `cargo xtask campaign-report`; do not edit. One run on one machine.\n\n",
    );
    let pulse = Pulse::start("measuring the lane that only asks (a minute or two)");
    screen::measure(starts, processes)?.tell(&mut lane);
    pulse.go_on("measuring worlds in which nothing happens");
    worlds::measure(starts, processes, args.worlds)?.tell(&mut text);
    text.push_str(&lane);
    pulse.go_on("measuring cases in worlds, and the same calls in a plain loop");
    cases::measure(all, args.cases, subjects)?.tell(&mut text);
    match &args.targets {
        Some(place) => {
            pulse.go_on("measuring the fuzz targets");
            targets::measure(ambient, place, args.seconds)?.tell(&mut text);
        }
        None => text.push_str("\nThe fuzz targets were not measured.\n"),
    }
    drop(pulse);
    let seconds = started.elapsed().as_secs();
    // Writing into a string does not fail.
    let _ = writeln!(text, "\nMeasured in {seconds} s.");
    print!("{text}");
    if let Some(path) = &args.write {
        std::fs::write(path, &text)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// The processor time of this process, and of it alone.
fn own_cpu() -> Result<Duration, String> {
    cpu_of(UsageWho::RUSAGE_SELF)
}

fn cpu_of(who: UsageWho) -> Result<Duration, String> {
    let usage = nix::sys::resource::getrusage(who)
        .map_err(|errno| format!("cannot measure the processor time: {errno}"))?;
    let micros = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() * 1_000_000 + time.tv_usec())
        .into_iter()
        .sum::<i64>();
    Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}
