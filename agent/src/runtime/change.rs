//! Several files changed in one call: asked for, shown and made together.

use std::collections::BTreeMap;

use hermitcrab_core::{
    action::Action,
    approval::Question,
    authority::{DirId, Extent, Verb},
    digest::Digest,
    outcome::{Denial, DenialCode, Outcome},
    path::RelPath,
    rules::Judgement,
    session::Call,
    tool::Tool,
};
use hermitcrab_sandbox::{
    changeset::edits::Edit,
    dircap::{Base, FsError, dir_digest, moved_digest},
    journal::Part,
};

use super::{
    arrivals::Arrivals,
    command::behind_links,
    edit::{Before, FileChange, Received},
    hands::{
        Displaced, Hands, NEW_FILE_MODE, Offshoot, Put, action, action_on_tree, stop, unknown,
    },
    place::{Place, Spot},
    planned, shown,
    turn::Stop,
    words,
};
use crate::digest::sha256;

/// What is done with the next permits in a directory; `None` if one is missing.
type Act<'a> = &'a mut dyn FnMut(
    &hermitcrab_sandbox::dircap::DirCap,
    &mut dyn Iterator<Item = hermitcrab_core::Permit<'_>>,
) -> Option<Result<(), FsError>>;

/// A change as edits of the directory it lies in.
fn edits_of(change: &FileChange) -> (DirId, Vec<Edit>) {
    match change {
        FileChange::Write {
            place,
            before,
            content,
            mode,
        } => {
            let (path, content) = (place.below.clone(), content.clone());
            let edit = match before {
                Before::Nothing => Edit::Put {
                    path,
                    content,
                    mode: mode.unwrap_or(NEW_FILE_MODE),
                },
                Before::File(old) => Edit::Replace {
                    path,
                    before: Some(sha256(old)),
                    content,
                },
                Before::Long(old) => Edit::Replace {
                    path,
                    before: Some(old.digest),
                    content,
                },
                Before::Unread => Edit::Replace {
                    path,
                    before: None,
                    content,
                },
            };
            (place.dir, vec![edit])
        }
        FileChange::Delete { place, before } => {
            let edit = Edit::Remove {
                path: place.below.clone(),
                before: sha256(before),
            };
            (place.dir, vec![edit])
        }
        FileChange::RemoveDir { place } => {
            let edit = Edit::RemoveName {
                path: place.below.clone(),
            };
            (place.dir, vec![edit])
        }
        FileChange::RemoveLink { place, says } => {
            let edit = Edit::RemoveLink {
                path: place.below.clone(),
                target: says.clone(),
            };
            (place.dir, vec![edit])
        }
        FileChange::PutLink { place, says } => {
            let edit = Edit::PutLink {
                path: place.below.clone(),
                target: says.clone(),
            };
            (place.dir, vec![edit])
        }
        FileChange::Move { from, to, .. } => {
            let edit = Edit::Move {
                from: from.below.clone(),
                to: to.below.clone(),
            };
            (from.dir, vec![edit])
        }
        FileChange::Rename {
            from,
            to,
            before,
            content,
        } => {
            let edit = Edit::Rename {
                from: from.below.clone(),
                to: to.below.clone(),
                before: sha256(before),
                content: content.clone(),
            };
            (from.dir, vec![edit])
        }
    }
}

/// Directories as edits of those they lie in.
fn made(dirs: &[Place], mode: u32) -> BTreeMap<DirId, Vec<Edit>> {
    let mut edits: BTreeMap<DirId, Vec<Edit>> = BTreeMap::new();
    for place in dirs {
        edits.entry(place.dir).or_default().push(Edit::MakeDir {
            path: place.below.clone(),
            mode,
        });
    }
    edits
}

/// Is it a link itself that comes or goes?
fn is_a_link(change: &FileChange) -> bool {
    match change {
        FileChange::RemoveLink { .. } | FileChange::PutLink { .. } => true,
        FileChange::Write { .. }
        | FileChange::Delete { .. }
        | FileChange::RemoveDir { .. }
        | FileChange::Rename { .. }
        | FileChange::Move { .. } => false,
    }
}

/// Does what lies there only get another name?
fn is_moved(changes: &[FileChange], path: &RelPath) -> bool {
    changes.iter().any(|change| match change {
        FileChange::Rename { from, .. } | FileChange::Move { from, .. } => from.below == *path,
        FileChange::Write { .. }
        | FileChange::Delete { .. }
        | FileChange::RemoveDir { .. }
        | FileChange::RemoveLink { .. }
        | FileChange::PutLink { .. } => false,
    })
}

impl FileChange {
    /// Where it begins.
    fn place(&self) -> &Place {
        match self {
            Self::Write { place, .. }
            | Self::Delete { place, .. }
            | Self::RemoveDir { place }
            | Self::RemoveLink { place, .. }
            | Self::PutLink { place, .. } => place,
            Self::Rename { from, .. } | Self::Move { from, .. } => from,
        }
    }

    /// Where the change puts a file, if it does.
    pub(super) fn target(&self) -> Option<&Place> {
        match self {
            Self::Write {
                place,
                before: Before::Nothing,
                ..
            } => Some(place),
            Self::PutLink { place, .. } => Some(place),
            Self::Rename { to, .. } | Self::Move { to, .. } => Some(to),
            Self::Write { .. }
            | Self::Delete { .. }
            | Self::RemoveDir { .. }
            | Self::RemoveLink { .. } => None,
        }
    }
}

impl Hands<'_> {
    /// Makes the directories on the way to a place, and the place itself, all of them or
    /// none; those that were made.
    pub fn make_dirs(&mut self, place: &Place) -> Result<Vec<Place>, Stop> {
        let mut missing = self.missing_parents(place)?;
        if !place.below.is_root() && self.look(place)?.is_none() {
            missing.push(place.clone());
        }
        if missing.is_empty() {
            return Ok(missing);
        }
        let edits = made(&missing, self.new_dir_mode());
        let note = match missing.as_slice() {
            [one] => format!("{}: {}", self.tool, one.below),
            all => format!("{}: {} directories", self.tool, all.len()),
        };
        let show = |question: &Question, _: &Arrivals| shown::directories(question, &missing);
        self.commit(&edits, &note, |_| false, show)?;
        Ok(missing)
    }

    /// Makes all changes, or none: also when the disk is full, a file turns out
    /// to be another one, or the machine stops in between. Directories that a
    /// chat's tool removes are the exception; they are empty by then.
    pub fn change(&mut self, changes: &[FileChange]) -> Result<(), Stop> {
        for change in changes {
            match change {
                FileChange::Write { place, before, .. } => {
                    self.is_saved(place, before)?;
                }
                FileChange::Delete { place, before }
                | FileChange::Rename {
                    from: place,
                    before,
                    ..
                } => {
                    self.is_saved_as(place, before)?;
                }
                FileChange::Move { from, extent, .. } if *extent == Extent::Alone => {
                    self.is_saved_to_move(from)?;
                }
                // Nothing that an editor holds as a text.
                FileChange::RemoveDir { .. }
                | FileChange::RemoveLink { .. }
                | FileChange::PutLink { .. }
                | FileChange::Move { .. } => {}
            }
        }
        let moved = changes.iter().filter_map(|change| match change {
            FileChange::Move { from, extent, .. } => Some(match extent {
                Extent::Alone => Spot::At(from),
                Extent::Tree => Spot::All(from),
            }),
            FileChange::Write { .. }
            | FileChange::Delete { .. }
            | FileChange::RemoveDir { .. }
            | FileChange::RemoveLink { .. }
            | FileChange::PutLink { .. }
            | FileChange::Rename { .. } => None,
        });
        self.read_to_move(&moved.collect::<Vec<_>>())?;
        let goes_together = |change: &FileChange| {
            !matches!(
                change,
                FileChange::RemoveDir { .. }
                    | FileChange::Move { .. }
                    | FileChange::Write {
                        before: Before::Unread,
                        ..
                    }
            )
        };
        // Only there its bits are part of what is asked about.
        let has_a_mode =
            |change: &FileChange| matches!(change, FileChange::Write { mode: Some(_), .. });
        // A rename as such takes along whatever is there by then.
        let is_bound = |change: &FileChange| !matches!(change, FileChange::Rename { .. });
        // What a plan's action changes can be taken back, whatever it is; and so can a link,
        // of which nothing but the journal makes sure that it still says the same.
        let is_kept = self.tool == Tool::Directory || changes.iter().any(is_a_link);
        // A single write is kept by itself; whatever else is done is kept as a commit.
        let is_write = |change: &FileChange| matches!(change, FileChange::Write { .. });
        let is_one = changes.len() <= 1
            && changes
                .iter()
                .all(|change| is_bound(change) && is_write(change) && !has_a_mode(change));
        let done = if is_kept || (!is_one && changes.iter().all(goes_together)) {
            self.change_together(changes)
        } else {
            self.change_in_turn(changes)
        };
        match &done {
            Ok(()) => self.wrote(|| shown::files_of(changes)),
            Err(Stop::Refused { denial, .. }) => {
                self.is_overtaken |= denial.code() == DenialCode::ChangedSinceShown;
            }
            Err(_) => {}
        }
        done
    }

    /// As one commit of the journal. What a plan's action needs on the way is made as its user
    /// wants new directories to be.
    fn change_together(&mut self, changes: &[FileChange]) -> Result<(), Stop> {
        let parents = match self.tool == Tool::Directory {
            true => self.missing_for(changes)?,
            false => Vec::new(),
        };
        let mut edits = made(&parents, self.new_dir_mode());
        for change in changes {
            let (dir, mut wanted) = edits_of(change);
            edits.entry(dir).or_default().append(&mut wanted);
        }
        let note = match changes {
            [one] => format!("{}: {}", self.tool, one.place().below),
            all => format!("{}: {} files", self.tool, all.len()),
        };
        let moved = |path: &RelPath| is_moved(changes, path);
        let show =
            |question: &Question, arrivals: &Arrivals| shown::files(question, changes, arrivals);
        self.commit(&edits, &note, moved, show)
    }

    /// The directories that are missing on the way to what changes put in place.
    fn missing_for(&mut self, changes: &[FileChange]) -> Result<Vec<Place>, Stop> {
        self.all_missing(changes.iter().filter_map(FileChange::target))
    }

    /// Makes new files and the directories on the way to them, all of it or nothing.
    pub(super) fn put_all<S: Into<super::turn::Shown>>(
        &mut self,
        received: &[Received<'_>],
        (mode, dir_mode): (u32, u32),
        show: impl FnOnce(&Question) -> S,
    ) -> Result<(), Stop> {
        let parents = self.all_missing(received.iter().map(|one| &one.place))?;
        let mut edits = made(&parents, dir_mode);
        for one in received {
            edits.entry(one.place.dir).or_default().push(Edit::Put {
                path: one.place.below.clone(),
                content: one.content.to_vec(),
                mode,
            });
        }
        let note = format!("{}: {} files", self.tool, received.len());
        self.commit(&edits, &note, |_| false, |question, _| show(question))
    }

    /// Edits as one commit of the journal: asked for, shown, and made together.
    fn commit<S: Into<super::turn::Shown>>(
        &mut self,
        edits: &BTreeMap<DirId, Vec<Edit>>,
        note: &str,
        is_moved: impl Fn(&RelPath) -> bool,
        show: impl FnOnce(&Question, &Arrivals) -> S,
    ) -> Result<(), Stop> {
        let (by, tool) = (self.by, self.tool);
        // Nobody called the tool a plan changes things by, so its name says nothing.
        let of_a_plan = note.strip_prefix(Tool::Directory.as_str());
        let note = match of_a_plan.filter(|_| tool == Tool::Directory) {
            Some(rest) => format!("a plan{rest}"),
            None => note.to_owned(),
        };
        let ceilings = self.runtime.ceilings.clone();
        let steering = self.runtime.steering.clone();
        self.has_acted = true;
        let (mut turn, mounts, journal) = self.turn_with_journal()?;
        let (mut parts, mut arrivals) = (Vec::new(), Arrivals::default());
        for (dir, edits) in edits {
            let gone = || Stop::refused(Denial::new(DenialCode::NoCap, dir));
            let cap = &mounts.get(*dir).ok_or_else(gone)?.cap;
            let mut incoming = journal.incoming(cap, edits).map_err(|error| stop(&error))?;
            if let Some(set) = incoming.set_mut() {
                arrivals.read((turn.machine, tool), *dir, set, shown::SHOWN_BYTES_MAX)?;
            }
            parts.push((*dir, cap, incoming));
        }
        let mut actions = Vec::new();
        let (mut sets, mut carried, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        for (dir, cap, incoming) in &parts {
            let set = incoming
                .set()
                .ok_or_else(|| Stop::Broken("lost the contents of a patch".to_owned()))?;
            actions.extend(
                set.actions(*dir)
                    .map_err(|error| Stop::Broken(error.to_string()))?,
            );
            carried.extend(
                set.carried(*dir)
                    .map_err(|error| Stop::Broken(error.to_string()))?,
            );
            behind.extend(behind_links(*dir, set)?);
            sets.push((*cap, set));
        }
        actions.append(&mut behind);
        ceilings.check(&actions, is_moved).map_err(Stop::refused)?;
        // What is held of a whole directory holds all that goes with it, but for the names
        // that somebody is asked about, or that a rule refuses. They come after all others.
        let is_more = |action: &Action| {
            turn.machine
                .look(|session| session.rules().judge(tool, action) != Judgement::Plain)
        };
        carried.retain(is_more);
        actions.append(&mut carried);
        let (call, done) = turn.begin(
            planned::told(steering.as_ref(), Call { by, tool, actions }),
            |question| show(question, &arrivals),
            |permits| {
                let mut permits = permits.into_iter();
                let parts = sets
                    .iter()
                    .map(|(dir, set)| Part {
                        dir,
                        set,
                        permits: permits.by_ref().take(set.changes().len()).collect(),
                    })
                    .collect();
                journal.commit(parts, &note).failure
            },
        )?;
        let outcome = match &done {
            None => Outcome::Done(Digest::NONE),
            Some(_) => Outcome::Failed,
        };
        turn.finish(call, outcome)?;
        match done {
            None => Ok(()),
            Some(failure) if failure.stuck.is_empty() => Err(match stop(&failure.error) {
                Stop::Missing => {
                    Stop::Io(format!("`{}` is gone; nothing was changed", failure.path))
                }
                Stop::Io(error) => Stop::Io(format!("{error}; nothing was changed")),
                Stop::System(kind, error) => {
                    Stop::System(kind, format!("{error}; nothing was changed"))
                }
                other @ (Stop::Refused { .. } | Stop::Broken(_)) => other,
            }),
            Some(failure) => Err(Stop::Broken(format!(
                "the changes could not be made ({}), and were taken back except at {}",
                failure.error,
                words::listed(&failure.stuck),
            ))),
        }
    }

    /// One after the other, permitted together.
    fn change_in_turn(&mut self, changes: &[FileChange]) -> Result<(), Stop> {
        let parents = self.missing_for(changes)?;
        let dir_mode = self.new_dir_mode();
        let mut actions = Vec::new();
        for parent in &parents {
            actions.push(action(Verb::FsCreate, parent, dir_digest(dir_mode))?);
        }
        for change in changes {
            match change {
                FileChange::Write {
                    place,
                    before,
                    content,
                    ..
                } => {
                    let verb = match before {
                        Before::Nothing => Verb::FsCreate,
                        Before::File(_) | Before::Long(_) | Before::Unread => Verb::FsModify,
                    };
                    actions.push(action(verb, place, sha256(content))?);
                }
                FileChange::Delete { place, .. } | FileChange::RemoveDir { place } => {
                    actions.push(action(Verb::FsDelete, place, Digest::NONE)?);
                }
                FileChange::Rename {
                    from, to, content, ..
                } => {
                    actions.push(action(Verb::FsDelete, from, Digest::NONE)?);
                    actions.push(action(Verb::FsCreate, to, sha256(content))?);
                }
                FileChange::RemoveLink { .. } | FileChange::PutLink { .. } => {
                    return Err(Stop::Broken(format!(
                        "a link was to be changed without the journal: `{}`",
                        change.place().absolute
                    )));
                }
                FileChange::Move { from, to, .. } => {
                    actions.push(action_on_tree(Verb::FsDelete, from, Digest::NONE)?);
                    let came = moved_digest(&from.below);
                    actions.push(action_on_tree(Verb::FsCreate, to, came)?);
                }
            }
        }
        self.runtime
            .ceilings
            .check(&actions, |path| is_moved(changes, path))
            .map_err(Stop::refused)?;
        let none = Arrivals::default();
        let show = |question: &Question| shown::files(question, changes, &none);
        if let (
            [_, ..],
            [
                FileChange::Write {
                    place,
                    before: Before::Nothing,
                    content,
                    mode: None,
                },
            ],
        ) = (&*parents, changes)
        {
            let new = Offshoot {
                missing: &parents,
                dir_mode,
                place,
                content,
                displaced: Displaced::Kept,
            };
            return self.perform_with_parents(actions, show, &new).map(drop);
        }
        self.ready_to_keep();
        let tool = self.tool;
        let made = self.perform_kept(actions, show, |mounts, journal, permits| {
            let mut permits = permits.into_iter();
            let mut made = 0_usize;
            let mut step = |place: &Place, act: Act<'_>| {
                let mount = mounts.get(place.dir).ok_or_else(|| unknown(place))?;
                act(&mount.cap, &mut permits)
                    .ok_or_else(|| unknown(place))?
                    .map_err(|error| stop(&error))
            };
            for parent in &parents {
                step(parent, &mut |dir, permits| {
                    Some(dir.make_dir(permits.next()?, &parent.below, dir_mode))
                })
                .map_err(|stop| (made, stop))?;
            }
            for change in changes {
                match change {
                    FileChange::Write {
                        place,
                        before,
                        content,
                        mode,
                    } => {
                        let (base, mode) = match before {
                            Before::Nothing => (Base::Absent, mode.or(Some(NEW_FILE_MODE))),
                            Before::File(old) => (Base::Content(sha256(old)), None),
                            Before::Long(old) => (Base::Content(old.digest), None),
                            Before::Unread => (Base::AnyFile, None),
                        };
                        let note = format!("{tool}: {}", place.below);
                        let put = Put {
                            path: &place.below,
                            content,
                            base,
                            mode,
                            note: &note,
                        };
                        step(place, &mut |dir, permits| {
                            Some(put.done(dir, journal, permits.next()?).map(drop))
                        })
                    }
                    FileChange::Delete { place, before } => step(place, &mut |dir, permits| {
                        Some(dir.remove_if(permits.next()?, &place.below, sha256(before)))
                    }),
                    FileChange::RemoveDir { place } => step(place, &mut |dir, permits| {
                        Some(dir.remove(permits.next()?, &place.below))
                    }),
                    FileChange::Rename {
                        from,
                        to,
                        before,
                        content,
                    } => step(from, &mut |dir, permits| {
                        let (away, here) = (permits.next()?, permits.next()?);
                        let put = dir.write(here, &to.below, content, Base::Absent, None);
                        Some(put.and_then(|()| dir.remove_if(away, &from.below, sha256(before))))
                    }),
                    // Nothing was asked for it.
                    FileChange::RemoveLink { place, .. } | FileChange::PutLink { place, .. } => {
                        Err(unknown(place))
                    }
                    FileChange::Move { from, to, .. } => step(from, &mut |dir, permits| {
                        let (away, here) = (permits.next()?, permits.next()?);
                        Some(dir.rename(away, here, &from.below, &to.below))
                    }),
                }
                .map_err(|stop| (made, stop))?;
                made += 1;
            }
            Ok::<usize, (usize, Stop)>(made)
        })?;
        match made {
            Ok(_) => Ok(()),
            Err((0, stop)) => Err(stop),
            Err((made, stop)) => Err(Stop::Io(format!(
                "{made} of {} files were changed, then the next could not be: {}",
                changes.len(),
                stop.words()
            ))),
        }
    }
}
