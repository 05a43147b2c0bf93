//! Which programs a command did not find, as far as what was said tells.

use hermitcrab_sandbox::spawn::Ending;

/// The status of a shell that did not find a program.
const NOT_FOUND: i32 = 127;
/// What shells and programs say of one; in other languages the status tells.
const SAID: [&str; 2] = ["not found", "No such file or directory"];
/// More names than anybody is told of.
const NAMES_MAX: usize = 16;

/// The words that may be names of programs it did not find, the first first. Some of them
/// name something else: whoever looks for them finds no program.
pub(super) fn missing(ending: Ending, said: &[&str]) -> Vec<String> {
    let Ending::Exited(status) = ending else {
        return Vec::new();
    };
    if status == 0 {
        return Vec::new();
    }
    let tells = |line: &&str| status == NOT_FOUND || SAID.iter().any(|said| line.contains(said));
    let lines = said.iter().flat_map(|said| said.lines()).filter(tells);
    let mut names: Vec<String> = Vec::new();
    for word in lines.flat_map(|line| line.split(": ")) {
        let quotes = ['\'', '"', '`', '\u{2018}', '\u{2019}'];
        let word = word.trim().trim_matches(quotes);
        if is_name(word) && !names.iter().any(|name| name == word) {
            names.push(word.to_owned());
        }
        if names.len() == NAMES_MAX {
            break;
        }
    }
    names
}

fn is_name(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    !word.is_empty() && word.len() <= 64 && !word.starts_with('.') && word.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shells_and_programs_say_names_what_they_did_not_find() {
        for (said, name) in [
            ("bash: line 3: cargo: command not found\n", "cargo"),
            ("sh: 1: tsc: not found\n", "tsc"),
            (
                "make: cargo: No such file or directory\nmake: *** [Makefile:2: all] Error 127\n",
                "cargo",
            ),
            (
                "/usr/bin/env: \u{2018}node\u{2019}: No such file or directory\n",
                "node",
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'g++-12'\n",
                "g++-12",
            ),
        ] {
            let names = missing(Ending::Exited(2), &["working\n", said]);
            assert!(names.iter().any(|found| found == name), "{said}: {names:?}");
            assert!(!names.iter().any(|found| found == "working"), "{names:?}");
            assert!(missing(Ending::Exited(0), &[said]).is_empty());
            assert!(missing(Ending::TimedOut, &[said]).is_empty());
        }
        let german = "bash: Zeile 3: cargo: Kommando nicht gefunden.\n";
        assert!(missing(Ending::Exited(127), &[german]).contains(&"cargo".to_owned()));
        assert!(missing(Ending::Exited(1), &[german]).is_empty());
    }

    #[test]
    fn no_more_names_are_told_of_than_anybody_reads() {
        let many: String = (0..1000)
            .map(|n| format!("sh: 1: p{n}: not found\n"))
            .collect();
        assert_eq!(missing(Ending::Exited(127), &[&many]).len(), NAMES_MAX);
        for odd in ["../x", "a/b", "$(x)", "", ".", "\u{1b}[2J"] {
            assert!(!is_name(odd), "{odd:?}");
        }
    }
}
