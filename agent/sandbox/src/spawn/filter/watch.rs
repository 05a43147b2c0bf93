//! The program that has renames wait until they are answered, see [`super::super::renames`].
//!
//! It refuses nothing: what it does not name goes on to the filter of refusals, whose
//! word counts more than this one's.

use nix::libc;
use seccompiler::sock_filter;

use super::emit::{
    ARCHITECTURE, AT_ARCHITECTURE, AT_ARGUMENTS, AT_NUMBER, JUMP_EQUAL, LOAD, RETURN,
};

/// The word by which the sandbox's own renames pass. A command may say it too: all it
/// gets is the kernel's answer.
pub(crate) const WORD: u32 = 0x7265_6e61;

/// The half of renameat2's flags, its last argument, that the kernel does not look at.
const AT_WORD: u32 = AT_ARGUMENTS + 4 * 8 + 4;

/// The calls that give something another name, by their forms.
#[cfg(target_arch = "x86_64")]
const WITHOUT_FLAGS: &[i64] = &[libc::SYS_rename, libc::SYS_renameat];
/// The calls that give something another name, by their forms.
#[cfg(not(target_arch = "x86_64"))]
const WITHOUT_FLAGS: &[i64] = &[libc::SYS_renameat];

/// The program.
pub(crate) fn renames() -> Vec<sock_filter> {
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    // The end, to which all jumps go: let pass, and ask.
    let mut backwards = vec![
        step(RETURN, libc::SECCOMP_RET_USER_NOTIF, 0, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        step(JUMP_EQUAL, WORD, 0, 1),
        step(LOAD, AT_WORD, 0, 0),
        step(JUMP_EQUAL, number(libc::SYS_renameat2), 0, 2),
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

    fn verdict(architecture: u32, number: i64, flags: u64) -> u32 {
        run(
            &renames(),
            &Call {
                number: u32::try_from(number).unwrap(),
                architecture,
                arguments: [0, 0, 0, 0, flags, 0],
            },
        )
        .0
    }

    #[test]
    fn renames_are_asked_about_but_those_of_the_sandbox_itself() {
        let own = u64::from(WORD) << 32;
        for flags in [0, 1, 2, u64::from(u32::MAX), u64::from(WORD)] {
            let asked = verdict(ARCHITECTURE, libc::SYS_renameat2, flags);
            assert_eq!(asked, libc::SECCOMP_RET_USER_NOTIF, "{flags:#x}");
            let passed = verdict(ARCHITECTURE, libc::SYS_renameat2, own | flags & 0xffff_ffff);
            assert_eq!(passed, libc::SECCOMP_RET_ALLOW, "{flags:#x}");
            // Of the other forms that argument is no argument.
            for call in WITHOUT_FLAGS {
                let asked = verdict(ARCHITECTURE, *call, own);
                assert_eq!(asked, libc::SECCOMP_RET_USER_NOTIF, "{call}");
            }
        }
    }

    #[test]
    fn nothing_else_is_asked_about_and_nothing_refused() {
        let named = [libc::SYS_renameat2]
            .into_iter()
            .chain(WITHOUT_FLAGS.iter().copied());
        let named: Vec<_> = named.collect();
        for number in (0..600).filter(|number| !named.contains(number)) {
            assert_eq!(
                verdict(ARCHITECTURE, number, 0),
                libc::SECCOMP_RET_ALLOW,
                "{number}"
            );
        }
        for number in named {
            assert_eq!(
                verdict(ARCHITECTURE ^ 1, number, 0),
                libc::SECCOMP_RET_ALLOW
            );
        }
    }
}
