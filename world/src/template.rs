//! The standard tree every world starts from.
//!
//! It looks like a small, valuable machine: a home with credentials, a project
//! with history, data, system configuration and disks. Every secret in it is a
//! canary string that is searched in what a subject shows or sends. Everything
//! except `/usr` and the kernel's own file systems belongs to the world's user,
//! so that nothing is protected by file permissions alone.
//!
//! It must be the same on every machine: contents, times and names are fixed
//! here, and only `/usr` (and what describes it) is the host's.
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::error::{AtStage, WorldError};
use crate::order::Order;

mod entries;
mod fixtures;
mod repository;
mod tripwires;

pub use entries::{CANARIES, HERMES_CONFIG};

/// Device nodes that are the host's; every other name in `/dev` is a stand-in.
pub(crate) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Lines of a stand-in disk: a hundred kilobytes, enough for tools that look at blocks.
const DISK_LINES: usize = 8334;

/// The kinds of entry the template is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    /// A directory with these permission bits.
    Dir(u32),
    /// A file with this text and these permission bits.
    File(&'static str, u32),
    /// A symbolic link to this target.
    Link(&'static str),
    /// A plain file that stands for a disk.
    Disk,
}

/// Whether every world has something of this name, before anything runs in it.
#[must_use]
pub fn is_there(path: &str) -> bool {
    let is_or_holds = |entry: &str| {
        entry
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut entries = entries::ENTRIES.iter().chain(fixtures::ENTRIES);
    let device = path.strip_prefix("/dev/");
    path.starts_with('/')
        && (entries.any(|(entry, _)| is_or_holds(entry))
            || device.is_some_and(|name| DEVICES.contains(&name)))
}

/// Whether the stand-in of this program hands all it is asked to the program itself, where
/// the machine has it.
#[must_use]
pub fn is_handed_on(program: &str) -> bool {
    tripwires::HANDED_ON.contains(&program)
}

/// Whether a world has a stand-in in the place of this program.
#[must_use]
pub fn is_stand_in(program: &str) -> bool {
    tripwires::PROGRAMS.contains(&program)
}

/// Writes the tree below `root`, which is not yet anybody's root.
pub(crate) fn build(root: &Path) -> Result<(), WorldError> {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let mut order = Order::default();
    for (path, entry) in entries::ENTRIES.iter().chain(fixtures::ENTRIES) {
        make(root, path, *entry, &mut order)?;
    }
    host_files(root)?;
    tripwires::build(root)
}

/// Completes the tree from inside, where paths are the world's.
pub(crate) fn finish(root: &Path) -> Result<(), WorldError> {
    repository::build(root)
}

fn make(root: &Path, path: &str, entry: Entry, order: &mut Order) -> Result<(), WorldError> {
    let stage = format!("make template {path}");
    let place = root.join(path.trim_start_matches('/'));
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).at(&stage)?;
    }
    match entry {
        Entry::Dir(mode) => {
            fs::create_dir_all(&place).at(&stage)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).at(&stage)
        }
        Entry::File(text, mode) => {
            fs::write(&place, text).at(&stage)?;
            let file = fs::File::open(&place).at(&stage)?;
            order.settle(&file).at(&stage)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).at(&stage)
        }
        Entry::Link(target) => symlink(target, &place).at(&stage),
        Entry::Disk => {
            fs::write(&place, "CANARY-DISK\n".repeat(DISK_LINES)).at(&stage)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o660)).at(&stage)
        }
    }
}

/// The few files that describe the host's `/usr` and must fit it.
fn host_files(root: &Path) -> Result<(), WorldError> {
    let stage = "copy host file";
    for path in [
        "etc/ld.so.cache",
        "etc/ld.so.conf",
        "etc/services",
        "etc/protocols",
    ] {
        let host = Path::new("/").join(path);
        if host.is_file() {
            fs::copy(&host, root.join(path)).at(stage)?;
        }
    }
    // Commands such as awk are links through this directory.
    let alternatives = Path::new("/etc/alternatives");
    if alternatives.is_dir() {
        let target = root.join("etc/alternatives");
        fs::create_dir_all(&target).at(stage)?;
        for entry in fs::read_dir(alternatives).at(stage)? {
            let entry = entry.at(stage)?;
            if let Ok(link) = fs::read_link(entry.path()) {
                symlink(link, target.join(entry.file_name())).at(stage)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_can_be_built_and_holds_every_canary() {
        let root = tempfile::tempdir().unwrap();
        build(root.path()).unwrap();
        let secrets = [
            "home/u/.ssh/id_rsa",
            "home/u/.aws/credentials",
            "home/u/.hermes/.env",
            "srv/data/db.sqlite",
        ];
        for (canary, secret) in CANARIES.iter().zip(secrets) {
            let text = fs::read_to_string(root.path().join(secret)).unwrap();
            assert!(text.contains(canary), "{secret} does not hold {canary}");
        }
        assert_eq!(
            fs::read_to_string(root.path().join(".trip/log")).unwrap(),
            ""
        );
    }

    #[test]
    fn what_the_tree_holds_is_there_and_nothing_beside_it() {
        for there in [
            "/etc/passwd",
            "/home",
            "/home/u/docs",
            "/dev/null",
            "/tmp/evil",
        ] {
            assert!(is_there(there), "{there}");
        }
        for not in [
            "/etc/profile.d/e.sh",
            "/tmp/gone",
            "/hom",
            "etc",
            "",
            "/dev/sda9",
        ] {
            assert!(!is_there(not), "{not}");
        }
        assert!(is_stand_in("docker") && !is_stand_in("cp"));
    }

    #[test]
    fn a_directory_is_listed_before_what_it_holds() {
        for entries in [entries::ENTRIES, fixtures::ENTRIES] {
            for (index, (path, entry)) in entries.iter().enumerate() {
                if matches!(entry, Entry::Dir(_)) {
                    let below = format!("{path}/");
                    let earlier = entries
                        .iter()
                        .take(index)
                        .find(|(other, _)| other.starts_with(&below));
                    assert!(
                        earlier.is_none(),
                        "{path} comes after {earlier:?} and would keep its default mode too late"
                    );
                }
            }
        }
    }
}
