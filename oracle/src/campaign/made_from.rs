//! From which commits the programs were built that wrote a campaign's log.
//!
//! A log is gone on with after days, and the checkout may have moved since. A line of the log
//! says the commit of all variants behind it, up to the next such line.

use hermitcrab::screen::on_one_line;
use serde::{Deserialize, Serialize};

use super::examine::Examined;

/// A line of the log that is no variant.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Empty where it cannot be told.
    pub commit: String,
}

/// A line of the log below its head.
pub enum Line {
    /// What is behind it was made from this.
    Mark(Mark),
    /// A variant.
    Seen(Box<Examined>),
}

impl Line {
    /// Reads one.
    ///
    /// # Errors
    /// It is neither; what is wrong with it as a variant.
    pub fn read(line: &str) -> serde_json::Result<Self> {
        match serde_json::from_str(line) {
            Ok(mark) => Ok(Self::Mark(mark)),
            Err(_) => serde_json::from_str(line).map(|seen| Self::Seen(Box::new(seen))),
        }
    }
}

/// How many variants of a log are of which commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Of {
    commit: String,
    variants: u64,
}

/// The commits of a log, in the order they came, each with how many variants are of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct MadeFrom(Vec<Of>);

impl MadeFrom {
    /// Counts more variants of a commit; where they are none, that it had a part all the same.
    pub fn count(&mut self, commit: &str, variants: u64) {
        match self.0.iter_mut().find(|of| of.commit == commit) {
            Some(of) => of.variants = of.variants.saturating_add(variants),
            None => self.0.push(Of {
                commit: commit.to_owned(),
                variants,
            }),
        }
    }

    /// The commits that are known.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        let known = self.0.iter().map(|of| of.commit.as_str());
        known.filter(|commit| !commit.is_empty())
    }

    /// The one that all of it is of.
    pub fn only(&self) -> Option<&str> {
        match self.0.as_slice() {
            [one] if !one.commit.is_empty() => Some(&one.commit),
            _ => None,
        }
    }

    /// Whether it is of more than one, or of some of it nobody knows.
    pub const fn is_mixed(&self) -> bool {
        self.0.len() > 1
    }

    /// What a person is told of one that is not of a single commit.
    pub fn told(&self) -> Option<String> {
        let all = self.0.iter().map(|of| {
            let commit = match on_one_line(&of.commit) {
                unknown if unknown.is_empty() => "an unknown commit".to_owned(),
                commit => commit,
            };
            let word = if of.variants == 1 {
                "variant"
            } else {
                "variants"
            };
            format!("{} {word} of {commit}", of.variants)
        });
        self.is_mixed().then(|| {
            format!(
                "made from different commits: {}",
                Vec::from_iter(all).join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::super::examine::Fate;
    use super::super::keep::{self, Deal, LOG, Log, Part};
    use super::super::tally::Tally;
    use super::*;
    use crate::generate::Target;

    const DEAL: Deal = Deal::Worlds(Target::Commands);

    /// Runs a part of a campaign of a program that was built from this commit.
    fn run(place: &Path, commit: &str, places: &[u64]) {
        let mut log = Log::open(place, DEAL, 5, place.join(LOG).exists()).unwrap();
        log.goes_on_from(commit);
        for index in places {
            let seen = Examined {
                fate: Fate::HermesSilent,
                ..Examined::of(*index, "delete-file+env~0".to_owned())
            };
            log.add(&seen).unwrap();
        }
        let part = Part {
            made_from: log.made_from().clone(),
            ..Part::whole(5)
        };
        keep::summary(place, part, "0.19.0", &Tally::default()).unwrap();
    }

    fn summary(place: &Path) -> Value {
        let text = fs::read_to_string(place.join(keep::SUMMARY)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn log(place: &Path) -> Vec<String> {
        let text = fs::read_to_string(place.join(LOG)).unwrap();
        let of = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let commit = line.get("commit").and_then(Value::as_str);
            commit.map_or_else(|| line["index"].to_string(), |of| format!("from {of}"))
        };
        text.lines().skip(1).map(of).collect()
    }

    #[test]
    fn a_log_that_two_commits_wrote_says_which_lines_are_whose_and_claims_neither() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        run(place, "ab", &[0, 1]);
        run(place, "ab", &[2]);
        assert_eq!(log(place), ["from ab", "0", "1", "2"]);
        assert_eq!(summary(place)["commit"], "ab");
        assert_eq!(summary(place).get("commits"), None);
        // Who goes on and finds nothing left to do had no part in it.
        run(place, "cd", &[]);
        assert_eq!(summary(place)["commit"], "ab");
        run(place, "cd", &[3]);
        run(place, "ab", &[4]);
        let all = ["from ab", "0", "1", "2", "from cd", "3", "from ab", "4"];
        assert_eq!(log(place), all);
        assert_eq!(summary(place).get("commit"), None);
        let parts = [("ab", 4), ("cd", 1)];
        let parts = parts.map(|(commit, n)| json!({ "commit": commit, "variants": n }));
        assert_eq!(summary(place)["commits"], json!(parts));
        let mut tally = Tally::default();
        tally.made_from = Log::open(place, DEAL, 5, true).unwrap().made_from().clone();
        let told = tally.render();
        let words = "made from different commits: 4 variants of ab, 1 variant of cd\n";
        assert!(told.ends_with(words), "{told}");
    }

    #[test]
    fn what_nobody_knows_the_commit_of_is_counted_with_none() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        // As before logs said it, and where git does not answer.
        run(place, "", &[0, 1]);
        assert_eq!(log(place), ["0", "1"]);
        assert_eq!(summary(place).get("commit"), None);
        run(place, "ab", &[2]);
        run(place, "", &[3]);
        assert_eq!(log(place), ["0", "1", "from ab", "2", "from ", "3"]);
        assert_eq!(summary(place).get("commit"), None);
        let parts = [("", 3), ("ab", 1)];
        let parts = parts.map(|(commit, n)| json!({ "commit": commit, "variants": n }));
        assert_eq!(summary(place)["commits"], json!(parts));
    }
}
