//! What a person has told git about themselves.
//!
//! Commands do not see the home, so git would not know who commits, and no commit could be
//! made before somebody had granted a file for it. Of that file three values are taken, the
//! name, the address and what a first branch is called: they are in every repository of the
//! person's anyway. Nothing else is, since a setting of git can name a program, a key or
//! another file. A file git would not read gives nothing.

/// A longer value is none of these.
const VALUE_CHARS_MAX: usize = 256;

/// Section, name, and the name in small letters, as git compares them.
const KEPT: [(&str, &str); 3] = [
    ("user", "name"),
    ("user", "email"),
    ("init", "defaultbranch"),
];

/// The values that are taken of these files, the last of each, as a file of settings.
pub fn of_a_person<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let said: Vec<Setting> = texts.filter_map(settings).flatten().collect();
    let mut out = String::new();
    for (section, name) in KEPT {
        let last = said.iter().rev().find(|one| one.is(section, name));
        let Some(value) = last.map(|one| one.value.as_str()) else {
            continue;
        };
        let is_plain = !value.is_empty()
            && value.chars().count() <= VALUE_CHARS_MAX
            && !value.chars().any(char::is_control);
        if is_plain {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            out.push_str(&format!("[{section}]\n\t{name} = \"{value}\"\n"));
        }
    }
    out
}

struct Setting {
    section: String,
    name: String,
    value: String,
}

impl Setting {
    fn is(&self, section: &str, name: &str) -> bool {
        self.section.eq_ignore_ascii_case(section) && self.name.eq_ignore_ascii_case(name)
    }
}

/// All settings of a file, or `None` where git would stop at it.
fn settings(text: &str) -> Option<Vec<Setting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    let mut rest = text.as_str();
    let mut section = None;
    let mut all = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Some(all);
        };
        match first {
            '#' | ';' => rest = rest.split_once('\n').map_or("", |(_, rest)| rest),
            '[' => {
                let (name, after) = header(rest.get(1..)?)?;
                section = Some(name);
                rest = after;
            }
            'a'..='z' | 'A'..='Z' => {
                let end = rest
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                    .unwrap_or(rest.len());
                let (name, after) = rest.split_at_checked(end)?;
                let after = after.trim_start_matches([' ', '\t']);
                let (value, after) = match after.strip_prefix('=') {
                    Some(after) => value(after)?,
                    // A name alone is something that is so.
                    None if after.is_empty() || after.starts_with(['\n', '#', ';']) => {
                        ("true".to_owned(), after)
                    }
                    None => return None,
                };
                all.push(Setting {
                    section: section.clone()?,
                    name: name.to_owned(),
                    value,
                });
                rest = after;
            }
            _ => return None,
        }
    }
}

/// What a section is called, from behind its bracket on, and what follows. One with a name of its own in
/// quotation marks is another section than the one without.
fn header(text: &str) -> Option<(String, &str)> {
    let end = text.find([']', ' ', '\t', '\n', '"'])?;
    let (name, after) = text.split_at_checked(end)?;
    if name.is_empty()
        || !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
    {
        return None;
    }
    if let Some(after) = after.strip_prefix(']') {
        return Some((name.to_owned(), after));
    }
    let own = after.trim_start_matches([' ', '\t']).strip_prefix('"')?;
    let mut chars = own.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()?),
            '\n' => return None,
            '"' => {
                let after = own.get(at + 1..)?.strip_prefix(']')?;
                return Some((format!("{name} {}", own.get(..at)?), after));
            }
            _ => {}
        }
    }
    None
}

/// A value, from behind its `=` on, and what follows.
fn value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    // How much of it stays whatever follows: blanks at the end do not.
    let mut kept = 0;
    let (mut is_quoted, mut is_comment) = (false, false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' if is_quoted => return None,
            '\n' => {
                value.truncate(kept);
                return Some((value, text.get(at..)?));
            }
            _ if is_comment => {}
            ' ' | '\t' if !is_quoted => {
                if !value.is_empty() {
                    value.push(c);
                }
            }
            '#' | ';' if !is_quoted => is_comment = true,
            '"' => is_quoted = !is_quoted,
            '\\' => {
                match chars.next()?.1 {
                    '\n' => continue,
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    _ => return None,
                }
                kept = value.len();
            }
            c => {
                value.push(c);
                kept = value.len();
            }
        }
    }
    if is_quoted {
        return None;
    }
    value.truncate(kept);
    Some((value, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        of_a_person(std::iter::once(text))
    }

    #[test]
    fn name_address_and_first_branch_are_taken_and_nothing_else() {
        let file = "# me\n[user]\n\tname = A \"B; \" C  # this\n\temail=a@b.org\n\tsigningKey = K\n[core]\n\tpager = \
                    less\n[credential]\n\thelper = store\n[init] defaultBranch = main\n[include]\n\tpath = x\n";
        assert_eq!(
            of(file),
            "[user]\n\tname = \"A B;  C\"\n[user]\n\temail = \"a@b.org\"\n[init]\n\tdefaultbranch = \"main\"\n"
        );
    }

    #[test]
    fn the_last_word_of_the_last_file_counts() {
        let files = [
            "[user]\nname = one\nemail = e\n",
            "[USER]\nName = two\nname = three",
        ];
        assert_eq!(
            of_a_person(files.into_iter()),
            "[user]\n\tname = \"three\"\n[user]\n\temail = \"e\"\n"
        );
    }

    #[test]
    fn another_section_of_the_same_word_is_another() {
        assert_eq!(of("[user \"work\"]\nname = x\n[user.work]\nname = y\n"), "");
        assert_eq!(
            of("[url \"a\\\"]b\"]\ninsteadOf = c\n[user]\nname = x"),
            "[user]\n\tname = \"x\"\n"
        );
    }

    #[test]
    fn what_is_taken_says_the_same_again_and_opens_no_section() {
        for name in ["a\\\\b", "a\\\"]b", "\"  both  \"", "caf\u{e9} [x] = y"] {
            let taken = of(&format!("[user]\nname = {name}\n"));
            assert!(!taken.is_empty(), "{name}");
            assert_eq!(of(&taken), taken, "{name}");
            assert_eq!(taken.lines().count(), 2, "{taken}");
        }
        for name in ["a\\nb", "a\\tb", "", "\u{1}"] {
            assert_eq!(of(&format!("[user]\nname = {name}\n")), "", "{name:?}");
        }
        assert_eq!(of(&format!("[user]\nname = {}\n", "x".repeat(257))), "");
    }

    #[test]
    fn a_file_git_stops_at_gives_nothing() {
        for text in [
            "[user]\nname = x\n[broken",
            "[user]\nname = \"x\n",
            "[user]\nname = x\\q\n",
            "name = x\n",
            "[user]\nname = x\n!\n",
            "[user]\nname x\n",
            "[user]\nname = x\n[a \"b]\n",
            "[]\n[user]\nname = x\n",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }

    #[test]
    fn lines_go_on_and_end_as_elsewhere() {
        assert_eq!(
            of("\u{feff}[user]\r\nname = a\\\r\n b\r\nemail = e ; c\r\n"),
            "[user]\n\tname = \"a b\"\n[user]\n\temail = \"e\"\n"
        );
    }
}
