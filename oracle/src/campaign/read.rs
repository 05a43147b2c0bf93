//! Campaigns that were run before: read back, and put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hermitcrab::screen::on_one_line;
use serde::{Deserialize, Serialize};

use super::examine::{Examined, Fate};
use super::keep::{self, Deal, Log};
use super::screen::{self, Round};
use super::tally::Tally;
use crate::cli::Shard;
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
}

/// Reads a campaign's directory for a page.
///
/// # Errors
/// There is no log, or it is damaged before its last line.
pub fn read(place: &Path) -> Result<Seen, String> {
    let (Head { seed, target, .. }, examined) = log(place)?;
    let mut tally = Tally::of(target);
    let mut operators: BTreeMap<_, BTreeMap<_, BTreeMap<Fate, u64>>> = BTreeMap::new();
    for seen in &examined {
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
    Ok(Seen {
        headline: match target {
            Target::Commands => format!("seed {seed}: {}", tally.line()),
            Target::Paths
            | Target::Sequences
            | Target::Races
            | Target::Crashes
            | Target::Plans
            | Target::BenignTools
            | Target::Conversations => {
                format!("{}, seed {seed}: {}", target.word(), tally.line())
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
/// A part cannot be read, the parts are of different campaigns or releases,
/// two of them disagree about a variant, or the directory holds a campaign.
pub fn merge(parts: &[PathBuf], place: &Path) -> Result<Tally, String> {
    if is_campaign(place) {
        return Err(format!(
            "`{}` holds a campaign already, which is not written over; name another --out",
            place.display()
        ));
    }
    let mut all: BTreeMap<u64, Examined> = BTreeMap::new();
    let (mut seeds, mut releases) = (BTreeSet::new(), BTreeSet::new());
    let (mut read, mut shards) = (Vec::new(), Vec::new());
    for part in parts {
        let (head, examined) = log(part)?;
        seeds.insert(head);
        let against = against(part)?;
        releases.insert(against.hermes);
        shards.push(against.shard);
        read.push((part, examined));
    }
    // Said before what follows from it: variants of different campaigns have nothing in common.
    let (Some(seed), 1, Some(hermes), 1) =
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
    for (part, examined) in read {
        for seen in examined {
            if let Some(other) = all.get(&seen.index)
                && *other != seen
            {
                return Err(format!(
                    "`{}` disagrees with another part about variant {} of the campaign",
                    part.display(),
                    seen.index
                ));
            }
            all.insert(seen.index, seen);
        }
    }
    let io = |error: std::io::Error| format!("cannot make `{}`: {error}", place.display());
    fs::create_dir_all(place).map_err(io)?;
    let (deal, Head { seed, target, .. }) = (seed.deal(), *seed);
    let mut log = Log::open(place, deal, seed, false).map_err(|why| why.message)?;
    let mut tally = Tally::of(target);
    for seen in all.values() {
        log.add(seen)?;
        tally.add(seen);
    }
    if deal == Deal::Screen {
        let mut rounds: Vec<Round> = Vec::new();
        for part in parts {
            for round in screen::rounds_of(part)? {
                if !rounds.contains(&round) {
                    rounds.push(round);
                }
            }
        }
        tally.screen = Some(screen::together(&rounds, |index| all.get(&index)));
    }
    tally.missing = missing(&shards);
    keep::summary(place, (seed, None), hermes, &tally)?;
    Ok(tally)
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

/// The lines of a log. A killed run may have left half a line at the end.
fn log(place: &Path) -> Result<(Head, Vec<Examined>), String> {
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
    let examined = lines
        .map(|(line, number)| serde_json::from_str(line).map_err(|error| damaged(number, error)))
        .collect::<Result<_, _>>()?;
    Ok((head, examined))
}

fn against(place: &Path) -> Result<Against, String> {
    let path = place.join(keep::SUMMARY);
    let text = text_of(&path)?;
    serde_json::from_str::<Against>(&text)
        .map_err(|error| format!("`{}`: {}", path.display(), on_one_line(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examined(index: u64, fate: Fate) -> Examined {
        Examined {
            fate,
            ..Examined::of(index, "delete-file+env~0".to_owned())
        }
    }

    fn part(dir: &Path, name: &str, seed: u64, seen: &[(u64, Fate)]) -> PathBuf {
        let place = dir.join(name);
        fs::create_dir(&place).unwrap();
        let mut log = Log::open(&place, Deal::Worlds(Target::Commands), seed, false).unwrap();
        let mut tally = Tally::default();
        for (index, fate) in seen {
            let seen = examined(*index, *fate);
            log.add(&seen).unwrap();
            tally.add(&seen);
        }
        keep::summary(&place, (seed, None), "0.19.0", &tally).unwrap();
        place
    }

    #[test]
    fn a_part_that_is_not_there_is_told_and_is_no_pass() {
        let dir = tempfile::tempdir().unwrap();
        let one = part(dir.path(), "1", 7, &[(0, Fate::HermesSilent)]);
        let two = part(dir.path(), "2", 7, &[(1, Fate::HermesStopped)]);
        for (place, number) in [(&one, 1), (&two, 2)] {
            let shard = Some(Shard {
                part: number,
                parts: 3,
            });
            keep::summary(place, (7, shard), "0.19.0", &Tally::default()).unwrap();
        }
        let tally = merge(&[one.clone(), two.clone()], &dir.path().join("a")).unwrap();
        assert!(
            tally.render().contains("part 3/3 is missing"),
            "{}",
            tally.render()
        );
        assert_eq!(tally.exit(), crate::exit::INCONCLUSIVE);
        // Who brings the whole lacks nothing.
        keep::summary(&two, (7, None), "0.19.0", &Tally::default()).unwrap();
        let tally = merge(&[one, two], &dir.path().join("b")).unwrap();
        assert_eq!(tally.exit(), crate::exit::CONFORM);
    }

    #[test]
    fn the_parts_of_a_campaign_are_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let one = part(
            dir.path(),
            "1",
            7,
            &[(0, Fate::HermesSilent), (2, Fate::NoEffect)],
        );
        let two = part(
            dir.path(),
            "2",
            7,
            &[(1, Fate::HermesStopped), (2, Fate::NoEffect)],
        );
        let out = dir.path().join("all");
        let tally = merge(&[one.clone(), two], &out).unwrap();
        assert_eq!(tally.all.valid(), 2);
        assert_eq!(tally.all.of(Fate::NoEffect), 1, "counted once");
        assert!(is_campaign(&out));
        let seen = read(&out).unwrap();
        assert!(
            seen.headline.starts_with("seed 7: 3 variants"),
            "{}",
            seen.headline
        );
        assert_eq!(
            seen.classes
                .get("wrapper")
                .and_then(|fates| fates.get(&Fate::HermesSilent)),
            Some(&1)
        );
        let again = merge(&[one], &out).unwrap_err();
        assert!(again.contains("name another --out"), "{again}");
    }

    #[test]
    fn other_campaigns_and_contradictions_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let one = part(dir.path(), "1", 7, &[(0, Fate::HermesSilent)]);
        // It is said that it is another one, and not that it disagrees.
        let other = part(dir.path(), "2", 8, &[(0, Fate::HermesStopped)]);
        let against = part(dir.path(), "3", 7, &[(0, Fate::HermesStopped)]);
        let out = dir.path().join("all");
        for (parts, expected) in [
            (
                vec![one.clone(), other],
                "different campaigns: commands with seed 7, commands with seed 8; Hermes",
            ),
            (vec![one, against], "disagrees"),
            (vec![dir.path().join("none")], "cannot read"),
        ] {
            let why = merge(&parts, &out).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    /// The counts of a campaign as its reports tell them: by fate, and what was found.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Told {
        wrapper: BTreeMap<String, u64>,
        found: [BTreeMap<String, u64>; 3],
    }

    fn counts(value: &serde_json::Value) -> BTreeMap<String, u64> {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn by_summary(place: &Path) -> Told {
        let text = fs::read_to_string(place.join(keep::SUMMARY)).unwrap();
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        let tally = &told["tally"];
        assert_eq!(counts(&tally["all"]), counts(&tally["classes"]["wrapper"]));
        Told {
            wrapper: counts(&tally["all"]),
            found: ["findings", "differences", "escapes"].map(|what| counts(&tally[what])),
        }
    }

    fn by_page(place: &Path) -> Told {
        use crate::report::html::{Page, render, tests::unpack};
        let campaign = serde_json::to_value(read(place).unwrap()).unwrap();
        let page = Page {
            made: "2026-01-02",
            summary: &crate::result::Summary::default(),
            results: &[],
            vectors: (&Default::default(), &Default::default()),
            history: &[],
            campaigns: &[campaign],
        };
        let page = render(&page).unwrap();
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let data = unpack(rest.split_once('<').unwrap().0);
        let told = &data["campaigns"][0];
        let classes = &told["classes"]["wrapper"];
        assert_eq!(
            counts(&told["operators"]["wrapper"]["env"]),
            counts(classes)
        );
        Told {
            wrapper: counts(classes),
            found: ["findings", "differences", "escapes"].map(|what| {
                let found: Vec<Found> = serde_json::from_value(told[what].clone()).unwrap();
                found.into_iter().map(|(name, n, _)| (name, n)).collect()
            }),
        }
    }

    #[test]
    fn a_campaign_and_its_merged_parts_tell_the_same_in_every_report() {
        const FATES: [Fate; 14] = [
            Fate::NotHere,
            Fate::NoEffect,
            Fate::ControlFired,
            Fate::ControlHeld,
            Fate::HermesSilent,
            Fate::HermesStopped,
            Fate::HermesInert,
            Fate::AgentUnsafe,
            Fate::Served,
            Fate::Differs,
            Fate::NoPlan,
            Fate::PlanStopped,
            Fate::PlanDone,
            Fate::Inconclusive,
        ];
        let odd = "an \"odd\" <name> & \u{1b}[31m";
        let mut told = Told::default();
        let mut all = Vec::new();
        for (place, fate) in FATES.into_iter().enumerate() {
            let word = serde_json::to_value(fate).unwrap();
            for number in 0..=place % 4 {
                let index = u64::try_from(all.len()).unwrap();
                let mut seen = examined(index, fate);
                // Some have been made smaller, others not.
                let smallest = (number > 0).then(|| format!("delete-file+env~{number}"));
                let name = smallest.clone().unwrap_or(seen.variant.clone());
                let found = match fate {
                    Fate::AgentUnsafe => Some((0, name)),
                    Fate::Differs => Some((1, name)),
                    Fate::HermesSilent => {
                        seen.bucket = Some(odd.to_owned());
                        Some((2, odd.to_owned()))
                    }
                    _ => None,
                };
                seen.smallest = smallest;
                if let Some((what, name)) = found {
                    *told.found[what].entry(name).or_default() += 1;
                }
                let word = word.as_str().unwrap().to_owned();
                *told.wrapper.entry(word).or_default() += 1;
                all.push(seen);
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let keep = |name: &str, chosen: &[&Examined]| {
            let place = dir.path().join(name);
            let deal = Deal::Worlds(Target::Commands);
            fs::create_dir(&place).unwrap();
            let mut log = Log::open(&place, deal, 7, false).unwrap();
            let mut tally = Tally::default();
            for seen in chosen {
                log.add(seen).unwrap();
                tally.add(seen);
            }
            keep::summary(&place, (7, None), "0.19.0", &tally).unwrap();
            (place, tally)
        };
        let every = |step: usize, from: usize| -> Vec<&Examined> {
            all.iter().skip(from).step_by(step).collect()
        };
        let (whole, tally) = keep("whole", &every(1, 0));
        let parts = [keep("1", &every(2, 0)).0, keep("2", &every(2, 1)).0];
        let merged = dir.path().join("merged");
        let together = merge(&parts, &merged).unwrap();
        assert_eq!(together.render(), tally.render());
        for place in [&whole, &merged] {
            assert_eq!(by_summary(place), told, "JSON");
            assert_eq!(by_page(place), told, "the page");
        }
        let words = tally.render();
        for (said, found) in ["UNSAFE", "differs", "escape"].iter().zip(&told.found) {
            assert!(!found.is_empty());
            for (name, count) in found {
                let name = crate::report::row::name(name);
                let line = format!("\n{said} {count} x {name}\n");
                assert!(words.contains(&line), "{line}: {words}");
            }
        }
    }
}
