//! What a server says over a bare connection, a message a line: so many of them at most, and
//! none of more values than one may hold.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::text::bulk::{Count, Ends, VALUES_MAX};

/// Messages over one connection. Each may be a question or a request of the server's own, whose
/// answers wait as long as it does not take them, in thirty times the memory they came in.
const MESSAGES_MAX: usize = 1 << 14;

/// Reads on as long as all is within that.
pub(super) struct Counted<R> {
    said: R,
    count: Count,
    messages: usize,
}

/// What is read from there, counted.
pub(super) const fn counted<R>(said: R) -> Counted<R> {
    Counted {
        said,
        count: Count::each(Ends::Line),
        messages: 0,
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.said).poll_read(context, into))?;
        let came = into.filled().get(before..).unwrap_or_default();
        let ends = came.iter().filter(|byte| **byte == b'\n').count();
        self.messages = self.messages.saturating_add(ends);
        let why = if self.messages > MESSAGES_MAX {
            format!("it says more than {MESSAGES_MAX} messages")
        } else if !self.count.is_within(came) {
            format!("a message holds more than {VALUES_MAX} values")
        } else {
            return Poll::Ready(Ok(()));
        };
        // Where a reading failed nothing was read.
        into.set_filled(before);
        Poll::Ready(Err(io::Error::other(why)))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::{MESSAGES_MAX, VALUES_MAX, counted};

    #[test]
    fn too_many_messages_or_one_of_too_many_values_are_the_end() {
        let half = ",".repeat(VALUES_MAX / 2 + 1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        for (said, is_read) in [
            (format!("{half}\n{half}\n"), true),
            (format!("{half}{half}\n"), false),
            ("{}\n".repeat(MESSAGES_MAX), true),
            ("{}\n".repeat(MESSAGES_MAX + 1), false),
        ] {
            let mut all = Vec::new();
            let read = runtime.block_on(counted(said.as_bytes()).read_to_end(&mut all));
            assert_eq!(read.is_ok(), is_read, "{read:?}");
        }
    }
}
