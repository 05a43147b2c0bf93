//! What a session's thread is told by the connection.
//!
//! A client can send faster than a session works. Prompts come one at a time and a
//! session leaves once; cancels are as many as the client likes, so one that was not
//! heard yet stands for all that follow it. What waits for a session is bounded by that.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvError, RecvTimeoutError},
    },
    time::Duration,
};

use agent_client_protocol::v1::{Responder, schema::PromptResponse};
use futures::channel::oneshot;

use super::prompt::Said;

/// Who is told that a session has ended.
pub type Told = Box<dyn FnOnce() + Send>;

/// What a session is told.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every order is a prompt, and few are under way at once"
)]
pub enum Order {
    /// To work.
    Prompt {
        /// On this.
        said: Said,
        /// And to say so when it is done.
        answer: Responder<PromptResponse>,
        /// Dropped then.
        done: oneshot::Sender<()>,
    },
    /// What it does is cancelled: for one that does nothing but wait for words.
    Cancelled,
    /// To end, and to say so.
    Leave(Told),
}

/// Where orders are put.
#[derive(Clone)]
pub struct Orders {
    send: mpsc::Sender<Order>,
    /// A cancel was put and not taken yet.
    is_cancelled: Arc<AtomicBool>,
}

/// Where a session takes them, in the order in which they were put.
pub struct Queue {
    receive: mpsc::Receiver<Order>,
    is_cancelled: Arc<AtomicBool>,
}

/// The two ends.
pub fn orders() -> (Orders, Queue) {
    let (send, receive) = mpsc::channel();
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let put = Orders {
        send,
        is_cancelled: Arc::clone(&is_cancelled),
    };
    let taken = Queue {
        receive,
        is_cancelled,
    };
    (put, taken)
}

impl Orders {
    /// Puts a prompt, or the word to leave. Where the session is over it is dropped, which
    /// answers it with an error.
    pub fn put(&self, order: Order) {
        let _ = self.send.send(order);
    }

    /// Puts a cancel, unless one waits already. A session that is over has nothing to
    /// cancel.
    pub fn cancel(&self) {
        if !self.is_cancelled.swap(true, Ordering::SeqCst) {
            let _ = self.send.send(Order::Cancelled);
        }
    }
}

impl Queue {
    /// The next order.
    ///
    /// # Errors
    /// There will be none.
    pub fn next(&self) -> Result<Order, RecvError> {
        self.receive.recv().map(|order| self.taken(order))
    }

    /// The next order, if it comes in time.
    ///
    /// # Errors
    /// It did not, or there will be none.
    pub fn next_within(&self, time: Duration) -> Result<Order, RecvTimeoutError> {
        self.receive
            .recv_timeout(time)
            .map(|order| self.taken(order))
    }

    fn taken(&self, order: Order) -> Order {
        if matches!(order, Order::Cancelled) {
            self.is_cancelled.store(false, Ordering::SeqCst);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::RecvTimeoutError, time::Duration};

    use super::{Order, orders};

    #[test]
    fn any_number_of_cancels_is_one_that_waits_and_the_next_is_heard_again() {
        let (put, taken) = orders();
        for _ in 0..2 {
            for _ in 0..10_000 {
                put.cancel();
            }
            let leave = Order::Leave(Box::new(|| {}));
            put.put(leave);
            put.cancel();
            let next = || taken.next_within(Duration::ZERO);
            assert!(matches!(next(), Ok(Order::Cancelled)));
            assert!(matches!(next(), Ok(Order::Leave(_))));
            assert!(matches!(next(), Err(RecvTimeoutError::Timeout)));
        }
    }
}
