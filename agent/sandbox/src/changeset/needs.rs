//! What authority a change needs, and what a permit for it is bound to.

use hermitcrab_core::authority::{Extent, Verb};
use hermitcrab_core::digest::Digest;

use super::node::{Xattrs, xattr_bytes};
use super::{What, Whose};
use crate::digest::sha256;
use crate::dircap::{dir_digest, mode_digest, moved_digest, symlink_digest, time_digest};

/// The permission bits a new file may have that mean nothing: it is no program, and not
/// everybody's to write.
const USUAL_BITS: u32 = 0o664;

impl What {
    /// Which authority applying it needs.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match self {
            Self::CreatedFile { .. }
            | Self::CreatedDir { .. }
            | Self::CreatedSymlink { .. }
            | Self::CreatedSpecial
            | Self::MovedHere { .. } => Verb::FsCreate,
            Self::ModifiedFile { .. } | Self::ModifiedMode { .. } | Self::ModifiedTime { .. } => {
                Verb::FsModify
            }
            Self::Xattrs { on: Whose::New, .. } => Verb::FsCreate,
            Self::Xattrs { on: Whose::Old, .. } => Verb::FsModify,
            Self::DeletedFile { .. }
            | Self::DeletedSymlink { .. }
            | Self::DeletedDir
            | Self::DeletedSpecial
            | Self::MovedAway { .. } => Verb::FsDelete,
        }
    }

    /// How far it reaches: all else there is of a directory is listed apart, name by name.
    #[must_use]
    pub fn extent(&self) -> Extent {
        match self {
            Self::MovedHere { extent, .. } | Self::MovedAway { extent } => *extent,
            Self::CreatedFile { .. }
            | Self::CreatedDir { .. }
            | Self::CreatedSymlink { .. }
            | Self::CreatedSpecial
            | Self::ModifiedFile { .. }
            | Self::ModifiedMode { .. }
            | Self::ModifiedTime { .. }
            | Self::Xattrs { .. }
            | Self::DeletedFile { .. }
            | Self::DeletedSymlink { .. }
            | Self::DeletedDir
            | Self::DeletedSpecial => Extent::Alone,
        }
    }

    /// What a permit for it is bound to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::CreatedFile { digest, mode, .. } => match mode & !USUAL_BITS {
                0 => *digest,
                _ => with_mode(*digest, *mode),
            },
            Self::ModifiedFile {
                digest,
                mode_before,
                mode,
                ..
            } => match mode_before == mode {
                true => *digest,
                false => with_mode(*digest, *mode),
            },
            Self::Xattrs { digest, .. } => *digest,
            Self::CreatedDir { mode } => dir_digest(*mode),
            Self::CreatedSymlink { target } => symlink_digest(target),
            Self::ModifiedMode { mode, .. } => mode_digest(*mode),
            Self::ModifiedTime { time, .. } => time_digest(*time),
            Self::MovedHere { from, .. } => moved_digest(from),
            Self::CreatedSpecial
            | Self::DeletedFile { .. }
            | Self::DeletedSymlink { .. }
            | Self::DeletedDir
            | Self::DeletedSpecial
            | Self::MovedAway { .. } => Digest::NONE,
        }
    }
}

/// What a permit for changing extended attributes is bound to.
pub(crate) fn xattr_digest(xattrs: &Xattrs) -> Digest {
    sha256(&[b"attributes ", xattr_bytes(xattrs).as_slice()].concat())
}

/// What a permit for a file is bound to whose permission bits are told beside its content.
fn with_mode(content: Digest, mode: u32) -> Digest {
    let mode = format!("file {:o} ", mode & 0o7777);
    sha256(&[mode.as_bytes(), content.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_files_mode_is_a_part_of_what_is_agreed_to() {
        let content = sha256(b"x");
        let made = |mode| {
            let what = What::CreatedFile {
                digest: content,
                bytes: 1,
                mode,
            };
            what.digest()
        };
        for usual in [0o600, 0o644, 0o664] {
            assert_eq!(made(usual), content);
        }
        let changed = |mode_before, mode| {
            let what = What::ModifiedFile {
                base: Digest::NONE,
                digest: content,
                bytes: 1,
                mode_before,
                mode,
            };
            what.digest()
        };
        assert_eq!(changed(0o755, 0o755), content);
        let other = [
            content,
            made(0o755),
            made(0o666),
            made(0o700),
            changed(0o644, 0o600),
        ];
        let different: std::collections::BTreeSet<Digest> = other.into();
        assert_eq!(different.len(), other.len());
        assert_eq!(changed(0o644, 0o755), made(0o755));
    }
}
