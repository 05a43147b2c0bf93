//! The closed list of tools, and the kinds of effect each may have.
//!
//! A tool describes the actions a call needs; it never decides. An action of
//! a kind the tool does not list here is refused whatever is held, so that a
//! confused tool cannot become another one.

use core::fmt;

use crate::authority::Verb;
use crate::label::Source;

/// The tools, by Hermes' names where a model is offered them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Runs a command.
    Terminal,
    /// Reads one file.
    ReadFile,
    /// Writes one whole file.
    WriteFile,
    /// Replaces text in files.
    Patch,
    /// Finds files and text.
    SearchFiles,
    /// Starts another agent.
    DelegateTask,
    /// Looks after commands left running in the background.
    Process,
    /// Runs a Python script that can call tools.
    ExecuteCode,
    /// Asks the user something.
    Clarify,
    /// Keeps the list of what is to do.
    Todo,
    /// Keeps notes beyond the session, in a directory of their own.
    Memory,
    /// Looks through earlier conversations.
    SessionSearch,
    /// Lists the skills.
    SkillsList,
    /// Shows a skill or a file of it.
    SkillView,
    /// Makes, changes and removes skills.
    SkillManage,
    /// Keeps the list of what is to be run later.
    Cronjob,
    /// A tool of a server outside, reached over the network; offered under the
    /// server's own names.
    External,
    /// Sends the conversation to a model; never offered to one.
    Converse,
    /// Operations on a directory capability by the program itself; never offered to a model.
    Directory,
    /// Takes back what was done to files; a person's word, never offered to a model.
    Undo,
}

impl Tool {
    /// Every tool.
    pub const ALL: [Tool; 20] = [
        Tool::Terminal,
        Tool::ReadFile,
        Tool::WriteFile,
        Tool::Patch,
        Tool::SearchFiles,
        Tool::DelegateTask,
        Tool::Process,
        Tool::ExecuteCode,
        Tool::Clarify,
        Tool::Todo,
        Tool::Memory,
        Tool::SessionSearch,
        Tool::SkillsList,
        Tool::SkillView,
        Tool::SkillManage,
        Tool::Cronjob,
        Tool::External,
        Tool::Converse,
        Tool::Directory,
        Tool::Undo,
    ];

    /// What stands for it in a question to a person. A plan changes files by a tool that
    /// nobody calls, so that one's name would say nothing.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Directory => "a plan",
            other => other.as_str(),
        }
    }

    /// The name a model uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Tool::Terminal => "terminal",
            Tool::ReadFile => "read_file",
            Tool::WriteFile => "write_file",
            Tool::Patch => "patch",
            Tool::SearchFiles => "search_files",
            Tool::DelegateTask => "delegate_task",
            Tool::Process => "process",
            Tool::ExecuteCode => "execute_code",
            Tool::Clarify => "clarify",
            Tool::Todo => "todo",
            Tool::Memory => "memory",
            Tool::SessionSearch => "session_search",
            Tool::SkillsList => "skills_list",
            Tool::SkillView => "skill_view",
            Tool::SkillManage => "skill_manage",
            Tool::Cronjob => "cronjob",
            Tool::External => "external",
            Tool::Converse => "converse",
            Tool::Directory => "directory",
            Tool::Undo => "undo",
        }
    }

    /// Those a model is offered.
    pub fn all_offered() -> impl Iterator<Item = Tool> {
        Tool::ALL.into_iter().filter(|tool| tool.is_for_models())
    }

    /// The tool a model means by this name; exact spelling only.
    #[must_use]
    pub fn offered(name: &str) -> Option<Tool> {
        Tool::all_offered().find(|tool| tool.as_str() == name)
    }

    /// Whether a model is ever offered it.
    #[must_use]
    pub const fn is_for_models(self) -> bool {
        match self {
            Tool::Terminal
            | Tool::ReadFile
            | Tool::WriteFile
            | Tool::Patch
            | Tool::SearchFiles
            | Tool::DelegateTask
            | Tool::Process
            | Tool::ExecuteCode
            | Tool::Clarify
            | Tool::Todo
            | Tool::Memory
            | Tool::SessionSearch
            | Tool::SkillsList
            | Tool::SkillView
            | Tool::SkillManage
            | Tool::Cronjob => true,
            Tool::External | Tool::Converse | Tool::Directory | Tool::Undo => false,
        }
    }

    /// Where the data in its results is from, if it is not the model's own.
    #[must_use]
    pub const fn brings(self) -> Option<Source> {
        match self {
            // What was there shows in a patch's diff and hints.
            Tool::ReadFile
            | Tool::SearchFiles
            | Tool::Patch
            | Tool::Memory
            | Tool::SessionSearch
            | Tool::SkillsList
            | Tool::SkillView
            | Tool::SkillManage
            | Tool::Cronjob => Some(Source::File),
            Tool::Terminal | Tool::Process | Tool::ExecuteCode => Some(Source::Command),
            Tool::Clarify => Some(Source::User),
            Tool::External => Some(Source::Network),
            // A write tells about what the model itself wrote (what a program says that
            // checks it counts apart); a child's report carries the child's label.
            Tool::WriteFile
            | Tool::DelegateTask
            | Tool::Todo
            | Tool::Converse
            | Tool::Directory
            | Tool::Undo => None,
        }
    }

    /// What it may ask for before it runs.
    #[must_use]
    pub const fn verbs(self) -> &'static [Verb] {
        match self {
            // A command gets what of the network is held when it starts; so does a
            // server outside that is started for a call.
            Tool::Terminal | Tool::ExecuteCode => {
                &[Verb::ProcExec, Verb::NetConnect, Verb::NetListen]
            }
            // What such a server sends that is no text is kept in files.
            Tool::External => &[
                Verb::ProcExec,
                Verb::NetConnect,
                Verb::NetListen,
                Verb::FsRead,
                Verb::FsList,
                Verb::FsCreate,
            ],
            // What a background command does is decided under the call that started it.
            // What is typed into a command goes to whom that reaches.
            Tool::Process => &[Verb::NetConnect],
            Tool::Todo => &[],
            Tool::Clarify => &[Verb::UserAsk],
            Tool::SessionSearch => &[Verb::SessionRead],
            Tool::Converse => &[Verb::ModelSend],
            Tool::ReadFile => &[Verb::FsRead, Verb::FsList],
            Tool::WriteFile | Tool::Memory | Tool::Cronjob => {
                &[Verb::FsRead, Verb::FsList, Verb::FsCreate, Verb::FsModify]
            }
            Tool::Patch | Tool::SkillManage => &[
                Verb::FsRead,
                Verb::FsList,
                Verb::FsCreate,
                Verb::FsModify,
                Verb::FsDelete,
            ],
            Tool::SearchFiles | Tool::SkillsList | Tool::SkillView => &[Verb::FsRead, Verb::FsList],
            Tool::DelegateTask => &[Verb::AgentSpawn],
            Tool::Directory => &[
                Verb::FsRead,
                Verb::FsList,
                Verb::FsCreate,
                Verb::FsModify,
                Verb::FsDelete,
            ],
            // What was there before is not looked at, but put back.
            Tool::Undo => &[Verb::FsCreate, Verb::FsModify, Verb::FsDelete],
        }
    }

    /// What it may ask for after it ran, because only then its effects are known.
    #[must_use]
    pub const fn effect_verbs(self) -> &'static [Verb] {
        match self {
            Tool::Terminal | Tool::ExecuteCode | Tool::External => {
                &[Verb::FsCreate, Verb::FsModify, Verb::FsDelete]
            }
            Tool::ReadFile
            | Tool::WriteFile
            | Tool::Patch
            | Tool::SearchFiles
            | Tool::DelegateTask
            | Tool::Process
            | Tool::Clarify
            | Tool::Todo
            | Tool::Memory
            | Tool::SessionSearch
            | Tool::SkillsList
            | Tool::SkillView
            | Tool::SkillManage
            | Tool::Cronjob
            | Tool::Converse
            | Tool::Directory
            | Tool::Undo => &[],
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
