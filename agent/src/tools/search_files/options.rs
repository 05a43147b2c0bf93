//! A pattern that begins with a dash, where Hermes hands it to `grep` as an option.
//!
//! What `grep` refuses to take for an option it says so, and does nothing: a model is
//! told the same. What it would take for one changes what is searched, or reads
//! patterns from a file nobody named; that is never done, and the pattern is a pattern.

/// What follows an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Something, or nothing, behind `=` only.
    Perhaps,
    Value,
}

/// Every option by its long name, and which it is: its letter, or a name where it has none.
/// The order is that in which several possibilities are told.
const LONG: &[(&str, Takes, &str)] = &[
    ("basic-regexp", Takes::Nothing, "G"),
    ("extended-regexp", Takes::Nothing, "E"),
    ("fixed-regexp", Takes::Nothing, "F"),
    ("fixed-strings", Takes::Nothing, "F"),
    ("perl-regexp", Takes::Nothing, "P"),
    ("after-context", Takes::Value, "A"),
    ("before-context", Takes::Value, "B"),
    ("binary-files", Takes::Value, "binary-files"),
    ("byte-offset", Takes::Nothing, "b"),
    ("context", Takes::Value, "C"),
    ("color", Takes::Perhaps, "color"),
    ("colour", Takes::Perhaps, "color"),
    ("count", Takes::Nothing, "c"),
    ("devices", Takes::Value, "D"),
    ("directories", Takes::Value, "d"),
    ("exclude", Takes::Value, "exclude"),
    ("exclude-from", Takes::Value, "exclude-from"),
    ("exclude-dir", Takes::Value, "exclude-dir"),
    ("file", Takes::Value, "f"),
    ("files-with-matches", Takes::Nothing, "l"),
    ("files-without-match", Takes::Nothing, "L"),
    ("group-separator", Takes::Value, "group-separator"),
    ("help", Takes::Nothing, "help"),
    ("include", Takes::Value, "include"),
    ("ignore-case", Takes::Nothing, "i"),
    ("no-ignore-case", Takes::Nothing, "no-ignore-case"),
    ("initial-tab", Takes::Nothing, "T"),
    ("label", Takes::Value, "label"),
    ("line-buffered", Takes::Nothing, "line-buffered"),
    ("line-number", Takes::Nothing, "n"),
    ("line-regexp", Takes::Nothing, "x"),
    ("max-count", Takes::Value, "m"),
    ("no-filename", Takes::Nothing, "h"),
    ("no-group-separator", Takes::Nothing, "no-group-separator"),
    ("no-messages", Takes::Nothing, "s"),
    ("null", Takes::Nothing, "Z"),
    ("null-data", Takes::Nothing, "z"),
    ("only-matching", Takes::Nothing, "o"),
    ("quiet", Takes::Nothing, "q"),
    ("recursive", Takes::Nothing, "r"),
    ("dereference-recursive", Takes::Nothing, "R"),
    ("regexp", Takes::Value, "e"),
    ("invert-match", Takes::Nothing, "v"),
    ("silent", Takes::Nothing, "q"),
    ("text", Takes::Nothing, "a"),
    ("binary", Takes::Nothing, "U"),
    ("unix-byte-offsets", Takes::Nothing, "u"),
    ("version", Takes::Nothing, "V"),
    ("with-filename", Takes::Nothing, "H"),
    ("word-regexp", Takes::Nothing, "w"),
];

/// Letters that are options by themselves.
const ALONE: &str = "0123456789EFGHILPTUVabchiLlnoqRrsuvwxyZz";
/// Letters that take what follows them, or else the next argument.
const WITH_VALUE: &str = "ABCDXdefm";

/// What is said of how the program is called, after what was wrong.
const USAGE: &str =
    "\nUsage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.";

/// What the search program says of a pattern that it takes for an option it cannot take.
/// `path`, where it is to search, follows the pattern.
#[must_use]
pub fn refused(pattern: &str, path: &str) -> Option<String> {
    let body = pattern.strip_prefix('-')?;
    // Told on two lines, the second is read as a name that was found.
    if body.is_empty() || pattern.contains('\n') {
        return None;
    }
    match body.strip_prefix("-") {
        Some(long) => refused_long(long, path),
        None => refused_letters(body, path),
    }
}

fn refused_letters(body: &str, path: &str) -> Option<String> {
    for (at, letter) in body.char_indices() {
        if WITH_VALUE.contains(letter) {
            let rest = body.get(at + letter.len_utf8()..).unwrap_or_default();
            return refused_value(
                letter.encode_utf8(&mut [0; 4]),
                if rest.is_empty() { path } else { rest },
            );
        }
        if !ALONE.contains(letter) {
            // Letters are bytes there, and half of one is shown as no letter.
            let shown = if letter.is_ascii() {
                letter
            } else {
                '\u{fffd}'
            };
            return Some(format!("invalid option -- '{shown}'{USAGE}"));
        }
    }
    None
}

fn refused_long(long: &str, path: &str) -> Option<String> {
    let (name, given) = match long.split_once('=') {
        Some((name, given)) => (name, Some(given)),
        None => (long, None),
    };
    // Nothing, which ends the options, and what every name begins with.
    if name.is_empty() {
        return None;
    }
    let exact = LONG.iter().find(|(known, ..)| *known == name);
    let found = exact.or_else(|| LONG.iter().find(|(known, ..)| known.starts_with(name)));
    let Some((known, takes, option)) = found else {
        return Some(format!("unrecognized option '--{long}'{USAGE}"));
    };
    let others: Vec<&str> = LONG
        .iter()
        .filter(|(other, _, of)| other.starts_with(name) && of != option)
        .map(|(other, ..)| *other)
        .collect();
    if exact.is_none() && !others.is_empty() {
        let mut possible = format!("'--{known}'");
        for other in others {
            possible.push_str(&format!(" '--{other}'"));
        }
        return Some(format!(
            "option '--{long}' is ambiguous; possibilities: {possible}{USAGE}"
        ));
    }
    match (takes, given) {
        (Takes::Nothing, Some(_)) => Some(format!(
            "option '--{known}' doesn't allow an argument{USAGE}"
        )),
        (Takes::Value, given) => refused_value(option, given.unwrap_or(path)),
        (Takes::Nothing, None) | (Takes::Perhaps, _) => None,
    }
}

/// What is wrong with the value of an option.
fn refused_value(option: &str, value: &str) -> Option<String> {
    let number = value.trim_start();
    let number = number.strip_prefix('+').unwrap_or(number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match option {
        "A" | "B" | "C" if !is_number => Some(format!("{value}: invalid context length argument")),
        "m" if !is_number && !number.starts_with(['-', 'k', 'K', 'M', 'G']) => {
            Some("invalid max count".to_owned())
        }
        "D" if !matches!(value, "read" | "skip") => Some("unknown devices method".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{USAGE, refused};

    fn told(pattern: &str, expected: &str) {
        let expected = format!("{expected}{USAGE}");
        assert_eq!(refused(pattern, "src").as_deref(), Some(expected.as_str()));
    }

    #[test]
    fn what_is_no_option_is_told_as_the_program_tells_it() {
        told("->", "invalid option -- '>'");
        told("- [ ] item", "invalid option -- ' '");
        told("-std=c99", "invalid option -- 't'");
        told("-O2", "invalid option -- 'O'");
        told("-\u{e9}", "invalid option -- '\u{fffd}'");
        told("--dry-run", "unrecognized option '--dry-run'");
        told("--jobs=4 now", "unrecognized option '--jobs=4 now'");
        told("-->", "unrecognized option '-->'");
        told("-- x", "unrecognized option '-- x'");
        told("--count=3", "option '--count' doesn't allow an argument");
        told(
            "--fi",
            "option '--fi' is ambiguous; possibilities: '--fixed-regexp' '--file' '--files-with-matches' \
             '--files-without-match'",
        );
        for (pattern, expected) in [
            ("-Cx", "x: invalid context length argument"),
            ("-A", "src: invalid context length argument"),
            ("--context=", ": invalid context length argument"),
            ("-mx", "invalid max count"),
            ("-Dx", "unknown devices method"),
        ] {
            assert_eq!(
                refused(pattern, "src").as_deref(),
                Some(expected),
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_would_be_an_option_and_what_is_none_is_searched_for() {
        for pattern in [
            "-",
            "--",
            "-v",
            "-1",
            "-foo",
            "-e",
            "--help",
            "--count",
            "--fix",
            "--colo",
            "--file=x",
            "--context=3",
            "-A 3",
            "-x\ny",
            "x-",
            "\\->",
            "",
            "a",
            "--=",
            "-dev",
        ] {
            assert_eq!(refused(pattern, "src"), None, "{pattern}");
        }
    }
}
