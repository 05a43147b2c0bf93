//! What is in a directory, two levels deep: the person's own look, not the
//! agent's.

use std::path::Path;

use crate::screen::{Screen, Tone, visible};

/// Entries shown of one directory.
const SHOWN_MAX: usize = 8;
/// Entries that are counted; a larger directory is said to be large.
const COUNTED_MAX: usize = 10_000;

/// The lines.
pub fn lines(dir: &Path, screen: &Screen) -> Vec<String> {
    let mut lines = vec![screen.tone(Tone::Bold, &visible(&dir.display().to_string()))];
    below(dir, 2, "  ", screen, &mut lines);
    lines
}

fn below(dir: &Path, depth: u32, indent: &str, screen: &Screen, lines: &mut Vec<String>) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            lines.push(format!("{indent}({error})"));
            return;
        }
    };
    let mut found: Vec<_> = entries.flatten().take(COUNTED_MAX).collect();
    found.sort_by_key(std::fs::DirEntry::file_name);
    for entry in found.iter().take(SHOWN_MAX) {
        let name = visible(&entry.file_name().to_string_lossy()).replace('\n', "\\n");
        // A link is shown and not followed.
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir {
            lines.push(format!(
                "{indent}{}",
                screen.tone(Tone::Mark, &format!("{name}/"))
            ));
            if depth > 1 {
                below(
                    &entry.path(),
                    depth - 1,
                    &format!("{indent}  "),
                    screen,
                    lines,
                );
            }
        } else {
            lines.push(format!("{indent}{name}"));
        }
    }
    let more = found.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.push(screen.tone(Tone::Dim, &format!("{indent}and {more} more")));
    }
}
