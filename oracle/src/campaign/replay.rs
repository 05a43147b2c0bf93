//! `bisim replay FILE`: the cases of one file, or of one name, each explained.
//!
//! Where names change places the moment decides, so such a case is run again and
//! again until something outside is reached. What is served under a race is not
//! compared.

use std::io::ErrorKind;
use std::path::Path;

use hermitcrab::given_file::{self, Pipes};

use super::named;
use crate::ambient::Ambient;
use crate::case::Case;
use crate::check::{self, Judge};
use crate::cli::ReplayArgs;
use crate::figures::counted;
use crate::generate::Specimen;
use crate::interrupt::Interrupt;
use crate::planting;
use crate::pulse::{Done, Pulse};
use crate::report::explain;
use crate::report::row::name;
use crate::subject::{Processes, Start, Subjects};
use crate::verdict::Kind;
use crate::{environment, exit, suite};

/// What to type instead.
const WHAT_IT_TAKES: &str = "give a finding of a campaign (`findings/NAME.json` in its directory), another file in the form \
     of those below vectors/suites, or the name a campaign's log gives a case, such as `work:v4a~17`";

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &ReplayArgs) -> u8 {
    if let Err((code, message)) = planting::possible("replay", args.fault.as_deref()) {
        eprintln!("error: {message}");
        return code;
    }
    let cases = match cases(&args.file) {
        Ok(cases) => cases,
        Err((code, lines)) => {
            for line in lines {
                eprintln!("error: {line}");
            }
            match of_the_vectors(&ambient.root.join("vectors"), &args.file) {
                Some(help) => eprintln!("  {help}"),
                None => eprintln!("  {WHAT_IT_TAKES}"),
            }
            return code;
        }
    };
    if cases.is_empty() {
        eprintln!("error: there is no case in `{}`", args.file.display());
        eprintln!("  {WHAT_IT_TAKES}");
        return exit::VECTORS;
    }
    let catalogue = match check::load(&ambient.root.join("vectors")) {
        Ok((_, catalogue)) => catalogue,
        Err(code) => return code,
    };
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let report = ambient.reports.join("target/bisim/replay");
    let started =
        environment::prepare(ambient, &args.hermes, &report, &processes).and_then(|mut starts| {
            let mut subjects = environment::try_out(&mut starts, &processes)?;
            // After the sandbox was tried out, which would notice some faults by itself.
            if let Start::Agent { fault, .. } = &mut starts.agent
                && args.fault.is_some()
            {
                fault.clone_from(&args.fault);
                subjects.agent = Subjects::new(&starts, &processes).agent;
            }
            Ok(subjects)
        });
    let mut subjects = match started {
        Ok(subjects) => subjects,
        Err(lack) => return lack.exit(&interrupt),
    };
    let judge = Judge::new(&catalogue, &args.hermes);
    let mut tally = exit::Tally::default();
    for case in cases {
        if interrupt.is_set() {
            tally.incomplete = true;
            break;
        }
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
        let running = Pulse::start(&format!("running {} on both", name(&case.id)));
        let result = check::run_case(&case, &judge, &mut subjects);
        drop(running);
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

/// The cases of this file, or the one a campaign gave this name; or the exit code, and what is
/// wrong, by the line.
fn cases(file: &Path) -> Result<Vec<Case>, (u8, Vec<String>)> {
    let shown = file.display();
    let text = match given_file::text(file, suite::BYTES_MAX, Pipes::Read) {
        Ok(text) => text,
        // What lies there was meant, whatever it is.
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let unread = format!("cannot read cases from `{shown}`: {error}");
            return Err((exit::USAGE, vec![unread]));
        }
        Err(_) => {
            let specimen = file.to_str().and_then(Specimen::named);
            return match specimen.as_ref().map(super::examine::case) {
                Some(Ok(case)) => Ok(vec![case]),
                Some(Err(_)) | None => Err((
                    exit::USAGE,
                    vec![format!(
                        "there is no file `{shown}`, and no campaign gives a case this name"
                    )],
                )),
            };
        }
    };
    let wrong = |lines| (exit::VECTORS, lines);
    // Of what was never meant to be one, the place of the first letter that is wrong says nothing.
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        let why = match text.trim().is_empty() {
            true => "it is empty".to_owned(),
            false => format!("it is no JSON ({error})"),
        };
        return Err(wrong(vec![format!("`{shown}` is no file of cases: {why}")]));
    }
    suite::alone(file, &text)
        .map_err(|problems| wrong(problems.iter().map(ToString::to_string).collect()))
}

/// What to type instead, where the name is that of a case somebody wrote.
fn of_the_vectors(vectors: &Path, file: &Path) -> Option<String> {
    let id = file.to_str().filter(|_| !file.exists())?;
    let suites = suite::load(vectors).ok()?;
    let case = suites.cases.iter().find(|case| case.id == id)?;
    Some(format!(
        "it is a case of the suite `{}`: `cargo bisim check --explain {id}` shows it",
        case.suite
    ))
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
    let (tried, id) = (Done::default(), name(&case.id));
    let running = Pulse::counting(&tried, move |tried| {
        format!("running {id} until it reaches outside: {tried} of {tries} runs at most")
    });
    for _ in 0..tries.max(1) {
        if interrupt.is_set() {
            break;
        }
        let result = check::run_case(case, judge, subjects);
        ran += u32::from(result.agent.is_some());
        hermes += u32::from(result.hermes_effect);
        let escaped = result.agent_effect;
        last = Some(result);
        tried.add(1);
        if escaped {
            break;
        }
    }
    drop(running);
    let escaped = last.as_ref().is_some_and(|result| result.agent_effect);
    if let Some(result) = &last {
        print!("{}", explain::render(case, result));
    }
    println!(
        "race: {}; outside was reached under hermes in {hermes}, under the agent in {}",
        counted(u64::from(ran), "run", "runs"),
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
    fn a_case_somebody_wrote_is_shown_by_another_command_and_that_one_is_named() {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        let help = |name: &str| of_the_vectors(&vectors, Path::new(name));
        let told =
            "it is a case of the suite `smoke`: `cargo bisim check --explain smoke-echo` shows it";
        assert_eq!(help("smoke-echo").as_deref(), Some(told));
        assert_eq!(help("smoke-no-such"), None);
    }

    #[test]
    fn a_case_is_read_from_a_file_or_made_from_its_name() {
        let name = "sequence:1+a4+c8.0@chat";
        let made = cases(Path::new("sequence:1+a4+c8.0")).unwrap();
        assert_eq!(made.len(), 1);
        assert!(cases(Path::new(name)).is_err());
        assert!(cases(Path::new("no/such/file.json")).is_err());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.json");
        let suite = |id: &str, more: &str| {
            format!(
                r#"{{"schema": 1, "suite": "of-another-name", "description": "d", "cases": [
{{"id": "{id}", {more} "script": [{{"call": {{"tool": "terminal", "args": {{"command": "x"}}}}}}]}}]}}"#
            )
        };
        std::fs::write(&file, suite("a", "")).unwrap();
        assert_eq!(cases(&file).unwrap()[0].id, "a");
        // What is there and no file of cases is not taken for a name, nor one with a slip in it.
        for (text, part) in [
            ("{}".to_owned(), "one.json:1:2: missing field"),
            (suite("a", r#""flags": ["f"],"#), "one.json:a: flag `f`"),
            (
                suite("a", "").replace("terminal", "termnal"),
                "unknown tool `termnal`",
            ),
        ] {
            std::fs::write(&file, text).unwrap();
            let (code, said) = cases(&file).unwrap_err();
            assert_eq!(code, exit::VECTORS);
            let said = said.join("\n");
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
