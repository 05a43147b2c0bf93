//! Findings on the disk while they are made.
//!
//! A labelled set takes hours, and whoever stops it early wants what there is. It stands
//! beside the file that was named, so that half a set never takes the place of a whole one.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::measure::{self, Labelled};

/// What was found so far, and where it is written.
#[derive(Debug, Default)]
pub(super) struct Kept {
    file: Option<PathBuf>,
    found: Mutex<Vec<Labelled>>,
}

impl Kept {
    /// Nothing yet; without a file nothing is written.
    pub(super) fn new(file: Option<&Path>) -> Self {
        Self {
            file: file.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Where the findings of an unfinished set are.
    fn part(&self) -> Option<PathBuf> {
        let mut name = self.file.clone()?.into_os_string();
        name.push(".part");
        Some(name.into())
    }

    /// Adds these and writes all there are.
    pub(super) fn add(&self, more: Vec<Labelled>) -> Result<(), String> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(more);
        found.sort();
        match self.part() {
            Some(part) => measure::keep(&part, &found),
            None => Ok(()),
        }
    }

    /// The set is whole: it takes the place of the file.
    pub(super) fn finish(self) -> Result<Vec<Labelled>, String> {
        if let (Some(part), Some(file)) = (self.part(), &self.file) {
            std::fs::rename(&part, file).map_err(|error| {
                format!(
                    "cannot move `{}` to `{}`: {error}",
                    part.display(),
                    file.display()
                )
            })?;
        }
        Ok(self
            .found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner))
    }

    /// The set was stopped: what there is, and where it stays.
    pub(super) fn stop(self) -> (Vec<Labelled>, Option<PathBuf>) {
        let part = self.part();
        let found = self.found.into_inner();
        (found.unwrap_or_else(PoisonError::into_inner), part)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::campaign::escape::Escape;
    use crate::generate::Variant;

    fn one(label: &str) -> Labelled {
        let needed = Variant::named("delete-file+env~0").unwrap();
        let escape = Escape {
            needed: needed.clone(),
            is_flagged: false,
        };
        Labelled::escape(label.to_owned(), &needed, &escape, &[])
    }

    #[test]
    fn what_was_found_is_on_the_disk_at_once_and_half_a_set_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let (file, part) = (dir.path().join("set"), dir.path().join("set.part"));
        fs::write(&file, "the whole set of before\n").unwrap();
        let kept = Kept::new(Some(&file));
        kept.add(vec![one("b")]).unwrap();
        kept.add(vec![one("a")]).unwrap();
        let lines = fs::read_to_string(&part).unwrap();
        assert_eq!(lines.lines().count(), 2);
        let (found, place) = kept.stop();
        assert_eq!(found, [one("a"), one("b")]);
        assert_eq!(place, Some(part.clone()));
        let before = fs::read_to_string(&file).unwrap();
        assert_eq!(before, "the whole set of before\n");
        assert!(part.exists());

        let kept = Kept::new(Some(&file));
        kept.add(vec![one("c")]).unwrap();
        assert_eq!(kept.finish().unwrap(), [one("c")]);
        assert!(!part.exists());
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named_and_none_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = dir.path().join("no/such/set");
        let error = Kept::new(Some(&nowhere)).add(vec![one("a")]).unwrap_err();
        assert!(error.contains("no/such/set.part"), "{error}");
        let kept = Kept::new(None);
        kept.add(vec![one("a")]).unwrap();
        assert_eq!(kept.finish().unwrap(), [one("a")]);
    }
}
