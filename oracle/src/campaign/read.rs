//! Campaigns that were run before: read back, and put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hermitcrab::screen::on_one_line;
use serde::{Deserialize, Serialize};

use super::examine::{Examined, Fate};
use super::keep::{self, Deal, Log, Part, of_no_use};
use super::made_from::{Line, MadeFrom, Mark};
use super::screen::{self, Round};
use super::tally::Tally;
use crate::cli::Shard;
use crate::exit::{self, Unwritten};
use crate::generate::{Specimen, Target};
use crate::report::json::text_of;
use crate::report::publish::quoted;

/// What a page shows of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Which campaign, in numbers.
    pub headline: String,
    /// How many variants of each class had which fate.
    pub classes: BTreeMap<&'static str, BTreeMap<Fate, u64>>,
    /// The same of each operator, by the class it is of; commands are made with operators.
    pub operators: BTreeMap<&'static str, BTreeMap<&'static str, BTreeMap<Fate, u64>>>,
    /// The smallest with an unsafe verdict.
    pub findings: Vec<Found>,
    /// Differences without a name that are not unsafe, by the smallest.
    pub differences: Vec<Found>,
    /// What Hermes let through unasked, by kind.
    pub escapes: Vec<Found>,
}

/// One thing a campaign came upon: what it is, how often, and the command that shows it again,
/// where one does.
pub type Found = (String, u64, Option<String>);

/// The first line of a log.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    seed: u64,
    #[serde(default)]
    target: Target,
    /// Which way of dealing it was.
    #[serde(default)]
    variants: u64,
}

impl Head {
    fn deal(self) -> Deal {
        if self.variants == Deal::Screen.number() {
            Deal::Screen
        } else {
            Deal::Worlds(self.target)
        }
    }
}

/// The head of `campaign.json`.
#[derive(Debug, Deserialize)]
struct Against {
    hermes: String,
    /// Which part of the campaign it is, if it is not the whole.
    #[serde(default)]
    shard: Option<Shard>,
    /// Whether somebody stopped it.
    #[serde(default)]
    stopped: bool,
    /// The commit it was made from, if it says that.
    #[serde(default)]
    commit: String,
    tally: Counted,
}

/// How many lines a log had when these were counted.
#[derive(Debug, Deserialize)]
struct Counted {
    all: BTreeMap<String, u64>,
}

/// Reads a campaign's directory for a page.
///
/// # Errors
/// There is no log, or it is damaged before its last line.
pub fn read(place: &Path) -> Result<Seen, String> {
    let (Head { seed, target, .. }, examined, made_from) = log(place)?;
    let mut tally = Tally::of(target);
    let mut operators: BTreeMap<_, BTreeMap<_, BTreeMap<Fate, u64>>> = BTreeMap::new();
    for (seen, _) in &examined {
        tally.add(seen);
        let Some(Specimen::Command(variant)) = Specimen::named(&seen.variant) else {
            continue;
        };
        let used: BTreeSet<_> = variant
            .chain
            .iter()
            .map(|link| link.operator)
            .map(|one| (one.class.as_str(), one.name))
            .collect();
        for (class, name) in used {
            let fates = operators.entry(class).or_default().entry(name).or_default();
            *fates.entry(seen.fate).or_default() += 1;
        }
    }
    let made_from = made_from.told().map(|told| format!("; {told}"));
    let line = tally.line() + &made_from.unwrap_or_default();
    Ok(Seen {
        headline: match target {
            Target::Commands => format!("seed {seed}: {line}"),
            Target::Paths
            | Target::Sequences
            | Target::Races
            | Target::Crashes
            | Target::Plans
            | Target::BenignTools
            | Target::Conversations => {
                format!("{}, seed {seed}: {line}", target.word())
            }
        },
        classes: tally
            .classes
            .iter()
            .map(|(class, counts)| (*class, counts.by_fate()))
            .collect(),
        operators,
        findings: found(&tally.findings, Some("cargo bisim replay ")),
        differences: found(&tally.differences, Some("cargo bisim replay ")),
        escapes: found(&tally.escapes, None),
    })
}

/// The most frequent first.
fn found(counts: &BTreeMap<String, u64>, replay: Option<&str>) -> Vec<Found> {
    let mut found: Vec<Found> = counts
        .iter()
        .map(|(name, count)| {
            let line = replay.map(|replay| format!("{replay}{}", quoted(name)));
            (name.clone(), *count, line)
        })
        .collect();
    found.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    found
}

/// Puts the parts of one campaign together in a new directory.
///
/// # Errors
/// A part cannot be read, its log is not what was counted, the parts are of different
/// campaigns or releases, two of them disagree about a variant, or the directory holds a
/// campaign or cannot be written.
pub fn merge(parts: &[PathBuf], place: &Path) -> Result<Tally, Unwritten> {
    if is_campaign(place) {
        return Err(of_no_use(format!(
            "`{}` holds a campaign already, which is not written over; name another --out",
            place.display()
        )));
    }
    let parts = Parts::read(parts).map_err(of_no_use)?;
    let written = |message: String| Unwritten {
        message,
        code: exit::INTERNAL,
    };
    fs::create_dir_all(place).map_err(|error| {
        let cannot = format!("cannot make `{}`", place.display());
        Unwritten::new(&cannot, &error, "directory with --out")
    })?;
    let (deal, Head { seed, target, .. }) = (parts.head.deal(), parts.head);
    let mut log = Log::begin_at((place, "--out"), deal, seed)?;
    let mut tally = Tally::of(target);
    // Those of which nobody knows the commit first: all others are of one.
    for commit in parts.commits() {
        log.goes_on_from(commit);
        for (seen, _) in parts.all.values().filter(|(_, of)| of == commit) {
            log.add(seen).map_err(written)?;
            tally.add(seen);
        }
        log.mark().map_err(written)?;
    }
    if deal == Deal::Screen {
        tally.screen = Some(screen::together(&parts.rounds, |index| {
            parts.all.get(&index).map(|(seen, _)| seen)
        }));
    }
    tally.missing = missing(&parts.shards);
    tally.stopped = parts.stopped;
    tally.made_from = log.made_from().clone();
    let whole = Part {
        seed,
        shard: None,
        is_stopped: !tally.stopped.is_empty(),
        made_from: log.made_from().clone(),
    };
    keep::summary(place, whole, &parts.hermes, &tally).map_err(written)?;
    Ok(tally)
}

/// The parts of one campaign as they were read.
struct Parts {
    head: Head,
    hermes: String,
    /// The commit they were made from, if one of them says it.
    commit: String,
    shards: Vec<Option<Shard>>,
    /// Those that somebody stopped.
    stopped: BTreeSet<String>,
    /// Each with the commit it was made from, if that is known.
    all: BTreeMap<u64, Dealt>,
    rounds: Vec<Round>,
}

impl Parts {
    /// None, where something is of it, and the one that is known.
    fn commits(&self) -> BTreeSet<&str> {
        let all = self.all.values().map(|(_, commit)| commit.as_str());
        let known = Some(self.commit.as_str()).filter(|commit| !commit.is_empty());
        all.chain(known).collect()
    }

    fn read(parts: &[PathBuf]) -> Result<Self, String> {
        let (mut seeds, mut releases) = (BTreeSet::new(), BTreeSet::new());
        let (mut read, mut shards, mut stopped) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut commits = BTreeSet::new();
        for part in parts {
            let (head, mut examined, made_from) = log(part)?;
            let against = against(part)?;
            against.has_counted(part, &examined)?;
            seeds.insert(head);
            releases.insert(against.hermes);
            let of = on_one_line(&against.commit);
            // Logs say it line by line since one may be gone on with from another commit.
            if made_from.known().next().is_none() {
                examined
                    .iter_mut()
                    .for_each(|(_, from)| from.clone_from(&of));
            }
            commits.extend(made_from.known().map(on_one_line));
            commits.insert(of);
            shards.push(against.shard);
            if against.stopped {
                stopped.insert(on_one_line(&part.to_string_lossy()));
            }
            read.push((part, examined));
        }
        // Said before what follows from it: variants of different campaigns have nothing in
        // common.
        let (Some(head), 1, Some(hermes), 1) =
            (seeds.first(), seeds.len(), releases.first(), releases.len())
        else {
            let told: Vec<String> = seeds
                .iter()
                .map(|head| format!("{} with seed {}", head.target.word(), head.seed))
                .collect();
            return Err(format!(
                "the parts are of different campaigns: {}; Hermes {}",
                told.join(", "),
                on_one_line(&Vec::from_iter(releases).join(", "))
            ));
        };
        commits.remove("");
        if commits.len() > 1 {
            return Err(format!(
                "the parts were made from different commits: {}; run all parts of one commit",
                Vec::from_iter(commits).join(", ")
            ));
        }
        let mut all: BTreeMap<u64, Dealt> = BTreeMap::new();
        for (part, examined) in read {
            for (seen, mut from) in examined {
                if let Some((other, also)) = all.get(&seen.index) {
                    if *other != seen {
                        return Err(format!(
                            "`{}` disagrees with another part about variant {} of the campaign",
                            part.display(),
                            seen.index
                        ));
                    }
                    if from.is_empty() {
                        from.clone_from(also);
                    }
                }
                all.insert(seen.index, (seen, from));
            }
        }
        let mut rounds: Vec<Round> = Vec::new();
        if head.deal() == Deal::Screen {
            for part in parts {
                for round in screen::rounds_of(part)? {
                    if !rounds.contains(&round) {
                        rounds.push(round);
                    }
                }
            }
        }
        Ok(Self {
            head: *head,
            hermes: hermes.clone(),
            commit: commits.into_iter().next().unwrap_or_default(),
            shards,
            stopped,
            all,
            rounds,
        })
    }
}

/// The parts nobody brought, where none brought the whole: a lost machine must not look like
/// one that found nothing.
fn missing(shards: &[Option<Shard>]) -> BTreeSet<String> {
    let Some(shards) = shards.iter().copied().collect::<Option<Vec<Shard>>>() else {
        return BTreeSet::new();
    };
    let all = shards
        .iter()
        .flat_map(|shard| (1..=shard.parts).map(|part| Shard { part, ..*shard }));
    all.filter(|shard| !shards.contains(shard))
        .map(|shard| format!("{}/{}", shard.part, shard.parts))
        .collect()
}

/// Whether a directory holds a campaign.
#[must_use]
pub fn is_campaign(place: &Path) -> bool {
    place.join(keep::LOG).exists()
}

/// A variant, and the commit it was made from, empty where that is not known.
type Dealt = (Examined, String);

/// The lines of a log. A killed run may have left half a line at the end.
fn log(place: &Path) -> Result<(Head, Vec<Dealt>, MadeFrom), String> {
    let path = place.join(keep::LOG);
    let text = text_of(&path)?;
    let damaged = |number: usize, error: serde_json::Error| {
        let why = on_one_line(&error.to_string());
        format!("line {number} of `{}` is damaged: {why}", path.display())
    };
    let mut lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .zip(1..);
    let (head, _) = lines
        .next()
        .ok_or_else(|| format!("`{}` is empty", path.display()))?;
    let head: Head = serde_json::from_str(head).map_err(|error| damaged(1, error))?;
    let (mut examined, mut made_from) = (Vec::new(), MadeFrom::default());
    let (mut last, mut done) = (String::new(), BTreeSet::new());
    for (line, number) in lines {
        match Line::read(line.trim_end()).map_err(|error| damaged(number, error))? {
            Line::Mark(Mark { commit }) => {
                last = on_one_line(&commit);
                made_from.count(&last, 0);
            }
            // Counted once, as by whoever goes on with it.
            Line::Seen(seen) if done.insert(seen.index) => {
                made_from.count(&last, 1);
                examined.push((*seen, last.clone()));
            }
            Line::Seen(_) => {}
        }
    }
    Ok((head, examined, made_from))
}

fn against(place: &Path) -> Result<Against, String> {
    let path = place.join(keep::SUMMARY);
    text_of(&path)
        .and_then(|text| {
            serde_json::from_str::<Against>(&text).map_err(|error| {
                format!("`{}`: {}", path.display(), on_one_line(&error.to_string()))
            })
        })
        .map_err(|why| {
            format!(
                "{why}; a part is the --report directory of a `fuzz` that came to its end, to which `fuzz --resume` brings it"
            )
        })
}

impl Against {
    /// What a log lost on its way here may be what was found; one that goes on behind what was
    /// counted is of a run that was killed.
    fn has_counted(&self, place: &Path, examined: &[Dealt]) -> Result<(), String> {
        let counted: u64 = self.tally.all.values().sum();
        if counted == examined.len() as u64 {
            return Ok(());
        }
        Err(format!(
            "`{}` counts {counted} variants, and `{}` holds {}; bring the whole part again, or bring it to its end with `fuzz --resume`",
            place.join(keep::SUMMARY).display(),
            place.join(keep::LOG).display(),
            examined.len()
        ))
    }
}

#[cfg(test)]
mod tests;
