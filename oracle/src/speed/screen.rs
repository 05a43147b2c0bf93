//! The lane in which both guards are only asked, beside Hermes' guard alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bisim_world::protocol::Context;

use super::own_cpu;
use crate::campaign::screen::{Guard, HermesGuard, NoGuard, PIECE, deal, screen};
use crate::subject::{Processes, Starts};

/// How often each is measured.
const RUNS: u64 = 5;
/// The campaign whose places are asked about, past those with a single operator.
const SEED: u64 = 11;
const FROM: u64 = 1 << 20;
/// Commands that warm the plain loop's interpreter up.
const WARM: usize = 64;
/// Pieces without Hermes, which take no time beside the others.
const WITHOUT: u64 = 2;

/// What was seen.
pub(super) struct Lane {
    rows: Vec<Row>,
}

/// One run over the same commands.
#[derive(Clone, Copy)]
struct Row {
    /// Microseconds of the processor for a command: the whole lane, of this the oracle's
    /// own process, Hermes' guard in a plain loop, and the lane without Hermes.
    lane: f64,
    oracle: f64,
    bare: f64,
    without: f64,
}

/// Asks about the commands of a piece, five times, each time others.
pub(super) fn measure(starts: &Starts, processes: &Processes) -> Result<Lane, String> {
    let mut guard = HermesGuard::new(starts, processes);
    // The first world of a kind has its zygote import more, for all that follow.
    for context in Context::ALL {
        guard
            .say(context, vec!["true".to_owned()])
            .map_err(|error| error.to_string())?;
    }
    let rows = (0..RUNS)
        .map(|run| one(&mut guard, run))
        .collect::<Result<_, String>>()?;
    Ok(Lane { rows })
}

fn one(guard: &mut HermesGuard, run: u64) -> Result<Row, String> {
    let from = FROM + run * PIECE * (WITHOUT + 1);
    let places = from..from + PIECE;
    let mut bare = 0;
    // Whichever comes first finds other things in the caches.
    if run.is_multiple_of(2) {
        bare = plain(guard, places.clone())?;
    }
    let (worlds, own) = (guard.cpu_us(), own_cpu()?);
    let piece = screen(SEED, places.clone(), None, guard).map_err(|error| error.to_string())?;
    let own = own_cpu()?.saturating_sub(own);
    let worlds = guard.cpu_us().saturating_sub(worlds);
    if !run.is_multiple_of(2) {
        bare = plain(guard, places)?;
    }
    let before = own_cpu()?;
    let mut without = 0;
    for part in 1..=WITHOUT {
        let from = from + part * PIECE;
        let piece = screen(SEED, from..from + PIECE, None, &mut NoGuard);
        without += piece.map_err(|error| error.to_string())?.screened.len();
    }
    let stub = own_cpu()?.saturating_sub(before);
    let each = piece.screened.len() as f64;
    let oracle = own.as_secs_f64() * 1e6 / each;
    let row = Row {
        lane: worlds as f64 / each + oracle,
        oracle,
        bare: bare as f64 / each,
        without: stub.as_secs_f64() * 1e6 / without as f64,
    };
    eprintln!(
        "{each} commands: {:.0} us of processor time each, {:.0} of them the oracle's; {:.0} in a plain loop; {:.1} without Hermes",
        row.lane, row.oracle, row.bare, row.without
    );
    Ok(row)
}

/// Microseconds of the processor for the same commands in a plain loop.
fn plain(guard: &mut HermesGuard, places: std::ops::Range<u64>) -> Result<u64, String> {
    let batches: BTreeMap<_, _> = deal(SEED, places, None, &mut Default::default());
    batches
        .into_iter()
        .map(|(context, batch)| guard.bare(context, batch.commands, WARM))
        .sum::<Result<u64, _>>()
        .map_err(|error| error.to_string())
}

/// The least, the middle and the greatest of a figure.
fn spread(rows: &[Row], of: impl Fn(&Row) -> f64) -> (f64, f64, f64) {
    let mut all: Vec<f64> = rows.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    let at = |place: usize| all.get(place).copied().unwrap_or(0.0);
    (at(0), at(all.len() / 2), at(all.len().saturating_sub(1)))
}

impl Lane {
    pub(super) fn tell(&self, text: &mut String) {
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "\n## Commands that are only asked about\n\n\
             The lane of `bisim fuzz --screen`: generated commands, Hermes' guard by the entry its \
             terminal tool uses, the agent's core, and the comparison, no world for each. The plain \
             loop has Hermes' guard alone, over the same commands in the same interpreter. {} runs of \
             {PIECE} places, the two one after the other and the other way round.\n\n\
             | | least | median | greatest |\n|---|--:|--:|--:|\n",
            self.rows.len()
        );
        let mut row = |name: &str, digits: usize, of: &dyn Fn(&Row) -> f64| {
            let (least, middle, greatest) = spread(&self.rows, of);
            let _ = writeln!(
                text,
                "| {name} | {least:.digits$} | {middle:.digits$} | {greatest:.digits$} |"
            );
        };
        row("µs of processor time for a command, whole lane", 0, &|r| {
            r.lane
        });
        row("of this the oracle's process", 1, &|r| r.oracle);
        row("µs in a plain loop", 0, &|r| r.bare);
        row("the harness adds, % of Hermes' own time", 1, &|r| {
            (r.lane / r.bare - 1.0) * 100.0
        });
        row("commands a second of processor time", 0, &|r| 1e6 / r.lane);
        row("the same without Hermes", 0, &|r| 1e6 / r.without);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_told_by_its_middle_run_and_the_ends() {
        let row = |lane| Row {
            lane,
            oracle: 10.0,
            bare: 1000.0,
            without: 20.0,
        };
        let mut text = String::new();
        let rows = vec![row(1100.0), row(1050.0), row(2000.0)];
        Lane { rows }.tell(&mut text);
        assert!(
            text.contains("of Hermes' own time | 5.0 | 10.0 | 100.0 |"),
            "{text}"
        );
        assert!(
            text.contains("| commands a second of processor time | 500 | 909 | 952 |"),
            "{text}"
        );
        assert!(
            text.contains("| the same without Hermes | 50000 | 50000 | 50000 |"),
            "{text}"
        );
    }
}
