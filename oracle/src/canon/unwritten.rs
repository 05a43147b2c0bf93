//! Rules `unwritten-draft` and `draft-in-a-name`: what the system said when a file could
//! not be written, and the draft that was left.
//!
//! Hermes writes through a shell script of its own, to a draft whose name is
//! drawn by chance; the agent makes no such script. This must take out nothing
//! but the script's place and the draft's name.

use bisim_world::protocol::FsEffect;
use serde_json::Value;

/// The tools that write files.
const WRITING_TOOLS: [&str; 2] = ["write_file", "patch"];
/// What the shell says first.
const SHELL: &str = "/usr/bin/bash: line ";
/// What the name of a draft begins with.
const DRAFT: &str = "/.hermes-tmp.";
/// How many letters of its name are drawn.
const DRAWN_LETTERS: usize = 6;
/// What the program says that fills the draft.
const FILLING: &str = "cat: write error: ";

/// The error of a result without the script's line and the draft's name.
pub fn without_drafts(tool: &str, value: &mut Value) {
    if !WRITING_TOOLS.contains(&tool) {
        return;
    }
    if let Some(Value::String(error)) = value.get_mut("error")
        && let Some(plain) = plain(error)
    {
        *error = plain;
    }
}

/// Rule `draft-in-a-name`: drafts without the letters of their names that were drawn.
pub fn without_drawn_letters(effects: &mut [FsEffect]) {
    for effect in effects {
        let length = effect.path.len().checked_sub(DRAWN_LETTERS);
        let drawn = length.and_then(|length| effect.path.split_at_checked(length));
        if let Some((before, letters)) = drawn
            && before.ends_with(DRAFT)
            && letters.bytes().all(|letter| letter.is_ascii_alphanumeric())
        {
            effect.path = format!("{before}<drawn>");
        }
    }
}

fn plain(error: &str) -> Option<String> {
    let (before, after) = match error.split_once(FILLING) {
        Some(parts) => parts,
        None => {
            let (start, rest) = error.split_once(SHELL)?;
            let (_, named) = rest.split_once(DRAFT)?;
            (start, named.split_once(": ")?.1)
        }
    };
    Some(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::without_drafts;

    fn check(tool: &str, error: &str, expected: &str) {
        let mut value = json!({"success": false, "error": error});
        without_drafts(tool, &mut value);
        assert_eq!(value["error"], expected, "{error}");
    }

    #[test]
    fn only_the_place_in_a_script_and_a_drawn_name_are_taken_out() {
        let denied =
            "Failed to write file: /usr/bin/bash: line 3: ./.hermes-tmp.Xn9: Permission denied\n";
        check(
            "write_file",
            denied,
            "Failed to write file: Permission denied\n",
        );
        check(
            "patch",
            "Failed to write file: cat: write error: No space left on device\n",
            "Failed to write file: No space left on device\n",
        );
        check("terminal", denied, denied);
        for kept in [
            "File not found: /usr/bin/bash",
            "/usr/bin/bash: line 3: x: Permission denied",
            "Failed to write file: Permission denied\n",
        ] {
            check("write_file", kept, kept);
        }
    }
}
