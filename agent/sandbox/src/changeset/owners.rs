//! Whose the files of a layer are, where root's command made it.
//!
//! What for: such a command runs with ids nobody else has, and so its layer is full of
//! them. What it made itself is to belong to whom the directory does; what it only gave
//! another name is to stay whose it was, or `mv` would hand one person's file to another.

use rustix::fs::Stat;

use crate::identity::Identity;
use crate::step::StepError;
use crate::whose::Whose;

/// How the owners in a layer are read.
#[derive(Clone, Debug)]
pub(crate) struct Owners(Identity);

impl Owners {
    /// For a command that was shown this directory first. Nothing where a layer has the
    /// ids of outside: an ordinary user's command gives no file to anybody.
    ///
    /// # Errors
    /// The kernel does not tell which ids there are.
    pub(crate) fn of(first: &Whose) -> Result<Option<Self>, StepError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let identity = Identity::choose(first.owner, first.group)?;
        Ok(identity.translate_owners.then_some(Self(identity)))
    }

    /// Which user's this was before the command, if it is not the command's own.
    pub(crate) fn user(&self, stat: &Stat) -> Option<u32> {
        let inside = self.0.user_inside(stat.st_uid)?;
        (inside != self.0.user).then_some(inside)
    }

    /// The same of its group.
    pub(crate) fn group(&self, stat: &Stat) -> Option<u32> {
        let inside = self.0.group_inside(stat.st_gid)?;
        (inside != self.0.group).then_some(inside)
    }

    /// Whether no id of a command names its user, or its group: no command made it.
    pub(crate) fn is_nobodys(&self, stat: &Stat) -> bool {
        let user = self.0.user_inside(stat.st_uid);
        user.is_none() || self.0.group_inside(stat.st_gid).is_none()
    }
}
