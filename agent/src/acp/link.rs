//! One session's way to its client: what is told, what is asked.

use std::time::Duration;

use agent_client_protocol::{
    Client, Error, JsonRpcRequest,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, ContentChunk, ReadTextFileRequest, SessionId, SessionNotification,
            SessionUpdate,
        },
    },
};
use futures::{channel::oneshot, future};

use super::control::{Control, Waited};

/// How long an editor may take to hand out a text.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// The way to the client.
#[derive(Clone, Debug)]
pub struct Link {
    connection: ConnectionTo<Client>,
    session: SessionId,
    offers: Offers,
}

/// What a client offers to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offers {
    /// It hands out the texts its editor holds.
    pub reads: bool,
    /// It shows its user a form.
    pub forms: bool,
}

impl Link {
    /// The way for one session.
    pub fn new(connection: ConnectionTo<Client>, session: SessionId, offers: Offers) -> Self {
        Self {
            connection,
            session,
            offers,
        }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session.clone()
    }

    /// What the client offers to do.
    pub const fn offers(&self) -> Offers {
        self.offers
    }

    /// Tells something. A client that went away is noticed elsewhere.
    pub fn tell(&self, update: SessionUpdate) {
        let told = SessionNotification::new(self.session.clone(), update);
        // The session is told to leave when the connection ends.
        let _ = self.connection.send_notification(told);
    }

    /// Says something in the agent's place.
    pub fn say(&self, text: &str) {
        self.tell(SessionUpdate::AgentMessageChunk(ContentChunk::new(
            ContentBlock::from(text.to_owned()),
        )));
    }

    /// Asks something and waits for the answer. A question that is not waited
    /// for any more is withdrawn, and its answer dropped.
    pub fn ask<R>(
        &self,
        control: &Control,
        request: R,
        time: Duration,
    ) -> Waited<Result<R::Response, Error>>
    where
        R: JsonRpcRequest,
        R::Response: Send + 'static,
    {
        let (keep, withdrawn) = oneshot::channel::<()>();
        let waited = control.wait_for(time, |reply| {
            let sent = self.connection.send_request(request);
            let waiting = async move {
                if let future::Either::Left((answer, _)) =
                    future::select(Box::pin(sent.block_task()), withdrawn).await
                {
                    reply.put(answer);
                }
                Ok(())
            };
            // Without a connection nobody answers, and the time runs out or
            // the session is told to leave.
            let _ = self.connection.spawn(waiting);
        });
        drop(keep);
        waited
    }

    /// The text the client shows for a file.
    pub fn text(&self, control: &Control, path: &str) -> Option<String> {
        if !self.offers.reads {
            return None;
        }
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        match self.ask(control, request, READ_WITHIN) {
            Waited::Got(Ok(answer)) => Some(answer.content),
            // A client that does not know the file leaves it to the disk.
            Waited::Got(Err(_)) | Waited::Cancelled | Waited::TimedOut => None,
        }
    }
}
