//! The files a patch names, for whoever asks before it is applied.
//!
//! This is wider than the reader of patches: a header outside the marks of
//! the patch, or one whose path stands on the next line, is named as well.
//! What is named here is judged; what is applied is always among it or refused.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::pytext;

/// A pattern of this module; one that does not compile finds nothing, and then
/// the tests fail.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static FILES: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(?m)^\*\*\*\s*(?:Update|Add|Delete)\s+File:\s*(.+)$"));
static MOVES: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(?m)^\*\*\*\s*Move\s+File:\s*(.+?)\s*->\s*(.+)$"));

/// Every path in a header: those of single files first, then those of moves.
#[must_use]
pub fn paths(patch: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for regex in [FILES.as_ref(), MOVES.as_ref()].into_iter().flatten() {
        for found in regex.captures_iter(patch) {
            paths.extend(
                found
                    .iter()
                    .skip(1)
                    .flatten()
                    .map(|part| pytext::strip(part.as_str()).to_owned()),
            );
        }
    }
    paths
}

/// Whether a path has `..` as one of its parts.
#[must_use]
pub fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::{climbs, paths};

    #[test]
    fn every_header_is_named_moves_last() {
        assert_eq!(
            paths(
                "*** Move File: a -> b\n***Update File:  c \n*** Add File:\nd\n*** Delete File: e"
            ),
            ["c", "d", "e", "a", "b"]
        );
        assert!(paths("** Update File: a\n").is_empty());
    }

    #[test]
    fn only_whole_parts_climb() {
        assert!(climbs("a/../b") && climbs("..") && !climbs("a..b/..c"));
    }
}
