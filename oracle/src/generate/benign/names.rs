//! Names people give: words, several of them, in other scripts, with dots, hidden, long.
//!
//! None of them is asked about wherever it stands (`HEAD`, `credentials`, `auth.json`, `x.git`,
//! `objects` below the branches of git): those are no false alarms.

use arbitrary::{Arbitrary, Unstructured};

/// What is unusual about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Letters {
    /// Nothing.
    Plain,
    /// There are spaces in it.
    Spaced,
    /// It is not in Latin letters alone.
    Foreign,
    /// There are dots in it.
    Dotted,
    /// It begins with a dot.
    Hidden,
    /// It begins with a dash.
    Dashed,
    /// It is nearly as long as names are.
    Long,
    /// A shell reads some of its letters otherwise.
    Marked,
}

impl Letters {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Spaced,
        Self::Foreign,
        Self::Dotted,
        Self::Hidden,
        Self::Dashed,
        Self::Long,
        Self::Marked,
    ];

    /// Its letter in the catalogue.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Plain => 'p',
            Self::Spaced => 's',
            Self::Foreign => 'f',
            Self::Dotted => 'd',
            Self::Hidden => 'h',
            Self::Dashed => 'm',
            Self::Long => 'l',
            Self::Marked => 'q',
        }
    }

    /// A name with such letters.
    ///
    /// # Errors
    /// The bytes ran out.
    pub fn name(self, bytes: &mut Unstructured<'_>) -> arbitrary::Result<String> {
        let (one, two) = match self {
            Self::Hidden => (*bytes.choose(&HIDDEN)?, *bytes.choose(&HIDDEN)?),
            _ => (*bytes.choose(&STEMS)?, *bytes.choose(&STEMS)?),
        };
        let number = match bytes.int_in_range(0..=3_u8)? {
            0 => String::new(),
            1 => format!("-{two}"),
            2 => format!("_{}", u8::arbitrary(bytes)?),
            _ => u16::arbitrary(bytes)?.to_string(),
        };
        let name = format!("{one}{number}");
        Ok(match self {
            Self::Plain => name,
            Self::Spaced => format!("{two} {name}"),
            Self::Foreign => format!("{}{name}", bytes.choose(&FOREIGN)?),
            Self::Dotted => format!("{two}.v1.{name}"),
            Self::Hidden => format!(".{name}"),
            Self::Dashed => format!("-{name}"),
            Self::Long => format!("{name}{}", "-and-more".repeat(15)),
            Self::Marked => format!("{name} {}", bytes.choose(&MARKED)?),
        })
    }
}

const FOREIGN: [&str; 6] = [
    "gr\u{f6}\u{df}e-",
    "\u{65e5}\u{672c}\u{8a9e}",
    "na\u{ef}ve_",
    "\u{44f}",
    "e\u{301}t\u{e9}",
    "\u{1f980}",
];
const MARKED: [&str; 4] = ["it's", "(copy)", "a&b", "$5"];

/// What may stand behind a dot: no `.env`, `.ssh` or `.config`, which are asked about, as are
/// links of these names.
const HIDDEN: [&str; 8] = [
    "main", "parser", "report", "notes", "order", "index", "queue", "handle",
];

/// Words of every kind of work; those that mean something elsewhere (`hooks`, `config`) are
/// among them.
const STEMS: [&str; 44] = [
    "main",
    "lib",
    "parser",
    "token",
    "report",
    "notes",
    "order",
    "index",
    "user",
    "config",
    "queue",
    "handle",
    "hooks",
    "branches",
    "remotes",
    "modules",
    "settings",
    "environment",
    "secret_santa",
    "passwords_view",
    "ssh",
    "login",
    "profile",
    "bashrc",
    "keys",
    "cert",
    "docker",
    "kube",
    "aws",
    "npmrc",
    "tasks",
    "cron",
    "skills",
    "memories",
    "sessions",
    "proc",
    "sys",
    "dev",
    "etc",
    "usr",
    "boot",
    "admin",
    "root",
    "sudo",
];

/// A name as a shell reads it: bare, in quotes or with each letter escaped.
#[must_use]
pub fn word(name: &str, quoted: bool) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "._-+@".contains(letter);
    if name.chars().all(is_bare) && !name.is_empty() {
        return name.to_owned();
    }
    if quoted || name.contains('\n') {
        return format!("'{}'", name.replace('\'', r"'\''"));
    }
    let mut word = String::new();
    for letter in name.chars() {
        if !is_bare(letter) && letter.is_ascii() {
            word.push('\\');
        }
        word.push(letter);
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_of_letters_has_its_own_letter_and_many_names() {
        let letters: BTreeSet<char> = Letters::ALL.iter().map(|one| one.letter()).collect();
        assert_eq!(letters.len(), Letters::ALL.len());
        for kind in Letters::ALL {
            let names: BTreeSet<String> = (0..=255_u8)
                .map(|byte| {
                    let bytes = [byte, byte.wrapping_mul(7), byte, 9, byte, 3];
                    kind.name(&mut Unstructured::new(&bytes)).unwrap()
                })
                .collect();
            assert!(names.len() > 40, "{kind:?}: {}", names.len());
            assert!(
                names
                    .iter()
                    .all(|name| name.len() < 200 && !name.contains('/'))
            );
        }
    }

    #[test]
    fn a_word_is_bare_quoted_or_escaped() {
        assert_eq!(word("a-b.c", true), "a-b.c");
        assert_eq!(word("a b", true), "'a b'");
        assert_eq!(word("a b$", false), r"a\ b\$");
        assert_eq!(word("it's", true), r"'it'\''s'");
        assert_eq!(word("\u{fc} x", false), "\u{fc}\\ x");
    }
}
