//! The connection: what a client may ask of the agent, and who answers.
//!
//! The handlers here run in the connection's loop, so they only look, decide
//! where a request goes and return; a session's own thread does the rest and
//! answers. A request that cannot be served is an error, never a silence.

mod checks;
mod requests;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use agent_client_protocol::{
    Agent, Client, Error, Lines,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            AgentCapabilities, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
            Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
            LoadSessionRequest, NewSessionRequest, PromptCapabilities, PromptRequest,
            ResumeSessionRequest, SessionCapabilities, SessionCloseCapabilities,
            SessionDeleteCapabilities, SessionId, SessionListCapabilities,
            SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionModeRequest,
        },
    },
};
use futures::{SinkExt as _, StreamExt as _, stream};

use super::{
    control::Control,
    history::{self, Past},
    link::{Link, Offers},
    order::Orders,
    seat::{self, Ground, Opener, Ready, Setup, Tell},
    transport::Transport,
};
use crate::text::no_thread;

/// Sessions one process serves at a time.
const SESSIONS_MAX: usize = 256;
/// How long sessions may take to end when the client went away.
const END_WITHIN: Duration = Duration::from_secs(10);

/// What sessions are made with.
#[derive(Clone)]
pub struct Service {
    /// Opens a session's runtime.
    pub opener: Opener,
    /// How long a question waits for its answer.
    pub ask_within: Duration,
    /// How long a question for free words does.
    pub words_within: Duration,
    /// Where sessions are kept.
    pub state_dir: PathBuf,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("ask_within", &self.ask_within)
            .finish_non_exhaustive()
    }
}

/// A session, as the connection knows it.
struct Held {
    orders: Orders,
    control: Arc<Control>,
    thread: JoinHandle<()>,
    ground: Ground,
    /// Known once the session is open.
    ready: Arc<Mutex<Option<Ready>>>,
    /// It ends. Until it has, its directory is its own: what it still writes there is
    /// neither read nor removed by anybody else.
    is_leaving: bool,
}

struct Server {
    service: Service,
    held: Mutex<BTreeMap<String, Held>>,
    client_reads: AtomicBool,
    client_forms: AtomicBool,
}

/// Serves a client until it goes away.
///
/// # Errors
/// The connection broke, in one line.
pub fn serve(
    service: Service,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), String> {
    let server = Arc::new(Server {
        service,
        held: Mutex::new(BTreeMap::new()),
        client_reads: AtomicBool::new(false),
        client_forms: AtomicBool::new(false),
    });
    let transport = Transport::over(input, output).map_err(|error| error.to_string())?;
    let (outgoing, incoming, leaving) = transport.split();
    let gone = Arc::clone(&server);
    // The sessions know of it before the protocol does: a question that fails
    // because nobody is there must not be followed by another call.
    let incoming = incoming.chain(stream::poll_fn(move |_| {
        gone.stop_all();
        Poll::Ready(None)
    }));
    let lines = Lines::new(
        outgoing.sink_map_err(|error| std::io::Error::other(error.to_string())),
        incoming,
    );
    let ended = futures::executor::block_on(connection(&server, lines));
    server.leave();
    leaving.wait();
    ended.map_err(|error| error.to_string())
}

/// Answers one kind of request by a method of the server.
macro_rules! serving {
    ($builder:expr, $server:expr, $( $request:ty => $method:ident ),+ $(,)?) => {
        $builder $(
            .on_receive_request(
                {
                    let server = Arc::clone($server);
                    async move |request: $request, responder, connection| {
                        server.$method(request, responder, &connection)
                    }
                },
                agent_client_protocol::on_receive_request!(),
            )
        )+
    };
}

async fn connection(
    server: &Arc<Server>,
    lines: impl agent_client_protocol::ConnectTo<Agent> + 'static,
) -> Result<(), Error> {
    let cancelling = Arc::clone(server);
    let builder = serving!(
        Agent.v1().name("hermitcrab"),
        server,
        InitializeRequest => initialize,
        NewSessionRequest => new_session,
        LoadSessionRequest => load_session,
        ResumeSessionRequest => resume_session,
        ListSessionsRequest => list_sessions,
        CloseSessionRequest => close_session,
        DeleteSessionRequest => delete_session,
        PromptRequest => prompt,
        SetSessionModeRequest => set_mode,
        SetSessionConfigOptionRequest => set_option,
    );
    builder
        .on_receive_notification(
            async move |cancel: CancelNotification, _connection| {
                if let Some(held) = open(&cancelling.held(), &cancel.session_id) {
                    held.control.cancel();
                    held.orders.cancel();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(lines)
        .await
}

/// A session that can be spoken to.
fn open<'h>(held: &'h BTreeMap<String, Held>, id: &SessionId) -> Option<&'h Held> {
    held.get(id.0.as_ref()).filter(|held| !held.is_leaving)
}

impl Server {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        // A map is valid whoever broke down beside it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer_to_initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        self.client_reads.store(
            request.client_capabilities.fs.read_text_file,
            Ordering::Relaxed,
        );
        let forms = request.client_capabilities.elicitation.as_ref();
        self.client_forms.store(
            forms.is_some_and(|forms| forms.supports_form()),
            Ordering::Relaxed,
        );
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new());
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(
                AgentCapabilities::new()
                    .load_session(true)
                    .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
                    .session_capabilities(sessions),
            )
            .agent_info(
                Implementation::new("hermitcrab", env!("CARGO_PKG_VERSION"))
                    .title("hermitcrab".to_owned()),
            )
    }

    /// Starts a session; `told` hears whether it opened.
    fn start(
        self: &Arc<Self>,
        id: &str,
        (past, offered): (Past, Vec<String>),
        connection: &ConnectionTo<Client>,
        told: Tell,
    ) -> Result<(), Error> {
        let mut held = self.held();
        // A session that could not be opened is none.
        held.retain(|_, held| !held.thread.is_finished());
        if held.len() >= SESSIONS_MAX {
            return Err(Error::invalid_request().data("too many sessions; close one first"));
        }
        if held.contains_key(id) {
            return Err(Error::invalid_request().data("this session is open already"));
        }
        let control = Arc::new(Control::default());
        let ground = Ground {
            cwd: past.said.cwd.clone(),
            dir: history::dir_of(&self.service.state_dir, id),
            cancel: control.of_model(),
        };
        let link = Link::new(
            connection.clone(),
            SessionId::new(id),
            Offers {
                reads: self.client_reads.load(Ordering::Relaxed),
                forms: self.client_forms.load(Ordering::Relaxed),
            },
        );
        let setup = Setup {
            link,
            control: Arc::clone(&control),
            ground: ground.clone(),
            past,
            offered,
            opener: Arc::clone(&self.service.opener),
            within: self.service.ask_within,
            words_within: self.service.words_within,
        };
        let ready = Arc::new(Mutex::new(None));
        let known = Arc::clone(&ready);
        let tell: Tell = Box::new(move |opened| {
            if let Ok(ready) = opened {
                *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(ready);
            }
            told(opened);
        });
        let (orders, thread) = seat::start(setup, tell)
            .map_err(|error| Error::internal_error().data(no_thread("the session", &error)))?;
        held.insert(
            id.to_owned(),
            Held {
                orders,
                control,
                thread,
                ground,
                ready,
                is_leaving: false,
            },
        );
        Ok(())
    }

    /// The client is gone: nothing more begins in any session.
    fn stop_all(&self) {
        for held in self.held().values() {
            held.control.leave();
        }
    }

    /// The client is gone: every session ends, whatever it does.
    fn leave(&self) {
        let held = std::mem::take(&mut *self.held());
        for held in held.values() {
            held.control.leave();
        }
        let until = Instant::now() + END_WITHIN;
        for (_, held) in held {
            let Held { orders, thread, .. } = held;
            drop(orders);
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            if thread.is_finished() && thread.join().is_err() {
                eprintln!("hermitcrab: a session broke down; its ledger says how far it came");
            }
        }
    }
}
