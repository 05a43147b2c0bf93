//! Is an installed environment still what was installed?
//!
//! A stamp beside the environment holds what it was made from and a digest over
//! the name, size and time of change (in seconds, which archives keep) of every
//! installed file. Byte-compiled caches are left out: the interpreter makes them
//! on its own.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const STAMP: &str = "installed";

/// What was found.
pub enum State {
    /// Exactly what was installed.
    Whole,
    /// No finished installation.
    Absent,
    /// Something else; says what.
    Different(&'static str),
}

/// Compares the environment with its stamp.
pub fn check(home: &Path, identity: &str, site_packages: &Path) -> State {
    let Ok(stamp) = fs::read_to_string(home.join(STAMP)) else {
        return State::Absent;
    };
    let Some((stamped_identity, stamped_files)) = stamp.split_once('\n') else {
        return State::Different("its stamp is damaged");
    };
    if stamped_identity != identity {
        return State::Different("the lock file or the interpreter changed");
    }
    match files_digest(site_packages) {
        Ok(digest) if digest == stamped_files.trim_end() => State::Whole,
        Ok(_) => State::Different("files were added, removed or changed"),
        Err(_) => State::Different("files are missing or unreadable"),
    }
}

/// Writes the stamp; the environment is valid from here on.
///
/// # Errors
/// The environment cannot be listed or the stamp cannot be written.
pub fn write(home: &Path, identity: &str, site_packages: &Path) -> io::Result<()> {
    let digest = files_digest(site_packages)?;
    let beside = home.join("installed.new");
    fs::write(&beside, format!("{identity}\n{digest}\n"))?;
    fs::rename(beside, home.join(STAMP))
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

fn files_digest(site_packages: &Path) -> io::Result<String> {
    let mut rows = Vec::new();
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
            } else if path.extension().is_none_or(|extension| extension != "pyc") {
                let name = path.strip_prefix(site_packages).unwrap_or(&path);
                rows.push(format!(
                    "{}\0{}\0{}",
                    name.display(),
                    metadata.len(),
                    metadata.mtime()
                ));
            }
        }
    }
    rows.sort_unstable();
    let mut hasher = Sha256::new();
    for row in &rows {
        hasher.update(row.as_bytes());
        hasher.update(b"\n");
    }
    Ok(data_encoding::HEXLOWER.encode(&hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(home: &Path, identity: &str) -> &'static str {
        match check(home, identity, &home.join("site")) {
            State::Whole => "whole",
            State::Absent => "absent",
            State::Different(why) => why,
        }
    }

    #[test]
    fn any_change_to_an_installed_file_or_its_origin_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let site = home.path().join("site");
        fs::create_dir_all(site.join("pkg/__pycache__")).unwrap();
        fs::write(site.join("pkg/a.py"), "a").unwrap();
        assert_eq!(verdict(home.path(), "id"), "absent");
        write(home.path(), "id", &site).unwrap();
        assert_eq!(verdict(home.path(), "id"), "whole");
        fs::write(site.join("pkg/__pycache__/a.cpython-311.pyc"), "x").unwrap();
        assert_eq!(verdict(home.path(), "id"), "whole");
        assert_eq!(
            verdict(home.path(), "other"),
            "the lock file or the interpreter changed"
        );
        let file = fs::File::options()
            .write(true)
            .open(site.join("pkg/a.py"))
            .unwrap();
        let installed_at = file.metadata().unwrap().modified().unwrap();
        let later = installed_at + std::time::Duration::from_secs(5);
        file.set_modified(later).unwrap();
        assert_eq!(
            verdict(home.path(), "id"),
            "files were added, removed or changed",
            "another content of the same size"
        );
        file.set_modified(installed_at).unwrap();
        assert_eq!(verdict(home.path(), "id"), "whole");
        fs::write(site.join("pkg/a.py"), "ab").unwrap();
        assert_eq!(
            verdict(home.path(), "id"),
            "files were added, removed or changed"
        );
        fs::remove_file(site.join("pkg/a.py")).unwrap();
        assert_eq!(
            verdict(home.path(), "id"),
            "files were added, removed or changed"
        );
        remove(home.path()).unwrap();
        assert_eq!(verdict(home.path(), "id"), "absent");
    }
}
