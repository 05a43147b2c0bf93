//! What a non-zero exit status means when it is not an error.

/// A note for the model, if the last command of the line is known to use this
/// status for something ordinary.
#[must_use]
pub fn note(command: &str, status: i32) -> Option<&'static str> {
    if status == 0 {
        return None;
    }
    let last = last_command(command);
    let word = last
        .split_whitespace()
        .find(|word| !word.contains('=') || word.starts_with('-'))?
        .rsplit('/')
        .next()?;
    match (word, status) {
        ("grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack", 1) => {
            Some("No matches found (not an error)")
        }
        ("diff" | "colordiff", 1) => Some("Files differ (expected, not an error)"),
        ("find", 1) => {
            Some("Some directories were inaccessible (partial results may still be valid)")
        }
        ("test" | "[", 1) => Some("Condition evaluated to false (expected, not an error)"),
        ("curl", 6) => Some("Could not resolve host"),
        ("curl", 7) => Some("Failed to connect to host"),
        ("curl", 22) => Some("HTTP response code indicated error (e.g. 404, 500)"),
        ("curl", 28) => Some("Operation timed out"),
        ("git", 1) => Some(
            "Non-zero exit (often normal \u{2014} e.g. 'git diff' returns 1 when files differ)",
        ),
        _ => None,
    }
}

/// The text after the last `|`, `;`, `||` or `&&`. A lone `&` does not separate.
fn last_command(command: &str) -> &str {
    let bytes = command.as_bytes();
    let cut = bytes
        .iter()
        .enumerate()
        .rev()
        .find(|(at, byte)| match byte {
            b'|' | b';' => true,
            b'&' => at.checked_sub(1).and_then(|left| bytes.get(left)) == Some(&b'&'),
            _ => false,
        })
        .map_or(0, |(at, _)| at + 1);
    command.get(cut..).unwrap_or(command).trim()
}

#[cfg(test)]
mod tests {
    use super::note;

    #[test]
    fn ordinary_statuses_of_known_commands_are_explained() {
        assert_eq!(
            note("cat a | grep x", 1),
            Some("No matches found (not an error)")
        );
        assert_eq!(
            note("LC_ALL=C /usr/bin/diff a b", 1),
            Some("Files differ (expected, not an error)")
        );
        assert_eq!(
            note("cd x && test -f y", 1),
            Some("Condition evaluated to false (expected, not an error)")
        );
    }

    #[test]
    fn real_failures_and_successes_are_not() {
        assert_eq!(note("grep x a", 2), None);
        assert_eq!(note("grep x a", 0), None);
        assert_eq!(note("grep x a; false", 1), None);
        assert_eq!(note("", 1), None);
    }
}
