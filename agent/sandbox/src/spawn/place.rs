//! Where in its root a command can be shown a directory.

use std::ffi::OsStr;
use std::path::{Component, Path};

/// A command has something of its own at or below these, or nothing (of the machine's
/// devices in /sys no copy can be made).
const OWN: [&str; 4] = ["dev", "proc", "run", "sys"];
/// And at these, but not below.
const OWN_ALONE: [&[&str]; 3] = [&["tmp"], &["var"], &["var", "tmp"]];
/// Top-level directories that commands are shown in any case, so that nothing can be
/// made there for a directory to lie in.
pub(super) const SYSTEM: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Why a command cannot be shown a directory of the machine at its place, if it cannot.
#[must_use]
pub fn never_shown(at: &Path) -> Option<&'static str> {
    refusal(at).or_else(|| {
        let is_link = |part: &Path| part.is_symlink();
        let is_fixed = names(at).is_some_and(|names| is_of_the_system(&names));
        (is_fixed && at.ancestors().any(is_link))
            .then_some("a link leads there, so it has to be named by the place it leads to")
    })
}

/// The same, as far as the name alone tells.
pub(super) fn refusal(at: &Path) -> Option<&'static str> {
    if !at.is_absolute() {
        return Some("the path is not absolute");
    }
    let Some(names) = names(at) else {
        return Some("the path is not plain");
    };
    let Some(first) = names.first() else {
        return Some("the whole root cannot be shown");
    };
    let has_own = OWN.iter().any(|own| OsStr::new(own) == *first)
        || OWN_ALONE.iter().any(|own| names == *own);
    has_own.then_some("commands have nothing of the machine's there")
}

/// Whether it lies where commands are shown something in any case.
pub(super) fn is_of_the_system(names: &[&OsStr]) -> bool {
    let first = names.first();
    first.is_some_and(|first| {
        *first == "etc" || SYSTEM.iter().any(|name| OsStr::new(name) == *first)
    })
}

/// The names on the way, if there is nothing else on it.
pub(super) fn names(at: &Path) -> Option<Vec<&OsStr>> {
    at.components()
        .filter(|component| *component != Component::RootDir)
        .map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_commands_own_is_never_something_else() {
        for (at, expected) in [
            ("/", true),
            ("relative", true),
            ("/home/../etc", true),
            ("/dev", true),
            ("/dev/shm/x", true),
            ("/proc/self", true),
            ("/run/user/1000", true),
            ("/sys/class", true),
            ("/tmp", true),
            ("/var", true),
            ("/var/tmp", true),
            ("/tmp/work", false),
            ("/var/tmp/work", false),
            ("/var/www", false),
            ("/home/ada", false),
            ("/etc/maven", false),
            ("/usr/local/src/work", false),
        ] {
            assert_eq!(refusal(Path::new(at)).is_some(), expected, "{at}");
        }
    }

    #[test]
    fn below_the_system_no_link_leads_to_what_is_shown() {
        let link = Path::new("/lib");
        if link.is_symlink() {
            assert!(never_shown(&link.join("x")).is_some());
        }
        assert_eq!(never_shown(Path::new("/usr/share")), None);
    }
}
