//! Checks by a program of the language: `node --check` and its like.
//!
//! The program reads the file as it is on the disk, confined like any command;
//! what it does besides is thrown away. This must never say of a file that it
//! is right because no program looked.

use std::time::Duration;

use hermitcrab_sandbox::spawn::Ending;

use super::{Lint, PRE_EXISTING};
use crate::{runtime::Hands, text::pytext};

/// How long a check may take.
const SECONDS_MAX: u64 = 30;
/// The status that says that there is no such program.
const NOT_THERE: i32 = 96;

/// A program that checks files of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    name: &'static str,
    arguments: &'static str,
    /// Variables it is started with.
    variables: &'static str,
    /// Words it says, in small letters, when it cannot judge a file at all.
    unusable: &'static [&'static str],
}

/// The program for files with this ending.
pub fn of(extension: &str) -> Option<Program> {
    let (name, arguments, variables, unusable): (_, _, _, &[&str]) = match extension {
        ".js" => ("node", "--check", "", &[]),
        // A check fetches nothing: the compiler is the project's own, or there is none.
        ".ts" => (
            "npx",
            "tsc --noEmit",
            "npm_config_offline=true ",
            &[
                "this is not the tsc command you are looking for",
                "could not determine executable to run",
                "not found in npm registry",
                "enotcached",
            ],
        ),
        ".go" => (
            "go",
            "vet",
            "",
            &["cannot find package", "go: cannot find main module"],
        ),
        ".rs" => (
            "rustfmt",
            "--check",
            "",
            &["no input filename given", "error: not a workspace"],
        ),
        _ => return None,
    };
    Some(Program {
        name,
        arguments,
        variables,
        unusable,
    })
}

/// What the program says of a file. After an edit the compared agent has it
/// judge the file twice, as it is by then, and so calls every problem an old one.
pub fn check(hands: &mut Hands<'_>, program: Program, path: &str, is_edit: bool) -> Lint {
    let Program {
        name,
        arguments,
        variables,
        ..
    } = program;
    let file = path.replace('\'', "'\\''");
    let command = format!(
        "command -v {name} > /dev/null 2>&1 || exit {NOT_THERE}\n{variables}{name} {arguments} '{file}' 2>&1"
    );
    let run = hands.check_with(&command, Duration::from_secs(SECONDS_MAX));
    let not_there = || Lint::Skipped(format!("{name} not available"));
    let Some(run) = run else {
        return not_there();
    };
    let output = pytext::strip(&run.output).to_owned();
    match run.ending {
        Ending::Exited(NOT_THERE) => not_there(),
        Ending::Exited(0) => Lint::Passed(output),
        _ if program.cannot_judge(&output) => {
            let mut lines = pytext::lines(&output).into_iter().map(pytext::strip);
            let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
            Lint::Skipped(format!("{name} not usable: {}", pytext::head(first, 200)))
        }
        _ if is_edit && !output.is_empty() => Lint::Problem(output, Some(PRE_EXISTING)),
        _ => Lint::Problem(output, None),
    }
}

impl Program {
    fn cannot_judge(self, output: &str) -> bool {
        let small = output.to_lowercase();
        self.unusable.iter().any(|words| small.contains(words))
    }
}
