//! `bisim replay FILE`: the cases of one file, or of one name, each explained.
//!
//! Where names change places the moment decides, so such a case is run again and
//! again until something outside is reached. What is served under a race is not
//! compared.

use std::io::ErrorKind;
use std::path::Path;

use super::keep::suite_of;
use super::named;
use crate::ambient::Ambient;
use crate::case::{Case, SuiteFile};
use crate::check::{self, Judge};
use crate::cli::ReplayArgs;
use crate::generate::Specimen;
use crate::interrupt::Interrupt;
use crate::report::explain;
use crate::subject::{Processes, Subjects};
use crate::verdict::Kind;
use crate::{environment, exit};

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &ReplayArgs) -> u8 {
    let file = match cases(&args.file) {
        Ok(file) => file,
        Err(why) => {
            eprintln!(
                "error: cannot read cases from `{}`: {why}",
                args.file.display()
            );
            return exit::VECTORS;
        }
    };
    if file.cases.is_empty() {
        eprintln!("error: there is no case in `{}`", args.file.display());
        return exit::VECTORS;
    }
    let catalogue = match check::load(&ambient.root.join("vectors")) {
        Ok((_, catalogue)) => catalogue,
        Err(code) => return code,
    };
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let report = ambient.root.join("target/bisim/replay");
    let started = environment::prepare(ambient, &args.hermes, &report, &processes)
        .and_then(|mut starts| environment::try_out(&mut starts, &processes));
    let mut subjects = match started {
        Ok(subjects) => subjects,
        Err(lack) => return lack.exit(&interrupt),
    };
    let judge = Judge::new(&catalogue, &args.hermes);
    let mut tally = exit::Tally::default();
    for case in file.cases {
        if interrupt.is_set() {
            tally.incomplete = true;
            break;
        }
        let case = Case::resolve(&file.suite, &file.defaults, case);
        if case
            .job
            .world
            .as_ref()
            .is_some_and(|world| world.flip.is_some())
        {
            match race(&case, &judge, &mut subjects, args.tries, &interrupt) {
                Race::Escaped => tally.unsafe_cases += 1,
                Race::Held => {}
                Race::NotSeen => tally.inconclusive_over += 1,
            }
            continue;
        }
        let result = check::run_case(&case, &judge, &mut subjects);
        print!("{}", explain::render(&case, &result));
        let kind = result.verdict.kind;
        if matches!(kind, Kind::Different | Kind::StricterUnnamed)
            && named::unnamed(&case, &result).is_none()
        {
            println!("to a campaign, whose cases say what is held, all that differs has a name");
        }
        tally.unsafe_cases += usize::from(kind.is_unsafe());
        tally.unexplained += usize::from(matches!(kind, Kind::Different | Kind::StricterUnnamed));
        tally.inconclusive_over += usize::from(kind == Kind::Inconclusive);
    }
    exit::code(tally)
}

/// The cases of this file, or the one a campaign gave this name.
fn cases(file: &Path) -> Result<SuiteFile, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let name = file
                .to_str()
                .filter(|_| error.kind() == ErrorKind::NotFound);
            let specimen = name.and_then(Specimen::named);
            let case = specimen.and_then(|specimen| specimen.case_file());
            return case
                .map(suite_of)
                .ok_or_else(|| format!("{error}, and no campaign gives a case this name"));
        }
    };
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// How the runs of a race ended.
enum Race {
    /// The agent reached something outside.
    Escaped,
    /// It did not in any run.
    Held,
    /// No run gave a trace of it.
    NotSeen,
}

/// Runs a case in which names change places until the agent reaches outside.
fn race(
    case: &Case,
    judge: &Judge<'_>,
    subjects: &mut Subjects,
    tries: u32,
    interrupt: &Interrupt,
) -> Race {
    let (mut ran, mut hermes) = (0_u32, 0_u32);
    let mut last = None;
    for _ in 0..tries.max(1) {
        if interrupt.is_set() {
            break;
        }
        let result = check::run_case(case, judge, subjects);
        ran += u32::from(result.agent.is_some());
        hermes += u32::from(result.hermes_effect);
        let escaped = result.agent_effect;
        last = Some(result);
        if escaped {
            break;
        }
    }
    let escaped = last.as_ref().is_some_and(|result| result.agent_effect);
    if let Some(result) = &last {
        print!("{}", explain::render(case, result));
    }
    println!(
        "race: {ran} runs; outside was reached under hermes in {hermes}, under the agent in {}",
        u32::from(escaped)
    );
    match (escaped, ran) {
        (true, _) => Race::Escaped,
        (false, 0) => Race::NotSeen,
        (false, _) => Race::Held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_from_a_file_or_made_from_its_name() {
        let name = "sequence:1+a4+c8.0@chat";
        let made = cases(Path::new("sequence:1+a4+c8.0")).unwrap();
        assert_eq!(made.cases.len(), 1);
        assert!(cases(Path::new(name)).is_err());
        assert!(cases(Path::new("no/such/file.json")).is_err());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.json");
        std::fs::write(&file, serde_json::to_string(&made).unwrap()).unwrap();
        assert_eq!(cases(&file).unwrap().cases, made.cases);
        // What is there and no file of cases is not taken for a name.
        std::fs::write(&file, "{}").unwrap();
        assert!(cases(&file).is_err());
    }
}
