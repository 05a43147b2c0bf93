//! Each request a client can make of a session, checked before it is served.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use agent_client_protocol::{
    Client, Error,
    v1::{
        ConnectionTo, Responder,
        schema::{
            CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse,
            InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse,
            LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
            PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse,
            SessionConfigOption, SessionId, SessionInfo, SessionModeState,
            SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
            SetSessionModeResponse,
        },
    },
};
use futures::{channel::oneshot, future};

use super::{
    super::{
        control::Control,
        history::{self, Past},
        modes::{Belief, Choice, ISOLATION_OPTION, MODE_OPTION},
        order::Order,
        prompt,
        seat::Ready,
    },
    Server,
    checks::{allowed, names, place, unknown},
    open,
};
use crate::{
    audit::LedgerError,
    conversation::{self, Conversation, Shelf},
};

/// Sessions told about at once.
const LISTED_MAX: usize = 50;

impl Server {
    pub(super) fn initialize(
        self: &Arc<Self>,
        request: InitializeRequest,
        responder: Responder<InitializeResponse>,
        _connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        responder.respond(self.answer_to_initialize(&request))
    }

    pub(super) fn new_session(
        self: &Arc<Self>,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let offered = names(&request.mcp_servers);
        let cwd = match place(&request.cwd, &request.additional_directories) {
            Ok(cwd) => cwd,
            Err(error) => return responder.respond_with_error(error),
        };
        let id = match conversation::new_id() {
            Ok(id) => id,
            Err(error) => {
                return responder
                    .respond_with_error(Error::internal_error().data(error.to_string()));
            }
        };
        let answered = SessionId::new(id.as_str());
        opened(
            responder,
            |told| self.start(&id, (Past::begins(cwd), offered), connection, told),
            move |modes, options| {
                NewSessionResponse::new(answered)
                    .modes(modes)
                    .config_options(options)
            },
        )
    }

    pub(super) fn load_session(
        self: &Arc<Self>,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let (id, offered) = (&request.session_id, names(&request.mcp_servers));
        let at = place(&request.cwd, &request.additional_directories);
        let begin = |told| self.start_again(id, at, false, offered, connection, told);
        opened(responder, begin, |modes, options| {
            LoadSessionResponse::new()
                .modes(modes)
                .config_options(options)
        })
    }

    pub(super) fn resume_session(
        self: &Arc<Self>,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let (id, offered) = (&request.session_id, names(&request.mcp_servers));
        let at = place(&request.cwd, &request.additional_directories);
        let begin = |told| self.start_again(id, at, true, offered, connection, told);
        opened(responder, begin, |modes, options| {
            ResumeSessionResponse::new()
                .modes(modes)
                .config_options(options)
        })
    }

    /// Begins a session with what was said in it; the client is told that, or knows it.
    fn start_again(
        self: &Arc<Self>,
        id: &SessionId,
        at: Result<PathBuf, Error>,
        is_silent: bool,
        offered: Vec<String>,
        connection: &ConnectionTo<Client>,
        told: super::Tell,
    ) -> Result<(), Error> {
        let id = id.0.to_string();
        let said = self.kept(&id, &at?)?;
        self.start(&id, (Past { said, is_silent }, offered), connection, told)
    }

    /// A session that can be gone on with, in the place where it was.
    fn kept(&self, id: &str, cwd: &Path) -> Result<Conversation, Error> {
        let missing = || {
            Error::from(
                agent_client_protocol::v1::schema::Error::resource_not_found(Some(id.to_owned())),
            )
        };
        if !conversation::is_id(id) {
            return Err(missing());
        }
        let said = Conversation::look(&history::dir_of(&self.service.state_dir, id))
            .ok_or_else(missing)?;
        if said.cwd != cwd {
            return Err(Error::invalid_params().data(format!(
                "this session worked in `{}` and goes on only there",
                said.cwd.display()
            )));
        }
        Ok(said)
    }

    pub(super) fn list_sessions(
        self: &Arc<Self>,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let from = match request.cursor.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(from)) => from,
            Some(Err(_)) => {
                return responder
                    .respond_with_error(Error::invalid_params().data("no such cursor"));
            }
        };
        let wanted = request.cwd.map(|cwd| cwd.canonicalize().unwrap_or(cwd));
        let mut all: Vec<SessionInfo> = conversation::all(Shelf::Editor, &self.service.state_dir)
            .into_iter()
            .filter(|(_, about)| wanted.as_ref().is_none_or(|cwd| *cwd == about.cwd))
            .skip(from)
            .take(LISTED_MAX + 1)
            .map(|(id, about)| {
                SessionInfo::new(id, about.cwd)
                    .title(about.title)
                    .updated_at(about.updated)
            })
            .collect();
        let is_more = all.len() > LISTED_MAX;
        all.truncate(LISTED_MAX);
        let mut response = ListSessionsResponse::new(all);
        if is_more {
            response = response.next_cursor((from + LISTED_MAX).to_string());
        }
        responder.respond(response)
    }

    pub(super) fn close_session(
        self: &Arc<Self>,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
        _connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let id = request.session_id.0.to_string();
        let mut all = self.held();
        let Some(held) = all.get_mut(&id).filter(|held| !held.is_leaving) else {
            drop(all);
            return responder.respond_with_error(unknown(&request.session_id));
        };
        held.is_leaving = true;
        held.control.leave();
        let server = Arc::clone(self);
        let told = move || {
            // Whoever hears that it is closed may take it up at once.
            server.held().remove(&id);
            // A client that went away is told nothing.
            let _ = responder.respond(CloseSessionResponse::new());
        };
        // A thread that ended by itself tells nobody, and the request is
        // answered with an error when what would answer it is dropped.
        held.orders.put(Order::Leave(Box::new(told)));
        Ok(())
    }

    /// What was said is forgotten. The ledger is not the client's to delete: it
    /// stays where it is.
    pub(super) fn delete_session(
        self: &Arc<Self>,
        request: DeleteSessionRequest,
        responder: Responder<DeleteSessionResponse>,
        _connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let id = request.session_id.0.as_ref();
        let mut held = self.held();
        held.retain(|_, held| !held.thread.is_finished());
        if held.contains_key(id) {
            drop(held);
            return responder.respond_with_error(
                Error::invalid_request().data("this session is open; close it first"),
            );
        }
        drop(held);
        let forgotten = if conversation::is_id(id) {
            history::forget(&history::dir_of(&self.service.state_dir, id))
        } else {
            Ok(())
        };
        match forgotten {
            // One that is not there is as good as deleted.
            Ok(()) => responder.respond(DeleteSessionResponse::new()),
            Err(LedgerError::Busy(_)) => responder.respond_with_error(
                Error::invalid_request()
                    .data("this session is open in another program; close it there first"),
            ),
            Err(error) => responder.respond_with_error(
                Error::internal_error()
                    .data(format!("the conversation cannot be deleted: {error}")),
            ),
        }
    }

    pub(super) fn prompt(
        self: &Arc<Self>,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let said = match prompt::read(&request.prompt) {
            Ok(said) => said,
            Err(why) => {
                return responder.respond_with_error(Error::invalid_params().data(why));
            }
        };
        let held = self.held();
        let Some(held) = open(&held, &request.session_id) else {
            drop(held);
            return responder.respond_with_error(unknown(&request.session_id));
        };
        if !held.control.begin() {
            return responder.respond_with_error(
                Error::invalid_request()
                    .data("this session is at work; wait for it, or cancel what it does"),
            );
        }
        let (done, over) = oneshot::channel();
        let withdrawn = responder.cancellation();
        let control = Arc::clone(&held.control);
        connection.spawn(async move {
            let withdrawn = Box::pin(withdrawn.cancelled());
            if let future::Either::Left(_) = future::select(withdrawn, over).await {
                control.cancel();
            }
            Ok(())
        })?;
        let order = Order::Prompt {
            said,
            answer: responder,
            done,
        };
        // A thread that broke down drops the order, which answers it.
        held.orders.put(order);
        Ok(())
    }

    fn control(&self, id: &SessionId) -> Result<(Arc<Control>, Ready), Error> {
        let held = self.held();
        let held = open(&held, id).ok_or_else(|| unknown(id))?;
        let ready = *held.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = ready.ok_or_else(|| {
            Error::invalid_request().data(format!(
                "the session in `{}` is not open yet",
                held.ground.cwd.display()
            ))
        })?;
        Ok((Arc::clone(&held.control), ready))
    }

    pub(super) fn set_mode(
        self: &Arc<Self>,
        request: SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
        _connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let chosen = self
            .control(&request.session_id)
            .and_then(|(control, ready)| {
                let mode = allowed(&request.mode_id.0, &ready)?;
                control.choose(|choice| choice.mode = mode);
                Ok(SetSessionModeResponse::new())
            });
        responder.respond_with_result(chosen)
    }

    pub(super) fn set_option(
        self: &Arc<Self>,
        request: SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
        _connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let chosen = self
            .control(&request.session_id)
            .and_then(|(control, ready)| {
                let value = request
                    .value
                    .as_value_id()
                    .map(|value| value.0.to_string())
                    .unwrap_or_default();
                let choice = match request.config_id.0.as_ref() {
                    MODE_OPTION => {
                        let mode = allowed(&value, &ready)?;
                        control.choose(|choice| choice.mode = mode)
                    }
                    ISOLATION_OPTION => {
                        let belief = Belief::parse(&value)
                            .ok_or_else(|| Error::invalid_params().data("no such value"))?;
                        control.choose(|choice| choice.belief = belief)
                    }
                    _ => return Err(Error::invalid_params().data("no such option")),
                };
                Ok(SetSessionConfigOptionResponse::new(
                    choice.options(ready.floor, ready.proved),
                ))
            });
        responder.respond_with_result(chosen)
    }
}

/// Starts a session and answers once it is open, or is not.
fn opened<R: agent_client_protocol::JsonRpcResponse>(
    responder: Responder<R>,
    start: impl FnOnce(super::Tell) -> Result<(), Error>,
    worded: impl FnOnce(SessionModeState, Vec<SessionConfigOption>) -> R + Send + 'static,
) -> Result<(), Error> {
    let shared = Arc::new(std::sync::Mutex::new(Some(responder)));
    let take = |shared: &std::sync::Mutex<Option<Responder<R>>>| {
        shared.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let later = Arc::clone(&shared);
    let told: super::Tell = Box::new(move |ready| {
        let Some(responder) = take(&later) else {
            return;
        };
        // A client that went away is told nothing.
        let _ = match ready {
            Ok(ready) => {
                let choice = Choice::default();
                let options = choice.options(ready.floor, ready.proved);
                responder.respond(worded(choice.modes(ready.floor), options))
            }
            Err(why) => responder.respond_with_error(Error::invalid_params().data(why)),
        };
    });
    match start(told) {
        // The session's thread answers.
        Ok(()) => Ok(()),
        Err(error) => match take(&shared) {
            Some(responder) => responder.respond_with_error(error),
            None => Err(error),
        },
    }
}
