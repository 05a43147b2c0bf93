//! The files of a model, looked at before anything is started for them.
//!
//! A person is told what is wrong with a file in words, and most of what is
//! wrong shows from outside: it is missing, half of it is, it is something else,
//! or the machine has no room for it.

use std::path::{Path, PathBuf};

use crate::model::{ModelError, gguf};

/// Parts a model's file may be split into.
const PARTS_MAX: u32 = 512;

/// The files of a model, looked at from outside first.
pub fn whole(first: &Path, free: Option<u64>) -> Result<Vec<String>, ModelError> {
    let mut names = Vec::new();
    let mut bytes = 0_u64;
    for path in parts(first) {
        let wrong = |why: String| ModelError::Load(format!("`{}`: {why}", path.display()));
        let real = path
            .canonicalize()
            .map_err(|error| wrong(error.to_string()))?;
        let head = gguf::read(&real).map_err(|error| wrong(error.to_string()))?;
        if head.is_cut_off() {
            return Err(wrong(format!(
                "it ends after {} bytes and needs {}, as half a download does",
                head.bytes, head.bytes_needed
            )));
        }
        bytes = bytes.saturating_add(head.bytes);
        let name = real
            .to_str()
            .ok_or_else(|| wrong("its name is not UTF-8".to_owned()))?;
        names.push(name.to_owned());
    }
    if let Some(free) = free
        && bytes > free
    {
        return Err(ModelError::Load(format!(
            "`{}` takes {} MiB of memory, and {} MiB are free",
            first.display(),
            bytes >> 20,
            free >> 20
        )));
    }
    Ok(names)
}

/// A file `x-00001-of-00003.gguf` comes with its others.
fn parts(first: &Path) -> Vec<PathBuf> {
    let named = || {
        let name = first.file_name()?.to_str()?;
        let (head, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let stem = head.strip_suffix("-00001")?;
        let number: u32 = count.parse().ok()?;
        (count.len() == 5 && (1..=PARTS_MAX).contains(&number)).then(|| {
            (1..=number)
                .map(|part| first.with_file_name(format!("{stem}-{part:05}-of-{count}.gguf")))
                .collect()
        })
    };
    named().unwrap_or_else(|| vec![first.to_owned()])
}

/// Memory that can be had without taking it from others, in bytes.
pub fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{parts, whole};
    use crate::model::ModelError;

    #[test]
    fn a_model_in_parts_is_all_of_its_files() {
        let check = |name: &str, all: &[&str]| {
            let all: Vec<PathBuf> = all.iter().map(|name| Path::new("/m").join(name)).collect();
            assert_eq!(parts(&Path::new("/m").join(name)), all);
        };
        check(
            "x-00001-of-00002.gguf",
            &["x-00001-of-00002.gguf", "x-00002-of-00002.gguf"],
        );
        for alone in [
            "x.gguf",
            "x-00002-of-00002.gguf",
            "x-00001-of-99999.gguf",
            "x-00001-of-2.gguf",
        ] {
            check(alone, &[alone]);
        }
    }

    #[test]
    fn what_is_no_model_or_no_whole_one_is_told_before_anything_is_started() {
        let dir = tempfile::tempdir().expect("a directory");
        let missing = dir.path().join("missing.gguf");
        let other = dir.path().join("other.gguf");
        std::fs::write(&other, "a text\n").expect("written");
        for (path, part) in [(&missing, "No such file"), (&other, "no GGUF")] {
            match whole(path, None) {
                Err(ModelError::Load(why)) => assert!(why.contains(part), "{why}"),
                found => panic!("{found:?}"),
            }
        }
    }
}
