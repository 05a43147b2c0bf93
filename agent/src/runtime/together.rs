//! Several calls of one agent at the same time.
//!
//! What for: a model asks for several files at once, or for two searches of
//! the network, and neither has to wait for the other. Why here: the session
//! and its ledger are one thing under one lock ([`Machine`]), so a call may be
//! made from any thread: each is decided on its own, its records are written
//! and its permits spent in one turn, and what is revoked meanwhile permits
//! nothing more. The person is one, too: questions of all calls are put by the
//! thread that owns the runtime, in the order of the calls.
//!
//! It must never run calls that could get in each other's way (the core's plan
//! says which those are), and never let what one brought decide about another:
//! the model proposed all of them before it saw any.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use hermitcrab_core::{
    approval::{Question, QuestionId, Reply},
    grant::{AgentId, GrantId},
    label::Source,
    outcome::DenialCode,
    standing::PortableCap,
    tool::Tool,
};
use hermitcrab_sandbox::Journal;
use serde_json::{Value, json};

use super::{
    Ceilings, Runtime, RuntimeConfig, Steering,
    afoot::Afoot,
    agent_state::AgentState,
    background,
    external::Declared,
    machine::Machine,
    mounts::Mounts,
    result::{Asked, CallReport, ChangeSummary, Fate},
    sandboxes::Made,
    warden,
    writers::Writers,
};
use crate::{
    ports::{BufferPort, Clock, FileDiff, Keep, Prompt, UserPort},
    store::keeper::Keeper,
    text::pyjson,
};

/// Calls that run at the same time at most.
const TOGETHER_MAX: usize = 8;

/// A call as it is proposed: the tool and its arguments.
pub type Proposal<'a> = (&'a str, &'a Value);

/// Everything a call needs in a thread of its own.
struct Share {
    machine: Machine,
    mounts: Mounts,
    journal: Option<Journal>,
    sandboxes: Made,
    clock: Arc<dyn Clock>,
    by: AgentId,
    state: AgentState,
    writers: Writers,
    afoot: Afoot,
    externals: Vec<Declared>,
    config: RuntimeConfig,
    ceilings: Ceilings,
    steering: Option<Steering>,
    has_buffers: bool,
    hears_words: bool,
    is_an_editors: bool,
    ends_with_its_turn: bool,
    adopted: warden::Adopted,
    store: Option<Keeper>,
}

/// What a call leaves when it is over.
struct Left {
    report: CallReport,
    state: AgentState,
    heard: Vec<Source>,
    told: Vec<String>,
}

/// A question with everything that is shown with it.
struct Asking {
    question: Question,
    shown: String,
    files: Vec<FileDiff>,
    besides: Vec<String>,
    portable: Vec<Option<PortableCap>>,
    reply: Sender<(Reply, Keep)>,
}

/// A question that wants words.
struct Wording {
    question: String,
    choices: Option<Vec<String>>,
    reply: Sender<Option<String>>,
}

/// What was said to one of them, whose questions come after those of the calls before it and
/// before those of the calls after it.
struct SaidTo {
    /// What its agent held by answers before.
    held: Vec<GrantId>,
    asked: Vec<QuestionId>,
}

/// What of a call waits for the person.
enum Waiting {
    Answer(Box<Asking>),
    Words(Box<Wording>),
}

/// What a call's thread wants of the one that owns the runtime.
enum Wanted {
    /// An answer of the person.
    Answer(usize, Box<Asking>),
    /// Words of the person.
    Words(usize, Box<Wording>),
    /// The session did not take the answer to this question.
    NotTaken(QuestionId),
    /// The text an editor shows.
    Text(String, Sender<Option<String>>),
    /// A file was put in place.
    Wrote(usize, Box<FileDiff>),
    /// One was changed that is not saved, in words.
    Unsaved(usize, String),
    /// Nothing more: it is over, or broke down.
    Over(usize, Option<Box<Left>>),
}

impl Runtime {
    /// Makes several calls of one agent at the same time; the reports are in
    /// the order of the calls. They must not be able to get in each other's way.
    pub fn call_together(&mut self, by: AgentId, calls: &[Proposal<'_>]) -> Vec<CallReport> {
        // A name that may not be there, and counting how often the same is asked
        // for, are looked at in order.
        let in_turn = calls.iter().any(|(_, args)| self.names_in(args))
            || calls.iter().enumerate().any(|(place, call)| {
                calls
                    .iter()
                    .skip(place.saturating_add(1))
                    .any(|other| other == call)
            });
        let mut reports = Vec::with_capacity(calls.len());
        for part in calls.chunks(TOGETHER_MAX) {
            let first = reports.len();
            if in_turn || part.len() < 2 || self.heed().is_err() {
                // Whatever is wrong is told by the call itself.
                for (place, (tool, args)) in (first..).zip(part) {
                    self.user.about(place);
                    reports.push(self.call(by, tool, args));
                }
            } else {
                let asked = self.looked_after(by);
                let mut came = self.at_once(by, first, part);
                if let Some(report) = came.first_mut() {
                    report.questions.splice(..0, asked);
                }
                reports.extend(came);
            }
        }
        self.user.about(0);
        reports
    }

    /// Decides what commands in the background did before any of the calls looks; what
    /// was asked for that.
    pub(super) fn looked_after(&mut self, by: AgentId) -> Vec<Asked> {
        let (mut asked, mut changes) = (Vec::new(), ChangeSummary::default());
        let tool = Tool::Process;
        let done = self.with_hands((by, tool), &mut asked, &mut changes, |hands| {
            hands.look_after()
        });
        if let Err(stop) = done {
            self.told.push(stop.words());
        }
        asked
    }

    /// `first`: the place of the first of these among all.
    fn at_once(&mut self, by: AgentId, first: usize, calls: &[Proposal<'_>]) -> Vec<CallReport> {
        let (wanted, served) = mpsc::channel();
        if calls.iter().any(writes) {
            // One for all of them, which knows what each wrote. Where it cannot be opened
            // they write all the same.
            let _opened = self.need_journal();
        }
        let shares: Vec<Share> = calls
            .iter()
            .enumerate()
            .map(|(place, _)| self.share(by, calls.get(..place).unwrap_or_default()))
            .collect();
        let mut left: Vec<Option<Box<Left>>> = Vec::new();
        let mut not_started = Vec::new();
        thread::scope(|scope| {
            for ((place, share), (tool, args)) in shares.into_iter().enumerate().zip(calls) {
                let wanted = wanted.clone();
                let started = thread::Builder::new()
                    .name(format!("call {place}"))
                    .spawn_scoped(scope, move || {
                        let ends = Ends { place, wanted };
                        let left = share.call(&ends, tool, args);
                        // Nobody waits for it if the runtime's own thread broke down.
                        let _ = ends.wanted.send(Wanted::Over(place, Some(Box::new(left))));
                    });
                if started.is_err() {
                    not_started.push(place);
                }
            }
            drop(wanted);
            left = self.serve(by, &served, (first, calls.len()), &not_started);
        });
        let lasting = self.agents.get(&by).cloned();
        let mut lasting = lasting.unwrap_or_else(|| AgentState::new(&self.config));
        let was = lasting.clone();
        let mut reports = Vec::with_capacity(calls.len());
        for (place, (left, (tool, args))) in left.into_iter().zip(calls).enumerate() {
            let report = match left {
                Some(left) => {
                    lasting.take_in(&was, left.state);
                    self.agents.insert(by, lasting.clone());
                    self.told.extend(left.told);
                    self.taken_in(by, left.report, &left.heard)
                }
                None if not_started.contains(&place) => {
                    self.user.about(first.saturating_add(place));
                    let report = self.call(by, tool, args);
                    lasting = self.agents.get(&by).cloned().unwrap_or(lasting);
                    report
                }
                None => broken(),
            };
            reports.push(report);
        }
        if let Err(error) = self.settle_wishes() {
            self.told.push(error.to_string());
        }
        reports
    }

    /// Answers what the calls want until all are over. A question waits until
    /// the calls before it are over, so that questions come in their order.
    fn serve(
        &mut self,
        by: AgentId,
        served: &Receiver<Wanted>,
        (begins_at, calls): (usize, usize),
        not_started: &[usize],
    ) -> Vec<Option<Box<Left>>> {
        let mut left: Vec<Option<Box<Left>>> = Vec::new();
        left.resize_with(calls, || None);
        let mut running: Vec<usize> = (0..calls)
            .filter(|place| !not_started.contains(place))
            .collect();
        let mut asked: BTreeMap<usize, Waiting> = BTreeMap::new();
        let mut said: BTreeMap<usize, SaidTo> = BTreeMap::new();
        while let (Some(first), Ok(wanted)) = (running.first().copied(), served.recv()) {
            match wanted {
                Wanted::Answer(place, asking) => {
                    asked.insert(place, Waiting::Answer(asking));
                }
                Wanted::Words(place, wording) => {
                    asked.insert(place, Waiting::Words(wording));
                }
                Wanted::NotTaken(question) => self.user.not_taken(question),
                Wanted::Text(path, reply) => {
                    let text = self.buffers.as_mut().and_then(|port| port.text(&path));
                    // A call that is gone wants nothing.
                    let _ = reply.send(text);
                }
                Wanted::Wrote(place, file) => {
                    self.user.about(begins_at.saturating_add(place));
                    if let Some(port) = &mut self.buffers {
                        port.wrote(by, *file);
                    }
                }
                Wanted::Unsaved(place, words) => {
                    self.user.about(begins_at.saturating_add(place));
                    if let Some(port) = &mut self.buffers {
                        port.unsaved(by, words);
                    }
                }
                Wanted::Over(place, what) => {
                    running.retain(|other| *other != place);
                    let is_overtaken = what.as_ref().is_some_and(|what| {
                        what.report.fate.code() == Some(DenialCode::ChangedSinceShown)
                    });
                    if let Some(said) = said.remove(&place).filter(|_| is_overtaken) {
                        self.void_said(by, &said);
                    }
                    if let (Some(slot), Some(what)) = (left.get_mut(place), what) {
                        *slot = Some(what);
                    }
                }
            }
            let first = running.first().copied().unwrap_or(first);
            let Some(waiting) = asked.remove(&first) else {
                continue;
            };
            self.user.about(begins_at.saturating_add(first));
            match waiting {
                Waiting::Words(wording) => {
                    let choices = wording.choices.as_deref();
                    let words = self.user.clarify(&wording.question, choices);
                    // A call that is gone wants nothing.
                    let _ = wording.reply.send(words);
                }
                Waiting::Answer(asking) => {
                    let said = said.entry(first).or_insert_with(|| SaidTo {
                        held: self.given_by_answers(by),
                        asked: Vec::new(),
                    });
                    said.asked.push(asking.question.id());
                    let answer = self.user.ask_and_keep(Prompt {
                        question: &asking.question,
                        shown: &asking.shown,
                        files: &asking.files,
                        besides: &asking.besides,
                        portable: &asking.portable,
                    });
                    // A call that is gone wants nothing.
                    let _ = asking.reply.send(answer);
                }
            }
        }
        left
    }

    /// What was shown for a call changed before it could be done: no yes to it counts, and what
    /// was said to the calls beside it does.
    fn void_said(&mut self, by: AgentId, said: &SaidTo) {
        if let Some(desk) = &self.desk {
            let is_of_others = |question: &QuestionId| !said.asked.contains(question);
            let wishes = &mut desk.borrow_mut().wishes;
            wishes.retain(|(question, _)| is_of_others(question));
        }
        self.void_given(by, &said.held);
    }

    /// A call's own copy of what it needs, as the calls before it leave it as
    /// far as that can be known.
    fn share(&self, by: AgentId, before: &[Proposal<'_>]) -> Share {
        let state = self.agents.get(&by).cloned();
        let mut state = state.unwrap_or_else(|| AgentState::new(&self.config));
        state
            .reads
            .begin_beside(!before.is_empty(), before.iter().any(writes));
        // A server may run for long, and a question be open for long: what is revoked in
        // the store meanwhile does not cover what comes after it.
        let desk = self.desk.as_ref();
        Share {
            adopted: self.adopted.clone(),
            store: desk.map(|desk| desk.borrow().keeper.another()),
            machine: self.machine.clone(),
            mounts: self.mounts.clone(),
            journal: self.journal.clone(),
            sandboxes: self.sandboxes.clone(),
            clock: Arc::clone(&self.clock),
            by,
            state,
            writers: self.writers.clone(),
            afoot: self.afoot.clone(),
            externals: self.externals.clone(),
            config: self.config.clone(),
            ceilings: self.ceilings.clone(),
            steering: self.steering.clone(),
            has_buffers: self.buffers.is_some(),
            hears_words: self.user.hears_words(),
            is_an_editors: self.is_an_editors,
            ends_with_its_turn: self.ends_with_its_turn,
        }
    }

    /// What a call brought counts from here on, and its text goes out clean.
    fn taken_in(&mut self, by: AgentId, mut report: CallReport, heard: &[Source]) -> CallReport {
        for source in heard {
            if let Err(denial) = self.hear(by, *source) {
                report.fate = Fate::Refused(denial.code());
                report.text = pyjson::text(&json!({ "error": format!(
                    "Denied ({}): {denial}. Next step: {}.",
                    denial.code(),
                    denial.code().next_step()
                ) }));
            }
        }
        report.text = self.outgoing(report.text);
        report
    }
}

/// Whether it is a call that writes files.
fn writes((tool, _): &Proposal<'_>) -> bool {
    matches!(Tool::offered(tool), Some(Tool::WriteFile | Tool::Patch))
}

impl Share {
    fn call(self, ends: &Ends, tool: &str, args: &Value) -> Left {
        let user = Afar {
            hears_words: self.hears_words,
            place: ends.place,
            wanted: ends.wanted.clone(),
        };
        let buffers: Option<Box<dyn BufferPort>> = if self.has_buffers {
            Some(Box::new(user.clone()))
        } else {
            None
        };
        let mut runtime = Runtime {
            machine: self.machine,
            mounts: self.mounts,
            journal: self.journal,
            sandboxes: self.sandboxes,
            user: Box::new(user),
            clock: self.clock,
            agents: BTreeMap::from([(self.by, self.state)]),
            writers: self.writers,
            externals: self.externals,
            jobs: background::Jobs::default(),
            afoot: self.afoot,
            progress: None,
            buffers,
            job_port: None,
            is_an_editors: self.is_an_editors,
            ends_with_its_turn: self.ends_with_its_turn,
            config: self.config,
            ceilings: self.ceilings,
            desk: None,
            adopted: self.adopted,
            store: self.store,
            warden: None,
            control: None,
            exports: None,
            told: Vec::new(),
            end_port: None,
            lost: Vec::new(),
            steering: self.steering,
            heard_late: Some(Vec::new()),
        };
        let report = runtime.call(self.by, tool, args);
        let state = runtime.agents.remove(&self.by);
        Left {
            report,
            state: state.unwrap_or_else(|| AgentState::new(&runtime.config)),
            heard: runtime.heard_late.unwrap_or_default(),
            told: runtime.told,
        }
    }
}

/// Says that a call is over, however it ends.
struct Ends {
    place: usize,
    wanted: Sender<Wanted>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        // After a proper end this says nothing new, and nobody need hear it.
        let _ = self.wanted.send(Wanted::Over(self.place, None));
    }
}

/// The person and their editor, seen from a call's thread.
#[derive(Clone)]
struct Afar {
    hears_words: bool,
    place: usize,
    wanted: Sender<Wanted>,
}

impl UserPort for Afar {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.ask_and_keep(prompt).0
    }

    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        let (reply, answer) = mpsc::channel();
        let asking = Box::new(Asking {
            question: prompt.question.clone(),
            shown: prompt.shown.to_owned(),
            files: prompt.files.to_vec(),
            besides: prompt.besides.to_vec(),
            portable: prompt.portable.to_vec(),
            reply,
        });
        match self.wanted.send(Wanted::Answer(self.place, asking)) {
            Ok(()) => answer.recv().unwrap_or((Reply::Failed, Keep::Nothing)),
            Err(_) => (Reply::Failed, Keep::Nothing),
        }
    }

    fn hears_words(&self) -> bool {
        self.hears_words
    }

    fn clarify(&mut self, question: &str, choices: Option<&[String]>) -> Option<String> {
        let (reply, words) = mpsc::channel();
        let wording = Box::new(Wording {
            question: question.to_owned(),
            choices: choices.map(<[String]>::to_vec),
            reply,
        });
        self.wanted.send(Wanted::Words(self.place, wording)).ok()?;
        words.recv().ok()?
    }

    fn not_taken(&mut self, question: QuestionId) {
        // Where nobody listens, nothing is kept.
        let _told = self.wanted.send(Wanted::NotTaken(question));
    }
}

impl BufferPort for Afar {
    fn text(&mut self, path: &str) -> Option<String> {
        let (reply, text) = mpsc::channel();
        let wanted = Wanted::Text(path.to_owned(), reply);
        self.wanted.send(wanted).ok()?;
        text.recv().ok()?
    }

    fn wrote(&mut self, _by: AgentId, file: FileDiff) {
        // Where nobody listens, nobody sees it.
        let _told = self.wanted.send(Wanted::Wrote(self.place, Box::new(file)));
    }

    fn unsaved(&mut self, _by: AgentId, words: String) {
        // The same.
        let _told = self.wanted.send(Wanted::Unsaved(self.place, words));
    }
}

fn broken() -> CallReport {
    let message = "the call broke down; what it did until then is in the ledger".to_owned();
    CallReport {
        text: pyjson::text(&json!({ "error": message })),
        fate: Fate::Failed(message),
        questions: Vec::new(),
        changes: ChangeSummary::default(),
        elapsed: std::time::Duration::ZERO,
    }
}
