//! Ends of commands in the background, told while the prompt waits.
//!
//! Only told: what they changed is decided when the next turn begins, or when the person
//! leaves. While something is done nothing is told here, for then it is decided about.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::editor::Above;
use crate::{
    ports::{EndPort, Ended},
    screen::{Screen, Tone, visible},
    text::rows,
};

/// What was told, and where.
#[derive(Debug)]
pub(super) struct Ends {
    above: Above,
    screen: Screen,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waits: bool,
    told: BTreeSet<String>,
}

impl Ends {
    pub(super) fn new(above: Above, screen: Screen) -> Self {
        Self {
            above,
            screen,
            state: Mutex::default(),
        }
    }

    /// The prompt waits from here on. What has ended by now and was not told is given back,
    /// in lines.
    pub(super) fn waits(&self, ended: &[Ended]) -> Vec<String> {
        let mut state = self.lock();
        state.waits = true;
        let told = ended.iter().filter(|one| state.told.insert(one.id.clone()));
        told.map(|one| self.line(one)).collect()
    }

    /// Something is done from here on.
    pub(super) fn works(&self) {
        self.lock().waits = false;
    }

    fn line(&self, ended: &Ended) -> String {
        let then = if ended.is_to_decide {
            "; what it changed is decided with your next words, or when you leave"
        } else {
            ""
        };
        let how = ended.failed.as_ref();
        let how = how.map_or_else(String::new, |how| format!(" {how}"));
        let line = format!("  background command ended{how}: {}{then}", ended.command);
        let columns = self.screen.columns_of(&std::io::stdout());
        let rows = rows::told(&visible(&line), columns);
        self.screen.tone(Tone::Dim, &rows)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here is left half done by a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EndPort for Ends {
    fn ended(&self, ended: Ended) {
        let mut state = self.lock();
        // What cannot be said above is told when the prompt comes back.
        if state.waits && !state.told.contains(&ended.id) && self.above.say(self.line(&ended)) {
            state.told.insert(ended.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_once_and_only_while_the_prompt_waits() {
        let (above, lines) = Above::into_a_list();
        let ends = Ends::new(above, Screen::default());
        let ended = |id: &str, is_to_decide| Ended {
            id: id.to_owned(),
            command: format!("`{id}`"),
            failed: (id == "b").then(|| "with status 1".to_owned()),
            is_to_decide,
        };
        ends.ended(ended("a", true));
        assert_eq!(lines.try_recv().ok(), None);
        let then = "; what it changed is decided with your next words, or when you leave";
        let told = [format!("  background command ended: `a`{then}")];
        assert_eq!(ends.waits(&[ended("a", true)]), told);
        ends.ended(ended("a", true));
        ends.ended(ended("b", false));
        assert_eq!(
            lines.try_iter().collect::<Vec<_>>(),
            ["  background command ended with status 1: `b`"]
        );
        ends.works();
        ends.ended(ended("c", false));
        assert_eq!(lines.try_recv().ok(), None);
        assert_eq!(ends.waits(&[ended("a", true), ended("b", false)]), [""; 0]);
    }

    #[test]
    fn what_cannot_be_said_above_is_told_when_the_prompt_comes_back() {
        let ends = Ends::new(Above::default(), Screen::default());
        let ended = || Ended {
            id: "a".to_owned(),
            command: "`a`".to_owned(),
            failed: None,
            is_to_decide: false,
        };
        assert_eq!(ends.waits(&[]), [""; 0]);
        ends.ended(ended());
        ends.works();
        let told = ["  background command ended: `a`"];
        assert_eq!(ends.waits(&[ended()]), told);
    }
}
