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
/// How many columns of the matrix leave out many mechanisms at once.
const ALL_COLUMNS: usize = 2;
const WHY_MARK: &str = "WHY ";
const ORDINARY_MARK: &str = "ORDINARY ";
const TERMINALS_MARK: &str = "TERMINALS ";
const STAYS_MARK: &str = "STAYS ";
const LIMITS_MARK: &str = "LIMITS ";
const FENCE_MARK: &str = "FENCE ";
const INTRODUCTION: &str = "# Escape matrix

Made by `cargo xtask escape-report`; do not edit. Each row is a probe of
`agent/sandbox/tests/it/escape/probes.pl` that tries one forbidden thing. With
everything in place all of them are held, and the allowed twin of each works.
Each column leaves one mechanism out: `held` means that another one stopped the
probe all the same, **through** that this mechanism is its single line of
defence on the machine the page was made on. What fails for another reason than that
somebody says no (a wrong argument, nothing there) counts as neither, and fails the test.
The last two columns leave all of them out at once. A probe that is held by each column
alone and through in one of these is held by at least two of the mechanisms.

What is left out is left out of one command's sandbox. Without its user namespace it is in
that of the zygotes, which has no id of the machine's root either; without its private root
it sees all of the machine's but what lies in its own /proc, /tmp and shared memory; without
its process namespace it has the machine's /proc. Four mechanisms are never left out: without
mounts of its own no sandbox can be built; without copy-on-write there is nothing a probe
could break, only effects that come at once; contained paths are how the agent opens files,
not the command; and without id maps views are copied, over which all of this is run as well.
";
const STAYS: &str = "
## What nothing here could let through

Held in every column, also where all is left out: what holds them is none of the columns.

| probe | what holds it |
|---|---|
";
const WHY: &str = "
## Why there is no second line

Of each probe that got through above: why nothing else stops it, and what is known of the
harm behind it, which `agent/sandbox/tests/it/escape/behind.rs` tries where it can be tried.

| probe | why |
|---|---|
";
const ORDINARY: &str = "
## Of an ordinary user

The whole is run by an ordinary user as well, whose commands have that user's id outside,
and no capability in any case, because only root's programs keep one when they start. These rows differ:

";
const TERMINALS: &str = "
## The terminal of whoever started the agent

The agent is started below a terminal here, which controls it; the command has no input, a
terminal of its own, or the agent's as its input. Each probe
(`agent/sandbox/tests/it/escape/terminals.pl`) is through without a sandbox. The kernel gives
nobody a terminal that controls others but whoever has a capability over the machine, and its
name leads to another one in the command's own /dev: these two are held in every column.

";
const LIMITS: &str = "
## What would be used up

Each row asks for more than a limit (`agent/sandbox/tests/it/escape/exhaustion.rs`
and `.pl`), with nothing left out first. Room and names are held by the size of
each private file system, which cannot be left out.
";
const FENCE: &str = "
## Landlock alone

Each row is a right that Landlock handles, tried by a thread with nothing else around it
(`agent/sandbox/tests/it/fence.rs`): allowed inside, refused outside, and not refused
outside without it. `since version` is the one that began to refuse it: on an older kernel
it is **through** here, and the rest of the sandbox alone stops it.
";

/// Runs the suite and writes the page.
pub fn run() -> Result<Passed> {
    let mut test = cmd::cargo();
    test.args(["test", "--package", "hermitcrab-sandbox", "--test", "it"]);
    test.args(["--", "--nocapture", "a_second_mechanism_holds"]);
    test.arg("landlock_alone");
    let output = test.output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let probes = rows(&text, MARK);
    let limits = rows(&text, LIMITS_MARK);
    let fence = rows(&text, FENCE_MARK);
    ensure!(
        output.status.success() && probes.len() > 1 && limits.len() > 1 && fence.len() > 1,
        "the escape suite did not pass or could not run here:\n{text}"
    );
    let mut page = format!("{INTRODUCTION}\n");
    table(&mut page, &probes)?;
    let alone: Vec<_> = probes.iter().map(|row| without_all(row)).collect();
    counted(&mut page, &alone, "probes", "have a single line of defence")?;
    page.push_str(WHY);
    for row in rows(&text, WHY_MARK) {
        writeln!(page, "| {row} |")?;
    }
    page.push_str(STAYS);
    let stays = rows(&text, STAYS_MARK);
    let unknown = stays.iter().find(|row| row.ends_with("| unknown"));
    ensure!(
        unknown.is_none(),
        "what holds this probe is not said in `single_line.rs`: {unknown:?}"
    );
    for row in stays {
        writeln!(page, "| {row} |")?;
    }
    let ordinary = rows(&text, ORDINARY_MARK);
    ensure!(
        ordinary.len() == probes.len(),
        "the escape suite was not run by an ordinary user, or by root:\n{text}"
    );
    page.push_str(ORDINARY);
    let differ = |row: &&&str| probes.first() == Some(*row) || !probes.contains(*row);
    let differing: Vec<_> = ordinary.iter().filter(differ).copied().collect();
    table(&mut page, &differing)?;
    let terminals = rows(&text, TERMINALS_MARK);
    ensure!(terminals.len() > 1, "no terminal could be had:\n{text}");
    page.push_str(TERMINALS);
    table(&mut page, &terminals)?;
    page.push_str(LIMITS);
    page.push('\n');
    table(&mut page, &limits)?;
    counted(
        &mut page,
        &limits,
        "probes",
        "have a single line of defence",
    )?;
    page.push_str(FENCE);
    page.push('\n');
    table(&mut page, &fence)?;
    counted(
        &mut page,
        &fence,
        "rights",
        "through, because this kernel has an older version",
    )?;
    let path = cmd::root().join(PAGE);
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    let tables = [probes, limits, fence];
    let count: usize = tables.iter().map(|rows| rows.len().saturating_sub(1)).sum();
    println!("{count} rows in {PAGE}");
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
    Ok(())
}

/// The columns that leave one mechanism out: not the last, which leave out many.
fn without_all(row: &str) -> &str {
    row.rsplitn(ALL_COLUMNS.saturating_add(1), " | ")
        .last()
        .unwrap_or(row)
}

/// How many rows there are, and in how many something got through.
fn counted(page: &mut String, rows: &[&str], what: &str, through: &str) -> Result<()> {
    let some = rows
        .iter()
        .filter(|row| row.contains("**through**"))
        .count();
    let all = rows.len().saturating_sub(1);
    writeln!(page, "\n{all} {what}; {some} of them {through}.")?;
    Ok(())
}
