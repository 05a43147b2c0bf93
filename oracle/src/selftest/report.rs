//! What a hunt for the planted faults came to, in words.

use hermitcrab_core::fault::Fault;

use super::{By, Tried};
use crate::exit;

/// What each fault is to be found within, in seconds of processor time; most take one or two.
const SECONDS_MEANT: f64 = 60.0;

/// How many faults each kind of proof found.
fn classes(tried: &[Option<Tried>]) -> String {
    By::ALL
        .map(|by| {
            let found = tried
                .iter()
                .flatten()
                .filter_map(|tried| tried.found.as_ref());
            format!(
                "{} {}",
                found.filter(|found| found.by == by).count(),
                by.words()
            )
        })
        .join(", ")
}

/// The fault that took most, and all of them together.
fn cost(faults: &[Fault], tried: &[Option<Tried>]) -> String {
    let spent = faults
        .iter()
        .zip(tried)
        .filter_map(|(fault, tried)| Some((fault, tried.as_ref()?.seconds())));
    let all: f64 = spent.clone().map(|(_, seconds)| seconds).sum();
    match spent.max_by(|one, other| one.1.total_cmp(&other.1)) {
        Some((fault, most)) => format!(
            "{all:.1} s of processor time in all, at most {most:.1} s for one fault ({}); {} takes more than {SECONDS_MEANT:.0}, which fails",
            fault.name(),
            if most > SECONDS_MEANT { "NONE" } else { "none" }
        ),
        None => "nothing was tried".to_owned(),
    }
}

fn is_too_dear(tried: &Tried) -> bool {
    tried.seconds() > SECONDS_MEANT
}

/// Prints it; the exit code.
pub(super) fn report(faults: &[Fault], tried: &[Option<Tried>], interrupted: bool) -> u8 {
    println!(
        "{:28}  {:40}  {:24}  {:>5}  {:>6}  what was wrong",
        "fault", "found by", "verdict", "cases", "cpu s"
    );
    let mut missed = 0_usize;
    for (fault, tried) in faults.iter().zip(tried) {
        let seconds = tried
            .as_ref()
            .map_or_else(String::new, |tried| format!("{:.1}", tried.seconds()));
        let found = tried.as_ref().and_then(|tried| tried.found.as_ref());
        missed += usize::from(found.is_none());
        let (case, verdict, cases) = found.map_or(("NOT FOUND", "", String::new()), |found| {
            (&found.case, &found.verdict, found.tried.to_string())
        });
        println!(
            "{:28}  {case:40}  {verdict:24}  {cases:>5}  {seconds:>6}  {}",
            fault.name(),
            fault.description()
        );
    }
    if interrupted {
        println!("\nthe run was interrupted; what was not found may not have been tried");
    }
    println!(
        "\n{} of {} planted faults found: {}",
        faults.len() - missed,
        faults.len(),
        classes(tried)
    );
    println!("{}", cost(faults, tried));
    if interrupted {
        exit::INCONCLUSIVE
    } else if missed > 0 || tried.iter().flatten().any(is_too_dear) {
        exit::UNEXPLAINED
    } else {
        exit::CONFORM
    }
}

#[cfg(test)]
mod tests {
    use super::super::Found;
    use super::*;

    fn tried(cpu_ms: u64) -> Option<Tried> {
        Some(Tried {
            found: None,
            cpu_ms,
        })
    }

    #[test]
    fn the_dearest_fault_is_named_and_too_dear_a_one_stands_out() {
        let faults = Fault::ALL.get(..3).unwrap();
        let told = cost(faults, &[tried(1_500), None, tried(2_000)]);
        assert!(told.starts_with("3.5 s"), "{told}");
        assert!(
            told.contains("at most 2.0 s") && told.contains(faults[2].name()),
            "{told}"
        );
        assert!(!told.contains("NONE"), "{told}");
        assert!(cost(faults, &[tried(60_001), None, None]).contains("NONE"));
    }

    #[test]
    fn a_fault_nobody_found_is_not_a_success() {
        let faults = Fault::ALL.get(..1).unwrap();
        assert_eq!(report(faults, &[tried(10)], false), exit::UNEXPLAINED);
        assert_eq!(report(faults, &[None], true), exit::INCONCLUSIVE);
        let found = || Found {
            case: "a".to_owned(),
            by: By::Law,
            verdict: "broken".to_owned(),
            tried: 1,
        };
        for (cpu_ms, code) in [(10, exit::CONFORM), (60_001, exit::UNEXPLAINED)] {
            let found = Some(found());
            let tried = Some(Tried { found, cpu_ms });
            assert_eq!(report(faults, &[tried], false), code, "{cpu_ms} ms");
        }
    }
}
