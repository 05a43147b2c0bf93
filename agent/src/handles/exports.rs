//! The bearers' names of one session.
//!
//! A name is looked up by its keyed hash, under a key drawn for this session
//! alone: how long a lookup takes says nothing about any name, and a name of
//! another session is not even found. Each name is for one audience and counts
//! once.

use std::collections::BTreeMap;

use hermitcrab_core::{
    grant::{AgentId, GrantId},
    outcome::Denial,
    standing::Audience,
};

use super::{no_such_object, object_ref::ObjectRef};
use crate::state_dir::key::{Key, Purpose, Tag};

/// Names one session may have given out and not seen again.
const NAMES_MAX: usize = 4096;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerSession {
    /// The grant.
    pub grant: GrantId,
    /// Who holds it and gave it out.
    pub by: AgentId,
}

#[derive(Debug)]
struct Row {
    what: PerSession,
    audience: Audience,
}

/// All names of a session.
#[derive(Debug)]
pub struct Exports {
    session: u64,
    key: Key,
    rows: BTreeMap<Tag, Row>,
}

impl Exports {
    /// Those of a session that has given out none.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn of_session(session: u64) -> Result<Self, getrandom::Error> {
        Ok(Self {
            session,
            key: Key::draw()?,
            rows: BTreeMap::new(),
        })
    }

    /// Gives a name to a grant, for one audience.
    ///
    /// # Errors
    /// The system has no randomness, or too many names are out.
    pub fn export(&mut self, what: PerSession, audience: Audience) -> Result<ObjectRef, Denial> {
        let refused =
            |about: &str| Denial::new(hermitcrab_core::outcome::DenialCode::LimitReached, about);
        if self.rows.len() >= NAMES_MAX {
            return Err(refused("objects given out in one session"));
        }
        let name = ObjectRef::draw().map_err(|_| refused("the system's randomness"))?;
        self.rows.insert(self.tag(&name), Row { what, audience });
        Ok(name)
    }

    /// What a name stands for, for this audience in this session; after that
    /// it stands for nothing.
    ///
    /// # Errors
    /// `no-such-object`, whatever the reason.
    pub fn claim(
        &mut self,
        session: u64,
        audience: &Audience,
        text: &str,
    ) -> Result<PerSession, Denial> {
        let tag = ObjectRef::parse(text).map(|name| self.tag(&name));
        let row = tag.and_then(|tag| {
            let row = self.rows.get(&tag)?;
            let right = session == self.session && row.audience == *audience;
            right.then(|| self.rows.remove(&tag)).flatten()
        });
        row.map(|row| row.what).ok_or_else(no_such_object)
    }

    /// Do these letters name something?
    #[must_use]
    pub fn is_live(&self, letters: &str) -> bool {
        !self.rows.is_empty()
            && ObjectRef::from_letters(letters)
                .is_some_and(|name| self.rows.contains_key(&self.tag(&name)))
    }

    /// Has it given out no names that still count?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn tag(&self, name: &ObjectRef) -> Tag {
        self.key.tag(Purpose::Object, name.as_bytes())
    }
}
