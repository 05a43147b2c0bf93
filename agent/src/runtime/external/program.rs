//! A server that is a program, and what it is started with.

use std::fmt;

use hermitcrab_core::outcome::{Denial, DenialCode};

use crate::text::args;

/// Words of a command, and variables beside it.
const WORDS_MAX: usize = 256;
/// Bytes of one of them.
const WORD_BYTES_MAX: usize = 4096;

/// How a server is started: nobody's shell reads this.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables besides the session's own.
    pub env: Vec<(String, String)>,
}

impl Program {
    /// Whether it can be started at all.
    ///
    /// # Errors
    /// `bad-arguments`, with what is wrong.
    pub(super) fn check(&self, server: &str) -> Result<(), Denial> {
        let wrong = |what: &str| {
            Err(Denial::new(
                DenialCode::BadArguments,
                format!("the command of the server `{server}` {what}"),
            ))
        };
        if self.argv.first().is_none_or(String::is_empty) {
            return wrong("names no program");
        }
        if self.argv.len() + self.env.len() > WORDS_MAX {
            return wrong("has too many words");
        }
        let values = self.env.iter().map(|(_, value)| value);
        let mut words = self.argv.iter().chain(values);
        if words.any(|word| word.contains('\0') || word.len() > WORD_BYTES_MAX) {
            return wrong("holds a word no program can be given");
        }
        let is_name = |name: &str| {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            !name.is_empty()
                && name.chars().all(plain)
                && !name.starts_with(|letter: char| letter.is_ascii_digit())
        };
        if self.env.iter().any(|(name, _)| !is_name(name)) {
            return wrong("has a variable whose name is none");
        }
        Ok(())
    }

    /// The words, for a person.
    #[must_use]
    pub fn shown(&self) -> String {
        args::text_of(&serde_json::Value::from(self.argv.clone()))
    }
}

/// Variables may hold keys: their names are shown.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("argv", &self.argv)
            .field("env", &names)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Program;

    fn program(argv: &[&str], env: &[(&str, &str)]) -> Program {
        Program {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn a_command_has_a_program_and_variables_have_names() {
        for (one, is_right) in [
            (program(&["server", "a b", ""], &[("KEY_1", "x y")]), true),
            (program(&[], &[]), false),
            (program(&["", "x"], &[]), false),
            (program(&["s", "a\0b"], &[]), false),
            (program(&["s", &"x".repeat(5000)], &[]), false),
            (program(&["s"], &[("", "x")]), false),
            (program(&["s"], &[("1A", "x")]), false),
            (program(&["s"], &[("A=B", "x")]), false),
        ] {
            assert_eq!(one.check("s").is_ok(), is_right, "{one:?}");
        }
    }

    #[test]
    fn what_a_variable_holds_is_shown_nowhere() {
        let one = program(&["server"], &[("KEY", "secret")]);
        assert!(!format!("{one:?}{}", one.shown()).contains("secret"));
    }
}
