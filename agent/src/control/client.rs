//! The end of the socket that asks.

use std::{
    fmt, io,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{OtherEnd, Reply, Request, SOCKET_NAME, through_directory};

/// Why nothing came back.
#[derive(Debug)]
pub enum ControlError {
    /// No session runs on this state directory.
    NoSession(PathBuf),
    /// The conversation broke down.
    Io(io::Error),
    /// What came back is not an answer.
    Garbled(String),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSession(dir) => write!(f, "no session runs on `{}`", dir.display()),
            Self::Io(error) => write!(f, "the session does not answer: {error}"),
            Self::Garbled(text) => write!(f, "the session's answer is none: {text}"),
        }
    }
}

impl std::error::Error for ControlError {}

/// A conversation with a session that runs.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Finds the session of a state directory.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn open(state_dir: &Path) -> Result<Self, ControlError> {
        let none = || ControlError::NoSession(state_dir.to_owned());
        let connected = through_directory(state_dir, SOCKET_NAME, UnixStream::connect);
        match connected {
            Ok(stream) => Ok(Self {
                stream: BufReader::new(stream),
            }),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Err(none()),
                _ => Err(ControlError::Io(error)),
            },
        }
    }

    /// The process it runs in, by the kernel's word; `None` if it has no number here.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        let other = OtherEnd::of(self.stream.get_ref())?;
        Some(other.process?.get())
    }

    /// The same within a time: a session that is stopped or hangs takes a question and
    /// answers none.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn ask_within(&mut self, time: Duration, request: &Request) -> Result<Reply, ControlError> {
        let stream = self.stream.get_ref();
        let bound = stream
            .set_read_timeout(Some(time))
            .and_then(|()| stream.set_write_timeout(Some(time)));
        bound.map_err(ControlError::Io)?;
        let whose = self.process();
        let answer = self.ask(request).map_err(|error| match error {
            ControlError::Io(error) if is_late(&error) => {
                let whose = whose.map_or_else(
                    || "its program".to_owned(),
                    |process| format!("process {process}"),
                );
                ControlError::Io(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!(
                        "nothing came within {} s; {whose} may be stopped, or hang",
                        time.as_secs()
                    ),
                ))
            }
            error => error,
        })?;
        let stream = self.stream.get_ref();
        let unbound = stream
            .set_read_timeout(None)
            .and_then(|()| stream.set_write_timeout(None));
        unbound.map_err(ControlError::Io)?;
        Ok(answer)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// See [`ControlError`].
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ControlError> {
        let mut line = serde_json::to_string(request)
            .map_err(|error| ControlError::Garbled(error.to_string()))?;
        line.push('\n');
        let mut answer = String::new();
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .and_then(|()| self.stream.read_line(&mut answer))
            .map_err(ControlError::Io)?;
        serde_json::from_str(&answer).map_err(|error| ControlError::Garbled(error.to_string()))
    }
}

/// Whether that is what the system says of a time that is over.
fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
