//! From operations to patch text.

use alloc::string::String;
use core::fmt::{self, Write as _};

use super::{Hunk, Line, Operation, parse};

/// Writes operations as a patch, or `None` if the format cannot say them: a
/// path with a line break, an added line that reads as an end mark.
///
/// What is returned reads back as exactly these operations.
#[must_use]
pub fn print(operations: &[Operation]) -> Option<String> {
    let mut text = String::from("*** Begin Patch\n");
    for operation in operations {
        write_operation(&mut text, operation).ok()?;
    }
    text.push_str("*** End Patch\n");
    parse(&text)
        .is_ok_and(|read| read == operations)
        .then_some(text)
}

fn write_operation(text: &mut String, operation: &Operation) -> fmt::Result {
    write!(text, "*** {} File: {}", operation.word(), operation.path())?;
    match operation {
        Operation::Move { to, .. } => writeln!(text, " -> {to}"),
        Operation::Delete { .. } => writeln!(text),
        Operation::Add { hunks, .. } | Operation::Update { hunks, .. } => {
            writeln!(text)?;
            hunks.iter().try_for_each(|hunk| write_hunk(text, hunk))
        }
    }
}

fn write_hunk(text: &mut String, hunk: &Hunk) -> fmt::Result {
    match &hunk.hint {
        Some(hint) => writeln!(text, "@@ {hint} @@")?,
        None => writeln!(text, "@@")?,
    }
    for line in &hunk.lines {
        match line {
            Line::Context(line) => writeln!(text, " {line}")?,
            Line::Removed(line) => writeln!(text, "-{line}")?,
            Line::Added(line) => writeln!(text, "+{line}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9_./~-]{1,12}( [a-z*]{1,4})?"
    }

    fn line() -> impl Strategy<Value = Line> {
        let text = "[ -~\u{e9}\u{202e}]{0,16}";
        prop_oneof![
            text.prop_map(Line::Context),
            text.prop_map(Line::Removed),
            text.prop_map(Line::Added),
        ]
    }

    fn hunks(least: usize) -> impl Strategy<Value = Vec<Hunk>> {
        let hint = prop::option::of("[a-z(][a-z() ]{0,8}[a-z)]");
        let hunk = (hint, prop::collection::vec(line(), 1..5))
            .prop_map(|(hint, lines)| Hunk { hint, lines });
        prop::collection::vec(hunk, least..3)
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            (path(), hunks(0)).prop_map(|(path, hunks)| Operation::Add { path, hunks }),
            (path(), hunks(1)).prop_map(|(path, hunks)| Operation::Update { path, hunks }),
            path().prop_map(|path| Operation::Delete { path }),
            (path(), path()).prop_map(|(path, to)| Operation::Move { path, to }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(operations in prop::collection::vec(operation(), 0..5)) {
            let text = print(&operations);
            prop_assert!(text.is_some(), "these operations can be said");
            prop_assert_eq!(parse(&text.unwrap_or_default()), Ok(operations));
        }

        #[test]
        fn what_was_read_prints_and_reads_back(text in "(\\*\\*\\* ?(Add|Update|Delete|Move) File: ?[a-c>-]{0,4}\n|[@ +-][@ -~]{0,6}\n|\n){0,12}") {
            if let Ok(operations) = parse(&text) && let Some(printed) = print(&operations) {
                prop_assert_eq!(parse(&printed), Ok(operations));
            }
        }

        #[test]
        fn reading_never_fails_to_return(text in any::<String>()) {
            let _ = parse(&text);
        }
    }

    #[test]
    fn what_the_format_cannot_say_is_not_printed() {
        let delete = |path: &str| {
            [Operation::Delete {
                path: path.to_string(),
            }]
        };
        assert!(print(&delete("a")).is_some());
        for path in ["", " a", "a\nb", "*** End Patch"] {
            assert_eq!(print(&delete(path)), None, "{path:?}");
        }
    }
}
