//! Servers that speak the protocol over HTTP, as its specification describes
//! under "Streamable HTTP".
//!
//! The official SDK keeps the sessions and this module carries its messages, with
//! the client that also asks models: to the declared address and nowhere else,
//! no proxy, no redirects, a bounded answer. Each request runs in a thread of its
//! own that ends with the call's own time at the latest.

use std::{
    collections::HashMap,
    io::{self, Read as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream, stream::BoxStream};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};
use tokio::sync::{mpsc, oneshot};
use ureq::http::{HeaderName, HeaderValue, Request, StatusCode};

use crate::text::bulk::{self, Count, Ends, VALUES_MAX};

/// How long the connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes of one answer, whatever it is.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Bytes read of a refusal.
const COMPLAINT_BYTES_MAX: usize = 4 << 10;
/// Events of one answer: each may be a request of the server's own, and what they
/// are kept in is a hundred times what they are written in.
const EVENTS_MAX: usize = 4096;
/// Bytes read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// The header a server names its session in.
const SESSION: &str = "mcp-session-id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

type Trouble = StreamableHttpError<io::Error>;

/// Carries messages to one server.
#[derive(Clone, Debug)]
pub struct Carrier {
    client: ureq::Agent,
    has_heard: Arc<AtomicBool>,
}

/// What an answer begins with.
struct Head {
    status: StatusCode,
    kind: String,
    session: Option<String>,
}

/// An answer whose body is still to come.
struct Reply {
    head: Head,
    body: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl Carrier {
    /// For calls that take so long at most.
    ///
    /// # Errors
    /// This machine trusts no certificates.
    pub fn new(url: &str, time: Duration) -> Result<Self, String> {
        let mut builder = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .timeout_global(Some(time))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None);
        if url
            .get(..8)
            .is_some_and(|start| start.eq_ignore_ascii_case("https://"))
        {
            let tls = crate::model::trusted().map_err(|error| error.to_string())?;
            builder = builder.tls_config(tls);
        }
        Ok(Self {
            client: builder.build().into(),
            has_heard: Arc::default(),
        })
    }

    /// Whether the server has answered anything at all, if only with words that
    /// are part of an error.
    pub fn has_heard(&self) -> bool {
        self.has_heard.load(Ordering::Relaxed)
    }

    async fn sent(&self, request: Request<Vec<u8>>) -> Result<Reply, Trouble> {
        let (tell, told) = oneshot::channel();
        let (give, body) = mpsc::channel(4);
        let carrier = self.clone();
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || carrier.spoken(request, tell, &give))?;
        let head = told
            .await
            .map_err(|_| io::Error::other("the connection broke"))??;
        Ok(Reply { head, body })
    }

    /// The thread's side.
    fn spoken(
        &self,
        request: Request<Vec<u8>>,
        tell: oneshot::Sender<io::Result<Head>>,
        give: &mpsc::Sender<io::Result<Vec<u8>>>,
    ) {
        let answer = match self.client.run(request) {
            Ok(answer) => answer,
            Err(error) => {
                // What went wrong with somebody who was reached may hold their words:
                // the names in a certificate are some.
                if !is_of_the_way(&error) {
                    self.has_heard.store(true, Ordering::Relaxed);
                }
                // Nobody may be waiting any more; so below.
                let _ = tell.send(Err(io::Error::other(error)));
                return;
            }
        };
        self.has_heard.store(true, Ordering::Relaxed);
        let header = |name: &str| {
            let value = answer.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let head = Head {
            status: answer.status(),
            kind: header("content-type").unwrap_or_default(),
            session: header(SESSION),
        };
        if tell.send(Ok(head)).is_err() {
            return;
        }
        let mut reader = answer.into_body().into_reader();
        let mut left = ANSWER_BYTES_MAX;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let got = match reader.read(&mut chunk) {
                Ok(0) => return,
                Ok(got) if got <= left => Ok(chunk.get(..got).unwrap_or_default().to_vec()),
                Ok(_) => Err(io::Error::other(format!(
                    "the answer is longer than {ANSWER_BYTES_MAX} bytes"
                ))),
                Err(error) => Err(error),
            };
            left = left.saturating_sub(got.as_ref().map_or(left, Vec::len));
            let is_last = got.is_err();
            if give.blocking_send(got).is_err() || is_last {
                return;
            }
        }
    }
}

impl Reply {
    async fn whole(&mut self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(chunk) = self.body.recv().await {
            all.extend(chunk?);
            if all.len() >= bytes_max {
                break;
            }
        }
        Ok(all)
    }

    fn events(mut self) -> BoxStream<'static, Result<Sse, SseError>> {
        let bytes = stream::poll_fn(move |context| self.body.poll_recv(context));
        let mut count = Count::each(Ends::BlankLine);
        let bytes = bytes.map(move |chunk| {
            let chunk = chunk?;
            match count.is_within(&chunk) {
                true => Ok(io::Cursor::new(chunk)),
                false => Err(too_many()),
            }
        });
        SseStream::from_bytes_stream(bytes).take(EVENTS_MAX).boxed()
    }
}

/// The beginning of what a server complains, cut between words: half a key, which holds no
/// blanks, could not be struck out any more.
fn complaint(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let whole = said.len() <= COMPLAINT_BYTES_MAX;
    let said = said.get(..said.floor_char_boundary(COMPLAINT_BYTES_MAX));
    let said = said.unwrap_or_default();
    match said.rfind(char::is_whitespace).filter(|_| !whole) {
        Some(at) => said.get(..at).unwrap_or_default().to_owned(),
        None if whole => said.to_owned(),
        None => String::new(),
    }
}

/// Whether nobody was reached.
fn is_of_the_way(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(of) => {
            matches!(of, ureq::Timeout::Resolve | ureq::Timeout::Connect)
        }
        ureq::Error::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::NetworkDown
        ),
        // Whatever else there is or will be.
        _ => false,
    }
}

/// Whether nobody waits for what such a message is answered with.
fn is_told_only(message: &ClientJsonRpcMessage) -> bool {
    !matches!(message, ClientJsonRpcMessage::Request(_))
}

/// A server that does not know the newest way to begin refuses it in ways of its
/// own; said as an answer, the SDK goes on with the older way.
fn unknown_beginning(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
) -> Option<StreamableHttpPostResponse> {
    let ClientJsonRpcMessage::Request(request) = message else {
        return None;
    };
    if !matches!(request.request, ClientRequest::DiscoverRequest(_)) {
        return None;
    }
    let error = match serde_json::from_slice(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("refused with status {status}"), None),
    };
    let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Some(StreamableHttpPostResponse::Json(answer, None))
}

/// What is taken apart takes a hundred times the memory, at most.
fn too_many() -> io::Error {
    io::Error::other(format!("the answer holds more than {VALUES_MAX} values"))
}

fn unexpected(what: String) -> Trouble {
    StreamableHttpError::UnexpectedServerResponse(what.into())
}

/// A request with the headers that go with all of them.
fn request(
    method: &str,
    uri: &str,
    session: Option<&str>,
    key: Option<&str>,
    headers: &HashMap<HeaderName, HeaderValue>,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, Trouble> {
    let mut building = Request::builder()
        .method(method)
        .uri(uri)
        .header("accept", format!("{JSON}, {EVENTS}"))
        .header("content-type", JSON);
    if let Some(session) = session {
        building = building.header(SESSION, session);
    }
    if let Some(key) = key {
        building = building.header("authorization", format!("Bearer {key}"));
    }
    for (name, value) in headers {
        building = building.header(name, value);
    }
    building
        .body(body)
        .map_err(|error| Trouble::Client(io::Error::other(error)))
}

impl StreamableHttpClient for Carrier {
    type Error = io::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Trouble> {
        let body = serde_json::to_vec(&message)?;
        let post = request(
            "POST",
            &uri,
            session.as_deref(),
            key.as_deref(),
            &headers,
            body,
        )?;
        let mut reply = self.sent(post).await?;
        let status = reply.head.status;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(Trouble::SessionExpired);
        }
        if !status.is_success() {
            let read_max = COMPLAINT_BYTES_MAX.saturating_add(1);
            let said = reply.whole(read_max).await.unwrap_or_default();
            let is_about_who = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if status.is_client_error()
                && !is_about_who
                && session.is_none()
                && let Some(answer) = unknown_beginning(&message, status, &said)
            {
                return Ok(answer);
            }
            return Err(unexpected(format!("status {status}: {}", complaint(&said))));
        }
        let named = reply.head.session.take();
        if reply.head.kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(reply.events(), named));
        }
        let body = reply.whole(usize::MAX).await?;
        if bulk::is_too_much(&body) {
            return Err(Trouble::Client(too_many()));
        }
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, named)),
            Err(_) if is_told_only(&message) => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(unexpected(format!(
                "the answer is not the protocol's: {error}"
            ))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Trouble> {
        let delete = request(
            "DELETE",
            &uri,
            Some(&*session),
            key.as_deref(),
            &headers,
            Vec::new(),
        )?;
        // A server may keep its sessions to itself.
        self.sent(delete).await.map(drop)
    }

    /// What a server says by itself concerns no call; nobody listens for it.
    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session: Option<Arc<str>>,
        _last: Option<String>,
        _key: Option<String>,
        _headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Trouble> {
        Err(Trouble::ServerDoesNotSupportSse)
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPLAINT_BYTES_MAX, complaint};

    #[test]
    fn no_part_of_a_word_is_told_of_a_long_complaint() {
        assert_eq!(complaint(b"no such place"), "no such place");
        let words = "x ".repeat(COMPLAINT_BYTES_MAX / 2 - 4);
        let long = format!("{words}secret-key-1234");
        assert_eq!(complaint(long.as_bytes()), words.trim_end());
        let whole = "k".repeat(COMPLAINT_BYTES_MAX);
        assert_eq!(complaint(whole.as_bytes()), whole);
        assert_eq!(complaint(format!("{whole}k").as_bytes()), "");
        // What is no text is longer in letters than it was.
        assert!(complaint(&[0xff; COMPLAINT_BYTES_MAX]).is_empty());
    }
}
