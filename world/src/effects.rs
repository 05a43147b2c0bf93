//! Turns the upper layer of a world into a list of effects.
//!
//! The kernel records every change there: a removed entry as a whiteout, a
//! replaced directory as opaque, a changed file as a copy. Each is compared
//! with what was below it, so that writing the same bytes again, touching a
//! file or copying it up without a change is no effect.
//!
//! Left out, by name, are only the harness' own places ([`is_harness`]) and
//! the subjects' bookkeeping ([`is_runtime_state`]).
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::protocol::{EffectKind, FsEffect};

/// Effects listed; a world that changes more has long made its point.
const EFFECTS_MAX: usize = 4000;
/// Bytes of a file that are digested; longer ones get a digest of this much, marked so.
const DIGEST_BYTES_MAX: u64 = 64 * 1024 * 1024;
const MODE_BITS: u32 = 0o7777;

/// Paths that are the harness itself.
pub(crate) fn is_harness(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    path == b"/.w" || path == b"/.trip/log"
}

/// Files a subject keeps for itself while it works, in every run, whatever it is asked to do.
///
/// Each rule is as narrow as the names it was seen to use; a command that
/// writes elsewhere in the same directories is an effect.
pub(crate) fn is_runtime_state(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    if let Some(name) = path.strip_prefix(b"/tmp/".as_slice()) {
        // Hermes' record of the shell's variables and of its directory, per session.
        return !name.contains(&b'/')
            && (name.starts_with(b"hermes-snap-") || name.starts_with(b"hermes-cwd-"));
    }
    if path == b"/.agent" || path.starts_with(b"/.agent/") {
        // The agent's ledger. Nothing else may ever be granted there.
        return true;
    }
    let Some(name) = path.strip_prefix(b"/home/u/.hermes/".as_slice()) else {
        return false;
    };
    // Which files Hermes wrote and which jobs it ran (databases with two side files each), which
    // background processes it has, when a skill was looked at or changed, and
    // the empty files it locks while it changes a note or a job.
    let list_being_written = name.starts_with(b".processes_") && name.ends_with(b".tmp");
    list_being_written
        || matches!(
            name,
            b"verification_evidence.db"
                | b"verification_evidence.db-shm"
                | b"verification_evidence.db-wal"
                | b"processes.json"
                | b"skills/.usage.json"
                | b"skills/.usage.json.lock"
                | b"memories/MEMORY.md.lock"
                | b"memories/USER.md.lock"
                | b"cron/.jobs.lock"
                | b"cron/executions.db"
                | b"cron/executions.db-shm"
                | b"cron/executions.db-wal"
        )
}

/// What lies below a directory of the upper layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// No directory.
    Nothing,
    /// One whose entries show.
    Merged,
    /// One of which nothing shows, because this one or one it is in took its place.
    Covered,
}

/// Where what a world writes is found.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// Named in here as in the world.
    pub(crate) layer: PathBuf,
    /// The one directory, by its path in the world, that is here as a whole; without it here
    /// is a layer over all that the world started from.
    pub(crate) whole: Option<PathBuf>,
}

/// Lists the effects of one world, remembering digests between listings.
pub(crate) struct Lister {
    written: Vec<Written>,
    base: PathBuf,
    own_state: Vec<String>,
    digests: HashMap<(PathBuf, u64, i64, i64), String>,
}

impl Lister {
    /// `own_state` is what the subject keeps for itself in this job, beside
    /// what it keeps in every one.
    pub(crate) fn new(written: &[Written], base: &Path, own_state: &[String]) -> Self {
        Self {
            written: written.to_vec(),
            base: base.to_owned(),
            own_state: own_state.to_vec(),
            digests: HashMap::new(),
        }
    }

    fn ignores(&self, path: &Path) -> bool {
        is_harness(path)
            || is_runtime_state(path)
            || self.own_state.iter().any(|own| path.starts_with(own))
    }

    /// The difference between the world and what it started from, sorted by path.
    pub(crate) fn list(&mut self) -> io::Result<Vec<FsEffect>> {
        let mut effects = Vec::new();
        for Written { layer, whole } in self.written.clone() {
            match whole {
                None => self.directory(&layer, Path::new("/"), Below::Merged, &mut effects)?,
                Some(place) => {
                    let path = Path::new("/").join(&place);
                    self.directory(&layer.join(place), &path, Below::Covered, &mut effects)?;
                }
            }
        }
        effects.sort();
        Ok(effects)
    }

    /// Compares one directory of the upper layer.
    fn directory(
        &mut self,
        upper: &Path,
        path: &Path,
        below: Below,
        effects: &mut Vec<FsEffect>,
    ) -> io::Result<()> {
        let below = match below {
            Below::Merged if is_opaque(upper) => Below::Covered,
            other => other,
        };
        let mut present = Vec::new();
        for entry in fs::read_dir(upper)? {
            let name = entry?.file_name();
            self.entry(&upper.join(&name), &path.join(&name), below, effects)?;
            present.push(name);
            if effects.len() >= EFFECTS_MAX {
                return Ok(());
            }
        }
        if below == Below::Covered {
            for entry in fs::read_dir(self.below(path))? {
                let name = entry?.file_name();
                let place = path.join(&name);
                if !present.contains(&name) && !self.ignores(&place) {
                    effects.push(effect(&place, EffectKind::Deleted));
                }
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        upper: &Path,
        path: &Path,
        below: Below,
        effects: &mut Vec<FsEffect>,
    ) -> io::Result<()> {
        if self.ignores(path) {
            return Ok(());
        }
        let new = match fs::symlink_metadata(upper) {
            Ok(new) => new,
            // Gone between listing and looking: a background process is at work.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Deeper than a path from outside the world can name. The directory it is in
            // is as new as this, since nothing below a world is so deep, and is told.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => return Ok(()),
            Err(error) => return Err(error),
        };
        let old = match below {
            Below::Merged | Below::Covered => fs::symlink_metadata(self.below(path)).ok(),
            Below::Nothing => None,
        };
        if new.file_type().is_char_device() && new.rdev() == 0 {
            if old.is_some() {
                effects.push(effect(path, EffectKind::Deleted));
            }
            return Ok(());
        }
        let kind = match &old {
            None => Some(EffectKind::Created),
            Some(old) => self.compare(upper, &new, path, old)?,
        };
        if let Some(kind) = kind {
            effects.push(FsEffect {
                kind,
                digest: self.digest(upper, &new)?,
                size: if new.is_file() { new.len() } else { 0 },
                mode: if new.is_symlink() {
                    0
                } else {
                    new.mode() & MODE_BITS
                },
                ..effect(path, kind)
            });
        }
        if new.is_dir() {
            let below = match old {
                Some(old) if old.is_dir() => below,
                _ => Below::Nothing,
            };
            match self.directory(upper, path, below, effects) {
                // A directory the world made unreadable for its own user is still an effect.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                other => other,
            }
        } else {
            Ok(())
        }
    }

    fn compare(
        &mut self,
        upper: &Path,
        new: &Metadata,
        path: &Path,
        old: &Metadata,
    ) -> io::Result<Option<EffectKind>> {
        if new.file_type() != old.file_type() {
            return Ok(Some(EffectKind::Modified));
        }
        let below = self.below(path);
        let same = if new.is_file() {
            new.len() == old.len() && self.digest(upper, new)? == self.digest(&below, old)?
        } else if new.is_symlink() {
            fs::read_link(upper)? == fs::read_link(&below)?
        } else {
            true
        };
        if !same {
            return Ok(Some(EffectKind::Modified));
        }
        let mode_changed = !new.is_symlink() && new.mode() & MODE_BITS != old.mode() & MODE_BITS;
        Ok(mode_changed.then_some(EffectKind::Metadata))
    }

    /// SHA-256 of a file's content or a link's target; empty for anything else.
    fn digest(&mut self, place: &Path, metadata: &Metadata) -> io::Result<String> {
        if metadata.is_symlink() {
            let target = fs::read_link(place)?;
            return Ok(hex(&Sha256::digest(target.as_os_str().as_bytes())));
        }
        if !metadata.is_file() {
            return Ok(String::new());
        }
        let key = (
            place.to_owned(),
            metadata.ino(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        );
        if let Some(known) = self.digests.get(&key) {
            return Ok(known.clone());
        }
        let mut hasher = Sha256::new();
        let opened = match File::open(place) {
            // A file without any read permission for its own user.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok("unreadable".to_owned());
            }
            other => other?,
        };
        let mut file = opened.take(DIGEST_BYTES_MAX);
        let mut buffer = vec![0_u8; 64 * 1024];
        loop {
            let length = file.read(&mut buffer)?;
            match buffer.get(..length) {
                Some(bytes) if length > 0 => hasher.update(bytes),
                _ => break,
            }
        }
        let prefix = if metadata.len() > DIGEST_BYTES_MAX {
            "head:"
        } else {
            ""
        };
        let digest = format!("{prefix}{}", hex(&hasher.finalize()));
        self.digests.insert(key, digest.clone());
        Ok(digest)
    }

    fn below(&self, path: &Path) -> PathBuf {
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }
}

fn effect(path: &Path, kind: EffectKind) -> FsEffect {
    FsEffect {
        path: printable(path.as_os_str()),
        kind,
        digest: String::new(),
        size: 0,
        mode: 0,
    }
}

fn is_opaque(upper: &Path) -> bool {
    let mut value = [0_u8; 1];
    rustix::fs::lgetxattr(upper, "user.overlay.opaque", &mut value[..])
        .is_ok_and(|length| length == 1 && value == *b"y")
}

/// A path as text; bytes that are not UTF-8 as `\xNN`.
fn printable(path: &OsStr) -> String {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[cfg(test)]
pub(crate) fn over(layer: &Path) -> Written {
    Written {
        layer: layer.to_owned(),
        whole: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// What `change` does to an upper layer over `base`, as `kind path`.
    fn check(base: &[&str], change: impl Fn(&Path), expected: &[&str]) {
        let (below, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in base {
            let place = below.path().join(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "old").unwrap();
        }
        change(above.path());
        let effects = Lister::new(&[over(above.path())], below.path(), &[])
            .list()
            .unwrap();
        let told: Vec<_> = effects
            .iter()
            .map(|effect| format!("{:?} {}", effect.kind, effect.path))
            .collect();
        assert_eq!(told, expected);
    }

    fn whiteout(place: &Path) {
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, place, kind, rustix::fs::Mode::empty(), 0).unwrap();
    }

    #[test]
    fn a_new_file_is_created() {
        check(
            &[],
            |upper| fs::write(upper.join("a"), "new").unwrap(),
            &["Created /a"],
        );
    }

    #[test]
    fn other_bytes_are_a_modification_and_equal_ones_are_nothing() {
        check(
            &["a"],
            |upper| fs::write(upper.join("a"), "new").unwrap(),
            &["Modified /a"],
        );
        check(
            &["a"],
            |upper| fs::write(upper.join("a"), "old").unwrap(),
            &[],
        );
    }

    #[test]
    fn other_permission_bits_are_metadata() {
        let change = |upper: &Path| {
            fs::write(upper.join("a"), "old").unwrap();
            fs::set_permissions(upper.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        };
        check(&["a"], change, &["Metadata /a"]);
    }

    #[test]
    fn another_kind_of_entry_is_a_modification() {
        check(
            &["a"],
            |upper| symlink("b", upper.join("a")).unwrap(),
            &["Modified /a"],
        );
    }

    #[test]
    fn a_whiteout_is_a_deletion_only_of_what_was_there() {
        check(&["a"], |upper| whiteout(&upper.join("a")), &["Deleted /a"]);
        check(&[], |upper| whiteout(&upper.join("a")), &[]);
    }

    #[test]
    fn a_replaced_directory_deletes_what_it_no_longer_holds() {
        let change = |upper: &Path| {
            let directory = upper.join("d");
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("kept"), "old").unwrap();
            rustix::fs::setxattr(
                &directory,
                "user.overlay.opaque",
                b"y",
                rustix::fs::XattrFlags::empty(),
            )
            .unwrap();
        };
        check(&["d/kept", "d/gone"], change, &["Deleted /d/gone"]);
    }

    #[test]
    fn so_do_the_directories_in_it() {
        let change = |upper: &Path| {
            fs::create_dir_all(upper.join("d/in/new")).unwrap();
            fs::write(upper.join("d/in/kept"), "old").unwrap();
            rustix::fs::setxattr(
                upper.join("d"),
                "user.overlay.opaque",
                b"y",
                rustix::fs::XattrFlags::empty(),
            )
            .unwrap();
        };
        let base = ["d/in/kept", "d/in/gone", "d/in/new/gone", "e"];
        let told = ["Deleted /d/in/gone", "Deleted /d/in/new/gone"];
        check(&base, change, &told);
    }

    #[test]
    fn directories_deeper_than_a_path_can_name_are_told_as_far_as_it_can() {
        use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
        const DEPTH: usize = 30;
        let name = "d".repeat(200);
        let (below, above) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut inside = open(above.path(), flags, Mode::empty()).unwrap();
        for _ in 0..DEPTH {
            mkdirat(&inside, &name, Mode::RWXU).unwrap();
            inside = openat(&inside, &name, flags, Mode::empty()).unwrap();
        }
        let effects = Lister::new(&[over(above.path())], below.path(), &[])
            .list()
            .unwrap();
        assert!((15..DEPTH).contains(&effects.len()), "{}", effects.len());
        assert!(effects.iter().all(|one| one.kind == EffectKind::Created));
    }

    #[test]
    fn bookkeeping_is_left_out_and_its_neighbours_are_not() {
        let change = |upper: &Path| {
            fs::create_dir_all(upper.join("tmp")).unwrap();
            fs::create_dir_all(upper.join("home/u/.hermes")).unwrap();
            for file in [
                "tmp/hermes-snap-1.sh",
                "tmp/other",
                "home/u/.hermes/processes.json",
                "home/u/.hermes/.processes_a1.tmp",
                "home/u/.hermes/auth.json",
            ] {
                fs::write(upper.join(file), "x").unwrap();
            }
        };
        let expected = ["Created /home/u/.hermes/auth.json", "Created /tmp/other"];
        check(&["tmp/t", "home/u/.hermes/t"], change, &expected);
    }

    #[test]
    fn a_name_that_is_not_text_is_told_byte_by_byte() {
        let name = OsStr::from_bytes(b"a\xffb");
        check(
            &[],
            |upper| fs::write(upper.join(name), "").unwrap(),
            &["Created /a\\xffb"],
        );
    }
}
