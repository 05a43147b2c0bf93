//! A server that is a program, and what it is started with.

use std::fmt;

use hermitcrab_core::outcome::{Denial, DenialCode};

use super::web::Key;
use crate::text::args;

/// Words of a command, and variables beside it.
const WORDS_MAX: usize = 256;
/// Bytes of one of them.
const WORD_BYTES_MAX: usize = 4096;

/// How words of a variable's name end that say what it holds is a secret.
const SECRET_ENDINGS: [&str; 8] = [
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];
/// Such words that are a secret's only by themselves.
const WHOLE_SECRET_WORDS: [&str; 4] = ["KEY", "PAT", "AUTH", "PASS"];

/// Whether a variable is there to hold a secret, by its name, or as its value is an address with
/// a password in it.
fn is_secret(name: &str, value: &str) -> bool {
    let is_named = name.to_ascii_uppercase().split('_').any(|word| {
        WHOLE_SECRET_WORDS.contains(&word)
            || SECRET_ENDINGS.iter().any(|known| word.ends_with(known))
    });
    let has_password = || {
        let (_, rest) = value.split_once("://")?;
        let (who, _) = rest.split_once('@')?;
        (who.contains(':') && !who.contains('/')).then_some(())
    };
    is_named || has_password().is_some()
}

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

    /// What of its variables nobody but it is to know.
    pub(super) fn secrets(&self) -> impl Iterator<Item = Key> {
        let variables = self.env.iter();
        variables
            .filter(|(name, value)| is_secret(name, value))
            .filter_map(|(_, value)| Key::given(value))
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
    fn a_variable_with_the_name_of_a_secret_holds_one() {
        for (name, value, holds) in [
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "ghp_1", true),
            ("api_key", "x", true),
            ("APIKEY", "x", true),
            ("MYTOKEN", "x", true),
            ("AUTH", "x", true),
            ("DATABASE_URL", "postgres://u:word@h/db", true),
            ("DATABASE_URL", "postgres://h/db?a=u:w@x", false),
            ("GIT_AUTHOR_NAME", "Jane Doe", false),
            ("KEYBOARD", "us-intl", false),
            ("LANG", "C.UTF-8", false),
            ("MONKEY", "banana", false),
            ("PATH", "/usr/bin", false),
        ] {
            assert_eq!(super::is_secret(name, value), holds, "{name}");
        }
    }

    #[test]
    fn what_a_variable_holds_is_shown_nowhere() {
        let one = program(&["server"], &[("KEY", "secret")]);
        assert!(!format!("{one:?}{}", one.shown()).contains("secret"));
    }
}
