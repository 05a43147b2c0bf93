//! The process from which the observers grow.
//!
//! A fork costs what the forking process weighs, and a zygote with a warm
//! interpreter weighs much: an observer needs nothing of it. So a stem is planted
//! before the subject is loaded, stays small, and forks one observer at a time, which
//! watches world after world until the zygote lets it go; only the interior is
//! forked from the zygote itself. The stem never runs a case and never outlives the
//! zygote, whose death kills it.
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::{AtStage, WorldError};
use crate::fork::{Forked, Forker};
use crate::observer;
use crate::protocol::{read_frame, write_frame};
use crate::rights;
use crate::usage::cpu_us;

/// What the zygote asks of the stem. The observer's end of its socket to the zygote follows.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted;

/// What the stem says of one observer.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// It was made, under this process number of the zygote's namespace.
    Made { observer: i32 },
    /// It could not be made.
    NotMade { message: String },
    /// It has ended; the processor time that it and the stem have used for it, in all.
    Gone { cpu_us: u64 },
}

/// The zygote's side of the stem.
pub(crate) struct Stem {
    socket: UnixStream,
}

impl Stem {
    /// Forks the stem. Call it early: it keeps whatever memory the caller has.
    ///
    /// # Errors
    /// The kernel refuses a process or a socket.
    pub(crate) fn plant(forker: &dyn Forker) -> Result<Self, WorldError> {
        let (socket, far) = UnixStream::pair().at("make the stem's socket")?;
        let zygote = nix::unistd::getpid();
        match forker.fork().at("fork stem")? {
            Forked::Parent { .. } => Ok(Self { socket }),
            Forked::Child => {
                drop(socket);
                let served = crate::fork::die_with(zygote).and_then(|()| serve(far, forker));
                forker.exit(if served.is_ok() { 0 } else { 70 })
            }
        }
    }

    /// Lets an observer grow; its process number, and the socket to it.
    ///
    /// # Errors
    /// The stem is gone or the kernel refuses a process.
    pub(crate) fn grow(&mut self) -> Result<(Pid, UnixStream), WorldError> {
        let stage = "ask the stem for an observer";
        let (socket, far) = UnixStream::pair().at("make the observer's socket")?;
        write_frame(&mut self.socket, &Wanted).at(stage)?;
        rights::send(&self.socket, &[far.as_fd()]).at(stage)?;
        match read_frame(&mut self.socket).at(stage)? {
            Some(News::Made { observer }) => Ok((Pid::from_raw(observer), socket)),
            Some(News::NotMade { message }) => Err(WorldError::new("fork observer", message)),
            Some(News::Gone { .. }) | None => Err(WorldError::new(stage, "the stem is gone")),
        }
    }

    /// Waits for the observer's end; the processor time spent on all of its life, in
    /// microseconds.
    ///
    /// # Errors
    /// The stem is gone.
    pub(crate) fn reaped(&mut self) -> Result<u64, WorldError> {
        let stage = "wait for observer";
        match read_frame(&mut self.socket).at(stage)? {
            Some(News::Gone { cpu_us }) => Ok(cpu_us),
            Some(News::Made { .. } | News::NotMade { .. }) | None => {
                Err(WorldError::new(stage, "the stem is gone"))
            }
        }
    }
}

/// Makes observers until the zygote goes away.
fn serve(mut socket: UnixStream, forker: &dyn Forker) -> Result<(), WorldError> {
    let stem = nix::unistd::getpid();
    while let Some(Wanted) = read_frame(&mut socket).at("hear the zygote")? {
        let before = cpu_us()?;
        let [zygote] = rights::receive(socket.as_fd()).at("hear the zygote")?;
        let news = match forker.fork() {
            Ok(Forked::Child) => {
                drop(socket);
                let told = observer::observe(stem, UnixStream::from(zygote), forker);
                forker.exit(if told.is_ok() { 0 } else { 70 })
            }
            Ok(Forked::Parent { child }) => News::Made { observer: child },
            Err(error) => News::NotMade {
                message: error.to_string(),
            },
        };
        // Held open here, it would keep the zygote from noticing that the observer died.
        drop(zygote);
        write_frame(&mut socket, &news).at("tell of an observer")?;
        if let News::Made { observer } = news {
            waitpid(Pid::from_raw(observer), None).at("wait for observer")?;
            let gone = News::Gone {
                cpu_us: cpu_us()?.saturating_sub(before),
            };
            write_frame(&mut socket, &gone).at("tell of an observer")?;
        }
    }
    Ok(())
}
