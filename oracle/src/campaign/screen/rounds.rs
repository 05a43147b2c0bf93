//! What a screening leaves on the disk: a line for each round that was finished.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use hermitcrab::given_file::{self, Pipes};
use serde::{Deserialize, Serialize};

use super::lane::Piece;
use super::novelty::{Agreement, Chosen, agreement};
use crate::campaign::examine::Examined;
use crate::campaign::screened::{Counts, Told};
use crate::suite;

/// The name of the log inside a campaign's directory.
pub const ROUNDS: &str = "screen.jsonl";

/// A round that was finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its first place.
    pub from: u64,
    /// Where the next begins.
    pub to: u64,
    /// Which part of the places, as `1/4`; all of them without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// What was said.
    pub counts: Counts,
    /// Look-alikes and places with nothing, which nobody was asked about.
    pub left_out: u64,
    /// What went on into worlds.
    pub chosen: Vec<Chosen>,
}

impl Round {
    /// Counts what a piece gave.
    pub fn add(&mut self, piece: &Piece) {
        for one in &piece.screened {
            let (context, hermes, agent) = (one.context.word(), one.hermes, one.agent);
            let name = format!("{context} {} {}", hermes.word(), agent.word());
            *self.counts.entry(name).or_default() += 1;
        }
        self.left_out += piece.controls + piece.empty;
    }
}

/// The log of rounds.
pub struct Rounds {
    file: File,
    path: PathBuf,
}

impl Rounds {
    /// Goes on with a log, or begins one; and the rounds it holds.
    ///
    /// # Errors
    /// A line before its last is damaged, or it cannot be written.
    pub fn open(place: &Path) -> Result<(Self, Vec<Round>), String> {
        let path = place.join(ROUNDS);
        let (rounds, whole) = read(&path)?;
        let failed = |error: std::io::Error| format!("cannot open `{}`: {error}", path.display());
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(failed)?;
        file.set_len(whole).map_err(failed)?;
        Ok((Self { file, path }, rounds))
    }

    /// Appends a round.
    ///
    /// # Errors
    /// The disk.
    pub fn add(&mut self, round: &Round) -> Result<(), String> {
        let line = serde_json::to_string(round).map_err(|error| error.to_string())?;
        writeln!(self.file, "{line}")
            .map_err(|error| format!("cannot write `{}`: {error}", self.path.display()))
    }
}

/// The rounds of a campaign that was run before; none where nothing was screened.
///
/// # Errors
/// A line before its last is damaged.
pub fn of(place: &Path) -> Result<Vec<Round>, String> {
    read(&place.join(ROUNDS)).map(|(rounds, _)| rounds)
}

/// Whole lines, and how many bytes they are; a killed run may have left half a line.
fn read(path: &Path) -> Result<(Vec<Round>, u64), String> {
    let text = match given_file::text(path, suite::BYTES_MAX, Pipes::Refused) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| format!("cannot read `{}`: {error}", path.display()))?,
    };
    let whole = text.rfind('\n').map_or(0, |last| last + 1);
    let lines = text.get(..whole).unwrap_or_default().lines().zip(1..);
    let rounds = lines.map(|(line, number)| {
        serde_json::from_str(line)
            .map_err(|error| format!("line {number} of `{}` is damaged: {error}", path.display()))
    });
    Ok((rounds.collect::<Result<_, String>>()?, whole as u64))
}

/// All rounds, and what worlds showed of what went on into them.
#[must_use]
pub fn together<'e>(rounds: &[Round], examined: impl Fn(u64) -> Option<&'e Examined>) -> Told {
    let mut told = Told::default();
    let mut shown = BTreeSet::new();
    for round in rounds {
        told.add(&round.counts, round.left_out, round.chosen.len());
        for chosen in &round.chosen {
            let Some(seen) = examined(chosen.index) else {
                continue;
            };
            let keys = chosen.keys.iter();
            shown.extend(keys.filter(|key| key.is_shown_by(chosen, seen)));
            match agreement(chosen, seen) {
                Agreement::Agree => told.compared += 1,
                Agreement::Differ => {
                    told.compared += 1;
                    told.disagree.push(chosen.index);
                }
                Agreement::Unknown => {}
            }
        }
    }
    told.shown = shown.len() as u64;
    told
}

#[cfg(test)]
mod tests {
    use super::super::lane::Screened;
    use std::fs;

    use super::*;
    use crate::campaign::said::Said;
    use bisim_world::protocol::Context;

    fn round(from: u64) -> Round {
        let mut round = Round {
            from,
            to: from + 2,
            ..Round::default()
        };
        let one = |index, hermes| Screened {
            index,
            seed: 0,
            context: Context::Interactive,
            hermes,
            agent: Said::Ask,
        };
        round.add(&Piece {
            screened: vec![one(from, Said::Permit), one(from + 1, Said::Deny)],
            controls: 3,
            empty: 1,
        });
        round
    }

    #[test]
    fn a_log_cut_in_mid_line_keeps_its_whole_rounds_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, old) = Rounds::open(dir.path()).unwrap();
        assert_eq!(old, []);
        log.add(&round(0)).unwrap();
        log.add(&round(2)).unwrap();
        drop(log);
        let path = dir.path().join(ROUNDS);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.get(..text.len() - 9).unwrap()).unwrap();
        let (mut log, old) = Rounds::open(dir.path()).unwrap();
        assert_eq!(old, [round(0)]);
        log.add(&round(2)).unwrap();
        drop(log);
        assert_eq!(of(dir.path()).unwrap(), [round(0), round(2)]);
        fs::write(&path, format!("garbage\n{text}")).unwrap();
        let error = Rounds::open(dir.path()).err().unwrap();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn rounds_are_told_together() {
        let told = together(&[round(0), round(2)], |_| None);
        assert_eq!((told.commands, told.left_out), (4, 8));
        let text = told.render();
        assert!(
            text.contains("4 commands and what they do: lets 2 through, asks about 0, refuses 2"),
            "{text}"
        );
        assert!(
            text.contains("lets 0 through, asks about 4, refuses 0"),
            "{text}"
        );
    }
}
