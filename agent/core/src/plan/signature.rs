//! What a plan may call: tools by name, with types, roles and effects.

use alloc::{collections::BTreeSet, string::String, vec::Vec};

use super::{kind::Type, level::Level};
use crate::{
    authority::{Name, Verb},
    label::Source,
};

/// The reader a model is to which a text is shown.
pub const READER_MODEL: &str = "model";
/// The reader that stands for whoever reads files of the workspace.
pub const READER_FILES: &str = "files";
/// The reader that stands for commands and what they start.
pub const READER_COMMANDS: &str = "commands";

/// What an argument decides about a call that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing: what is looked for, how a result is cut.
    Free,
    /// What ends up in the effect and steers nothing.
    Content,
    /// Where the effect happens, whom it reaches, how much it moves.
    Target,
    /// A word a program is given.
    Word,
    /// The program itself: only as written in the plan.
    Program,
    /// Content that leaves for somebody else.
    Outgoing,
}

impl Role {
    /// Does it decide what comes back?
    #[must_use]
    pub const fn asks(self) -> bool {
        match self {
            Role::Free | Role::Target | Role::Word | Role::Program => true,
            Role::Content | Role::Outgoing => false,
        }
    }

    /// The lowest level that needs no question.
    #[must_use]
    pub const fn floor(self, rules: FlowRules) -> Level {
        match self {
            Role::Free | Role::Content => Level::Untrusted,
            Role::Target | Role::Word => Level::Service,
            Role::Program => Level::User,
            // A number or a choice cannot carry anybody's words.
            Role::Outgoing if rules.outgoing => Level::Picked,
            Role::Outgoing => Level::Untrusted,
        }
    }
}

/// What counts as data steering a call, beside its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRules {
    /// The test of an `if` and the list of a loop lower what is done inside.
    pub control: bool,
    /// What a filter, a maximum or an order looked at lowers what it selects.
    pub selection: bool,
    /// Untrusted text that leaves for somebody else is asked about.
    pub outgoing: bool,
}

impl FlowRules {
    /// All of them; the default.
    pub const STRICT: FlowRules = FlowRules {
        control: true,
        selection: true,
        outgoing: true,
    };

    /// Arguments alone.
    pub const ARGUMENTS: FlowRules = FlowRules {
        control: false,
        selection: false,
        outgoing: false,
    };
}

/// One argument of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type; the levels in it mean nothing.
    pub kind: Type,
    /// Whether the tool does not work without it.
    pub required: bool,
    /// What it decides.
    pub role: Role,
}

/// A tool as a plan sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub params: Vec<Param>,
    /// What it yields, with the level of each part.
    pub result: Type,
    /// Where what it yields is from.
    pub source: Source,
    /// Whether it changes anything.
    pub changes: bool,
    /// What has to be held for it.
    pub wants: Vec<Need>,
    /// Who may see what it yields; `None` is everybody.
    pub readers: Option<BTreeSet<Name>>,
    /// Who gets to see what it is given.
    pub reaches: Vec<Reach>,
    /// How much it can break, where its user says so.
    pub risk: Option<StatedRisk>,
}

/// Who gets to see what a tool is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This reader.
    Reader(String),
    /// Those whom an argument names: a text, or a list of texts.
    NamedBy(String),
}

/// How much a tool can break, by its user's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatedRisk {
    /// It only looks.
    Low,
    /// What it does can be made good.
    Medium,
    /// It cannot.
    High,
}

/// A verb a tool needs, and the argument that says on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The verb.
    pub verb: Verb,
    /// The argument; `None` where none says it.
    pub param: Option<String>,
}

impl Signature {
    /// The argument with this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

/// The tools one plan may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolbox {
    tools: Vec<Signature>,
}

impl Toolbox {
    /// These; of two with one name the first counts.
    #[must_use]
    pub fn new(tools: Vec<Signature>) -> Toolbox {
        Toolbox { tools }
    }

    /// The tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Signature> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Signature] {
        &self.tools
    }

    /// Those of them that are named.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Toolbox {
        Toolbox::new(
            self.tools
                .iter()
                .filter(|tool| names.contains(&tool.name))
                .cloned()
                .collect(),
        )
    }
}
