//! What installing the system call filter costs.
//!
//! A filter cannot be taken off again, so each time it is put on in a program
//! of its own, which is this one, told so by its first argument.

use std::process::{Command as Bare, Stdio};
use std::time::{Duration, Instant};

use crate::sheet::Line;
use crate::{Contender, ambient, in_turns};

const ALONE: &str = "--install-filter";

/// Installs the filter, prints the nanoseconds that took and is done, if that
/// is what this process was started for.
pub fn maybe_install() -> bool {
    if !ambient::first_is(ALONE) {
        return false;
    }
    let started = Instant::now();
    hermitcrab_sandbox::spawn::filter_this_thread().unwrap();
    let taken = started.elapsed();
    println!("{}", taken.as_nanos());
    true
}

/// The installation beside a bare spawn, in turns.
pub fn installed(rounds: usize, base: &dyn Fn() -> Duration) -> Vec<Line> {
    let program = ambient::program();
    let run: Box<dyn Fn() -> Duration> = Box::new(move || {
        let output = Bare::new(&program)
            .arg(ALONE)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        Duration::from_nanos(text.trim().parse().unwrap())
    });
    let contenders: Vec<Contender<'_>> =
        vec![("the system call filter, installed".into(), Some(0.2), run)];
    in_turns("Installing the filter", rounds, base, contenders)
}
