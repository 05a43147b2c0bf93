//! What of a workspace does not count where a commit is taken back: notes of git's, and
//! caches. Whoever looks at what a command did makes these, and changes nothing by it.

use hermitcrab_core::{digest::Digest, path::RelPath};
use hermitcrab_sandbox::journal::Besides;

use super::ceilings::Caches;
use crate::text::gitindex;

/// What this program knows of it.
#[derive(Debug)]
pub(super) struct Uncounted(pub Caches);

impl Besides for Uncounted {
    fn is_cached(&self, path: &RelPath) -> bool {
        self.0.has(path) || self.0.hold(path)
    }

    fn has_notes(&self, path: &RelPath) -> bool {
        gitindex::is_name_of_one(path)
    }

    fn says(&self, content: &[u8]) -> Option<Digest> {
        gitindex::says(content)
    }
}
