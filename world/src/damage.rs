//! Damage to a file that a subject keeps, done the same way to both.
//!
//! What for: a case may say that a store was cut in half or put back from an
//! older copy between two runs of a program. It must know of bytes only, never
//! of what they mean to a subject.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::protocol::Harm;

/// How many bytes of a record a crash leaves out.
const CUT_OFF_BYTES: usize = 7;
/// A bit is flipped in each stretch of this length.
const STRETCH_BYTES: usize = 512;

/// Does it to the file; `false`: no such damage can be done to a file.
/// `withdraw` is how the person takes answers back.
///
/// # Errors
/// The file system's.
pub fn apply<E: From<io::Error>>(
    path: &Path,
    how: Harm,
    withdraw: impl FnOnce() -> Result<(), E>,
) -> Result<bool, E> {
    match how {
        Harm::Missing => fs::remove_file(path)?,
        Harm::Empty => cut(path, 0)?,
        Harm::HalfGone => cut(path, fs::read(path)?.len() / 2)?,
        Harm::CutOff => cut(path, fs::read(path)?.len().saturating_sub(CUT_OFF_BYTES))?,
        Harm::LastLineGone => {
            let bytes = fs::read(path)?;
            let before = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let end = before.iter().rposition(|byte| *byte == b'\n');
            cut(path, end.map_or(0, |end| end.saturating_add(1)))?;
        }
        Harm::BitsFlipped => {
            let mut bytes = fs::read(path)?;
            for stretch in bytes.chunks_mut(STRETCH_BYTES) {
                let middle = stretch.len() / 2;
                if let Some(byte) = stretch.get_mut(middle) {
                    *byte ^= 1;
                }
            }
            fs::write(path, bytes)?;
        }
        Harm::OpenToAll => fs::set_permissions(path, Permissions::from_mode(0o666))?,
        Harm::Linked => {
            let elsewhere = beside(path);
            fs::rename(path, &elsewhere)?;
            symlink(&elsewhere, path)?;
        }
        Harm::Directory => {
            fs::rename(path, beside(path))?;
            fs::create_dir(path)?;
        }
        Harm::Withdrawn => withdraw()?,
        Harm::RolledBack => {
            let older = fs::read(path)?;
            withdraw()?;
            fs::write(path, older)?;
        }
        Harm::Full | Harm::Rebooted | Harm::MonthLater => return Ok(false),
    }
    Ok(true)
}

fn cut(path: &Path, bytes: usize) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".moved");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::os::unix::fs::MetadataExt as _;

    use super::apply;
    use crate::protocol::Harm;

    fn after(how: Harm) -> (Option<Vec<u8>>, bool, u32) {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("kept");
        fs::write(&path, "one line\nanother line\n").expect("written");
        let withdraw = || fs::write(&path, "nothing\n");
        assert!(apply::<io::Error>(&path, how, withdraw).expect("done"));
        let seen = fs::symlink_metadata(&path);
        let (is_link, mode) = seen
            .map(|seen| (seen.is_symlink(), seen.mode() & 0o777))
            .unwrap_or_default();
        (fs::read(&path).ok(), is_link, mode)
    }

    #[test]
    fn each_damage_leaves_what_its_name_says() {
        let text = |how| {
            after(how)
                .0
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        assert_eq!(text(Harm::Missing), None);
        assert_eq!(text(Harm::Directory), None);
        assert_eq!(text(Harm::Empty).as_deref(), Some(""));
        assert_eq!(text(Harm::HalfGone).as_deref(), Some("one line\nan"));
        assert_eq!(text(Harm::CutOff).as_deref(), Some("one line\nanothe"));
        assert_eq!(text(Harm::LastLineGone).as_deref(), Some("one line\n"));
        assert_eq!(text(Harm::Withdrawn).as_deref(), Some("nothing\n"));
        let whole = "one line\nanother line\n";
        assert_eq!(text(Harm::RolledBack).as_deref(), Some(whole));
        assert_eq!(text(Harm::OpenToAll).as_deref(), Some(whole));
        assert_eq!(after(Harm::OpenToAll).2, 0o666);
        let (bytes, is_link, _) = after(Harm::Linked);
        assert!(is_link && bytes.as_deref() == Some(whole.as_bytes()));
        let flipped = text(Harm::BitsFlipped).unwrap_or_default();
        assert_eq!(flipped.len(), whole.len());
        let differ = flipped.bytes().zip(whole.bytes()).filter(|(a, b)| a != b);
        assert_eq!(differ.count(), 1);
    }

    #[test]
    fn what_befalls_a_machine_is_done_to_no_file() {
        for how in [Harm::Full, Harm::Rebooted, Harm::MonthLater] {
            let path = std::path::Path::new("/nowhere");
            assert!(!apply::<io::Error>(path, how, || Ok(())).expect("nothing"));
        }
    }
}
