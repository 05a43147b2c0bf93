//! A test that failed, asked again before it counts.
//!
//! Machines are shared, and many tests start programs and wait for what these do. A test
//! that failed is repeated alone, after all others: unless it passes each time, it has
//! failed. If it does, it is `UNSTEADY`: counted apart and never as passed, its output
//! printed, and a run bears only a stated number of those. The oracle treats its cases the
//! same way (`bisim check`, `inconclusive:unsteady`).
//!
//! Where a failure may be an effect beyond the authority, or no machine can be at fault,
//! once is enough.

use std::time::Duration;

use anyhow::Result;

use super::run::{self, Ended, Fate};

/// How often a test has to pass alone after it failed.
const REPEATS: usize = 2;
/// More failures than this are no accident, and repeating them would take as long as the run.
const FAILURES_MAX: usize = 8;
/// Labels with one of these in them: a package without clocks and processes, and attacks.
const ONCE_IS_ENOUGH: &[&str] = &[
    "hermitcrab-core/",
    "escape::",
    "isolation::",
    "fence::",
    "dircap_race::",
    "leaks",
];

/// Repeats what failed, alone, and says what came of it.
pub fn settle(ended: &mut [Ended<'_>], timeout: Duration) -> Result<()> {
    settle_with(ended, |end| run::alone(end.case, timeout))
}

fn settle_with<'a>(
    ended: &mut [Ended<'a>],
    mut again: impl FnMut(&Ended<'a>) -> Result<(Fate, Duration)>,
) -> Result<()> {
    let failed = |end: &&mut Ended<'_>| matches!(end.fate, Fate::Failed(_));
    if ended.iter_mut().filter(failed).count() > FAILURES_MAX {
        return Ok(());
    }
    for end in ended.iter_mut().filter(failed) {
        let label = end.case.label();
        let Fate::Failed(why) = &end.fate else {
            continue;
        };
        if end.case.ignored || ONCE_IS_ENOUGH.iter().any(|part| label.contains(part)) {
            continue;
        }
        let why = why.clone();
        let mut passed = 0;
        while passed < REPEATS {
            let (fate, took) = again(end)?;
            println!(
                "{} {:>7.2} s  {label}, alone",
                fate.word(),
                took.as_secs_f64()
            );
            if fate != Fate::Passed {
                break;
            }
            passed += 1;
        }
        if passed == REPEATS {
            end.fate = Fate::Unsteady(why);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::test::build::{Case, Program};

    fn case(package: &str, name: &str) -> Case {
        Case {
            program: Program {
                package: package.to_owned(),
                version: String::new(),
                target: "it".to_owned(),
                executable: PathBuf::new(),
                directory: PathBuf::new(),
                bare: false,
            },
            name: Some(name.to_owned()),
            ignored: false,
        }
    }

    /// What comes of a failed test with these ends, and how often it was repeated.
    fn settled(case: &Case, then: &[Fate]) -> (Fate, usize) {
        let failed = || Fate::Failed("at first".to_owned());
        let mut ended = [Ended {
            case,
            fate: failed(),
            left: 0,
        }];
        let mut asked = 0;
        settle_with(&mut ended, |_| {
            asked += 1;
            let fate = then.get(asked - 1).cloned().unwrap_or_else(failed);
            Ok((fate, Duration::ZERO))
        })
        .unwrap();
        let [end] = ended;
        (end.fate, asked)
    }

    #[test]
    fn only_what_passes_alone_each_time_is_unsteady_and_never_passed() {
        let case = case("hermitcrab", "chat::a_line_is_read");
        let failed = || Fate::Failed("at first".to_owned());
        let unsteady = Fate::Unsteady("at first".to_owned());
        let skipped = Fate::Skipped("no overlay".to_owned());
        let passed = || Fate::Passed;
        assert_eq!(settled(&case, &[passed(), passed()]), (unsteady, 2));
        assert_eq!(settled(&case, &[passed(), failed()]), (failed(), 2));
        assert_eq!(settled(&case, &[failed(), passed()]), (failed(), 1));
        assert_eq!(settled(&case, &[passed(), skipped]), (failed(), 2));
    }

    #[test]
    fn attacks_and_what_no_machine_can_disturb_fail_once_and_many_failures_are_no_accident() {
        let passed = [Fate::Passed, Fate::Passed];
        let failed = Fate::Failed("at first".to_owned());
        for (package, name) in [
            ("hermitcrab-core", "monitor::a_grant_ends"),
            ("hermitcrab-sandbox", "escape::nothing_gets_out"),
        ] {
            let case = case(package, name);
            assert_eq!(settled(&case, &passed), (failed.clone(), 0), "{name}");
        }
        let case = case("hermitcrab", "chat::a_line_is_read");
        let mut many: Vec<Ended<'_>> = (0..=FAILURES_MAX)
            .map(|_| Ended {
                case: &case,
                fate: failed.clone(),
                left: 0,
            })
            .collect();
        settle_with(&mut many, |_| Ok((Fate::Passed, Duration::ZERO))).unwrap();
        assert!(many.iter().all(|end| end.fate == failed));
    }
}
