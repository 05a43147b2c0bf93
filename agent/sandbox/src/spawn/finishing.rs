//! Waiting for a command without holding up the thread that asks.
//!
//! What for: an asynchronous runtime must not be blocked, and waiting for a
//! command reads pipes, watches the deadline and reads back what it did. A
//! thread of its own does that, and the future only hears of the end. Why no
//! runtime is named here: a future of the standard library runs on any.
//!
//! It must never leave a command behind: dropped before the end, it kills.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::killer::Killer;
use super::running::Running;
use super::streams::Stream;
use super::{Finished, SpawnError};

/// A command that is waited for elsewhere; resolves when it has ended.
///
/// Dropping it before kills the command and everything it started.
#[derive(Debug)]
#[must_use = "a command that nobody waits for is killed"]
pub struct Finishing {
    killer: Killer,
    shared: Arc<Mutex<Shared>>,
    done: bool,
}

#[derive(Debug, Default)]
struct Shared {
    result: Option<Result<Finished, SpawnError>>,
    waker: Option<Waker>,
}

impl Running {
    /// Has a thread wait for the end, and shows it each piece of captured
    /// output as it comes.
    ///
    /// # Errors
    /// The thread cannot be started; the command is killed.
    pub fn finishing(
        self,
        show: impl FnMut(Stream, &[u8]) + Send + 'static,
    ) -> io::Result<Finishing> {
        let killer = self.killer();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let told = Arc::clone(&shared);
        // Its end is heard of through `shared`.
        let _waits = std::thread::Builder::new()
            .name("hermitcrab-wait".to_owned())
            .spawn(move || {
                let result = self.wait_with(show);
                let mut shared = lock(&told);
                shared.result = Some(result);
                if let Some(waker) = shared.waker.take() {
                    waker.wake();
                }
            })?;
        Ok(Finishing {
            killer,
            shared,
            done: false,
        })
    }
}

impl Finishing {
    /// What kills it from anywhere; its end is then waited for as any other.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }
}

impl Future for Finishing {
    type Output = Result<Finished, SpawnError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut shared = lock(&self.shared);
        match shared.result.take() {
            Some(result) => {
                drop(shared);
                self.done = true;
                Poll::Ready(result)
            }
            None => {
                shared.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        if !self.done {
            self.killer.kill();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Nothing in here is left half done by a panic elsewhere.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
