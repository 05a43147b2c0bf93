//! What found each planted fault when all suites were hunted through.
//!
//! Tried first, so that the usual run is short. It is a place to look, never
//! the answer: the case runs again, with the fault and without, and where it
//! does not find the fault any more the whole hunt follows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hermitcrab::given_file::{self, Pipes};

use crate::suite;

/// The file's name in the directory of the vectors.
const FILE_NAME: &str = "finders.toml";
/// What the lane that only asks is called there.
pub(super) const LANE: &str = "the lane";
/// What the benign generator is called there.
pub(super) const BENIGN: &str = "benign work";
const HEADER: &str = "# What found each planted fault in a hunt through all suites: a case, `law NAME`, `the lane`\n\
    # or `benign work`.\n\
    # Tried first; written by `cargo bisim selftest --full --keep`.\n";

/// A fault's name to the case or law that found it.
#[derive(Clone, Debug, Default)]
pub(super) struct Finders(BTreeMap<String, String>);

impl Finders {
    /// Reads the file; one that does not exist names nothing.
    pub(super) fn read(vectors: &Path) -> Result<Self, String> {
        let path = place(vectors);
        let text = match given_file::text(&path, suite::BYTES_MAX, Pipes::Refused) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        toml::from_str(&text).map(Self).map_err(|error| {
            let what = error.message();
            format!("{} is not a list of finders: {what}", path.display())
        })
    }

    /// The law that found it, or the case.
    pub(super) fn of(&self, fault: &str) -> Option<Finder<'_>> {
        let name = self.0.get(fault)?;
        Some(match name.strip_prefix("law ") {
            Some(law) => Finder::Law(law),
            None if name == LANE => Finder::Lane,
            None if name == BENIGN => Finder::Benign,
            None => Finder::Case(name),
        })
    }

    pub(super) fn insert(&mut self, fault: &str, finder: &str) {
        self.0.insert(fault.to_owned(), finder.to_owned());
    }

    /// Writes the file.
    pub(super) fn keep(&self, vectors: &Path) -> Result<(), String> {
        let path = place(vectors);
        let text = toml::to_string(&self.0).map_err(|error| error.to_string())?;
        fs::write(&path, format!("{HEADER}{text}"))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// What to try first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finder<'f> {
    /// The law of this name.
    Law(&'f str),
    /// The lane that only asks.
    Lane,
    /// Work nobody should be asked about.
    Benign,
    /// The case of this name.
    Case(&'f str),
}

fn place(vectors: &Path) -> PathBuf {
    vectors.join(FILE_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_nothing_is_known_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let mut finders = Finders::read(dir.path()).unwrap();
        assert_eq!(finders.of("forget-expiry"), None);
        finders.insert("forget-expiry", "smoke-echo");
        finders.insert("other", "law session");
        finders.insert("another", LANE);
        finders.insert("fourth", BENIGN);
        finders.keep(dir.path()).unwrap();
        let again = Finders::read(dir.path()).unwrap();
        assert_eq!(again.of("forget-expiry"), Some(Finder::Case("smoke-echo")));
        assert_eq!(again.of("other"), Some(Finder::Law("session")));
        assert_eq!(again.of("another"), Some(Finder::Lane));
        assert_eq!(again.of("fourth"), Some(Finder::Benign));
        assert_eq!(again.of("third"), None);
    }

    #[test]
    fn a_file_that_is_no_list_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(place(dir.path()), "forget-expiry = 3").unwrap();
        let error = Finders::read(dir.path()).unwrap_err();
        assert!(
            error.contains(FILE_NAME) && !error.contains('\n'),
            "{error}"
        );
    }
}
