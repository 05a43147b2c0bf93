//! The proof that one effect was allowed.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use crate::action::Action;
use crate::approval::CallId;
use crate::authority::{DirId, Extent, Object, Verb};
use crate::cap::CapTable;
use crate::digest::Digest;
use crate::grant::{AgentId, GrantId};
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;

/// The right to have one effect, once.
///
/// Only the monitor makes one. It cannot be cloned, it is spent by value, and
/// it lives only as long as the turn it was made in.
///
/// A permit cannot be written down by hand:
/// ```compile_fail
/// let permit = hermitcrab_core::Permit {};
/// ```
#[must_use = "a permit that is not spent was charged for nothing"]
pub struct Permit<'turn> {
    spent: Spent,
    turn: PhantomData<&'turn mut CapTable>,
}

/// What a spent permit was for.
#[derive(Debug, PartialEq, Eq)]
pub struct Spent {
    action: Action,
    call: CallId,
    by: AgentId,
    grant: GrantId,
}

/// One permit for each action; the charges were made in the same order.
pub(super) fn mint<'turn>(
    (call, by): (CallId, AgentId),
    actions: Vec<Action>,
    charged: &[GrantId],
) -> Vec<Permit<'turn>> {
    actions
        .into_iter()
        .zip(charged)
        .map(|(action, grant)| Permit {
            spent: Spent {
                action,
                call,
                by,
                grant: *grant,
            },
            turn: PhantomData,
        })
        .collect()
}

impl Permit<'_> {
    /// What is permitted.
    #[must_use]
    pub const fn action(&self) -> &Action {
        &self.spent.action
    }

    /// Which verb.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.spent.action.verb()
    }

    /// On what.
    #[must_use]
    pub const fn object(&self) -> &Object {
        self.spent.action.object()
    }

    /// With which content.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.spent.action.digest()
    }

    /// For which call.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.spent.call
    }

    /// By which agent.
    #[must_use]
    pub const fn by(&self) -> AgentId {
        self.spent.by
    }

    /// From which grant.
    #[must_use]
    pub const fn grant(&self) -> GrantId {
        self.spent.grant
    }

    /// Spends it, whatever it is for.
    pub fn spend(self) -> Spent {
        self.spent
    }

    /// Spends it on `verb` at this name, if that is exactly what it is for.
    ///
    /// # Errors
    /// `permit-mismatch`; the permit is gone all the same.
    pub fn spend_on_path(self, verb: Verb, dir: DirId, below: &RelPath) -> Result<Spent, Denial> {
        match self.object() {
            Object::Dir {
                dir: for_dir,
                below: for_below,
                extent: Extent::Alone | Extent::Tree,
            } if self.verb() == verb && *for_dir == dir && for_below == below => Ok(self.spent),
            object => Err(Denial::new(
                DenialCode::PermitMismatch,
                format_args!("{} {object} spent on {verb} {dir}:{below}", self.verb()),
            )),
        }
    }

    /// The same permit, if it is for all that lies below its place as well.
    ///
    /// # Errors
    /// `permit-mismatch` if it is for a name alone, or for no place; it is gone then.
    pub fn for_all_below(self) -> Result<Self, Denial> {
        match self.object() {
            Object::Dir {
                extent: Extent::Tree,
                ..
            } => Ok(self),
            _ => Err(Denial::new(
                DenialCode::PermitMismatch,
                format_args!("{} spent on all below it", self.spent.action.cap().asked()),
            )),
        }
    }

    /// Spends it on writing content with this digest at this place.
    ///
    /// # Errors
    /// `permit-mismatch` for another verb or place, `changed-since-shown` for other content.
    pub fn spend_on_content(
        self,
        verb: Verb,
        dir: DirId,
        below: &RelPath,
        content: Digest,
    ) -> Result<Spent, Denial> {
        let spent = self.spend_on_path(verb, dir, below)?;
        if spent.action.digest() == content {
            Ok(spent)
        } else {
            Err(Denial::new(DenialCode::ChangedSinceShown, below))
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({} from {})", self.spent.action, self.spent.grant)
    }
}

impl Spent {
    /// What was permitted.
    #[must_use]
    pub const fn action(&self) -> &Action {
        &self.action
    }

    /// For which call.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// By which agent.
    #[must_use]
    pub const fn by(&self) -> AgentId {
        self.by
    }

    /// From which grant.
    #[must_use]
    pub const fn grant(&self) -> GrantId {
        self.grant
    }
}
