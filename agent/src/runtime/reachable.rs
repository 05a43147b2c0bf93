//! The session's end of the way in from other terminals: the socket that answers.

use std::{
    fmt, fs, io,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use hermitcrab_core::approval::Asking;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Remote;
use crate::control::{OtherEnd, Reply, Request, SOCKET_NAME, through_directory};

/// Conversations at one time.
const CONVERSATIONS_MAX: u32 = 16;
/// The longest request.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;
/// How often a waiting thread looks whether the session is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the one that waits for somebody to come does, whom the end wakes: an editor
/// has many sessions, and nobody comes to most of them.
const PATIENCE_ALONE: Duration = Duration::from_secs(2);
/// How long the rest of a line may take.
const LINE_TIME_MAX: Duration = Duration::from_secs(2);

/// How far a request may reach.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The session.
    pub remote: Remote,
    /// The laxest mode the administrator lets anybody set.
    pub laxest: Asking,
    /// Where it works, for people.
    pub workspace: String,
    /// Whether an editor opened it.
    pub is_an_editors: bool,
}

/// The socket of a session. Dropping it closes it.
pub struct Control {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    reach: Reach,
    quit: AtomicBool,
    open: AtomicU32,
    /// Numbers for programs that grant.
    programs: AtomicU32,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Control {
    /// Opens the socket of the session that has the ledger in this directory.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open(dir: &Path, reach: Reach) -> io::Result<Self> {
        let path = dir.join(SOCKET_NAME);
        // Whoever has the ledger is the only session here, so what is there is left
        // over from one that died.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = through_directory(dir, SOCKET_NAME, UnixListener::bind)?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            reach,
            quit: AtomicBool::new(false),
            open: AtomicU32::new(0),
            programs: AtomicU32::new(0),
        });
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.accept(&listener)
            })?;
        Ok(Self {
            path,
            shared,
            thread: Some(thread),
        })
    }
}

impl Control {
    /// Where it is, and how far a mode set from elsewhere may go.
    #[must_use]
    pub fn terms(&self) -> (PathBuf, Asking) {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        (dir.to_owned(), self.shared.reach.laxest)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::SeqCst);
        // Whoever waits for somebody to come sees that somebody came; if not,
        // it looks up by itself.
        if let Some(dir) = self.path.parent() {
            let _woken = through_directory(dir, SOCKET_NAME, UnixStream::connect);
        }
        if let Some(thread) = self.thread.take() {
            // One that panicked answers nobody any more.
            let _joined = thread.join();
        }
        // The next session removes what could not be removed here.
        let _removed = fs::remove_file(&self.path);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.quit.load(Ordering::SeqCst)
    }

    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        let mut conversations: Vec<JoinHandle<()>> = Vec::new();
        while !self.is_over() {
            conversations.retain(|conversation| !conversation.is_finished());
            if !is_readable(listener, PATIENCE_ALONE) || self.is_over() {
                continue;
            }
            let Ok((stream, _)) = listener.accept() else {
                continue;
            };
            if !is_own(&stream) || self.open.load(Ordering::SeqCst) >= CONVERSATIONS_MAX {
                continue;
            }
            self.open.fetch_add(1, Ordering::SeqCst);
            let shared = Arc::clone(self);
            let conversation = std::thread::Builder::new()
                .name("control".to_owned())
                .spawn(move || {
                    shared.converse(stream);
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            match conversation {
                Ok(conversation) => conversations.push(conversation),
                Err(_) => {
                    self.open.fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
        for conversation in conversations {
            let _joined = conversation.join();
        }
    }

    /// Answers one program until it goes. What it granted and did not end is
    /// an orphan from then on.
    fn converse(&self, stream: UnixStream) {
        let program = self.programs.fetch_add(1, Ordering::SeqCst);
        let mut granter = self.reach.granter(program);
        // Whatever the conversation breaks down with, the other side is gone.
        let _over = self.talk(stream, |request| granter.answer(request));
        if !self.is_over() {
            granter.lost();
        }
    }

    fn talk(&self, stream: UnixStream, mut answer: impl FnMut(Request) -> Reply) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        // Whoever begins a line and does not end it holds nobody up.
        stream.set_read_timeout(Some(LINE_TIME_MAX))?;
        let mut lines = BufReader::new(stream);
        loop {
            while lines.buffer().is_empty() && !is_readable(lines.get_ref(), PATIENCE) {
                if self.is_over() {
                    return Ok(());
                }
            }
            let mut line = String::new();
            let read = (&mut lines).take(REQUEST_BYTES_MAX).read_line(&mut line)?;
            if read == 0 {
                return Ok(());
            }
            let reply = match serde_json::from_str(&line) {
                Ok(request) => answer(request),
                Err(error) => Reply::Refused {
                    code: "bad-arguments".to_owned(),
                    why: error.to_string(),
                },
            };
            let mut said = serde_json::to_string(&reply)?;
            said.push('\n');
            lines.get_mut().write_all(said.as_bytes())?;
        }
    }
}

fn is_readable(fd: &impl std::os::fd::AsFd, patience: Duration) -> bool {
    // One that no clock can tell is no bound.
    let timeout = Timespec::try_from(patience).ok();
    let mut wanted = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut wanted, timeout.as_ref()).is_ok_and(|count| count > 0)
}

/// Is the other end the same user? The directory lets nobody else in; this
/// holds even if somebody opened it.
fn is_own(stream: &UnixStream) -> bool {
    OtherEnd::of(stream).is_some_and(OtherEnd::is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_seconds_waits_for_all_of_them() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        for patience in [Duration::from_secs(1), Duration::from_millis(1_100)] {
            let begun = std::time::Instant::now();
            assert!(!is_readable(&one, patience));
            assert!(begun.elapsed() >= patience, "{:?}", begun.elapsed());
        }
    }
}
