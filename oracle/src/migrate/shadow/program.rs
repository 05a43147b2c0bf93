//! The program to be watched: whether it can be started, as far as that can be seen before
//! anything is. Seconds of starting a mirror for a name with a slip in it would be lost.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Why it cannot be started, and what to do; nothing where it can be, or nobody knows.
pub(super) fn lacking(program: &OsStr, path: &[PathBuf]) -> Option<String> {
    let shown = program.to_string_lossy();
    if program.is_empty() {
        return Some("cannot start ``: the command has no name; give Hermes as you start it, such as `-- hermes`".to_owned());
    }
    if program.as_bytes().contains(&b'/') {
        let why = wrong(Path::new(program))?;
        return Some(format!(
            "cannot start `{shown}`: {why}; give Hermes as you start it, such as `-- hermes`"
        ));
    }
    // Where there is no search path, the system has one of its own.
    if path.is_empty() || path.iter().any(|dir| wrong(&dir.join(program)).is_none()) {
        return None;
    }
    let there = path.iter().map(|dir| dir.join(program));
    let seen = there.filter(|file| file.is_file()).find_map(|file| {
        let why = wrong(&file)?;
        Some(format!("`{}`: {why}", file.display()))
    });
    let why = seen.unwrap_or_else(|| "no directory of PATH has a program of this name".to_owned());
    Some(format!(
        "cannot start `{shown}`: {why}; give Hermes as you start it, or by its whole path, such as `-- ~/.local/bin/hermes`"
    ))
}

/// What keeps this file from being started.
fn wrong(file: &Path) -> Option<String> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("there is no such file".to_owned())
        }
        Err(error) => Some(error.to_string()),
        Ok(seen) if seen.is_dir() => Some("it is a directory".to_owned()),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => Some(
            "it is a file that may not be executed (`chmod +x` makes it one that may)".to_owned(),
        ),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_cannot_be_started_is_told_and_what_can_is_left_to_the_system() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, mode) in [("runs", 0o755), ("plain", 0o644)] {
            std::fs::write(at(name), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(at("folder")).unwrap();
        let path = [at("nowhere"), dir.path().to_owned()];
        let lacking = |program: &OsStr| super::lacking(program, &path);
        assert_eq!(lacking(OsStr::new("runs")), None);
        assert_eq!(lacking(at("runs").as_os_str()), None);
        assert_eq!(super::lacking(OsStr::new("anything"), &[]), None);
        for (program, said) in [
            (PathBuf::new(), "the command has no name"),
            ("no-such".into(), "no directory of PATH has a program"),
            ("folder".into(), "no directory of PATH has a program"),
            ("plain".into(), "may not be executed"),
            (at("plain"), "may not be executed"),
            (at("folder"), "it is a directory"),
            (at("no-such"), "there is no such file"),
            (at("plain/below"), "Not a directory"),
        ] {
            let told = lacking(program.as_os_str()).unwrap_or_default();
            assert!(told.contains(said), "{}: {told}", program.display());
            assert!(told.contains("give Hermes as you start it"), "{told}");
        }
    }
}
