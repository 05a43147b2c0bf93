//! One request and its answer, in a thread of its own, within bounds.

use std::{
    io::Read as _,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::{Duration, Instant},
};

use crate::{
    cancel::Either,
    model::{
        ModelError, ModelReply, ReplyLimits, full::full, repeats::Repeats, stream::Pieces, wire,
    },
};

/// How often the switches are looked at.
const TICK: Duration = Duration::from_millis(40);
/// How many times as long as an answer the events may be that it comes in: backends wrap
/// a word, or a letter, in some three hundred bytes.
const WRAPPED: u64 = 64;
/// Bytes read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Bytes read of a refusal.
const COMPLAINT_BYTES_MAX: usize = 64 << 10;

/// What is sent, and where.
#[derive(Clone)]
pub struct Post {
    pub client: ureq::Agent,
    pub address: String,
    pub key: Option<String>,
    pub body: String,
}

/// When waiting ends.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Option<Instant>,
    all: Duration,
}

impl Deadline {
    pub fn after(all: Duration) -> Self {
        Self {
            at: Instant::now().checked_add(all),
            all,
        }
    }

    /// What is left of it.
    pub fn left(self) -> Result<Duration, ModelError> {
        let left = self
            .at
            .map_or(self.all, |at| at.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(ModelError::TimedOut(self.all));
        }
        Ok(left)
    }

    /// Waits, unless there is less time left or a switch is thrown.
    pub fn sleep(self, time: Duration, off: Either<'_>) -> Result<(), ModelError> {
        let until = Instant::now().checked_add(time);
        while until.is_some_and(|until| Instant::now() < until) {
            self.left()?;
            if off.is_thrown() {
                return Err(ModelError::Cancelled);
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub struct Failed {
    pub error: ModelError,
    /// How long the backend asked to be left alone.
    pub again_after: Option<Duration>,
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            again_after: None,
        }
    }
}

/// What the thread has to say.
enum Said {
    /// The answer begins.
    Head(Head),
    /// More of its body.
    Bytes(Vec<u8>),
    /// It is over, well or not.
    End(Result<(), ModelError>),
}

/// How an answer begins.
#[derive(Clone, Copy, Default)]
struct Head {
    status: u16,
    /// It comes in events.
    is_streamed: bool,
    again_after: Option<Duration>,
}

/// Sends it and takes the answer in.
pub fn run(
    post: &Post,
    limits: ReplyLimits,
    deadline: Deadline,
    off: Either<'_>,
    heard: &mut dyn FnMut(&str),
) -> Result<ModelReply, Failed> {
    let left = deadline.left()?;
    let (say, said) = sync_channel(8);
    let post = post.clone();
    std::thread::Builder::new()
        .name("model".to_owned())
        .spawn(move || {
            let end = speak(&post, left, &say);
            // Nobody may be listening any more.
            let _ = say.send(Said::End(end));
        })
        .map_err(|error| ModelError::Unreachable(error.to_string()))?;
    listen(&said, limits, deadline, off, heard)
}

fn listen(
    said: &Receiver<Said>,
    limits: ReplyLimits,
    deadline: Deadline,
    off: Either<'_>,
    heard: &mut dyn FnMut(&str),
) -> Result<ModelReply, Failed> {
    let mut head = Head::default();
    let mut body = Vec::new();
    let mut taken: u64 = 0;
    let mut pieces = Pieces::default();
    let (mut words, mut arguments) = (Repeats::default(), Repeats::default());
    loop {
        if off.is_thrown() {
            return Err(ModelError::Cancelled.into());
        }
        let next = match said.recv_timeout(deadline.left()?.min(TICK)) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ModelError::Unreachable("the connection broke".to_owned()).into());
            }
        };
        let Head {
            status,
            is_streamed,
            ..
        } = head;
        match next {
            Said::Head(came) => head = came,
            Said::Bytes(bytes) => {
                taken = taken.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                let sent_max = match is_streamed {
                    true => limits.bytes_max.saturating_mul(WRAPPED),
                    false => limits.bytes_max,
                };
                if taken > sent_max {
                    return Err(ModelError::TooLong(limits.bytes_max).into());
                }
                if is_streamed {
                    pieces.take(&bytes, heard)?;
                    if u64::try_from(pieces.bytes()).unwrap_or(u64::MAX) > limits.bytes_max {
                        return Err(ModelError::TooLong(limits.bytes_max).into());
                    }
                    if words.notices(pieces.text()) || arguments.notices(pieces.last_arguments()) {
                        return Err(ModelError::Repeats.into());
                    }
                    if pieces.is_done() {
                        return Ok(pieces.whole()?);
                    }
                } else if status == 200 {
                    body.extend_from_slice(&bytes);
                } else {
                    let room = COMPLAINT_BYTES_MAX.saturating_sub(body.len());
                    body.extend(bytes.into_iter().take(room));
                }
            }
            Said::End(Err(ModelError::TimedOut(_))) => {
                return Err(ModelError::TimedOut(deadline.all).into());
            }
            Said::End(Err(error)) if status == 200 || status == 0 => return Err(error.into()),
            Said::End(_) => break,
        }
    }
    if head.status != 200 {
        let words = String::from_utf8_lossy(&body);
        let refused = || ModelError::Refused(head.status, wire::complaint(&words));
        return Err(Failed {
            error: full(head.status, &words).unwrap_or_else(refused),
            again_after: head.again_after,
        });
    }
    if head.is_streamed {
        return Ok(pieces.whole()?);
    }
    let text = String::from_utf8(body)
        .map_err(|_| ModelError::Unreadable("it is not UTF-8".to_owned()))?;
    let reply = wire::reply(&text)?;
    let goes_round = words.notices(&reply.text)
        || reply
            .calls
            .iter()
            .any(|call| Repeats::default().notices(&call.arguments));
    if goes_round {
        return Err(ModelError::Repeats.into());
    }
    Ok(reply)
}

/// The thread's side.
fn speak(post: &Post, time: Duration, say: &SyncSender<Said>) -> Result<(), ModelError> {
    let mut request = post
        .client
        .post(&post.address)
        .config()
        .timeout_global(Some(time))
        .build()
        .header("content-type", "application/json")
        .header("accept", "text/event-stream, application/json");
    if let Some(key) = &post.key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let answer = request.send(post.body.as_bytes()).map_err(before)?;
    let status = answer.status().as_u16();
    let is_streamed = answer
        .body()
        .mime_type()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"));
    // The other form, a date, is of the backend's clock and not of this one's.
    let again_after = answer
        .headers()
        .get("retry-after")
        .and_then(|after| after.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let head = Head {
        status,
        is_streamed: is_streamed && status == 200,
        again_after,
    };
    if say.send(Said::Head(head)).is_err() {
        return Ok(());
    }
    let mut reader = answer.into_body().into_reader();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let got = match reader.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(within(error)),
        };
        let bytes = chunk.get(..got).unwrap_or_default().to_vec();
        if say.send(Said::Bytes(bytes)).is_err() {
            return Ok(());
        }
    }
}

/// No answer began.
fn before(error: ureq::Error) -> ModelError {
    match error {
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            ModelError::Unreachable("nobody answered in time".to_owned())
        }
        ureq::Error::Timeout(_) => ModelError::TimedOut(Duration::ZERO),
        ureq::Error::Protocol(error) => {
            ModelError::Unreadable(wire::one_line(&format!("it is not HTTP: {error}")))
        }
        // Somebody answered, and asking again would bring the same.
        error @ ureq::Error::LargeResponseHeader(..) => {
            ModelError::Unreadable(wire::one_line(&error.to_string()))
        }
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            ModelError::TimedOut(Duration::ZERO)
        }
        // The library's own word for the kind says nothing more.
        ureq::Error::Io(error) => ModelError::Unreachable(wire::one_line(&error.to_string())),
        error => ModelError::Unreachable(wire::one_line(&error.to_string())),
    }
}

/// It broke off.
fn within(error: std::io::Error) -> ModelError {
    let is_late = error.kind() == std::io::ErrorKind::TimedOut
        || error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<ureq::Error>())
            .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)));
    if is_late {
        return ModelError::TimedOut(Duration::ZERO);
    }
    ModelError::Unreadable(wire::one_line(&format!("it breaks off: {error}")))
}
