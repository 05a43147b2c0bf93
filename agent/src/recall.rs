//! What was said in earlier conversations, for an agent that looks for it.
//!
//! Conversations are kept outside every directory an agent is given. Who looks through them
//! sees those that were had in a directory it may read: what was said about a project is as
//! much that project's as its files are.
//!
//! There can be hundreds, and long ones. Only what is asked about is read, and of what is
//! read never more than one at a time is held besides the index of a search.

mod earlier;
mod index;
mod query;
mod view;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use self::{earlier::millis, index::Index};
pub use self::{
    earlier::{Earlier, Role, Said},
    index::{Hit, Order},
    query::{Search, how, made_safe},
    view::{View, around, surroundings},
};
use crate::conversation::{self, About, Conversation, Shelf};

/// Bytes of conversations that are searched at most, those of the newest.
const BYTES_MAX: u64 = 256 << 20;
/// When one was written last is known to the minute, in milliseconds.
const MINUTE: u64 = 60_000;

/// What there is to look through, without what was said.
#[derive(Clone, Debug)]
pub struct Kept {
    state_dir: PathBuf,
    session: u64,
    /// The newest first.
    there: Vec<There>,
    /// So many of them are short enough, all together, to be searched.
    searched: usize,
    /// So many were had in directories whose files may not be read.
    pub elsewhere: usize,
}

/// One that is there.
#[derive(Clone, Debug)]
struct There {
    shelf: Shelf,
    id: String,
    about: About,
}

impl There {
    fn updated(&self) -> Option<u64> {
        millis(&self.about.updated)
    }

    /// When it began, as far as that is known without what was said.
    fn started(&self) -> u64 {
        self.about.started.or(self.updated()).unwrap_or_default()
    }

    /// Nothing was said in it later than this.
    fn at_the_latest(&self) -> u64 {
        let updated = self.updated();
        updated.map_or(u64::MAX, |minute| minute.saturating_add(MINUTE))
    }
}

/// One that was looked for.
#[derive(Clone, Debug)]
pub enum Found {
    /// It was had earlier.
    Earlier(Earlier),
    /// It is had now.
    Current(Earlier),
}

impl Kept {
    /// What is kept in a state directory of conversations in directories that `may_see`, seen
    /// from the session of this number.
    pub fn look(state_dir: &Path, session: u64, may_see: impl Fn(&Path) -> bool) -> Self {
        let mut there: Vec<There> = Shelf::ALL
            .into_iter()
            .flat_map(|shelf| {
                let all = conversation::all(shelf, state_dir).into_iter();
                all.map(move |(id, about)| There { shelf, id, about })
            })
            .collect();
        there.sort_by(|one, other| other.about.updated.cmp(&one.about.updated));
        let all = there.len();
        // Many were had in a few places.
        let mut places: BTreeMap<PathBuf, bool> = BTreeMap::new();
        there.retain(|one| {
            let cwd = &one.about.cwd;
            *places
                .entry(cwd.clone())
                .or_insert_with(|| may_see(cwd.as_path()))
        });
        let mut bytes = 0_u64;
        let fits = there.iter().take_while(|one| {
            let before = bytes;
            bytes = bytes.saturating_add(one.about.bytes);
            before < BYTES_MAX
        });
        Self {
            state_dir: state_dir.to_owned(),
            session,
            searched: fits.count(),
            elsewhere: all - there.len(),
            there,
        }
    }

    /// So many are too long, all together, to be searched.
    #[must_use]
    pub fn beyond(&self) -> usize {
        self.there.len() - self.searched
    }

    /// What was said in one; what is damaged or being removed is no conversation.
    fn read(&self, there: &There) -> Option<Found> {
        let said = Conversation::look(&there.shelf.dir_of(&self.state_dir, &there.id))?;
        let is_current = said.mark.is_some_and(|mark| mark.session == self.session);
        let one = Earlier::of(there.shelf, there.id.clone(), said);
        Some(match is_current {
            true => Found::Current(one),
            false => Found::Earlier(one),
        })
    }

    fn read_earlier(&self, there: &There) -> Option<Earlier> {
        match self.read(there)? {
            Found::Earlier(earlier) => Some(earlier),
            Found::Current(_) => None,
        }
    }

    /// One of them by its id.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<Found> {
        self.read(self.there.iter().find(|one| one.id == id)?)
    }

    /// The one that something was found in.
    #[must_use]
    pub fn of(&self, hit: &Hit) -> Option<Earlier> {
        self.read_earlier(self.there.get(hit.conversation)?)
    }

    /// The one a title names: the newest of those that go on under it (`title #2`), else
    /// itself. As Hermes has it (`SessionDB.resolve_session_by_title`), large and small letters
    /// are one only in the title of one that goes on.
    #[must_use]
    pub fn by_title(&self, title: &str) -> Option<Earlier> {
        let goes_on = |its: &str| {
            let (head, rest) = its.split_at_checked(title.len()).unwrap_or_default();
            head.eq_ignore_ascii_case(title) && rest.starts_with(" #")
        };
        let titled = |is_it: &dyn Fn(&str) -> bool| {
            let all = self.there.iter();
            let mut all: Vec<&There> = all
                .filter(|one| one.about.title.as_deref().is_some_and(is_it))
                .collect();
            all.sort_by_key(|one| (one.started(), &one.id));
            all
        };
        let mut newest = titled(&goes_on).into_iter().rev();
        newest.find_map(|one| self.read_earlier(one)).or_else(|| {
            let mut oldest = titled(&|its| its == title).into_iter();
            oldest.find_map(|one| self.read_earlier(one))
        })
    }

    /// Of so many in which something was said last, the newest first, what is to be `told`.
    pub fn newest<T>(&self, most: usize, told: impl Fn(&Earlier) -> T) -> Vec<T> {
        let mut newest: Vec<((u64, u64, String), T)> = Vec::new();
        for there in &self.there {
            let is_full = newest.len() >= most;
            // No other can be newer: they are gone through by when they were written last.
            if let (true, Some(((last, ..), _))) = (is_full, newest.last())
                && *last > there.at_the_latest()
            {
                break;
            }
            let Some(one) = self.read_earlier(there) else {
                continue;
            };
            let order = (one.last_active(), one.started, one.id.clone());
            newest.push((order, told(&one)));
            newest.sort_by(|(one, _), (other, _)| other.cmp(one));
            newest.truncate(most);
        }
        newest.into_iter().map(|(_, told)| told).collect()
    }

    /// What is found in those that are searched.
    ///
    /// # Errors
    /// The memory does not suffice.
    pub fn search(
        &self,
        search: &Search,
        roles: &[String],
        order: Order,
    ) -> rusqlite::Result<Vec<Hit>> {
        let mut places: Vec<(usize, &There)> =
            self.there.iter().take(self.searched).enumerate().collect();
        // What fits equally well is found in the order in which it began.
        places.sort_by_key(|(_, one)| (one.started(), &one.id));
        let all = places
            .into_iter()
            .filter_map(|(place, there)| Some((place, self.read_earlier(there)?)));
        Index::of(all, search)?.search(search, roles, order)
    }
}
