//! Whose a group is, by its name.
//!
//! Containers may share one hierarchy and number their processes each for itself, so a
//! number alone is no process: neither are names unlike by it, nor can anybody else tell by
//! it whether a maker is gone.

use std::fmt::Display;
use std::path::Path;

/// The prefix of every group made here.
const PREFIX: &str = "hermitcrab-";
/// A group whose maker is gone is swept after this many seconds: long enough
/// that nobody is between making and filling it.
const STALE_S: i64 = 60;
/// One whose maker cannot be looked for from here: no command waits so long for its start.
const STALE_ELSEWHERE_S: i64 = 24 * 60 * 60;

/// A name for a group of this process.
pub(in crate::cgroup) fn name(what: impl Display) -> String {
    let (maker, namespace) = (std::process::id(), namespace());
    format!("{PREFIX}{maker}-{what}-{namespace}")
}

/// Whether a group of this name, made so many seconds ago, is nobody's any more, if it is
/// empty.
pub(super) fn is_left(name: &str, age_s: i64) -> bool {
    let lives = |pid: &str| Path::new("/proc").join(pid).exists();
    is_left_of(name, age_s, &namespace(), lives)
}

fn is_left_of(name: &str, age_s: i64, namespace: &str, lives: impl Fn(&str) -> bool) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let mut parts = rest.split('-');
    let (maker, _what, of) = (parts.next(), parts.next(), parts.next());
    match (maker, of) {
        (Some(maker), Some(of)) if of == namespace => age_s > STALE_S && !lives(maker),
        (Some(_), Some(_)) => age_s > STALE_ELSEWHERE_S,
        // As earlier versions named theirs.
        (Some(maker), None) => age_s > STALE_S && !lives(maker),
        (None, _) => false,
    }
}

/// The number of this process namespace, which is no other's on this machine while it lasts.
fn namespace() -> String {
    let found = rustix::fs::stat("/proc/self/ns/pid");
    found.map_or_else(|_| "unknown".to_owned(), |stat| stat.st_ino.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_left_when_its_maker_is_gone_and_one_of_elsewhere_after_a_day() {
        let is_left = |name: &str, age_s| is_left_of(name, age_s, "42", |pid| pid == "7");
        for (name, left_after) in [
            ("hermitcrab-7-1-42", None),
            ("hermitcrab-7-1", None),
            ("hermitcrab-7-itself-42", None),
            ("hermitcrab-8-1-42", Some(STALE_S)),
            ("hermitcrab-8-1", Some(STALE_S)),
            ("hermitcrab-7-1-43", Some(STALE_ELSEWHERE_S)),
            ("hermitcrab-8-itself-43", Some(STALE_ELSEWHERE_S)),
            ("hermitcrab-8-1-unknown", Some(STALE_ELSEWHERE_S)),
            ("somebody-8-1-42", None),
        ] {
            let after = left_after.unwrap_or(i64::MAX);
            assert!(!is_left(name, after), "{name}");
            assert_eq!(
                is_left(name, after.saturating_add(1)),
                left_after.is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_group_of_this_process_is_not_left_whatever_its_age() {
        let name = name(3);
        assert!(!is_left(&name, i64::MAX));
        let begins = format!("hermitcrab-{}-3-", std::process::id());
        assert!(name.starts_with(&begins), "{name}");
    }
}
