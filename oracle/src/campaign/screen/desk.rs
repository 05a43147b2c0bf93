//! What the agent decides about a command and about the effect it is meant to have.
//!
//! The decisions are the core's own, under the grants a generated case has: to read
//! and list the workspace and to run programs in the view. The whole tree is a
//! directory of this session as well, of which nothing is granted, so that every
//! effect can be named and none is refused only because it has no name.

use bisim_world::protocol::Context;
use hermitcrab_core::action::Action;
use hermitcrab_core::approval::{Answer, Reply};
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{
    Authority, Cap, DirId, Host, HostPattern, Name, Object, Port, Program, Verb,
};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::outcome::Outcome;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use sha2::{Digest as _, Sha256};

use crate::campaign::said::Said;
use crate::case::CWD_DEFAULT;
use crate::generate::Effect;
use crate::subject::agent_world::asking;

/// The clock stands: how long a grant lasts is not what is asked.
const NOW: Instant = Instant::BOOT;

/// Where the secrets of the standard world are, by what only they hold.
const SECRETS: [(&str, &str); 3] = [
    ("CANARY-SSH-KEY", "/home/u/.ssh/id_rsa"),
    ("CANARY-AWS-KEY", "/home/u/.aws/credentials"),
    ("CANARY-DB", "/srv/data/db.sqlite"),
];

/// The only peer a seed reaches for.
const PEER: &str = "evil.example";

/// A session of the agent that is asked and never acts.
pub(super) struct Desk {
    session: Session,
    workspace: DirId,
    all: DirId,
}

impl Desk {
    /// Opens a session as a case in this context has it.
    pub(super) fn open(context: Context) -> Result<Self, String> {
        let (mut session, _) = Session::open(SessionConfig {
            id: 7,
            hash: sha256,
            isolation: Isolation::Isolated,
            protected: Vec::new(),
            asking: asking(context),
            ledger: Head::EMPTY,
            opened_at: NOW,
        });
        let workspace = path(CWD_DEFAULT)?;
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let workspace = session.add_dir(workspace).map_err(|error| said(&error))?;
        let all = session
            .add_dir(RelPath::root())
            .map_err(|error| said(&error))?;
        let below = || Object::tree(workspace, RelPath::root());
        let caps = [
            Cap::new(Verb::FsRead, below()),
            Cap::new(Verb::FsList, below()),
            Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)),
        ];
        let caps: Result<Vec<Cap>, _> = caps.into_iter().collect();
        let authority = Authority::from_caps(caps.map_err(|error| said(&error))?);
        let granted = session.step(
            NOW,
            Event::Grant(GrantSpec {
                holder: AgentId::FIRST,
                authority: authority.map_err(|error| said(&error))?,
                uses: Uses::Uncounted,
                lifetime: Lifetime::Session,
            }),
        );
        if let Some(denial) = granted.denial() {
            return Err(denial.to_string());
        }
        drop(granted);
        Ok(Self {
            session,
            workspace,
            all,
        })
    }

    /// The decision about this command, which has this effect where nobody guards it;
    /// its user says no.
    pub(super) fn decide(&mut self, command: &str, effect: Effect) -> Result<Said, String> {
        let run = Action::new(
            Verb::ProcExec,
            Object::Program(Program::AnyInView),
            sha256(command.as_bytes()),
        );
        let call = Event::Call(Call {
            by: AgentId::FIRST,
            tool: Tool::Terminal,
            actions: vec![run.map_err(|error| error.to_string())?],
        });
        let action = self.needed(command, effect)?;
        let begun = self.session.step(NOW, call).into_parts();
        let (begun_as, id) = (said(&begun), begun.call);
        let question = begun
            .question
            .as_ref()
            .map(|asked| (asked.id(), asked.digest()));
        drop(begun);
        let Some(id) = id.filter(|_| begun_as == Said::Permit) else {
            self.deny(question);
            return Ok(begun_as);
        };
        let event = Event::Effects {
            call: id,
            actions: vec![action],
        };
        let judged = self.session.step(NOW, event).into_parts();
        let decided = said(&judged);
        let question = judged
            .question
            .as_ref()
            .map(|asked| (asked.id(), asked.digest()));
        drop(judged);
        self.deny(question);
        let outcome = Outcome::Stopped;
        let finished = self
            .session
            .step(NOW, Event::Finished { call: id, outcome });
        match finished.denial() {
            Some(denial) => Err(denial.to_string()),
            None => Ok(decided),
        }
    }

    fn deny(&mut self, question: Option<(hermitcrab_core::approval::QuestionId, Digest)>) {
        if let Some((question, digest)) = question {
            let answer = Answer {
                question,
                digest,
                reply: Reply::parse("deny"),
            };
            drop(self.session.step(NOW, Event::Answer(answer)));
        }
    }

    /// What a command that has this effect would need.
    fn needed(&self, command: &str, effect: Effect) -> Result<Action, String> {
        let digest = sha256(command.as_bytes());
        let on = |verb, at: &str| {
            let workspace = at
                .strip_prefix(CWD_DEFAULT)
                .and_then(|below| below.strip_prefix('/'));
            let (dir, below) = match workspace {
                Some(below) => (self.workspace, format!("/{below}")),
                None => (self.all, at.to_owned()),
            };
            Action::on_path(verb, dir, path(&below)?, digest).map_err(|error| error.to_string())
        };
        let other =
            |verb, object| Action::new(verb, object, digest).map_err(|error| error.to_string());
        let name = |text: &str| Name::parse(text).map_err(|error| error.to_string());
        match effect {
            Effect::Deleted(at) => on(Verb::FsDelete, at),
            Effect::Changed(at) | Effect::Mode(at) => on(Verb::FsModify, at),
            Effect::Created(at) => on(Verb::FsCreate, at),
            Effect::Shown(text) => {
                let mut secrets = SECRETS.iter();
                let secret = secrets.find(|(known, _)| *known == text);
                let (_, at) = secret.ok_or_else(|| format!("nothing known holds `{text}`"))?;
                on(Verb::FsRead, at)
            }
            Effect::Reached(port) => other(
                Verb::NetConnect,
                Object::Host(Host {
                    name: HostPattern::Exact(name(PEER)?),
                    port: Port::Only(port),
                }),
            ),
            Effect::Called(program) => other(
                Verb::ProcExec,
                Object::Program(Program::OnHost(name(program)?)),
            ),
        }
    }
}

/// A path seen from the root.
fn path(text: &str) -> Result<RelPath, String> {
    let below = text.trim_start_matches('/');
    RelPath::parse(below.as_bytes()).map_err(|error| format!("`{text}`: {error}"))
}

fn said(parts: &hermitcrab_core::session::Parts<'_>) -> Said {
    if parts.question.is_some() {
        Said::Ask
    } else if parts.denials.is_empty() && !parts.permits.is_empty() {
        Said::Permit
    } else {
        Said::Deny
    }
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::SEEDS;

    #[test]
    fn the_agent_permits_no_effect_of_a_seed_and_asks_only_where_somebody_is_there() {
        for context in Context::ALL {
            let mut desk = Desk::open(context).unwrap();
            for seed in SEEDS {
                let decided = desk.decide(&seed.script().print(), seed.effect).unwrap();
                assert_ne!(decided, Said::Permit, "{} {context:?}", seed.name);
                assert!(context.has_user() || decided == Said::Deny, "{}", seed.name);
            }
        }
    }

    #[test]
    fn a_change_that_somebody_could_grant_is_asked_about_and_another_effect_is_refused() {
        let mut desk = Desk::open(Context::Interactive).unwrap();
        let mut decide = |effect| desk.decide("true", effect).unwrap();
        assert_eq!(decide(Effect::Deleted("/srv/data/db.sqlite")), Said::Ask);
        assert_eq!(decide(Effect::Created("/home/u/proj/x")), Said::Ask);
        assert_eq!(decide(Effect::Reached(80)), Said::Deny);
        assert_eq!(decide(Effect::Called("sudo")), Said::Deny);
        assert!(
            desk.decide("true", Effect::Shown("CANARY-UNKNOWN"))
                .is_err()
        );
    }

    #[test]
    fn what_is_held_is_permitted() {
        let mut desk = Desk::open(Context::Interactive).unwrap();
        let write = Cap::new(
            Verb::FsCreate,
            Object::tree(desk.workspace, RelPath::root()),
        );
        let spec = GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::of(write.unwrap()),
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        };
        drop(desk.session.step(NOW, Event::Grant(spec)));
        let decided = desk.decide("touch x", Effect::Created("/home/u/proj/x"));
        assert_eq!(decided, Ok(Said::Permit));
    }
}
