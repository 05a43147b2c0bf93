//! The ends of commands in the background that no call waits for: decided when a turn begins
//! and before a session ends, and what is lost is told to the person.
//!
//! What is decided here is decided as at a call, under the call that started the command,
//! with what is held at this moment. Nothing here may keep a command running, or wait for one.

use hermitcrab_core::{
    grant::AgentId,
    outcome::{Denial, DenialCode},
};
use hermitcrab_sandbox::spawn::Ending;
use serde_json::Value;

use super::{
    super::{Runtime, result::Fate},
    JobEnd,
    attended::Attended,
};
use crate::{
    ports::Ended,
    text::{pytext, unnumbered},
};

/// So many commands are named, and the others counted.
const COMMANDS_NAMED_MAX: usize = 5;
/// So much is told of a command.
const COMMAND_LETTERS_MAX: usize = 60;

/// What is told of one that has ended by itself and is not decided about.
pub(super) fn ended(id: &str, command: &str, shared: &Attended) -> Option<Ended> {
    let (ending, is_to_decide) = shared.ended_undecided()?;
    Some(Ended {
        id: id.to_owned(),
        command: named(command),
        failed: ending.and_then(failed),
        is_to_decide,
    })
}

/// How a command ended that did not do what it was for.
fn failed(ending: Ending) -> Option<String> {
    match ending {
        Ending::Exited(0) => None,
        Ending::Exited(status) => Some(format!("with status {status}")),
        Ending::Signalled(signal) => Some(format!("by signal {signal}")),
        Ending::TimedOut => Some("as its time was over".to_owned()),
        Ending::OutOfMemory => Some("as its memory was used up".to_owned()),
        Ending::OutOfRoom => Some("as its room on disk was used up".to_owned()),
        Ending::Killed => Some("as it was killed".to_owned()),
    }
}

impl Runtime {
    /// From here on nothing is promised to be told later: the session is over when its
    /// one turn is, as that of a job is, and of `chat WORDS`.
    pub fn end_with_its_turn(&mut self) {
        self.ends_with_its_turn = true;
    }

    /// Whether the session is over when this turn is, so that nothing can be told later.
    #[must_use]
    pub const fn ends_with_its_turn(&self) -> bool {
        self.ends_with_its_turn
    }

    /// The commands in the background that have ended by themselves since something was
    /// decided last.
    #[must_use]
    pub fn ended_undecided(&self) -> Vec<Ended> {
        let open = self.jobs.0.iter().filter(|job| job.end.is_none());
        open.filter_map(|job| ended(&job.id, &job.command, &job.shared))
            .collect()
    }

    /// Decides what commands in the background did that have ended, as the next call of this
    /// agent would. What is lost by it is among what is told.
    pub fn decide_ended(&mut self, by: AgentId) {
        self.decided_now(by);
    }

    /// Before the session ends: decides what has ended, and tells what is kept of that and
    /// what is lost, and which commands still run and end with it.
    pub fn wind_up(&mut self) {
        let kept = self.decided_now(self.first_agent());
        match kept.as_slice() {
            [] => {}
            [one] => self.told.push(format!(
                "a background command had ended, and what it changed is kept: {}",
                named(one)
            )),
            [..] => self.told.push(format!(
                "{} background commands had ended, and what they changed is kept: {}",
                kept.len(),
                listed(&kept)
            )),
        }
        let running = self.jobs.0.iter().filter(|job| job.end.is_none());
        let running: Vec<String> = running.map(|job| job.command.clone()).collect();
        match running.as_slice() {
            [] => {}
            [one] => self.told.push(format!(
                "1 background command still ran and was ended; what it changed and was not kept by then is discarded: {}",
                named(one)
            )),
            [..] => self.told.push(format!(
                "{} background commands still ran and were ended; what they changed and was not kept by then is discarded: {}",
                running.len(),
                listed(&running)
            )),
        }
    }

    /// Why what commands in the background changed was thrown away since this was asked last,
    /// where nobody said no to it.
    pub fn take_lost(&mut self) -> Vec<DenialCode> {
        std::mem::take(&mut self.lost)
    }

    /// Decides, and names the commands of which all stands.
    fn decided_now(&mut self, by: AgentId) -> Vec<String> {
        let calls: Vec<_> = {
            let undecided = self.jobs.0.iter().filter(|job| job.is_undecided());
            undecided.map(|job| job.call).collect()
        };
        if calls.is_empty() {
            return Vec::new();
        }
        let answered = self.given_by_answers(by);
        match self.before_call(&Value::Null) {
            Ok(()) => {
                let asked = self.looked_after(by);
                self.after_call(by, &answered, !asked.is_empty(), &Fate::Ran);
            }
            Err((words, _)) => {
                self.told.push(format!(
                    "what background commands changed could not be looked after: {words}"
                ));
            }
        }
        let decided = self.jobs.0.iter().filter(|job| calls.contains(&job.call));
        let kept = decided.filter(|job| job.end.as_ref().is_some_and(JobEnd::is_kept));
        kept.map(|job| job.command.clone()).collect()
    }

    /// Tells the person that a command was ended with what it ran on.
    pub(super) fn tell_stopped(&mut self, command: &str, why: &Denial) {
        self.told.push(format!(
            "a background command was ended with what it ran on ({}); what it changed and was not kept by then is \
             discarded: {}",
            why.code(),
            named(command)
        ));
    }

    /// Tells the person that what a command changed does not stand. Who said no knows it.
    pub(super) fn tell_lost(&mut self, command: &str, end: &JobEnd) {
        let command = named(command);
        match (&end.discarded, &end.left_out) {
            (Some(denial), _) if denial.code() == DenialCode::RejectedByUser => {}
            (Some(denial), _) => {
                let code = denial.code();
                self.lost.push(code);
                let denial = denial.to_string();
                self.told.push(format!(
                    "what a background command changed is discarded: {command} ({code}): {}. Next step: {}",
                    unnumbered(&denial),
                    code.next_step()
                ));
            }
            (None, Some(left_out)) => {
                let how = left_out.in_words();
                self.told.push(format!(
                    "what a background command changed {how}: {command} ({}): {left_out} Next step: {}",
                    left_out.code(),
                    left_out.next_step()
                ));
            }
            (None, None) => {}
        }
    }
}

/// On one line, whatever it holds.
fn named(command: &str) -> String {
    let head = pytext::head(command, COMMAND_LETTERS_MAX);
    let cut = if head.len() < command.len() {
        "…"
    } else {
        ""
    };
    let line: String = head
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    // One that holds the mark would end it.
    match line.contains('`') {
        true => format!("\"{line}{cut}\""),
        false => format!("`{line}{cut}`"),
    }
}

/// Several of them.
fn listed(commands: &[String]) -> String {
    let named: Vec<String> = commands
        .iter()
        .take(COMMANDS_NAMED_MAX)
        .map(|command| named(command))
        .collect();
    match commands.len().saturating_sub(COMMANDS_NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
