//! The program that has renames and links wait until they are answered, see
//! [`super::super::renames`], and the call by which a program closes itself in.
//!
//! It refuses nothing: what it does not name goes on to the filter of refusals, whose
//! word counts more than this one's.

use nix::libc;
use seccompiler::sock_filter;

use super::emit::{
    ARCHITECTURE, AT_ARCHITECTURE, AT_ARGUMENTS, AT_NUMBER, JUMP, JUMP_EQUAL, LOAD, RETURN,
};

use crate::sys::watched::WORD;

/// Where an argument's upper half lies. Of these calls' last ones, the flags, the kernel
/// does not look at it.
const fn upper_half(argument: u32) -> u32 {
    AT_ARGUMENTS + argument * 8 + 4
}

/// The calls that give something another name, or a second one, by their forms.
#[cfg(target_arch = "x86_64")]
const WITHOUT_FLAGS: &[i64] = &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_link];
/// The calls that give something another name, or a second one, by their forms.
#[cfg(not(target_arch = "x86_64"))]
const WITHOUT_FLAGS: &[i64] = &[libc::SYS_renameat];

/// The program.
pub(crate) fn program() -> Vec<sock_filter> {
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    // The end, to which all jumps go: ask, and let pass.
    let mut backwards = vec![
        step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(JUMP_EQUAL, WORD, 0, 1),
        step(LOAD, upper_half(1), 0, 0),
        step(JUMP, 1, 0, 0),
        step(LOAD, upper_half(4), 0, 0),
        step(JUMP_EQUAL, number(libc::SYS_landlock_restrict_self), 2, 4),
        step(JUMP_EQUAL, number(libc::SYS_renameat2), 1, 0),
        step(JUMP_EQUAL, number(libc::SYS_linkat), 2, 0),
    ];
    for call in WITHOUT_FLAGS {
        let to_the_end = u8::try_from(backwards.len())
            .unwrap_or(u8::MAX)
            .saturating_sub(1);
        backwards.push(step(JUMP_EQUAL, number(*call), to_the_end, 0));
    }
    backwards.push(step(LOAD, AT_NUMBER, 0, 0));
    let to_pass = u8::try_from(backwards.len())
        .unwrap_or(u8::MAX)
        .saturating_sub(2);
    backwards.push(step(JUMP_EQUAL, ARCHITECTURE, 0, to_pass));
    backwards.push(step(LOAD, AT_ARCHITECTURE, 0, 0));
    backwards.reverse();
    backwards
}

#[cfg(test)]
mod tests {
    use super::super::machine::{Call, run};
    use super::*;

    fn verdict(architecture: u32, number: i64, arguments: [u64; 6]) -> u32 {
        let call = Call {
            number: u32::try_from(number).unwrap(),
            architecture,
            arguments,
        };
        run(&program(), &call).0
    }

    /// A call with these flags, all other arguments full.
    fn with(at: usize, flags: u64) -> [u64; 6] {
        let mut arguments = [u64::MAX; 6];
        arguments[at] = flags;
        arguments
    }

    #[test]
    fn new_names_are_asked_about_but_those_of_the_sandbox_itself() {
        let own = u64::from(WORD) << 32;
        for (number, at) in [
            (libc::SYS_renameat2, 4),
            (libc::SYS_linkat, 4),
            (libc::SYS_landlock_restrict_self, 1),
        ] {
            for flags in [0, 1, 2, u64::from(u32::MAX), u64::from(WORD)] {
                let asked = verdict(ARCHITECTURE, number, with(at, flags));
                assert_eq!(asked, libc::SECCOMP_RET_USER_NOTIF, "{flags:#x}");
                let passed = verdict(ARCHITECTURE, number, with(at, own | flags));
                assert_eq!(passed, libc::SECCOMP_RET_ALLOW, "{flags:#x}");
            }
            // In another argument it is no word.
            let mut elsewhere = [own; 6];
            elsewhere[at] = 0;
            let asked = verdict(ARCHITECTURE, number, elsewhere);
            assert_eq!(asked, libc::SECCOMP_RET_USER_NOTIF);
        }
        for call in WITHOUT_FLAGS {
            let asked = verdict(ARCHITECTURE, *call, [own; 6]);
            assert_eq!(asked, libc::SECCOMP_RET_USER_NOTIF, "{call}");
        }
    }

    #[test]
    fn nothing_else_is_asked_about_and_nothing_refused() {
        let named = [
            libc::SYS_renameat2,
            libc::SYS_linkat,
            libc::SYS_landlock_restrict_self,
        ];
        let named: Vec<_> = named
            .into_iter()
            .chain(WITHOUT_FLAGS.iter().copied())
            .collect();
        for number in (0..600).filter(|number| !named.contains(number)) {
            let passed = verdict(ARCHITECTURE, number, [0; 6]);
            assert_eq!(passed, libc::SECCOMP_RET_ALLOW, "{number}");
        }
        for number in named {
            let passed = verdict(ARCHITECTURE ^ 1, number, [0; 6]);
            assert_eq!(passed, libc::SECCOMP_RET_ALLOW);
        }
    }
}
