//! What an agent has proved about what it changed, as far as it may look.
//!
//! Looking asks nobody: what needs a question, or is not held, is not there.

pub mod project;

use std::path::Path;

use hermitcrab_core::digest::Digest;
use hermitcrab_core::rules::Judgement;
use hermitcrab_core::{
    authority::Verb, grant::AgentId, label::Source, outcome::Denial, tool::Tool,
};
use hermitcrab_sandbox::dircap::{Entry, Kind};

use super::{
    Hands, Place, Runtime,
    evidence::{self, Project, Proof, Standing},
    hands::action,
    result::ChangeSummary,
};

impl Hands<'_> {
    /// Looks made beside what a tool is for are those of one that only reads.
    fn looking<R>(&mut self, look: impl FnOnce(&mut Self) -> R) -> R {
        let tool = std::mem::replace(&mut self.tool, Tool::ReadFile);
        let seen = look(self);
        self.tool = tool;
        seen
    }

    /// Whether nobody is asked and no rule speaks about it.
    fn is_plain(&self, verb: Verb, place: &Place) -> bool {
        self.freely(verb, place)
            && action(verb, place, Digest::NONE).is_ok_and(|action| {
                self.runtime
                    .machine
                    .look(|session| session.rules().judge(self.tool, &action) == Judgement::Plain)
            })
    }

    /// The names in a directory, if they may be listed without a question.
    pub fn names_freely(&mut self, place: &Place) -> Option<Vec<Entry>> {
        self.is_plain(Verb::FsList, place)
            .then(|| self.names(place).ok())
            .flatten()
    }

    /// What a name stands for when every link is followed, likewise.
    pub fn kind_freely(&mut self, place: &Place) -> Option<Kind> {
        if !self.is_plain(Verb::FsList, place) {
            return None;
        }
        let (stat, real) = self.look_through(place).ok()??;
        match stat.kind {
            Kind::Symlink => {
                let real = real.filter(|real| self.is_plain(Verb::FsList, real))?;
                Some(self.look(&real).ok()??.kind)
            }
            kind => Some(kind),
        }
    }

    /// A file's content, if it may be read without a question and is no larger.
    pub fn read_freely(&mut self, place: &Place, bytes_max: u64) -> Option<Vec<u8>> {
        if !self.is_plain(Verb::FsRead, place) {
            return None;
        }
        let (_, real) = self.look_through(place).ok()??;
        let real = real.filter(|real| self.is_plain(Verb::FsRead, real))?;
        let stat = self.look(&real).ok()??;
        if stat.kind != Kind::File || stat.bytes > bytes_max {
            return None;
        }
        self.read(&real).ok()
    }

    /// Takes note of what a command proved that ran to its end in `cwd`.
    pub fn note_proof(
        &mut self,
        command: &str,
        cwd: &str,
        status: i32,
        output: &str,
    ) -> Option<Proof> {
        if !evidence::may_prove(command) {
            return None;
        }
        let project = self.looking(|hands| project::of(hands, cwd))?;
        let proof = evidence::proof(&project, command, status, output)?;
        self.state().evidence.note_proof(proof.clone());
        Some(proof)
    }

    /// Takes note of files that were changed; what was proved before may not hold
    /// any more.
    pub fn note_edits(&mut self, paths: &[&str]) {
        let cwd = self.cwd().to_string_lossy().into_owned();
        let mut directories: Vec<String> = Vec::new();
        for path in paths.iter().filter_map(|path| Path::new(path).parent()) {
            let directory = path.to_string_lossy().into_owned();
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        directories.push(cwd);
        self.state().evidence.note_edit(directories);
    }
}

impl Runtime {
    /// The first project of these files about which the last word is not that
    /// all is well, or else the first of them; nothing if they are no project's.
    ///
    /// # Errors
    /// What was looked at cannot be recorded.
    pub fn proved(
        &mut self,
        agent: AgentId,
        files: &[String],
    ) -> Result<Option<(Project, Standing)>, Denial> {
        let (mut questions, mut changes) = (Vec::new(), ChangeSummary::default());
        let found = self.with_hands(
            (agent, Tool::ReadFile),
            &mut questions,
            &mut changes,
            |hands| Ok(first_unproved(hands, files)),
        );
        let Ok(found) = found else {
            // Nothing was learned, and nothing is told.
            return Ok(None);
        };
        if found.is_some() {
            self.hear(agent, Source::File)?;
        }
        Ok(found)
    }
}

fn first_unproved(hands: &mut Hands<'_>, files: &[String]) -> Option<(Project, Standing)> {
    let evidence = hands.state().evidence.clone();
    let mut seen: Vec<String> = Vec::new();
    let mut first = None;
    for file in files {
        let Some(directory) = directory_of(hands, file) else {
            continue;
        };
        if seen.contains(&directory) {
            continue;
        }
        let project = project::of(hands, &directory);
        seen.push(directory);
        let Some(project) = project else { continue };
        let standing = evidence.standing(&project.root, |directories| {
            directories
                .iter()
                .find_map(|directory| project::of(hands, directory))
                .map(|project| project.root)
        });
        if standing.status != "passed" {
            return Some((project, standing));
        }
        first.get_or_insert((project, standing));
    }
    first
}

/// The directory a changed file lies in; a directory is its own.
fn directory_of(hands: &mut Hands<'_>, file: &str) -> Option<String> {
    let place = hands.resolve(file).ok()?;
    if hands.kind_freely(&place) == Some(Kind::Dir) {
        return Some(place.absolute);
    }
    let above = Path::new(&place.absolute).parent()?;
    Some(above.to_string_lossy().into_owned())
}
