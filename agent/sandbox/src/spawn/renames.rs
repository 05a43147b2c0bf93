//! Gives directories of before another name, which an overlay alone does not, and git's files
//! a second one only where git takes it for one.
//!
//! What for: overlayfs answers `EXDEV` where a directory is renamed that was there
//! before, so a program that does not copy by itself fails in a view as nowhere else.
//! So the first process of a sandbox is asked about every rename ([`super::filter::watch`],
//! seccomp_unotify(2)). It looks whether a directory is meant, and has the kernel do
//! all else as always. For a directory it makes a process that is confined as the command
//! is, and that one renames, or moves what is in it ([`mover`]). Links are heard of as well,
//! and those of git go the same way.
//!
//! It must never do for a command what the command could not do: what it hears may be
//! another thing by now, so it decides nothing by it, and the mover has no more rights. What
//! programs of the command keep themselves from it does for none of them.

mod call;
mod mover;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use rustix::process::{Pid, WaitStatus};

use self::call::{Asked, EXCHANGE, End, Ends, Wish, links};
use super::filter::watch;
use crate::landlock::Fence;
use crate::sys::watched::{self, Answer, WatchedCall};
use crate::sys::{self, Forked};

/// So many directories are moved at the same time.
const MOVERS_MAX: usize = 4;
/// So many are waited with. More are refused by the kernel, as without this.
const WAITING_MAX: usize = 64;

/// Who answers about renames.
pub(super) struct Renames {
    listener: OwnedFd,
    /// To be closed around each mover.
    fence: Option<Fence>,
    /// Who moves a directory, and for which call.
    movers: Vec<(Pid, u64)>,
    /// Whether a program of the command's has closed itself in by Landlock. A mover lives
    /// behind the command's own fence, and would do for that program what it gave up.
    closed_in: bool,
    /// What is to be moved when one of them is done. It is not left unheard: a signal
    /// would interrupt it.
    waiting: VecDeque<(u64, Ends)>,
}

impl Renames {
    /// Has the renames of this process and its descendants wait for answers. From here
    /// on this process must rename nothing itself.
    ///
    /// # Errors
    /// The kernel is older than Linux 5.19, or takes no filter.
    pub(super) fn watch(fence: Option<&Fence>) -> io::Result<Self> {
        let fence = fence.map(Fence::try_clone).transpose()?;
        Ok(Self {
            listener: watched::watch_calls(&watch::program())?,
            fence,
            movers: Vec::new(),
            closed_in: false,
            waiting: VecDeque::new(),
        })
    }

    /// Readable while somebody wants to be heard.
    pub(super) fn asking(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Hears one, and answers or begins to.
    pub(super) fn hear(&mut self) {
        let call = match watched::next_call(self.listener.as_fd()) {
            Ok(Some(call)) => call,
            // Whoever waited has ended; or the next look tells.
            Ok(None) | Err(_) => return,
        };
        self.closed_in |= call.number == libc::SYS_landlock_restrict_self;
        match self.ours(&call) {
            Some(ends) if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back((call.id, ends));
                self.start_waiting();
            }
            Some(_) | None => self.answer(call.id, Answer::GoOn),
        }
    }

    /// Ends the call that this process worked for, if it was a mover.
    pub(super) fn ended(&mut self, process: Pid, status: WaitStatus) {
        let Some(at) = self.movers.iter().position(|(mover, _)| *mover == process) else {
            return;
        };
        let (_, id) = self.movers.swap_remove(at);
        // One that was killed has left some here and some there.
        let errno = status.exit_status().unwrap_or(Errno::IO.raw_os_error());
        self.answer(id, Answer::Returns(errno));
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        while self.movers.len() < MOVERS_MAX
            && let Some((id, ends)) = self.waiting.pop_front()
        {
            match self.start(&ends) {
                Ok(mover) => self.movers.push((mover, id)),
                // Without a mover the kernel refuses.
                Err(_) => self.answer(id, Answer::GoOn),
            }
        }
    }

    fn answer(&self, id: u64, answer: Answer) {
        // Whoever waited may have ended.
        let _answered = watched::answer_call(self.listener.as_fd(), id, answer);
    }

    /// What is asked for, if it is about a directory, or git links a file. Whatever cannot
    /// be found out the kernel will say.
    fn ours(&self, call: &WatchedCall) -> Option<Ends> {
        if self.closed_in {
            return None;
        }
        // Whether a link is git's is known without a look at what it names.
        let is_link = links(call.number);
        if is_link && !is_gits(call.thread) {
            return None;
        }
        let asked = Asked::read(call)?;
        // Git gives what it has just made its name that way, and looks at nothing then.
        if is_link && asked.from.is_beside(&asked.to) {
            return None;
        }
        let from = asked.from.open(call.thread).ok()?;
        let kind = kind_of(&from)?;
        let is_dir = kind == FileType::Directory;
        let is_wanted = match asked.wish {
            Wish::Rename => is_dir || asked.flags & EXCHANGE != 0,
            Wish::Link => kind == FileType::RegularFile,
        };
        if !is_wanted {
            return None;
        }
        // As for Landlock: the machine may keep one program from more than another.
        if label(&format!("/proc/{}", call.thread)) != label("/proc/self") {
            return None;
        }
        let to = asked.to.open(call.thread).ok()?;
        let exchanges_files = || kind_of(&to).is_none_or(|kind| kind != FileType::Directory);
        if asked.wish == Wish::Rename && !is_dir && exchanges_files() {
            return None;
        }
        // Else its number was somebody else's while it was looked at.
        watched::still_waits(self.listener.as_fd(), call).then_some(Ends {
            wish: asked.wish,
            from,
            to,
            flags: asked.flags,
        })
    }

    fn start(&self, ends: &Ends) -> io::Result<Pid> {
        match sys::fork_single_threaded()? {
            Forked::Parent(mover) => {
                Pid::from_raw(mover.as_raw()).ok_or_else(|| Errno::SRCH.into())
            }
            Forked::Child => mover::run(ends, self.fence.as_ref()),
        }
    }
}

/// Whether a thread belongs to git, by the name it has. Whoever takes that name gets links
/// that git would get.
fn is_gits(thread: u32) -> bool {
    std::fs::read(format!("/proc/{thread}/comm")).is_ok_and(|name| name == b"git\n")
}

/// What SELinux, AppArmor or another module of the kernel knows a process by, if there is one.
fn label(process: &str) -> Option<Vec<u8>> {
    std::fs::read(format!("{process}/attr/current")).ok()
}

fn kind_of(end: &End) -> Option<FileType> {
    let found = statat(&end.base, &end.path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}
