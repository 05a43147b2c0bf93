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
const LIMITS_MARK: &str = "LIMITS ";
const INTRODUCTION: &str = "# Escape matrix

Made by `cargo xtask escape-report`; do not edit. Each row is a probe of
`agent/sandbox/tests/it/escape/probes.pl` that tries one forbidden thing. With
everything in place all of them are held, and the allowed twin of each works.
Each column leaves one mechanism out: `held` means that another one stopped the
probe all the same, **through** that this mechanism is its single line of
defence on the machine the page was made on.
";
const LIMITS: &str = "
## What would be used up

Each row asks for more than a limit (`agent/sandbox/tests/it/escape/exhaustion.rs`
and `.pl`), with nothing left out first. Room and names are held by the size of
each private file system, which cannot be left out.
";

/// Runs the suite and writes the page.
pub fn run() -> Result<Passed> {
    let mut test = cmd::cargo();
    test.args(["test", "--package", "hermitcrab-sandbox", "--test", "it"]);
    test.args(["--", "--nocapture", "a_second_mechanism_holds"]);
    let output = test.output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let probes = rows(&text, MARK);
    let limits = rows(&text, LIMITS_MARK);
    ensure!(
        output.status.success() && probes.len() > 1 && limits.len() > 1,
        "the escape suite did not pass or could not run here:\n{text}"
    );
    let mut page = format!("{INTRODUCTION}\n");
    table(&mut page, &probes)?;
    page.push_str(LIMITS);
    page.push('\n');
    table(&mut page, &limits)?;
    let path = cmd::root().join(PAGE);
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    let count = probes.len().saturating_add(limits.len());
    println!("{} rows in {PAGE}", count.saturating_sub(2));
    Ok(Passed::Yes)
}

/// The lines of the suite that belong to one table; the first names the columns.
fn rows<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    // The name of a test may stand before the first line of its output.
    text.lines()
        .filter_map(|line| line.split_once(mark))
        .map(|(_, row)| row)
        .collect()
}

fn table(page: &mut String, rows: &[&str]) -> Result<()> {
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
    Ok(())
}
