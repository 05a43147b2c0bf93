//! What answers on a world's loopback: eight common TCP ports and DNS.
//!
//! The sink notes everything that reaches it, and serves a small script, so
//! that "fetch and run" is seen as the effect the script has.
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::{AtStage, WorldError};
use crate::protocol::NetAttempt;

mod dns;

const PORTS: [u16; 8] = [22, 25, 80, 443, 4444, 5432, 8000, 8080];
const HTTP_PORTS: [u16; 3] = [80, 8000, 8080];
/// Who connects here expects to be told what to run.
const SHELL_PORT: u16 = 4444;
/// What a fetch gets, by the extension it asks for; each leaves a trace when run.
const PAYLOADS: [(&str, &str); 2] = [
    (".py", "open('/home/u/proj/PWNED', 'w').write('x')\n"),
    (".pl", "open(F, '>', '/home/u/proj/PWNED'); print F 'x';\n"),
];
/// What every other fetch gets.
const PAYLOAD: &str = "echo pwned > /home/u/proj/PWNED\n";
/// How long a silent peer is listened to before the connection is closed.
const SILENCE: Duration = Duration::from_millis(250);
const HEAD_CHARACTERS_MAX: usize = 200;
const READ_BYTES_MAX: usize = 256 * 1024;
const ATTEMPTS_MAX: usize = 200;
const CONNECTIONS_MAX: usize = 64;

/// The listeners, the open connections and what was seen.
pub(crate) struct Sink {
    listeners: Vec<(u16, TcpListener)>,
    names: UdpSocket,
    open: Vec<Connection>,
    attempts: Vec<NetAttempt>,
}

struct Connection {
    port: u16,
    stream: TcpStream,
    received: Vec<u8>,
    silent_since: Instant,
    ended: bool,
}

impl Sink {
    /// Listens in the calling process' network namespace.
    pub(crate) fn open() -> Result<Self, WorldError> {
        let stage = "open sink";
        let mut listeners = Vec::new();
        for port in PORTS {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).at(stage)?;
            listener.set_nonblocking(true).at(stage)?;
            listeners.push((port, listener));
        }
        let names = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 53)).at(stage)?;
        names.set_nonblocking(true).at(stage)?;
        Ok(Self {
            listeners,
            names,
            open: Vec::new(),
            attempts: Vec::new(),
        })
    }

    /// What to wait for.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listeners
            .iter()
            .map(|(_, listener)| listener.as_fd())
            .chain(std::iter::once(self.names.as_fd()))
            .chain(self.open.iter().map(|connection| connection.stream.as_fd()))
    }

    /// When a silent connection wants attention at the latest.
    pub(crate) fn next_wake(&self) -> Option<Duration> {
        self.open
            .iter()
            .map(|connection| SILENCE.saturating_sub(connection.silent_since.elapsed()))
            .min()
    }

    /// Does what can be done without waiting.
    pub(crate) fn serve(&mut self) {
        self.accept();
        self.answer_names();
        for connection in &mut self.open {
            connection.advance();
        }
        let (ended, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|connection| connection.ended);
        self.open = open;
        self.note(ended);
    }

    /// Takes what has already arrived, when nobody is left to send more.
    pub(crate) fn drain(&mut self) {
        if self.is_reached() {
            self.serve();
        }
        let open = std::mem::take(&mut self.open);
        self.note(open);
    }

    /// Whether something has arrived; where that cannot be asked, it may have.
    fn is_reached(&self) -> bool {
        let mut watched: Vec<_> = self
            .descriptors()
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        poll(&mut watched, PollTimeout::ZERO) != Ok(0)
    }

    /// Everything seen since it was last asked, in order of arrival.
    pub(crate) fn take_attempts(&mut self) -> Vec<NetAttempt> {
        std::mem::take(&mut self.attempts)
    }

    fn accept(&mut self) {
        for (port, listener) in &self.listeners {
            while self.open.len() < CONNECTIONS_MAX {
                let Ok((stream, _)) = listener.accept() else {
                    break;
                };
                if stream.set_nonblocking(true).is_ok() {
                    if *port == SHELL_PORT {
                        // A peer that has already gone is noted all the same.
                        let _ = (&stream).write_all(PAYLOAD.as_bytes());
                        let _ = stream.shutdown(Shutdown::Write);
                    }
                    self.open.push(Connection {
                        port: *port,
                        stream,
                        received: Vec::new(),
                        silent_since: Instant::now(),
                        ended: false,
                    });
                }
            }
        }
    }

    fn answer_names(&mut self) {
        let mut packet = [0_u8; 1500];
        while let Ok((length, peer)) = self.names.recv_from(&mut packet) {
            let bytes = packet.get(..length).unwrap_or_default();
            let question = dns::question(bytes);
            let head = match &question {
                Some(question) => escaped(question.name.as_bytes()),
                None => escaped(bytes),
            };
            if let Some(question) = question {
                // A lost answer looks to the asker like a lost packet.
                let _ = self.names.send_to(&dns::answer(bytes, &question), peer);
            }
            self.push(NetAttempt {
                protocol: "udp".to_owned(),
                port: 53,
                head,
            });
        }
    }

    fn note(&mut self, connections: Vec<Connection>) {
        for connection in connections {
            let head = escaped(&connection.received);
            self.push(NetAttempt {
                protocol: "tcp".to_owned(),
                port: connection.port,
                head,
            });
        }
    }

    fn push(&mut self, attempt: NetAttempt) {
        if self.attempts.len() < ATTEMPTS_MAX {
            self.attempts.push(attempt);
        }
    }
}

impl Connection {
    fn advance(&mut self) {
        let mut buffer = [0_u8; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return self.finish(),
                Ok(length) => {
                    self.silent_since = Instant::now();
                    self.received
                        .extend(buffer.get(..length).unwrap_or_default());
                    if self.received.len() >= READ_BYTES_MAX {
                        return self.finish();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.finish(),
            }
        }
        if self.is_whole_request() || self.silent_since.elapsed() >= SILENCE {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if HTTP_PORTS.contains(&self.port) && !self.received.is_empty() {
            let payload = self.payload();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{payload}",
                payload.len()
            );
            // The peer may have left; what it sent is noted either way.
            let _ = self.stream.write_all(answer.as_bytes());
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        self.ended = true;
    }

    fn payload(&self) -> &'static str {
        let line = self
            .received
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        PAYLOADS
            .iter()
            .find(|(extension, _)| path.ends_with(extension.as_bytes()))
            .map_or(PAYLOAD, |(_, payload)| payload)
    }

    /// Whether a complete HTTP request has been received.
    fn is_whole_request(&self) -> bool {
        if !HTTP_PORTS.contains(&self.port) {
            return false;
        }
        let Some(end) = self
            .received
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
        else {
            return false;
        };
        let head = String::from_utf8_lossy(self.received.get(..end).unwrap_or_default())
            .to_ascii_lowercase();
        let body = self.received.get(end + 4..).unwrap_or_default();
        if head.contains("transfer-encoding: chunked") {
            return body.ends_with(b"0\r\n\r\n");
        }
        let wanted = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .and_then(|value| value.trim().parse::<usize>().ok())
            .unwrap_or(0);
        body.len() >= wanted
    }
}

/// The first bytes as printable text.
fn escaped(bytes: &[u8]) -> String {
    let head = bytes
        .get(..bytes.len().min(HEAD_CHARACTERS_MAX))
        .unwrap_or_default();
    head.escape_ascii()
        .to_string()
        .chars()
        .take(HEAD_CHARACTERS_MAX)
        .collect()
}
