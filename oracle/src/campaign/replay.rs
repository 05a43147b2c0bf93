//! `bisim replay FILE`: the cases of one file, each explained.

use crate::ambient::Ambient;
use crate::case::{Case, SuiteFile};
use crate::check::{self, Judge};
use crate::cli::ReplayArgs;
use crate::interrupt::Interrupt;
use crate::report::explain;
use crate::subject::Processes;
use crate::verdict::Kind;
use crate::{environment, exit};

/// Runs the command; returns the exit code.
#[must_use]
pub fn command(ambient: &Ambient, args: &ReplayArgs) -> u8 {
    let read = std::fs::read_to_string(&args.file)
        .map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    let file: SuiteFile = match read {
        Ok(file) => file,
        Err(why) => {
            eprintln!(
                "error: cannot read cases from `{}`: {why}",
                args.file.display()
            );
            return exit::VECTORS;
        }
    };
    let catalogue = match check::load(&ambient.root.join("vectors")) {
        Ok((_, catalogue)) => catalogue,
        Err(code) => return code,
    };
    let interrupt = Interrupt::default();
    let processes = Processes::default();
    interrupt.watch(processes.clone());
    let report = ambient.root.join("target/bisim/replay");
    let started = environment::prepare(ambient, &args.hermes, &report)
        .and_then(|mut starts| environment::try_out(&mut starts, &processes));
    let mut subjects = match started {
        Ok(subjects) => subjects,
        Err(lack) => {
            lack.print();
            return exit::ENVIRONMENT;
        }
    };
    let judge = Judge::new(&catalogue, &args.hermes);
    let mut tally = exit::Tally::default();
    for case in file.cases {
        if interrupt.is_set() {
            tally.incomplete = true;
            break;
        }
        let case = Case::resolve(&file.suite, &file.defaults, case);
        let result = check::run_case(&case, &judge, &mut subjects);
        print!("{}", explain::render(&case, &result));
        let kind = result.verdict.kind;
        tally.unsafe_cases += usize::from(kind.is_unsafe());
        tally.unexplained += usize::from(matches!(kind, Kind::Different | Kind::StricterUnnamed));
        tally.inconclusive_over += usize::from(kind == Kind::Inconclusive);
    }
    exit::code(tally)
}
