//! Settings of a new store that name no program and no other file.
//!
//! Who begins a repository says in the same breath who commits to it. Of a file of settings
//! only what git writes is read here, line by line, and only keys whose values are a
//! person's name, a word of a list or a number. Git reads far more; where anything else
//! stands, the whole of it is settings nobody knows, and somebody is asked.

/// A longer file is none that was just begun.
const BYTES_MAX: usize = 4 << 10;

/// That a file of settings holds nothing else than what is known to be harmless.
///
/// There is no way to one but by reading such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarmlessSettings(());

/// What a key may be said to be.
enum Value {
    /// Words for people, whatever they are.
    Words,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// The name of a branch.
    Branch,
    /// A number.
    Number,
}

use Value::{Branch, Number, OneOf, Words};

const YES_OR_NO: Value = OneOf(&["true", "false"]);

/// Section and key in small letters, as git compares them.
///
/// Not here is whatever names a program (`core.editor`, `core.pager`, `core.fsmonitor`,
/// `core.sshCommand`, `alias.*`, `filter.*`, `credential.*`), a place (`core.hooksPath`,
/// `core.worktree`, `include.path`, `remote.*`), or more to be done (`commit.gpgSign` that is
/// so, `push.default` of all branches).
const HARMLESS: [(&str, &str, Value); 26] = [
    ("core", "repositoryformatversion", OneOf(&["0"])),
    ("core", "bare", OneOf(&["false"])),
    ("core", "filemode", YES_OR_NO),
    ("core", "logallrefupdates", OneOf(&["true", "always"])),
    ("core", "autocrlf", OneOf(&["true", "false", "input"])),
    ("core", "eol", OneOf(&["lf", "crlf", "native"])),
    ("core", "safecrlf", OneOf(&["true", "false", "warn"])),
    ("core", "quotepath", YES_OR_NO),
    ("core", "longpaths", YES_OR_NO),
    ("user", "name", Words),
    ("user", "email", Words),
    ("user", "useconfigonly", YES_OR_NO),
    ("init", "defaultbranch", Branch),
    ("commit", "gpgsign", OneOf(&["false"])),
    ("tag", "gpgsign", OneOf(&["false"])),
    ("pull", "rebase", YES_OR_NO),
    ("pull", "ff", OneOf(&["true", "false", "only"])),
    ("merge", "ff", OneOf(&["true", "false", "only"])),
    (
        "merge",
        "conflictstyle",
        OneOf(&["merge", "diff3", "zdiff3"]),
    ),
    (
        "push",
        "default",
        OneOf(&["simple", "current", "upstream", "nothing"]),
    ),
    ("push", "autosetupremote", YES_OR_NO),
    ("rebase", "autostash", YES_OR_NO),
    ("rerere", "enabled", YES_OR_NO),
    (
        "color",
        "ui",
        OneOf(&["true", "false", "auto", "always", "never"]),
    ),
    ("gc", "auto", Number),
    ("advice", "*", YES_OR_NO),
];

impl HarmlessSettings {
    /// Reads a file of settings of a store; nothing where anything in it is not known to be
    /// harmless, or is not written as git writes it.
    #[must_use]
    pub fn read(content: &[u8]) -> Option<Self> {
        if content.len() > BYTES_MAX {
            return None;
        }
        let text = core::str::from_utf8(content).ok()?;
        // A last line without an end is none of git's.
        let text = text.strip_suffix('\n')?;
        let mut section: Option<&str> = None;
        let (mut has_version, mut has_tree) = (false, false);
        for line in text.split('\n') {
            if let Some(setting) = line.strip_prefix('\t') {
                let (key, value) = setting.split_once(" = ")?;
                let section = section?;
                if !is_harmless(section, key, value) {
                    return None;
                }
                let is = |name: &str| {
                    section.eq_ignore_ascii_case("core") && key.eq_ignore_ascii_case(name)
                };
                has_version |= is("repositoryformatversion");
                has_tree |= is("bare");
            } else {
                let name = line.strip_prefix('[')?.strip_suffix(']')?;
                // With a dot, a blank or a quotation mark it has a name of its own, and is another.
                let is_plain = name.bytes().all(|byte| byte.is_ascii_alphabetic());
                section = Some(name).filter(|name| is_plain && !name.is_empty());
                section?;
            }
        }
        // These git writes before anybody says anything.
        (has_version && has_tree).then_some(Self(()))
    }
}

fn is_harmless(section: &str, key: &str, value: &str) -> bool {
    let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut known = HARMLESS.iter();
    let known = known.find(|(of, name, _)| {
        section.eq_ignore_ascii_case(of) && (*name == "*" || key.eq_ignore_ascii_case(name))
    });
    let Some((_, _, known)) = known.filter(|_| is_name && !key.is_empty()) else {
        return false;
    };
    match known {
        Words => is_one_line_of_words(value),
        OneOf(words) => words.contains(&value),
        Branch => {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
            !value.is_empty() && !value.starts_with('-') && value.bytes().all(is_part)
        }
        Number => {
            let is_short = (1..=9).contains(&value.len());
            is_short && value.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// Whether git takes all of it for the value, and nothing of it for a comment, an end of
/// the line, or a line that goes on.
fn is_one_line_of_words(value: &str) -> bool {
    let mut is_quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => match letters.next() {
                Some('\\' | '"') => {}
                Some(_) | None => return false,
            },
            '#' | ';' if !is_quoted => return false,
            letter if letter.is_control() => return false,
            _ => {}
        }
    }
    !is_quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

    fn is_harmless(more: &str) -> bool {
        HarmlessSettings::read([BEGUN, more].concat().as_bytes()).is_some()
    }

    #[test]
    fn what_people_say_of_themselves_and_of_lines_and_branches_is_harmless() {
        for more in [
            "",
            "[user]\n\tname = Test User\n\temail = test@example.com\n",
            "[user]\n\temail = a@b\n[user]\n\tname = \n",
            "[user]\n\tname = \"A \\\"B; \\\\ C\\\" # D\"\n",
            "[User]\n\tName = Caf\u{e9} \u{540d}\n",
            "\tautocrlf = input\n\tsafecrlf = warn\n[init]\n\tdefaultBranch = topic/main-1.0\n",
            "[commit]\n\tgpgsign = false\n[pull]\n\trebase = false\n\tff = only\n[push]\n\tdefault = simple\n",
            "[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n[color]\n\tui = never\n",
        ] {
            assert!(is_harmless(more), "{more}");
        }
    }

    #[test]
    fn whatever_names_a_program_or_a_place_is_not() {
        for more in [
            "\tfsmonitor = ./x\n",
            "\thooksPath = hooks\n",
            "\tsshCommand = ./x\n",
            "\teditor = ./x\n",
            "\tpager = ./x\n",
            "\tworktree = ..\n",
            "\tattributesFile = a\n",
            "\tbare = true\n",
            "\trepositoryformatversion = 1\n",
            "[include]\n\tpath = ../x\n",
            "[includeIf \"gitdir:.\"]\n\tpath = ../x\n",
            "[alias]\n\tst = !./x\n",
            "[credential]\n\thelper = !./x\n",
            "[filter \"x\"]\n\tclean = ./x\n",
            "[diff]\n\texternal = ./x\n",
            "[gpg]\n\tprogram = ./x\n",
            "[commit]\n\tgpgsign = true\n",
            "[pull]\n\trebase = interactive\n",
            "[push]\n\tdefault = matching\n",
            "[remote \"origin\"]\n\turl = ext::./x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[user]\n\tsigningKey = x\n",
            "[gc]\n\tauto = x\n",
            "[init]\n\ttemplateDir = x\n",
            "[init]\n\tdefaultBranch = -x\n",
        ] {
            assert!(!is_harmless(more), "{more}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound_and_none_that_is_longer() {
        let of_length = |length: usize| {
            let (begin, end) = ([BEGUN, "[user]\n\tname = "].concat(), "\n");
            let name = "x".repeat(length - begin.len() - end.len());
            let all = [begin.as_str(), &name, end].concat();
            assert_eq!(all.len(), length);
            HarmlessSettings::read(all.as_bytes()).is_some()
        };
        assert!(of_length(BYTES_MAX - 1));
        assert!(of_length(BYTES_MAX));
        assert!(!of_length(BYTES_MAX + 1));
    }

    #[test]
    fn what_git_could_read_otherwise_is_not() {
        for more in [
            // Each of these ends, goes on or begins elsewhere than it looks.
            "[user]\n\tname = x\\\n[core]\n\tfsmonitor = ./x\n",
            "[user]\n\tname = \"x\n\tfsmonitor = ./x\n",
            "[user]\n\tname = \"x\\\"\n",
            "[user]\n\tname = x\\ny\n",
            "[user]\n\tname = x ; y\n",
            "[user]\n\tname = x\r\n",
            "[user]\n\tname = x\r[core]\r\tfsmonitor = ./x\n",
            "[user]\n\tname = x\u{0}y\n",
            "[user] name = x\n",
            "[user]\tname = x\n[core] fsmonitor = ./x\n",
            "[user]\n\tname = x\n[core]fsmonitor=./x ]\n",
            "[core \"user]\"]\n\tfsmonitor = ./x\n",
            "[user.x]\n\tname = x\n",
            "[user \"x\"]\n\tname = x\n",
            "[]\n\tname = x\n",
            "[ user ]\n\tname = x\n",
            "[user]\n\tname\n",
            "[user]\n\tname=x\n",
            "[user]\n\tna me = x\n",
            "[user]\n name = x\n",
            "[user]\n\t name = x\n",
            "[user]\n\tname = x\n\n",
            "# x\n",
            "; x\n",
            "[user]\n\tname = x",
            "[advice]\n\tx = y\n",
            "[advice]\n\ta = true = b\n",
            "[advice]\n\t[core] fsmonitor = true\n",
            "[advice]\n\ta.b = true\n",
            "[advice]\n\t = true\n",
            "\u{feff}[user]\n\tname = x\n",
        ] {
            assert!(!is_harmless(more), "{more:?}");
        }
        let not_text = [BEGUN.as_bytes(), b"[user]\n\tname = \xff\n"].concat();
        assert_eq!(HarmlessSettings::read(&not_text), None);
        assert!(!is_harmless(&"[user]\n\tname = x\n".repeat(300)));
        // What git did not begin is no store that was begun.
        for begun in [
            "",
            "\n",
            "[user]\n\tname = x\n",
            "[core]\n\tbare = false\n",
            "[core]\n\trepositoryformatversion = 0\n",
            "\trepositoryformatversion = 0\n\tbare = false\n",
        ] {
            assert_eq!(HarmlessSettings::read(begun.as_bytes()), None, "{begun:?}");
        }
    }
}
