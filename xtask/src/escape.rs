//! `cargo xtask escape-report`: run the escape suite and write its matrix.
//!
//! The page is what the suite saw on the machine it was made on; it is never
//! written by hand.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::cmd::{self, Passed};

const PAGE: &str = "docs/escape-matrix.md";
const MARK: &str = "MATRIX ";
const INTRODUCTION: &str = "# Escape matrix

Made by `cargo xtask escape-report`; do not edit. Each row is a probe of
`agent/sandbox/tests/it/escape/probes.pl` that tries one forbidden thing. With
everything in place all of them are held, and the allowed twin of each works.
Each column leaves one mechanism out: `held` means that another one stopped the
probe all the same, **through** that this mechanism is its single line of
defence on the machine the page was made on.
";

/// Runs the suite and writes the page.
pub fn run() -> Result<Passed> {
    let mut test = cmd::cargo();
    test.args(["test", "--package", "hermitcrab-sandbox", "--test", "it"]);
    test.args(["--", "--nocapture", "escape::a_second_mechanism_holds"]);
    let output = test.output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(MARK))
        .collect();
    ensure!(
        output.status.success() && rows.len() > 1,
        "the escape suite did not pass or could not run here:\n{text}"
    );
    let mut page = format!("{INTRODUCTION}\n");
    for (number, row) in rows.iter().enumerate() {
        writeln!(page, "| {row} |")?;
        if number == 0 {
            let columns = row.matches('|').count().saturating_add(1);
            writeln!(page, "|{}", "---|".repeat(columns))?;
        }
    }
    let single = rows
        .iter()
        .filter(|row| row.contains("**through**"))
        .count();
    writeln!(
        page,
        "\n{} probes; {single} of them have a single line of defence.",
        rows.len().saturating_sub(1)
    )?;
    let path = cmd::root().join(PAGE);
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} rows in {PAGE}", rows.len().saturating_sub(1));
    Ok(Passed::Yes)
}
