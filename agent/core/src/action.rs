//! One effect, as asked for: a verb, an object, and what exactly.

use core::fmt;

use crate::authority::{Cap, CapError, DirId, Object, Verb};
use crate::digest::Digest;
use crate::path::RelPath;
use crate::store_settings::HarmlessSettings;

/// One effect a call wants to have.
///
/// The digest names the content: of the command for `proc.exec`, of the new
/// bytes for a write, of the changed metadata where only that changes;
/// [`Digest::NONE`] where there is no content, such as a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    cap: Cap,
    digest: Digest,
    settings: Option<HarmlessSettings>,
}

impl Action {
    /// `verb` on `object`, with content `digest`.
    ///
    /// # Errors
    /// The verb acts on another kind of object.
    pub fn new(verb: Verb, object: Object, digest: Digest) -> Result<Action, CapError> {
        Ok(Action {
            cap: Cap::new(verb, object)?,
            digest,
            settings: None,
        })
    }

    /// `verb` on a name below a directory, and on nothing below that.
    ///
    /// # Errors
    /// The verb does not act on files.
    pub fn on_path(
        verb: Verb,
        dir: DirId,
        below: RelPath,
        digest: Digest,
    ) -> Result<Action, CapError> {
        Action::new(verb, Object::alone(dir, below), digest)
    }

    /// `verb` on a place below a directory and on all that lies there: to see all of it,
    /// or to have it under another name.
    ///
    /// # Errors
    /// The verb does not act on files.
    pub fn on_tree(
        verb: Verb,
        dir: DirId,
        below: RelPath,
        digest: Digest,
    ) -> Result<Action, CapError> {
        Action::new(verb, Object::tree(dir, below), digest)
    }

    /// The same, where what `digest` names was read as settings of a store. Whoever read it
    /// answers for the two being of the same bytes.
    #[must_use]
    pub const fn with_settings(mut self, settings: Option<HarmlessSettings>) -> Action {
        self.settings = settings;
        self
    }

    /// What is known of its content, where that is settings of a store.
    #[must_use]
    pub const fn settings(&self) -> Option<HarmlessSettings> {
        self.settings
    }

    /// The smallest cap that allows it.
    #[must_use]
    pub const fn cap(&self) -> &Cap {
        &self.cap
    }

    /// What is done.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        self.cap.verb()
    }

    /// What it is done to.
    #[must_use]
    pub const fn object(&self) -> &Object {
        self.cap.object()
    }

    /// With which content.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

/// One line in which no two different actions look the same.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.digest, self.cap.asked())
    }
}
