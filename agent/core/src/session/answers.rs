//! Questions, answers, and what they are worth.

use alloc::vec::Vec;

use super::calls::{Basis, Stage};
use super::{Effect, Effects, GrantSpec, Session};
use crate::action::Action;
use crate::approval::{
    Answer, Asking, CallId, Question, QuestionId, Remembered, RememberedId, Reply, Said, Scope,
};
use crate::audit::{Entry, Record};
use crate::authority::{Authority, Cap, Object, Verb};
use crate::digest::Digest;
use crate::fault::{self, Fault};
use crate::grant::{AgentId, Grant, GrantId, Lifetime, Origin, Uses};
use crate::limits::{GRANT_LIFETIME_MAX, QUESTION_LIFETIME};
use crate::monitor::{Consent, Gap, Request};
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;
use crate::rules::Judgement;

/// What is to stay of an answer beside what it says.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Keep {
    Forget,
    Remember,
    /// With a yes, more than what was shown.
    Hold(Authority),
}

impl Session {
    /// Puts a question to the user.
    pub(super) fn ask(&mut self, question: Question) -> Effects<'static> {
        self.questions_made = self.questions_made.saturating_add(1);
        let record = self.ledger.append(
            self.now,
            &Entry::Asked {
                question: question.id,
                call: question.call,
                by: question.by,
                because: question.because,
                digest: question.digest,
            },
        );
        self.questions.insert(question.id, question.clone());
        let mut effects = Effects::for_call(question.call);
        effects.push(Effect::Record(record));
        effects.push(Effect::Ask(question));
        effects
    }

    /// The question about the gap of a request.
    pub(super) fn new_question(&self, request: &Request<'_>, gap: Gap) -> Question {
        let lasting = request
            .actions()
            .iter()
            .all(|action| self.rules.judge(request.tool(), action) == Judgement::Plain);
        let mut question = Question {
            id: QuestionId(self.questions_made),
            call: request.call(),
            by: request.by(),
            tool: request.tool(),
            because: gap.because,
            // What is asked about each time cannot be answered for longer.
            widest: if lasting { Scope::Always } else { Scope::Once },
            is_after_reading: gap.reasons.contains(&DenialCode::UntrustedFlow),
            actions: request.actions().to_vec(),
            uncovered: gap.uncovered,
            digest: Digest::NONE,
            open_until: self.now.after(QUESTION_LIFETIME),
        };
        question.digest = Question::digest_of(self.hash, &question);
        question
    }

    pub(super) fn answer(&mut self, answer: Answer, keep: Keep) -> Effects<'_> {
        let Some(question) = self.questions.remove(&answer.question) else {
            return self.refuse(
                None,
                Denial::new(DenialCode::UnknownAnswer, answer.question),
            );
        };
        let call = question.call;
        let mut records = alloc::vec![self.ledger.append(
            self.now,
            &Entry::Answered {
                question: question.id,
                reply: answer.reply.as_str(),
                digest: answer.digest,
            },
        )];
        let refuse = |code: DenialCode| Denial::new(code, question.id).because(question.because);
        let verdict = if self.now > question.open_until {
            Err(refuse(DenialCode::NoAnswer))
        } else if answer.digest != question.digest && !fault::is(Fault::AnswerNotBoundToDigest) {
            Err(refuse(DenialCode::ChangedSinceShown))
        } else if matches!(answer.reply, Reply::Yes(_)) && !self.may_be_answered(&question) {
            let about = format_args!("the right to ask, while {} was open", question.id);
            Err(Denial::new(DenialCode::Revoked, about).because(question.because))
        } else {
            answer.reply.verdict().map_err(refuse)
        };
        // Only a clear word about what was shown is worth keeping.
        let said = match (&verdict, &answer.reply) {
            (Ok(_), _) => Some(Said::Yes),
            (Err(denial), Reply::No) if denial.code() == DenialCode::RejectedByUser => {
                Some(Said::No)
            }
            (Err(_), _) => None,
        };
        if let (Keep::Remember, Some(said)) = (&keep, said) {
            records.extend(self.remember(&question, said));
        }
        let scope = match verdict {
            Ok(scope) => scope.min(question.widest),
            Err(denial) => return self.refuse(Some(call), denial).after_all(records),
        };
        let granted = match keep {
            Keep::Hold(wider) => self.grant_wider(&question, scope, wider),
            Keep::Forget | Keep::Remember => self.grant_for(&question, scope),
        };
        let (grant, record) = match granted {
            Ok(made) => made,
            Err(denial) => return self.refuse(Some(call), denial).after_all(records),
        };
        records.push(record);
        let stage = self
            .flights
            .get(&call)
            .map(|flight| (flight.stage, flight.tool));
        let verbs = match stage {
            Some((Stage::Starting, tool)) => tool.verbs(),
            Some((Stage::Running, tool)) => tool.effect_verbs(),
            Some((Stage::Stopped(code), _)) => {
                return self
                    .refuse_after(Some(grant), call, Denial::new(code, call))
                    .after_all(records);
            }
            None => &[],
        };
        let places = &question.uncovered;
        let consent = Consent { grant, places };
        self.decide(call, question.actions, verbs, Basis::Consent(consent))
            .after_all(records)
    }

    /// Whether its agent still has the right it was asked by, be its uses over: whoever ends
    /// that while the question is open, by `reject_all` say, wants nothing done by an answer.
    fn may_be_answered(&self, question: &Question) -> bool {
        let is_right = |grant: &&Grant| {
            let caps = grant.authority().caps();
            caps.iter().any(|cap| cap.verb() == Verb::UserAsk)
        };
        let mut rights = self.table.held_by(question.by).filter(is_right);
        rights.any(|grant| self.table.stands(grant.id(), self.now))
            || fault::is(Fault::AsksWithoutTheRight)
    }

    /// The grant a yes makes: the uncovered effects as shown, and no more.
    fn grant_for(
        &mut self,
        question: &Question,
        scope: Scope,
    ) -> Result<(GrantId, Record), Denial> {
        let (uses, lifetime) = scope.limits(question.uncovered.len());
        let caps = question.uncovered().map(|action| match action.object() {
            Object::Dir { dir, .. }
                if fault::is(Fault::ApproveWholeClass) && scope != Scope::Once =>
            {
                let object = Object::tree(*dir, RelPath::root());
                Cap::new(action.verb(), object).unwrap_or_else(|_| action.cap().clone())
            }
            Object::Dir { dir, below, .. } if fault::is(Fault::AnswersAreForTrees) => {
                let object = Object::tree(*dir, below.clone());
                Cap::new(action.verb(), object).unwrap_or_else(|_| action.cap().clone())
            }
            _ => action.cap().clone(),
        });
        let spec = GrantSpec {
            holder: if fault::is(Fault::AnswerGrantsTheFirst) {
                AgentId::FIRST
            } else {
                question.by
            },
            authority: Authority::from_caps(caps)?,
            uses,
            lifetime,
        };
        self.grant(&spec, Origin::Answer(scope))
    }

    /// The grant of a yes to more than what was shown, if it may be given so: in the
    /// place of what was shown, so that one grant covers that and what comes. A yes for
    /// one time is for nothing that comes.
    fn grant_wider(
        &mut self,
        question: &Question,
        scope: Scope,
        wider: Authority,
    ) -> Result<(GrantId, Record), Denial> {
        let is_asked = |cap: &Cap| {
            matches!(cap.object(), Object::Dir { .. })
                && question.uncovered().any(|asked| asked.verb() == cap.verb())
        };
        let may_last = scope > Scope::Once;
        let is_of_its_kinds = wider.caps().iter().all(is_asked);
        let holds_what_was_shown = question
            .uncovered()
            .all(|asked| wider.covers_cap(asked.cap()));
        let is_in_order = may_last && is_of_its_kinds && holds_what_was_shown;
        if !is_in_order && !fault::is(Fault::HoldsWhateverIsSaid) {
            return self.grant_for(question, Scope::Once);
        }
        let (uses, lifetime) = Scope::Session.limits(question.uncovered.len());
        let spec = GrantSpec {
            holder: question.by,
            authority: wider,
            uses,
            lifetime,
        };
        self.grant(&spec, Origin::Answer(Scope::Session))
    }

    /// The grant a stand-in's yes makes: the uncovered effects, this one time.
    pub(super) fn grant_for_gap(
        &mut self,
        by: AgentId,
        actions: &[Action],
        gap: &Gap,
        origin: Origin,
    ) -> Result<(GrantId, Record), Denial> {
        let caps: Vec<Cap> = gap
            .uncovered
            .iter()
            .filter_map(|place| actions.get(*place))
            .map(|action| action.cap().clone())
            .collect();
        let (uses, lifetime) = Scope::Once.limits(caps.len());
        let spec = GrantSpec {
            holder: by,
            authority: Authority::from_caps(caps)?,
            uses,
            lifetime,
        };
        self.grant(&spec, origin)
    }

    /// A refusal of a call in spite of a yes. A yes for one time was for what was
    /// shown: no other call, with another content, may find it lying there.
    pub(super) fn refuse_after(
        &mut self,
        consent: Option<GrantId>,
        call: CallId,
        denial: Denial,
    ) -> Effects<'static> {
        let is_counted = |grant: &GrantId| {
            let grant = self.table.get(*grant);
            grant.is_some_and(|grant| matches!(grant.limits().uses, Uses::AtMost(_)))
        };
        let ended = consent
            .filter(is_counted)
            .and_then(|grant| self.take_back(&[grant]));
        let refused = self.refuse(Some(call), denial);
        match ended {
            Some(record) => refused.after(record),
            None => refused,
        }
    }

    fn remember(&mut self, question: &Question, said: Said) -> Vec<Record> {
        // What must be asked about each time is not kept, and neither is what
        // has no meaning outside this session.
        if question.widest == Scope::Once {
            return Vec::new();
        }
        let isolation = self.rules.isolation();
        let mut records = Vec::new();
        for action in question.uncovered() {
            let Some(cap) = self.rules.portable(action) else {
                continue;
            };
            let row = Remembered {
                cap,
                digest: action.digest(),
                isolation,
                said,
                at: self.now,
            };
            // A full memory keeps what it has; the user is asked again.
            if let Ok(remembered) = self.memory.remember(row) {
                records.push(self.ledger.append(
                    self.now,
                    &Entry::Remembered {
                        remembered,
                        said,
                        question: question.id,
                    },
                ));
            }
        }
        records
    }

    pub(super) fn forget(&mut self, which: Option<RememberedId>) -> Effects<'static> {
        let count = match which {
            Some(id) => usize::from(self.memory.forget(id)),
            None => self.memory.clear(),
        };
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger.append(self.now, &Entry::Forgot { count }),
        ));
        effects
    }

    /// The mode is the user's; the right to ask goes with it.
    pub(super) fn set_asking(&mut self, asking: Asking) -> Effects<'static> {
        self.asking = asking;
        let mut effects = Effects::none();
        effects.push(Effect::Record(
            self.ledger.append(self.now, &Entry::Asking { asking }),
        ));
        let right: Vec<GrantId> = self
            .table
            .held_by(AgentId::FIRST)
            .filter(|grant| grant.origin() == Origin::Session)
            .filter(|grant| {
                grant
                    .authority()
                    .caps()
                    .iter()
                    .any(|cap| cap.verb() == Verb::UserAsk)
            })
            .map(Grant::id)
            .collect();
        let may_ask = right
            .iter()
            .any(|id| self.table.usable(*id, self.now).is_ok());
        match asking {
            Asking::Refuse => {
                for id in right {
                    effects.append(self.revoke(id));
                }
            }
            Asking::Prompt | Asking::ApproveAll if may_ask => {}
            Asking::Prompt | Asking::ApproveAll => {
                let made = self.own_right(Verb::UserAsk);
                effects.extend(made.map(Effect::Record).into_iter());
            }
        }
        effects
    }

    /// A right every session's first agent has for itself.
    pub(super) fn own_right(&mut self, verb: Verb) -> Option<Record> {
        // If one cannot be made, the agent simply does not hold it.
        let cap = Cap::new(verb, Object::Session).ok()?;
        let spec = GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::of(cap),
            uses: Uses::Uncounted,
            lifetime: Lifetime::For(GRANT_LIFETIME_MAX),
        };
        self.grant(&spec, Origin::Session)
            .ok()
            .map(|(_, record)| record)
    }

    /// Silence is an answer, too.
    pub(super) fn close_stale_questions(&mut self, effects: &mut Effects<'_>) {
        let now = self.now;
        let stale: Vec<Question> = self
            .questions
            .extract_if(.., |_, question| now > question.open_until)
            .map(|(_, question)| question)
            .collect();
        for question in stale {
            let denial = Denial::new(DenialCode::NoAnswer, question.id).because(question.because);
            effects.append(self.refuse(Some(question.call), denial));
        }
    }
}
