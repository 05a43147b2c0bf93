//! How much room a file system has, and where it is mounted: for whoever is told that there
//! is none. It is for words only; whether something fits is known when it was written.

use std::{
    fmt, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// A file system, as a person who has to make room there knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Where it is mounted.
    pub mounted_at: PathBuf,
    /// How many bytes this user may still put there.
    pub free_bytes: u64,
}

impl Room {
    /// Of the file system a place is on, or would be.
    #[must_use]
    pub fn at(place: &Path) -> Option<Self> {
        let there = place.ancestors().find_map(|dir| dir.canonicalize().ok())?;
        let disk = rustix::fs::statvfs(&there).ok()?;
        let device = there.metadata().ok()?.dev();
        let is_there = |dir: &&Path| dir.metadata().is_ok_and(|seen| seen.dev() == device);
        Some(Self {
            mounted_at: there.ancestors().take_while(is_there).last()?.to_owned(),
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, free) = (self.mounted_at.display(), self.free_bytes);
        let noun = if free == 1 { "byte" } else { "bytes" };
        write!(f, "the file system at {at} has {free} {noun} free")
    }
}

/// Whether something failed for want of room.
#[must_use]
pub fn is_lacking(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Room;

    #[test]
    fn a_file_system_is_named_by_where_it_is_mounted_also_for_what_is_not_there_yet() {
        for place in ["/proc/self", "/proc/none/such"] {
            let room = Room::at(Path::new(place)).expect("proc");
            assert_eq!(room.mounted_at, Path::new("/proc"), "{place}");
            assert_eq!(
                room.to_string(),
                "the file system at /proc has 0 bytes free"
            );
        }
        let dir = tempfile::tempdir().expect("directory");
        let room = Room::at(&dir.path().join("a/b")).expect("a disk");
        assert!(dir.path().starts_with(&room.mounted_at) && room.free_bytes > 0);
    }
}
