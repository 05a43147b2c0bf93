//! Authority: the effects something may cause, as a partial order.
//!
//! A [`Cap`] is one verb on one object; an [`Authority`] is the set of
//! everything its caps cover. `covers` compares, `attenuate` narrows and
//! `meet` intersects; no operation here yields more than it was given.
//! Combining two authorities is deliberately missing: a holder of two grants
//! holds two grants.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::denial_code::DenialCode;
use crate::fault::{self, Fault};
use crate::limits::CAPS_PER_AUTHORITY_MAX;
use crate::path::RelPath;

pub use self::extension::{Extension, ExtensionError, ExtensionName};
pub use self::name::{Name, NameError};
pub use self::object::{DirId, Extent, Host, HostPattern, Object, Port, Program};
pub use self::reversibility::Reversibility;
pub use self::verb::{ObjectKind, Verb};

mod extension;
mod name;
mod object;
mod reversibility;
mod verb;

/// One verb on one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cap {
    verb: Verb,
    object: Object,
}

/// A verb that cannot act on an object of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapError {
    verb: Verb,
    kind: ObjectKind,
}

impl fmt::Display for CapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CapError { verb, kind } = self;
        write!(
            f,
            "`{verb}` does not act on a {}; it needs a {}",
            kind.as_str(),
            verb.object_kind().as_str()
        )
    }
}

impl core::error::Error for CapError {}

impl Cap {
    /// `verb` on `object`.
    ///
    /// # Errors
    /// The verb acts on another kind of object.
    pub fn new(verb: Verb, object: Object) -> Result<Cap, CapError> {
        let kind = object.kind();
        if verb.object_kind() == kind {
            Ok(Cap { verb, object })
        } else {
            Err(CapError { verb, kind })
        }
    }

    /// What may be done.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.verb
    }

    /// What it may be done to.
    #[must_use]
    pub const fn object(&self) -> &Object {
        &self.object
    }

    /// Does holding `self` allow everything `other` allows?
    #[must_use]
    pub fn covers(&self, other: &Cap) -> bool {
        (self.verb == other.verb || fault::is(Fault::CoversIgnoresVerb))
            && self.object.covers(&other.object)
    }

    /// What both allow; `None` if that is nothing.
    #[must_use]
    pub fn meet(&self, other: &Cap) -> Option<Cap> {
        if self.verb != other.verb && !fault::is(Fault::MeetIgnoresVerb) {
            return None;
        }
        let mut object = self.object.meet(&other.object)?;
        if fault::is(Fault::MeetKeepsTheFirst) {
            object = self.object.clone();
        }
        Some(Cap {
            verb: self.verb,
            object,
        })
    }
}

impl Cap {
    /// The same as what is asked for and not as what is held: places are single names
    /// there unless all of a directory is told.
    pub fn asked(&self) -> impl fmt::Display {
        fmt::from_fn(|f| match &self.object {
            Object::Extension(extension) => write!(f, "{extension}"),
            object => write!(f, "{} {}", self.verb, object.asked()),
        })
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.object {
            // A vendor's verb is named by its object.
            Object::Extension(extension) => write!(f, "{extension}"),
            object => write!(f, "{} {object}", self.verb),
        }
    }
}

/// Why there is no such authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityError {
    /// It would hold more capabilities than one authority may.
    TooMany,
    /// This capability is not covered by what it was to come from.
    Amplifies(Box<Cap>),
}

impl AuthorityError {
    /// The code of a refusal for this reason.
    #[must_use]
    pub const fn code(&self) -> DenialCode {
        match self {
            AuthorityError::TooMany => DenialCode::LimitReached,
            AuthorityError::Amplifies(_) => DenialCode::Amplifies,
        }
    }
}

impl fmt::Display for AuthorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthorityError::TooMany => write!(
                f,
                "{CAPS_PER_AUTHORITY_MAX} capabilities in one authority; name one place that holds several of them"
            ),
            AuthorityError::Amplifies(cap) => cap.fmt(f),
        }
    }
}

impl core::error::Error for AuthorityError {}

/// A set of effects, given by the caps that generate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Authority {
    // INVARIANT: sorted, without duplicates, and no cap covers another, so
    // that equal authorities are equal values.
    caps: Vec<Cap>,
}

impl Authority {
    /// No authority at all.
    #[must_use]
    pub const fn none() -> Authority {
        Authority { caps: Vec::new() }
    }

    /// Everything these caps allow.
    ///
    /// # Errors
    /// [`AuthorityError::TooMany`] if more caps than the limit remain after dropping redundant ones.
    pub fn from_caps(caps: impl IntoIterator<Item = Cap>) -> Result<Authority, AuthorityError> {
        let mut all: Vec<Cap> = caps.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        // Redundant ones are seldom, and only they are moved: none is copied.
        let redundant: Vec<usize> = all
            .iter()
            .enumerate()
            .filter(|(_, cap)| {
                !fault::is(Fault::RedundantCapsStay) && is_covered(&all, cap, Itself::Ignored)
            })
            .map(|(place, _)| place)
            .collect();
        if !redundant.is_empty() {
            let mut drop_next = redundant.into_iter().peekable();
            let mut place = 0_usize;
            all.retain(|_| {
                let is_redundant = drop_next.next_if_eq(&place).is_some();
                place += 1;
                !is_redundant
            });
        }
        if all.len() > CAPS_PER_AUTHORITY_MAX {
            return Err(AuthorityError::TooMany);
        }
        Ok(Authority { caps: all })
    }

    /// The authority of a single cap.
    #[must_use]
    pub fn of(cap: Cap) -> Authority {
        Authority {
            caps: alloc::vec![cap],
        }
    }

    /// The generating caps, in a fixed order.
    #[must_use]
    pub fn caps(&self) -> &[Cap] {
        &self.caps
    }

    /// Does it allow nothing?
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.caps.is_empty()
    }

    /// Does it allow everything `cap` allows?
    #[must_use]
    pub fn covers_cap(&self, cap: &Cap) -> bool {
        is_covered(&self.caps, cap, Itself::Counted)
    }

    /// Does it allow everything `other` allows?
    #[must_use]
    pub fn covers(&self, other: &Authority) -> bool {
        if fault::is(Fault::CoversByAny) && !other.is_none() {
            return other.caps.iter().any(|cap| self.covers_cap(cap));
        }
        other.caps.iter().all(|cap| self.covers_cap(cap))
    }

    /// `narrower`, if that is really no more than `self`.
    ///
    /// # Errors
    /// [`AuthorityError::Amplifies`], naming the first cap that is not covered.
    pub fn attenuate(&self, narrower: Authority) -> Result<Authority, AuthorityError> {
        match narrower.caps.iter().find(|cap| !self.covers_cap(cap)) {
            Some(cap) if !fault::is(Fault::AttenuationAmplifies) => {
                Err(AuthorityError::Amplifies(Box::new(cap.clone())))
            }
            Some(_) | None => Ok(narrower),
        }
    }

    /// What both allow.
    ///
    /// # Errors
    /// [`AuthorityError::TooMany`], as for [`Authority::from_caps`].
    pub fn meet(&self, other: &Authority) -> Result<Authority, AuthorityError> {
        Authority::from_caps(
            self.caps
                .iter()
                .flat_map(|left| other.caps.iter().filter_map(move |right| left.meet(right))),
        )
    }
}

/// Up to this many caps are compared one by one.
const SCANNED_CAPS_MAX: usize = 16;

/// Whether an entry equal to the cap looked for counts as covering it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Itself {
    Counted,
    Ignored,
}

/// Looks `cap` up in sorted `caps`: a file cap by walking up its path, others by scanning.
fn is_covered(caps: &[Cap], cap: &Cap, itself: Itself) -> bool {
    // Few enough that looking at each is cheaper than naming the directories above.
    if caps.len() <= SCANNED_CAPS_MAX {
        return caps
            .iter()
            .any(|held| held.covers(cap) && (itself == Itself::Counted || held != cap));
    }
    let found = |wanted: &Cap| caps.binary_search(wanted).is_ok();
    if itself == Itself::Counted && found(cap) {
        return true;
    }
    let Object::Dir { dir, below, extent } = &cap.object else {
        return caps.iter().any(|held| held.covers(cap) && held != cap);
    };
    // Beside itself only trees cover it: the one it is the root of, and those above.
    let mut root: Option<RelPath> = match extent {
        Extent::Alone => Some(below.clone()),
        Extent::Tree => below.parent(),
    };
    while let Some(below) = root {
        root = below.parent();
        let object = Object::tree(*dir, below);
        if found(&Cap {
            verb: cap.verb,
            object,
        }) {
            return true;
        }
    }
    false
}
