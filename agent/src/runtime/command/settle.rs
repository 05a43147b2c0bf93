//! What of a command's changes may stand: decided, and carried over or thrown away.

use hermitcrab_core::{
    action::Action,
    approval::CallId,
    authority::{DirId, Object},
    outcome::{Denial, DenialCode},
    path::RelPath,
    rules::behind_a_link,
    session::Event,
};
use hermitcrab_sandbox::{
    changeset::{Change, ChangeSet, What},
    journal::Part,
    spawn::Finished,
};

use super::super::{
    hands::Hands, result::ChangeSummary, seen::Seen, shown, turn::Stop, unkept, words,
};
use crate::ports::Detail;

/// Why changes do not stand.
pub(in crate::runtime) struct Unsettled {
    pub(in crate::runtime) denial: Denial,
    /// Whether the user was asked.
    pub(in crate::runtime) asked: bool,
    /// At which name that was noticed as they were carried over, by the place of its view.
    pub(in crate::runtime) at: Option<(usize, RelPath)>,
}

impl Unsettled {
    fn unasked(denial: Denial) -> Self {
        Self {
            denial,
            asked: false,
            at: None,
        }
    }

    /// Why, and whether the user was asked.
    pub(in crate::runtime) fn told(self) -> (Denial, bool) {
        (self.denial, self.asked)
    }
}

impl Hands<'_> {
    /// Commits what is held or granted now, without what is only there besides; says why
    /// not otherwise.
    pub(in crate::runtime) fn settle(
        &mut self,
        call: CallId,
        command: &str,
        seen: &[Seen],
        finished: &mut Finished,
    ) -> Result<Option<(Denial, bool)>, Stop> {
        let settled = self.settle_or_where(call, command, seen, finished)?;
        Ok(settled.map(Unsettled::told))
    }

    /// The same, and where it was noticed that it cannot be.
    pub(in crate::runtime) fn settle_or_where(
        &mut self,
        call: CallId,
        command: &str,
        seen: &[Seen],
        finished: &mut Finished,
    ) -> Result<Option<Unsettled>, Stop> {
        // What it did until it was stopped may not stand.
        if let Some(denial) = self.stopped(call) {
            return Ok(Some(Unsettled::unasked(denial)));
        }
        self.leave_out_besides(call, seen, finished)?;
        let sets: Vec<(&Seen, &ChangeSet)> = seen
            .iter()
            .zip(&finished.changes)
            .filter(|(_, set)| !set.is_empty())
            .collect();
        let mut actions = Vec::new();
        for (seen, set) in &sets {
            actions.extend(
                set.actions(seen.dir)
                    .map_err(|error| Stop::Broken(error.to_string()))?,
            );
        }
        if actions.is_empty() {
            return Ok(None);
        }
        for (seen, set) in &sets {
            actions.extend(behind_links(seen.dir, set)?);
        }
        // Nothing to ask about: no answer could make it stand.
        let never = sets.iter().find_map(|(seen, set)| {
            let (change, denial) = set.never_kept()?;
            Some((*seen, *set, &change.path, denial))
        });
        if let Some((seen, set, path, denial)) = never {
            let denial = match set.held_outside(path) {
                Some(held) if denial.code() == DenialCode::ChangedSinceShown => {
                    let who = self.who_left(call, seen, path, held);
                    who.map(|who| denial.clone().said_as(format_args!("{path}, by {who}")))
                        .unwrap_or(denial)
                }
                _ => denial,
            };
            return Ok(Some(Unsettled::unasked(denial)));
        }
        let is_moved = |path: &RelPath| sets.iter().any(|(_, set)| set.is_moved(path));
        if let Err(denial) = self.runtime.ceilings.check(&actions, is_moved) {
            return Ok(Some(Unsettled::unasked(denial)));
        }
        self.carry_over(Event::Effects { call, actions }, command, &sets)
    }

    /// Has these changes decided by this event, and carries them over; says why not
    /// otherwise.
    pub(in crate::runtime) fn carry_over(
        &mut self,
        event: Event,
        command: &str,
        sets: &[(&Seen, &ChangeSet)],
    ) -> Result<Option<Unsettled>, Stop> {
        let mut at = None;
        let unsaved = self.unsaved(sets);
        let by = self.by;
        let listed: Vec<(String, &ChangeSet)> = sets
            .iter()
            .map(|(seen, set)| (seen.at.to_string_lossy().into_owned(), *set))
            .collect();
        let config = &self.runtime.config;
        let common_dir = config.common_dir.clone();
        let (mut turn, mounts, journal) = self.turn_with_journal()?;
        let changes = sets.iter().map(|(_, set)| set.changes().len()).sum();
        let detail = turn.user.detail(changes);
        let machine = turn.machine;
        let mut is_asked = false;
        let begun = turn.begin(
            event,
            |question| {
                is_asked = true;
                let shown = match detail {
                    Detail::Whole => {
                        let each_time: Vec<_> = machine.look(|session| {
                            let asked = |(seen, set): &(&Seen, &ChangeSet)| {
                                shown::asked_each_time(question, session.rules(), seen.dir, set)
                            };
                            sets.iter().map(asked).collect()
                        });
                        shown::changes(question, command, &listed, &each_time)
                    }
                    Detail::Stat => shown::stat(question, command, &listed),
                };
                shown.with(unsaved.clone())
            },
            |permits| {
                let mut permits = permits.into_iter();
                let mut parts = Vec::new();
                for (seen, set) in sets {
                    let dir = match &seen.part {
                        Some(part) => part,
                        None => {
                            &mounts
                                .get(seen.dir)
                                .ok_or_else(|| {
                                    Stop::refused(Denial::new(DenialCode::NoCap, seen.dir))
                                })?
                                .cap
                        }
                    };
                    parts.push(Part {
                        dir,
                        set,
                        permits: permits.by_ref().take(set.changes().len()).collect(),
                    });
                }
                match journal.commit(parts, command).failure {
                    None => Ok(()),
                    Some(failure) if failure.stuck.is_empty() => {
                        at = failure.part.map(|part| (part, failure.path.clone()));
                        Err(unkept::stop(&failure, &common_dir, |part| {
                            sets.get(part).map(|(seen, _)| &*seen.at)
                        }))
                    }
                    Some(failure) => Err(Stop::Broken(format!(
                        "{}; they were taken back except at {}",
                        failure.error,
                        words::listed(&failure.stuck),
                    ))),
                }
            },
        );
        self.runtime
            .note_recovered()
            .map_err(|error| Stop::Broken(error.to_string()))?;
        match begun {
            Ok((_, Ok(()))) => {
                // Else it stood in the question.
                if let Some(port) = self.runtime.buffers.as_mut().filter(|_| !is_asked) {
                    for line in unsaved {
                        port.unsaved(by, line);
                    }
                }
                Ok(None)
            }
            Ok((_, Err(Stop::Refused { denial, asked }))) => {
                Ok(Some(Unsettled { denial, asked, at }))
            }
            Ok((_, Err(stop))) => Err(Stop::Broken(format!(
                "the changes of the command could not be kept: {}",
                stop.words()
            ))),
            Err(Stop::Refused { denial, asked }) => Ok(Some(Unsettled {
                denial,
                asked,
                at: None,
            })),
            Err(stop) => Err(stop),
        }
    }
}

/// What new links make besides themselves: behind one lies, under a name that somebody
/// runs what it holds by, all that is where it leads; and by a second name the file that was
/// there can be changed. These effects come after all others, and nothing is done for them.
pub(in crate::runtime) fn behind_links(dir: DirId, set: &ChangeSet) -> Result<Vec<Action>, Stop> {
    let is_link = |change: &Change| matches!(change.what, What::CreatedSymlink { .. });
    let mut behind = set
        .by_second_names(dir)
        .map_err(|error| Stop::Broken(error.to_string()))?;
    if !set.changes().iter().any(is_link) {
        return Ok(behind);
    }
    let links = set.changes().iter().zip(
        set.actions(dir)
            .map_err(|error| Stop::Broken(error.to_string()))?,
    );
    let more = links
        .filter(|(change, _)| is_link(change))
        .filter_map(|(_, action)| {
            let Object::Dir { dir, below, .. } = action.object() else {
                return None;
            };
            let behind = behind_a_link(below)?;
            Some(Action::on_path(
                action.verb(),
                *dir,
                behind,
                action.digest(),
            ))
        })
        .map(|action| action.map_err(|error| Stop::Broken(error.to_string())));
    for action in more {
        behind.push(action?);
    }
    Ok(behind)
}

/// What a command did, for its user to read.
pub(in crate::runtime) fn told_of(seen: &[Seen], finished: &Finished) -> String {
    let places = seen
        .iter()
        .map(|seen| seen.at.to_string_lossy().into_owned());
    let sets: Vec<_> = places.zip(&finished.changes).collect();
    shown::changed(&sets, &[])
}

/// How much was changed.
pub(in crate::runtime) fn summary(sets: &[ChangeSet]) -> ChangeSummary {
    let mut summary = ChangeSummary::default();
    for change in sets.iter().flat_map(ChangeSet::changes) {
        match change.what {
            What::CreatedFile { .. }
            | What::CreatedDir { .. }
            | What::CreatedSymlink { .. }
            | What::CreatedSpecial
            | What::MovedHere { .. } => {
                summary.created += 1;
            }
            What::ModifiedFile { .. }
            | What::ModifiedMode { .. }
            | What::ModifiedTime { .. }
            | What::Xattrs { .. } => {
                summary.modified += 1;
            }
            What::DeletedFile { .. }
            | What::DeletedSymlink { .. }
            | What::DeletedDir
            | What::DeletedSpecial
            | What::MovedAway { .. } => {
                summary.deleted += 1;
            }
        }
    }
    summary
}
