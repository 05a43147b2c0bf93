//! One session: a runtime, a conversation, and the thread that owns both.
//!
//! Nothing of it is shared with another session: directory, environment,
//! grants, questions and ledger are its own. It must never work for two
//! prompts at a time.

mod dry_run;
mod plan;

use std::{cell::RefCell, path::PathBuf, rc::Rc, sync::Arc, thread, time::Duration};

use agent_client_protocol::{
    Error,
    v1::schema::{AvailableCommandsUpdate, PromptResponse, SessionUpdate, StopReason},
};
use hermitcrab_core::{label::Source, rules::Isolation, session::Asking};

use super::{
    ask::AcpUser,
    commands::{self, Command, Undo},
    control::Control,
    desk::Desk,
    history::{Past, Story},
    link::Link,
    modes::{Belief, InForce},
    order::{Orders, Queue, Told, orders},
    planned::Course,
    prompt::Said,
    scene::{Buffers, Output, Scene},
    spoken, waiting,
    watcher::Watcher,
};
use crate::{
    cancel::Cancel,
    chat::{self, Chat, ChatError, TurnEnd},
    conversation::{Conversation, Taken, When},
    model::{Backend, ModelError},
    ports::UserPort,
    runtime::Runtime,
};

/// Gives a runtime what is configured for it.
pub type Furnish = Box<dyn Fn(&mut Runtime) -> Result<(), String>>;

/// Takes back what was done, and says what came of it.
pub type Undoing = Box<dyn Fn(&mut Runtime, Undo) -> String>;

/// A session's runtime, and what it was opened with.
pub struct Opened {
    /// The runtime.
    pub runtime: Runtime,
    /// The model, which its session may talk to.
    pub backend: Backend,
    /// Gives it again what it was given, after it began anew.
    pub furnish: Furnish,
    /// The model that reads what nobody vouches for, where one is configured.
    pub picker: Option<Backend>,
    /// What is proved about the sandbox.
    pub proved: Isolation,
    /// The mildest mode that is allowed here.
    pub floor: Asking,
    /// Takes back what its user wants taken back.
    pub undo: Undoing,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

/// Where a session works, and where its ledger is.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The workspace, absolute.
    pub cwd: PathBuf,
    /// The session's own state directory.
    pub dir: PathBuf,
    /// Calls off its model.
    pub cancel: Cancel,
}

/// Opens a runtime for a session, in that session's thread.
pub type Opener = Arc<dyn Fn(&Ground, Box<dyn UserPort>) -> Result<Opened, String> + Send + Sync>;

/// What a session is made of.
pub struct Setup {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) ground: Ground,
    pub(super) past: Past,
    /// Tool servers the client would have had started.
    pub(super) offered: Vec<String>,
    pub(super) opener: Opener,
    pub(super) within: Duration,
    pub(super) words_within: Duration,
}

/// What is known once a session is open.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// What is proved about the sandbox.
    pub proved: Isolation,
    /// The mildest mode that is allowed here.
    pub floor: Asking,
}

/// Told whether the session opened.
pub type Tell = Box<dyn FnOnce(Result<Ready, String>) + Send>;

/// Starts a session's thread.
///
/// # Errors
/// There are no more threads.
pub fn start(setup: Setup, tell: Tell) -> std::io::Result<(Orders, thread::JoinHandle<()>)> {
    let (put, taken) = orders();
    let thread =
        thread::Builder::new()
            .name("acp-session".into())
            .spawn(move || match Seat::open(setup, taken) {
                Ok(seat) => {
                    let ready = Ready {
                        proved: seat.proved,
                        floor: seat.floor,
                    };
                    seat.greet();
                    tell(Ok(ready));
                    seat.link.tell(SessionUpdate::AvailableCommandsUpdate(
                        AvailableCommandsUpdate::new(commands::available()),
                    ));
                    seat.say_what_was_not_started();
                    seat.say_what_waited();
                    // Whoever hears that it is closed may take it up at once, so
                    // by then nothing of it is held any more.
                    let told = seat.serve();
                    if let Some(told) = told {
                        told();
                    }
                }
                Err(why) => tell(Err(why)),
            })?;
    Ok((put, thread))
}

struct Seat {
    link: Link,
    control: Arc<Control>,
    ground: Ground,
    story: Rc<RefCell<Story>>,
    /// What was said before is not shown.
    is_silent: bool,
    runtime: Runtime,
    furnish: Furnish,
    undo: Undoing,
    proved: Isolation,
    floor: Asking,
    chat: Chat,
    backend: Backend,
    picker: Option<Backend>,
    within: Duration,
    desk: Rc<Desk>,
    scene: Rc<RefCell<Scene>>,
    offered: Vec<String>,
    in_force: InForce,
    course: Course,
}

impl Seat {
    fn open(setup: Setup, orders: Queue) -> Result<Self, String> {
        let Setup {
            link,
            control,
            ground,
            past,
            offered,
            opener,
            within,
            words_within,
        } = setup;
        let scene = Rc::new(RefCell::new(Scene::default()));
        let is_silent = past.is_silent;
        let story = Rc::new(RefCell::new(Story::of(past.said, ground.dir.clone())));
        let desk = Rc::new(Desk {
            orders,
            story: Rc::clone(&story),
            link: link.clone(),
            control: Arc::clone(&control),
            scene: Rc::clone(&scene),
            dir: ground.dir.clone(),
            within: words_within,
            state: RefCell::default(),
        });
        let user = AcpUser {
            link: link.clone(),
            control: Arc::clone(&control),
            scene: Rc::clone(&scene),
            within,
            desk: Rc::clone(&desk),
        };
        let Opened {
            mut runtime,
            backend,
            furnish,
            picker,
            proved,
            floor,
            undo,
        } = opener(&ground, Box::new(user))?;
        // From here on nobody else writes it; up to here somebody may have gone on with it.
        match Conversation::look(&ground.dir) {
            Some(mut kept) => {
                kept.close_calls(std::slice::from_ref(&ground.dir), Taken::Over);
                story.borrow_mut().said = kept;
            }
            None if story.borrow().said.was_kept() => {
                return Err("this session was deleted just now".to_owned());
            }
            None => {}
        }
        runtime.serve_an_editor();
        // Whoever sits at a terminal of this user's can look and end things here as well.
        if let Err(error) = runtime.be_reachable(&ground.dir, floor) {
            link.say(&format!(
                "`hermitcrab session` will not find this session: {error}\n"
            ));
        }
        runtime.show_progress(Box::new(Output {
            link: link.clone(),
            control: Arc::clone(&control),
            scene: Rc::clone(&scene),
        }));
        runtime.read_through(Box::new(Buffers {
            link: link.clone(),
            control: Arc::clone(&control),
            scene: Rc::clone(&scene),
        }));
        let chat =
            Chat::new(&runtime, &backend.model).resumed(story.borrow().said.messages.clone());
        let mut seat = Self {
            link,
            control,
            ground,
            story,
            is_silent,
            runtime,
            furnish,
            undo,
            proved,
            floor,
            chat,
            backend,
            picker,
            within,
            desk,
            scene,
            offered,
            in_force: InForce::default(),
            course: Course::default(),
        };
        seat.remember_what_was_read()?;
        Ok(seat)
    }

    /// A conversation taken up again holds what it held.
    fn remember_what_was_read(&mut self) -> Result<(), String> {
        if self.story.borrow().said.has_data() {
            chat::count_as_read(&mut self.runtime).map_err(|why| why.to_string())?;
        }
        Ok(())
    }

    /// Shows what was said before, if anything was.
    fn greet(&self) {
        if !self.is_silent {
            for update in spoken::replayed(&self.story.borrow().said.messages) {
                self.link.tell(update);
            }
        }
    }

    /// A tool server of the client's would have all of its user's authority.
    fn say_what_was_not_started(&self) {
        if !self.offered.is_empty() {
            self.link.say(&format!(
                "Not started: the tool servers your editor offers ({}). They would act with all your authority, \
                 unseen; nothing they do would be asked about here. Those it is to have are \
                 declared in your own configuration, in [servers.NAME]; `hermitcrab servers` shows them.\n",
                self.offered.join(", ").escape_debug()
            ));
        }
    }

    /// A question the session ended over.
    fn say_what_waited(&self) {
        if let Some(question) = waiting::take(&self.ground.dir) {
            self.link.say(&waiting::worded(&question));
        }
    }

    /// Works until the session is to end; who is to be told of that.
    fn serve(mut self) -> Option<Told> {
        while let Some(said) = self.desk.next() {
            let came = self.prompt(&said);
            self.keep();
            self.desk.close(came);
        }
        // What ended is decided while something is held; nobody is asked by whom they left.
        self.runtime.wind_up();
        for line in self.runtime.take_told() {
            let line = crate::screen::visible(&line);
            // Who hung up finds it where their editor keeps what agents say.
            eprintln!("hermitcrab: {line}");
            self.link.say(&format!("{line}\n"));
        }
        if let Err(error) = self.runtime.end_session() {
            eprintln!("hermitcrab: {error}");
        }
        self.desk.left()
    }

    fn keep(&self) {
        let mut story = self.story.borrow_mut();
        story.said.model = Some(self.chat.model().to_owned());
        let kept = story.go_on(self.chat.messages(), &self.runtime, When::After);
        if let Err(error) = kept {
            eprintln!("hermitcrab: the conversation cannot be kept: {error}");
        }
    }

    fn prompt(&mut self, said: &Said) -> Result<PromptResponse, Error> {
        {
            let mut scene = self.scene.borrow_mut();
            scene.stop = false;
            scene.is_dry = false;
            scene.clear();
        }
        self.take_choice().map_err(broken)?;
        if !said.is_typed
            && let Some(all) = commands::dry_run_of(&said.words)
        {
            return self.dry_run(all, said.has_attachments);
        }
        match commands::read(&said.typed) {
            None => match commands::mistyped(&said.typed) {
                None => self.turn(&said.words, said.has_attachments),
                Some(why) => {
                    self.link.say(&why);
                    Ok(PromptResponse::new(StopReason::EndTurn))
                }
            },
            Some(Ok(Command::DryRun(words))) => self.dry_run(&words, false),
            // A model that plans is told nothing that somebody else may have written.
            Some(Ok(Command::MakePlan(_) | Command::Plan)) if said.is_cut => {
                self.link.say(commands::PLANS_WORDS);
                Ok(PromptResponse::new(StopReason::EndTurn))
            }
            Some(Ok(Command::MakePlan(words))) => self.plan(&words),
            Some(command) => {
                let words = command.and_then(|command| match command {
                    Command::Caps => Ok(spoken::caps(&self.runtime)),
                    Command::Revoke(name) => spoken::revoke(&mut self.runtime, &name),
                    Command::Audit(count) => spoken::audit(&self.ground.dir, count),
                    Command::Plan => Ok(self
                        .course
                        .in_words()
                        .unwrap_or_else(|| spoken::plan(&mut self.runtime))),
                    Command::Undo(undo) => {
                        let came = (self.undo)(&mut self.runtime, undo);
                        self.scene.borrow_mut().close_question(&self.link);
                        Ok(came)
                    }
                    Command::Leave => Ok("No question waits for your words.".to_owned()),
                    Command::DryRun(_) | Command::MakePlan(_) => {
                        Err("it is run elsewhere".to_owned())
                    }
                });
                self.link.say(&words.unwrap_or_else(|why| why));
                Ok(PromptResponse::new(StopReason::EndTurn))
            }
        }
    }

    /// What the user chose holds from this prompt on.
    fn take_choice(&mut self) -> Result<(), String> {
        let wanted = self.control.choice();
        if wanted.belief != self.in_force.choice().belief {
            let isolation = match wanted.belief {
                Belief::Proved => self.proved,
                Belief::Nothing => Isolation::Unknown,
            };
            // It ends the session, and with it what was granted.
            self.runtime.wind_up();
            self.runtime
                .begin_believing(isolation)
                .map_err(|why| why.to_string())?;
            self.in_force.forget();
            (self.furnish)(&mut self.runtime)?;
            self.remember_what_was_read()?;
        }
        self.in_force.change(&mut self.runtime, wanted, self.floor)
    }

    fn turn(&mut self, words: &str, has_attachments: bool) -> Result<PromptResponse, Error> {
        if has_attachments {
            let agent = self.runtime.first_agent();
            self.runtime
                .hear(agent, Source::File)
                .map_err(|why| broken(why.to_string()))?;
        }
        let mut watcher = Watcher {
            link: self.link.clone(),
            control: Arc::clone(&self.control),
            scene: Rc::clone(&self.scene),
            story: Rc::clone(&self.story),
            in_force: &mut self.in_force,
            floor: self.floor,
            tries: 0,
        };
        let port = &mut *self.backend.port;
        let came = self
            .chat
            .turn_watched(&mut self.runtime, port, words, &mut watcher);
        self.scene.borrow_mut().close_question(&self.link);
        for line in self.runtime.take_told() {
            self.link.say(&crate::screen::visible(&line));
        }
        if self.control.is_cancelled() {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        }
        match came {
            Ok(turn) => Ok(PromptResponse::new(match turn.end {
                TurnEnd::CutOff => {
                    self.link.say(&format!("\n\n({})\n", crate::chat::CUT_OFF));
                    StopReason::MaxTokens
                }
                TurnEnd::Answered
                | TurnEnd::Halted
                | TurnEnd::GaveUp
                | TurnEnd::Silent
                | TurnEnd::Stopped => StopReason::EndTurn,
                TurnEnd::RoundsSpent | TurnEnd::HeldBack => StopReason::MaxTurnRequests,
            })),
            Err(error @ ChatError::Denied(_)) => {
                self.link.say(&error.to_string());
                Ok(PromptResponse::new(StopReason::Refusal))
            }
            Err(ChatError::Model(error)) => Err(no_answer(&error)),
        }
    }
}

/// What the client is told where the model gave no answer. Clients show the message and
/// not always what comes with it, so the words are the message.
fn no_answer(error: &ModelError) -> Error {
    let mut told = match error {
        ModelError::Refused(401, _) => Error::auth_required(),
        _ => Error::internal_error(),
    };
    told.message = error.to_string();
    told
}

fn broken(why: String) -> Error {
    Error::internal_error().data(why)
}
