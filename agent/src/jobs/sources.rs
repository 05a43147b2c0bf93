//! What other jobs came to last, for a job that is worked on with it.
//!
//! A job names the jobs it goes on from. That is part of what makes the job what it
//! is, so whoever grants it something has seen the names. What is read is data: it
//! is told as such and labelled as such. Nothing here follows a link or reads
//! anything but files of runs.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags},
    io::Errno,
};
use serde_json::Value;

use crate::{
    runtime::Job,
    text::pytext::{head, strip},
};

/// As much of one output is told, in letters.
const LETTERS_MAX: usize = 8000;
/// As much of a file is read: more than any run leaves.
const BYTES_MAX: u64 = 8 << 20;
const CUT: &str = "\n\n[... output truncated ...]";
/// Where runs of jobs are kept, below the directory of jobs.
const OUTPUTS: &str = "output";

/// What one job came to last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which job.
    pub id: String,
    /// What is kept of its last run, its beginning if it is long.
    pub text: String,
}

/// The jobs a job goes on from, in the order in which it names them.
#[must_use]
pub fn named(job: &Job) -> Vec<&str> {
    let names = match job.get("context_from") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_id = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    names.into_iter().filter(is_id).collect()
}

/// What came of them, as far as anything did that can be read.
///
/// # Errors
/// One left what is no text, in words for whoever looks after the job.
pub fn last(cron: &Path, job: &Job) -> Result<Vec<Source>, String> {
    let mut found = Vec::new();
    for id in named(job) {
        // A job that never ran, or whose file is gone or closed, has left nothing.
        let Ok(Some(bytes)) = newest(cron, id) else {
            continue;
        };
        let text = text(&bytes)?.replace("\r\n", "\n").replace('\r', "\n");
        let text = strip(&text);
        if text.is_empty() {
            continue;
        }
        let part = head(text, LETTERS_MAX);
        let cut = if part.len() < text.len() { CUT } else { "" };
        found.push(Source {
            id: id.to_owned(),
            text: format!("{part}{cut}"),
        });
    }
    Ok(found)
}

/// The file of a job's run that was written last.
fn newest(cron: &Path, id: &str) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let below = flags | OFlags::NOFOLLOW;
    let dir = rustix::fs::open(cron, flags, Mode::empty())?;
    let dir = rustix::fs::openat(dir, OUTPUTS, below, Mode::empty())?;
    let dir = rustix::fs::openat(dir, id, below, Mode::empty())?;
    let mut newest: Option<((i64, i64), CString)> = None;
    for entry in Dir::read_from(&dir)? {
        let name = entry?.file_name().to_owned();
        if !name.to_bytes().ends_with(b".md") {
            continue;
        }
        let stat = match rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            // It went away meanwhile.
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            continue;
        }
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
        let this = ((stat.st_mtime, nanos), name);
        if newest.as_ref().is_none_or(|known| *known < this) {
            newest = Some(this);
        }
    }
    let Some((_, name)) = newest else {
        return Ok(None);
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&dir, &name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The text of a file, or of its beginning.
fn text(bytes: &[u8]) -> Result<&str, String> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let at = error.valid_up_to();
    let (begun, rest) = bytes.split_at(at);
    if error.error_len().is_none() && bytes.len() as u64 == BYTES_MAX {
        // A letter was cut in two by the limit.
        return Ok(std::str::from_utf8(begun).unwrap_or_default());
    }
    let bad = error.error_len().unwrap_or(rest.len());
    let first = rest.first().copied().unwrap_or_default();
    let why = match (error.error_len(), first) {
        (None, _) => "unexpected end of data",
        (_, 0x80..=0xC1 | 0xF5..) => "invalid start byte",
        _ => "invalid continuation byte",
    };
    Err(match bad {
        0 | 1 => format!("'utf-8' codec can't decode byte 0x{first:02x} in position {at}: {why}"),
        more => {
            let end = at.saturating_add(more).saturating_sub(1);
            format!("'utf-8' codec can't decode bytes in position {at}-{end}: {why}")
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::{Value, json};

    use super::{Job, last, named, text};

    fn from(value: Value) -> Job {
        json!({"context_from": value}).as_object().unwrap().clone()
    }

    /// A directory of jobs, of which one left these files, the later the newer.
    fn kept(id: &str, files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let cron = tempfile::tempdir().unwrap();
        let dir = cron.path().join("output").join(id);
        std::fs::create_dir_all(&dir).unwrap();
        for (age, (name, content)) in (0_u32..).zip(files.iter().rev()) {
            std::fs::write(dir.join(name), content).unwrap();
            let file = std::fs::File::options()
                .write(true)
                .open(dir.join(name))
                .unwrap();
            let then = UNIX_EPOCH + Duration::from_secs(1_000_000) - Duration::from_secs(60) * age;
            file.set_modified(then).unwrap();
        }
        cron
    }

    fn texts(cron: &tempfile::TempDir, job: &Job) -> Vec<String> {
        let found = last(cron.path(), job).unwrap();
        found.into_iter().map(|source| source.text).collect()
    }

    #[test]
    fn only_what_can_be_the_id_of_a_job_names_one() {
        assert_eq!(named(&from(json!("abc123"))), ["abc123"]);
        assert_eq!(
            named(&from(json!(["b", "../x", "", "A", 5, "a"]))),
            ["b", "a"]
        );
        assert!(named(&from(Value::Null)).is_empty());
        assert!(named(&Job::new()).is_empty());
    }

    #[test]
    fn the_file_that_was_written_last_counts_whatever_its_name() {
        let cron = kept(
            "ab",
            &[("z.md", b"old"), ("a.md", b" new\r\n"), ("x.txt", b"no")],
        );
        assert_eq!(texts(&cron, &from(json!(["ab", "cd"]))), ["new"]);
    }

    #[test]
    fn a_long_output_is_cut_and_an_empty_one_is_none() {
        let long = "\u{e9}".repeat(8001);
        let cron = kept("ab", &[("a.md", long.as_bytes())]);
        let told = texts(&cron, &from(json!("ab")));
        let cut = format!("{}\n\n[... output truncated ...]", "\u{e9}".repeat(8000));
        assert_eq!(told, [cut]);
        let just = "\u{e9}".repeat(8000);
        let cron = kept("ab", &[("a.md", just.as_bytes())]);
        assert_eq!(texts(&cron, &from(json!("ab"))), [just]);
        let cron = kept("ab", &[("b.md", b"old"), ("a.md", b" \n")]);
        assert!(texts(&cron, &from(json!("ab"))).is_empty());
    }

    #[test]
    fn no_link_leads_to_what_is_no_output() {
        let cron = kept("ab", &[]);
        let secret = cron.path().join("secret");
        std::fs::write(&secret, "key").unwrap();
        let output = cron.path().join("output");
        std::os::unix::fs::symlink(&secret, output.join("ab/a.md")).unwrap();
        let other = cron.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("a.md"), "key").unwrap();
        std::os::unix::fs::symlink(&other, output.join("cd")).unwrap();
        assert!(texts(&cron, &from(json!(["ab", "cd"]))).is_empty());
    }

    #[test]
    fn what_is_no_text_is_named_by_its_place() {
        let cron = kept("ab", &[("a.md", b"ok\xff")]);
        let why = last(cron.path(), &from(json!("ab"))).unwrap_err();
        assert_eq!(
            why,
            "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte"
        );
        for (bytes, expected) in [
            (
                &b"a\xc3("[..],
                "byte 0xc3 in position 1: invalid continuation byte",
            ),
            (b"\xe2\x82", "bytes in position 0-1: unexpected end of data"),
            (
                b"\xe2\x82(",
                "bytes in position 0-1: invalid continuation byte",
            ),
            (b"\xc3", "byte 0xc3 in position 0: unexpected end of data"),
        ] {
            let why = text(bytes).unwrap_err();
            assert!(why.ends_with(expected), "{why}");
        }
    }
}
