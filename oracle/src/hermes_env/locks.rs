//! The lock files, built into the program so that it works from any directory.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::Interpreter;

/// One pinned release.
pub struct Lock {
    /// The Hermes release.
    pub version: &'static str,
    /// The requirements file, digests and all.
    pub text: &'static str,
}

const LOCKS: &[Lock] = &[
    Lock {
        version: "0.19.0",
        text: include_str!("../../../shim/hermes/hermes-agent-0.19.0.lock"),
    },
    Lock {
        version: "0.18.2",
        text: include_str!("../../../shim/hermes/hermes-agent-0.18.2.lock"),
    },
    Lock {
        version: "0.16.0",
        text: include_str!("../../../shim/hermes/hermes-agent-0.16.0.lock"),
    },
];

/// The releases that can be asked for, newest first.
#[must_use]
pub fn known_versions() -> Vec<&'static str> {
    LOCKS.iter().map(|lock| lock.version).collect()
}

/// The lock of one release.
pub fn find(version: &str) -> Option<&'static Lock> {
    LOCKS.iter().find(|lock| lock.version == version)
}

/// How many packages a lock names.
pub fn package_count(lock: &Lock) -> usize {
    lock.text
        .lines()
        .filter(|line| !line.starts_with(['#', ' ']) && line.contains("=="))
        .count()
}

/// What an installed environment was made from: lock and interpreter.
pub fn identity(lock: &Lock, interpreter: &Interpreter) -> String {
    let executable = interpreter.executable.display();
    format!("{}{executable}", without_executable(lock, interpreter))
}

/// The interpreter in an identity that differs in nothing else.
pub fn made_with(identity: &str, lock: &Lock, like: &Interpreter) -> Option<PathBuf> {
    let executable = identity.strip_prefix(&without_executable(lock, like))?;
    Some(PathBuf::from(executable))
}

fn without_executable(lock: &Lock, interpreter: &Interpreter) -> String {
    let digest = Sha256::digest(lock.text.as_bytes());
    let (major, minor) = interpreter.version;
    format!(
        "hermes-agent {} lock {} python {major}.{minor} ",
        lock.version,
        data_encoding::HEXLOWER.encode(&digest),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_environment_was_made_with_is_told_where_nothing_else_differs() {
        let of = |executable: &str, minor| Interpreter {
            executable: executable.into(),
            base_prefix: "/usr".into(),
            version: (3, minor),
        };
        let [lock, older, ..] = LOCKS else {
            panic!("one lock alone")
        };
        let made = identity(lock, &of("/usr/bin/python3.11", 11));
        let like = of("/opt/python/bin/python3.11", 11);
        let known = made_with(&made, lock, &like);
        assert_eq!(known, Some("/usr/bin/python3.11".into()));
        assert_eq!(made_with(&made, older, &like), None);
        assert_eq!(made_with(&made, lock, &of("/usr/bin/python3.12", 12)), None);
        assert_eq!(made_with("", lock, &like), None);
    }

    #[test]
    fn every_lock_pins_its_own_release_and_hashes_every_package() {
        for lock in LOCKS {
            assert!(
                lock.text
                    .contains(&format!("hermes-agent=={} ", lock.version)),
                "{}",
                lock.version
            );
            let hashed = lock
                .text
                .split("==")
                .skip(1)
                .filter(|part| part.contains("--hash=sha256:"));
            assert_eq!(hashed.count(), package_count(lock), "{}", lock.version);
            assert!(
                !lock.text.contains("://"),
                "a lock names packages, never addresses"
            );
        }
    }
}
