//! The closed list of verbs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What can be done. Adding one makes the compiler list the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// See names and their metadata.
    FsList,
    /// See contents.
    FsRead,
    /// Make something that was not there.
    FsCreate,
    /// Change something that was there.
    FsModify,
    /// Remove something that was there.
    FsDelete,
    /// Make one place appear at another.
    FsMount,
    /// Run a program.
    ProcExec,
    /// Open a connection.
    NetConnect,
    /// Wait for connections.
    NetListen,
    /// Use a secret without seeing it.
    SecretUse,
    /// Let data leave for a model.
    ModelSend,
    /// See what was said in earlier conversations.
    SessionRead,
    /// Put a question to the user.
    UserAsk,
    /// Start another agent.
    AgentSpawn,
    /// Change how the agent itself is set up.
    ConfigChange,
    /// What a vendor defined; the object says which verb it is.
    Extension,
}

/// The kind of object a verb acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A place below a directory.
    Dir,
    /// A program to run.
    Program,
    /// A network peer or port.
    Host,
    /// A named secret.
    Secret,
    /// A named model.
    Model,
    /// The session itself.
    Session,
    /// What a vendor's verb acts on.
    Extension,
}

impl ObjectKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Dir => "directory",
            ObjectKind::Program => "program",
            ObjectKind::Host => "host",
            ObjectKind::Secret => "secret",
            ObjectKind::Model => "model",
            ObjectKind::Session => "session",
            ObjectKind::Extension => "vendor's object",
        }
    }
}

impl Verb {
    /// Every verb of our own; vendors' verbs go by [`Verb::Extension`].
    pub const ALL: [Verb; 15] = [
        Verb::FsList,
        Verb::FsRead,
        Verb::FsCreate,
        Verb::FsModify,
        Verb::FsDelete,
        Verb::FsMount,
        Verb::ProcExec,
        Verb::NetConnect,
        Verb::NetListen,
        Verb::SecretUse,
        Verb::ModelSend,
        Verb::SessionRead,
        Verb::UserAsk,
        Verb::AgentSpawn,
        Verb::ConfigChange,
    ];

    /// The verbs on files that `fs.*` stands for. Mounting is not among them.
    pub const FILES: [Verb; 5] = [
        Verb::FsList,
        Verb::FsRead,
        Verb::FsCreate,
        Verb::FsModify,
        Verb::FsDelete,
    ];

    /// How a grant spells all of [`Verb::FILES`].
    pub const FILES_AS_STR: &'static str = "fs.*";

    /// What is listed of several verbs, each on something, in the order they come in: all
    /// of [`Verb::FILES`] on the same thing are told as one.
    #[must_use]
    pub fn listed(named: &[(Verb, String)]) -> Vec<(&'static str, &str)> {
        // One yes can be for more names than are to be compared each with each.
        let mut whole: BTreeMap<&str, BTreeSet<Verb>> = BTreeMap::new();
        for (verb, on) in named.iter().filter(|(verb, _)| Verb::FILES.contains(verb)) {
            whole.entry(on).or_default().insert(*verb);
        }
        whole.retain(|_, verbs| verbs.len() == Verb::FILES.len());
        let mut told = BTreeSet::new();
        let mut out = Vec::new();
        for (verb, on) in named {
            let one = match Verb::FILES.contains(verb) && whole.contains_key(on.as_str()) {
                true => (Verb::FILES_AS_STR, on.as_str()),
                false => (verb.as_str(), on.as_str()),
            };
            if told.insert(one) {
                out.push(one);
            }
        }
        out
    }

    /// The stable spelling, such as `fs.read`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::FsList => "fs.list",
            Verb::FsRead => "fs.read",
            Verb::FsCreate => "fs.create",
            Verb::FsModify => "fs.modify",
            Verb::FsDelete => "fs.delete",
            Verb::FsMount => "fs.mount",
            Verb::ProcExec => "proc.exec",
            Verb::NetConnect => "net.connect",
            Verb::NetListen => "net.listen",
            Verb::SecretUse => "secret.use",
            Verb::ModelSend => "model.send",
            Verb::SessionRead => "session.read",
            Verb::UserAsk => "user.ask",
            Verb::AgentSpawn => "agent.spawn",
            Verb::ConfigChange => "config.change",
            Verb::Extension => "x",
        }
    }

    /// The verb with this spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// One line for a person who has to decide.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Verb::FsList => "see which files are there",
            Verb::FsRead => "read files",
            Verb::FsCreate => "make new files",
            Verb::FsModify => "change existing files",
            Verb::FsDelete => "delete files",
            Verb::FsMount => "make a directory appear somewhere else",
            Verb::ProcExec => "run programs",
            Verb::NetConnect => "connect to a network host",
            Verb::NetListen => "accept network connections",
            Verb::SecretUse => "use a secret",
            Verb::ModelSend => "send data to a model",
            Verb::SessionRead => "see what was said in earlier conversations",
            Verb::UserAsk => "ask you questions",
            Verb::AgentSpawn => "start another agent",
            Verb::ConfigChange => "change the agent's own settings",
            Verb::Extension => "do what an extension defines",
        }
    }

    /// The kind of object it acts on.
    #[must_use]
    pub const fn object_kind(self) -> ObjectKind {
        match self {
            Verb::FsList
            | Verb::FsRead
            | Verb::FsCreate
            | Verb::FsModify
            | Verb::FsDelete
            | Verb::FsMount => ObjectKind::Dir,
            Verb::ProcExec => ObjectKind::Program,
            Verb::NetConnect | Verb::NetListen => ObjectKind::Host,
            Verb::SecretUse => ObjectKind::Secret,
            Verb::ModelSend => ObjectKind::Model,
            Verb::SessionRead | Verb::UserAsk | Verb::AgentSpawn | Verb::ConfigChange => {
                ObjectKind::Session
            }
            Verb::Extension => ObjectKind::Extension,
        }
    }

    /// Does it look at files and directories, and nothing else?
    #[must_use]
    pub const fn only_looks(self) -> bool {
        match self {
            Verb::FsList | Verb::FsRead => true,
            Verb::FsCreate
            | Verb::FsModify
            | Verb::FsDelete
            | Verb::FsMount
            | Verb::ProcExec
            | Verb::NetConnect
            | Verb::NetListen
            | Verb::SecretUse
            | Verb::ModelSend
            | Verb::SessionRead
            | Verb::UserAsk
            | Verb::AgentSpawn
            | Verb::ConfigChange
            | Verb::Extension => false,
        }
    }

    /// Can it leave a file different from before?
    #[must_use]
    pub const fn changes_files(self) -> bool {
        match self {
            // Nobody knows what a vendor's verb does.
            Verb::FsCreate | Verb::FsModify | Verb::FsDelete | Verb::FsMount | Verb::Extension => {
                true
            }
            Verb::FsList
            | Verb::FsRead
            | Verb::ProcExec
            | Verb::NetConnect
            | Verb::NetListen
            | Verb::SecretUse
            | Verb::ModelSend
            | Verb::SessionRead
            | Verb::UserAsk
            | Verb::AgentSpawn
            | Verb::ConfigChange => false,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
