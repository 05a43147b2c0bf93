//! Hearing what the hook tells. A teller that goes away or talks nonsense is
//! left; nothing of it reaches Hermes.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use serde::Deserialize;

use crate::migrate::replay::Workspace;

/// Longest line that is held; the hook keeps its own below this.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// A call, as the hook tells it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Record {
    pub(super) tool: String,
    /// JSON in a text, as it was when the call was made.
    pub(super) args: String,
    pub(super) result: String,
    #[serde(default)]
    pub(super) cut: bool,
    #[serde(default)]
    pub(super) session: String,
    #[serde(default)]
    pub(super) call: String,
    #[serde(default)]
    pub(super) cwd: String,
    pub(super) overhead_us: u64,
    /// Calls the hook could not tell so far.
    #[serde(default)]
    pub(super) forgotten: u64,
}

/// Whether Hermes has ended, what is still being heard, and what was not.
#[derive(Clone, Debug, Default)]
pub(super) struct Stopped {
    pub(super) ended: Arc<AtomicBool>,
    /// After the end: everybody who wanted to tell something has been let in.
    accepted: Arc<AtomicBool>,
    /// Those who are being heard.
    open: Arc<AtomicU64>,
    pub(super) dropped: Arc<AtomicU64>,
    /// After the end: nobody waits for what is left.
    hurried: Arc<AtomicBool>,
}

impl Stopped {
    /// Whether nothing more can arrive than what has arrived.
    pub(super) fn is_over(&self) -> bool {
        self.accepted.load(Ordering::SeqCst) && self.open.load(Ordering::SeqCst) == 0
    }

    /// What is left is left out.
    pub(super) fn hurry(&self) {
        self.hurried.store(true, Ordering::SeqCst);
    }

    /// Whether nobody waits for what is left.
    pub(super) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::SeqCst)
    }
}

/// A call, and the workspace as it was when it was told.
pub(super) struct Heard {
    pub(super) record: Record,
    pub(super) after: Workspace,
}

/// Takes connections.
pub(super) struct Listener {
    socket: PathBuf,
    stopped: Stopped,
}

impl Listener {
    pub(super) fn start(
        socket: &Path,
        workspace: &Path,
        records: SyncSender<Heard>,
    ) -> io::Result<Self> {
        let workspace = workspace.to_owned();
        let listener = UnixListener::bind(socket)?;
        let stopped = Stopped::default();
        let seen = stopped.clone();
        std::thread::spawn(move || {
            loop {
                if seen.ended.load(Ordering::SeqCst) && listener.set_nonblocking(true).is_err() {
                    break;
                }
                match listener.accept() {
                    Ok((stream, _)) => {
                        // On some systems what is let in inherits this.
                        if stream.set_nonblocking(false).is_err() {
                            continue;
                        }
                        seen.open.fetch_add(1, Ordering::SeqCst);
                        let (workspace, records, seen) =
                            (workspace.clone(), records.clone(), seen.clone());
                        std::thread::spawn(move || {
                            hear(stream, &workspace, &records, &seen);
                            seen.open.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            seen.accepted.store(true, Ordering::SeqCst);
        });
        Ok(Self {
            socket: socket.to_owned(),
            stopped,
        })
    }

    pub(super) fn stopped(&self) -> Stopped {
        self.stopped.clone()
    }

    /// Takes no more connections; those that are there are heard to their end.
    pub(super) fn stop(self) {
        self.stopped.ended.store(true, Ordering::SeqCst);
        // Only to wake who waits for a connection; it may be gone.
        let _ = UnixStream::connect(&self.socket);
    }
}

fn hear(stream: UnixStream, workspace: &Path, records: &SyncSender<Heard>, stopped: &Stopped) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let Ok(record) = serde_json::from_slice::<Record>(&line) else {
            stopped.dropped.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let heard = Heard {
            record,
            after: Workspace::read(workspace),
        };
        match records.try_send(heard) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                stopped.dropped.fetch_add(1, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}
