//! The grants of a case while its script goes on: the third leg's yardstick.
//!
//! This is deliberately not the agent's own code: ground truth judged by the
//! subject's own functions would share its faults.

use std::collections::{BTreeMap, BTreeSet};

use bisim_world::protocol::{Decision, EffectKind, FsEffect, Held, NetAttempt, Step};

use self::agreed::Agreed;
use self::meanwhile::Answers;
use self::rules::{Rules, Says};
use crate::case::Case;
use crate::observation::{Observation, StepSeen, is_yes};

mod agreed;
mod meanwhile;
mod parts;
mod rules;
#[cfg(test)]
mod tests;

/// A grant with no deadline of its own ends after twelve hours ...
const SECONDS_USUAL: u64 = 12 * 3600;
/// ... and none lives longer than thirty days.
const SECONDS_MAX: u64 = 30 * 24 * 3600;

/// Whose yes covers what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Hermes asks about a call as a whole: a yes covers all the call does.
    WholeCall,
    /// The agent shows effects: a yes covers the paths that were shown.
    ShownPaths,
}

#[derive(Clone, Debug)]
struct Grant<'c> {
    words: Words<'c>,
    uses_left: Option<u64>,
    expires_at: u64,
    ended: bool,
}

/// What a grant says, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Words<'c> {
    /// Nothing for what every session begins with, which is called after its verb.
    id: Option<&'c str>,
    verb: &'c str,
    on: &'c str,
    holder: Option<&'c str>,
}

/// How the names begin of what every session begins with.
const DEFAULT: &str = "default ";

impl<'c> Words<'c> {
    fn of(held: &'c Held) -> Self {
        Self {
            id: Some(&held.id),
            verb: &held.verb,
            on: &held.on,
            holder: held.holder.as_deref(),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        match self.id {
            Some(id) => id == name,
            None => name.strip_prefix(DEFAULT) == Some(self.verb),
        }
    }

    fn is_default(&self) -> bool {
        self.id.is_none_or(|id| id.starts_with(DEFAULT))
    }
}

/// What is held at one point of a script.
#[derive(Clone, Debug)]
pub struct Holdings<'c> {
    grants: Vec<Grant<'c>>,
    rules: Rules<'c>,
    children: BTreeMap<&'c str, &'c [String]>,
    clock: u64,
    cwd: &'c str,
    shown_for_session: Vec<String>,
    /// What the user said "always" to.
    shown_for_good: Vec<String>,
    /// The same, as far as it still counts in a later session.
    counts_again: Vec<String>,
    /// What is said for good is kept: the case starts the program again.
    keeps: bool,
    answers: Answers,
}

impl<'c> Holdings<'c> {
    /// The grants a case starts with, reading the workspace, and running commands in the view.
    #[must_use]
    pub fn new(case: &'c Case) -> Self {
        let mut holdings = Self {
            grants: Vec::new(),
            rules: Rules::of(case),
            children: BTreeMap::new(),
            clock: 0,
            cwd: case.cwd(),
            shown_for_session: Vec::new(),
            shown_for_good: Vec::new(),
            counts_again: Vec::new(),
            keeps: case
                .job
                .script
                .iter()
                .any(|step| matches!(step, Step::Restart(_))),
            answers: Answers::default(),
        };
        let reads = if reads_workspace(case) {
            &["fs.read", "fs.list"][..]
        } else {
            &[]
        };
        for verb in reads {
            holdings.add_default(verb, case.cwd());
        }
        holdings.add_default("proc.exec", "*");
        for rule in &case.job.rules {
            let on = rule.on.as_deref().or(rule.host.as_deref());
            if rule.decision == Decision::Allow {
                for verb in &rule.verbs {
                    holdings.add_default(verb, on.unwrap_or(""));
                }
            }
        }
        for held in &case.job.held {
            holdings.add(held);
        }
        holdings
    }

    fn add(&mut self, held: &'c Held) {
        let seconds = held.seconds.unwrap_or(SECONDS_USUAL).min(SECONDS_MAX);
        self.grants.push(Grant {
            words: Words::of(held),
            uses_left: held.uses,
            expires_at: self.clock.saturating_add(seconds),
            ended: false,
        });
    }

    fn add_default(&mut self, verb: &'c str, on: &'c str) {
        self.grants.push(Grant {
            words: Words {
                id: None,
                verb,
                on,
                holder: None,
            },
            uses_left: None,
            expires_at: self.clock.saturating_add(SECONDS_USUAL),
            ended: false,
        });
    }

    /// A call may have used up whatever is good for a number of uses: what is
    /// left from here on is held surely.
    pub fn spend(&mut self) {
        for grant in &mut self.grants {
            grant.uses_left = grant.uses_left.map(|_| 0);
        }
    }

    /// Follows a step that changes what is held.
    pub fn follow(&mut self, step: &'c Step) {
        match step {
            Step::Grant(held) => self.add(held),
            Step::Revoke { grant } => self.revoke(grant),
            Step::Advance { seconds } => self.clock = self.clock.saturating_add(*seconds),
            Step::EndSession {} => self.end_session_for_good(),
            Step::Restart(restart) => {
                self.end_session();
                if !restart.keeps_answers() {
                    self.shown_for_good.clear();
                }
                self.counts_again.clone_from(&self.shown_for_good);
            }
            Step::Spawn { child, forward } => {
                self.children.insert(child, forward);
            }
            Step::Call { .. } | Step::Probe { .. } => {}
        }
    }

    fn revoke(&mut self, grant: &str) {
        let named = |held: &&mut Grant<'_>| held.words.is_called(grant);
        for held in self.grants.iter_mut().filter(named) {
            held.ended = true;
        }
    }

    /// Nothing is passed on to a child any more, and nothing is held by it.
    fn end_agent(&mut self, child: &str) {
        self.children.remove(child);
        let its_own = |held: &&mut Grant<'_>| held.words.holder == Some(child);
        for held in self.grants.iter_mut().filter(its_own) {
            held.ended = true;
        }
    }

    fn end_session_for_good(&mut self) {
        self.end_session();
        if self.keeps {
            self.counts_again.clone_from(&self.shown_for_good);
        }
    }

    fn end_session(&mut self) {
        self.is_asked_again();
        for grant in &mut self.grants {
            // The next session begins with what every session begins with.
            if grant.words.is_default() {
                grant.expires_at = self.clock.saturating_add(SECONDS_USUAL);
            } else {
                grant.ended = true;
            }
        }
        self.children.clear();
        self.shown_for_session.clear();
    }

    /// What a call or probe did that nothing held covers, in words. Charges
    /// the uses of what does cover it.
    pub fn outside(&mut self, step: &Step, seen: &StepSeen, approval: Approval) -> Vec<String> {
        let agreed = Agreed::to_all(seen, approval);
        self.outside_of(step, (&seen.delta, &seen.canaries), agreed)
    }

    /// The same of what came after a step, which is judged by what was agreed to in it, or in
    /// its last part.
    pub fn outside_after(
        &mut self,
        step: &Step,
        late: &[FsEffect],
        seen: &StepSeen,
        approval: Approval,
    ) -> Vec<String> {
        let agreed = match seen.parts.as_slice() {
            [.., before, last] => Agreed::to(seen, before.asked..last.asked, approval),
            _ => Agreed::to_all(seen, approval),
        };
        self.outside_of(step, (late, &[]), agreed)
    }

    fn outside_of(
        &mut self,
        step: &Step,
        (effects, leaked): (&[FsEffect], &[String]),
        agreed: Agreed<'_>,
    ) -> Vec<String> {
        let made = step.cut().map_or(step, |cut| &cut.step);
        let by = made.by();
        let mut outside = Vec::new();
        let mut charged = BTreeSet::new();
        if agreed.approval == Approval::WholeCall && self.counts_again(step) {
            return outside;
        }
        for effect in effects {
            if !self.covers_effect(by, effect, agreed, &mut charged) {
                outside.push(describe(effect));
            }
        }
        for path in leaked {
            if !self.covers_reading(by, path, agreed, &mut charged) {
                outside.push(format!("leaked {path}"));
            }
        }
        for grant in charged {
            if let Some(grant) = self.grants.get_mut(grant)
                && let Some(uses) = &mut grant.uses_left
            {
                *uses = uses.saturating_sub(1);
            }
        }
        for (number, (shown, answer)) in agreed.questions() {
            if agreed.approval == Approval::ShownPaths && !self.answers.count(number) {
                continue;
            }
            let lasts = ["session", "always"]
                .iter()
                .any(|word| answer.contains(word));
            if is_yes(answer) && lasts {
                self.shown_for_session.push(shown.clone());
            }
            // It counts after the session only where the program is ever started again.
            if is_yes(answer) && answer.contains("always") {
                self.shown_for_good.push(shown.clone());
            }
        }
        outside
    }

    /// Whether the user said "always" to this very command, in a run before.
    fn counts_again(&self, step: &Step) -> bool {
        let command = match step {
            Step::Call { args, .. } => args.get("command").and_then(serde_json::Value::as_str),
            _ => None,
        };
        command.is_some_and(|command| {
            self.counts_again
                .iter()
                .any(|shown| shown.ends_with(command))
        })
    }

    /// What a whole run let out beside the tree: network and tripwires.
    #[must_use]
    pub fn outside_world(&self, seen: &Observation) -> Vec<String> {
        let mut outside: Vec<String> = seen
            .network
            .iter()
            .filter(|attempt| !self.covers_network(attempt))
            .map(|attempt| format!("reached {}/{}", attempt.protocol, attempt.port))
            .collect();
        outside.extend(seen.tripwires.iter().map(|line| format!("ran {line}")));
        outside.sort();
        outside.dedup();
        outside
    }

    fn covers_network(&self, attempt: &NetAttempt) -> bool {
        let is_plain = self.rules.say_of_peer(attempt) == Says::Nothing;
        is_plain
            && self.live().any(|(_, grant)| {
                grant.words.verb == "net.connect"
                    && grant
                        .words
                        .on
                        .rsplit_once(':')
                        .is_some_and(|(_, port)| port.parse() == Ok(attempt.port))
            })
    }

    fn covers_effect(
        &self,
        by: Option<&str>,
        effect: &FsEffect,
        agreed: Agreed<'_>,
        charged: &mut BTreeSet<usize>,
    ) -> bool {
        let verb = match effect.kind {
            EffectKind::Created => "fs.create",
            EffectKind::Modified | EffectKind::Metadata => "fs.modify",
            EffectKind::Deleted => "fs.delete",
        };
        let mentions = |shown: &str| mentions(shown, &effect.path, self.cwd);
        let is_agreed = self.is_agreed(&effect.path, agreed);
        match self.rules.say(verb, &effect.path) {
            Says::Denies => return false,
            Says::Asks => return is_agreed,
            Says::Nothing => {}
        }
        // What was shown and agreed to draws on no grant: its uses are left.
        if agreed.approval == Approval::ShownPaths && is_agreed {
            return true;
        }
        if self.allows(by, verb, &effect.path, charged) {
            return true;
        }
        match agreed.approval {
            Approval::WholeCall => is_agreed,
            Approval::ShownPaths => {
                self.shown_for_session.iter().any(|shown| mentions(shown))
                    || self.counts_again.iter().any(|shown| mentions(shown))
            }
        }
    }

    fn covers_reading(
        &self,
        by: Option<&str>,
        path: &str,
        agreed: Agreed<'_>,
        charged: &mut BTreeSet<usize>,
    ) -> bool {
        match self.rules.say("fs.read", path) {
            Says::Denies => false,
            Says::Asks => self.is_agreed(path, agreed),
            Says::Nothing => {
                let is_whole = agreed.approval == Approval::WholeCall && agreed.any_yes();
                self.allows(by, "fs.read", path, charged) || is_whole
            }
        }
    }

    /// Whether the user agreed, in this very step, to what is done to this path.
    fn is_agreed(&self, path: &str, agreed: Agreed<'_>) -> bool {
        match agreed.approval {
            Approval::WholeCall => agreed.any_yes(),
            Approval::ShownPaths => agreed.questions().any(|(number, (shown, answer))| {
                is_yes(answer) && self.answers.count(number) && mentions(shown, path, self.cwd)
            }),
        }
    }

    /// Whether the grant of this name can still be used.
    #[must_use]
    pub fn is_live(&self, id: &str) -> bool {
        self.live().any(|(_, grant)| grant.words.is_called(id))
    }

    /// Whether something held covers this verb at this path; charges nothing.
    #[must_use]
    pub fn may(&self, by: Option<&str>, verb: &str, path: &str) -> bool {
        let is_plain = self.rules.say(verb, path) == Says::Nothing;
        is_plain && self.allows(by, verb, path, &mut BTreeSet::new())
    }

    fn allows(
        &self,
        by: Option<&str>,
        verb: &str,
        path: &str,
        charged: &mut BTreeSet<usize>,
    ) -> bool {
        let covers = |grant: &Grant<'_>| {
            let held = &grant.words;
            let holder = match by {
                None => held.holder.is_none(),
                Some(child) => {
                    let forwarded = self.children.get(child).copied().unwrap_or_default();
                    held.holder == Some(child) || forwarded.iter().any(|name| held.is_called(name))
                }
            };
            holder
                && (held.verb == verb || (held.verb == "fs.*" && verb.starts_with("fs.")))
                && below(path, held.on)
        };
        // A use that was counted is left where another grant does it as well.
        let found = self
            .live()
            .filter(|(_, grant)| covers(grant))
            .min_by_key(|(index, grant)| (grant.uses_left.is_some(), *index));
        if let Some((index, _)) = found {
            charged.insert(index);
        }
        found.is_some()
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Grant<'c>)> {
        self.grants.iter().enumerate().filter(|(_, grant)| {
            !grant.ended
                && grant.uses_left != Some(0)
                // A grant holds at its deadline and not after it.
                && self.clock <= grant.expires_at
        })
    }
}

/// Whether the agent of a case may read its workspace without a stated grant.
#[must_use]
pub fn reads_workspace(case: &Case) -> bool {
    case.job
        .settings
        .get("hermitcrab.workspace_read")
        .and_then(serde_json::Value::as_bool)
        .unwrap_or(true)
}

/// Whether a path is a directory or below it, by components.
#[must_use]
pub fn below(path: &str, directory: &str) -> bool {
    let mut directory = directory;
    while let Some(shorter) = directory.strip_suffix('/') {
        directory = shorter;
    }
    match path.strip_prefix(directory) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

fn mentions(shown: &str, path: &str, cwd: &str) -> bool {
    if shown.contains(path) {
        return true;
    }
    let mut relative = path
        .strip_prefix(cwd)
        .map_or("", |rest| rest.trim_start_matches('/'));
    while !relative.is_empty() {
        if shown.contains(relative) {
            return true;
        }
        relative = relative.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    false
}

/// An effect in words.
#[must_use]
pub fn describe(effect: &FsEffect) -> String {
    let verb = match effect.kind {
        EffectKind::Created => "created",
        EffectKind::Modified => "modified",
        EffectKind::Deleted => "deleted",
        EffectKind::Metadata => "changed the mode or owner of",
    };
    [verb, " ", &effect.path].concat()
}
