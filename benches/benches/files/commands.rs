//! What a call of `terminal` takes, beside Hermes' and beside the same command
//! given to a bare shell, each once in every round.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use hermitcrab::runtime::Fate;
use hermitcrab_sandbox::SpawnerProgram;
use serde_json::json;

use crate::{agent, hermes::Hermes};

/// Rounds that are timed.
pub const ROUNDS: usize = 100;
/// The same where it only has to work.
pub const ROUNDS_TRIED: usize = 2;

/// What is done, and the command; none of them changes a file, so that nothing
/// but the command is measured.
const COMMANDS: [(&str, &str); 4] = [
    ("nothing", "true"),
    ("four programs", "ls m | sort -r | head -n 50 | wc -l"),
    ("200 files searched", "grep -r second m | wc -l"),
    (
        "5000 rounds of a loop",
        "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; echo $i",
    ),
];

/// Medians of one command, milliseconds on the clock.
pub struct Times {
    what: &'static str,
    bare: f64,
    ours: f64,
    hermes: Option<f64>,
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times every command in turns; `None` if commands cannot be confined here.
pub fn measured(rounds: usize, mut hermes: Option<&mut Hermes>) -> Option<Vec<Times>> {
    let dirs = tempfile::tempdir().unwrap();
    let mut runtime = agent(dirs.path(), SpawnerProgram::Own);
    let first = runtime.first_agent();
    let workspace = dirs.path().join("w");
    let mut all = Vec::new();
    for (what, command) in COMMANDS {
        let (mut bare, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let begun = Instant::now();
            let done = Command::new("/bin/bash")
                .args(["-c", command])
                .current_dir(&workspace)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            bare.push(begun.elapsed().as_secs_f64() * 1000.0);
            assert!(done.status.success());

            let begun = Instant::now();
            let report = runtime.call(first, "terminal", &json!({"command": command}));
            ours.push(begun.elapsed().as_secs_f64() * 1000.0);
            if report.fate != Fate::Ran {
                println!("SKIPPED: {:?} {}", report.fate, report.text);
                return None;
            }
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(report.text.contains(said.trim()), "{}", report.text);

            if let Some(hermes) = hermes.as_deref_mut() {
                let call = ("terminal", json!({"command": command}));
                theirs.push(hermes.cost(vec![("todo", json!({})), call]).passed);
            }
        }
        all.push(Times {
            what,
            bare: median(bare),
            ours: median(ours),
            hermes: (!theirs.is_empty()).then(|| median(theirs)),
        });
    }
    Some(all)
}

/// The part of the report.
pub fn section(commands: Option<&[Times]>) -> String {
    let mut text = format!(
        "\n## Commands\n\n\
         A call of `terminal` with a session's directory and variables carried on, confined, its changes looked for and \
         the ledger kept; the same call of Hermes; and the bare command by `bash -c` with a pipe. Medians of {ROUNDS} \
         rounds, the three in turns, milliseconds on the clock.\n\n\
         | command | bare | here | more than bare | Hermes | more than bare | Hermes to here |\n\
         |---|--:|--:|--:|--:|--:|--:|\n"
    );
    for one in commands.unwrap_or_default() {
        let more = one.ours - one.bare;
        let theirs = match one.hermes {
            Some(hermes) => format!(
                "{hermes:.1} | {:.1} | {:.1}",
                hermes - one.bare,
                hermes / one.ours
            ),
            None => "- | - | -".to_owned(),
        };
        writeln!(
            text,
            "| {} | {:.1} | {:.1} | {more:.1} | {theirs} |",
            one.what, one.bare, one.ours
        )
        .unwrap();
    }
    text
}
