//! Reading what is too long to be in memory.
//!
//! A file is opened in the turn that permits it and read after, piece by piece, so that
//! nobody waits for the session meanwhile. Until its end the call counts as running:
//! whoever ends the grant it rests on ends the reading, and the rest is not seen.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::{CallId, Question},
    authority::Verb,
    digest::Digest,
    outcome::{Denial, DenialCode, Outcome},
    time::Instant,
};
use hermitcrab_sandbox::dircap::{self, DirCap, FsError, LongFile, Stat};

use super::{
    super::{
        mounts::Mounts,
        place::Place,
        turn::{Reach, Stop},
        visible,
    },
    Hands, action, stop, stop_at, unknown,
};

/// After how many pieces it is asked whether the rest is still wanted.
const PIECES_BETWEEN_LOOKS: usize = 16;

/// What a file holds, for whoever reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Whole(Vec<u8>),
    /// Its pieces were taken one by one.
    Passed(Passed),
}

/// How far a file was read that was too long to be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// To its end, or as far as whoever took the pieces wanted.
    AsWanted,
    /// Time was over.
    TimeOver,
}

/// Takes a long file piece by piece.
pub trait Taker {
    /// A file begins; `has_holes`: parts of it take no room on the disk.
    fn begins(&mut self, _has_holes: bool) {}

    /// The next piece, of [`dircap::PIECE_BYTES`] except for the last.
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()>;
}

impl Hands<'_> {
    /// What a file holds; of one longer than `whole_max` the pieces are handed over. A link
    /// is followed by asking for the place it leads to.
    pub(super) fn open_and_pass(
        &mut self,
        place: &Place,
        whole_max: usize,
        taker: &mut dyn Taker,
    ) -> Result<Content, Stop> {
        let opened = |dir: &DirCap, permit: Permit<'_>, place: &Place| {
            dir.open_direct(permit, &place.below, whole_max)
        };
        let take = |hands: &mut Self, call, content| hands.taken(call, content, taker);
        self.opened(place, opened, take)
    }

    /// The same with facts about the file, for one use of what is held. A directory holds
    /// nothing.
    pub(super) fn look_open_and_pass(
        &mut self,
        place: &Place,
        whole_max: usize,
        taker: &mut dyn Taker,
    ) -> Result<(Stat, Option<Content>), Stop> {
        let opened = |dir: &DirCap, permit: Permit<'_>, place: &Place| {
            dir.stat_and_open_direct(permit, &place.below, whole_max)
        };
        let take = |hands: &mut Self, call, (stat, content): (Stat, Option<dircap::Content>)| {
            let content = content.map(|content| hands.taken(call, content, taker));
            Ok((stat, content.transpose()?))
        };
        self.opened(place, opened, take)
    }

    /// Opens a file in the turn that permits it, and reads it after.
    fn opened<O, R>(
        &mut self,
        place: &Place,
        open: impl Fn(&DirCap, Permit<'_>, &Place) -> Result<O, FsError>,
        take: impl FnOnce(&mut Self, CallId, O) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let (call, opened) = match self.opened_direct(place, &open)? {
            (call, Err(stop)) if stop.is(DenialCode::SymlinkRefused) => {
                self.end_look(call, Outcome::Done(Digest::NONE))?;
                let real = self.real(place)?;
                self.opened_direct(&real, &open)?
            }
            opened => opened,
        };
        // What the kernel refuses was looked at all the same.
        let (taken, outcome) = match opened {
            Ok(opened) => {
                let taken = take(self, call, opened);
                let outcome = how_it_ended(&taken);
                (taken, outcome)
            }
            Err(stop) => (Err(stop), Outcome::Done(Digest::NONE)),
        };
        self.end_look(call, outcome)?;
        taken
    }

    fn opened_direct<O>(
        &mut self,
        place: &Place,
        open: &impl Fn(&DirCap, Permit<'_>, &Place) -> Result<O, FsError>,
    ) -> Result<(CallId, Result<O, Stop>), Stop> {
        let actions = vec![action(Verb::FsRead, place, Digest::NONE)?];
        let shown =
            |_: &Question| format!("{} {}", Verb::FsRead, visible::one_line(&place.absolute));
        self.begin_look(actions, shown, |mounts, mut permits| {
            let (Some(mount), Some(permit)) = (mounts.get(place.dir), permits.pop()) else {
                return Err(unknown(place));
            };
            open(&mount.cap, permit, place).map_err(|error| stop_at(&error, place))
        })
    }

    fn taken(
        &mut self,
        call: CallId,
        content: dircap::Content,
        taker: &mut dyn Taker,
    ) -> Result<Content, Stop> {
        match content {
            dircap::Content::Whole(bytes) => Ok(Content::Whole(bytes)),
            dircap::Content::Long(file) => {
                let passed = self.pass(call, file, taker, None)?;
                Ok(Content::Passed(passed))
            }
        }
    }

    /// Begins a call that only looks; it runs until it is reported as over.
    pub(super) fn begin_look<R>(
        &mut self,
        actions: Vec<Action>,
        shown: impl FnOnce(&Question) -> String,
        act: impl FnOnce(&Mounts, Vec<Permit<'_>>) -> R,
    ) -> Result<(CallId, R), Stop> {
        let event = self.looks_or_calls(actions);
        let asked = self.asked();
        let (mut turn, mounts) = self.turn();
        let act = |permits: Vec<Permit<'_>>| act(mounts, permits);
        let (call, done) = turn.begin_reaching(Reach::Looks, event, shown, act)?;
        self.keep_if_asked(call, asked);
        Ok((call, done))
    }

    /// Reports such a call as over, unless more may be looked at by a yes it was given.
    pub(super) fn end_look(&mut self, call: CallId, outcome: Outcome) -> Result<(), Stop> {
        if self.looking.contains(&call) {
            return Ok(());
        }
        let (mut turn, _) = self.turn();
        turn.finish_look(call, outcome)
    }

    /// Hands over a file that a running call has opened, until `until` at most.
    pub(super) fn pass(
        &mut self,
        call: CallId,
        mut file: LongFile,
        taker: &mut dyn Taker,
        until: Option<Instant>,
    ) -> Result<Passed, Stop> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let kill = Arc::clone(&is_stopped);
        // If it was stopped already, the switch is thrown now.
        let _stopped = self
            .runtime
            .machine
            .runs(call, Box::new(move || kill.store(true, Ordering::SeqCst)));
        self.runtime.look_after_what_runs();
        taker.begins(file.has_holes());
        for number in 0_usize.. {
            if number.is_multiple_of(PIECES_BETWEEN_LOOKS) {
                if until.is_some_and(|until| self.runtime.clock.now() > until) {
                    return Ok(Passed::TimeOver);
                }
                let progress = self.runtime.progress.as_mut();
                if progress.is_some_and(|progress| !progress.is_wanted()) {
                    let denial = Denial::new(DenialCode::RejectedByUser, "the read was stopped");
                    return Err(Stop::refused(denial));
                }
            }
            let piece = file.piece().map_err(|error| stop(&error))?;
            if is_stopped.load(Ordering::SeqCst) {
                let denial = self.stopped(call);
                let denial = denial.unwrap_or_else(|| Denial::new(DenialCode::NoCap, call));
                return Err(Stop::refused(denial));
            }
            if piece.is_empty() || taker.take(piece).is_break() {
                break;
            }
        }
        Ok(Passed::AsWanted)
    }
}

/// What is recorded of a look that began: that it was made, unless it was broken off.
pub(super) fn how_it_ended<R>(looked: &Result<R, Stop>) -> Outcome {
    match looked {
        Err(Stop::Refused { .. }) => Outcome::Stopped,
        Ok(_) | Err(Stop::Missing | Stop::Io(_) | Stop::System(..) | Stop::Broken(_)) => {
            Outcome::Done(Digest::NONE)
        }
    }
}
