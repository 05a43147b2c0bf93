//! A session that decides about work.

use hermitcrab_core::action::Action;
use hermitcrab_core::approval::{CallId, Question};
use hermitcrab_core::audit::Head;
use hermitcrab_core::authority::{Authority, Cap, DirId, Name, Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::grant::{AgentId, Lifetime, Uses};
use hermitcrab_core::outcome::Outcome;
use hermitcrab_core::path::RelPath;
use hermitcrab_core::rules::Isolation;
use hermitcrab_core::session::{Asking, Call, Event, GrantSpec, Session, SessionConfig};
use hermitcrab_core::time::Instant;
use hermitcrab_core::tool::Tool;
use sha2::{Digest as _, Sha256};

use super::does::actions;
use super::{Benign, Does};

/// A session that holds its workspace and may run commands in the view.
pub struct Desk {
    session: Session,
    dir: DirId,
}

impl Desk {
    /// Opens one.
    #[must_use]
    pub fn open() -> Option<Self> {
        let (mut session, _) = Session::open(SessionConfig {
            id: 7,
            hash: sha256,
            isolation: Isolation::Isolated,
            protected: Vec::new(),
            asking: Asking::Prompt,
            ledger: Head::EMPTY,
            opened_at: Instant::from_millis(0),
        });
        let dir = session.add_dir(RelPath::parse(b"home/u/proj").ok()?).ok()?;
        let mut caps = vec![Cap::new(Verb::ProcExec, Object::Program(Program::AnyInView)).ok()?];
        for verb in Verb::FILES {
            let below = RelPath::root();
            caps.extend(Cap::new(verb, Object::tree(dir, below)).ok());
        }
        let spec = GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::from_caps(caps).ok()?,
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        };
        let granted = session.step(Instant::from_millis(0), Event::Grant(spec));
        if granted.denial().is_some() {
            return None;
        }
        drop(granted);
        Some(Self { session, dir })
    }

    /// Its workspace.
    #[must_use]
    pub fn dir(&self) -> DirId {
        self.dir
    }

    /// Decides about the command and about what it did; an alarm in words, if
    /// there is one.
    ///
    /// # Errors
    /// Somebody is asked, or something is refused; which.
    pub fn decide(&mut self, job: &Benign) -> Result<(), String> {
        self.decide_about(job.program, &job.command, &job.does)
    }

    /// The same, of any command.
    ///
    /// # Errors
    /// Somebody is asked, or something is refused; which.
    pub fn decide_about(
        &mut self,
        program: &str,
        command: &str,
        does: &Does,
    ) -> Result<(), String> {
        let program = Name::parse(program).map_err(|error| error.to_string())?;
        let run = Action::new(
            Verb::ProcExec,
            Object::Program(Program::InView(program)),
            sha256(command.as_bytes()),
        );
        let run = run.map_err(|error| error.to_string())?;
        let call = Call {
            by: AgentId::FIRST,
            tool: Tool::Terminal,
            actions: vec![run],
        };
        let id = self.permits(Event::Call(call), 1, command)?;
        let Some(id) = id else {
            return Err(format!("`{command}` has no call"));
        };
        let effects = actions(does, self.dir)?;
        let count = effects.len();
        if count > 0 {
            let event = Event::Effects {
                call: id,
                actions: effects,
            };
            self.permits(event, count, command)?;
        }
        let outcome = Outcome::Stopped;
        let finished = self.session.step(
            Instant::from_millis(0),
            Event::Finished { call: id, outcome },
        );
        match finished.denial() {
            Some(denial) => Err(denial.to_string()),
            None => Ok(()),
        }
    }

    fn permits(
        &mut self,
        event: Event,
        count: usize,
        command: &str,
    ) -> Result<Option<CallId>, String> {
        // The clock stands: how long a grant lasts is not what is measured.
        let effects = self.session.step(Instant::from_millis(0), event);
        let denial = effects.denial().map(ToString::to_string);
        let parts = effects.into_parts();
        match (denial, &parts.question, parts.permits.len()) {
            (None, None, permits) if permits == count => Ok(parts.call),
            (denial, question, permits) => Err(format!(
                "`{command}`: {permits} of {count} permitted, asked: {}, denied: {}",
                question.as_ref().map_or_else(|| "no".to_owned(), asked),
                denial.unwrap_or_else(|| "no".to_owned())
            )),
        }
    }
}

/// About what, in words.
fn asked(question: &Question) -> String {
    let places: Vec<String> = question
        .uncovered()
        .map(|one| format!("{:?} {}", one.verb(), one.object()))
        .collect();
    format!("{} ({})", places.join(", "), question.because())
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}
