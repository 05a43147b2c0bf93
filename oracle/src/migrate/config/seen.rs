//! Where a proposed grant was needed.
//!
//! A configuration counts in every project, and what was seen in one says nothing about
//! another: so each grant says where it was seen, and how it is given there alone.

use std::fmt::Write as _;

use super::{super::translate::ProposedGrant, one_line};

/// In which projects a grant was needed, and how it is given in one and in no other.
pub(super) fn write(text: &mut String, grant: &ProposedGrant) {
    const NAMED_MAX: usize = 5;
    let (named, more) = match grant.seen_in.split_at_checked(NAMED_MAX) {
        Some((named, rest)) => (named, rest.len()),
        None => (grant.seen_in.as_slice(), 0),
    };
    let names: Vec<String> = named.iter().map(|name| one_line(name)).collect();
    let (seen, there) = match (names.as_slice(), more) {
        ([], _) => return,
        ([one], _) => (
            format!("in {one} alone"),
            "there and in no other project, run there",
        ),
        (several, 0) => (
            format!("in {}", several.join(", ")),
            "in one of them alone, run in it",
        ),
        (several, more) => (
            format!("in {} and {more} more", several.join(", ")),
            "in one of them alone, run in it",
        ),
    };
    // Writing into a string cannot fail, here and below.
    let _ = writeln!(text, "# needed {seen}");
    // A name that breaks its line is no word of a command on this one.
    if grant.on.starts_with('.') && one_line(&grant.on) == grant.on {
        let word = format!("{}={}", grant.verb, grant.on).replace('\'', "'\\''");
        let _ = writeln!(text, "# to give it {there}: hermitcrab caps grant '{word}'");
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::translate::ProposedGrant, write};

    fn told(on: &str, seen_in: &[&str]) -> String {
        let mut text = String::new();
        let grant = ProposedGrant {
            seen_in: seen_in.iter().map(|name| (*name).to_owned()).collect(),
            ..ProposedGrant::new("fs.create", on)
        };
        write(&mut text, &grant);
        text
    }

    #[test]
    fn a_grant_says_where_it_was_needed_and_how_it_is_given_there_alone() {
        assert_eq!(told("./src", &[]), "");
        assert_eq!(
            told("./it's", &["/p"]),
            "# needed in /p alone\n# to give it there and in no other project, run there: hermitcrab caps grant 'fs.create=./it'\\''s'\n"
        );
        let many = ["/a", "/b", "/c", "/d", "/e", "/f", "/g"];
        let text = told("./src", &many);
        assert!(
            text.starts_with("# needed in /a, /b, /c, /d, /e and 2 more\n"),
            "{text}"
        );
        // No name ends a comment, and none becomes a command on another line.
        let text = told("./a\nb", &["/p\nq"]);
        assert_eq!(text, "# needed in /p q alone\n");
    }
}
