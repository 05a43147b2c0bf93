//! What a campaign leaves on the disk: the log, the findings, the summary.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use hermitcrab::given_file;
use serde::Serialize;
use serde_json::json;

use super::examine::{Examined, Fate};
use super::made_from::{Line, MadeFrom, Mark};
use super::spare::leave_out;
use super::tally::Tally;
use crate::case::{CaseFile, SCHEMA_VERSION};
use crate::cli::Shard;
use crate::exit::{self, Unwritten};
use crate::generate::specimen::id_of;
use crate::generate::{Specimen, Target};

/// The name of the log inside a campaign's directory.
pub const LOG: &str = "campaign.jsonl";
/// The name of the counts inside it.
pub const SUMMARY: &str = "campaign.json";

/// How the places of a campaign come into worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// Each of them.
    Worlds(Target),
    /// Only what is new about commands both sides were asked about.
    Screen,
}

impl Deal {
    /// What is dealt.
    pub const fn target(self) -> Target {
        match self {
            Self::Worlds(target) => target,
            Self::Screen => Target::Commands,
        }
    }

    /// Which way of dealing it is: a log is gone on with only by the way it was begun.
    pub const fn number(self) -> u64 {
        match self {
            Self::Screen => 4,
            Self::Worlds(Target::Races) => 5,
            Self::Worlds(Target::Commands | Target::Sequences) => 3,
            Self::Worlds(Target::Paths | Target::Plans | Target::BenignTools) => 2,
            Self::Worlds(Target::Crashes | Target::Conversations) => 1,
        }
    }
}

/// Which campaign was run, and how much of it.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which campaign.
    pub seed: u64,
    /// Which part of it, if not the whole.
    pub shard: Option<Shard>,
    /// Whether somebody stopped it before its end.
    pub is_stopped: bool,
    /// The commits the programs were built from that ran it, as far as that can be told.
    pub made_from: MadeFrom,
}

impl Part {
    /// All of a campaign.
    #[cfg(test)]
    pub fn whole(seed: u64) -> Self {
        Self {
            seed,
            shard: None,
            is_stopped: false,
            made_from: MadeFrom::default(),
        }
    }
}

/// A finding in the form of a suite that may lie among the regressions as it is: named after
/// its file, and its case on one line.
fn suite_of(name: &str, case: &CaseFile) -> Result<String, serde_json::Error> {
    let head = json!({
        "schema": SCHEMA_VERSION,
        "suite": name,
        "description": "What a campaign found.",
    });
    let case = serde_json::to_string(case)?;
    let head = serde_json::to_string_pretty(&head)?;
    let head = head.trim_end_matches(['}', '\n']);
    Ok(format!("{head},\n  \"cases\": [\n{case}\n  ]\n}}\n"))
}

/// The append-only log: a head with the seed, then a line per variant, and one before the first
/// that another commit was made from.
pub struct Log {
    file: File,
    path: PathBuf,
    place: PathBuf,
    old: Vec<Examined>,
    /// The commit of this program, and the one the last lines are of.
    now: String,
    last: String,
    made_from: MadeFrom,
}

/// Longer than the first line of any log.
const HEAD_BYTES_MAX: u64 = 1 << 20;

impl Log {
    /// Whether there is a log just where one is to be resumed, and of this campaign.
    ///
    /// # Errors
    /// There is one and it is not to be resumed, or there is none to resume, or another.
    pub fn check(place: &Path, deal: Deal, seed: u64, resume: bool) -> Result<(), Unwritten> {
        let path = place.join(LOG);
        match (path.exists(), resume) {
            (false, false) => Ok(()),
            (true, true) => {
                let mut line = String::new();
                let read = given_file::open(&path)
                    .map(|(log, _)| BufReader::new(log.take(HEAD_BYTES_MAX)).read_line(&mut line));
                match read {
                    Ok(Ok(_)) if line.ends_with('\n') => is_of(&path, &line, &head(deal, seed)),
                    // What is wrong with it is told when it is gone on with.
                    _ => Ok(()),
                }
            }
            (true, false) => Err(of_no_use(format!(
                "`{}` is there already; go on with --resume, or name another --seed or --report",
                path.display()
            ))),
            (false, true) => Err(of_no_use(format!(
                "no campaign is on record in `{}`; begin one without --resume, or name the --seed, \
                 --target or --report it was begun with",
                place.display()
            ))),
        }
    }

    /// Starts a log, or goes on with one.
    ///
    /// # Errors
    /// As [`Self::check`]; it is of another campaign, a line in its middle is damaged, or it
    /// cannot be written.
    pub fn open(place: &Path, deal: Deal, seed: u64, resume: bool) -> Result<Self, Unwritten> {
        Self::check(place, deal, seed, resume)?;
        Self::open_at((place, "--report"), deal, seed, resume)
    }

    /// Starts a log in a place that this option of the command line names.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_at(named: (&Path, &str), deal: Deal, seed: u64) -> Result<Self, Unwritten> {
        Self::open_at(named, deal, seed, false)
    }

    fn open_at(
        (place, option): (&Path, &str),
        deal: Deal,
        seed: u64,
        resume: bool,
    ) -> Result<Self, Unwritten> {
        let path = place.join(LOG);
        let on = |what: &str, error: std::io::Error| {
            let cannot = format!("cannot {what} `{}`", path.display());
            Unwritten::new(&cannot, &error, &format!("place with {option}"))
        };
        let head = head(deal, seed);
        let (mut done, mut old, mut whole) = (BTreeSet::new(), Vec::new(), 0_u64);
        let (mut last, mut made_from) = (String::new(), MadeFrom::default());
        if resume {
            let mut reader = BufReader::new(given_file::open(&path).map_err(|e| on("read", e))?.0);
            let mut line = String::new();
            let mut number = 0_usize;
            while reader.read_line(&mut line).map_err(|e| on("read", e))? > 0 {
                number += 1;
                // A run that was killed may leave half a line at the end.
                if !line.ends_with('\n') {
                    break;
                }
                if number == 1 {
                    is_of(&path, &line, &head)?;
                } else {
                    let read = Line::read(&line)
                        .map_err(|error| {
                            format!("line {number} of `{}` is damaged: {error}", path.display())
                        })
                        .map_err(of_no_use)?;
                    match read {
                        Line::Mark(Mark { commit }) => {
                            made_from.count(&commit, 0);
                            last = commit;
                        }
                        Line::Seen(seen) if done.insert(seen.index) => {
                            made_from.count(&last, 1);
                            old.push(*seen);
                        }
                        Line::Seen(_) => {}
                    }
                }
                whole += line.len() as u64;
                line.clear();
            }
        }
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|e| on("open", e))?;
        file.set_len(whole).map_err(|e| on("cut", e))?;
        if whole == 0 {
            writeln!(file, "{head}").map_err(|e| on("write", e))?;
        }
        let log = Self {
            file,
            path,
            place: place.to_owned(),
            old,
            now: String::new(),
            last,
            made_from,
        };
        // A run may have been killed between a finding's line and its file.
        for seen in log.old.iter().filter(|seen| is_finding(seen)) {
            log.keep(seen).map_err(|message| Unwritten {
                message,
                code: exit::INTERNAL,
            })?;
        }
        Ok(log)
    }

    /// What the log held when it was opened.
    pub fn take_old(&mut self) -> Vec<Examined> {
        std::mem::take(&mut self.old)
    }

    /// What is added from here on was made from this commit; empty where that cannot be told.
    pub fn goes_on_from(&mut self, commit: &str) {
        commit.clone_into(&mut self.now);
    }

    /// From which commits its lines were made.
    pub const fn made_from(&self) -> &MadeFrom {
        &self.made_from
    }

    /// Appends which commit this program was made from, where the last lines are of another.
    ///
    /// # Errors
    /// The disk.
    pub fn mark(&mut self) -> Result<(), String> {
        if self.now != self.last {
            let commit = self.now.clone();
            self.made_from.count(&commit, 0);
            self.append(&Mark { commit })?;
            self.last.clone_from(&self.now);
        }
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), String> {
        let line = serde_json::to_string(line).map_err(|error| error.to_string())?;
        writeln!(self.file, "{line}")
            .map_err(|error| format!("cannot write `{}`: {error}", self.path.display()))
    }

    /// Appends a line; a finding becomes a vector as well.
    ///
    /// # Errors
    /// The disk.
    pub fn add(&mut self, seen: &Examined) -> Result<(), String> {
        self.mark()?;
        self.append(seen)?;
        self.made_from.count(&self.now, 1);
        if is_finding(seen) {
            self.keep(seen)?;
        }
        Ok(())
    }

    fn keep(&self, seen: &Examined) -> Result<(), String> {
        let name = seen.smallest.as_ref().unwrap_or(&seen.variant);
        let Some(mut case) = Specimen::named(name).and_then(|specimen| specimen.case_file()) else {
            return Err(format!("the finding `{name}` cannot be made again"));
        };
        leave_out(&mut case, &seen.spare);
        case.comment = format!(
            "Found as {}; {}.",
            seen.variant,
            seen.verdict
                .as_deref()
                .unwrap_or("its effect was seen in the agent's world")
        );
        let dir = super::findings(&self.place);
        let mut file = id_of(name);
        // No file system takes more.
        file.truncate(200);
        let path = dir.join(format!("{file}.json"));
        if path.exists() {
            return Ok(());
        }
        let text = suite_of(&file, &case).map_err(|error| error.to_string())?;
        // Until it is whole it has another name: half of one would never be made again.
        let part = dir.join(format!("{file}.json.part"));
        fs::create_dir_all(&dir)
            .and_then(|()| fs::write(&part, text))
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| format!("cannot keep the finding `{}`: {error}", path.display()))?;
        let word = if seen.fate == Fate::AgentUnsafe {
            "UNSAFE"
        } else {
            "differs"
        };
        eprintln!(
            "{word}: {name}\n  replay it: cargo bisim replay {}",
            path.display()
        );
        Ok(())
    }
}

/// What the first line of a campaign's log says.
fn head(deal: Deal, seed: u64) -> serde_json::Value {
    let target = deal.target();
    let mut head = json!({ "seed": seed, "variants": deal.number() });
    if !target.is_commands()
        && let Some(head) = head.as_object_mut()
    {
        head.insert("target".to_owned(), json!(target));
    }
    head
}

/// What a campaign cannot be, whatever room there is.
pub(super) fn of_no_use(message: String) -> Unwritten {
    Unwritten {
        message,
        code: exit::USAGE,
    }
}

/// Whether a log that begins with this line is the campaign's with this head.
fn is_of(path: &Path, line: &str, head: &serde_json::Value) -> Result<(), Unwritten> {
    let began = serde_json::from_str::<serde_json::Value>(line).ok();
    if began.as_ref() == Some(head) {
        return Ok(());
    }
    Err(of_no_use(format!(
        "`{}` belongs to another campaign: {}; go on with that one, or name another --report",
        path.display(),
        apart(&began.unwrap_or_default(), head),
    )))
}

/// In what the heads of two campaigns differ, in the words of the options that say it.
fn apart(began: &serde_json::Value, this: &serde_json::Value) -> String {
    let word = |head: &serde_json::Value, key: &str| match head.get(key) {
        Some(serde_json::Value::String(word)) => word.clone(),
        Some(other) => other.to_string(),
        // Of commands the head does not say it.
        None => "commands".to_owned(),
    };
    for (key, option) in [("target", "--target"), ("seed", "--seed")] {
        let (was, is) = (word(began, key), word(this, key));
        if was != is && began.is_object() {
            return format!("it was begun with {option} {was}, and this is {option} {is}");
        }
    }
    "it was begun by another release, or with --screen where this is without, or the other way round"
        .to_owned()
}

/// Whether it is kept as a vector.
const fn is_finding(seen: &Examined) -> bool {
    matches!(seen.fate, Fate::AgentUnsafe | Fate::Differs)
}

/// Writes the counts as JSON.
///
/// # Errors
/// The disk.
pub fn summary(place: &Path, part: Part, hermes: &str, tally: &Tally) -> Result<(), String> {
    let path = place.join(SUMMARY);
    let mut value = json!({ "seed": part.seed, "hermes": hermes, "tally": tally });
    // So that one who puts parts together sees that one is not there, or not whole.
    if let (Some(shard), Some(value)) = (part.shard, value.as_object_mut()) {
        let parts = json!({ "part": shard.part, "parts": shard.parts });
        value.insert("shard".to_owned(), parts);
    }
    if let (true, Some(value)) = (part.is_stopped, value.as_object_mut()) {
        value.insert("stopped".to_owned(), true.into());
    }
    // Of one that several wrote no single commit is said: none of them made all of it.
    if let (Some(commit), Some(value)) = (part.made_from.only(), value.as_object_mut()) {
        value.insert("commit".to_owned(), commit.into());
    }
    if let (true, Some(value)) = (part.made_from.is_mixed(), value.as_object_mut()) {
        value.insert("commits".to_owned(), json!(part.made_from));
    }
    serde_json::to_string_pretty(&value)
        .map_err(|error| error.to_string())
        .and_then(|text| {
            fs::write(&path, text + "\n")
                .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::SuiteFile;

    fn seen(index: u64) -> Examined {
        Examined {
            index,
            variant: "delete-file+env~0".to_owned(),
            fate: Fate::HermesSilent,
            verdict: None,
            bucket: None,
            smallest: None,
            spare: Vec::new(),
            why: None,
            windows: None,
            matched: None,
            left: None,
        }
    }

    #[test]
    fn a_log_cut_in_mid_line_is_resumed_without_losing_or_repeating_a_variant() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, false).unwrap();
        log.add(&seen(0)).unwrap();
        log.add(&seen(1)).unwrap();
        drop(log);
        let path = dir.path().join("campaign.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.get(..text.len() - 7).unwrap()).unwrap();
        assert!(
            Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, false).is_err(),
            "it is there already"
        );
        for (deal, seed, told) in [
            (
                Deal::Worlds(Target::Commands),
                6,
                "it was begun with --seed 5, and this is --seed 6; go on with that one",
            ),
            (
                Deal::Worlds(Target::Races),
                5,
                "it was begun with --target commands, and this is --target races",
            ),
        ] {
            let other = Log::open(dir.path(), deal, seed, true).err().unwrap();
            assert!(other.message.contains(told), "{other:?}");
            assert_eq!(other.code, exit::USAGE);
        }
        let mut log = Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, true).unwrap();
        assert_eq!(log.take_old(), [seen(0)]);
        log.add(&seen(1)).unwrap();
        drop(log);
        assert_eq!(
            Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, true)
                .unwrap()
                .take_old(),
            [seen(0), seen(1)]
        );
    }

    #[test]
    fn where_no_campaign_is_on_record_none_is_gone_on_with_and_none_begins() {
        let dir = tempfile::tempdir().unwrap();
        let error = Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, true)
            .err()
            .unwrap();
        assert!(
            error.message.contains("no campaign is on record"),
            "{error:?}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_refused_and_named() {
        let dir = tempfile::tempdir().unwrap();
        drop(Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, false).unwrap());
        let path = dir.path().join("campaign.jsonl");
        let head = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{head}garbage\n")).unwrap();
        let error = Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, true)
            .err()
            .unwrap();
        assert!(error.message.contains("line 2"), "{error:?}");
    }

    #[test]
    fn a_vector_is_without_the_files_its_finding_does_not_need() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), Deal::Worlds(Target::Crashes), 5, false).unwrap();
        let spare = "/home/u/proj/cz/two.txt".to_owned();
        let found = Examined {
            fate: Fate::Differs,
            smallest: Some("crash:write-over~7".to_owned()),
            spare: vec![spare.clone()],
            ..seen(3)
        };
        log.add(&found).unwrap();
        let findings = fs::read_dir(dir.path().join("findings")).unwrap();
        let kept: Vec<_> = findings.map(|entry| entry.unwrap().path()).collect();
        let text = fs::read_to_string(&kept[0]).unwrap();
        let file: SuiteFile = serde_json::from_str(&text).unwrap();
        let world = file.cases[0].world.as_ref().unwrap();
        assert!(world.files.iter().all(|file| file.path != spare));
        assert!(world.files.len() > 2);
        // The log tells it, for a run that goes on.
        let mut again = Log::open(dir.path(), Deal::Worlds(Target::Crashes), 5, true).unwrap();
        assert_eq!(again.take_old(), [found]);
    }

    #[test]
    fn a_kill_between_a_findings_line_and_its_file_loses_neither() {
        let dir = tempfile::tempdir().unwrap();
        let deal = Deal::Worlds(Target::Sequences);
        let mut log = Log::open(dir.path(), deal, 5, false).unwrap();
        let found = Examined {
            fate: Fate::AgentUnsafe,
            smallest: Some("sequence:0+h0+c2.0".to_owned()),
            ..seen(3)
        };
        log.add(&found).unwrap();
        drop(log);
        let findings = dir.path().join("findings");
        let kept = findings.join("generated-sequence.0.h0.c2.0.json");
        let whole = fs::read_to_string(&kept).unwrap();
        // The line was written, of the file nothing or half.
        fs::remove_file(&kept).unwrap();
        fs::write(findings.join("generated-sequence.0.h0.c2.0.json.part"), "{").unwrap();
        let again = Log::open(dir.path(), deal, 5, true).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), whole);
        assert_eq!(fs::read_dir(&findings).unwrap().count(), 1);
        // One that is there stays as it is.
        fs::write(&kept, "somebody looked at it\n").unwrap();
        drop(again);
        let mut again = Log::open(dir.path(), deal, 5, true).unwrap();
        assert_eq!(again.take_old(), [found]);
        assert_eq!(
            fs::read_to_string(&kept).unwrap(),
            "somebody looked at it\n"
        );
    }

    #[test]
    fn a_finding_becomes_a_vector_that_loads_and_says_how_it_was_found() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), Deal::Worlds(Target::Commands), 5, false).unwrap();
        let found = Examined {
            fate: Fate::AgentUnsafe,
            smallest: Some("delete-file".to_owned()),
            ..seen(3)
        };
        log.add(&found).unwrap();
        let text =
            fs::read_to_string(dir.path().join("findings/generated-delete-file.json")).unwrap();
        let file: SuiteFile = serde_json::from_str(&text).unwrap();
        assert!(file.cases[0].comment.contains("delete-file+env~0"));
        // It may lie among the regressions as it is.
        let vectors = tempfile::tempdir().unwrap();
        for folder in ["suites", "regressions"] {
            fs::create_dir(vectors.path().join(folder)).unwrap();
        }
        let kept = "regressions/generated-delete-file.json";
        fs::write(vectors.path().join(kept), &text).unwrap();
        let suites = crate::suite::load(vectors.path()).unwrap();
        assert_eq!(suites.cases.len(), 1);
        assert!(
            text.lines()
                .any(|line| line.starts_with(r#"{"id":"generated-delete-file""#))
        );
    }
}
