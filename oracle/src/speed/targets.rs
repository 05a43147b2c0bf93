//! The fuzz targets, run by their engine for a few seconds each.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ambient::Ambient;
use crate::law::STEPS_TOLD;

/// What the engine says before its figure.
const EXECUTED: &str = "stat::number_of_executed_units:";
/// Targets that make directories, processes or conversations for each input.
const NOT_PURE: [&str; 3] = ["acp", "changeset", "journal"];

/// Executions for a second of processor time, by target.
pub(super) struct Targets {
    seconds: u64,
    rows: Vec<Row>,
}

struct Row {
    target: String,
    executions: u64,
    /// Steps an execution, and what they are, where the law counts them.
    steps: Option<(f64, &'static str)>,
}

/// Whether a directory of built targets is what is named; said before minutes are measured.
pub(super) fn there(place: &Path) -> Result<(), String> {
    if place.is_dir() {
        return Ok(());
    }
    Err(format!(
        "`{}` is no directory, and the built fuzz targets are looked for in one; `cargo xtask campaign-report` builds them and names it",
        place.display()
    ))
}

/// Runs each target that stands in a directory, over its seeds.
pub(super) fn measure(ambient: &Ambient, place: &Path, seconds: u64) -> Result<Targets, String> {
    let sources = ambient.root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&sources)
        .map_err(|error| format!("cannot list {}: {error}", sources.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    let rows = names
        .into_iter()
        .map(|name| one(ambient, place, name, seconds))
        .collect::<Result<_, String>>()?;
    Ok(Targets { seconds, rows })
}

fn one(ambient: &Ambient, place: &Path, target: String, seconds: u64) -> Result<Row, String> {
    let name = target.as_str();
    let failed = |what: String| format!("the target {name}: {what}");
    let apart = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let seeds = seeds(&ambient.root.join("fuzz/seeds").join(name)).map_err(failed)?;
    let before = children_cpu()?;
    let output = Command::new(place.join(name))
        // Without a directory to grow, new inputs are kept in memory: what is measured is the
        // target, and not how fast a file system makes and removes small files.
        .arg(format!("-seed_inputs={seeds}"))
        .arg(format!("-max_total_time={seconds}"))
        .args([
            "-print_final_stats=1",
            "-print_funcs=0",
            "-rss_limit_mb=4096",
        ])
        .current_dir(apart.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let used = children_cpu()?.saturating_sub(before);
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<_> = told.lines().rev().take(12).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        return Err(failed(format!("{}\n{}", output.status, tail.join("\n"))));
    }
    let all =
        after(&told, EXECUTED).ok_or_else(|| failed("its engine told no figure".to_owned()))?;
    let counted = crate::law::named(name).and_then(|law| law.step);
    let steps = match counted {
        Some(step) => {
            let made = after(&told, STEPS_TOLD)
                .ok_or_else(|| failed("it did not tell its steps".to_owned()))?;
            Some((made as f64 / (all as f64).max(1.0), step))
        }
        None => None,
    };
    Ok(Row {
        executions: (all as f64 / used.as_secs_f64().max(0.001)) as u64,
        steps,
        target,
    })
}

/// The files of a directory, the way the engine takes them.
fn seeds(place: &Path) -> Result<String, String> {
    let entries = std::fs::read_dir(place)
        .map_err(|error| format!("cannot list {}: {error}", place.display()))?;
    let mut paths: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .collect();
    paths.sort();
    match paths.iter().find(|path| path.contains(',')) {
        Some(path) => Err(format!("the engine cannot be given {path}")),
        None => Ok(paths.join(",")),
    }
}

/// The processor time of every process this one has waited for. Nothing else ends while
/// targets run.
fn children_cpu() -> Result<Duration, String> {
    super::cpu_of(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)
}

/// The figure behind these words.
fn after(told: &str, words: &str) -> Option<u64> {
    told.lines()
        .find_map(|line| line.strip_prefix(words))
        .and_then(|rest| rest.trim().parse().ok())
}

impl Targets {
    pub(super) fn tell(&self, text: &mut String) {
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n## Fuzz targets\n\n\
             Each over its seeds for {} s, optimised as for a campaign, with checks for overflow, no \
             sanitizer, new inputs in memory. Those marked * make directories or conversations for each input. \
             Where one execution is a sequence of many steps, these are told as well.\n\n\
             | target | executions for a second of processor time | steps an execution | steps for a second | a step is one of |\n\
             |---|--:|--:|--:|---|\n",
            self.seconds
        );
        for row in &self.rows {
            let mark = if NOT_PURE.contains(&row.target.as_str()) {
                " *"
            } else {
                ""
            };
            let _ = write!(text, "| `{}`{mark} | {} |", row.target, row.executions);
            let _ = match row.steps {
                Some((each, step)) => {
                    let all = (row.executions as f64 * each) as u64;
                    writeln!(text, " {each:.1} | {all} | {step} |")
                }
                None => writeln!(text, " | | |"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EXECUTED, Row, STEPS_TOLD, Targets, after, seeds};

    #[test]
    fn seeds_are_told_in_their_order_and_none_that_would_be_read_as_two() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name).display().to_string();
        for name in ["b", "a"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(seeds(place.path()), Ok(format!("{},{}", at("a"), at("b"))));
        std::fs::write(at("c,d"), "").unwrap();
        assert!(seeds(place.path()).unwrap_err().contains("c,d"));
        assert!(seeds(&place.path().join("none")).is_err());
    }

    #[test]
    fn the_engines_last_words_hold_the_figure() {
        let told = "Done 9 runs in 3 second(s)\nstat::number_of_executed_units: 412345\n\
                    stat::average_exec_per_sec:     3\nstat::new_units_added: 1\n";
        assert_eq!(after(told, EXECUTED), Some(412_345));
        assert_eq!(after("Done 9 runs", EXECUTED), None);
        let many = "stat::number_of_executed_units: many";
        assert_eq!(after(many, EXECUTED), None);
        assert_eq!(after(told, STEPS_TOLD), None);
        let told = format!("{told}{STEPS_TOLD}77\n");
        assert_eq!(after(&told, STEPS_TOLD), Some(77));
    }

    #[test]
    fn a_row_tells_steps_where_they_are_counted() {
        let row = |target: &str, steps| Row {
            target: target.to_owned(),
            executions: 1_000,
            steps,
        };
        let targets = Targets {
            seconds: 4,
            rows: vec![
                row("acp", None),
                row("session", Some((2.5, "turns of a session"))),
            ],
        };
        let mut text = String::new();
        targets.tell(&mut text);
        let rows: Vec<_> = text.lines().rev().take(2).collect();
        assert_eq!(
            rows,
            [
                "| `session` | 1000 | 2.5 | 2500 | turns of a session |",
                "| `acp` * | 1000 | | | |",
            ]
        );
    }
}
