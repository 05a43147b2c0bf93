//! What is known of the settings of a new store of git's: whoever decides does not read.

use hermitcrab_core::path::RelPath;
use hermitcrab_core::store_settings::HarmlessSettings;

use super::{Change, ChangeSet, What};
use crate::digest::sha256;

/// More than settings of a new store are.
const BYTES_MAX: usize = 64 << 10;

impl ChangeSet {
    /// Whether a change makes settings of a store that are known to be harmless. They are read
    /// of the very bytes that the permit is for, or not at all.
    pub(super) fn settings_of_new_store(
        &self,
        place: &RelPath,
        change: &Change,
    ) -> Option<HarmlessSettings> {
        let What::CreatedFile { .. } = change.what else {
            return None;
        };
        let mut names = place.components().rev();
        if names.next() != Some(b"config") || names.next() != Some(b".git") {
            return None;
        }
        let content = self.content_after(&change.path, BYTES_MAX).ok()?;
        // With a mode of its own the digest is of more than the content.
        (sha256(&content) == change.what.digest())
            .then(|| HarmlessSettings::read(&content))
            .flatten()
    }
}
