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
    use rustix::process::{Pid, getpgid, getppid, getsid};
    // What started it may have been started for the same job, and so on.
    const ABOVE_MAX: usize = 64;
    let above_of = |pid: Pid| -> Option<Option<Pid>> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        Some(Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?))
    };
    let (Ok(session), Ok(job)) = (getsid(None), getpgid(None)) else {
        return false;
    };
    let mut above = getppid();
    for _ in 0..ABOVE_MAX {
        let Some(pid) = above else { return true };
        match (getsid(Some(pid)), getpgid(Some(pid))) {
            (Ok(of), _) if of != session => return true,
            (Ok(_), Ok(of)) if of == job => match above_of(pid) {
                Some(next) => above = next,
                None => return false,
            },
            (Ok(_) | Err(_), Ok(_) | Err(_)) => return false,
        }
    }
    false
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
