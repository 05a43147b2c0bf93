//! One event for the session, and everything that follows from it.
//!
//! Records reach the disk before permits are spent; a question is put in full
//! and its answer bound to what was shown; whatever is not a permit is a stop.

use hermitcrab_core::{
    Permit,
    approval::{Answer, CallId, Question, Reply, Scope},
    fault::{self, Fault},
    label::{Label, Source},
    outcome::{Denial, DenialCode, Outcome},
    session::{Event, Parts, Session},
};

use super::call::Asked;
use crate::{
    audit::Ledger,
    ports::{Clock, Prompt, UserPort},
};

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
            Self::Io(message) | Self::Broken(message) => message.clone(),
        }
    }

    /// Is it a refusal with this code that nobody was asked about?
    pub(super) fn is(&self, code: DenialCode) -> bool {
        match self {
            Self::Refused { denial, asked } => !asked && denial.code() == code,
            Self::Missing | Self::Io(_) | Self::Broken(_) => false,
        }
    }
}

/// What a turn works with.
pub struct Turn<'r> {
    /// Decides.
    pub session: &'r mut Session,
    /// Remembers.
    pub ledger: &'r mut Ledger,
    /// Answers.
    pub user: &'r mut dyn UserPort,
    /// Tells the time.
    pub clock: &'r dyn Clock,
    /// Collects what was asked.
    pub questions: &'r mut Vec<Asked>,
}

impl Turn<'_> {
    /// Steps the session; if it permits, spends the permits.
    pub fn begin<R>(
        &mut self,
        event: Event,
        shown: impl FnOnce(&Question) -> String,
        spend: impl FnOnce(Vec<Permit<'_>>) -> R,
    ) -> Result<(CallId, R), Stop> {
        let is_commit = matches!(event, Event::Effects { .. });
        let mut asked = false;
        let first = self.session.step(self.clock.now(), event).into_parts();
        record(self.ledger, &first)?;
        let Parts {
            call,
            permits,
            question,
            denials,
            ..
        } = first;
        let (call, permits, denials) = match question {
            None => (call, permits, denials),
            Some(question) => {
                drop(permits);
                asked = true;
                let shown = with_what_was_read(self.session, &question, shown(&question));
                let reply = if is_commit && fault::is(Fault::CommitWithoutAsking) {
                    Reply::Yes(Scope::Once)
                } else {
                    let portable = super::standing::portable(self.session, &question);
                    let reply = self.user.ask(Prompt {
                        question: &question,
                        shown: &shown,
                        portable: &portable,
                    });
                    self.questions.push(Asked {
                        shown,
                        answer: reply.as_str().to_owned(),
                    });
                    reply
                };
                let answer = Answer {
                    question: question.id(),
                    digest: question.digest(),
                    reply,
                };
                let second = self
                    .session
                    .step(self.clock.now(), Event::Answer(answer))
                    .into_parts();
                record(self.ledger, &second)?;
                (second.call, second.permits, second.denials)
            }
        };
        if let Some((_, denial)) = denials.into_iter().next() {
            return Err(Stop::Refused { denial, asked });
        }
        let call = call.ok_or_else(|| Stop::refused(Denial::new(DenialCode::UnknownCall, "")))?;
        Ok((call, spend(permits)))
    }

    /// Reports that a call is over.
    pub fn finish(&mut self, call: CallId, outcome: Outcome) -> Result<(), Stop> {
        let event = Event::Finished { call, outcome };
        let parts = self.session.step(self.clock.now(), event).into_parts();
        record(self.ledger, &parts)
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
    if question.because() == DenialCode::UntrustedFlow && !read.is_empty() {
        format!(
            "this is granted, but {} has read data since (from: {}), which may be what asks for it\n{shown}",
            question.by(),
            read.join(", ")
        )
    } else {
        shown
    }
}

fn record(ledger: &mut Ledger, parts: &Parts<'_>) -> Result<(), Stop> {
    ledger
        .append(&parts.records)
        .map_err(|error| Stop::Broken(error.to_string()))
}
