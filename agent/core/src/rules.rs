//! Rules that stand above every grant.
//!
//! What nothing lifts is in [`NonWaivable`]; what people wrote down in
//! [`ConfiguredRule`]; sensitive names are asked about each time. Refusing beats
//! asking, asking beats allowing, and both beat any grant. The edge says at the
//! start of a session where its directories lie; these locations serve the
//! rules alone and are never shown to a model.

use alloc::vec::Vec;

use crate::action::Action;
use crate::approval::Stance;
use crate::authority::{DirId, Object, Verb};
use crate::fault::{self, Fault};
use crate::limits::DIRS_MAX;
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;
use crate::standing::{PortableCap, PortableObject};
use crate::tool::Tool;

use self::aliases::Alias;
use self::configured::Configured;
pub use self::configured::{ConfiguredRule, Layer, Pattern, RuleError};
pub use self::non_waivable::NonWaivable;
pub use self::sensitive::{Sensitivity, behind_a_link};
pub use self::siblings::Siblings;
pub use self::withheld::{Shown, Withheld};
pub use crate::isolation::Isolation;
pub use crate::rule_ref::RuleRef;

mod aliases;
mod configured;
mod names;
mod new_store;
mod non_waivable;
mod sensitive;
mod siblings;
mod withheld;

/// The rules of one session.
#[derive(Debug)]
pub struct Rules {
    session: u64,
    isolation: Isolation,
    protected: Vec<RelPath>,
    guarded: Vec<RelPath>,
    dirs: Vec<Known>,
    configured: Configured,
}

/// A directory that the edge holds open.
#[derive(Debug)]
struct Known {
    /// Seen from `/`.
    at: RelPath,
    aliases: Vec<Alias>,
}

/// What the rules say about an action before any grant is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Grants decide.
    Plain,
    /// The user is asked, whatever is held.
    Ask(DenialCode, RuleRef),
    /// No, whatever is held and whoever says yes.
    Deny(DenialCode, RuleRef),
}

impl Judgement {
    /// The stricter of two; of equal ones the first.
    fn stricter(self, other: Self) -> Self {
        let rank = |judged: &Self| match judged {
            Self::Plain => 0,
            Self::Ask(..) => 1,
            Self::Deny(..) => 2,
        };
        if rank(&other) > rank(&self) {
            other
        } else {
            self
        }
    }
}

impl Rules {
    /// The session's number.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Rules for the session numbered `session`; `protected` are places seen from `/`.
    #[must_use]
    pub fn new(session: u64, isolation: Isolation, protected: Vec<RelPath>) -> Rules {
        Rules {
            session,
            isolation,
            protected,
            guarded: Vec::new(),
            dirs: Vec::new(),
            configured: Configured::default(),
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
        let index = number.ok_or_else(|| {
            let about = format_args!(
                "{DIRS_MAX} directories in one session; name one that holds several of them"
            );
            Denial::new(DenialCode::LimitReached, about)
        })?;
        self.dirs.push(Known {
            at: location,
            aliases: Vec::new(),
        });
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
                format_args!(
                    "{DIRS_MAX} guarded places in one session; name one that holds several of them"
                ),
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
            .at
            .join(below)
            .map_err(|error| Denial::new(error.code(), below))
    }

    /// Is it one of the agent's own places? A search leaves these out.
    #[must_use]
    pub fn is_protected(&self, dir: DirId, below: &RelPath) -> bool {
        match self.places(dir, below) {
            Ok(places) => places.iter().any(|location| self.protects(location)),
            Err(_) => true,
        }
    }

    /// Where a place below a directory lies, seen from `/`, by each of its names.
    fn places(&self, dir: DirId, below: &RelPath) -> Result<Vec<RelPath>, Denial> {
        let mut places = self.other_places(dir, below)?;
        places.insert(0, self.locate(dir, below)?);
        Ok(places)
    }

    /// Whether the place is one of the agent's own, or one lies below it:
    /// whoever sees all of it sees that, too.
    #[must_use]
    pub fn touches_protected(&self, dir: DirId, below: &RelPath) -> bool {
        match self.places(dir, below) {
            Ok(places) => {
                let touches = |location: &RelPath| self.holds_protected(location);
                let mut inside = self.aliases_below(dir, below);
                places.iter().any(touches) || inside.any(|(_, at)| touches(at))
            }
            Err(_) => true,
        }
    }

    /// Whether one of the agent's own places lies at `location`, above it or below it.
    fn holds_protected(&self, location: &RelPath) -> bool {
        let is_below = self
            .protected
            .iter()
            .any(|place| place.starts_with(location));
        (is_below && !fault::is(Fault::ProtectedPathsArePlain)) || self.protects(location)
    }

    fn protects(&self, location: &RelPath) -> bool {
        self.protected
            .iter()
            .any(|place| location.starts_with(place))
            && !fault::is(Fault::ProtectedPathsArePlain)
    }

    /// What a command may be shown of a place that is held for reading: not what
    /// people's rules refuse or want a question about, nor more than is held of
    /// the agent's own files, which is nothing.
    #[must_use]
    pub fn shown_to_commands(&self, dir: DirId, below: &RelPath) -> Shown {
        let Ok(places) = self.places(dir, below) else {
            return Shown::Nothing;
        };
        if self.touches_protected(dir, below) {
            return Shown::Nothing;
        }
        if fault::is(Fault::RulesSpareCommands) {
            return Shown::AllBut(Withheld::default());
        }
        let shown = |location: &RelPath| withheld::shown(self.configured(), location);
        let by_each_name = places.iter().map(shown);
        let all = by_each_name.fold(Shown::AllBut(Withheld::default()), Shown::narrowed);
        let inside = self.aliases_below(dir, below);
        inside.fold(all, |all, (from, at)| {
            all.narrowed(shown(at).seen_from(&from))
        })
    }

    /// The rules that may keep something from a command.
    pub fn withholding(&self) -> impl Iterator<Item = RuleRef> {
        withheld::about_seeing(self.configured()).map(ConfiguredRule::reference)
    }

    /// What was proved about the sandbox.
    #[must_use]
    pub const fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Adds a rule of a person's.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn add_rule(&mut self, rule: ConfiguredRule) -> Result<(), Denial> {
        self.configured.add(rule)
    }

    /// Every configured rule, strictest first.
    #[must_use]
    pub fn configured(&self) -> &[ConfiguredRule] {
        self.configured.list()
    }

    /// The deepest known directory a place seen from `/` lies in, and where in it.
    #[must_use]
    pub fn place(&self, location: &RelPath) -> Option<(DirId, RelPath)> {
        let (index, dir) = self
            .dirs
            .iter()
            .enumerate()
            .filter(|(_, dir)| location.starts_with(&dir.at))
            .max_by_key(|(_, dir)| dir.at.components().count())?;
        let below = location.strip_prefix(&dir.at)?;
        let index = u32::try_from(index).ok()?;
        Some((DirId::new(self.session, index), below))
    }

    /// Whether the mode of a session may speak about an action: about files only where the
    /// session works, which is the first directory made known. Others are open because something
    /// in them was granted, often a single file, and nobody said anything about the rest.
    #[must_use]
    pub fn is_for_the_mode(&self, action: &Action) -> bool {
        let Object::Dir { dir, below, .. } = action.object() else {
            return true;
        };
        let location = self.locate(*dir, below);
        let workspace = self.dirs.first();
        fault::is(Fault::ModesReachOut)
            || workspace.is_some_and(|workspace| {
                location.is_ok_and(|place| place.starts_with(&workspace.at))
            })
    }

    /// The capability an action needs, in words that mean the same in any session.
    #[must_use]
    pub fn portable(&self, action: &Action) -> Option<PortableCap> {
        let object = match action.object() {
            Object::Dir { dir, below, extent } => PortableObject::Place {
                at: self.locate(*dir, below).ok()?,
                extent: *extent,
            },
            Object::Program(program) => PortableObject::Program(program.clone()),
            Object::Host(host) => PortableObject::Host(host.clone()),
            Object::Secret(name) => PortableObject::Secret(name.clone()),
            Object::Model(name) => PortableObject::Model(name.clone()),
            Object::Extension(extension) => PortableObject::Extension(extension.clone()),
            Object::Session => PortableObject::Session,
        };
        PortableCap::new(action.verb(), object)
    }

    /// What stands above every grant about this action, the strictest first.
    #[must_use]
    pub fn judge(&self, tool: Tool, action: &Action) -> Judgement {
        let unknown = |denial: Denial| {
            Judgement::Deny(denial.code(), RuleRef::builtin("builtin.unknown-place"))
        };
        let Object::Dir { dir, below, .. } = action.object() else {
            return self.judge_at(tool, action, None);
        };
        let first = match self.locate(*dir, below) {
            Ok(location) => self.judge_at(tool, action, Some(&location)),
            Err(denial) => return unknown(denial),
        };
        match self.other_places(*dir, below) {
            Ok(others) => {
                let judged = others
                    .iter()
                    .map(|location| self.judge_at(tool, action, Some(location)));
                let taken_along = self.takes_along(action.verb(), *dir, below);
                judged.chain(taken_along).fold(first, Judgement::stricter)
            }
            Err(denial) => unknown(denial),
        }
    }

    /// What goes with a directory that is removed, by another name of it.
    fn takes_along(&self, verb: Verb, dir: DirId, below: &RelPath) -> Option<Judgement> {
        let rule = NonWaivable::OwnFiles;
        let mut inside = self.aliases_below(dir, below);
        let is_own = verb == Verb::FsDelete && inside.any(|(_, at)| self.holds_protected(at));
        is_own.then(|| Judgement::Deny(rule.code(), RuleRef::builtin(rule.id())))
    }

    /// What stands above every grant about this action where it is done at `location`.
    fn judge_at(&self, tool: Tool, action: &Action, location: Option<&RelPath>) -> Judgement {
        let lasting = match location {
            Some(location) if self.reaches_protected(action.verb(), location) => {
                Some(NonWaivable::OwnFiles)
            }
            Some(location) => non_waivable::judge_place(action.verb(), location),
            None => non_waivable::judge_object(action, self.isolation),
        };
        if let Some(rule) = lasting {
            return Judgement::Deny(rule.code(), RuleRef::builtin(rule.id()));
        }
        let configured = self.configured.strictest(action, location);
        let sensitive = match location {
            Some(location) => self.sensitivity_of(tool, action, location),
            None => Sensitivity::Plain,
        };
        match (
            configured.map(|rule| (rule.stance(), rule.reference())),
            sensitive,
        ) {
            (Some((Stance::Deny, rule)), _) => Judgement::Deny(DenialCode::DeniedByRule, rule),
            (_, Sensitivity::Sensitive(_)) => Judgement::Ask(
                DenialCode::SensitivePath,
                RuleRef::builtin("builtin.sensitive-place"),
            ),
            (Some((Stance::Ask, rule)), Sensitivity::Plain) => {
                Judgement::Ask(DenialCode::AskedByRule, rule)
            }
            (Some((Stance::Allow, _)) | None, Sensitivity::Plain) => Judgement::Plain,
        }
    }

    /// Is it one of the agent's own places, or would removing it take one along?
    fn reaches_protected(&self, verb: Verb, location: &RelPath) -> bool {
        let takes_along = verb == Verb::FsDelete
            && self
                .protected
                .iter()
                .any(|place| place.starts_with(location))
            && !fault::is(Fault::ProtectedPathsArePlain);
        takes_along || self.protects(location)
    }

    /// Must the user be asked about it each time, whatever is held?
    #[must_use]
    pub fn sensitivity(&self, tool: Tool, action: &Action) -> Sensitivity {
        match action.object() {
            Object::Dir { dir, below, .. } => match self.places(*dir, below) {
                Ok(places) => places
                    .iter()
                    .map(|location| self.sensitivity_of(tool, action, location))
                    .find(|judged| *judged != Sensitivity::Plain)
                    .unwrap_or(Sensitivity::Plain),
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

    /// What is done may be known to be harmless where the place alone says nothing.
    fn sensitivity_of(&self, tool: Tool, action: &Action, location: &RelPath) -> Sensitivity {
        match self.sensitivity_at(tool, action.verb(), location) {
            Sensitivity::Plain => Sensitivity::Plain,
            sensitive @ Sensitivity::Sensitive(_) => {
                let begun_at = new_store::begun_by(tool, action, location);
                let is_plain_there = begun_at.is_some_and(|place| {
                    self.sensitivity_at(tool, action.verb(), &place) == Sensitivity::Plain
                });
                if is_plain_there {
                    Sensitivity::Plain
                } else {
                    sensitive
                }
            }
        }
    }

    fn sensitivity_at(&self, tool: Tool, verb: Verb, location: &RelPath) -> Sensitivity {
        if fault::is(Fault::SensitivePathsArePlain) {
            Sensitivity::Plain
        } else if fault::is(Fault::HiddenNamesAreSensitive)
            && verb.changes_files()
            && location
                .file_name()
                .is_some_and(|name| name.starts_with(b"."))
        {
            Sensitivity::Sensitive("a name that begins with a dot")
        } else if self.guarded.iter().any(|place| location.starts_with(place)) {
            Sensitivity::Sensitive("a place that is guarded")
        } else if tool == Tool::Undo && verb == Verb::FsDelete {
            // What a commit made goes again, by the person's own word and into what is kept:
            // names that say what is run say nothing by being gone.
            Sensitivity::Plain
        } else {
            sensitive::judge(tool, verb, location)
        }
    }
}
