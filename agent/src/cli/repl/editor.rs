//! Lines from the person: with editing, history and completion at a terminal,
//! one after the other where there is none.

use std::{
    borrow::Cow,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
};

use rustix::termios::{QueueSelector, tcflush};
use rustyline::{
    Context, Editor, ExternalPrinter as _, Helper,
    completion::{Completer, FilenameCompleter, Pair},
    config::{ColorMode, CompletionType, Config},
    error::ReadlineError,
    highlight::{CmdKind, Highlighter},
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};

use super::words;
use crate::{
    cli::{no_text, say},
    config::keys,
    screen::{on_one_line, visible},
    state_dir::own_file::{self, Access},
};

/// Lines kept.
const HISTORY_MAX: usize = 2000;
/// A history that is longer than this was not written here.
const HISTORY_BYTES_MAX: u64 = 16 << 20;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A line, possibly of several.
    Line(String),
    /// The line was called off.
    Interrupted,
    /// What was typed is no text, so nothing of it is worked on.
    NoText,
    /// Nothing more will come.
    End,
}

/// Where lines come from.
pub enum Source {
    /// A person at a terminal.
    Terminal(Box<Terminal>),
    /// A file, a pipe.
    Plain,
}

/// The editor and its history.
pub struct Terminal {
    editor: Editor<Aid, FileHistory>,
    history: Option<PathBuf>,
    above: Above,
}

/// Where lines are said while one is typed: above it, and what is typed stays.
#[derive(Clone, Debug, Default)]
pub struct Above(Arc<Mutex<Option<Sender<String>>>>);

impl Above {
    /// Says a line, and whether there is anything to say it above of. Whoever says it waits for
    /// nobody: that would be for as long as nothing is typed.
    pub fn say(&self, line: String) -> bool {
        let lines = self.lock();
        lines.as_ref().is_some_and(|lines| lines.send(line).is_ok())
    }

    /// From here on above what is typed into this editor. Where that cannot be, nothing is
    /// said.
    fn belongs_to(&self, editor: &mut Editor<Aid, FileHistory>) {
        let printer = editor.create_external_printer().ok();
        *self.lock() = printer.and_then(|mut printer| {
            let (say, lines) = channel::<String>();
            // A printer waits until the line before was shown, be that at the next prompt. Between
            // two prompts, such as at ^Z, it writes at once what it is given: without an end of
            // its row the next prompt would come to stand over it.
            let says = move || {
                let mut rows = lines.into_iter().map(|line| format!("{line}\n"));
                rows.all(|row| printer.print(row).is_ok())
            };
            let thread = std::thread::Builder::new()
                .name("above".to_owned())
                .spawn(says);
            thread.is_ok().then_some(say)
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Sender<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same into a list, for tests of who says it.
    #[cfg(test)]
    pub fn into_a_list() -> (Self, std::sync::mpsc::Receiver<String>) {
        let (say, lines) = channel();
        (Self(Arc::new(Mutex::new(Some(say)))), lines)
    }
}

impl Source {
    /// The terminal, or the standard input as it is.
    pub fn open(is_terminal: bool, history: Option<PathBuf>) -> Self {
        if !is_terminal {
            return Self::Plain;
        }
        let history = history.filter(|path| is_usable(path));
        let editor = config().and_then(|config| {
            let lines = FileHistory::with_config(&config);
            aided(config, lines)
        });
        match editor {
            Ok(mut editor) => {
                if let Some(path) = &history {
                    // The first session has none.
                    let _ = editor.load_history(path);
                    leave_out_what_draws(&mut editor, path);
                }
                let above = Above::default();
                above.belongs_to(&mut editor);
                Self::Terminal(Box::new(Terminal {
                    editor,
                    history,
                    above,
                }))
            }
            Err(_) => Self::Plain,
        }
    }

    /// The next line.
    pub fn next(&mut self, prompt: &str) -> Came {
        match self {
            Self::Terminal(terminal) => terminal.next(prompt, true),
            Self::Plain => match no_text::line(&mut std::io::stdin().lock()) {
                Ok(Some(Ok(line))) => Came::Line(line),
                Ok(Some(Err(_))) => Came::NoText,
                Ok(None) | Err(_) => Came::End,
            },
        }
    }

    /// Where lines are said while this waits for one; nowhere, if nobody types.
    pub fn above(&self) -> Above {
        match self {
            Self::Terminal(terminal) => terminal.above.clone(),
            Self::Plain => Above::default(),
        }
    }

    /// Lines that were typed or pasted ahead are not worked on any more.
    pub fn forget_ahead(&mut self) {
        if let Self::Terminal(terminal) = self {
            terminal.forget_ahead();
        }
    }

    /// An answer, which is no line of the history.
    pub fn answer(&mut self, prompt: &str) -> Came {
        match self {
            Self::Terminal(terminal) => terminal.next(prompt, false),
            Self::Plain => {
                print!("{prompt}");
                let _ = std::io::stdout().flush();
                self.next(prompt)
            }
        }
    }
}

impl Terminal {
    fn next(&mut self, prompt: &str, is_kept: bool) -> Came {
        match self.editor.readline(prompt) {
            Ok(line) => {
                if is_kept && !line.trim().is_empty() && stands_as_it_is(&line) {
                    self.keep(&line);
                }
                if line.chars().any(draws) {
                    say(&format!(
                        "that line holds letters that are not seen as they are; it reads `{}`",
                        on_one_line(&line)
                    ));
                }
                Came::Line(line)
            }
            Err(ReadlineError::Interrupted) => Came::Interrupted,
            Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                // What follows it is the rest of a line and would be read as a whole one.
                let dropped = tcflush(std::io::stdin(), QueueSelector::IFlush);
                self.forget_ahead();
                println!();
                match dropped {
                    Ok(()) => Came::NoText,
                    // It would be worked on.
                    Err(_) => Came::End,
                }
            }
            Err(_) => Came::End,
        }
    }

    /// The editor keeps what it has read beyond its line; only a new one has nothing.
    fn forget_ahead(&mut self) {
        let lines = std::mem::take(self.editor.history_mut());
        // Where none can be had the terminal is gone, and so is what was typed there.
        if let Ok(editor) = config().and_then(|config| aided(config, lines)) {
            self.editor = editor;
            self.above.belongs_to(&mut self.editor);
        }
    }

    /// A history that cannot be written is no reason to stop.
    fn keep(&mut self, line: &str) {
        let _ = self.editor.add_history_entry(line);
        if let Some(path) = &self.history {
            let _ = save(&mut self.editor, path);
        }
    }
}

fn config() -> rustyline::Result<Config> {
    let config = Config::builder().max_history_size(HISTORY_MAX)?;
    Ok(config
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(ColorMode::Enabled)
        .bracketed_paste(true)
        .build())
}

fn aided(config: Config, lines: FileHistory) -> rustyline::Result<Editor<Aid, FileHistory>> {
    let mut editor = Editor::with_history(config, lines)?;
    editor.set_helper(Some(Aid {
        files: FilenameCompleter::new(),
    }));
    Ok(editor)
}

/// Whether what was typed before is kept in a file of this person's own. Another one would be
/// waited for, or read, without end; what is said here is kept nowhere then.
fn is_usable(path: &Path) -> bool {
    let why = match own_file::open(path, Access::Read).map(|file| file.metadata()) {
        Err(error) if error.is_missing() => return true,
        Ok(Ok(seen)) if seen.len() <= HISTORY_BYTES_MAX => return true,
        Ok(Ok(_)) => format!(
            "`{}` is longer than {} MiB; remove it",
            path.display(),
            HISTORY_BYTES_MAX >> 20
        ),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    say(&format!(
        "earlier lines are not known, and those of this session are not kept: {}",
        visible(&why)
    ));
    false
}

/// Whether a line looks like what it is. One that was pasted may hold letters that draw, and
/// would do so each time it is looked through.
fn stands_as_it_is(line: &str) -> bool {
    visible(line) == line
}

/// A history of before, or one that was written by hand, may hold such lines.
fn leave_out_what_draws(editor: &mut Editor<Aid, FileHistory>, path: &Path) {
    let lines: Vec<String> = editor.history().iter().cloned().collect();
    if lines.iter().all(|line| stands_as_it_is(line)) {
        return;
    }
    // A history that cannot be had is no reason to stop.
    let _ = editor.clear_history();
    for line in lines.iter().filter(|line| stands_as_it_is(line)) {
        let _ = editor.add_history_entry(line);
    }
    // What is added to the file from here on comes after what is left.
    let _ = editor.save_history(path);
}

fn save(editor: &mut Editor<Aid, FileHistory>, path: &Path) -> rustyline::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.exists()) {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
    }
    editor.append_history(path)
}

/// Completes and joins lines.
struct Aid {
    files: FilenameCompleter,
}

impl Helper for Aid {}

impl Highlighter for Aid {
    /// What is pasted may hold letters that draw: each stands as a mark, and none draws.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match line.chars().any(draws) {
            true => Cow::Owned(line.chars().filter_map(mark).collect()),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        line.chars().any(draws)
    }
}

/// Whether it does something to a terminal: a control letter, or one that turns the direction
/// of what is written.
fn draws(letter: char) -> bool {
    let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (letter.is_control() && !matches!(letter, '\n' | '\t'))
}

/// The letter, or what stands for it and is as wide as the editor takes it for.
fn mark(letter: char) -> Option<char> {
    match u32::from(letter) {
        _ if !draws(letter) => Some(letter),
        // The pictures of the control letters are in their order.
        code @ 0..=0x1f => char::from_u32(0x2400 + code),
        0x7f => Some('\u{2421}'),
        0x80..=0x9f => Some(char::REPLACEMENT_CHARACTER),
        // It has no width.
        _ => None,
    }
}

impl Hinter for Aid {
    type Hint = String;
}

impl Validator for Aid {
    /// A backslash at the end asks for another line.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Aid {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or_default();
        let (start, found) = known(before);
        if found.is_empty() {
            let (start, names) = self.files.complete_path(line, at)?;
            Ok((start, names.into_iter().filter(draws_nothing).collect()))
        } else {
            let pairs = found.into_iter().map(|word| Pair {
                display: word.clone(),
                replacement: word,
            });
            Ok((start, pairs.collect()))
        }
    }
}

/// Whether a name can stand on the screen as it is. Who chose it may be anybody: one that draws
/// there, ends the line or looks like another is typed by whoever means it.
fn draws_nothing(name: &Pair) -> bool {
    [&name.display, &name.replacement]
        .into_iter()
        .all(|text| on_one_line(text) == *text)
}

/// The words of ours that fit, and where the one being written begins.
fn known(before: &str) -> (usize, Vec<String>) {
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |place| place.saturating_add(1));
    let (done, word) = before.split_at(start);
    let done: Vec<&str> = done.split_whitespace().collect();
    let all: Vec<String> = match done.as_slice() {
        [] => words::names().map(|name| format!("{name} ")).collect(),
        ["config"] => [
            "show",
            "set ",
            "reset ",
            "add-directory ",
            "remove-directory ",
            "backend ",
            "import ",
        ]
        .map(str::to_owned)
        .to_vec(),
        ["config", "set" | "reset"] => keys::KEYS
            .iter()
            .map(|key| format!("{} ", key.name))
            .collect(),
        ["config", "set", "mode"] | ["mode"] => ["approve_all", "prompt", "reject_all"]
            .map(str::to_owned)
            .to_vec(),
        ["grant", ..] | ["explain"] => {
            let end = if done.first() == Some(&"grant") {
                "="
            } else {
                " "
            };
            [
                "fs.read",
                "fs.list",
                "fs.create",
                "fs.modify",
                "fs.delete",
                "fs.*",
            ]
            .map(|verb| format!("{verb}{end}"))
            .to_vec()
        }
        _ => Vec::new(),
    };
    let fitting = all
        .into_iter()
        .filter(|known| !word.is_empty() || !done.is_empty() || known.len() > 1)
        .filter(|known| known.starts_with(word));
    (start, fitting.collect())
}

#[cfg(test)]
mod tests {
    use rustyline::completion::FilenameCompleter;

    use super::{draws_nothing, known, mark};

    #[test]
    fn what_draws_stands_as_a_mark_and_every_other_letter_as_it_is() {
        let marked = |text: &str| text.chars().filter_map(mark).collect::<String>();
        assert_eq!(
            marked("a\u{7}\u{1b}[2J\u{7f}\u{9b}b"),
            "a\u{2407}\u{241b}[2J\u{2421}\u{fffd}b"
        );
        assert_eq!(marked("a\u{202e}b\u{2066}c"), "abc");
        let plain = "\u{5d0}\u{200f}\n\t\u{2764}\u{fe0f}\u{1f469}\u{200d}\u{1f4bb}";
        assert_eq!(marked(plain), plain);
    }

    #[test]
    fn a_name_that_draws_or_ends_a_line_is_not_put_there() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "name",
            "name b",
            "name\u{e9}",
            "name\u{1b}]0;x\u{7}",
            "name\n!x",
            "name\u{202e}",
        ];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let line = format!("!ls {}/na", dir.path().display());
        let (_, found) = FilenameCompleter::new()
            .complete_path(&line, line.len())
            .unwrap();
        assert_eq!(found.len(), names.len());
        let mut put: Vec<String> = found
            .into_iter()
            .filter(draws_nothing)
            .map(|name| name.display)
            .collect();
        put.sort();
        assert_eq!(put, names[..3]);
    }

    #[test]
    fn what_is_begun_is_completed_in_its_place() {
        let check = |line: &str, start: usize, expected: &[&str]| {
            let (at, found) = known(line);
            assert_eq!(
                (at, found.iter().map(String::as_str).collect::<Vec<_>>()),
                (start, expected.to_vec()),
                "{line}"
            );
        };
        check("co", 0, &["conversations ", "config "]);
        check("conf", 0, &["config "]);
        check("config se", 7, &["set "]);
        check("config set limits.p", 11, &["limits.pids_max "]);
        check("grant fs.d", 6, &["fs.delete="]);
        check("read the fil", 9, &[]);
    }
}
