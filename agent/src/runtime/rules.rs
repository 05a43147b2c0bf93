//! Rules from configuration, and what would come of an effect.

use std::{fmt, path::Path};

use hermitcrab_core::{
    action::Action,
    approval::Stance,
    authority::{Host, Object, Verb},
    digest::Digest,
    grant::AgentId,
    outcome::{Denial, DenialCode},
    rules::{ConfiguredRule, Pattern, Sensitivity},
    session::Explanation,
    standing::{PortableAuthority, PortableObject},
    tool::Tool,
};

use super::{GrantWords, Runtime, WordsError};

/// What would become of one effect, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The effect, as seen from `/`.
    pub what: String,
    /// What the session says.
    pub explanation: Explanation,
}

impl Explained {
    /// Would it be refused without a question?
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.explanation.stance == Stance::Deny
    }

    /// Would there be a question that a grant spares? A rule's or the tool's
    /// own question is asked whatever is held.
    #[must_use]
    pub fn lacks_a_grant(&self) -> bool {
        self.explanation.stance == Stance::Ask && self.explanation.code == Some(DenialCode::NoCap)
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation {
            stance,
            code,
            rule,
            grant,
        } = &self.explanation;
        write!(f, "{stance}: {}\n    rule: {rule}", self.what)?;
        if let Some(grant) = grant {
            write!(f, "\n    held: {grant}")?;
        }
        if let Some(code) = code {
            write!(
                f,
                "\n    why: {} ({code})\n    next: {}",
                code.wording(),
                code.next_step()
            )?;
        }
        Ok(())
    }
}

impl Runtime {
    /// Adds a rule a person wrote down; it counts from the next decision on.
    ///
    /// # Errors
    /// `limit-reached`.
    pub fn add_rule(&mut self, rule: ConfiguredRule) -> Result<(), Denial> {
        self.machine.arrange(|session| session.add_rule(rule))
    }

    /// The addresses that a rule keeps from being connected to, or not unasked: where a name
    /// leads is known when nobody can be asked any more.
    pub(super) fn ruled_addresses(&self) -> Vec<Host> {
        self.machine.look(|session| {
            let rules = session.rules().configured().iter();
            let about = rules
                .filter(|rule| rule.stance() != Stance::Allow)
                .filter(|rule| rule.verbs().contains(&Verb::NetConnect));
            about
                .filter_map(|rule| match rule.pattern() {
                    Pattern::Object(PortableObject::Host(host)) => Some(host.clone()),
                    _ => None,
                })
                .collect()
        })
    }

    /// What would become of these effects of an agent. Nothing is charged,
    /// recorded or done.
    ///
    /// # Errors
    /// The words mean nothing, or a directory cannot be opened.
    pub fn explain(
        &mut self,
        by: AgentId,
        words: &GrantWords,
    ) -> Result<Vec<Explained>, WordsError> {
        let spec = words.spec(by, &mut self.mounts, &self.machine, &self.config)?;
        let mut all = Vec::new();
        for cap in spec.authority.caps() {
            // An effect is on a name, whatever more the same words would grant.
            let object = match cap.object() {
                Object::Dir { dir, below, .. } => Object::alone(*dir, below.clone()),
                other => other.clone(),
            };
            let action = Action::new(cap.verb(), object, Digest::NONE)
                .map_err(|_| WordsError::Object(words.verb.clone(), words.on.clone()))?;
            let (what, explanation) = self.machine.look(|session| {
                let portable = session.rules().portable(&action);
                (
                    portable.map_or_else(|| cap.to_string(), |cap| cap.asked().to_string()),
                    session.explain(by, usual_tool(cap.verb()), &action),
                )
            });
            all.push(Explained { what, explanation });
        }
        Ok(all)
    }

    /// Where `~` leads.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.config.home
    }

    /// Whether what is named lies in what is open, or is no file: [`Self::explain`] opens nothing
    /// for it then.
    #[must_use]
    pub fn has_open(&self, words: &GrantWords) -> bool {
        if !words.verb.starts_with("fs.") {
            return true;
        }
        let located = words
            .path(&self.config)
            .and_then(|path| self.mounts.locate(&path));
        let Some((dir, below)) = located else {
            return false;
        };
        let mount = self.mounts.get(dir);
        mount.is_some_and(|mount| mount.cap.mounted_towards(&below).is_none())
    }

    /// What of a grant in words is asked about each time all the same, whatever is granted:
    /// what each such place is.
    ///
    /// # Errors
    /// The words mean nothing, or a directory cannot be opened.
    pub fn asked_all_the_same(
        &mut self,
        by: AgentId,
        words: &GrantWords,
    ) -> Result<Vec<&'static str>, WordsError> {
        let spec = words.spec(by, &mut self.mounts, &self.machine, &self.config)?;
        let mut all = Vec::new();
        for cap in spec.authority.caps() {
            let action = Action::new(cap.verb(), cap.object().clone(), Digest::NONE)
                .map_err(|_| WordsError::Object(words.verb.clone(), words.on.clone()))?;
            let judged = self.machine.look(|session| {
                let judge = |tool: &Tool| session.rules().sensitivity(*tool, &action);
                LEAST_ASKED.each_ref().map(judge)
            });
            let [Sensitivity::Sensitive(what), ..] = judged else {
                continue;
            };
            if !judged.contains(&Sensitivity::Plain) && !all.contains(&what) {
                all.push(what);
            }
        }
        Ok(all)
    }

    /// What a grant in words would allow, in words that outlive the session.
    ///
    /// # Errors
    /// The words mean nothing, or there are no lasting words for it.
    pub fn portable_words(
        &mut self,
        holder: AgentId,
        words: &GrantWords,
    ) -> Result<PortableAuthority, WordsError> {
        let wrong = || WordsError::Object(words.verb.clone(), words.on.clone());
        let spec = words.spec(holder, &mut self.mounts, &self.machine, &self.config)?;
        let mut caps = Vec::new();
        for cap in spec.authority.caps() {
            let action =
                Action::new(cap.verb(), cap.object().clone(), Digest::NONE).map_err(|_| wrong())?;
            let portable = self
                .machine
                .look(|session| session.rules().portable(&action));
            caps.push(portable.ok_or_else(wrong)?);
        }
        PortableAuthority::from_caps(caps).map_err(WordsError::Denied)
    }
}

/// The tools that are asked about least: git keeps its own store by a command, and three
/// have a directory of their own.
const LEAST_ASKED: [Tool; 4] = [
    Tool::Terminal,
    Tool::Memory,
    Tool::SkillManage,
    Tool::Cronjob,
];

/// The tool that has such effects, for rules that look at the tool.
const fn usual_tool(verb: Verb) -> Tool {
    match verb {
        Verb::FsList => Tool::SearchFiles,
        Verb::FsRead => Tool::ReadFile,
        Verb::FsCreate | Verb::FsModify => Tool::WriteFile,
        Verb::FsDelete | Verb::FsMount => Tool::Patch,
        Verb::ProcExec | Verb::NetConnect | Verb::NetListen | Verb::SecretUse => Tool::Terminal,
        Verb::ModelSend => Tool::Converse,
        Verb::SessionRead => Tool::SessionSearch,
        Verb::UserAsk => Tool::Clarify,
        Verb::AgentSpawn => Tool::DelegateTask,
        Verb::ConfigChange | Verb::Extension => Tool::Directory,
    }
}
