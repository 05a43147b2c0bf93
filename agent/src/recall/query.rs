//! What a model writes to look for, as full-text search takes it.
//!
//! FTS5 has a language of its own, in which much of what people write is an error. What is
//! made of it here is what Hermes makes of it (`SessionDB._sanitize_fts5_query`), so that the
//! same words find the same.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::text::pytext;

/// Letters of a query that are looked at.
const LETTERS_MAX: usize = 2048;

#[expect(
    clippy::unwrap_used,
    reason = "patterns are constant, and a test uses each"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// Signs of FTS5's language that stand for themselves nowhere.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| pattern(r#"[+{}():"^]"#));
static STARS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\*+"));
static FIRST_STAR: LazyLock<Regex> = LazyLock::new(|| pattern(r"(^|\s)\*"));
static FIRST_OPERATOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^(?:AND|OR|NOT)\b\s*"));
static LAST_OPERATOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\s+(?:AND|OR|NOT)\s*$"));
/// What stands for a phrase while the rest is looked at.
static MARKS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\x00Q([0-9]{1,4})\x00"));
/// Words joined by dots, hyphens or underscores, which are one word for whoever writes them.
static JOINED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[\p{L}\p{N}_]+(?:[._-][\p{L}\p{N}_]+)+"));

/// The query in FTS5's language; empty if nothing is left.
#[must_use]
pub fn made_safe(query: &str) -> String {
    let query = pytext::head(query, LETTERS_MAX);
    // What stands in quotes is a phrase and stays; a quote without another is none.
    let mut phrases: Vec<&str> = Vec::new();
    let mut rest = query;
    let mut open = String::new();
    while let Some(at) = rest.find('"') {
        let (before, from) = rest.split_at(at);
        open.push_str(before);
        match from.get(1..).and_then(|after| after.find('"')) {
            Some(length) => {
                let (phrase, after) = from.split_at(length + 2);
                open.push_str(&format!("\0Q{}\0", phrases.len()));
                phrases.push(phrase);
                rest = after;
            }
            None => {
                open.push(' ');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    open.push_str(rest);
    let open = SIGNS.replace_all(&open, " ");
    let open = STARS.replace_all(&open, "*");
    let open = FIRST_STAR.replace_all(&open, "$1");
    let open = FIRST_OPERATOR
        .replace(pytext::strip(&open), "")
        .into_owned();
    let open = LAST_OPERATOR.replace(pytext::strip(&open), "").into_owned();
    let open = JOINED.replace_all(&open, "\"$0\"");
    // Once, and not in what stands there then: whoever writes such marks into phrases would have
    // each stand for several of the next one.
    let open = MARKS.replace_all(&open, |found: &Captures<'_>| {
        let number = found.get(1).and_then(|number| number.as_str().parse().ok());
        let phrase = number.and_then(|number: usize| phrases.get(number));
        let whole = || found.get(0).map_or("", |whole| whole.as_str());
        phrase.copied().unwrap_or_else(whole).to_owned()
    });
    pytext::strip(&open).to_owned()
}

/// How what is looked for is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// By words, in FTS5's language.
    Words(String),
    /// By any three letters in a row, in FTS5's language.
    Trigrams {
        /// The query.
        query: String,
        /// What is looked for if that query is none.
        parts: Vec<String>,
    },
    /// By parts of texts, any of them.
    Parts(Vec<String>),
}

/// How to look for a query that was made safe: words of Chinese, Japanese and Korean are not
/// parted by blanks, so what is written there is looked for letter by letter.
#[must_use]
pub fn how(query: &str) -> Search {
    if !query.chars().any(is_cjk) {
        return Search::Words(query.to_owned());
    }
    let raw = pytext::strip(query.trim_matches('"'));
    let tokens: Vec<&str> = raw
        .split(pytext::is_space)
        .filter(|token| !token.is_empty())
        .collect();
    let mut parts: Vec<String> = tokens
        .iter()
        .filter(|token| !is_operator(token))
        .map(|token| (*token).to_owned())
        .collect();
    if parts.is_empty() {
        parts.push(raw.to_owned());
    }
    let count = |text: &str| text.chars().filter(|letter| is_cjk(*letter)).count();
    let has_short = tokens
        .iter()
        .any(|token| !is_operator(token) && matches!(count(token), 1 | 2));
    if count(raw) < 3 || has_short {
        return Search::Parts(parts);
    }
    let quoted: Vec<String> = tokens
        .iter()
        .map(|token| match is_operator(token) {
            true => (*token).to_owned(),
            false => format!("\"{}\"", token.replace('"', "\"\"")),
        })
        .collect();
    Search::Trigrams {
        query: quoted.join(" "),
        parts,
    }
}

fn is_operator(token: &str) -> bool {
    matches!(token.to_uppercase().as_str(), "AND" | "OR" | "NOT")
}

fn is_cjk(letter: char) -> bool {
    matches!(letter,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{3000}'..='\u{303f}'
        | '\u{3040}'..='\u{309f}'
        | '\u{30a0}'..='\u{30ff}'
        | '\u{ac00}'..='\u{d7af}')
}

#[cfg(test)]
mod tests {
    use super::{Search, how, made_safe};

    #[test]
    fn no_phrase_stands_for_other_phrases() {
        // Each would be three of the next one.
        let named = |number: usize| format!("\0Q{number}\0").repeat(3);
        let phrases = (1..10).map(|number| format!("\"{}\"", named(number)));
        let query = named(0) + &phrases.collect::<String>();
        assert!(made_safe(&query).len() <= 2 * query.len());
    }

    #[test]
    fn what_people_write_is_made_a_query() {
        for (written, made) in [
            ("docker networking", "docker networking"),
            ("\"exact phrase\" NOT java", "\"exact phrase\" NOT java"),
            (
                "chat-send P2.2 my_name",
                "\"chat-send\" \"P2.2\" \"my_name\"",
            ),
            ("TODO: fix (now)", "TODO  fix  now"),
            ("an \"open quote", "an  open quote"),
            ("*** deploy** *x", "deploy* x"),
            ("AND hello or", "hello"),
            ("not and x", "and x"),
            ("android notes", "android notes"),
            ("\"a-b\" c-d", "\"a-b\" \"c-d\""),
            ("+^{}", ""),
            ("\"\"", "\"\""),
            ("", ""),
            // Where it ends for FTS5 is for FTS5 to say.
            ("docker\0java", "docker\0java"),
            ("\0Q7\0", "\0Q7\0"),
        ] {
            assert_eq!(made_safe(written), made, "{written}");
        }
        assert_eq!(made_safe(&"\u{e9}".repeat(3000)).chars().count(), 2048);
    }

    #[test]
    fn short_words_without_blanks_between_them_are_looked_for_as_parts() {
        let parts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(how("wool"), Search::Words("wool".into()));
        assert_eq!(how("羊毛"), Search::Parts(parts(&["羊毛"])));
        assert_eq!(
            how("广西 OR 桂林 OR wool"),
            Search::Parts(parts(&["广西", "桂林", "wool"]))
        );
        assert_eq!(
            how("大别山项目 and wo\"ol"),
            Search::Trigrams {
                query: "\"大别山项目\" and \"wo\"\"ol\"".into(),
                parts: parts(&["大别山项目", "wo\"ol"]),
            }
        );
        assert_eq!(
            how("\"大别山\""),
            Search::Trigrams {
                query: "\"大别山\"".into(),
                parts: parts(&["大别山"]),
            }
        );
    }
}
