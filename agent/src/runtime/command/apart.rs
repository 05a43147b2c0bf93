//! The end of a command in the background, or on a terminal that was lent to it, where not all
//! it changed can stand: somebody else changed it, too, or such a change is never kept.
//!
//! Nobody waits for the first who could begin it again, and nobody does the same on a terminal
//! twice; either may have run for hours. So all else is decided like the changes of any command;
//! what cannot stand is left as it is outside, told, and what the command made of it is kept for a
//! person.
//!
//! Any other command that somebody waits for is decided whole (`settle`): it can be run again.

use std::{
    fmt::{self, Write as _},
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use hermitcrab_core::{
    approval::CallId,
    authority::Verb,
    digest::Digest,
    outcome::{Denial, DenialCode},
    path::RelPath,
    session::Event,
};
use hermitcrab_sandbox::{
    changeset::{
        What,
        apart::{Apart, set_apart},
    },
    spawn::Finished,
};

use super::{
    super::{hands::Hands, seen::Seen, turn::Stop},
    settle::Unsettled,
    summary,
};
use crate::{
    state_dir::conflicts::{self, Aside},
    text::pytext,
};

/// How often what somebody changed since the last look is taken out.
const TRIES_MAX: usize = 8;
/// So many names are told, and the others counted.
const NAMES_TOLD_MAX: usize = 12;
/// So much is told of a command.
const COMMAND_LETTERS_MAX: usize = 60;

/// Why what was not left out does not stand either, and whether the user was asked.
type Refused = Option<(Denial, bool)>;

/// What of a command's changes was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What others changed as well, each with whose change it was, if that is known.
    overtaken: Vec<(String, Option<String>)>,
    /// What is never kept, each with why not.
    refused: Vec<(String, Denial)>,
    /// How many other names go with these.
    together: usize,
    /// How many names the command removed, and are still there.
    not_removed: usize,
    /// Where what the command made of them is; why it is nowhere.
    kept: Result<Aside, String>,
    /// Whether something else of what it did stands.
    is_any_kept: bool,
}

impl LeftOut {
    /// Whether nothing it did stands.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        !self.is_any_kept
    }

    /// Why, in a word: that of the first where there are several.
    #[must_use]
    pub fn code(&self) -> DenialCode {
        match self.refused.first() {
            Some((_, denial)) if self.overtaken.is_empty() => denial.code(),
            _ => DenialCode::ChangedSinceShown,
        }
    }

    /// What became of all it changed.
    #[must_use]
    pub const fn in_words(&self) -> &'static str {
        match self.is_all() {
            true => "is discarded",
            false => "is kept, but for some of it",
        }
    }

    /// What can be done about it.
    #[must_use]
    pub fn next_step(&self) -> &'static str {
        match self.overtaken.is_empty() {
            false => {
                "look at what is there now, and bring in what is wanted of the command's version"
            }
            true => self.code().next_step(),
        }
    }

    fn tell_overtaken(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, who)) in self.overtaken.iter().take(NAMES_TOLD_MAX).enumerate() {
            let between = if place == 0 { "" } else { ", " };
            let who = who.as_deref().unwrap_or("somebody else");
            write!(f, "{between}`{name}` (by {who})")?;
        }
        tell_more(f, self.overtaken.len())?;
        f.write_str(" changed while it ran and stays as it is there")
    }

    fn tell_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, denial)) in self.refused.iter().take(NAMES_TOLD_MAX).enumerate() {
            let between = if place == 0 { "" } else { ", " };
            write!(f, "{between}`{name}` ({}: {denial})", denial.code())?;
        }
        tell_more(f, self.refused.len())?;
        f.write_str(" is never kept and stays as it was outside")
    }
}

fn tell_more(f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    match all.saturating_sub(NAMES_TOLD_MAX) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.overtaken.is_empty() {
            self.tell_overtaken(f)?;
        }
        if !self.refused.is_empty() {
            if !self.overtaken.is_empty() {
                f.write_str("; ")?;
            }
            self.tell_refused(f)?;
        }
        match self.together {
            0 => {}
            more => write!(f, "; so do {more} names that go together with that")?,
        }
        match self.not_removed {
            0 => {}
            more => write!(
                f,
                "; {more} names that it removed are still there, as what was in them may be in what is left out"
            )?,
        }
        match &self.kept {
            Ok(aside) => {
                if aside.files > 0 {
                    write!(f, ". What it made of that is in `{}`", aside.at.display())?;
                }
                if !aside.missed.is_empty() {
                    f.write_str(match aside.files {
                        0 => ". What it made of that could not be kept: ",
                        _ => ", but for what could not be kept: ",
                    })?;
                    aside.tell_missed(f)?;
                }
                aside.tell_gave_way(f)?;
            }
            Err(why) => write!(f, ". What it made of that could not be kept: {why}")?,
        }
        f.write_char('.')
    }
}

impl Hands<'_> {
    /// Commits what is held or granted now, without what others changed meanwhile and what is
    /// never kept; says why not otherwise and whether the user was asked, and what is left out.
    pub(in crate::runtime) fn settle_apart(
        &mut self,
        call: CallId,
        command: &str,
        seen: &[Seen],
        finished: &mut Finished,
    ) -> Result<(Refused, Option<LeftOut>), Stop> {
        let (mut found, mut out) = (Vec::new(), Vec::new());
        let mut refused = None;
        // Of what was stopped nothing stands, and nothing is kept.
        let is_wanted = self.stopped(call).is_none();
        for _ in 0..TRIES_MAX {
            if is_wanted {
                out.extend(set_apart(&mut finished.changes, &found));
                *self.changes = summary(&finished.changes);
            }
            refused = self.settle_or_where(call, command, seen, finished)?;
            match &refused {
                Some(refused) if refused.denial.code() == DenialCode::ChangedSinceShown => {
                    let Some(at) = refused.at.clone() else { break };
                    found = vec![at];
                }
                Some(_) | None => break,
            }
        }
        if out.is_empty() {
            return Ok((refused.map(Unsettled::told), None));
        }
        let is_any_kept = refused.is_none() && finished.changes.iter().any(|set| !set.is_empty());
        let left_out = self.left_out(call, seen, finished, &out, is_any_kept);
        let note = format!("of what {call} changed this is left out: {left_out}");
        // It is told to whoever asks for its end; where nothing can be recorded that stops more.
        let _noted = self.runtime.machine.step(Event::Note(note));
        Ok((refused.map(Unsettled::told), Some(left_out)))
    }

    fn left_out(
        &self,
        call: CallId,
        seen: &[Seen],
        finished: &Finished,
        out: &[Apart],
        is_any_kept: bool,
    ) -> LeftOut {
        let (mut overtaken, mut refused) = (Vec::new(), Vec::new());
        let (mut together, mut not_removed) = (0, 0);
        let mut files: Vec<(PathBuf, io::Result<std::fs::File>)> = Vec::new();
        for apart in out {
            let (Some(seen), Some(set)) = (seen.get(apart.view), finished.changes.get(apart.view))
            else {
                continue;
            };
            for (path, held) in &apart.overtaken {
                let who = self.who_left(call, seen, path, *held);
                overtaken.push((whole_name(seen, path).display().to_string(), who));
            }
            for (path, denial) in &apart.refused {
                let name = whole_name(seen, path).display().to_string();
                refused.push((name, denial.clone()));
            }
            for change in &apart.changes {
                let path = &change.path;
                let is_told =
                    apart.overtaken.contains_key(path) || apart.refused.contains_key(path);
                if !is_told {
                    match change.what.verb() {
                        Verb::FsDelete => not_removed += 1,
                        _ => together += 1,
                    }
                }
                match change.what {
                    What::CreatedFile { .. } | What::ModifiedFile { .. } => {
                        files.push((whole_name(seen, path), set.open_after(path)));
                    }
                    // A pipe or a socket holds nothing.
                    What::CreatedSymlink { .. } => {
                        let no_file = io::Error::from(io::ErrorKind::InvalidInput);
                        files.push((whole_name(seen, path), Err(no_file)));
                    }
                    _ => {}
                }
            }
        }
        overtaken.sort();
        overtaken.dedup();
        refused.sort_by(|one, other| one.0.cmp(&other.0));
        refused.dedup_by(|one, other| one.0 == other.0);
        let kept = conflicts::keep(&self.runtime.config.state_dir, files);
        LeftOut {
            overtaken,
            refused,
            together,
            not_removed,
            kept,
            is_any_kept,
        }
    }

    /// Who left a name so that it holds this, where it was a call of this session other than
    /// this one.
    pub(super) fn who_left(
        &self,
        call: CallId,
        seen: &Seen,
        path: &RelPath,
        holds: Digest,
    ) -> Option<String> {
        if holds == Digest::NONE {
            return None;
        }
        let author = self
            .runtime
            .afoot
            .author(seen.dir, &seen.whole(path)?, holds)?;
        if author == call {
            return None;
        }
        Some(match self.runtime.background_command(author) {
            Some((id, command)) => {
                let command = pytext::head(command, COMMAND_LETTERS_MAX);
                format!("the background command {id} ({})", command.escape_debug())
            }
            None => "another call of this session".to_owned(),
        })
    }
}

/// The name outside.
fn whole_name(seen: &Seen, path: &RelPath) -> PathBuf {
    let below = std::ffi::OsStr::from_bytes(path.as_bytes());
    seen.at.join(Path::new(below))
}
