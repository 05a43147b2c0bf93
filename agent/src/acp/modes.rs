//! What a client can choose for a session: when its user is asked, and how far
//! the proof of the sandbox is believed.
//!
//! A mode gives grants that end with it, like any other; it never reaches past
//! a rule that asks or refuses, and names that are asked about each time are
//! asked about in every mode.

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState,
};
use hermitcrab_core::{grant::GrantId, label::Source, rules::Isolation, session::Asking};

use crate::runtime::{GrantWords, Runtime};

/// The option that stands for the mode.
pub const MODE_OPTION: &str = "approval";
/// The option that stands for the belief in the sandbox.
pub const ISOLATION_OPTION: &str = "isolation";

/// When the user is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// About every change.
    #[default]
    Ask,
    /// About changes outside the workspace.
    Workspace,
    /// About what cannot be undone.
    Session,
}

impl Mode {
    /// Every mode, strictest first.
    pub const ALL: [Mode; 3] = [Mode::Ask, Mode::Workspace, Mode::Session];

    /// Its id on the wire.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Mode::Ask => "ask",
            Mode::Workspace => "workspace",
            Mode::Session => "session",
        }
    }

    /// The mode with this id; exact spelling only.
    #[must_use]
    pub fn parse(id: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.id() == id)
    }

    /// Whether it can be chosen where an administrator or the user's own file
    /// wants at least this.
    #[must_use]
    pub fn is_within(self, floor: Asking) -> bool {
        match self {
            Mode::Ask => true,
            Mode::Workspace => floor <= Asking::Prompt,
            Mode::Session => floor <= Asking::ApproveAll,
        }
    }

    /// Where all that is not granted is refused, nobody is asked.
    fn name(self, floor: Asking) -> &'static str {
        match self {
            Mode::Ask if floor == Asking::Refuse => "Refuse",
            Mode::Ask => "Ask",
            Mode::Workspace => "Workspace",
            Mode::Session => "Session",
        }
    }

    fn sentence(self, floor: Asking) -> &'static str {
        match self {
            Mode::Ask if floor == Asking::Refuse => {
                "Whatever is not granted is refused, and you are asked about nothing: the agent was \
                 told `reject_all`"
            }
            Mode::Ask => "Every change is shown and asked about before it touches the disk",
            Mode::Workspace => {
                "Changes in the workspace are made unasked until the session or this mode ends; \
                 sensitive names and other directories you opened are asked about"
            }
            Mode::Session => {
                "Whatever can be undone is done unasked where isolation is proved; sensitive \
                 names and everything else are asked about"
            }
        }
    }
}

/// How far the proof of the sandbox is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Belief {
    /// As far as it was proved.
    #[default]
    Proved,
    /// Not at all: everything that rests on it is asked about.
    Nothing,
}

impl Belief {
    /// Its value on the wire.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Belief::Proved => "proved",
            Belief::Nothing => "unknown",
        }
    }

    /// The one with this value; exact spelling only.
    #[must_use]
    pub fn parse(id: &str) -> Option<Belief> {
        [Belief::Proved, Belief::Nothing]
            .into_iter()
            .find(|belief| belief.id() == id)
    }
}

/// What the user has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// When to ask.
    pub mode: Mode,
    /// What to believe.
    pub belief: Belief,
}

impl Choice {
    /// The modes, and which one holds.
    #[must_use]
    pub fn modes(self, floor: Asking) -> SessionModeState {
        let modes = Mode::ALL
            .into_iter()
            .filter(|mode| mode.is_within(floor))
            .map(|mode| {
                SessionMode::new(mode.id(), mode.name(floor))
                    .description(mode.sentence(floor).to_owned())
            })
            .collect();
        SessionModeState::new(self.mode.id(), modes)
    }

    /// The options, and what holds.
    #[must_use]
    pub fn options(self, floor: Asking, proved: Isolation) -> Vec<SessionConfigOption> {
        let modes: Vec<SessionConfigSelectOption> = Mode::ALL
            .into_iter()
            .filter(|mode| mode.is_within(floor))
            .map(|mode| {
                SessionConfigSelectOption::new(mode.id(), mode.name(floor))
                    .description(mode.sentence(floor).to_owned())
            })
            .collect();
        let proof = match proved {
            Isolation::Isolated => "Isolation is proved on this machine",
            Isolation::Unisolated => "There is no isolation on this machine",
            Isolation::Unknown => "Isolation is not proved on this machine",
        };
        let asked = match floor {
            Asking::ApproveAll | Asking::Prompt => "When you are asked before something is changed",
            Asking::Refuse => "What becomes of what is not granted",
        };
        let beliefs = vec![
            SessionConfigSelectOption::new(Belief::Proved.id(), "As proved")
                .description(proof.to_owned()),
            SessionConfigSelectOption::new(Belief::Nothing.id(), "Not believed")
                .description("Commands are refused: nothing is believed to hold them".to_owned()),
        ];
        vec![
            SessionConfigOption::select(MODE_OPTION, "Approval", self.mode.id(), modes)
                .description(asked.to_owned())
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select(ISOLATION_OPTION, "Isolation", self.belief.id(), beliefs)
                .description(
                    "How far the sandbox's own proof counts; a change ends what was granted in \
                     this session"
                        .to_owned(),
                ),
        ]
    }
}

/// What holds in a runtime, and the grants that came with it.
#[derive(Debug, Default)]
pub struct InForce {
    choice: Choice,
    grants: Vec<GrantId>,
}

impl InForce {
    /// What holds.
    #[must_use]
    pub const fn choice(&self) -> Choice {
        self.choice
    }

    /// Lets another choice hold. What came with the old mode ends first.
    ///
    /// # Errors
    /// Why not, in one line; then the strictest mode holds.
    pub fn change(
        &mut self,
        runtime: &mut Runtime,
        wanted: Choice,
        floor: Asking,
    ) -> Result<(), String> {
        if wanted.mode == self.choice.mode {
            self.choice = wanted;
            return Ok(());
        }
        self.end_grants(runtime);
        self.choice = Choice {
            mode: Mode::Ask,
            belief: wanted.belief,
        };
        let strictest = Asking::Prompt.max(floor);
        runtime
            .set_asking(strictest)
            .map_err(|why| why.to_string())?;
        if let Err(why) = self.begin(runtime, wanted.mode, floor) {
            self.end_grants(runtime);
            return Err(why);
        }
        self.choice = wanted;
        Ok(())
    }

    /// What a mode holds beyond the strictest. Until all of it does, nobody is spared a question.
    fn begin(&mut self, runtime: &mut Runtime, mode: Mode, floor: Asking) -> Result<(), String> {
        if mode == Mode::Ask {
            return Ok(());
        }
        let agent = runtime.first_agent();
        // The user chose this knowing that the agent reads and runs things
        // in the workspace, so the grants vouch for that, and for no more.
        for source in [Source::File, Source::Command] {
            runtime.hear(agent, source).map_err(|why| why.to_string())?;
        }
        let workspace = runtime.workspace().to_string_lossy().into_owned();
        for verb in ["fs.create", "fs.modify", "fs.delete"] {
            let grant = runtime
                .grant(agent, &GrantWords::new(verb, &workspace))
                .map_err(|why| why.to_string())?;
            self.grants.push(grant);
        }
        if mode == Mode::Session {
            let asking = Asking::ApproveAll.max(floor);
            runtime.set_asking(asking).map_err(|why| why.to_string())?;
        }
        Ok(())
    }

    fn end_grants(&mut self, runtime: &mut Runtime) {
        for grant in self.grants.drain(..) {
            // What ended by itself need not be ended.
            let _ = runtime.revoke(grant);
        }
    }

    /// Lets the mode hold that was chosen meanwhile; the belief does from the
    /// next prompt on.
    ///
    /// # Errors
    /// As for [`InForce::change`].
    pub fn follow(
        &mut self,
        runtime: &mut Runtime,
        mut wanted: Choice,
        floor: Asking,
    ) -> Result<(), String> {
        wanted.belief = self.choice.belief;
        self.change(runtime, wanted, floor)
    }

    /// The runtime began anew and holds nothing.
    pub fn forget(&mut self) {
        self.grants.clear();
        self.choice.mode = Mode::Ask;
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::{rules::Isolation, session::Asking};

    use super::{Belief, Choice, Mode};

    #[test]
    fn where_all_is_refused_no_mode_says_that_anybody_is_asked() {
        let told = |floor| {
            let choice = Choice::default();
            let modes = choice.modes(floor);
            let options = choice.options(floor, Isolation::Isolated);
            serde_json::to_string(&(modes, options)).unwrap()
        };
        let refusing = told(Asking::Refuse);
        for word in ["asked about before", "When you are asked", "\"Ask\""] {
            assert!(!refusing.contains(word), "{word}: {refusing}");
            assert!(told(Asking::Prompt).contains(word), "{word}");
        }
        // What does not believe the sandbox has no command run, whoever may be asked.
        assert!(told(Asking::Prompt).contains("Commands are refused"));
        assert!(
            refusing.contains("Whatever is not granted is refused"),
            "{refusing}"
        );
    }

    #[test]
    fn only_the_ids_offered_are_ids() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.id()), Some(mode));
        }
        for id in ["", "Ask", "ask ", "default", "bypass"] {
            assert_eq!(Mode::parse(id), None, "{id}");
            assert_eq!(Belief::parse(id), None, "{id}");
        }
        assert_eq!(Belief::parse("unknown"), Some(Belief::Nothing));
    }
}
