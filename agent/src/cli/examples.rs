//! Examples at the end of a command's help: what it is typed like.
//!
//! They are copied from a terminal to a shell. Where a row of the help ends, a new line begins
//! for whoever copies it, and what stood behind a `#` would be a command. So they are broken here,
//! as a shell reads them, before whoever lays the help out does it.

use std::{io, os::fd::AsFd};

use crate::ambient;

pub const EXEC: &str = "\
Without -t its input is empty at a terminal: keys typed there answer questions.
Its /tmp is its own and is gone with it; what is to stay belongs elsewhere.

Examples:
  # what it changes is shown, then asked about
  hermitcrab exec -- make test
  # below ./build it may make files unasked
  hermitcrab exec --grant fs.create=./build -- make
  # all of ./target is its own, and it reaches one host
  hermitcrab exec --grant 'fs.*=./target' \\
      --grant net.connect=example.com:443 -- cargo build
  # one argument is a line for the shell
  hermitcrab exec -- 'sort names.txt > sorted.txt'
  # a shell on a copy: what was done in it is shown when you leave
  hermitcrab exec --terminal -- bash
  # see what it would do, and keep nothing
  hermitcrab exec --dry-run -- rm -r docs
  # how much of it where, without the differences
  hermitcrab exec --dry-run --stat -- npm run build";

pub const CALL: &str = "\
Examples:
  hermitcrab call read_file '{\"path\": \"notes.txt\"}'
  hermitcrab call --grant fs.modify=notes.txt write_file \\
      '{\"path\": \"notes.txt\", \"content\": \"hi\"}'";

pub const CHAT: &str = "\
Examples:
  hermitcrab chat 'what is in this directory?'
  # new files unasked, until the model has read something
  hermitcrab chat --grant fs.create=. 'write a poem into poem.txt'
  # goes on where the last conversation here was left
  hermitcrab chat --continue 'and another one'
  # with what a program prints; that was read, whatever is granted
  #   git diff | hermitcrab chat --attach - 'what does this change?'
  # granted for what it has read by now as well; nobody need be there
  hermitcrab chat 'what should a README here say?'
  hermitcrab chat --continue --grant fs.create=. 'write it'";

pub const ACP: &str = "\
The editor starts it, by the command `hermitcrab acp` in its settings, and says
where a session works.

Examples:
  hermitcrab acp
  # another model than the configured one
  hermitcrab acp --model NAME --base-url http://127.0.0.1:8080/v1
  # in another terminal: what its sessions hold
  #   hermitcrab session";

pub const CONVERSATIONS: &str = "\
Examples:
  # those had in this workspace; --all for every one
  hermitcrab conversations
  # goes on with this one, at the prompt; --continue with the last
  #   hermitcrab --resume 1f2e3d4c
  hermitcrab conversations show 1f2e3d4c
  hermitcrab conversations forget 1f2e3d4c";

pub const PLAN: &str = r#"Examples:
  # made by the model, shown, not done
  hermitcrab plan 'put the pictures into folders by month'
  # yours; no model is needed
  hermitcrab plan --plan tidy.json
  # what one can be written with
  hermitcrab plan --actions

A plan:
  {"version": 1, "summary": "list the notes", "steps": [
    {"id": "found", "call": "find_files", "with": {
      "pattern": "*.md", "path": "."}},
    {"id": "write", "call": "create_file", "with": {"path": "all.txt",
      "text": {"fn": "join", "of": [{"$": "found.paths"}, "\n"]}}},
    {"id": "say", "answer": {"text": ["notes: ",
      {"fn": "length", "of": [{"$": "found.paths"}]}]}}
  ]}"#;

pub const RUN: &str = "\
Examples:
  hermitcrab run 'put the pictures into folders by month'
  # asks before each step
  hermitcrab run --plan tidy.json --step
  # does nothing
  hermitcrab run --plan tidy.json --dry-run";

pub const UNDO: &str = "\
Examples:
  # the last change
  hermitcrab undo
  # what can be taken back
  hermitcrab undo --list
  # that one, as `--list` numbers it
  hermitcrab undo 4
  # make room: what is kept of these is removed, for good
  hermitcrab undo --forget 1 2
  hermitcrab undo --forget --all --all-but 10
  hermitcrab undo --forget --before 2026-01-31 --yes";

pub const CAPS: &str = "\
Examples:
  hermitcrab caps
  hermitcrab caps revoke standing1
  # in this workspace, until it is to be confirmed
  hermitcrab caps grant fs.modify=./notes
  hermitcrab caps grant 'fs.*=./target'
  hermitcrab caps grant net.connect=example.com:443";

pub const SESSION: &str = "\
Examples:
  # what the one that runs holds
  hermitcrab session
  # at once; what runs on it is killed
  hermitcrab session revoke grant4
  hermitcrab session mode reject_all";

pub const CRON: &str = "\
Examples:
  hermitcrab cron
  hermitcrab cron grant 1f2e3d fs.modify=./notes
  # from a timer, such as once a minute
  hermitcrab cron tick";

pub const EXPLAIN: &str = "\
Examples:
  hermitcrab explain fs.modify docs
  hermitcrab explain --grant fs.modify=docs fs.modify docs/a.md";

pub const AUDIT: &str = "\
Examples:
  hermitcrab audit --follow
  # while a session runs, too
  hermitcrab audit --json | jq -r .text
  hermitcrab audit verify
  # what is on record goes there, and a new ledger begins
  hermitcrab audit archive ~/records/2026
  hermitcrab audit verify --state-dir ~/records/2026";

pub const CONFIG: &str = "\
Examples:
  # every key, and what counts
  hermitcrab config
  hermitcrab config show mode
  hermitcrab config set limits.memory_max_mb 2048
  hermitcrab config backend http --model NAME \\
      --base-url http://127.0.0.1:8080/v1
  hermitcrab config backend http --model NAME \\
      --base-url https://api.example.com/v1 --key-env API_KEY";

pub const COMPLETIONS: &str = "\
Examples:
  hermitcrab completions bash \\
      > ~/.local/share/bash-completion/completions/hermitcrab
  # a directory of your fpath
  hermitcrab completions zsh > ~/.zfunc/_hermitcrab
  hermitcrab completions fish > ~/.config/fish/completions/hermitcrab.fish";

pub const MAN: &str = "\
Examples:
  hermitcrab man | man -l -
  hermitcrab man caps grant | man -l -";

/// How a line begins that goes on with a command.
const GOES_ON: &str = "      ";

/// The same for where the help is read, if that is a terminal or its width is said.
pub fn fitted(text: &str) -> String {
    let screen = ambient::screen();
    let wide = |output: &dyn AsFd| screen.columns_of(&output.as_fd());
    let columns = wide(&io::stdout())
        .or_else(|| wide(&io::stderr()))
        .or_else(|| wide(&io::stdin()))
        .or(screen.columns);
    columns.map_or_else(|| text.to_owned(), |columns| fit(text, columns))
}

/// Comments go on behind a `#` of their own, and commands behind a `\\` at the end of the row.
fn fit(text: &str, columns: usize) -> String {
    let whole = text.replace(&format!(" \\\n{GOES_ON}"), " ");
    let lines = whole.lines().map(|line| match line.trim_start() {
        comment if comment.starts_with("# ") => broken(line, columns, "  # ", ""),
        command if command.starts_with("hermitcrab ") => broken(line, columns, GOES_ON, " \\"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// One line in rows, as far as its words let it. Those after the first begin so, those before
/// the last end so.
fn broken(line: &str, columns: usize, begin: &str, end: &str) -> String {
    let length = |text: &str| text.chars().count();
    let indent = line.len().saturating_sub(line.trim_start().len());
    let mut rows = vec![line.get(..indent).unwrap_or_default().to_owned()];
    let all = words(line.trim_start());
    for (place, word) in all.iter().enumerate() {
        let is_last = place + 1 == all.len();
        let Some(row) = rows.last_mut() else { continue };
        let taken = length(row) + 1 + length(word) + if is_last { 0 } else { length(end) };
        let is_begun = !row.trim_start().is_empty();
        if is_begun && taken > columns {
            row.push_str(end);
            rows.push(format!("{begin}{word}"));
        } else {
            if is_begun {
                row.push(' ');
            }
            row.push_str(word);
        }
    }
    rows.join("\n")
}

/// The words of a line, where what stands between quotes is a part of one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        is_quoted ^= letter == '\'';
        match (letter, words.last_mut()) {
            (' ', _) if !is_quoted => words.push(String::new()),
            (_, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use crate::cli::Arguments;

    /// A line as a shell takes it apart, up to what leaves the command.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (place, piece) in line.split('\'').enumerate() {
            if place % 2 == 1 {
                words.push(piece.to_owned());
                continue;
            }
            let until = piece.find(['#', '|', '>']);
            let kept = piece.get(..until.unwrap_or(piece.len())).unwrap();
            words.extend(kept.split_whitespace().map(str::to_owned));
            if until.is_some() {
                break;
            }
        }
        words
    }

    #[test]
    fn every_example_is_understood_by_the_program_that_shows_it() {
        let mut shown = 0;
        for command in Arguments::command().get_subcommands() {
            let Some(help) = command.get_after_help() else {
                continue;
            };
            for line in help
                .to_string()
                .replace("\\\n", " ")
                .lines()
                .filter(|line| line.starts_with("  hermitcrab"))
            {
                let words = words(line);
                assert_eq!(
                    words.get(1).map(String::as_str),
                    Some(command.get_name()),
                    "{line}"
                );
                let read = Arguments::try_parse_from(&words);
                assert!(
                    read.is_ok(),
                    "{line}: {:?}",
                    read.err().map(|error| error.to_string())
                );
                shown += 1;
            }
        }
        assert!(shown > 30, "{shown}");
    }

    #[test]
    fn what_is_copied_from_a_narrow_terminal_is_what_stands_in_a_wide_one() {
        let long = super::COMPLETIONS;
        for text in [
            super::EXEC,
            super::CALL,
            super::CHAT,
            super::AUDIT,
            super::CONFIG,
            long,
        ] {
            // As a shell reads it, without comments.
            let read = |text: &str| -> Vec<String> {
                let whole = text.replace("\\\n", " ");
                let lines = whole
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.starts_with('#'));
                lines
                    .map(|line| {
                        super::words(line)
                            .into_iter()
                            .filter(|word| !word.is_empty())
                            .collect::<Vec<_>>()
                            .join(" ")
                    })
                    .collect()
            };
            for columns in [0, 20, 40, 60, 80, 300] {
                let narrow = super::fit(text, columns);
                assert_eq!(read(&narrow), read(text), "{columns}: {narrow}");
                for line in narrow.lines().filter(|line| line.starts_with("  ")) {
                    let is_one_word = super::words(line.trim_end_matches(" \\").trim()).len() <= 2;
                    assert!(
                        line.chars().count() <= columns || is_one_word,
                        "{columns}: {line}"
                    );
                }
            }
        }
        assert_eq!(
            super::fit(
                "Examples:\n  # one two three\n  hermitcrab exec -- 'a b' c",
                22
            ),
            "Examples:\n  # one two three\n  hermitcrab exec -- \\\n      'a b' c"
        );
        assert_eq!(
            super::fit("  # one two three", 12),
            "  # one two\n  # three"
        );
    }

    /// A line that a terminal of the usual width breaks cannot be copied whole.
    #[test]
    fn every_line_fits_a_terminal_of_eighty_columns() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            for line in help.iter().flat_map(|help| help.lines()) {
                assert!(line.chars().count() < 80, "{line}");
            }
        }
    }
}
