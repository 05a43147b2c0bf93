//! What an index of git's says, and what it only notes to be quick.
//!
//! `git status`, `git diff` and others write the index anew where the times, owners and
//! places of the files it names are not those it noted (gitformat-index(5), versions 2
//! to 4). Such an index says of every file what it said before.

use hermitcrab_core::{digest::Digest, path::RelPath};

use crate::digest::sha256;

/// The letters every index begins with.
const MAGIC: &[u8] = b"DIRC";
/// Times, device, inode, owner and length of a file: all but its mode, which lies between.
const NOTED: (usize, usize) = (24, 12);
/// Of an entry's flags, how long its name is.
const NAME_LENGTH: u16 = 0x0fff;
/// Of an entry's flags, that there are more.
const EXTENDED: u16 = 0x4000;
/// How long the name of an object is, by SHA-1 and by SHA-256.
const OBJECT_LENGTHS: [usize; 2] = [20, 32];
/// Parts that only save git the work of finding out again what the rest says.
const NOTES: [&[u8; 4]; 5] = [b"TREE", b"UNTR", b"FSMN", b"EOIE", b"IEOT"];

/// Whether git would call an index so.
#[must_use]
pub fn is_name_of_one(path: &RelPath) -> bool {
    path.file_name().is_some_and(|name| name == b"index")
}

/// What an index says of files, as one digest that is the same for indices that say the
/// same. `None` where that cannot be told.
#[must_use]
pub fn says(bytes: &[u8]) -> Option<Digest> {
    let mut said = Vec::new();
    for object in OBJECT_LENGTHS {
        if let Some(index) = Index::read(bytes, object) {
            put(&mut said, &object.to_le_bytes());
            index.put_into(&mut said);
        }
    }
    (!said.is_empty()).then(|| sha256(&said))
}

/// Whether two indices say the same of the same files. In doubt they do not.
#[must_use]
pub fn says_the_same(one: &[u8], other: &[u8]) -> bool {
    OBJECT_LENGTHS.iter().any(|object| {
        let read = |bytes| Index::read(bytes, *object);
        matches!((read(one), read(other)), (Some(one), Some(other)) if one == other)
    })
}

/// What an index says.
#[derive(Debug, PartialEq, Eq)]
struct Index<'i> {
    /// Whether names are written as what they add to the one before, which is a choice of
    /// its user's; of the other two versions git takes what the entries need.
    is_version_4: bool,
    entries: Vec<Entry<'i>>,
    /// Parts that are no notes, as they stand.
    parts: Vec<&'i [u8]>,
}

/// What it says of a file.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'i> {
    mode: &'i [u8],
    object: &'i [u8],
    /// How it was merged, and what git is to take for granted about it.
    flags: (u16, u16),
    path: Vec<u8>,
}

/// Bytes that are read one after the other.
struct Rest<'i>(&'i [u8]);

impl<'i> Rest<'i> {
    fn take(&mut self, length: usize) -> Option<&'i [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn half(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// What stands before the next nought, which is taken, too.
    fn text(&mut self) -> Option<&'i [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// A number as version 4 writes it: seven bits a byte, and each byte but the last
    /// counts one more.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        loop {
            let byte = *self.take(1)?.first()?;
            number = number.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            number = number.checked_add(1)?.checked_mul(0x80)?;
        }
    }
}

/// One part after the other, each with its length, so that nothing reads as something else.
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&bytes.len().to_le_bytes());
    out.extend_from_slice(bytes);
}

impl<'i> Index<'i> {
    fn put_into(&self, out: &mut Vec<u8>) {
        put(out, &[u8::from(self.is_version_4)]);
        put(out, &self.entries.len().to_le_bytes());
        for entry in &self.entries {
            let (flags, more) = entry.flags;
            put(out, entry.mode);
            put(out, entry.object);
            put(out, &flags.to_le_bytes());
            put(out, &more.to_le_bytes());
            put(out, &entry.path);
        }
        for part in &self.parts {
            put(out, part);
        }
    }

    fn read(bytes: &'i [u8], object: usize) -> Option<Self> {
        // Its own checksum comes last.
        let (body, _) = bytes.split_at_checked(bytes.len().checked_sub(object)?)?;
        let mut rest = Rest(body);
        if rest.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let version = rest.word().filter(|version| (2..=4).contains(version))?;
        let count = rest.word()?;
        let mut entries: Vec<Entry<'i>> = Vec::new();
        for _ in 0..count {
            let before = entries.last().map_or(&[][..], |entry| &entry.path);
            let entry = Entry::read(&mut rest, (version, object), before)?;
            entries.push(entry);
        }
        let mut parts = Vec::new();
        while !rest.0.is_empty() {
            let whole = rest.0;
            let name = rest.take(4)?;
            let length = usize::try_from(rest.word()?).ok()?;
            rest.take(length)?;
            // Where one index goes on in another file, this one does not say all.
            if name == b"link" {
                return None;
            }
            if !NOTES.iter().any(|note| name == note.as_slice()) {
                parts.push(whole.get(..length.checked_add(8)?)?);
            }
        }
        Some(Self {
            is_version_4: version == 4,
            entries,
            parts,
        })
    }
}

impl<'i> Entry<'i> {
    fn read(rest: &mut Rest<'i>, (version, object): (u32, usize), before: &[u8]) -> Option<Self> {
        let begun = rest.0.len();
        rest.take(NOTED.0)?;
        let mode = rest.take(4)?;
        rest.take(NOTED.1)?;
        let object = rest.take(object)?;
        let flags = rest.half()?;
        let more = match flags & EXTENDED {
            0 => 0,
            _ if version == 2 => return None,
            _ => rest.half()?,
        };
        let path = if version == 4 {
            let kept = before.len().checked_sub(rest.number()?)?;
            let mut path = before.get(..kept)?.to_vec();
            path.extend_from_slice(rest.text()?);
            path
        } else {
            let path = rest.text()?.to_vec();
            // One nought ends the name, and more fill the entry up to eight bytes.
            let length = begun.checked_sub(rest.0.len())?;
            let fill = length.next_multiple_of(8).checked_sub(length)?;
            if rest.take(fill)?.iter().any(|byte| *byte != 0) {
                return None;
            }
            path
        };
        Some(Self {
            mode,
            object,
            flags: (flags & !NAME_LENGTH, more),
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::{says, says_the_same};

    fn git(dir: &Path, arguments: &[&str]) {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(dir)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", dir)
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    fn index(dir: &Path) -> Vec<u8> {
        std::fs::read(dir.join(".git/index")).unwrap()
    }

    /// A repository whose files were touched since, and its index.
    fn touched(format: &str, version: &str) -> (tempfile::TempDir, Vec<u8>) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        git(dir, &["init", "-q", "--object-format", format]);
        std::fs::create_dir(dir.join("deep")).unwrap();
        for name in ["a", "an-longer-name", "deep/b", "deep/bc", "sh"] {
            std::fs::write(dir.join(name), name).unwrap();
        }
        git(dir, &["add", "-A"]);
        git(dir, &["update-index", "--index-version", version]);
        let before = index(dir);
        let other = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let file = std::fs::File::options()
            .write(true)
            .open(dir.join("a"))
            .unwrap();
        file.set_modified(other).unwrap();
        (temp, before)
    }

    #[test]
    fn an_index_that_was_only_brought_up_to_date_says_the_same_and_any_other_does_not() {
        for format in ["sha1", "sha256"] {
            for version in ["2", "3", "4"] {
                let (temp, before) = touched(format, version);
                let dir = temp.path();
                git(dir, &["status", "-s"]);
                let after = index(dir);
                assert_ne!(before, after);
                assert!(says_the_same(&before, &after), "{format} {version}");
                assert_eq!(says(&before), says(&after), "{format} {version}");
                assert!(says(&before).is_some());
                let another = if version == "4" { "2" } else { "4" };
                for arguments in [
                    &["update-index", "--index-version", another][..],
                    &["update-index", "--index-version", version],
                    &["update-index", "--assume-unchanged", "a"],
                    &["update-index", "--no-assume-unchanged", "a"],
                    &["update-index", "--skip-worktree", "a"],
                    &["update-index", "--chmod=+x", "sh"],
                    &["rm", "-q", "--cached", "deep/b"],
                    &["add", "-N", "deep/b"],
                    &["add", "deep/b"],
                    &["mv", "deep/bc", "deep/bd"],
                ] {
                    let before = index(dir);
                    git(dir, arguments);
                    assert!(!says_the_same(&before, &index(dir)), "{arguments:?}");
                    assert_ne!(says(&before), says(&index(dir)), "{arguments:?}");
                }
                std::fs::write(dir.join("a"), "something else").unwrap();
                git(dir, &["update-index", "--no-skip-worktree", "a"]);
                let before = index(dir);
                git(dir, &["add", "a"]);
                assert!(!says_the_same(&before, &index(dir)));
            }
        }
    }

    #[test]
    fn what_is_no_index_says_nothing_and_never_panics() {
        let (temp, whole) = touched("sha1", "4");
        assert!(says_the_same(&whole, &whole));
        for cut in 0..whole.len() {
            let part = &whole[..cut];
            assert!(!says_the_same(&whole, part), "{cut}");
            assert_ne!(says(&whole), says(part), "{cut}");
        }
        for at in 0..whole.len() {
            let mut odd = whole.clone();
            odd[at] ^= 0xff;
            // Whatever it says, it says it without a panic, and both ways to compare agree.
            let is_same = says(&odd).is_some() && says(&odd) == says(&whole);
            assert_eq!(says_the_same(&odd, &whole), is_same, "{at}");
        }
        for odd in [&b""[..], b"DIRC", b"one\n", &[0xff; 200]] {
            assert!(!says_the_same(odd, odd));
            assert_eq!(says(odd), None);
        }
        // Half of it lies in another file.
        git(temp.path(), &["update-index", "--split-index"]);
        let split = index(temp.path());
        assert!(!says_the_same(&split, &split));
        assert_eq!(says(&split), None);
    }
}
