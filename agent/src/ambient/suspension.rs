//! Being suspended by ^Z and going on, and whether that is to be had here.

use std::io;

use crate::cancel::Cancel;

/// A switch that is thrown whenever the program goes on after it was suspended, as by ^Z in
/// a shell, which may have used its terminal meanwhile.
///
/// # Errors
/// The system does not tell.
pub fn on_going_on() -> io::Result<Cancel> {
    let switch = Cancel::default();
    signal_hook::flag::register(signal_hook::consts::SIGCONT, switch.flag())?;
    Ok(switch)
}

/// Whether nothing here would have a suspended program go on: no process of its terminal's
/// looks after it, as a shell does for what it starts, be it through a script. The kernel
/// suspends none then (setpgid(2), orphaned process groups). In doubt something does.
#[must_use]
pub fn is_nobodys_job() -> bool {
    // What started it may have been started for the same job, and so on.
    const ABOVE_MAX: usize = 64;
    let Some(own) = Standing::of("self").filter(|own| own.session != ELSEWHERE) else {
        return false;
    };
    let mut above = own.above;
    for _ in 0..ABOVE_MAX {
        if above == ELSEWHERE {
            return true;
        }
        match Standing::of(&above.to_string()) {
            Some(one) if one.session != own.session => return true,
            Some(one) if one.job == own.job => above = one.above,
            Some(_) | None => return false,
        }
    }
    false
}

/// What the kernel calls a process that is in no process namespace of ours, as the shell is
/// that started a container (pid_namespaces(7)).
const ELSEWHERE: u32 = 0;

/// Whose a process is, in numbers of processes. Calls that give these numbers as ones above
/// zero have no word for [`ELSEWHERE`]; the kernel's files do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    above: u32,
    job: u32,
    session: u32,
}

impl Standing {
    fn of(process: &str) -> Option<Self> {
        Self::read(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// The fields of proc_pid_stat(5) that come after the name, which may be any words.
    fn read(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(1).map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Self {
            above: next()?,
            job: next()?,
            session: next()?,
        })
    }
}

/// From now on ^Z has this done, by a thread, and does not suspend the program.
///
/// # Errors
/// The system does not let go of the signal.
pub fn on_suspend(told: impl Fn() + Send + 'static) -> io::Result<()> {
    use std::io::Read as _;
    let (mut comes, goes) = std::os::unix::net::UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTSTP, goes)?;
    let tells = move || {
        let mut bytes = [0_u8; 16];
        while comes.read(&mut bytes).is_ok_and(|read| read > 0) {
            told();
        }
    };
    std::thread::Builder::new()
        .name("suspends".to_owned())
        .spawn(tells)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_process_is_is_read_behind_whatever_it_is_called() {
        let of = |above, job, session| Standing {
            above,
            job,
            session,
        };
        for (stat, read) in [
            ("7 (sh) S 6 5 4 34816 7 0", Some(of(6, 5, 4))),
            ("7 (a) S 1 2 3 (b) R 6 5 4 0", Some(of(6, 5, 4))),
            ("7 (sh) S 0 0 0 0 -1", Some(of(0, 0, 0))),
            ("7 (sh) S 6 5", None),
            ("7 (sh) S 6 -5 4", None),
            ("7 sh S 6 5 4", None),
            ("", None),
        ] {
            assert_eq!(Standing::read(stat), read, "{stat}");
        }
    }
}
