//! Reading one line of a patch: marks, file headers and hunk hints.

/// A line that begins a file's part. Paths come without surrounding blanks and
/// may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header<'a> {
    Add(&'a str),
    Update(&'a str),
    Delete(&'a str),
    Move(&'a str, &'a str),
}

/// A line that begins or ends the patch. The mark may stand anywhere in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Begin,
    End,
}

/// White space as patch writers' tools see it: Unicode's, and the four
/// information separators of ASCII.
pub(super) fn is_blank(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

pub(super) fn mark(line: &str) -> Option<Mark> {
    // Nearly every line is of the patched file and holds no star, and is looked through once.
    let mut found = None;
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('*') {
        rest = after;
        let Some(word) = after.strip_prefix("**") else {
            continue;
        };
        let word = word.strip_prefix(' ').unwrap_or(word);
        if word.starts_with("Begin Patch") {
            return Some(Mark::Begin);
        }
        if word.starts_with("End Patch") {
            found = Some(Mark::End);
        }
    }
    found
}

pub(super) fn header(line: &str) -> Option<Header<'_>> {
    let rest = line.strip_prefix("***")?.trim_start_matches(is_blank);
    let (word, rest) = rest.split_at_checked(rest.find(is_blank)?)?;
    let rest = rest.trim_start_matches(is_blank).strip_prefix("File:")?;
    if rest.is_empty() {
        return None;
    }
    match word {
        "Add" => Some(Header::Add(rest.trim_matches(is_blank))),
        "Update" => Some(Header::Update(rest.trim_matches(is_blank))),
        "Delete" => Some(Header::Delete(rest.trim_matches(is_blank))),
        "Move" => {
            let (from, to) = divide(rest, "->").filter(|(_, to)| !to.is_empty())?;
            Some(Header::Move(
                from.trim_matches(is_blank),
                to.trim_matches(is_blank),
            ))
        }
        _ => None,
    }
}

/// The hint of a line that begins with `@@`, if a second `@@` closes it.
pub(super) fn hint(line: &str) -> Option<&str> {
    let (hint, _) = divide(line.strip_prefix("@@")?, "@@")?;
    let trimmed = hint.trim_matches(is_blank);
    if trimmed.is_empty() {
        // Blanks between two marks are a hint too: one blank.
        return hint
            .char_indices()
            .next_back()
            .and_then(|(start, _)| hint.get(start..));
    }
    Some(trimmed)
}

/// Divides at the first `divider` that has something other than blanks before
/// it; failing that, at one that has blanks before it.
fn divide<'a>(text: &'a str, divider: &str) -> Option<(&'a str, &'a str)> {
    let body = text.trim_start_matches(is_blank);
    let indent = text.len() - body.len();
    let second = indent + body.chars().next().map_or(0, char::len_utf8);
    let place = text
        .get(second..)
        .and_then(|rest| rest.find(divider).map(|place| second + place))
        .or_else(|| (indent > 0 && body.starts_with(divider)).then_some(indent))?;
    Some((text.get(..place)?, text.get(place + divider.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<Header<'_>>) {
        assert_eq!(header(line), expected, "{line:?}");
    }

    #[test]
    fn a_header_is_read_with_and_without_blanks() {
        check("*** Add File: a.py", Some(Header::Add("a.py")));
        check("***Add File: a.py", Some(Header::Add("a.py")));
        check(
            "***\tUpdate   File:a b.py \r",
            Some(Header::Update("a b.py")),
        );
        check("*** Delete\u{a0}File: x", Some(Header::Delete("x")));
        check("*** Move File: a -> b", Some(Header::Move("a", "b")));
        check("*** Move File:a->b->c", Some(Header::Move("a", "b->c")));
    }

    #[test]
    fn a_header_without_its_path_is_still_seen() {
        check("*** Add File: ", Some(Header::Add("")));
        check("*** Move File:  -> b", Some(Header::Move("", "b")));
        check("*** Move File: a -> ", Some(Header::Move("a", "")));
    }

    #[test]
    fn other_lines_are_no_header() {
        for line in [
            "*** Add File:",
            "*** AddFile: x",
            "*** add File: x",
            "** Add File: x",
            "**** Add File: x",
            " *** Add File: x",
            "*** Move File: a",
            "*** Move File: a ->",
            "*** Move File:-> b",
            "*** End Patch",
            "***",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn a_hint_stands_between_two_marks() {
        assert_eq!(hint("@@ def f @@"), Some("def f"));
        assert_eq!(hint("@@def f@@ more"), Some("def f"));
        assert_eq!(hint("@@ @@"), Some(" "));
        assert_eq!(hint("@@"), None);
        assert_eq!(hint("@@@@"), None);
        assert_eq!(hint("@@ -1,2 +1,3"), None);
    }

    #[test]
    fn a_mark_may_stand_anywhere_in_its_line() {
        assert_eq!(mark("*** Begin Patch"), Some(Mark::Begin));
        assert_eq!(mark("x ***End Patch y"), Some(Mark::End));
        assert_eq!(mark("***  Begin Patch"), None);
        assert_eq!(mark("*****Begin Patch"), Some(Mark::Begin));
        assert_eq!(mark("** *Begin Patch"), None);
        assert_eq!(mark("***End Patch *** Begin Patch"), Some(Mark::Begin));
        assert_eq!(mark("*** End Patch ***"), Some(Mark::End));
    }
}
