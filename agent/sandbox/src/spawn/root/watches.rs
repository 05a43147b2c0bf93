//! Watches on files, of which the machine allows each user only so many.
//!
//! Each that a sandbox has counts for whoever started the agent as well, whose own
//! programs would find none left. So all sandboxes of one agent together have a part,
//! set in the namespace their zygotes are in, and none of the kind that the filter
//! refuses them anyway. It must never say that a limit holds which was not
//! read back.

use std::fs;
use std::io;
use std::path::Path;

/// One agent's sandboxes have one of so many parts.
const PART: u64 = 8;

/// What the machine allows, the limit that is set, and the least that is of use.
const LIMITS: [(&str, &str, u64); 2] = [
    ("max_user_instances", "max_inotify_instances", 8),
    ("max_user_watches", "max_inotify_watches", 512),
];

/// What nobody has any of: watches on whole file systems, a second line behind the
/// filter. A kernel without this limit lets nobody but root of the machine have them.
const NONE_OF: &str = "max_fanotify_groups";

/// Sets the limits of the calling process' namespace, below this /proc/sys.
///
/// # Errors
/// Why one of them does not hold.
pub(super) fn share(sys: &Path) -> Result<(), String> {
    for (most, kept, least) in LIMITS {
        let from = sys.join("fs/inotify").join(most);
        let most = match fs::read_to_string(&from) {
            Ok(text) => text,
            // Where nobody can watch anything, nothing is to be shared.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", from.display())),
        };
        let most: u64 = most
            .trim()
            .parse()
            .map_err(|_| format!("{} holds no number", from.display()))?;
        let part = (most / PART).max(least).to_string();
        set(&sys.join("user").join(kept), &part)?;
    }
    let none = sys.join("user").join(NONE_OF);
    if none.exists() {
        set(&none, "0")
    } else {
        Ok(())
    }
}

/// Sets one limit and reads it back.
fn set(limit: &Path, to: &str) -> Result<(), String> {
    let found = fs::OpenOptions::new()
        .write(true)
        .open(limit)
        .and_then(|mut file| io::Write::write_all(&mut file, to.as_bytes()))
        .and_then(|()| fs::read_to_string(limit));
    match found {
        Ok(found) if found.trim() == to => Ok(()),
        Ok(found) => Err(format!("{} is {}", limit.display(), found.trim())),
        Err(error) => Err(format!("{}: {error}", limit.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree that looks like /proc/sys, with these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for dir in ["fs/inotify", "user"] {
            fs::create_dir_all(temp.path().join(dir)).unwrap();
        }
        for (name, text) in files {
            fs::write(temp.path().join(name), text).unwrap();
        }
        temp
    }

    const MOST: [(&str, &str); 2] = [
        ("fs/inotify/max_user_instances", "64\n"),
        ("fs/inotify/max_user_watches", "160000\n"),
    ];
    const KEPT: [(&str, &str); 2] = [
        ("user/max_inotify_instances", ""),
        ("user/max_inotify_watches", ""),
    ];

    #[test]
    fn an_eighth_is_given_and_no_less_than_is_of_use() {
        let sys = tree(&[MOST, KEPT].concat());
        assert_eq!(share(sys.path()), Ok(()));
        let read = |name: &str| fs::read_to_string(sys.path().join(name)).unwrap();
        assert_eq!(read("user/max_inotify_instances"), "8");
        assert_eq!(read("user/max_inotify_watches"), "20000");
        // A kernel that knows of the other kind gives none of it.
        let sys = tree(&[&MOST[..], &KEPT[..], &[("user/max_fanotify_groups", "")]].concat());
        assert_eq!(share(sys.path()), Ok(()));
        let none = fs::read_to_string(sys.path().join("user/max_fanotify_groups"));
        assert_eq!(none.unwrap(), "0");
    }

    #[test]
    fn a_limit_that_does_not_hold_is_told() {
        for files in [
            // A kernel that cannot limit them.
            MOST.to_vec(),
            [&MOST[..], &KEPT[..1]].concat(),
            // What the machine allows is no number.
            [&[("fs/inotify/max_user_instances", "many")], &KEPT[..]].concat(),
            // What is read back is something else: more was there than was written.
            [&MOST[..], &[("user/max_inotify_instances", "128")]].concat(),
            [&MOST[..], &KEPT[..], &[("user/max_fanotify_groups", "128")]].concat(),
        ] {
            let sys = tree(&files);
            assert!(share(sys.path()).is_err(), "{files:?}");
        }
        // Without any, there is nothing to limit.
        assert_eq!(share(tree(&[]).path()), Ok(()));
    }
}
