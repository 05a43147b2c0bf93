//! One event for the session, and everything that follows from it.
//!
//! Records reach the disk before permits are spent, those of a look before what
//! was seen is told; a question is put in full and its answer bound to what was
//! shown; whatever is not a permit is a stop.

use std::path::Path;

use hermitcrab_core::{
    Permit,
    action::Action,
    approval::{Answer, CallId, Question, Reply, Scope, Stance},
    authority::{Authority, Cap, Object},
    fault::{self, Fault},
    label::{Label, Source},
    outcome::{Denial, DenialCode, Outcome},
    rules::Judgement,
    session::{Event, Parts, Session},
};

use super::{afoot::Afoot, machine::Machine, mounts, result::Asked, standing::StoredGrants};
use crate::{
    audit::LedgerError,
    ports::{FileDiff, Keep, Prompt, Side, UserPort, Wider},
    text::rows,
};

/// Lines a person sees at once.
const LINES_AT_ONCE: usize = 30;
/// Places named of those that are asked about each time.
const STANDING_OUT_MAX: usize = 8;

/// What the last line of a long question begins with.
pub const STANDS_OUT: &str = "of this, asked about each time: ";

/// What is put before a person.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// All of it in words.
    pub text: String,
    /// The files of it.
    pub files: Vec<FileDiff>,
    /// What else happens.
    pub besides: Vec<String>,
}

impl Shown {
    /// The same, with these lines about what else happens.
    #[must_use]
    pub(super) fn with(mut self, lines: Vec<String>) -> Self {
        for line in &lines {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.besides.extend(lines);
        self
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Why a call goes no further.
#[derive(Clone, Debug)]
pub enum Stop {
    /// It was refused.
    Refused {
        /// The refusal.
        denial: Denial,
        /// Whether the user was asked.
        asked: bool,
    },
    /// There is no such file.
    Missing,
    /// The system failed; for the model.
    Io(String),
    /// The same, with the kind of the system's own error.
    System(std::io::ErrorKind, String),
    /// The agent's own machinery failed.
    Broken(String),
}

impl Stop {
    /// A refusal nobody was asked about.
    #[must_use]
    pub fn refused(denial: Denial) -> Self {
        Self::Refused {
            denial,
            asked: false,
        }
    }

    /// The reason in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Refused { denial, .. } => denial.to_string(),
            Self::Missing => "no such file or directory".to_owned(),
            Self::Io(message) | Self::System(_, message) | Self::Broken(message) => message.clone(),
        }
    }

    /// Is it a refusal with this code that nobody was asked about?
    pub(super) fn is(&self, code: DenialCode) -> bool {
        match self {
            Self::Refused { denial, asked } => !asked && denial.code() == code,
            Self::Missing | Self::Io(_) | Self::System(..) | Self::Broken(_) => false,
        }
    }
}

/// What a turn works with.
pub struct Turn<'r> {
    /// Decides and remembers.
    pub machine: &'r Machine,
    /// Answers.
    pub user: &'r mut dyn UserPort,
    /// Collects what was asked.
    pub questions: &'r mut Vec<Asked>,
    /// What every question here begins with.
    pub note: Option<&'r str>,
    /// Who has to see what it changes.
    pub(super) afoot: &'r Afoot,
    /// What outlives the session, and can be ended while a question is open.
    pub(super) kept: StoredGrants<'r>,
}

/// What a call may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It looks at files and directories, and nothing else.
    Looks,
    /// Anything.
    Acts,
}

/// What a person lets be held, in the session's own handles.
fn authority(session: &Session, wider: &Wider) -> Option<Authority> {
    let place = mounts::from_root(Path::new(&wider.dir)).ok()?;
    let (dir, below) = session.rules().place(&place)?;
    let caps: Option<Vec<Cap>> = wider
        .verbs
        .iter()
        .map(|verb| {
            let below = below.clone();
            Cap::new(*verb, Object::tree(dir, below)).ok()
        })
        .collect();
    Authority::from_caps(caps?).ok()
}

/// What one step came to.
enum Came<R> {
    Done(CallId, R),
    Asked(Question),
    Refused(Denial),
}

impl Turn<'_> {
    /// Steps the session; if it permits, spends the permits before anybody
    /// else can step it. While the user is asked, others can.
    pub fn begin<R, S: Into<Shown>>(
        &mut self,
        event: Event,
        shown: impl FnOnce(&Question) -> S,
        spend: impl FnOnce(Vec<Permit<'_>>) -> R,
    ) -> Result<(CallId, R), Stop> {
        self.begin_reaching(Reach::Acts, event, shown, spend)
    }

    /// The same for a call of which it is known whether it only looks.
    pub(super) fn begin_reaching<R, S: Into<Shown>>(
        &mut self,
        reach: Reach,
        event: Event,
        shown: impl FnOnce(&Question) -> S,
        spend: impl FnOnce(Vec<Permit<'_>>) -> R,
    ) -> Result<(CallId, R), Stop> {
        let is_commit = matches!(event, Event::Effects { .. });
        let mut spend = Some(spend);
        let question = match self.step(reach, event, &mut spend)? {
            Came::Done(call, done) => return Ok((call, done)),
            Came::Refused(denial) => return Err(Stop::refused(denial)),
            Came::Asked(question) => question,
        };
        let Shown {
            text,
            files,
            besides,
        } = shown(&question).into();
        let (shown, portable) = self.machine.look(|session| {
            (
                with_what_stands_out(
                    session,
                    &question,
                    with_who_asks(
                        session,
                        &question,
                        with_what_was_read(session, &question, text),
                    ),
                ),
                super::standing::portable(session, &question),
            )
        });
        let shown = match self.note {
            Some(note) => format!("{note}\n{shown}"),
            None => shown,
        };
        // Names, too, are chosen by somebody else: none draws on what asks about it.
        let shown = super::visible::escaped(&shown);
        let mut keep = Keep::Nothing;
        let reply = if is_commit && fault::is(Fault::CommitWithoutAsking) {
            Reply::Yes(Scope::Once)
        } else {
            let (said, wanted) = self.user.ask_and_keep(Prompt {
                question: &question,
                shown: &shown,
                files: &files,
                besides: &besides,
                portable: &portable,
            });
            self.questions.push(Asked {
                shown,
                answer: said.as_str().to_owned(),
            });
            // What the session itself remembers says nothing of what would be lost.
            let loses =
                |file: &FileDiff| matches!(file.before, Side::Text(_) | Side::Opaque { .. });
            if wanted != Keep::Repeat || !files.iter().any(loses) {
                keep = wanted;
            }
            said
        };
        let is_yes = matches!(reply, Reply::Yes(_));
        let answer = Answer {
            question: question.id(),
            digest: question.digest(),
            reply,
        };
        let answer = match keep {
            Keep::Nothing => Event::Answer(answer),
            // Where nothing outlives the session, it repeats the answer by itself.
            Keep::Repeat => Event::AnswerAndRemember(answer),
            Keep::Hold(wider) => match self.machine.look(|session| authority(session, &wider)) {
                Some(wider) => Event::AnswerHolding { answer, wider },
                None => Event::Answer(answer),
            },
        };
        // Minutes may have passed. Whoever looks after what runs looks after no call that has
        // yet to begin, and what covered a part of it may have been ended in the store.
        let ended = self.kept.end_what_was_revoked(self.machine);
        match ended
            .map_err(unwritable)
            .and_then(|_| self.step(reach, answer, &mut spend))?
        {
            Came::Done(call, done) => Ok((call, done)),
            Came::Refused(denial) => {
                if is_yes {
                    self.user.not_taken(question.id());
                }
                Err(Stop::Refused {
                    denial,
                    asked: true,
                })
            }
            // An answer is never answered with a question.
            Came::Asked(question) => Err(Stop::Refused {
                denial: Denial::new(DenialCode::UnknownAnswer, question.id()),
                asked: true,
            }),
        }
    }

    fn step<R, S: FnOnce(Vec<Permit<'_>>) -> R>(
        &self,
        reach: Reach,
        event: Event,
        spend: &mut Option<S>,
    ) -> Result<Came<R>, Stop> {
        let act = |parts: Parts<'_>| {
            if let Some(question) = parts.question {
                return Came::Asked(question);
            }
            if let Some((_, denial)) = parts.denials.into_iter().next() {
                return Came::Refused(denial);
            }
            match (parts.call, spend.take()) {
                (Some(call), Some(spend)) => {
                    let touches = self.afoot.touches(&parts.permits);
                    let done = spend(parts.permits);
                    self.afoot.touched(touches);
                    Came::Done(call, done)
                }
                _ => Came::Refused(Denial::new(DenialCode::UnknownCall, "")),
            }
        };
        let came = match reach {
            Reach::Looks => self.machine.turn_looking(event, act),
            Reach::Acts => self.machine.turn(event, act),
        };
        match came {
            Ok(Came::Refused(denial)) => Ok(Came::Refused(self.machine.spelled(denial))),
            Ok(came) => Ok(came),
            Err(error) => Err(unwritable(error)),
        }
    }

    /// Reports that a call is over that only looked.
    pub fn finish_look(&mut self, call: CallId, outcome: Outcome) -> Result<(), Stop> {
        self.machine
            .turn_looking(Event::Finished { call, outcome }, |_| ())
            .map_err(|error| Stop::Broken(error.to_string()))
    }

    /// Reports that a call is over.
    pub fn finish(&mut self, call: CallId, outcome: Outcome) -> Result<(), Stop> {
        let became = became(&outcome);
        match self.machine.step(Event::Finished { call, outcome }) {
            Ok(_) => Ok(()),
            Err(error) => Err(Stop::Broken(format!(
                "{became}, and this cannot be recorded ({error}), so nothing more is done in this session. Next step: {}.",
                DenialCode::LedgerUnwritable.next_step()
            ))),
        }
    }
}

/// Nothing was spent, so it is a refusal like any other.
fn unwritable(error: LedgerError) -> Stop {
    Stop::refused(Denial::new(DenialCode::LedgerUnwritable, error))
}

/// What became of a call, for a reader who is told of nothing else: a change may be
/// there that no record tells of.
const fn became(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "it was done, and what it changed stands",
        Outcome::Discarded(_) => "it ran, and what it changed is discarded",
        Outcome::Refused(_) => "it was refused, and nothing was changed",
        Outcome::TimedOut => "it took too long and was ended; what it changed until then stands",
        Outcome::Stopped => "it was stopped, and what it changed is discarded",
        Outcome::Failed => "it failed",
    }
}

/// A question of an agent that nobody talks to says whose it is.
fn with_who_asks(session: &Session, question: &Question, shown: String) -> String {
    match session.parent(question.by()) {
        Some(parent) => format!(
            "{} asks, which {parent} has handed work to\n{shown}",
            question.by()
        ),
        None => shown,
    }
}

/// A question about what an agent may have been told to do says so.
fn with_what_was_read(session: &Session, question: &Question, shown: String) -> String {
    let label = session.flow().label(question.by());
    let read: Vec<&str> = label
        .into_iter()
        .flat_map(Label::sources)
        .filter(|source| !matches!(source, Source::User | Source::Model))
        .map(Source::as_str)
        .collect();
    let says = match question.because() {
        _ if read.is_empty() => return shown,
        DenialCode::UntrustedFlow => "this is granted, but",
        // The mode would have allowed it before: that nobody granted it is not why it is asked.
        DenialCode::NoCap if is_asked_for_what_was_read(session, question) => {
            "the mode approve_all allows this, but"
        }
        _ => return shown,
    };
    format!(
        "{says} {} has read data since (from: {}), which may be what asks for it\n{shown}",
        question.by(),
        read.join(", ")
    )
}

/// Whether the mode of the session would allow all that is asked about, had nothing been read.
fn is_asked_for_what_was_read(session: &Session, question: &Question) -> bool {
    let rules = session.rules();
    let (by, call) = (question.by(), question.call());
    let allows = |action: &Action| {
        session.mode_on(action) == Stance::Allow
            && rules.judge(question.tool(), action) == Judgement::Plain
    };
    let taints = |action: &Action| session.flow().taints(by, call, action);
    question.uncovered().all(allows) && question.uncovered().any(taints)
}

/// Where a question is long, what of it is asked about whatever is held stands
/// at its end, beside where it is answered: the rest may have pushed it off the screen.
fn with_what_stands_out(session: &Session, question: &Question, shown: String) -> String {
    let rules = session.rules();
    let all: Vec<String> = question
        .uncovered()
        .filter(|action| matches!(rules.judge(question.tool(), action), Judgement::Ask(..)))
        .filter_map(|action| rules.portable(action))
        .map(|cap| cap.asked().to_string())
        .collect();
    if all.is_empty() || rows::count(&shown) <= LINES_AT_ONCE {
        return shown;
    }
    let named = all.iter().take(STANDING_OUT_MAX);
    let mut line = named.cloned().collect::<Vec<_>>().join(", ");
    if all.len() > STANDING_OUT_MAX {
        line.push_str(&format!(" and {} more", all.len() - STANDING_OUT_MAX));
    }
    format!("{}\n{STANDS_OUT}{line}\n", shown.trim_end_matches('\n'))
}
