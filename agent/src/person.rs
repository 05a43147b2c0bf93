//! The person a program asks: at its terminal, or nobody.
//!
//! A question is answered by what is typed after it was put, and by nothing else; what
//! is shown of a model's words, of files and commands draws nothing on the terminal.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use hermitcrab_core::{approval::Reply, limits::QUESTION_LIFETIME, time::Instant};

use crate::{
    ambient::{self, BootClock},
    answers::{self, Below},
    cancel::Cancel,
    ports::{Clock, Keep, Prompt, UserPort, Verdict},
    printing,
    screen::{Screen, TAKEN_BACK},
    text::rows,
};

/// The person at the terminal, whatever the standard streams are.
#[derive(Debug)]
pub struct TerminalUser {
    terminal: File,
    screen: Screen,
    cancel: Cancel,
    /// Thrown where the program was suspended and goes on.
    goes_on: Cancel,
    /// What comes before a question, unseen.
    before: &'static str,
    /// Where an answer may be for all of a directory.
    workspace: Option<PathBuf>,
}

impl TerminalUser {
    /// Opens the terminal; `None` if there is none, so nobody to ask.
    #[must_use]
    pub fn open() -> Option<Self> {
        ambient::terminal().map(|terminal| Self {
            terminal,
            screen: Screen::default(),
            cancel: Cancel::default(),
            // Without it a question is there as it was before, further up.
            goes_on: ambient::on_going_on().unwrap_or_default(),
            before: "",
            workspace: None,
        })
    }

    /// The same, on a screen that may show colours.
    #[must_use]
    pub fn shown_on(mut self, screen: Screen) -> Self {
        self.screen = screen;
        self
    }

    /// The same, whose questions end without a yes when the switch is thrown.
    #[must_use]
    pub fn interrupted_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// The same, on which a program may draw before a question is put: what it prints
    /// goes through somebody else's hands, and these may lead to the terminal.
    #[must_use]
    pub fn drawn_on(mut self) -> Self {
        if ambient::has_a_screen() {
            self.before = TAKEN_BACK;
        }
        self
    }

    /// The same, who is asked for as long as a session lasts: what is asked about in this
    /// workspace can be answered for all of a directory.
    #[must_use]
    pub fn asked_in(mut self, workspace: &Path) -> Self {
        self.workspace = Some(workspace.to_owned());
        self
    }

    fn answer(&mut self, prompt: Prompt<'_>) -> io::Result<(Reply, Keep)> {
        let widest = prompt.question.widest();
        let workspace = self.workspace.clone();
        let workspace = workspace.as_deref();
        let below = workspace.and_then(|dir| Below::of(&prompt)?.within(dir));
        let below = below.as_ref();
        let shown = self.screen.diff(prompt.shown.trim_end(), self.columns());
        let rows = match self.columns() {
            Some(_) => shown.lines().count(),
            None => rows::count(prompt.shown),
        };
        if !self.before.is_empty() {
            printing::until_read(&self.cancel);
        }
        writeln!(self.terminal, "{}\n{shown}", self.before)?;
        if let Some(in_all) = answers::in_all(&prompt, rows) {
            for line in in_all.lines() {
                writeln!(self.terminal, "{}", self.in_rows(line))?;
            }
        }
        // However often it is put, the question lives no longer.
        let until = BootClock.now().after(QUESTION_LIFETIME);
        let mut tries = 0;
        let mut is_explained = false;
        let (reply, keep) = loop {
            tries += 1;
            // What was typed before the question was there is no answer to it.
            rustix::termios::tcflush(&self.terminal, rustix::termios::QueueSelector::IFlush)?;
            let offered = answers::offered(widest, below);
            let before = self.before;
            let asked = self.in_rows(&format!("allow this? {offered}deny, ? [deny]: "));
            let asked = format!("{before}{asked}");
            match self.typed(&asked, until)? {
                Typed::Line(line) => match answers::said(line.trim(), widest, below) {
                    (Reply::Unknown(words), _) if tries < answers::TRIES_MAX => {
                        if words != "?" {
                            // It is explained once, and then for who asks for it.
                            let more = match std::mem::replace(&mut is_explained, true) {
                                true => "; `?` explains the answers",
                                false => "",
                            };
                            let meant = answers::meant(&words);
                            let line = self.in_rows(&format!(
                                "`{}` is no answer here{meant}{more}",
                                words.escape_debug()
                            ));
                            writeln!(self.terminal, "{line}")?;
                            if !more.is_empty() {
                                continue;
                            }
                        }
                        is_explained = true;
                        let explained =
                            answers::explained(widest, answers::extent(prompt.question), below);
                        let besides = match below {
                            Some(_) => answers::grant_of_most(&prompt),
                            None => answers::grants_for_all(&prompt)
                                .or_else(|| answers::grants_to_look(&prompt, workspace?)),
                        };
                        let besides = besides.unwrap_or_default();
                        // A long name reads in no row like a word of this.
                        let lines = [explained, besides].concat();
                        let rows: Vec<String> =
                            lines.lines().map(|line| self.in_rows(line)).collect();
                        let rows = rows.join("\n");
                        // As the ledger has it, for whoever wants to look it up there.
                        let (id, digest) = (prompt.question.id(), prompt.question.digest());
                        writeln!(
                            self.terminal,
                            "{rows}\n  in the ledger: {id}, sha256 {digest}"
                        )?;
                    }
                    (reply, Keep::Hold(wider)) => {
                        let why = below.map(answers::held).unwrap_or_default();
                        match self.looked_again(&why, until)? {
                            Typed::Line(line) if line.trim() == "yes" => {
                                break (reply, Keep::Hold(wider));
                            }
                            // To hold less is no refusal of what is asked about.
                            Typed::Line(_) if tries < answers::TRIES_MAX => {}
                            Typed::Line(_) => return Ok((Reply::No, Keep::Nothing)),
                            Typed::Nothing => return Ok((Reply::Silence, Keep::Nothing)),
                            Typed::Left => return Ok((Reply::Cancelled, Keep::Nothing)),
                        }
                    }
                    (Reply::Unknown(words), keep) => {
                        let line = self.in_rows(&format!(
                            "`{}` is no answer here, and the third of them counts as no",
                            words.escape_debug()
                        ));
                        writeln!(self.terminal, "{line}")?;
                        break (Reply::Unknown(words), keep);
                    }
                    said => break said,
                },
                Typed::Nothing => return Ok((Reply::Silence, Keep::Nothing)),
                Typed::Left => return Ok((Reply::Cancelled, Keep::Nothing)),
            }
        };
        match answers::risk(&prompt) {
            Some(why) if matches!(reply, Reply::Yes(_)) => match self.looked_again(&why, until)? {
                Typed::Line(line) if line.trim() == "yes" => Ok((reply, keep)),
                Typed::Line(_) => Ok((Reply::No, Keep::Nothing)),
                Typed::Nothing => Ok((Reply::Silence, Keep::Nothing)),
                Typed::Left => Ok((Reply::Cancelled, Keep::Nothing)),
            },
            _ => Ok((reply, keep)),
        }
    }

    /// What is typed after a first answer was worth a second look.
    fn looked_again(&mut self, why: &str, until: Instant) -> io::Result<Typed> {
        // What came along with the first answer is no second one.
        rustix::termios::tcflush(&self.terminal, rustix::termios::QueueSelector::IFlush)?;
        let why = self.in_rows(why);
        let asked = format!("{why}; type the word `yes` to go on: ");
        self.typed(&asked, until)
    }

    /// A line after these words, or how there was none.
    fn typed(&mut self, asked: &str, until: Instant) -> io::Result<Typed> {
        let _before = self.goes_on.take();
        self.terminal.write_all(asked.as_bytes())?;
        self.terminal.flush()?;
        let mut waited = self.answers_until(until)?;
        while matches!(waited, Waited::WentOn) {
            // What was begun of an answer is gone with the suspension; who comes back to a
            // shell's own words is to see that something is asked.
            self.terminal.write_all(asked.as_bytes())?;
            self.terminal.flush()?;
            waited = self.answers_until(until)?;
        }
        match waited {
            Waited::Comes | Waited::WentOn => {}
            Waited::Nothing => {
                writeln!(self.terminal, "\nno answer came, which counts as no")?;
                return Ok(Typed::Nothing);
            }
            Waited::Interrupted => {
                writeln!(self.terminal)?;
                return Ok(Typed::Left);
            }
        }
        let mut line = Vec::new();
        match BufReader::new(&self.terminal).read_until(b'\n', &mut line)? {
            0 => {
                // What is said next begins a line of its own.
                writeln!(self.terminal)?;
                Ok(Typed::Left)
            }
            // A terminal that is not in UTF-8 is answered that this is no answer.
            _ => Ok(Typed::Line(String::from_utf8_lossy(&line).into_owned())),
        }
    }
}

/// How long a wait for a line goes on without a look at the switch, in milliseconds: a
/// signal that comes right before the wait, or to another thread, does not end it.
const LOOKS_AGAIN_AFTER: u64 = 200;

impl TerminalUser {
    /// Does a line, or the end of the terminal, come by then?
    fn answers_until(&self, until: Instant) -> io::Result<Waited> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        loop {
            if self.cancel.is_thrown() {
                return Ok(Waited::Interrupted);
            }
            if self.goes_on.take() {
                return Ok(Waited::WentOn);
            }
            let left = until
                .as_millis()
                .saturating_sub(BootClock.now().as_millis());
            let wait = Timespec {
                tv_sec: 0,
                tv_nsec: i64::try_from(left.min(LOOKS_AGAIN_AFTER) * 1_000_000).unwrap_or(0),
            };
            let mut fds = [PollFd::new(&self.terminal, PollFlags::IN)];
            match poll(&mut fds, Some(&wait)) {
                Ok(0) if left == 0 => return Ok(Waited::Nothing),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(Waited::Comes),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// How a wait for a line ended.
enum Waited {
    Comes,
    Nothing,
    Interrupted,
    /// The program was suspended meanwhile.
    WentOn,
}

/// What was typed.
enum Typed {
    Line(String),
    Nothing,
    Left,
}

impl TerminalUser {
    /// Puts a question of the program's own; `None` if no answer came. What is asked about may
    /// be somebody else's: no row of a long line looks like a line.
    pub fn line(&mut self, question: &str) -> Option<String> {
        let rows: Vec<String> = question
            .split('\n')
            .map(|line| self.in_rows(line))
            .collect();
        let question = rows.join("\n");
        let mut asked = || -> io::Result<Option<String>> {
            rustix::termios::tcflush(&self.terminal, rustix::termios::QueueSelector::IFlush)?;
            let until = BootClock.now().after(QUESTION_LIFETIME);
            Ok(match self.typed(&question, until)? {
                Typed::Line(line) => Some(line.trim().to_owned()),
                Typed::Nothing | Typed::Left => None,
            })
        };
        asked().ok().flatten()
    }

    /// How wide the terminal is, if it is one.
    fn columns(&self) -> Option<usize> {
        self.screen.columns_of(&self.terminal)
    }

    /// A line of somebody else's, of which no row looks like another line.
    fn in_rows(&self, line: &str) -> String {
        match self.columns() {
            Some(columns) => rows::broken(line, columns),
            None => line.to_owned(),
        }
    }

    /// A model's question; a number picks a choice, other words are the answer.
    fn words(&mut self, question: &str, choices: Option<&[String]>) -> io::Result<Option<String>> {
        rustix::termios::tcflush(&self.terminal, rustix::termios::QueueSelector::IFlush)?;
        // The model's words must not draw on the terminal.
        let question = self.in_rows(&format!("question: {}", question.escape_debug()));
        writeln!(self.terminal, "\n{question}")?;
        for (place, choice) in choices.into_iter().flatten().enumerate() {
            let choice = format!("  {}. {}", place + 1, choice.escape_debug());
            let choice = self.in_rows(&choice);
            writeln!(self.terminal, "{choice}")?;
        }
        let until = BootClock.now().after(QUESTION_LIFETIME);
        let Typed::Line(line) = self.typed("answer: ", until)? else {
            return Ok(None);
        };
        let line = line.trim();
        let picked = line
            .parse::<usize>()
            .ok()
            .and_then(|number| choices?.get(number.checked_sub(1)?));
        Ok(Some(picked.map_or_else(|| line.to_owned(), Clone::clone)))
    }
}

impl UserPort for TerminalUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.ask_and_keep(prompt).0
    }

    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        self.answer(prompt)
            .unwrap_or((Reply::Failed, Keep::Nothing))
    }

    fn refused_as_before(&mut self) {
        // Who cannot be told is not asked either.
        let _ = writeln!(
            self.terminal,
            "not asked: you said `never` to exactly this before; `hermitcrab remembered` lists that, `remembered clear` forgets it"
        );
    }

    fn consider(&mut self, shown: &str) -> Verdict {
        let shown = self.in_rows(&shown.escape_debug().to_string());
        let question = format!("\n{shown}\ngrant this? accept, decline, later [decline]: ");
        match self.line(&question).as_deref() {
            Some("accept") => Verdict::Yes,
            // Silence leaves it open.
            Some("later") | None => Verdict::Later,
            Some(_) => Verdict::No,
        }
    }

    fn hears_words(&self) -> bool {
        true
    }

    fn clarify(&mut self, question: &str, choices: Option<&[String]>) -> Option<String> {
        self.words(question, choices).ok().flatten()
    }
}

/// Where nobody is: every question fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyThere;

impl UserPort for NobodyThere {
    fn ask(&mut self, _prompt: Prompt<'_>) -> Reply {
        Reply::Failed
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_wait_ends_with_the_switch_whether_or_not_a_signal_ends_the_call() {
        for is_thrown_before in [true, false] {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let cancel = Cancel::default();
            let mut user = TerminalUser {
                terminal: File::from(OwnedFd::from(ours)),
                screen: Screen::default(),
                cancel: cancel.clone(),
                goes_on: Cancel::default(),
                before: "",
                workspace: None,
            };
            let until = BootClock.now().after(QUESTION_LIFETIME);
            if is_thrown_before {
                cancel.throw();
            }
            let waiting = std::thread::spawn(move || user.typed("", until));
            cancel.throw();
            assert!(matches!(waiting.join().unwrap(), Ok(Typed::Left)));
        }
    }
}
