//! A model in a file, run by llama.cpp in a process of its own.
//!
//! A model file is untrusted input to a large C++ program, and that program
//! ends with an abort where it meets what it did not expect. So it never runs
//! in this process: the program starts itself again, and that process closes
//! itself in before it opens the file (see [`hermitcrab_sandbox::seclusion`]).
//! It can be killed at any moment, and with it goes one answer and nothing else.
//!
//! This module must never believe the process: what it says is bounded in time
//! and length, and is a proposal like any other model's.

#[cfg(feature = "llama")]
mod engine;
mod files;
#[cfg(feature = "llama")]
mod helper;
mod process;
#[cfg(feature = "llama")]
mod prompt;
mod speech;
pub mod talk;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub use self::talk::Loaded;
use self::{
    process::Process,
    talk::{Ask, Done, End, Failed, Load, Order, Said},
};
use super::{
    Finish, ModelError, ModelPort, ModelReply, ModelRequest, ReplyLimits, repeats::Repeats,
};
use crate::cancel::{Cancel, Either};

/// The word by which the program knows that it is a model's process.
pub const WORD: &str = "model-process";
/// How often the switch is looked at.
const TICK: Duration = Duration::from_millis(40);
/// How long a process may take to stop before it is killed.
const GRACE: Duration = Duration::from_secs(1);
/// What a model is loaded with, if nothing says so.
const CONTEXT_TOKENS: u32 = 16_384;
/// How freely it chooses its words, if nothing says so.
const TEMPERATURE: f32 = 0.2;

/// Whether this program can run models itself.
#[must_use]
pub const fn is_built_in() -> bool {
    cfg!(feature = "llama")
}

/// What is said where it cannot.
pub const NOT_BUILT_IN: &str = "this program was built without llama.cpp; build it with `cargo build --features llama`, or let `llama-server` serve the file and use the backend `http`";

/// Which model, and how it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaConfig {
    /// The file; the first one, if it comes in parts.
    pub file: PathBuf,
    /// The program that is started for it: this one, except in tests.
    pub program: PathBuf,
    /// How long a conversation may be, in tokens.
    pub context: Option<u32>,
    /// Threads that count; by default one for each processor.
    pub threads: Option<u32>,
    /// Memory it may take besides the file; by default what is free.
    pub memory_bytes_max: Option<u64>,
    /// How freely it chooses its words.
    pub temperature: Option<f32>,
    /// What chance begins with.
    pub seed: u32,
    /// Bounds on each answer, besides those of the request.
    pub limits: ReplyLimits,
}

impl LlamaConfig {
    /// The model in this file, run as usual.
    #[must_use]
    pub fn of(file: PathBuf) -> Self {
        Self {
            file,
            program: PathBuf::from("/proc/self/exe"),
            context: None,
            threads: None,
            memory_bytes_max: None,
            temperature: None,
            seed: 0,
            limits: ReplyLimits::default(),
        }
    }
}

/// The backend. The model is loaded when it is first asked, and stays.
#[derive(Debug)]
pub struct LlamaModel {
    config: LlamaConfig,
    cancel: Cancel,
    running: Option<(Process, Loaded)>,
    last: Done,
}

/// When waiting ends.
#[derive(Clone, Copy)]
struct Until<'o> {
    began: Instant,
    all: Duration,
    over: Option<&'o Cancel>,
}

impl Until<'_> {
    fn is_over(self) -> bool {
        self.began.elapsed() >= self.all
    }
}

impl LlamaModel {
    /// The model configured; nothing is started yet.
    #[must_use]
    pub fn new(config: LlamaConfig) -> Self {
        Self {
            config,
            cancel: Cancel::default(),
            running: None,
            last: Done::default(),
        }
    }

    /// The same; it stops when the switch is thrown.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Its file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.config.file
    }

    /// Loads it, if it is not there yet, and says what it is.
    ///
    /// # Errors
    /// It cannot be loaded, in words.
    pub fn load(&mut self) -> Result<Loaded, ModelError> {
        self.load_until(Until {
            began: Instant::now(),
            all: self.config.limits.time_max,
            over: None,
        })
    }

    /// What the last answer took.
    #[must_use]
    pub const fn last(&self) -> Done {
        self.last
    }

    /// The process it runs in, if it does.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        Some(self.running.as_ref()?.0.id())
    }

    /// How much memory its process has at this moment, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.running.as_ref()?.0.memory_bytes()
    }

    fn load_until(&mut self, until: Until<'_>) -> Result<Loaded, ModelError> {
        if let Some((_, loaded)) = &self.running {
            return Ok(loaded.clone());
        }
        let free = files::free_memory();
        let files = files::whole(&self.config.file, free)?;
        let mut process = Process::start(&self.config.program)?;
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        process.tell(Order::Load(Load {
            files,
            context: Some(self.config.context.unwrap_or(CONTEXT_TOKENS)),
            threads: self
                .config
                .threads
                .unwrap_or_else(|| u32::try_from(processors()).unwrap_or(1)),
            memory_bytes_max: self.config.memory_bytes_max.or(free).unwrap_or(u64::MAX),
        }));
        loop {
            if Either(&self.cancel, until.over).is_thrown() {
                return Err(ModelError::Cancelled);
            }
            if until.is_over() {
                return Err(ModelError::TimedOut(until.all));
            }
            match process.hear(TICK)? {
                None => {}
                Some(Said::Loaded(loaded)) => {
                    self.running = Some((process, loaded.clone()));
                    return Ok(loaded);
                }
                Some(Said::Failed(failed)) => return Err(error(failed, &process)),
                Some(Said::Piece(_) | Said::Done(_)) => {
                    return Err(ModelError::Died("it speaks out of turn".to_owned()));
                }
            }
        }
    }

    fn ask(
        &mut self,
        request: ModelRequest<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ModelError> {
        let limits = request.limits.narrowed(self.config.limits);
        let until = Until {
            began: Instant::now(),
            all: limits.time_max,
            over: request.over,
        };
        self.load_until(until)?;
        // It comes back when it can be used again.
        let Some((mut process, loaded)) = self.running.take() else {
            return Err(ModelError::Died("it is not there".to_owned()));
        };
        process.tell(Order::Ask(Ask {
            turns: speech::turns(&request),
            grammar: speech::grammar(&request),
            tokens_max: limits.tokens_max,
            temperature: self.config.temperature.unwrap_or(TEMPERATURE),
            seed: self.config.seed,
        }));
        let mut text = String::new();
        let answered = self.listen(&mut process, limits, until, &mut text, heard);
        let answered = match answered {
            Err(
                error @ (ModelError::Cancelled
                | ModelError::TimedOut(_)
                | ModelError::TooLong(_)
                | ModelError::Repeats),
            ) => {
                if has_stopped(&mut process) {
                    self.running = Some((process, loaded));
                }
                return Err(error);
            }
            Err(error @ ModelError::Died(_)) => return Err(error),
            other => other,
        };
        self.running = Some((process, loaded));
        let done = answered?;
        self.last = done;
        let finish = match done.end {
            End::Ended => Finish::Ended,
            End::Full if request.schema.is_some() => return Err(ModelError::CutOff),
            End::Full | End::Stopped => Finish::CutOff,
        };
        speech::reply(&request, text, (done.read, done.written), finish)
    }

    fn listen(
        &self,
        process: &mut Process,
        limits: ReplyLimits,
        until: Until<'_>,
        text: &mut String,
        heard: &mut dyn FnMut(&str),
    ) -> Result<Done, ModelError> {
        let mut repeats = Repeats::default();
        loop {
            if Either(&self.cancel, until.over).is_thrown() {
                return Err(ModelError::Cancelled);
            }
            if until.is_over() {
                return Err(ModelError::TimedOut(until.all));
            }
            match process.hear(TICK)? {
                None => {}
                Some(Said::Piece(words)) => {
                    let length = text.len().saturating_add(words.len());
                    if u64::try_from(length).unwrap_or(u64::MAX) > limits.bytes_max {
                        return Err(ModelError::TooLong(limits.bytes_max));
                    }
                    text.push_str(&words);
                    heard(&words);
                    if repeats.notices(text) {
                        return Err(ModelError::Repeats);
                    }
                }
                Some(Said::Done(done)) => return Ok(done),
                Some(Said::Failed(failed)) => return Err(error(failed, process)),
                Some(Said::Loaded(_)) => {
                    return Err(ModelError::Died("it speaks out of turn".to_owned()));
                }
            }
        }
    }
}

impl ModelPort for LlamaModel {
    fn holds(&self) -> Option<u64> {
        let loaded = self.running.as_ref().map(|(_, loaded)| loaded.context);
        loaded.or(self.config.context).map(u64::from)
    }

    fn complete(&mut self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.ask(request, &mut |_| {})
    }

    fn stream(
        &mut self,
        request: ModelRequest<'_>,
        heard: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ModelError> {
        if request.offers.is_empty() {
            return self.ask(request, heard);
        }
        // What comes is a form then; its words are shown once it is whole.
        let reply = self.ask(request, &mut |_| {})?;
        if !reply.text.is_empty() {
            heard(&reply.text);
        }
        Ok(reply)
    }
}

/// Tells the process to stop; whether it did, so that it can be asked again.
fn has_stopped(process: &mut Process) -> bool {
    process.tell(Order::Stop);
    let began = Instant::now();
    while began.elapsed() < GRACE {
        match process.hear(TICK) {
            Ok(Some(Said::Done(_) | Said::Failed(_))) => return true,
            Ok(None | Some(Said::Piece(_))) => {}
            Ok(Some(Said::Loaded(_))) | Err(_) => return false,
        }
    }
    false
}

fn error(failed: Failed, process: &Process) -> ModelError {
    match failed {
        Failed::NotClosedIn(why) => ModelError::Died(format!(
            "it could not close itself in, so it read nothing: {}",
            super::wire::one_line(&why)
        )),
        Failed::NotLoaded(why) => ModelError::Load(match process.last_complaint() {
            Some(words) => format!("{} ({words})", super::wire::one_line(&why)),
            None => super::wire::one_line(&why),
        }),
        Failed::TooLong { tokens, context } => ModelError::Full {
            takes: Some(tokens),
            holds: Some(context),
        },
        Failed::Grammar => ModelError::Load("it cannot be held to the form of the answer".into()),
        Failed::NotText => ModelError::Unreadable("it is not UTF-8".to_owned()),
        Failed::Broke(why) => ModelError::Unreadable(super::wire::one_line(&why)),
    }
}

/// Runs as a model's process and exits, if that is what this process was
/// started for; otherwise returns at once. There must be one thread yet.
pub fn maybe_run_as_process() {
    if !crate::ambient::is_called_with(WORD) {
        return;
    }
    #[cfg(feature = "llama")]
    let code = helper::run();
    #[cfg(not(feature = "llama"))]
    let code = {
        eprintln!("{NOT_BUILT_IN}");
        i32::from(crate::exit::ENVIRONMENT)
    };
    std::process::exit(code);
}
