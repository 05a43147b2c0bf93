//! A line that begins with a slash and is no command: a slip in one, or words that
//! begin with a path.

use std::path::Path;

/// Whether such a line begins with the name of a place and not with a command.
///
/// No command has a second slash or a dot in it, and where something of this name lies
/// in the root directory (`/tmp is full`), that is meant.
#[must_use]
pub fn begins_with_path(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_name = word.strip_prefix('/').is_some_and(|name| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_alphanumeric() || "-_?".contains(letter))
    });
    !is_name || Path::new(word).exists()
}

#[cfg(test)]
mod tests {
    use super::begins_with_path;

    #[test]
    fn a_path_is_told_from_a_word() {
        for line in [
            "/",
            "// x",
            "/etc/hosts is",
            "/tmp is full",
            "/a.txt",
            "/proc",
            "/it's",
        ] {
            assert!(begins_with_path(line), "{line}");
        }
        for line in ["/cap", "/dry-run", "/no-such-thing-here and more", "/?"] {
            assert!(!begins_with_path(line), "{line}");
        }
    }
}
