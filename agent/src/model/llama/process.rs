//! A model's own process, as the program sees it: started, spoken to, ended.
//!
//! Both pipes are served by threads, so that a process that neither reads nor
//! writes cannot hold up the program; whoever waits does so with a time limit.
//! The process ends when this is dropped, whatever it is doing.

use std::{
    io::{BufReader, Read as _, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel},
    },
    time::Duration,
};

use super::{
    WORD,
    talk::{self, Order, Said},
};
use crate::model::{ModelError, wire};

/// Words of it that wait to be heard.
const WAITING_MAX: usize = 256;
/// Lines of its complaints that are shown.
const LAST_LINES: usize = 2;
/// What is kept of its complaints.
const COMPLAINT_BYTES_MAX: usize = 8 << 10;

/// The process.
pub struct Process {
    child: Child,
    orders: Sender<Order>,
    said: Receiver<Said>,
    complaints: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path) -> Result<Self, ModelError> {
        let failed =
            |error: std::io::Error| ModelError::Died(format!("it cannot be started: {error}"));
        let mut child = Command::new(program)
            .arg(WORD)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A ^C at the terminal is the program's to pass on.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (Some(mut to), Some(from), Some(mut complains)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(std::io::Error::other("it has no pipes")));
        };
        let (orders, given) = channel::<Order>();
        let (say, said) = sync_channel(WAITING_MAX);
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let kept = complaints.clone();
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        named("model orders")
            .spawn(move || {
                while let Ok(order) = given.recv() {
                    if to.write_all(&talk::line(&order)).is_err() {
                        return;
                    }
                }
            })
            .map_err(failed)?;
        named("model words")
            .spawn(move || {
                let mut from = BufReader::new(from);
                // An error is as good as an end: what follows makes no sense.
                while let Ok(Some(words)) = talk::next(&mut from) {
                    if say.send(words).is_err() {
                        return;
                    }
                }
            })
            .map_err(failed)?;
        named("model complaints")
            .spawn(move || {
                let mut chunk = [0; 1024];
                while let Ok(got @ 1..) = complains.read(&mut chunk) {
                    if let Ok(mut kept) = kept.lock() {
                        kept.extend_from_slice(chunk.get(..got).unwrap_or_default());
                        let over = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
                        kept.drain(..over);
                    }
                }
            })
            .map_err(failed)?;
        Ok(Self {
            child,
            orders,
            said,
            complaints,
        })
    }

    /// Tells it something; whether it heard shows in what it says.
    pub fn tell(&self, order: Order) {
        // A process that is gone is noticed by whoever waits for its words.
        let _ = self.orders.send(order);
    }

    /// What it says next; `None` if it says nothing in this time.
    ///
    /// # Errors
    /// It is gone.
    pub fn hear(&mut self, time: Duration) -> Result<Option<Said>, ModelError> {
        match self.said.recv_timeout(time) {
            Ok(said) => Ok(Some(said)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How much memory it has at this moment, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    }

    /// What it came to, in words.
    fn gone(&mut self) -> ModelError {
        let how = match self.end() {
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("it ended with status {code}"),
                (None, Some(signal)) => format!("signal {signal} ended it"),
                (None, None) => "it ended".to_owned(),
            },
            None => "it cannot be waited for".to_owned(),
        };
        match self.last_complaint() {
            Some(words) => ModelError::Died(format!("{how}, and said: {words}")),
            None => ModelError::Died(how),
        }
    }

    /// What it complained about last, on one line: why, and that it gave up.
    #[must_use]
    pub fn last_complaint(&self) -> Option<String> {
        let kept = self.complaints.lock().ok()?;
        let text = String::from_utf8_lossy(&kept);
        let mut lines: Vec<&str> = text
            .lines()
            .rev()
            .filter(|line| !line.trim().is_empty())
            .take(LAST_LINES)
            .collect();
        lines.reverse();
        (!lines.is_empty()).then(|| wire::one_line(&lines.join("; ")))
    }

    /// Ends it now; how it had ended, if it had.
    fn end(&mut self) -> Option<ExitStatus> {
        // One that has ended by itself cannot be killed any more.
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.child.id())
            .finish_non_exhaustive()
    }
}
