//! POSIX basic regular expressions with the usual extensions.
//!
//! Searches speak this dialect (`\(`, `\|`, `\+`; a bare `(`, `|`, `+` is
//! itself). It is translated to the `regex` crate, which needs time linear in
//! the text; what has no such translation (back-references) is an error, never
//! an approximation.
//!
//! A pattern is about single lines. So is its translation, whatever the text: `^` and
//! `$` are the ends of a line, and nothing in it matches the end of a line itself. A
//! whole file can be given to it, and what is found lies in one line.

use std::{iter::Peekable, str::Chars};

use regex::{Regex, RegexBuilder};

/// Translates and compiles a pattern; several lines are alternatives.
///
/// # Errors
/// What is wrong with the pattern, in the words of the search program.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let alternatives = pattern
        .split('\n')
        .map(translate)
        .collect::<Result<Vec<_>, _>>()?;
    RegexBuilder::new(&alternatives.join("|"))
        .multi_line(true)
        .build()
        .map_err(|_| "Invalid regular expression".to_owned())
}

/// Whether a translated pattern may ask where words begin or end.
pub(super) fn asks_for_words(regex: &Regex) -> bool {
    let pattern = regex.as_str();
    pattern.contains("\\b") || pattern.contains("\\B")
}

struct Reader<'p> {
    letters: Peekable<Chars<'p>>,
    out: String,
    depth: usize,
    /// How many groups have begun.
    groups: u32,
    /// Nothing repeatable stands before: `*` is itself, `^` an anchor.
    at_start: bool,
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut reader = Reader {
        letters: pattern.chars().peekable(),
        out: "(?:".into(),
        depth: 0,
        groups: 0,
        at_start: true,
    };
    reader.run()?;
    if reader.depth > 0 {
        return Err("Unmatched ( or \\(".into());
    }
    reader.out.push(')');
    Ok(reader.out)
}

impl Reader<'_> {
    fn literal(&mut self, letter: char) {
        let mut buffer = [0_u8; 4];
        self.out
            .push_str(&regex::escape(letter.encode_utf8(&mut buffer)));
        self.at_start = false;
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(letter) = self.letters.next() {
            match letter {
                '\\' => self.escaped()?,
                '[' => self.bracket()?,
                '.' => {
                    self.out.push('.');
                    self.at_start = false;
                }
                '*' if self.at_start => self.literal('*'),
                '*' => self.repeat("*"),
                '^' if self.at_start => self.out.push('^'),
                '$' if self.at_end() => {
                    self.out.push('$');
                    self.at_start = false;
                }
                other => self.literal(other),
            }
        }
        Ok(())
    }

    /// Whether `$` here ends an alternative.
    fn at_end(&mut self) -> bool {
        let mut rest = self.letters.clone();
        match rest.next() {
            None => true,
            Some('\\') => matches!(rest.next(), Some(')' | '|')),
            Some(_) => false,
        }
    }

    /// A repetition of a repetition is legal here and not there: group it.
    fn repeat(&mut self, mark: &str) {
        let repeated = self.out.ends_with(['*', '+', '?', '}']) && !self.out.ends_with("\\*");
        if repeated && mark == "*" && self.out.ends_with('*') {
            return;
        }
        self.out.push_str(mark);
    }

    fn escaped(&mut self) -> Result<(), String> {
        let Some(letter) = self.letters.next() else {
            return Err("Trailing backslash".into());
        };
        match letter {
            '(' => {
                self.depth += 1;
                self.groups += 1;
                self.out.push_str("(?:");
                self.at_start = true;
            }
            ')' => {
                self.depth = self.depth.checked_sub(1).ok_or("Unmatched ) or \\)")?;
                self.out.push(')');
                self.at_start = false;
            }
            '|' => {
                self.out.push('|');
                self.at_start = true;
            }
            '+' | '?' if self.at_start => self.literal(letter),
            '+' => self.repeat("+"),
            '?' => self.repeat("?"),
            '{' if self.at_start => return Err("Invalid preceding regular expression".into()),
            '{' => self.interval()?,
            'w' => self.class("[\\p{Alphabetic}\\d_]"),
            'W' => self.class("[^\\p{Alphabetic}\\d_\\n]"),
            's' => self.class(&format!("[{SPACE}&&[^\\n]]")),
            'S' => self.class(&format!("[^{SPACE}]")),
            'b' => self.class("\\b"),
            'B' => self.class("\\B"),
            '<' => self.class("\\b{start}"),
            '>' => self.class("\\b{end}"),
            '`' => self.class("^"),
            '\'' => self.class("$"),
            '1'..='9' => {
                let named = letter.to_digit(10).unwrap_or_default();
                return Err(match self.groups < named {
                    true => "Invalid back reference".into(),
                    false => "Invalid back reference (back references are not supported)".into(),
                });
            }
            other => self.literal(other),
        }
        Ok(())
    }

    fn class(&mut self, translated: &str) {
        self.out.push_str(translated);
        self.at_start = false;
    }

    fn interval(&mut self) -> Result<(), String> {
        let mut body = String::new();
        loop {
            match self.letters.next() {
                None => return Err("Unmatched \\{".into()),
                Some('\\') if self.letters.peek() == Some(&'}') => {
                    self.letters.next();
                    break;
                }
                Some(letter) => body.push(letter),
            }
        }
        let (low, high) = body
            .split_once(',')
            .map_or((body.as_str(), None), |(low, high)| (low, Some(high)));
        let number = |text: &str| text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit());
        if !number(low) || !high.is_none_or(number) || (low.is_empty() && high.is_none()) {
            return Err("Invalid content of \\{\\}".into());
        }
        let low = if low.is_empty() { "0" } else { low };
        let interval =
            high.map_or_else(|| format!("{{{low}}}"), |high| format!("{{{low},{high}}}"));
        self.repeat(&interval);
        Ok(())
    }

    fn bracket(&mut self) -> Result<(), String> {
        const UNMATCHED: &str = "Unmatched [, [^, [:, [., or [=";
        let mut out = String::from("[");
        if self.letters.peek() == Some(&'^') {
            self.letters.next();
            out.push('^');
        }
        let mut first = true;
        let mut previous: Option<char> = None;
        loop {
            let Some(letter) = self.letters.next() else {
                let alone = first && previous.is_none() && out == "[";
                return Err(if alone {
                    "Invalid regular expression"
                } else {
                    UNMATCHED
                }
                .into());
            };
            let kind = self.letters.peek().copied();
            match (letter, kind) {
                (']', _) if !first => break,
                ('[', Some(mark @ (':' | '.' | '='))) => {
                    self.letters.next();
                    let mut name = String::new();
                    loop {
                        match self.letters.next() {
                            None => return Err(UNMATCHED.into()),
                            Some(letter) if letter == mark && self.letters.peek() == Some(&']') => {
                                self.letters.next();
                                break;
                            }
                            Some(letter) => name.push(letter),
                        }
                    }
                    out.push_str(&named(mark, &name)?);
                    previous = None;
                }
                ('-', Some(end)) if previous.is_some() && end != ']' => {
                    self.letters.next();
                    if previous.is_some_and(|start| start > end) {
                        return Err("Invalid range end".into());
                    }
                    out.push('-');
                    push_member(&mut out, end);
                    previous = None;
                }
                (letter, _) => {
                    push_member(&mut out, letter);
                    previous = Some(letter);
                }
            }
            first = false;
        }
        out.push(']');
        self.class(&format!("[{out}&&[^\\n]]"));
        Ok(())
    }
}

/// What the C library takes for blank in UTF-8, which is what `grep` asks: a blank that
/// forbids a new line is no blank.
const SPACE: &str = "[\\t-\\r\\p{Z}--\\x{a0}\\x{2007}\\x{202f}]";

fn push_member(out: &mut String, letter: char) {
    if !letter.is_alphanumeric() {
        out.push('\\');
        if letter.is_whitespace() || !letter.is_ascii() || letter.is_control() {
            out.pop();
        }
    }
    out.push(letter);
}

fn named(mark: char, name: &str) -> Result<String, String> {
    if mark != ':' {
        let mut letters = name.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else {
            return Err("Invalid collation character".into());
        };
        let mut out = String::new();
        push_member(&mut out, letter);
        return Ok(out);
    }
    Ok(match name {
        "alpha" => "\\p{Alphabetic}[\\d--[0-9]]",
        "digit" => "0-9",
        "alnum" => "\\p{Alphabetic}\\d",
        "upper" => "\\p{Uppercase}",
        "lower" => "\\p{Lowercase}",
        "space" => SPACE,
        "blank" => "[\\t\\p{Zs}--\\x{a0}\\x{2007}\\x{202f}]",
        "punct" => return Ok(format!("[^\\p{{Cc}}\\p{{Cn}}{SPACE}\\p{{Alphabetic}}\\d]")),
        "print" => "[^\\p{Cc}\\p{Cn}\\x{2028}\\x{2029}]",
        "graph" => return Ok(format!("[^\\p{{Cc}}\\p{{Cn}}{SPACE}]")),
        "cntrl" => "\\p{Cc}\\x{2028}\\x{2029}",
        "xdigit" => "0-9A-Fa-f",
        _ => return Err("Invalid character class name".into()),
    }
    .to_owned())
}

#[cfg(test)]
mod tests {
    use super::compile;

    fn check(pattern: &str, text: &str, expected: bool) {
        let found = compile(pattern).map(|regex| regex.is_match(text));
        assert_eq!(found, Ok(expected), "{pattern:?} in {text:?}");
    }

    fn wrong(pattern: &str, problem: &str) {
        assert_eq!(
            compile(pattern).err().as_deref(),
            Some(problem),
            "{pattern:?}"
        );
    }

    #[test]
    fn bare_operators_are_letters_and_escaped_ones_operate() {
        check("a+", "aaa", false);
        check("a+", "a+", true);
        check("a\\+$", "baaa", true);
        check("(a|b)", "(a|b)", true);
        check("\\(a\\|b\\)c", "xbc", true);
        check("x\\|a", "a", true);
        check("a{2}", "a{2}", true);
        check("^a\\{2,3\\}$", "aaa", true);
        check("ab\\?c", "ac", true);
    }

    #[test]
    fn anchors_and_stars_are_letters_out_of_place() {
        check("^*a", "*a", true);
        check("*a", "x*a", true);
        check("a^b$c", "a^b$c", true);
        check("^one$", "one", true);
        check("a**", "b", true);
    }

    #[test]
    fn brackets_hold_ranges_classes_and_themselves() {
        check("[]x]", "]", true);
        check("[^]a-c]", "b", false);
        check("[[:digit:]_.-]\\+$", "1.-_", true);
        check("[a\\]", "\\", true);
    }

    #[test]
    fn word_and_blank_escapes_work_and_others_mean_themselves() {
        check("\\bfoo\\b", "a foo b", true);
        check("\\<foo\\>", "afoo", false);
        check("\\w\\+\\s\\w", "ab c", true);
        check("a\\.b", "axb", false);
        check("a\\nb", "anb", true);
    }

    #[test]
    fn classes_hold_what_the_c_library_says_beyond_ascii() {
        for (class, held, others) in [
            (
                "\\s",
                "\t\u{2003}\u{3000}\u{2028}",
                "\u{a0}\u{85}\u{2007}\u{202f}\u{200b}x",
            ),
            ("\\S", "\u{a0}\u{85}x", " \u{2003}"),
            (
                "[[:space:]]",
                "\u{2003}\u{2029} \u{b}",
                "\u{a0}\u{85}\u{202f}x",
            ),
            ("[[:blank:]]", "\t \u{2003}", "\u{a0}\u{2028}\u{b}"),
            (
                "[[:punct:]]",
                "-\u{2014}\u{2026}\u{201c}\u{a0}\u{20ac}\u{1f600}",
                "a1\u{e9}\u{663} ",
            ),
            (
                "[[:print:]]",
                "a \u{e9}\u{a0}\u{2014}",
                "\u{1}\u{85}\u{2028}",
            ),
            ("[[:graph:]]", "a\u{e9}\u{a0}\u{2014}", " \u{2003}\u{85}"),
            ("[[:cntrl:]]", "\u{1}\u{85}\u{2028}", "a\u{a0}"),
            ("[[:alpha:]]", "a\u{e9}\u{663}", "1\u{2014}_"),
            ("[[:alnum:]]", "a1\u{e9}\u{663}", "\u{2014}_"),
            ("[^[:space:]]", "\u{a0}x", "\u{2003}"),
        ] {
            for letter in held.chars() {
                check(class, &letter.to_string(), true);
            }
            for letter in others.chars() {
                check(class, &letter.to_string(), false);
            }
        }
    }

    #[test]
    fn lines_of_a_pattern_are_alternatives() {
        check("one\ntwo", "a two", true);
    }

    #[test]
    fn nothing_in_a_pattern_is_the_end_of_a_line_and_its_anchors_are_at_every_one() {
        let text = "a b\n\n\t c\r\n\u{1}\u{85}\n";
        for pattern in [
            ".*",
            "[^x]*",
            "[^[:alpha:]]\\+",
            "[[:space:]]*",
            "[[:cntrl:]]\\+",
            "\\W*",
            "\\s*",
            "\\S*",
            "[\t-~[:space:]]*",
            "[[:blank:]]*$",
            "^[^x]*$",
            "\\`\\W*\\'",
            "b\\|[^x]\\{1,9\\}",
        ] {
            let regex = compile(pattern).unwrap();
            for found in regex.find_iter(text) {
                assert!(!found.as_str().contains('\n'), "{pattern:?} {found:?}");
            }
        }
        for (pattern, starts) in [("^", &[0, 4, 5, 10, 14][..]), ("$", &[3, 4, 9, 13, 14])] {
            let regex = compile(pattern).unwrap();
            let found: Vec<usize> = regex.find_iter(text).map(|found| found.start()).collect();
            assert_eq!(found, starts, "{pattern}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        wrong("[", "Invalid regular expression");
        wrong("[a", "Unmatched [, [^, [:, [., or [=");
        wrong("a\\(", "Unmatched ( or \\(");
        wrong("a\\)", "Unmatched ) or \\)");
        wrong("a\\{1", "Unmatched \\{");
        wrong("a\\{x\\}", "Invalid content of \\{\\}");
        wrong("a\\", "Trailing backslash");
        wrong("[[:foo:]]", "Invalid character class name");
        wrong("[z-a]", "Invalid range end");
    }
}
