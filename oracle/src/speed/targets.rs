//! The fuzz targets, run by their engine for a few seconds each.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ambient::Ambient;

/// Targets that make directories, processes or conversations for each input.
const NOT_PURE: [&str; 3] = ["acp", "changeset", "journal"];

/// Executions for a second of processor time, by target.
pub(super) struct Targets {
    seconds: u64,
    rows: Vec<(String, u64)>,
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
        .map(|name| {
            let rate = one(ambient, place, &name, seconds)?;
            Ok((name, rate))
        })
        .collect::<Result<_, String>>()?;
    Ok(Targets { seconds, rows })
}

fn one(ambient: &Ambient, place: &Path, name: &str, seconds: u64) -> Result<u64, String> {
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
    let all = executed(&told).ok_or_else(|| failed("its engine told no figure".to_owned()))?;
    Ok((all as f64 / used.as_secs_f64().max(0.001)) as u64)
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

fn executed(told: &str) -> Option<u64> {
    told.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .and_then(|rest| rest.trim().parse().ok())
}

impl Targets {
    pub(super) fn tell(&self, text: &mut String) {
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n## Fuzz targets\n\n\
             Each over its seeds for {} s, optimised as for a campaign, with checks for overflow, no \
             sanitizer, new inputs in memory. Those marked * make directories or conversations for each input.\n\n\
             | target | executions for a second of processor time |\n|---|--:|\n",
            self.seconds
        );
        for (name, rate) in &self.rows {
            let mark = if NOT_PURE.contains(&name.as_str()) {
                " *"
            } else {
                ""
            };
            let _ = writeln!(text, "| `{name}`{mark} | {rate} |");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{executed, seeds};

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
        assert_eq!(executed(told), Some(412_345));
        assert_eq!(executed("Done 9 runs"), None);
        assert_eq!(executed("stat::number_of_executed_units: many"), None);
    }
}
