//! Rules that stand above every grant.
//!
//! Three things no grant decides: the agent's own configuration, ledger and
//! store are out of reach; a command runs only where isolation was proved;
//! sensitive names are asked about each time. The edge says at the start of a
//! session where its directories lie; these locations serve the rules alone
//! and are never shown to a model.

use alloc::vec::Vec;

use crate::action::Action;
use crate::authority::{DirId, Object, Program, Verb};
use crate::fault::{self, Fault};
use crate::limits::DIRS_MAX;
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;
use crate::tool::Tool;

pub use self::sensitive::Sensitivity;

mod sensitive;

/// What a probe inside the sandbox proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Every layer was seen to work.
    Isolated,
    /// It is known not to isolate.
    Unisolated,
    /// Something could not be proved.
    Unknown,
}

/// The rules of one session.
#[derive(Debug)]
pub struct Rules {
    session: u64,
    isolation: Isolation,
    protected: Vec<RelPath>,
    guarded: Vec<RelPath>,
    dirs: Vec<RelPath>,
}

impl Rules {
    /// Rules for the session numbered `session`; `protected` are places seen from `/`.
    #[must_use]
    pub fn new(session: u64, isolation: Isolation, protected: Vec<RelPath>) -> Rules {
        Rules {
            session,
            isolation,
            protected,
            guarded: Vec::new(),
            dirs: Vec::new(),
        }
    }

    /// Makes a directory known that the edge holds open, at `location` seen from `/`.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn add_dir(&mut self, location: RelPath) -> Result<DirId, Denial> {
        let number = u32::try_from(self.dirs.len())
            .ok()
            .filter(|_| self.dirs.len() < DIRS_MAX);
        let index = number
            .ok_or_else(|| Denial::new(DenialCode::LimitReached, "directories in one session"))?;
        self.dirs.push(location);
        Ok(DirId::new(self.session, index))
    }

    /// Makes the user be asked each time about `place` (seen from `/`) and what lies below it.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn guard_place(&mut self, place: RelPath) -> Result<(), Denial> {
        if self.guarded.len() >= DIRS_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                "guarded places in one session",
            ));
        }
        self.guarded.push(place);
        Ok(())
    }

    /// Where a place below a directory lies, seen from `/`.
    ///
    /// # Errors
    /// `no-cap` for a directory of another session; `path-too-long`.
    pub fn locate(&self, dir: DirId, below: &RelPath) -> Result<RelPath, Denial> {
        let location = usize::try_from(dir.index())
            .ok()
            .filter(|_| dir.session() == self.session)
            .and_then(|index| self.dirs.get(index))
            .ok_or_else(|| Denial::new(DenialCode::NoCap, dir))?;
        location
            .join(below)
            .map_err(|error| Denial::new(error.code(), below))
    }

    /// Is it one of the agent's own places? A search leaves these out.
    #[must_use]
    pub fn is_protected(&self, dir: DirId, below: &RelPath) -> bool {
        match self.locate(dir, below) {
            Ok(location) => self.protects(&location),
            Err(_) => true,
        }
    }

    /// Whether the place is one of the agent's own, or one lies below it:
    /// whoever sees all of it sees that, too.
    #[must_use]
    pub fn touches_protected(&self, dir: DirId, below: &RelPath) -> bool {
        match self.locate(dir, below) {
            Ok(location) => {
                let above = self
                    .protected
                    .iter()
                    .any(|place| place.starts_with(&location))
                    && !fault::is(Fault::ProtectedPathsArePlain);
                above || self.protects(&location)
            }
            Err(_) => true,
        }
    }

    fn protects(&self, location: &RelPath) -> bool {
        self.protected
            .iter()
            .any(|place| location.starts_with(place))
            && !fault::is(Fault::ProtectedPathsArePlain)
    }

    /// The refusal that no grant and no answer can lift, if there is one.
    pub(crate) fn hard_denial(&self, action: &Action) -> Option<Denial> {
        match action.object() {
            Object::Dir { dir, below } => match self.locate(*dir, below) {
                Err(denial) => Some(denial),
                Ok(location) => {
                    // Removing a directory removes what lies in it.
                    let takes_along = action.verb() == Verb::FsDelete
                        && self
                            .protected
                            .iter()
                            .any(|place| place.starts_with(&location))
                        && !fault::is(Fault::ProtectedPathsArePlain);
                    (takes_along || self.protects(&location))
                        .then(|| Denial::new(DenialCode::Protected, action.cap()))
                }
            },
            Object::Program(Program::AnyInView | Program::InView(_)) => match self.isolation {
                Isolation::Isolated => None,
                Isolation::Unisolated | Isolation::Unknown => {
                    Some(Denial::new(DenialCode::IsolationUnknown, action.cap()))
                }
            },
            Object::Session if action.verb() == Verb::ConfigChange => {
                Some(Denial::new(DenialCode::Protected, action.cap()))
            }
            Object::Program(Program::OnHost(_))
            | Object::Host(_)
            | Object::Secret(_)
            | Object::Model(_)
            | Object::Session
            | Object::Extension(_) => None,
        }
    }

    /// Must the user be asked about it each time, whatever is held?
    #[must_use]
    pub fn sensitivity(&self, tool: Tool, action: &Action) -> Sensitivity {
        if fault::is(Fault::SensitivePathsArePlain) {
            return Sensitivity::Plain;
        }
        match action.object() {
            Object::Dir { dir, below } => match self.locate(*dir, below) {
                Ok(location) if self.guarded.iter().any(|place| location.starts_with(place)) => {
                    Sensitivity::Sensitive("a place that is guarded")
                }
                Ok(location) => sensitive::judge(tool, action.verb(), &location),
                Err(_) => Sensitivity::Sensitive("a place that is not known"),
            },
            Object::Program(_)
            | Object::Host(_)
            | Object::Secret(_)
            | Object::Model(_)
            | Object::Session
            | Object::Extension(_) => Sensitivity::Plain,
        }
    }
}
