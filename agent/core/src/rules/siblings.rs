//! The files of one directory, judged by their names.
//!
//! What for: a search decides about every file of a directory, and all they have
//! in common is decided once. It must never say anything else than
//! [`Rules::sensitivity`] says about the file by itself.

use super::{Rules, Sensitivity, sensitive};
use crate::authority::{DirId, Verb};
use crate::fault::{self, Fault};
use crate::path::RelPath;
use crate::tool::Tool;

/// Which names in one directory are asked about each time.
#[derive(Debug)]
pub struct Siblings<'r> {
    rules: &'r Rules,
    tool: Tool,
    verb: Verb,
    /// The directory seen from `/`, if it is known.
    location: Option<RelPath>,
    /// The directory itself, where what lies in it has other names.
    by_each_name: Option<(DirId, RelPath)>,
    /// What it is that the directory lies in, where its content is about keys.
    secret_dir: Option<&'static str>,
    /// Nothing else about where it lies has to be looked at for each name.
    names_decide: bool,
}

impl Rules {
    /// What is common to all names in the directory at `below`.
    #[must_use]
    pub fn siblings(&self, tool: Tool, verb: Verb, dir: DirId, below: &RelPath) -> Siblings<'_> {
        let location = self.locate(dir, below).ok();
        let names_decide = location.as_ref().is_some_and(|location| {
            let touches =
                |place: &RelPath| location.starts_with(place) || place.starts_with(location);
            // Of keys, a chain has two names at most, so only the last one here may go on in a file's.
            let goes_on = location
                .file_name()
                .is_some_and(sensitive::may_begin_a_chain);
            !verb.changes_files()
                && !goes_on
                && !self.guarded.iter().any(touches)
                && !fault::is(Fault::SensitivePathsArePlain)
        });
        Siblings {
            rules: self,
            tool,
            verb,
            secret_dir: location.as_ref().and_then(sensitive::secret_dir),
            location,
            names_decide,
            by_each_name: self.has_aliases(dir).then(|| (dir, below.clone())),
        }
    }
}

impl Siblings<'_> {
    /// Must the user be asked about this name each time, whatever is held?
    #[must_use]
    pub fn sensitivity(&self, name: &[u8]) -> Sensitivity {
        if let Some((dir, below)) = &self.by_each_name {
            return self.of_each_name(*dir, below, name);
        }
        if self.names_decide && !sensitive::may_begin_a_chain(name) {
            return sensitive::judge_name(self.verb, name, self.secret_dir);
        }
        let location = self.location.as_ref();
        match location.and_then(|location| location.child(name).ok()) {
            Some(location) => self.rules.sensitivity_at(self.tool, self.verb, &location),
            None => Sensitivity::Sensitive("a place that is not known"),
        }
    }

    fn of_each_name(&self, dir: DirId, below: &RelPath, name: &[u8]) -> Sensitivity {
        let places = below
            .child(name)
            .ok()
            .and_then(|child| self.rules.places(dir, &child).ok());
        let Some(places) = places else {
            return Sensitivity::Sensitive("a place that is not known");
        };
        let judged = |place| self.rules.sensitivity_at(self.tool, self.verb, place);
        let mut judged = places.iter().map(judged);
        judged
            .find(|judged| *judged != Sensitivity::Plain)
            .unwrap_or(Sensitivity::Plain)
    }
}
