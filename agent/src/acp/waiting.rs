//! That a question waits for words, kept beside the conversation for as long as
//! it does: whoever takes up a session that ended over it is told so.
//!
//! The question only. What asked it is over with the program that asked.

use std::{
    io::{self, Read as _},
    path::Path,
};

use crate::state_dir::own_file::{self, Access};

const FILE: &str = "question";
/// The longest that is shown again.
const BYTES_MAX: u64 = 64 << 10;

/// Keeps it.
///
/// # Errors
/// The disk's.
pub fn keep(dir: &Path, question: &str) -> io::Result<()> {
    own_file::put_whole(dir, FILE, question.as_bytes())
        .map_err(|error| io::Error::other(error.to_string()))
}

/// It does not wait any more.
pub fn forget(dir: &Path) {
    // One that stays is told about once too often.
    let _ = std::fs::remove_file(dir.join(FILE));
}

/// What waited when the session ended, told once.
pub fn take(dir: &Path) -> Option<String> {
    let file = own_file::open(&dir.join(FILE), Access::Read).ok()?;
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX).read_to_end(&mut bytes);
    forget(dir);
    read.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What is said about it.
pub fn worded(question: &str) -> String {
    let quoted: Vec<String> = question.lines().map(|line| format!("> {line}")).collect();
    format!(
        "A question waited for an answer when this session ended, and got none:\n{}\n\nWhat asked \
         it is over, and nothing was done after it. Ask for it again if you still want it.\n",
        quoted.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::{keep, take};

    #[test]
    fn a_question_that_waited_is_told_about_once() {
        let dir = tempfile::tempdir().expect("directory");
        assert_eq!(take(dir.path()), None);
        keep(dir.path(), "which?\nthis?").expect("kept");
        keep(dir.path(), "which?").expect("kept again");
        assert_eq!(take(dir.path()).as_deref(), Some("which?"));
        assert_eq!(take(dir.path()), None);
    }
}
