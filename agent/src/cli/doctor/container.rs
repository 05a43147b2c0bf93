//! What the engine of a container has to allow: engines refuse by default part of what commands
//! are isolated with.
//!
//! Whether this is a container is not guessed from files that are found in some. What was
//! refused, and how, is what an engine's rule looks like from inside; where something else
//! refused it, the words say under what condition they hold.

use std::fs;

use hermitcrab_sandbox::spawn::Step;

/// Operation not permitted, on every processor.
const EPERM: i32 = 1;
/// Function not implemented: how some filters refuse.
const ENOSYS: i32 = 38;

/// What of an engine's rules is seen in a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// This program was started under a filter of system calls.
    Filter,
    /// `/proc` is covered in part, so the kernel gives nobody an uncovered one.
    CoveredProc,
    /// It is root without the capabilities a root has.
    Root,
}

/// What this refusal looks like, if it is like an engine's.
pub(super) fn sign(step: Step, errno: i32) -> Option<Sign> {
    let status = fs::read("/proc/self/status").unwrap_or_default();
    sign_of(step, errno, &status)
}

fn sign_of(step: Step, errno: i32, status: &[u8]) -> Option<Sign> {
    match step {
        Step::Identity => Some(Sign::Root),
        Step::MountProc if errno == EPERM => Some(Sign::CoveredProc),
        _ if matches!(errno, EPERM | ENOSYS) && is_filtered(status) => Some(Sign::Filter),
        _ => None,
    }
}

/// Whether a filter holds for the process with this status; it lays none on itself.
fn is_filtered(status: &[u8]) -> bool {
    let modes = status
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"Seccomp:"));
    modes.into_iter().any(|mode| mode.trim_ascii() == b"2")
}

/// What a person can do about it. Below a `/proc` of which nothing is covered, root of a
/// container is root of the machine, so nobody in it is to become root.
pub(super) fn advice(sign: Sign) -> String {
    let seen = match sign {
        Sign::Filter => "this program was started under a filter of system calls",
        Sign::CoveredProc => "part of /proc is covered",
        Sign::Root => "root is not given here what it needs",
    };
    let instead = match sign {
        Sign::Filter | Sign::CoveredProc => "",
        Sign::Root => {
            "who is no root needs nothing of it: where that is all that is refused, the workspace's owner runs commands, and\n  \
             setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=DIR hermitcrab doctor\n\
             tries that out, with the numbers and the home of yours; else "
        }
    };
    format!(
        "{seen}, as engines of containers have it; {instead}in a container of yours commands run with\n  \
         podman run --user 1000:1000 --security-opt no-new-privileges --security-opt 'unmask=/proc/*' …\n  \
         docker run --user 1000:1000 --security-opt no-new-privileges --security-opt systempaths=unconfined --security-opt seccomp=FILE …\n\
         docs/CONTAINERS.md has FILE, what root needs, and what each of them gives away"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: &[u8] = b"NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t2\n";
    const FILTERED: &[u8] = b"NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n";

    #[test]
    fn what_an_engine_refuses_is_told_from_what_others_do() {
        const ENOSPC: i32 = 28;
        for (step, errno, status, sign) in [
            (Step::Namespaces, EPERM, FILTERED, Some(Sign::Filter)),
            (Step::PrivateRoot, EPERM, FILTERED, Some(Sign::Filter)),
            (Step::Namespaces, ENOSYS, FILTERED, Some(Sign::Filter)),
            // Too many of them, or forbidden to all by the kernel's own settings.
            (Step::Namespaces, ENOSPC, FILTERED, None),
            (Step::Namespaces, EPERM, FREE, None),
            (Step::Namespaces, EPERM, b"", None),
            (Step::MountProc, EPERM, FREE, Some(Sign::CoveredProc)),
            (Step::MountProc, EPERM, FILTERED, Some(Sign::CoveredProc)),
            (Step::MountProc, 0, FREE, None),
            (Step::Identity, 0, FREE, Some(Sign::Root)),
        ] {
            assert_eq!(sign_of(step, errno, status), sign, "{step:?} {errno}");
        }
    }

    #[test]
    fn the_flags_are_there_whatever_was_seen() {
        for sign in [Sign::Filter, Sign::CoveredProc, Sign::Root] {
            let told = advice(sign);
            for word in [
                "unmask=/proc/",
                "systempaths=unconfined",
                "docs/CONTAINERS.md",
            ] {
                assert!(told.contains(word), "{told}");
            }
            let names_another_user = told.contains("setpriv --reuid=");
            assert_eq!(names_another_user, sign == Sign::Root, "{told}");
        }
    }
}
