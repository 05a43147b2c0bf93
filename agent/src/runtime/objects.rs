//! Grants handed to other programs by name, and names kept out of texts.

use hermitcrab_core::{
    grant::{AgentId, GrantId, Lifetime, Uses},
    outcome::{Denial, DenialCode},
    session::{Attenuation, Event},
    standing::Audience,
};
use serde_json::Value;

use super::Runtime;
use crate::handles::{self, Exports, ObjectRef, PerSession, no_such_object};

impl Runtime {
    /// Gives out a bearer's name for a grant an agent holds: whoever presents
    /// it in this session as this audience gets the grant, once.
    ///
    /// # Errors
    /// It is not held, cannot be used, or too many names are out.
    pub fn export(
        &mut self,
        by: AgentId,
        grant: GrantId,
        audience: Audience,
    ) -> Result<ObjectRef, Denial> {
        let now = self.clock.now();
        let usable = self.machine.look(|session| {
            if session.held_by(by).any(|held| held.id() == grant) {
                session.table().usable(grant, now)
            } else {
                Err(DenialCode::NoCap)
            }
        });
        usable.map_err(|code| Denial::new(code, grant))?;
        let line = format!("exported: {grant} by {by} for {}", audience.as_str());
        self.step(Event::Note(line))?;
        let session = self.config.session;
        let exports = match &mut self.exports {
            Some(exports) => exports,
            None => self
                .exports
                .insert(Exports::of_session(session).map_err(|_| no_such_object())?),
        };
        exports.export(PerSession { grant, by }, audience)
    }

    /// Takes a bearer's name and puts its grant, derived from the giver's,
    /// into an agent's hands.
    ///
    /// # Errors
    /// `no-such-object`, whether the name is unknown, spent, ended, for another
    /// audience or of another session.
    pub fn claim(
        &mut self,
        holder: AgentId,
        audience: &Audience,
        name: &str,
    ) -> Result<GrantId, Denial> {
        let claimed = self
            .exports
            .as_mut()
            .ok_or_else(no_such_object)
            .and_then(|exports| exports.claim(self.config.session, audience, name));
        let granted = claimed.and_then(|what| self.pass_on(&what, holder));
        let line = match &granted {
            Ok(grant) => format!("claimed: {grant} by {}", audience.as_str()),
            Err(_) => format!(
                "claim refused ({}) to {}",
                DenialCode::NoSuchObject,
                audience.as_str()
            ),
        };
        self.step(Event::Note(line))?;
        granted
    }

    fn pass_on(&mut self, what: &PerSession, holder: AgentId) -> Result<GrantId, Denial> {
        let (authority, limits) = self
            .machine
            .look(|session| {
                let grant = session.table().get(what.grant)?;
                Some((grant.authority().clone(), grant.limits()))
            })
            .ok_or_else(no_such_object)?;
        let event = Event::Attenuate(Attenuation {
            by: what.by,
            from: what.grant,
            holder,
            authority,
            uses: match limits.uses {
                Uses::AtMost(uses) => Uses::AtMost(uses),
                Uses::Uncounted => Uses::Uncounted,
            },
            // Cut to the deadline of the one it comes from.
            lifetime: Lifetime::Session,
        });
        let parts = self.step(event)?;
        parts.granted.ok_or_else(no_such_object)
    }

    /// The grants of an agent by the names a model may use for them.
    #[must_use]
    pub fn cap_list(&self, agent: AgentId) -> Vec<(String, GrantId)> {
        self.held_by(agent)
            .into_iter()
            .enumerate()
            .map(|(place, grant)| (handles::cap_name(place), grant))
            .collect()
    }

    /// The name a model may use for a grant its agent holds.
    #[must_use]
    pub fn cap_of(&self, agent: AgentId, grant: GrantId) -> String {
        self.cap_list(agent)
            .into_iter()
            .find(|(_, held)| *held == grant)
            .map_or_else(|| grant.to_string(), |(name, _)| name)
    }

    /// The grant an agent means by a name.
    ///
    /// # Errors
    /// `no-such-object`.
    pub fn cap_named(&self, agent: AgentId, name: &str) -> Result<GrantId, Denial> {
        handles::cap_place(name)
            .and_then(|place| self.held_by(agent).get(place).copied())
            .ok_or_else(no_such_object)
    }

    /// Do these letters name something that whoever has them may claim?
    fn is_bearers_name(&self, letters: &str) -> bool {
        let exported = self
            .exports
            .as_ref()
            .is_some_and(|exports| exports.is_live(letters));
        exported
            || self
                .desk
                .as_ref()
                .is_some_and(|desk| desk.borrow().keeper.is_reference(letters))
    }

    /// Is there no bearer's name that could be in a text?
    fn has_no_names_out(&self) -> bool {
        self.exports.as_ref().is_none_or(Exports::is_empty)
            && self
                .desk
                .as_ref()
                .is_none_or(|desk| desk.borrow().keeper.contents().sturdy.is_empty())
    }

    /// A text on its way to a model or a file of ours, without bearers' names.
    pub(super) fn outgoing(&mut self, text: String) -> String {
        if self.has_no_names_out() {
            return text;
        }
        let cleaned = handles::scan::clean(&text, |letters| self.is_bearers_name(letters));
        if cleaned.removed == 0 {
            return text;
        }
        let clean = cleaned.text.into_owned();
        let line = format!(
            "{} names of capabilities were removed from a text for the model",
            cleaned.removed
        );
        // The text is clean whether or not this can be recorded.
        let _ = self.note(line);
        clean
    }

    /// Is there a bearer's name anywhere in a call's arguments? It would get
    /// into the ledger and into questions.
    pub(super) fn names_in(&self, arguments: &Value) -> bool {
        !self.has_no_names_out() && self.any_text(arguments)
    }

    fn any_text(&self, value: &Value) -> bool {
        let found = |text: &str| {
            handles::scan::clean(text, |letters| self.is_bearers_name(letters)).removed > 0
        };
        match value {
            Value::String(text) => found(text),
            Value::Array(items) => items.iter().any(|item| self.any_text(item)),
            Value::Object(fields) => fields
                .iter()
                .any(|(name, value)| found(name) || self.any_text(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}
