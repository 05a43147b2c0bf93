//! Why Hermes let a command through unasked.
//!
//! The plain form of the command matches patterns of Hermes; some of its operators
//! are needed for none to match any more. The patterns and the classes of these are
//! the bucket of the escape.

use bisim_world::WorldError;
use bisim_world::protocol::Context;

use super::patterns;
use crate::generate::Variant;
use crate::subject::Restarting;

/// An escape, made small.
#[derive(Clone, Debug)]
pub struct Escape {
    /// What is left when every operator that is not needed is left out.
    pub needed: Variant,
    /// Whether Hermes' guards flag it, and nobody was asked all the same.
    pub is_flagged: bool,
}

impl Escape {
    /// Leaves out links as long as no guard of Hermes flags what is left.
    ///
    /// # Errors
    /// Hermes does not answer.
    pub fn of(
        hermes: &mut Restarting,
        variant: &Variant,
        matched: &[String],
    ) -> Result<Self, WorldError> {
        let mut needed = variant.clone();
        let is_flagged = flagged(hermes, &needed)?;
        while !is_flagged && !matched.is_empty() {
            let mut shorter = None;
            for smaller in needed.shorter() {
                if smaller.render().is_some() && !flagged(hermes, &smaller)? {
                    shorter = Some(smaller);
                    break;
                }
            }
            match shorter {
                Some(smaller) => needed = smaller,
                None => break,
            }
        }
        Ok(Self { needed, is_flagged })
    }

    /// Its bucket, where the plain command matches these patterns.
    #[must_use]
    pub fn bucket(&self, matched: &[String]) -> String {
        let context = self.needed.context;
        let classes = self.needed.classes();
        let classes: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
        match (self.is_flagged, matched) {
            _ if !is_guarded(context) => format!("unasked | not looked at | {}", context.word()),
            (true, _) => format!("unasked | flagged | {}", context.word()),
            (false, []) => format!("unasked | no pattern | {}", self.needed.seed.name),
            (false, matched) => {
                format!("unasked | {} | {}", matched.join(", "), classes.join(" "))
            }
        }
    }
}

fn flagged(hermes: &mut Restarting, variant: &Variant) -> Result<bool, WorldError> {
    let Some(rendered) = variant.render() else {
        return Err(WorldError::new("render", "the variant has no text"));
    };
    let calls: Vec<&str> = rendered.calls().collect();
    let flagged = patterns::flagged(hermes, &calls)?;
    Ok(flagged.into_iter().any(|flagged| flagged))
}

/// The patterns of Hermes a plain command matches, by guard and number.
///
/// # Errors
/// Hermes does not answer.
pub fn matched(hermes: &mut Restarting, plain: &str) -> Result<Vec<String>, WorldError> {
    let found = patterns::matched(hermes, Some(plain))?;
    Ok(found
        .iter()
        .map(|pattern| format!("{} {}", pattern.guard, pattern.number))
        .collect())
}

/// Whether Hermes looks at the spelling of a command there.
pub(super) const fn is_guarded(context: Context) -> bool {
    match context {
        Context::Interactive | Context::Gateway | Context::Acp | Context::Cron => true,
        Context::Headless => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_is_told_by_the_patterns_dodged_and_what_dodges_them() {
        let bucket = |name: &str, is_flagged, matched: &[&str]| {
            let needed = Variant::named(name).unwrap();
            let matched: Vec<String> = matched.iter().map(|m| (*m).to_owned()).collect();
            Escape { needed, is_flagged }.bucket(&matched)
        };
        for (name, is_flagged, matched, expected) in [
            (
                "delete-file+env~0",
                false,
                &["dangerous 3"][..],
                "unasked | dangerous 3 | wrapper",
            ),
            (
                "delete-file+env~0",
                false,
                &[],
                "unasked | no pattern | delete-file",
            ),
            (
                "delete-file@cron",
                true,
                &["dangerous 3"],
                "unasked | flagged | cron",
            ),
            (
                "delete-file@headless",
                true,
                &["dangerous 3"],
                "unasked | not looked at | headless",
            ),
        ] {
            assert_eq!(bucket(name, is_flagged, matched), expected);
        }
    }
}
