//! What a session's thread is told by the connection.

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
