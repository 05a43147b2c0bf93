//! A small shell syntax tree that is made, rewritten and printed, never parsed.
//!
//! It holds what rewriting needs: words that know both what they mean and how
//! they are spelled, commands made of words, and frames around them. Printing
//! takes care of what composes badly in shell text: the here-document that ends
//! its line, and the `;` that ends a command and stands once.

use std::fmt::Write as _;

/// One word: what it means, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    value: String,
    spelling: String,
}

impl Word {
    /// A word written as plainly as its letters allow.
    #[must_use]
    pub fn plain(value: &str) -> Self {
        let spelling = if !value.is_empty() && value.chars().all(is_plain) {
            value.to_owned()
        } else {
            single_quoted(value)
        };
        Self {
            value: value.to_owned(),
            spelling,
        }
    }

    /// A word written in another way that means the same.
    #[must_use]
    pub fn spelled(value: &str, spelling: String) -> Self {
        Self {
            value: value.to_owned(),
            spelling,
        }
    }

    /// What the command receives.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What the shell reads.
    #[must_use]
    pub fn spelling(&self) -> &str {
        &self.spelling
    }

    /// Whether nobody has respelled it yet.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.spelling == self.value
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "/._-+:@%,=".contains(letter)
}

/// `text` as one single-quoted word.
#[must_use]
pub fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// One command: words, and raw text before (assignments) and after (redirections).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Assignments, printed as they are.
    pub before: Vec<String>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Redirections, printed as they are.
    pub after: Vec<String>,
    /// What stands between two words: one blank, usually.
    pub gap: Option<String>,
}

impl Simple {
    /// A command of plain words.
    #[must_use]
    pub fn of(words: &[&str]) -> Self {
        Self {
            words: words.iter().map(|word| Word::plain(word)).collect(),
            ..Self::default()
        }
    }

    /// The words as one line.
    #[must_use]
    pub fn print(&self) -> String {
        let gap = self.gap.as_deref().unwrap_or(" ");
        let words: Vec<&str> = self.words.iter().map(Word::spelling).collect();
        let mut parts: Vec<&str> = self.before.iter().map(String::as_str).collect();
        let words = words.join(gap);
        if !words.is_empty() {
            parts.push(&words);
        }
        parts.extend(self.after.iter().map(String::as_str));
        parts.join(" ")
    }
}

/// Shell text with structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// One command.
    Simple(Simple),
    /// Text nobody looks into.
    Raw(String),
    /// One after the other.
    Seq(Vec<Script>),
    /// Each writes to the next.
    Pipe(Vec<Script>),
    /// Text around a script, such as `if true; then` and `; fi`.
    Framed {
        /// Before.
        head: String,
        /// In the middle.
        body: Box<Script>,
        /// After; a leading `;` is left out where the body ends its line or its command.
        tail: String,
    },
}

impl Script {
    /// One command of plain words.
    #[must_use]
    pub fn command(words: &[&str]) -> Self {
        Self::Simple(Simple::of(words))
    }

    /// Text around `self`.
    #[must_use]
    pub fn framed(self, head: impl Into<String>, tail: impl Into<String>) -> Self {
        Self::Framed {
            head: head.into(),
            body: Box::new(self),
            tail: tail.into(),
        }
    }

    /// `before`, then `self`.
    #[must_use]
    pub fn after(self, before: impl Into<String>) -> Self {
        Self::Seq(vec![Self::Raw(before.into()), self])
    }

    /// The text a shell is given.
    #[must_use]
    pub fn print(&self) -> String {
        match self {
            Self::Simple(simple) => simple.print(),
            Self::Raw(text) => text.clone(),
            Self::Seq(parts) => {
                let mut out = String::new();
                for part in parts {
                    out.push_str(match ended(&out) {
                        _ if out.is_empty() => "",
                        Ended::Line => "",
                        Ended::Command => " ",
                        Ended::No => "; ",
                    });
                    out.push_str(&part.print());
                }
                out
            }
            Self::Pipe(parts) => {
                let parts: Vec<String> = parts.iter().map(Self::print_as_one).collect();
                parts.join(" | ")
            }
            Self::Framed { head, body, tail } => {
                let mut out = head.clone();
                out.push_str(&body.print());
                out.push_str(match ended(&out) {
                    Ended::Line => tail.trim_start_matches([';', ' ']),
                    Ended::Command => tail.trim_start_matches(';'),
                    Ended::No => tail,
                });
                out
            }
        }
    }

    /// The text as one command, with braces where it is more than one.
    #[must_use]
    pub fn print_as_one(&self) -> String {
        let text = self.print();
        match self {
            Self::Simple(_) => text,
            Self::Raw(_) | Self::Seq(_) | Self::Pipe(_) | Self::Framed { .. } => {
                let mut out = String::from("{ ");
                out.push_str(&text);
                out.push_str(match ended(&text) {
                    Ended::Line => "}",
                    Ended::Command => " }",
                    Ended::No => "; }",
                });
                out
            }
        }
    }

    /// How many commands it has that can be rewritten.
    #[must_use]
    pub fn commands(&self) -> usize {
        match self {
            Self::Simple(_) => 1,
            Self::Raw(_) => 0,
            Self::Seq(parts) | Self::Pipe(parts) => parts.iter().map(Self::commands).sum(),
            Self::Framed { body, .. } => body.commands(),
        }
    }

    /// Whether the command with this number is a part of a pipe.
    #[must_use]
    pub fn is_piped(&self, number: usize) -> bool {
        match self {
            Self::Simple(_) | Self::Raw(_) => false,
            Self::Pipe(parts) => parts.len() > 1 || among(parts, number),
            Self::Seq(parts) => among(parts, number),
            Self::Framed { body, .. } => body.is_piped(number),
        }
    }

    /// Replaces the command with this number, counted from the left; `None`
    /// where there is none or `rewrite` does not apply to it.
    #[must_use]
    pub fn rewrite(
        &self,
        number: usize,
        rewrite: &dyn Fn(&Simple) -> Option<Script>,
    ) -> Option<Script> {
        match self {
            Self::Simple(simple) if number == 0 => rewrite(simple),
            Self::Simple(_) | Self::Raw(_) => None,
            Self::Seq(parts) => rewrite_one(parts, number, rewrite).map(Self::Seq),
            Self::Pipe(parts) => rewrite_one(parts, number, rewrite).map(Self::Pipe),
            Self::Framed { head, body, tail } => Some(Self::Framed {
                head: head.clone(),
                body: Box::new(body.rewrite(number, rewrite)?),
                tail: tail.clone(),
            }),
        }
    }

    /// A name no variable or file of this script has yet.
    #[must_use]
    pub fn fresh(&self, stem: &str) -> String {
        let text = self.print();
        let mut number = 0_u32;
        loop {
            let mut name = String::from(stem);
            if number > 0 {
                // Writing to a string cannot fail.
                let _written = write!(name, "{number}");
            }
            if !text.contains(&name) {
                return name;
            }
            number = number.saturating_add(1);
        }
    }
}

/// What a text ends by itself.
enum Ended {
    /// Its line.
    Line,
    /// Its last command: two `;` in a row are something else.
    Command,
    /// Nothing: what follows has to.
    No,
}

fn ended(text: &str) -> Ended {
    if text.ends_with('\n') {
        Ended::Line
    } else if text.ends_with(';') && !text.ends_with("\\;") {
        Ended::Command
    } else {
        Ended::No
    }
}

fn among(parts: &[Script], mut number: usize) -> bool {
    for part in parts {
        match number.checked_sub(part.commands()) {
            None => return part.is_piped(number),
            Some(left) => number = left,
        }
    }
    false
}

fn rewrite_one(
    parts: &[Script],
    number: usize,
    rewrite: &dyn Fn(&Simple) -> Option<Script>,
) -> Option<Vec<Script>> {
    let mut left = number;
    let mut out = Vec::with_capacity(parts.len());
    let mut done = false;
    for part in parts {
        let count = part.commands();
        if !done && left < count {
            out.push(part.rewrite(left, rewrite)?);
            done = true;
        } else {
            left = left.saturating_sub(if done { 0 } else { count });
            out.push(part.clone());
        }
    }
    done.then_some(out)
}

impl From<Simple> for Script {
    fn from(simple: Simple) -> Self {
        Self::Simple(simple)
    }
}
