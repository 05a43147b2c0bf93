//! The lock files, built into the program so that it works from any directory.

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
    let digest = Sha256::digest(lock.text.as_bytes());
    let (major, minor) = interpreter.version;
    format!(
        "hermes-agent {} lock {} python {major}.{minor} {}",
        lock.version,
        data_encoding::HEXLOWER.encode(&digest),
        interpreter.executable.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
