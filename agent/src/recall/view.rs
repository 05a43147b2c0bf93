//! A part of a conversation: what was said around one message, and how it began and ended.

use std::ops::Range;

use serde_json::Value;

use super::earlier::{Earlier, Role, Said};

/// What was said around a message (Hermes' `SessionDB.get_anchored_view`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// How the conversation began, as far as it is not in the window.
    pub beginning: Vec<usize>,
    /// The messages around.
    pub window: Vec<usize>,
    /// How it ended, as far as that is not in the window.
    pub end: Vec<usize>,
    /// So many messages before the one it is about are in reach.
    pub before: usize,
    /// So many after it.
    pub after: usize,
}

/// The places of so many messages on both sides of one.
#[must_use]
pub fn around(said: &[Said], place: usize, reach: usize) -> Range<usize> {
    place.saturating_sub(reach)..place.saturating_add(reach + 1).min(said.len())
}

/// What the user and the model said around a message, and so many of the first and last
/// messages they said.
#[must_use]
pub fn surroundings(said: &[Said], place: usize, reach: usize, ends: usize) -> View {
    let window = around(said, place, reach);
    let is_talk = |at: &usize| said.get(*at).is_some_and(|one| one.role != Role::Tool);
    let has_text = |at: &usize| said.get(*at).is_some_and(Said::has_text);
    let mut end: Vec<usize> = (window.end..said.len())
        .rev()
        .filter(|at| is_talk(at) && has_text(at))
        .take(ends)
        .collect();
    end.reverse();
    View {
        beginning: (0..window.start)
            .filter(|at| is_talk(at) && has_text(at))
            .take(ends)
            .collect(),
        before: place - window.start,
        after: window.end.saturating_sub(place + 1),
        window: window.filter(|at| *at == place || is_talk(at)).collect(),
        end,
    }
}

impl Earlier {
    /// Messages as they are told, by their places; one of them can be what it is about.
    #[must_use]
    pub fn told(
        &self,
        places: impl IntoIterator<Item = usize>,
        anchor: Option<usize>,
    ) -> Vec<Value> {
        let told = places.into_iter().filter_map(|place| {
            let one = self.said.get(place)?;
            Some(one.told(self.number(place), anchor.map(|anchor| self.number(anchor))))
        });
        told.collect()
    }
}
