//! Rules written down by people: ask here, refuse there.
//!
//! A rule names verbs and a place or peer in portable words, and where it is
//! written. Deny beats ask beats allow, however wide or narrow each is and
//! whoever wrote it, so a file in a project can make things stricter and never
//! milder. An allow is no authority by itself: the edge makes a grant of it, and
//! only if it does not come from the project.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::action::Action;
use crate::approval::Stance;
use crate::authority::{Object, Program, Verb};
use crate::fault::{self, Fault};
use crate::limits::{CONFIGURED_RULES_MAX, TEXT_BYTES_MAX};
use crate::outcome::{Denial, DenialCode};
use crate::path::RelPath;
use crate::rule_ref::RuleRef;
use crate::standing::PortableObject;

/// Who wrote a rule, from least to most trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// A file that came with what is worked on.
    Project,
    /// The user.
    User,
    /// Whoever looks after the machine.
    Administrator,
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Everything its verbs act on.
    Anything,
    /// This and, for a place, everything below it.
    Object(PortableObject),
    /// Files and directories of this name anywhere; `*` stands for any letters.
    Named(String),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredRule {
    id: String,
    stance: Stance,
    verbs: Vec<Verb>,
    pattern: Pattern,
    file: String,
    line: u32,
    layer: Layer,
}

/// Why something is not a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// It has no name or one that is too long.
    Id,
    /// It names no verb, or one that does not act on such a thing.
    Verb,
    /// It allows something by a pattern of names, which no grant can express.
    AllowByName,
    /// It comes with the project and would make things milder.
    ProjectAllows,
    /// It names a program in the view, where names decide nothing.
    ProgramInView,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleError::Id => "the rule has no name, or one that is too long",
            RuleError::Verb => "the rule names no verb that acts on such a thing",
            RuleError::AllowByName => "a pattern of names can ask or deny, not allow",
            RuleError::ProjectAllows => "a file of the project can ask or deny, not allow",
            RuleError::ProgramInView => {
                "a program in the view is judged by what it changes, not by its name"
            }
        })
    }
}

impl core::error::Error for RuleError {}

impl ConfiguredRule {
    /// A rule named `id`, written in `file` at `line`.
    ///
    /// # Errors
    /// It could not mean what it says.
    pub fn new(
        id: &str,
        stance: Stance,
        verbs: Vec<Verb>,
        pattern: Pattern,
        (file, line, layer): (&str, u32, Layer),
    ) -> Result<ConfiguredRule, RuleError> {
        if id.is_empty() || id.len().max(file.len()) > TEXT_BYTES_MAX {
            return Err(RuleError::Id);
        }
        let fits = |verb: &Verb| match &pattern {
            Pattern::Anything => true,
            Pattern::Object(object) => verb.object_kind() == object.kind(),
            Pattern::Named(_) => verb.object_kind() == crate::authority::ObjectKind::Dir,
        };
        if verbs.is_empty() || !verbs.iter().all(fits) {
            return Err(RuleError::Verb);
        }
        if let Pattern::Object(PortableObject::Program(Program::InView(_))) = pattern {
            return Err(RuleError::ProgramInView);
        }
        if stance == Stance::Allow {
            match pattern {
                Pattern::Named(_) => return Err(RuleError::AllowByName),
                Pattern::Anything | Pattern::Object(_) if layer == Layer::Project => {
                    return Err(RuleError::ProjectAllows);
                }
                Pattern::Anything | Pattern::Object(_) => {}
            }
        }
        Ok(ConfiguredRule {
            id: String::from(id),
            stance,
            verbs,
            pattern,
            file: String::from(file),
            line,
            layer,
        })
    }

    /// What it says.
    #[must_use]
    pub const fn stance(&self) -> Stance {
        self.stance
    }

    /// What it is about.
    #[must_use]
    pub const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// What it is about doing.
    #[must_use]
    pub fn verbs(&self) -> &[Verb] {
        &self.verbs
    }

    /// Who wrote it.
    #[must_use]
    pub const fn layer(&self) -> Layer {
        self.layer
    }

    /// Its name and where it is written.
    #[must_use]
    pub fn reference(&self) -> RuleRef {
        RuleRef {
            id: self.id.clone(),
            place: Some((self.file.clone(), self.line)),
        }
    }

    /// Is it about this action, whose place is `location` seen from `/`?
    fn matches(&self, action: &Action, location: Option<&RelPath>) -> bool {
        if !self.verbs.contains(&action.verb()) {
            return self.would_lose_sight(action, location);
        }
        match (&self.pattern, location) {
            (Pattern::Anything, _) => true,
            // A rule about a name is about what lies below it, too: that is never milder.
            (Pattern::Object(PortableObject::Place { at: place, .. }), Some(location)) => {
                // Removing or moving a directory takes along what lies in it.
                let takes_along = takes_along(action.verb())
                    && self.stance != Stance::Allow
                    && place.starts_with(location);
                takes_along || location.starts_with(place)
            }
            (Pattern::Named(pattern), Some(location)) => location
                .components()
                .any(|name| name_matches(pattern.as_bytes(), name)),
            (Pattern::Object(object), None) => overlaps(object, action.object()),
            (Pattern::Object(_), Some(_)) | (Pattern::Named(_), None) => false,
        }
    }

    /// Does it keep something in there from being seen? A directory that is moved takes
    /// that along to where the rule is not about it. A name goes along with what it names.
    fn would_lose_sight(&self, action: &Action, location: Option<&RelPath>) -> bool {
        match (&self.pattern, location) {
            (Pattern::Object(PortableObject::Place { at: place, .. }), Some(location)) => {
                takes_along(action.verb())
                    && self.is_about_seeing()
                    && place.starts_with(location)
                    && place != location
            }
            (Pattern::Anything | Pattern::Named(_) | Pattern::Object(_), _) => false,
        }
    }

    /// Does it keep anything from being read or listed?
    pub(super) fn is_about_seeing(&self) -> bool {
        let sees = |verb| matches!(verb, &Verb::FsRead | &Verb::FsList);
        self.stance != Stance::Allow && self.verbs.iter().any(sees)
    }
}

/// Is it done to a directory together with all that lies in it?
const fn takes_along(verb: Verb) -> bool {
    matches!(verb, Verb::FsDelete | Verb::FsMount)
}

/// Is anything in both? Doubt counts as yes: it leads to a question or a refusal.
fn overlaps(pattern: &PortableObject, object: &Object) -> bool {
    let pattern = match pattern.clone() {
        PortableObject::Place { .. } => return false,
        PortableObject::Program(program) => Object::Program(program),
        PortableObject::Host(host) => Object::Host(host),
        PortableObject::Secret(name) => Object::Secret(name),
        PortableObject::Model(name) => Object::Model(name),
        PortableObject::Session => Object::Session,
        PortableObject::Extension(extension) => Object::Extension(extension),
    };
    pattern.meet(object).is_some()
}

/// Does `pattern`, in which `*` stands for any bytes, match all of `name`? Case is ignored.
pub(super) fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    // Where to go on if what follows the last star does not fit: each star is
    // tried again only further along, so the time is bounded by the product.
    let (mut at, mut on) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    let is_same = |wanted: &u8, letter: &u8| match fault::is(Fault::RulesTellCases) {
        true => wanted == letter,
        false => wanted.eq_ignore_ascii_case(letter),
    };
    loop {
        match (pattern.get(at), name.get(on)) {
            (Some(b'*'), _) => {
                retry = Some((at, on));
                at += 1;
            }
            (Some(wanted), Some(letter)) if is_same(wanted, letter) => {
                at += 1;
                on += 1;
            }
            (None, None) => return true,
            _ => match retry {
                Some((star, begun)) if begun < name.len() => {
                    retry = Some((star, begun + 1));
                    at = star + 1;
                    on = begun + 1;
                }
                _ => return false,
            },
        }
    }
}

/// All rules of a session.
#[derive(Debug, Default)]
pub(super) struct Configured {
    // INVARIANT: strictest first, then the most trusted, then as written.
    rules: Vec<ConfiguredRule>,
}

impl Configured {
    pub(super) fn add(&mut self, rule: ConfiguredRule) -> Result<(), Denial> {
        if self.rules.len() >= CONFIGURED_RULES_MAX {
            let about = format_args!(
                "{CONFIGURED_RULES_MAX} configured rules; name several places or verbs in one"
            );
            return Err(Denial::new(DenialCode::LimitReached, about));
        }
        let rank = |rule: &ConfiguredRule| (rule.stance, rule.layer);
        let place = self
            .rules
            .partition_point(|other| match fault::is(Fault::MildestRuleCounts) {
                true => rank(other) <= rank(&rule),
                false => rank(other) >= rank(&rule),
            });
        self.rules.insert(place, rule);
        Ok(())
    }

    pub(super) fn list(&self) -> &[ConfiguredRule] {
        &self.rules
    }

    /// The strictest rule about this action.
    pub(super) fn strictest(
        &self,
        action: &Action,
        location: Option<&RelPath>,
    ) -> Option<&ConfiguredRule> {
        self.rules
            .iter()
            .find(|rule| rule.matches(action, location))
    }
}

#[cfg(test)]
mod tests {
    use super::name_matches;

    #[test]
    fn a_star_stands_for_any_letters_and_everything_else_for_itself() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(
                name_matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        };
        check("", "", true);
        check("", "a", false);
        check("*", "", true);
        check("*.pem", "key.pem", true);
        check("*.pem", "KEY.PEM", true);
        check("*.pem", "key.pem.txt", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-b-b", false);
        check("**", "anything", true);
        check("a", "ab", false);
        check("?", "a", false);
        // The star is tried again further along, to the very end of the name.
        check("*b", "aab", true);
        check("*ab", "aab", true);
        check("*b", "aba", false);
        check("a*ab*b", "aaabab", true);
        check("*aab", "aaaab", true);
        check("a*", "a", true);
        check("*a*", "b", false);
    }
}
