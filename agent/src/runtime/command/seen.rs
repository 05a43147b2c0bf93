//! What a command sees: the directories its agent may read, without what rules withhold.

use std::path::{Path, PathBuf};

use hermitcrab_core::{
    action::Action,
    authority::{Cap, DirId, Extent, Object, Verb},
    digest::Digest,
    grant::{AgentId, GrantId, Uses},
    outcome::Outcome,
    path::RelPath,
    rules::{Judgement, Shown, Withheld},
    session::{Call, Event, Session},
    tool::Tool,
};
use hermitcrab_sandbox::{
    dircap::DirCap,
    spawn::{Ending, Finished, never_shown},
};

use super::super::{hands::Hands, mounts::Mount, seen::Seen, turn::Stop, visible::named};

/// Why a command had a stranger's rights to what it was given, if that may be why it
/// failed.
pub(super) fn strange(finished: &Finished, said: &[&str]) -> Option<String> {
    let failed =
        finished.ending != Ending::Exited(0) && said.iter().any(|said| said.contains(NOT_OPENED));
    let why = finished.confined.strange.as_ref().filter(|_| failed)?;
    Some(format!(
        "The agent is root's, and what belongs to root cannot be shown as the command's own here: {why}. \
         File tools have root's rights."
    ))
}

/// What programs say of something they may not open.
const NOT_OPENED: &str = "Permission denied";
/// What they say of something that is not there.
const NOT_THERE: &str = "No such file or directory";

impl Hands<'_> {
    /// Everything this agent may read, as directories for a command to see.
    pub(in crate::runtime) fn seen(&mut self) -> Result<Vec<Seen>, Stop> {
        let mut parts: Vec<(DirId, RelPath, GrantId)> = Vec::new();
        let now = self.runtime.clock.now();
        self.runtime.machine.look(|session| {
            for grant in session.held_by(self.by) {
                let stands = session.table().usable(grant.id(), now).is_ok();
                if !stands || grant.limits().uses != Uses::Uncounted {
                    continue;
                }
                for cap in grant
                    .authority()
                    .caps()
                    .iter()
                    .filter(|cap| cap.verb() == Verb::FsRead)
                {
                    // What is held of a name alone is nothing of a directory, and a file is
                    // read by tools.
                    if let Object::Dir {
                        dir,
                        below,
                        extent: Extent::Tree,
                    } = cap.object()
                        && !is_refused(session, cap)
                    {
                        parts.push((*dir, below.clone(), grant.id()));
                    }
                }
            }
        });
        let all = parts.clone();
        parts.retain(|(dir, below, _)| {
            !all.iter()
                .any(|(other, above, _)| other == dir && above != below && below.starts_with(above))
        });
        parts.sort();
        parts.dedup_by_key(|(dir, below, _)| (*dir, below.clone()));
        let mut seen = Vec::new();
        for (dir, below, by_grant) in parts {
            let Some(at) = self.runtime.mounts.absolute(dir, &below) else {
                continue;
            };
            // File tools reach it all the same.
            if never_shown(&at).is_some() {
                continue;
            }
            if below.is_root() {
                seen.push(Seen {
                    dir,
                    at,
                    part: None,
                    withheld: Withheld::default(),
                    by_grant,
                });
            } else if let Some(part) = self.part(dir, &below)? {
                seen.push(Seen {
                    dir,
                    at,
                    part: Some(part),
                    withheld: Withheld::default(),
                    by_grant,
                });
            }
        }
        self.keep_with_a_place(&mut seen);
        // A copy would show the agent's own files, which no grant reaches, and what
        // people's rules refuse or want a question about.
        self.runtime.machine.look(|session| {
            seen.retain_mut(|seen| {
                let root = RelPath::root();
                let below = seen.part.as_ref().map_or(&root, DirCap::prefix);
                match session.rules().shown_to_commands(seen.dir, below) {
                    Shown::AllBut(withheld) => {
                        seen.withheld = withheld;
                        true
                    }
                    Shown::Nothing => false,
                }
            });
        });
        seen.sort_by_key(|seen| seen.at.as_os_str().len());
        Ok(seen)
    }

    /// Where another file system is mounted a view of what is around it has an empty
    /// directory. A part of that one has no place there; file tools reach it all the same.
    fn keep_with_a_place(&self, seen: &mut Vec<Seen>) {
        let shown: Vec<PathBuf> = seen.iter().map(|seen| seen.at.clone()).collect();
        seen.retain(|seen| {
            let mount = self.runtime.mounts.get(seen.dir);
            let is_lost = |mount: &Mount| {
                let is_around = |at: &PathBuf| *at != mount.path && mount.path.starts_with(at);
                mount.is_mounted && seen.part.is_some() && shown.iter().any(is_around)
            };
            !mount.is_some_and(is_lost)
        });
    }

    /// What kept something from a command that saw this, if that may be why it failed.
    pub(super) fn withheld(
        &self,
        by: AgentId,
        ending: Ending,
        output: &str,
        seen: &[Seen],
    ) -> Option<String> {
        if ending == Ending::Exited(0) {
            return None;
        }
        self.withheld_by_rules(by, output).or_else(|| {
            let unseen = self.unseen(seen).filter(|_| output.contains(NOT_THERE))?;
            let unseen = named(&unseen.to_string_lossy());
            Some(format!(
                "Commands are shown what their agent may read as often as it likes, and of {unseen} that is nothing: \
                 a grant that has ended, or is for so many uses, shows them none of it. The user can grant it \
                 (`grant fs.read={unseen}`)."
            ))
        })
    }

    /// The workspace, where a command that sees this is shown nothing of it.
    pub(super) fn unseen(&self, seen: &[Seen]) -> Option<&Path> {
        let workspace = self.runtime.config.workspace.as_path();
        let shows = |seen: &Seen| workspace.starts_with(&seen.at) || seen.at.starts_with(workspace);
        (!seen.iter().any(shows)).then_some(workspace)
    }

    /// Which rules kept something from a command that said this, if they may have.
    fn withheld_by_rules(&self, by: AgentId, output: &str) -> Option<String> {
        // What is withheld of a directory cannot be opened; a directory that is withheld
        // as a whole is not there.
        let may_be_why = output.contains(NOT_OPENED)
            || (output.contains(NOT_THERE) && self.lacks_a_whole_directory(by));
        if !may_be_why {
            return None;
        }
        let rules: Vec<String> = self.runtime.machine.look(|session| {
            let rules = session.rules().withholding();
            rules.map(|rule| format!("`{rule}`")).collect()
        });
        if rules.is_empty() {
            return None;
        }
        Some(format!(
            "Commands are shown nothing that a rule refuses to read or wants a question about: {}. Read it with a \
             file tool, which asks or says which rule refuses it.",
            rules.join(", ")
        ))
    }

    /// Whether rules withhold a directory that is held for reading as a whole.
    fn lacks_a_whole_directory(&self, by: AgentId) -> bool {
        self.runtime.machine.look(|session| {
            let mut caps = session
                .held_by(by)
                .flat_map(|grant| grant.authority().caps());
            caps.any(|cap| {
                cap.verb() == Verb::FsRead
                    && matches!(cap.object(), Object::Dir { dir, below, extent: Extent::Tree }
                        if session.rules().shown_to_commands(*dir, below) == Shown::Nothing)
            })
        })
    }

    /// A directory below one that is held; `None` if it is a file or gone.
    fn part(&mut self, dir: DirId, below: &RelPath) -> Result<Option<DirCap>, Stop> {
        let action = Action::on_tree(Verb::FsRead, dir, below.clone(), Digest::NONE)
            .map_err(|error| Stop::Broken(error.to_string()))?;
        let event = Event::Call(Call {
            by: self.by,
            tool: Tool::Directory,
            actions: vec![action],
        });
        let (mut turn, mounts) = self.turn();
        let (call, part) = turn.begin(
            event,
            |_| below.to_string(),
            |mut permits| mounts.get(dir)?.cap.subdir(permits.pop()?, below).ok(),
        )?;
        turn.finish(call, Outcome::Done(Digest::NONE))?;
        Ok(part)
    }
}

/// Whether a rule refuses it, whatever is held.
fn is_refused(session: &Session, cap: &Cap) -> bool {
    let action = Action::new(cap.verb(), cap.object().clone(), Digest::NONE);
    action.is_ok_and(|action| {
        let judged = session.rules().judge(Tool::Terminal, &action);
        matches!(judged, Judgement::Deny(..))
    })
}
