//! The proxy: takes connections from inside, makes the permitted ones outside.
//!
//! It runs in the agent, on threads of its own, one for each connection and
//! direction, all bounded. When it is dropped every connection it made ends:
//! a capability that is taken back has no connection left.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::address::{is_own, is_public};
use super::allow::{AllowList, Attempt, Peer, Target, Verdict};
use super::http::{self, Request};
use super::notice::Notice;
use super::socks::{self, Reply};

/// How many connections may be open at once.
const CONNECTIONS_MAX: usize = 64;
/// How many attempts are remembered.
const ATTEMPTS_MAX: usize = 1024;
/// How long a client may take to say where it wants to go.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many addresses of one name are tried.
const ADDRESSES_MAX: usize = 4;

/// Looks names up, outside the sandbox.
pub trait Resolve: Send + Sync {
    /// The addresses of a name. Asked once for each connection, and the answer
    /// is what is connected to: a second answer cannot differ.
    ///
    /// # Errors
    /// The name has none, or nobody can say.
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0)
            .to_socket_addrs()?
            .map(|found| found.ip())
            .collect())
    }
}

/// A connection of a client to a peer, known to the proxy until it is dropped.
struct Open<'a> {
    shared: &'a Shared,
    ends: Arc<[TcpStream; 2]>,
}

impl Open<'_> {
    fn peer(&self) -> &TcpStream {
        let [_, peer] = self.ends.as_ref();
        peer
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.open.retain(|other| !Arc::ptr_eq(other, &self.ends));
    }
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    stop: Option<OwnedFd>,
    listening: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

struct Shared {
    allow: AllowList,
    notice: Notice,
    resolver: Box<dyn Resolve>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("allow", &self.allow)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    attempts: Vec<Attempt>,
    /// Both ends of each open connection, to end them with.
    open: Vec<Arc<[TcpStream; 2]>>,
    busy: usize,
    stopped: bool,
}

impl Proxy {
    /// Answers the socket `listener`, which listens inside a sandbox.
    ///
    /// # Errors
    /// No thread or pipe can be made.
    pub(crate) fn start(
        listener: OwnedFd,
        (allow, notice): (AllowList, Notice),
        resolver: Box<dyn Resolve>,
    ) -> io::Result<Self> {
        let listener = TcpListener::from(listener);
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let shared = Arc::new(Shared {
            allow,
            notice,
            resolver,
            state: Mutex::default(),
        });
        let for_thread = Arc::clone(&shared);
        let listening = std::thread::Builder::new()
            .name("net-proxy".to_owned())
            .spawn(move || take(&listener, &stopped, &for_thread))?;
        Ok(Self {
            stop: Some(stop),
            listening: Some(listening),
            shared,
        })
    }

    /// What was tried so far, but for the first `known`.
    #[must_use]
    pub fn tried_since(&self, known: usize) -> Vec<Attempt> {
        let state = self.shared.lock();
        state.attempts.get(known..).unwrap_or_default().to_vec()
    }

    /// Ends every connection and says what was tried.
    #[must_use]
    pub fn finish(mut self) -> Vec<Attempt> {
        self.end();
        std::mem::take(&mut self.shared.lock().attempts)
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(listening) = self.listening.take() {
            let _ended = listening.join();
        }
        let mut state = self.shared.lock();
        state.stopped = true;
        for connection in state.open.drain(..) {
            for stream in connection.iter() {
                // Fails for one that has ended already.
                let _ended = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing is left half-changed in there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, target: String, verdict: Verdict) {
        let mut state = self.lock();
        if state.attempts.len() < ATTEMPTS_MAX {
            state.attempts.push(Attempt { target, verdict });
        }
    }

    /// Connects `client` to `target` if it is listed, and says why not.
    fn reach(&self, client: &TcpStream, target: &Target) -> Result<Open<'_>, Verdict> {
        let result = self
            .connect(target)
            .and_then(|peer| self.hold(client, peer).ok_or(Verdict::Unreachable));
        self.note(
            target.to_string(),
            match &result {
                Ok(_) => Verdict::Connected,
                Err(verdict) => *verdict,
            },
        );
        result
    }

    /// A connection that ends with the proxy, before a byte goes over it. To find
    /// a name and connect takes time, and the proxy may have ended meanwhile.
    fn hold(&self, client: &TcpStream, peer: TcpStream) -> Option<Open<'_>> {
        let ends = Arc::new([client.try_clone().ok()?, peer]);
        let mut state = self.lock();
        if state.stopped {
            return None;
        }
        state.open.push(Arc::clone(&ends));
        drop(state);
        Some(Open { shared: self, ends })
    }

    fn connect(&self, target: &Target) -> Result<TcpStream, Verdict> {
        if !self.allow.lists(target) {
            return Err(Verdict::NotListed);
        }
        if self.lock().stopped {
            return Err(Verdict::Unreachable);
        }
        // To ask for a name is to hear from outside already.
        if !self.notice.is_taken() {
            return Err(Verdict::Unnoticed);
        }
        let addresses = match &target.host {
            // Listed as an address, so meant as one.
            Peer::Address(address) => vec![*address],
            Peer::Named(name) => {
                let found = self
                    .resolver
                    .resolve(name.as_str())
                    .map_err(|_| Verdict::Unreachable)?;
                // One bad answer spoils the rest: an honest name has none. An own address
                // may be a public one, behind which this machine would meet itself.
                let is_meant = |address| is_public(address) && !is_own(address);
                if !found.iter().copied().all(is_meant) {
                    return Err(Verdict::NotPublic);
                }
                let is_excluded = |address| self.allow.excludes(address, target.port);
                if found.iter().copied().any(is_excluded) {
                    return Err(Verdict::Ruled);
                }
                found
            }
        };
        addresses
            .into_iter()
            .take(ADDRESSES_MAX)
            .find_map(|address| {
                let address = SocketAddr::new(address, target.port);
                TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok()
            })
            .ok_or(Verdict::Unreachable)
    }
}

/// Takes connections until the writing end of `stopped` is closed.
fn take(listener: &TcpListener, stopped: &OwnedFd, shared: &Arc<Shared>) {
    loop {
        let mut wanted = [
            PollFd::new(stopped, PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        match poll(&mut wanted, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let [stop, incoming] = wanted.map(|fd| !fd.revents().is_empty());
        if stop {
            return;
        }
        if !incoming {
            continue;
        }
        let Ok((client, _)) = listener.accept() else {
            continue;
        };
        {
            let mut state = shared.lock();
            if state.busy >= CONNECTIONS_MAX {
                // Dropped: the client sees a closed connection.
                continue;
            }
            state.busy = state.busy.saturating_add(1);
        }
        let for_thread = Arc::clone(shared);
        let serving = std::thread::Builder::new()
            .name("net-proxy-client".to_owned())
            .spawn(move || {
                // A client that goes away harms nobody.
                let _served = serve(client, &for_thread);
                let mut state = for_thread.lock();
                state.busy = state.busy.saturating_sub(1);
            });
        if serving.is_err() {
            let mut state = shared.lock();
            state.busy = state.busy.saturating_sub(1);
        }
    }
}

fn serve(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    client.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let mut first = [0_u8; 1];
    if client.peek(&mut first)? == 0 {
        return Ok(());
    }
    let open = if first == [socks::VERSION] {
        serve_socks(&mut client, shared)?
    } else {
        serve_http(&mut client, shared)?
    };
    match open {
        Some(open) => pass(&open),
        None => Ok(()),
    }
}

fn serve_socks<'a>(client: &mut TcpStream, shared: &'a Shared) -> io::Result<Option<Open<'a>>> {
    let Some(target) = socks::read(client)? else {
        shared.note(String::new(), Verdict::Unreadable);
        socks::answer(client, Reply::NotSupported)?;
        return Ok(None);
    };
    match shared.reach(client, &target) {
        Ok(open) => {
            socks::answer(client, Reply::Connected)?;
            Ok(Some(open))
        }
        Err(verdict) => {
            let reply = match verdict {
                Verdict::Unreachable | Verdict::Unnoticed | Verdict::Connected => {
                    Reply::Unreachable
                }
                Verdict::NotListed | Verdict::NotPublic | Verdict::Ruled | Verdict::Unreadable => {
                    Reply::NotAllowed
                }
            };
            socks::answer(client, reply)?;
            Ok(None)
        }
    }
}

fn serve_http<'a>(client: &mut TcpStream, shared: &'a Shared) -> io::Result<Option<Open<'a>>> {
    let (head, rest) = read_head(client)?;
    let Some(request) = http::read(&head) else {
        shared.note(String::new(), Verdict::Unreadable);
        client.write_all(&http::refusal(
            "400 Bad Request",
            "the request is not understood",
        ))?;
        return Ok(None);
    };
    let (Request::Tunnel(target) | Request::Plain(target, _)) = &request;
    let open = match shared.reach(client, target) {
        Ok(open) => open,
        Err(verdict) => {
            client.write_all(&answer_to(target, verdict))?;
            return Ok(None);
        }
    };
    let mut peer = open.peer();
    match &request {
        Request::Tunnel(_) => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        Request::Plain(_, head) => peer.write_all(head)?,
    }
    peer.write_all(&rest)?;
    Ok(Some(open))
}

fn answer_to(target: &Target, verdict: Verdict) -> Vec<u8> {
    let (status, why) = match verdict {
        Verdict::NotListed | Verdict::Unreadable => (
            "403 Forbidden",
            format!("no capability for `{target}` is held; ask for net.connect"),
        ),
        Verdict::NotPublic => (
            "403 Forbidden",
            format!(
                "`{target}` leads to a private address or this machine, which a name cannot stand for"
            ),
        ),
        Verdict::Ruled => (
            "403 Forbidden",
            format!("`{target}` leads to an address that a rule of the user's is about"),
        ),
        Verdict::Unnoticed => (
            "503 Service Unavailable",
            format!("that `{target}` is reached could not be put on record, so it is not"),
        ),
        Verdict::Unreachable | Verdict::Connected => {
            ("502 Bad Gateway", format!("`{target}` does not answer"))
        }
    };
    http::refusal(status, &why)
}

/// The head of a request, and what came after it.
fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        if let Some(end) = http::head_end(&bytes) {
            let rest = bytes.split_off(end);
            return Ok((bytes, rest));
        }
        if bytes.len() > http::HEAD_BYTES_MAX {
            return Err(io::Error::other("the head is too long"));
        }
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// Passes bytes both ways until both sides have ended.
fn pass(open: &Open<'_>) -> io::Result<()> {
    let [client, peer] = open.ends.as_ref();
    for stream in [client, peer] {
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| copy(client, peer));
        copy(peer, client);
    });
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    // A broken connection ends as a closed one.
    let _copied = io::copy(&mut from, &mut to);
    let _ended = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests;
