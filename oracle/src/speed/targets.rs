//! The fuzz targets, run by their engine for a few seconds each.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::ambient::Ambient;

/// Targets that make directories, processes or conversations for each input.
const NOT_PURE: [&str; 4] = ["acp", "changeset", "journal", "ledger"];

/// Executions a second, by target.
pub(super) struct Targets {
    seconds: u64,
    rows: Vec<(String, u64)>,
}

/// Runs each target that stands in a directory, over a copy of its seeds.
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
    let grown = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(place.join(name))
        .arg(grown.path())
        .arg(ambient.root.join("fuzz/seeds").join(name))
        .arg(format!("-max_total_time={seconds}"))
        .args([
            "-print_final_stats=1",
            "-print_funcs=0",
            "-rss_limit_mb=4096",
        ])
        .current_dir(grown.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let tail: Vec<_> = told.lines().rev().take(12).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        return Err(failed(format!("{}\n{}", output.status, tail.join("\n"))));
    }
    rate(&told).ok_or_else(|| failed("its engine told no figure".to_owned()))
}

fn rate(told: &str) -> Option<u64> {
    told.lines()
        .find_map(|line| line.strip_prefix("stat::average_exec_per_sec:"))
        .and_then(|rest| rest.trim().parse().ok())
}

impl Targets {
    pub(super) fn tell(&self, text: &mut String) {
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n## Fuzz targets\n\n\
             Each over its seeds for {} s on one processor, optimised as for a campaign, with checks for \
             overflow, no sanitizer. Those marked * make directories or conversations for each input.\n\n\
             | target | executions a second |\n|---|--:|\n",
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
    use super::rate;

    #[test]
    fn the_engines_last_words_hold_the_figure() {
        let told = "Done 9 runs in 3 second(s)\nstat::number_of_executed_units: 9\n\
                    stat::average_exec_per_sec:     412345\nstat::new_units_added: 1\n";
        assert_eq!(rate(told), Some(412_345));
        assert_eq!(rate("Done 9 runs"), None);
        assert_eq!(rate("stat::average_exec_per_sec: many"), None);
    }
}
