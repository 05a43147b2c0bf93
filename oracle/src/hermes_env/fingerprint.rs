//! Is an installed environment still what was installed?
//!
//! A stamp beside the environment holds what it was made from and a digest over
//! the name, size and time of change (in seconds, which archives keep) of every
//! installed file. The rows themselves lie in a file of their own, so that what
//! differs can be named, and a `bisim` that knows of none takes the stamp as well.
//! Byte-compiled caches are left out: the interpreter makes them on its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hermitcrab::given_file::{self, Pipes};
use sha2::{Digest, Sha256};

const STAMP: &str = "installed";
const ROWS: &str = "installed.files";

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// Exactly what was installed.
    Whole,
    /// No finished installation.
    Absent,
    /// All that was installed, and files that were not.
    Grown(Grown),
    /// Something else; says what.
    Different(String),
}

/// Files that were added to an environment, by their names below its packages.
#[derive(Debug, PartialEq, Eq)]
pub struct Grown {
    added: Vec<PathBuf>,
    installed: Rows,
}

/// Longer than the rows of any environment.
const NOTE_BYTES_MAX: u64 = 256 << 20;

/// Name of a file below the packages, and what else of it is compared.
type Rows = BTreeMap<PathBuf, String>;

/// Compares the environment with its stamp.
pub fn check(home: &Path, identity: &str, site_packages: &Path) -> State {
    let Ok(stamp) = read(&home.join(STAMP)) else {
        return State::Absent;
    };
    let Some((stamped_identity, files)) = stamp.split_once('\n') else {
        return State::Different("its stamp is damaged".to_owned());
    };
    if stamped_identity != identity {
        return State::Different("the lock file or the interpreter changed".to_owned());
    }
    let Ok(rows) = rows(site_packages) else {
        return State::Different("files are missing or unreadable".to_owned());
    };
    let stamped_digest = files.trim_end();
    // Rows that are not those of the stamp are somebody else's, or damaged.
    let installed = read(&home.join(ROWS)).map(|text| read_rows(&text));
    let installed = installed.ok().filter(|rows| digest(rows) == stamped_digest);
    if digest(&rows) == stamped_digest {
        if installed.is_none() {
            // Without rows it is told as well whether all is there, and not what is not.
            let _ = write_beside(home, ROWS, &written(&rows));
        }
        return State::Whole;
    }
    let Some(installed) = installed else {
        return State::Different("files were added, removed or changed".to_owned());
    };
    compare(installed, &rows)
}

/// A note of this program's own; whatever lies there instead is none.
fn read(note: &Path) -> io::Result<String> {
    given_file::text(note, NOTE_BYTES_MAX, Pipes::Refused)
}

/// What the environment was made from, as its stamp says.
pub fn identity(home: &Path) -> Option<String> {
    let stamp = read(&home.join(STAMP)).ok()?;
    Some(stamp.split_once('\n')?.0.to_owned())
}

/// Writes the stamp; the environment is valid from here on.
///
/// # Errors
/// The environment cannot be listed or the stamp cannot be written.
pub fn write(home: &Path, identity: &str, site_packages: &Path) -> io::Result<()> {
    let rows = rows(site_packages)?;
    write_beside(home, ROWS, &written(&rows))?;
    write_beside(home, STAMP, &format!("{identity}\n{}\n", digest(&rows)))
}

/// Writes a file whole or not at all.
fn write_beside(home: &Path, name: &str, text: &str) -> io::Result<()> {
    let beside = home.join(format!("{name}.new"));
    fs::write(&beside, text)?;
    fs::rename(beside, home.join(name))
}

impl Grown {
    /// How many files there are besides, and one of them.
    pub fn told(&self) -> String {
        let count = self.added.len();
        let files = if count == 1 { "file" } else { "files" };
        let first = self.added.first();
        let first = first.map_or_else(String::new, |name| name.display().to_string());
        format!("{count} {files}, such as `{first}`")
    }

    /// Takes away what was added, and the directories in which nothing was installed: one
    /// with nothing in it but caches can still be imported.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn take_away(&self, site_packages: &Path) -> io::Result<()> {
        for name in &self.added {
            let is_new = |above: &&Path| {
                let mut from = self.installed.range(above.to_path_buf()..);
                !from.next().is_some_and(|(name, _)| name.starts_with(above))
            };
            // The last of these is the package directory itself, which is never new.
            let above = name.ancestors().skip(1);
            let gone = match above
                .filter(|above| !above.as_os_str().is_empty())
                .filter(is_new)
                .last()
            {
                Some(directory) => fs::remove_dir_all(site_packages.join(directory)),
                None => fs::remove_file(site_packages.join(name)),
            };
            match gone {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Takes the stamp away before the environment is changed.
///
/// # Errors
/// The stamp exists and cannot be removed.
pub fn remove(home: &Path) -> io::Result<()> {
    match fs::remove_file(home.join(STAMP)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What was installed beside what is there, which is not the same.
fn compare(installed: Rows, now: &Rows) -> State {
    let is_gone = |name: &&PathBuf| !now.contains_key(*name);
    let is_new = |name: &&PathBuf| !installed.contains_key(*name);
    let is_other = |name: &&PathBuf| {
        let is = now.get(*name);
        is.is_some_and(|is| Some(is) != installed.get(*name))
    };
    let removed: Vec<&PathBuf> = installed.keys().filter(is_gone).collect();
    let changed: Vec<&PathBuf> = installed.keys().filter(is_other).collect();
    let added: Vec<&PathBuf> = now.keys().filter(is_new).collect();
    if removed.is_empty() && changed.is_empty() {
        let added = added.into_iter().cloned().collect();
        return State::Grown(Grown { added, installed });
    }
    let told = [
        ("removed", &removed),
        ("changed", &changed),
        ("added", &added),
    ]
    .into_iter()
    .filter_map(|(how, names)| {
        let first = names.first()?;
        Some(format!(
            "{} {how}, such as `{}`",
            names.len(),
            first.display()
        ))
    })
    .collect::<Vec<_>>();
    State::Different(format!("files: {}", told.join("; ")))
}

fn rows(site_packages: &Path) -> io::Result<Rows> {
    let mut rows = Rows::new();
    let mut pending: Vec<PathBuf> = vec![site_packages.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let path = entry.path();
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                if entry.file_name() != "__pycache__" {
                    pending.push(path);
                }
            } else {
                let name = path.strip_prefix(site_packages).unwrap_or(&path);
                let rest = format!("{}\0{}", metadata.len(), metadata.mtime());
                rows.insert(name.to_owned(), rest);
            }
        }
    }
    Ok(rows)
}

/// One line for each file.
fn lines(rows: &Rows) -> Vec<String> {
    let line = |(name, rest): (&PathBuf, &String)| format!("{}\0{rest}\n", name.display());
    rows.iter().map(line).collect()
}

fn written(rows: &Rows) -> String {
    lines(rows).concat()
}

/// Reads what [`written`] wrote. Of anything else the digest is another one.
fn read_rows(text: &str) -> Rows {
    let row = |line: &str| {
        let (name, rest) = line.split_once('\0')?;
        Some((PathBuf::from(name), rest.to_owned()))
    };
    text.lines().filter_map(row).collect()
}

fn digest(rows: &Rows) -> String {
    let mut lines = lines(rows);
    lines.sort_unstable();
    let mut hasher = Sha256::new();
    for line in &lines {
        hasher.update(line.as_bytes());
    }
    data_encoding::HEXLOWER.encode(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(home: &Path, identity: &str) -> String {
        match check(home, identity, &home.join("site")) {
            State::Whole => "whole".to_owned(),
            State::Absent => "absent".to_owned(),
            State::Grown(grown) => grown.told(),
            State::Different(why) => why,
        }
    }

    /// A small environment with its stamp.
    fn installed() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let site = home.path().join("site");
        fs::create_dir_all(site.join("pkg/__pycache__")).unwrap();
        fs::write(site.join("pkg/a.py"), "a").unwrap();
        fs::write(site.join("single.py"), "s").unwrap();
        assert_eq!(verdict(home.path(), "id"), "absent");
        write(home.path(), "id", &site).unwrap();
        assert_eq!(verdict(home.path(), "id"), "whole");
        (home, site)
    }

    #[test]
    fn any_change_to_an_installed_file_or_its_origin_is_noticed() {
        let (home, site) = installed();
        let home = home.path();
        fs::write(site.join("pkg/__pycache__/a.cpython-311.pyc"), "x").unwrap();
        assert_eq!(verdict(home, "id"), "whole");
        assert_eq!(
            verdict(home, "other"),
            "the lock file or the interpreter changed"
        );
        let file = fs::File::options()
            .write(true)
            .open(site.join("pkg/a.py"))
            .unwrap();
        let installed_at = file.metadata().unwrap().modified().unwrap();
        let later = installed_at + std::time::Duration::from_secs(5);
        file.set_modified(later).unwrap();
        let changed = "files: 1 changed, such as `pkg/a.py`";
        assert_eq!(
            verdict(home, "id"),
            changed,
            "another content of the same size"
        );
        file.set_modified(installed_at).unwrap();
        assert_eq!(verdict(home, "id"), "whole");
        fs::write(site.join("pkg/a.py"), "ab").unwrap();
        assert_eq!(verdict(home, "id"), changed);
        fs::remove_file(site.join("pkg/a.py")).unwrap();
        fs::write(site.join("pkg/b.py"), "b").unwrap();
        assert_eq!(
            verdict(home, "id"),
            "files: 1 removed, such as `pkg/a.py`; 1 added, such as `pkg/b.py`"
        );
        remove(home).unwrap();
        assert_eq!(verdict(home, "id"), "absent");
    }

    #[test]
    fn what_was_added_is_named_and_taken_away_and_nothing_else_is() {
        let (home, site) = installed();
        let home = home.path();
        fs::write(site.join("pkg/__pycache__/a.cpython-311.pyc"), "x").unwrap();
        for name in ["more/deep", "more/__pycache__", "pkg/below/__pycache__"] {
            fs::create_dir_all(site.join(name)).unwrap();
        }
        for name in [
            "extra.py",
            // A package that is only compiled can be imported as well.
            "compiled.pyc",
            "more/__init__.py",
            "more/__pycache__/m.pyc",
            "more/deep/m.py",
            "pkg/below/b.py",
            "pkg/below/__pycache__/b.pyc",
            "pkg/b.py",
        ] {
            fs::write(site.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(&site, site.join("pkg/link")).unwrap();
        assert_eq!(verdict(home, "id"), "7 files, such as `compiled.pyc`");
        let State::Grown(grown) = check(home, "id", &site) else {
            panic!("only files were added")
        };
        grown.take_away(&site).unwrap();
        assert_eq!(verdict(home, "id"), "whole");
        let mut left: Vec<_> = walk(&site);
        left.sort();
        assert_eq!(
            left,
            [
                "pkg",
                "pkg/__pycache__",
                "pkg/__pycache__/a.cpython-311.pyc",
                "pkg/a.py",
                "single.py"
            ]
        );
    }

    fn walk(top: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![top.to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(top).unwrap().display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    pending.push(path);
                }
            }
        }
        found
    }

    #[test]
    fn a_stamp_without_its_rows_counts_and_gets_them() {
        let (home, site) = installed();
        let rows = home.path().join(ROWS);
        let text = fs::read_to_string(&rows).unwrap();
        let unnamed = "files were added, removed or changed";
        for other in [None, Some(text.replace("single", "double"))] {
            match &other {
                None => fs::remove_file(&rows).unwrap(),
                Some(other) => fs::write(&rows, other).unwrap(),
            }
            fs::write(site.join("extra.py"), "x").unwrap();
            assert_eq!(verdict(home.path(), "id"), unnamed, "{other:?}");
            fs::remove_file(site.join("extra.py")).unwrap();
            assert_eq!(verdict(home.path(), "id"), "whole");
            assert_eq!(fs::read_to_string(&rows).unwrap(), text);
        }
    }

    #[test]
    fn the_stamp_is_two_lines_since_another_release_of_this_reads_it_too() {
        let (home, _site) = installed();
        let stamp = fs::read_to_string(home.path().join(STAMP)).unwrap();
        let (identity, digest) = stamp.trim_end().split_once('\n').unwrap();
        assert_eq!(identity, "id");
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
