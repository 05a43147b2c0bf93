//! A session with one directory, and short ways to step it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code, reason = "each test file uses its own part of this one")]

use hermitcrab_core::{
    action::Action,
    approval::{Answer, CallId, Question, Reply},
    audit::{Head, Record},
    authority::{Authority, Cap, DirId, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, GrantId, Lifetime, Uses},
    outcome::{Denial, DenialCode, Outcome},
    path::RelPath,
    rules::Isolation,
    session::{Asking, Attenuation, Call, Event, GrantSpec, Session, SessionConfig},
    time::{Instant, Millis},
    tool::Tool,
};
use sha2::{Digest as _, Sha256};

pub fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// What a turn came to, without the permits themselves (they are spent).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    Permitted(usize),
    Asked,
    Denied(DenialCode),
    Nothing,
}

pub struct Bench {
    pub session: Session,
    pub dir: DirId,
    pub seconds: u64,
    pub ledger: Vec<Record>,
    pub question: Option<Question>,
    pub call: Option<CallId>,
    pub denial: Option<Denial>,
    pub stopped: Vec<CallId>,
    pub revoked: Vec<GrantId>,
    pub spawned: Option<(AgentId, Vec<GrantId>)>,
}

pub fn config(asking: Asking) -> SessionConfig {
    SessionConfig {
        id: 7,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: vec![path("home/u/.hermitcrab")],
        asking,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    }
}

pub fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).expect(text)
}

impl Bench {
    pub fn new(asking: Asking) -> Bench {
        Bench::with(config(asking))
    }

    pub fn with(config: SessionConfig) -> Bench {
        let (mut session, ledger) = Session::open(config);
        let dir = session.add_dir(path("home/u/proj")).unwrap();
        Bench {
            session,
            dir,
            seconds: 0,
            ledger,
            question: None,
            call: None,
            denial: None,
            stopped: Vec::new(),
            revoked: Vec::new(),
            spawned: None,
        }
    }

    pub fn now(&self) -> Instant {
        Instant::BOOT.after(Millis::from_seconds(self.seconds))
    }

    pub fn step(&mut self, event: Event) -> Came {
        let now = self.now();
        let parts = self.session.step(now, event).into_parts();
        for record in parts.records {
            assert_eq!(
                record.seq,
                self.ledger.len() as u64,
                "records leave in the order of the chain"
            );
            self.ledger.push(record);
        }
        self.stopped.extend(parts.stopped);
        self.revoked = parts.revoked;
        self.spawned = parts.spawned;
        if parts.call.is_some() {
            self.call = parts.call;
        }
        let permits = parts.permits.len();
        parts
            .permits
            .into_iter()
            .for_each(|permit| drop(permit.spend()));
        if let Some((_, denial)) = parts.denials.into_iter().next() {
            assert_eq!(permits, 0, "a refusal comes without permits");
            assert!(
                parts.question.is_none(),
                "a refusal comes without a question"
            );
            let code = denial.code();
            self.denial = Some(denial);
            return Came::Denied(code);
        }
        if let Some(question) = parts.question {
            assert_eq!(permits, 0, "a question comes without permits");
            self.question = Some(question);
            return Came::Asked;
        }
        if permits > 0 {
            Came::Permitted(permits)
        } else {
            Came::Nothing
        }
    }

    pub fn file(&self, verb: Verb, below: &str) -> Action {
        Action::on_path(verb, self.dir, path(below), sha256(below.as_bytes())).unwrap()
    }

    pub fn on_files(&self, verbs: &[Verb], below: &str) -> Authority {
        let object = Object::tree(self.dir, path(below));
        Authority::from_caps(
            verbs
                .iter()
                .map(|verb| Cap::new(*verb, object.clone()).unwrap()),
        )
        .unwrap()
    }

    pub fn try_grant(
        &mut self,
        holder: AgentId,
        authority: Authority,
        uses: Uses,
        lifetime: Lifetime,
    ) -> Result<GrantId, Denial> {
        let now = self.now();
        let parts = self
            .session
            .step(
                now,
                Event::Grant(GrantSpec {
                    holder,
                    authority,
                    uses,
                    lifetime,
                }),
            )
            .into_parts();
        self.ledger.extend(parts.records);
        parts
            .granted
            .ok_or_else(|| parts.denials.into_iter().next().unwrap().1)
    }

    pub fn grant(&mut self, authority: Authority, uses: Uses, lifetime: Lifetime) -> GrantId {
        self.try_grant(AgentId::FIRST, authority, uses, lifetime)
            .unwrap()
    }

    pub fn attenuate(&mut self, wanted: Attenuation) -> Result<GrantId, Denial> {
        let now = self.now();
        let parts = self
            .session
            .step(now, Event::Attenuate(wanted))
            .into_parts();
        self.ledger.extend(parts.records);
        parts
            .granted
            .ok_or_else(|| parts.denials.into_iter().next().unwrap().1)
    }

    pub fn call_as(&mut self, by: AgentId, tool: Tool, actions: Vec<Action>) -> Came {
        self.step(Event::Call(Call { by, tool, actions }))
    }

    /// The first agent reads one file, and reports the call as done if it could.
    pub fn read(&mut self, below: &str) -> Came {
        self.read_as(AgentId::FIRST, below)
    }

    pub fn read_as(&mut self, by: AgentId, below: &str) -> Came {
        let action = self.file(Verb::FsRead, below);
        let came = self.call_as(by, Tool::ReadFile, vec![action]);
        if matches!(came, Came::Permitted(_)) {
            self.finish();
        }
        came
    }

    pub fn write(&mut self, below: &str) -> Came {
        let action = self.file(Verb::FsModify, below);
        let came = self.call_as(AgentId::FIRST, Tool::WriteFile, vec![action]);
        if matches!(came, Came::Permitted(_)) {
            self.finish();
        }
        came
    }

    pub fn finish(&mut self) {
        let call = self.call.unwrap();
        assert_eq!(
            self.step(Event::Finished {
                call,
                outcome: Outcome::Done(Digest::NONE)
            }),
            Came::Nothing
        );
    }

    pub fn answer(&mut self, reply: Reply) -> Came {
        let question = self.question.clone().expect("a question was asked");
        self.step(Event::Answer(Answer {
            question: question.id(),
            digest: question.digest(),
            reply,
        }))
    }

    /// A yes by somebody who wants this held from here on.
    pub fn answer_holding(&mut self, reply: Reply, wider: Authority) -> Came {
        let question = self.question.clone().expect("a question was asked");
        let answer = Answer {
            question: question.id(),
            digest: question.digest(),
            reply,
        };
        self.step(Event::AnswerHolding { answer, wider })
    }

    pub fn spawn(
        &mut self,
        parent: AgentId,
        forward: &[GrantId],
    ) -> Result<(AgentId, Vec<GrantId>), DenialCode> {
        match self.step(Event::Spawn {
            parent,
            forward: forward.to_vec(),
        }) {
            Came::Denied(code) => Err(code),
            _ => Ok(self.spawned.take().unwrap()),
        }
    }

    /// Starts a command in the view; the call stays running.
    pub fn run(&mut self, command: &str) -> Came {
        self.run_as(AgentId::FIRST, command)
    }

    pub fn run_as(&mut self, by: AgentId, command: &str) -> Came {
        let object = Object::Program(Program::AnyInView);
        let action = Action::new(Verb::ProcExec, object, sha256(command.as_bytes())).unwrap();
        self.call_as(by, Tool::Terminal, vec![action])
    }

    pub fn effects(&mut self, actions: Vec<Action>) -> Came {
        let call = self.call.unwrap();
        self.step(Event::Effects { call, actions })
    }
}

pub fn any_program() -> Authority {
    Authority::of(Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).unwrap())
}

pub const ONCE: Uses = Uses::AtMost(1);
pub const SESSION: Lifetime = Lifetime::Session;

pub fn for_seconds(seconds: u64) -> Lifetime {
    Lifetime::For(Millis::from_seconds(seconds))
}
