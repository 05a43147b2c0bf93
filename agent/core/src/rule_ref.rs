//! The name of the rule behind a decision, for a person to look up.

use alloc::string::String;
use core::fmt;

use crate::escape::write_escaped;

/// Which rule decided, and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleRef {
    /// Its name: `builtin.…` for rules of the program itself.
    pub id: String,
    /// The file and line of a rule that comes from configuration.
    pub place: Option<(String, u32)>,
}

impl RuleRef {
    /// A rule of the program itself.
    #[must_use]
    pub fn builtin(id: &str) -> RuleRef {
        RuleRef {
            id: String::from(id),
            place: None,
        }
    }
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.id.as_bytes())?;
        match &self.place {
            Some((file, line)) => {
                f.write_str(" at ")?;
                write_escaped(f, file.as_bytes())?;
                write!(f, ":{line}")
            }
            None => Ok(()),
        }
    }
}
