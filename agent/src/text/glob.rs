//! File name patterns: `*`, `?`, `[...]`, `\`.
//!
//! `*` matches everything, slashes and leading dots included.

/// Whether the whole text matches.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to go on when the letters after the last `*` do not fit.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at_pattern) == Some(&'*') {
            retry = Some((at_pattern + 1, at_text));
            at_pattern += 1;
            continue;
        }
        let step = text
            .get(at_text)
            .and_then(|letter| one(&pattern, at_pattern, *letter));
        match (step, at_text == text.len(), retry) {
            (Some(next), _, _) => {
                at_pattern = next;
                at_text += 1;
            }
            (None, true, _) if at_pattern == pattern.len() => return true,
            (None, _, Some((after_star, from))) if from < text.len() => {
                retry = Some((after_star, from + 1));
                at_pattern = after_star;
                at_text = from + 1;
            }
            (None, _, _) => return false,
        }
    }
}

/// Whether the path, or any end of it after a slash, matches.
#[must_use]
pub fn matches_tail(pattern: &str, path: &str) -> bool {
    matches(pattern, path)
        || path.match_indices('/').any(|(at, _)| {
            path.get(at + 1..)
                .is_some_and(|tail| matches(pattern, tail))
        })
}

/// The place after one pattern element that matches the letter.
fn one(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '\\' => match pattern.get(at + 1) {
            Some(escaped) => (*escaped == letter).then_some(at + 2),
            None => (letter == '\\').then_some(at + 1),
        },
        '[' => match set(pattern, at, letter) {
            Some((end, within)) => within.then_some(end),
            None => (letter == '[').then_some(at + 1),
        },
        other => (other == letter).then_some(at + 1),
    }
}

/// The place after a `[...]` and whether the letter is in it; `None` if it does not end.
fn set(pattern: &[char], at: usize, letter: char) -> Option<(usize, bool)> {
    let mut next = at + 1;
    let negated = matches!(pattern.get(next), Some('!' | '^'));
    if negated {
        next += 1;
    }
    let first = next;
    let mut within = false;
    loop {
        let start = *pattern.get(next)?;
        if start == ']' && next > first {
            return Some((next + 1, within != negated));
        }
        let is_range = pattern.get(next + 1) == Some(&'-')
            && pattern.get(next + 2).is_some_and(|end| *end != ']');
        if is_range {
            let end = *pattern.get(next + 2)?;
            within |= (start..=end).contains(&letter);
            next += 3;
        } else {
            within |= start == letter;
            next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{matches, matches_tail};

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in [
            ("*.py", "a.py"),
            ("*", ""),
            ("a?c*", "abcd"),
            ("[a-c]x[!0-9]", "bxy"),
            ("*a*b", "xaab"),
            ("\\*", "*"),
            ("[", "["),
            ("*.py", ".py"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.py", "a.pyc"),
            ("a", "ab"),
            ("[a-c]", "d"),
            ("?", ""),
            ("[!a]", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_path_matches_by_any_of_its_ends() {
        assert!(matches_tail("src/*.py", "./src/a.py"));
        assert!(matches_tail("*.py", "./src/a.py"));
        assert!(!matches_tail("lib/*.py", "./src/a.py"));
    }
}
