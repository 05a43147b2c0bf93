//! What was said in earlier conversations, for an agent that looks for it.
//!
//! Conversations are kept outside every directory an agent is given. Who looks through them
//! sees those that were had in a directory it may read: what was said about a project is as
//! much that project's as its files are.

mod earlier;
mod index;
mod query;
mod view;

use std::path::Path;

pub use self::{
    earlier::{Earlier, Role, Said},
    index::{Hit, Index, Order},
    query::{Search, how, made_safe},
    view::{View, around, surroundings},
};
use crate::conversation::{self, Conversation, Shelf};

/// Bytes of text that are looked through at most, those of the newest conversations.
const BYTES_MAX: usize = 256 << 20;

/// What there is to look through.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Earlier conversations, in the order they began.
    pub earlier: Vec<Earlier>,
    /// The one that is had now, as far as it is kept.
    pub current: Option<Earlier>,
    /// So many were had in directories whose files may not be read.
    pub elsewhere: usize,
    /// So many are too long, all together, to be looked through.
    pub beyond: usize,
}

impl Kept {
    /// What is kept in a state directory of conversations in directories that `may_see`, seen
    /// from the session of this number.
    pub fn look(state_dir: &Path, session: u64, may_see: impl Fn(&Path) -> bool) -> Self {
        let mut kept = Self::default();
        let mut found: Vec<_> = Shelf::ALL
            .into_iter()
            .flat_map(|shelf| {
                let all = conversation::all(shelf, state_dir).into_iter();
                all.map(move |(id, about)| (about.updated, shelf, id, about.cwd))
            })
            .collect();
        found.sort_by(|(one, ..), (other, ..)| other.cmp(one));
        let mut bytes = 0_usize;
        for (_, shelf, id, cwd) in found {
            if !may_see(&cwd) {
                kept.elsewhere += 1;
                continue;
            }
            if bytes >= BYTES_MAX {
                kept.beyond += 1;
                continue;
            }
            // What is damaged or being removed is no conversation.
            let Some(said) = Conversation::look(&shelf.dir_of(state_dir, &id)) else {
                continue;
            };
            let is_current = said.mark.is_some_and(|mark| mark.session == session);
            let earlier = Earlier::of(shelf, id, said);
            bytes += earlier.said.iter().map(|one| one.text.len()).sum::<usize>();
            if is_current {
                kept.current = Some(earlier);
            } else {
                kept.earlier.push(earlier);
            }
        }
        kept.earlier
            .sort_by(|one, other| (one.started, &one.id).cmp(&(other.started, &other.id)));
        kept
    }

    /// One of them by its id.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<&Earlier> {
        let mut all = self.earlier.iter().chain(&self.current);
        all.find(|one| one.id == id)
    }

    /// The one a title names: the newest of those that go on under it (`title #2`), else
    /// itself. As Hermes has it (`SessionDB.resolve_session_by_title`), large and small letters
    /// are one only in the title of one that goes on.
    #[must_use]
    pub fn by_title(&self, title: &str) -> Option<usize> {
        let all = || self.earlier.iter().enumerate();
        let goes_on = |one: &Earlier| {
            let its = one.title.as_deref().unwrap_or_default();
            let (head, rest) = its.split_at_checked(title.len()).unwrap_or_default();
            head.eq_ignore_ascii_case(title) && rest.starts_with(" #")
        };
        all()
            .filter(|(_, one)| goes_on(one))
            .max_by_key(|(_, one)| one.started)
            .or_else(|| all().find(|(_, one)| one.title.as_deref() == Some(title)))
            .map(|(place, _)| place)
    }
}
