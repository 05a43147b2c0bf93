//! From calls as they are read to units that can be run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::files::{self, Workspace, Workspaces};
use super::place::Places;
use super::unit::{CALLS_MAX, Unit, never};
use super::{Outcome, Unreplayable};
use crate::migrate::history::{Call, Session, Sink};

/// Known files that are carried along, and how long one may be.
const KNOWN_MAX: usize = 100;
const KNOWN_BYTES_MAX: usize = 64 << 10;

/// Makes units, and hands them on.
pub struct Gather<'g, F> {
    workspaces: &'g mut Workspaces,
    workspace: Arc<Workspace>,
    /// What stands for the workspace where a session does not say.
    usual: Option<String>,
    home: Option<String>,
    session: Session,
    calls: Vec<Call>,
    known: BTreeMap<String, String>,
    hand: F,
}

/// What is handed on.
pub enum Handed {
    /// To be run.
    Unit(Box<Unit>),
    /// Cannot be run.
    Not(Outcome),
}

impl<'g, F: FnMut(Handed) -> bool> Gather<'g, F> {
    /// Nothing gathered yet.
    pub fn new(
        workspaces: &'g mut Workspaces,
        usual: Option<String>,
        home: Option<String>,
        hand: F,
    ) -> Self {
        Self {
            workspaces,
            workspace: Arc::default(),
            usual,
            home,
            session: Session::default(),
            calls: Vec::new(),
            known: BTreeMap::new(),
            hand,
        }
    }

    fn project(&self) -> Option<&str> {
        self.session.cwd.as_deref().or(self.usual.as_deref())
    }

    fn places(&self) -> Places {
        Places::new(self.project(), self.home.as_deref())
    }

    /// Hands on what is gathered; whether more is wanted.
    pub fn flush(&mut self) -> bool {
        if self.calls.is_empty() {
            return true;
        }
        let calls = std::mem::take(&mut self.calls);
        let scene = files::scene(&calls, &self.known, &self.workspace);
        let known = std::mem::replace(
            &mut self.known,
            scene.after.into_iter().next_back().unwrap_or_default(),
        );
        self.known.retain(|_, text| text.len() <= KNOWN_BYTES_MAX);
        while self.known.len() > KNOWN_MAX {
            self.known.pop_first();
        }
        let unit = Unit {
            session: self.session.clone(),
            project: self.project().map(str::to_owned),
            places: self.places(),
            workspace: Arc::clone(&self.workspace),
            calls,
            known,
        };
        (self.hand)(Handed::Unit(Box::new(unit)))
    }
}

impl<F: FnMut(Handed) -> bool> Sink for Gather<'_, F> {
    fn session(&mut self, session: &Session) {
        // Whether more is wanted is asked again at the next call.
        let _ = self.flush();
        self.session = session.clone();
        self.workspace = self.workspaces.of(session);
        self.known.clear();
    }

    fn call(&mut self, call: Call) -> bool {
        let places = self.places();
        let call = Call {
            args: places.value(&call.args),
            ..call
        };
        let not = never(&call.tool)
            .map(Unreplayable::Tool)
            .or_else(|| call.result.is_none().then_some(Unreplayable::NoResult));
        match not {
            Some(reason) => (self.hand)(Handed::Not(Outcome::unreplayed(&call, &reason))),
            None => {
                self.calls.push(call);
                self.calls.len() < CALLS_MAX || self.flush()
            }
        }
    }
}
