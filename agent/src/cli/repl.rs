//! The prompt: `hermitcrab` by itself. Plain language goes to the model, which
//! works by tool calls; everything it does passes the monitor like any other
//! call, and what is not granted is shown and asked about.
//!
//! ^C calls off what is being done and never the program; ^D leaves. Without a
//! terminal the lines of the standard input are worked on one after the other.

mod banner;
mod became;
mod columns;
mod editor;
mod ends;
mod fold;
mod held;
mod live;
mod spoken;
mod suspended;
mod tree;
mod usable;
mod wizard;
mod words;

use std::{
    cell::Cell, collections::VecDeque, io::IsTerminal as _, ops::ControlFlow, rc::Rc, sync::Arc,
};

use hermitcrab_core::{approval::Asking, outcome::DenialCode};
use hermitcrab_sandbox::journal::CommitId;

use self::{
    banner::Active,
    editor::{Came, Source},
    ends::Ends,
    live::Live,
    spoken::Spoken,
    words::Line,
};
use super::{
    Setting, Trouble, begin, choice,
    conversations::{GoOn, Going},
    cron, exec, explain, no_text, open, plan, run, say, say_toned,
    seen::Seen,
    tell, tell_aside, undo,
};
use crate::{
    ambient, audit,
    cancel::Cancel,
    chat::{Chat, ChatError, TurnEnd},
    exit,
    model::{Backend, ModelError},
    person::TerminalUser,
    runtime::{CommandInput, Fate, Runtime, TypedCommand},
    screen::{Screen, Tone, visible},
    state_dir,
    text::rows,
};

/// What the help says at its end.
const AND_ELSE: &str = "Anything else is plain language for the model. A line that ends with \\ goes on, a slash in front makes a command of a line in any case, ^C calls off what is being done.";

/// The shell of `!!`.
const SHELL: &str = "bash";

/// How the prompt starts.
#[derive(Debug, Default, clap::Args)]
pub struct Prompt {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    choice: choice::Choice,
    #[command(flatten)]
    go_on: GoOn,
    /// No colours and nothing that moves, as NO_COLOR and a dumb terminal ask for, too
    #[arg(long)]
    plain: bool,
}

impl Prompt {
    /// As it starts without a word, or where a conversation was left.
    pub fn going_on(go_on: GoOn) -> Self {
        Self {
            go_on,
            ..Self::default()
        }
    }
}

/// Everything the prompt works with.
struct Repl<'s> {
    setting: &'s Setting,
    choice: &'s choice::Choice,
    ground: open::Ground,
    runtime: Runtime,
    backend: Option<Backend>,
    chat: Option<Chat>,
    going: Going,
    screen: Screen,
    cancel: Cancel,
    /// Whether what commands print is on the screen as it comes.
    is_watched: bool,
    /// Whether what is being run is a model's.
    is_models: Rc<Cell<bool>>,
}

/// Runs until the person leaves.
pub fn repl(prompt: &Prompt) -> u8 {
    match start(prompt) {
        Ok(code) => code,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn start(prompt: &Prompt) -> Result<u8, Trouble> {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut screen = ambient::screen();
    if prompt.plain {
        screen = Screen::default();
    }
    let cancel = Cancel::default();
    ambient::on_interrupt(&cancel).map_err(|error| {
        (
            format!("cannot take ^C in hand: {error}"),
            exit::ENVIRONMENT,
        )
    })?;
    let mut ground = open::ground(&prompt.setting.place)?;
    let history = is_terminal.then(|| ground.state_dir.join(state_dir::HISTORY_NAME));
    let mut source = Source::open(is_terminal, history);
    if is_terminal && !ground.places.config_file.exists() {
        wizard::run(&mut source, &ground.places.config_file, &screen)?;
        ground = open::ground(&prompt.setting.place)?;
    }
    let going = Going::begin(&ground, &prompt.setting, &prompt.go_on)?;
    let backend = usable::model(&ground, &prompt.choice, &cancel);
    let user = TerminalUser::open().map(|terminal| {
        let terminal = terminal.shown_on(screen).interrupted_by(cancel.clone());
        terminal.asked_in(&ground.workspace)
    });
    let mut runtime = begin::session_after(&prompt.setting, user, going.past())?;
    let runner = cron::Runner::new(&prompt.setting.place, &prompt.choice).ended_by(cancel.clone());
    runtime.run_jobs_through(Box::new(runner));
    let is_models = Rc::new(Cell::new(false));
    let live = Live::new(cancel.clone(), screen, is_terminal, is_models.clone());
    runtime.show_progress(Box::new(live));
    if is_terminal {
        suspended::tell_where_it_is_nobodys(&source);
    }
    let ends = Arc::new(Ends::new(source.above(), screen));
    runtime.tell_ends_to(ends.clone());
    let mut repl = Repl {
        setting: &prompt.setting,
        choice: &prompt.choice,
        ground,
        runtime,
        backend,
        chat: None,
        going,
        screen,
        cancel,
        is_watched: is_terminal,
        is_models,
    };
    if let Some(backend) = &repl.backend {
        choice::let_talk(&mut repl.runtime, backend)?;
    }
    if is_terminal {
        println!(
            "{}",
            screen.tone(
                Tone::Bold,
                concat!("hermitcrab ", env!("CARGO_PKG_VERSION"))
            )
        );
        repl.mounts();
        if repl.going.is_old() {
            print_all(repl.going.recalled());
        }
        println!("Say in plain words what is to be done, or `help`.");
    }
    let code = repl.each(&mut source, &ends, is_terminal);
    super::wind_up(&mut repl.runtime);
    if is_terminal && repl.going.is_kept() {
        let hint = "`hermitcrab --continue` goes on with this conversation";
        println!("{}", screen.tone(Tone::Dim, hint));
    }
    repl.runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    Ok(code)
}

impl Repl<'_> {
    fn each(&mut self, source: &mut Source, ends: &Ends, is_terminal: bool) -> u8 {
        let mut code = exit::OK;
        loop {
            if is_terminal {
                print_all(ends.waits(&self.runtime.ended_undecided()));
            }
            let came = source.next("> ");
            ends.works();
            let line = match came {
                Came::Line(line) => line,
                Came::Interrupted => continue,
                Came::NoText => {
                    say(no_text::LINE);
                    code = exit::USAGE;
                    continue;
                }
                Came::End => break,
            };
            // ^C at the prompt, or one that came too late, stops nothing new.
            let _ = self.cancel.take();
            let line = words::read(&line);
            let is_command = matches!(line, Line::Run(_));
            match line {
                Line::Exit => break,
                line => code = self.act(line),
            }
            for line in self.runtime.take_told() {
                say(&visible(&line));
            }
            if self.cancel.take() {
                say(match is_command {
                    // An editor or a pager waits for keys that do not reach it.
                    true => "called off; a program that wants a terminal gets one with `!!COMMAND`",
                    false => "called off",
                });
                // What was pasted along with it is called off, too.
                source.forget_ahead();
            }
            // By `hermitcrab session end`; whatever is typed from here on would be refused.
            if self.runtime.has_ended() {
                say("the session was ended from elsewhere; start the program again for another");
                break;
            }
        }
        // A person who leaves did nothing wrong in their last line.
        if is_terminal { exit::OK } else { code }
    }

    fn act(&mut self, line: Line) -> u8 {
        let done = match line {
            Line::Nothing | Line::Exit => Ok(exit::OK),
            Line::Help(about) => {
                self.help(about);
                Ok(exit::OK)
            }
            Line::Clear => {
                if self.screen.is_lively {
                    use std::io::Write as _;
                    print!("\u{1b}[H\u{1b}[2J");
                    // The editor does not write through this buffer.
                    let _ = std::io::stdout().flush();
                }
                Ok(exit::OK)
            }
            Line::Tree(dir) => {
                let dir = dir.map_or_else(
                    || self.ground.workspace.clone(),
                    |dir| self.ground.workspace.join(dir),
                );
                if dir.is_dir() {
                    print_all(tree::lines(&dir, &self.screen));
                    Ok(exit::OK)
                } else {
                    let why = format!(
                        "`{}` is no directory; `tree` alone shows the workspace",
                        dir.display()
                    );
                    Err((why, exit::USAGE))
                }
            }
            Line::Mounts => {
                self.mounts();
                Ok(exit::OK)
            }
            Line::Caps => self.caps(),
            Line::Mode(mode) => self.mode(mode),
            Line::New => {
                self.chat = None;
                self.going.anew();
                tell("a new conversation; what this session has read still counts as read");
                Ok(exit::OK)
            }
            Line::Resume(id) => self.resume(&id),
            Line::Grant(grants) => self.grant(&grants),
            Line::Revoke(grant) => self.revoke(&grant),
            Line::Undo(0) => undo::show(&self.runtime, &self.ground, false).map(|()| exit::OK),
            Line::Undo(last) => self.taken_back(None, last),
            Line::UndoCommit(id) => self.taken_back(Some(id), 1),
            Line::Audit(last) => self.audit(last),
            Line::Program(words) => self.program(&words),
            Line::Run(command) => Ok(self.command(&command, CommandInput::Nothing, false)),
            Line::OnTerminal(command) => self.on_terminal(&command),
            Line::DryRun(command) => self.dry_run(&command),
            Line::Plan(words) => {
                let by = (self.choice, &self.cancel);
                plan::at_prompt(&mut self.runtime, self.setting, by, &words)
            }
            Line::Say(request) => self.say(&request),
            Line::Wrong(why) => Err((why, exit::USAGE)),
        };
        done.unwrap_or_else(|(message, code)| {
            say_toned(&self.screen, Tone::Bad, &message);
            code
        })
    }

    fn help(&self, on: Option<&str>) {
        let columns = self.screen.columns_of(&std::io::stdout());
        let is_on = |form: &str| on.is_none_or(|name| form.split(' ').next() == Some(name));
        for (form, about) in words::COMMANDS.iter().filter(|(form, _)| is_on(form)) {
            let (column, about) = columns::help(form, about, columns);
            println!("  {}{about}", self.screen.tone(Tone::Mark, &column));
        }
        if on.is_none() {
            println!("{}", rows::folded(AND_ELSE, columns, 0));
        }
    }

    fn mounts(&self) {
        let peers = self.runtime.peers(self.runtime.first_agent());
        let active = Active {
            ground: &self.ground,
            isolation: self.runtime.isolation(),
            asking: self.runtime.asking(),
            peers: &peers,
            backend: self.backend.as_ref(),
            screen: &self.screen,
        };
        print_all(active.lines());
    }

    fn taken_back(&mut self, id: Option<u64>, last: usize) -> Result<u8, Trouble> {
        undo::take_back(&mut self.runtime, &self.ground, "undo commit", id, last).map(|()| exit::OK)
    }

    fn audit(&mut self, last: usize) -> Result<u8, Trouble> {
        let mut lines = VecDeque::new();
        let all = audit::show::Selection {
            session: None,
            follow: false,
        };
        let mut printed = audit::printed::Printed::default();
        audit::show::selected(&self.ground.state_dir, &all, |record| {
            lines.push_back(printed.line(record));
            if lines.len() > last {
                lines.pop_front();
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
        print_all(lines);
        Ok(exit::OK)
    }

    /// A command of the program, on the same workspace and state.
    fn program(&mut self, words: &[String]) -> Result<u8, Trouble> {
        if let [name, verb, on] = words
            && name == "explain"
            && ![verb, on].iter().any(|word| word.starts_with('-'))
            && let Some(code) = explain::in_session(&mut self.runtime, &self.ground, (verb, on))?
        {
            return Ok(code);
        }
        let code = super::run_words(words, &self.setting.place)?;
        if words.first().is_some_and(|name| name == "config") {
            self.reread();
            let is_mode = matches!(words, [_, what, key, ..] if matches!(what.as_str(), "set" | "reset") && key == "mode");
            if is_mode && code == exit::OK {
                tell(&format!(
                    "it counts from the next session on; this one stays in mode {} (`mode MODE` changes that)",
                    self.runtime.asking()
                ));
            }
        }
        Ok(code)
    }

    /// What changed in the configuration counts where it can at once.
    fn reread(&mut self) {
        let Ok(ground) = open::ground(&self.setting.place) else {
            return;
        };
        self.ground = ground;
        let model = usable::model(&self.ground, self.choice, &self.cancel);
        let name = |backend: &Option<Backend>| {
            backend
                .as_ref()
                .map(|backend| (backend.model.clone(), backend.place.clone()))
        };
        if name(&model) != name(&self.backend) {
            self.chat = None;
            // Another model begins another conversation.
            if self.backend.is_some() {
                self.going.anew();
            }
            if let Some(backend) = &model
                && let Err((message, _)) = choice::let_talk(&mut self.runtime, backend)
            {
                say(&message);
            }
        }
        self.backend = model;
        self.runtime
            .set_ceilings(self.ground.config.ceilings(&self.ground.admin));
    }

    /// A command with a terminal of its own, or a shell.
    fn on_terminal(&mut self, command: &str) -> Result<u8, Trouble> {
        if !self.is_watched {
            return Err((exec::NO_TERMINAL.to_owned(), exit::USAGE));
        }
        let command = if command.is_empty() { SHELL } else { command };
        let (console, theirs) = exec::lent(&self.cancel)?;
        let before = self.runtime.show_progress(Box::new(console));
        let code = self.command(command, CommandInput::Terminal(&theirs), false);
        if let Some(before) = before {
            self.runtime.show_progress(before);
        }
        Ok(code)
    }

    fn command(&mut self, command: &str, given: CommandInput<'_>, is_rehearsed: bool) -> u8 {
        let agent = self.runtime.first_agent();
        let before = self.runtime.last_commit();
        let report = self.runtime.run_typed(
            agent,
            &TypedCommand {
                command,
                timeout: None,
                given,
                apart: false,
            },
        );
        if let (Ok(run), false) = (&report.came, self.is_watched) {
            exec::print_whole(run);
        }
        // The no of a dry run is its own, and was told with what it is about.
        let is_told = is_rehearsed && report.fate.code() == Some(DenialCode::RejectedByUser);
        if let (Ok(run), Fate::Ran) = (&report.came, &report.fate)
            && let Some(status) = exec::failure(run.ending)
        {
            say(&format!("ended with status {status}"));
        }
        let told = exec::told(
            &report,
            self.cancel.is_thrown(),
            exec::Typed::Prompt,
            &self.ground.workspace,
        );
        for line in told.iter().filter(|_| !is_told) {
            say(line);
        }
        if let Some(line) = exec::programs_elsewhere(&report, &self.ground) {
            say(&line);
        }
        tell_kept(&self.screen, &self.runtime, before);
        run::code(&report.fate)
    }

    fn dry_run(&mut self, command: &str) -> Result<u8, Trouble> {
        self.runtime
            .note(format!("a dry run: {command}"))
            .map_err(|error| (error.to_string(), exit::LEDGER))?;
        let mut rehearsal = open::rehearse(self.setting)?;
        rehearsal.show_progress(Box::new(Live::new(
            self.cancel.clone(),
            self.screen,
            self.is_watched,
            self.is_models.clone(),
        )));
        std::mem::swap(&mut self.runtime, &mut rehearsal);
        let code = self.command(command, CommandInput::Nothing, true);
        std::mem::swap(&mut self.runtime, &mut rehearsal);
        Ok(code)
    }

    /// Another conversation, where it was left.
    fn resume(&mut self, id: &str) -> Result<u8, Trouble> {
        if self.going.is(id) {
            tell("this conversation goes on already");
            return Ok(exit::OK);
        }
        let going = Going::begin(&self.ground, self.setting, &GoOn::with(id))?;
        going.enter(&mut self.runtime)?;
        self.going = going;
        self.chat = None;
        print_all(self.going.recalled());
        Ok(exit::OK)
    }

    /// Plain language, to the model.
    fn say(&mut self, request: &str) -> Result<u8, Trouble> {
        if self.backend.is_none() {
            // What kept it from being used may be over.
            self.reread();
        }
        let Some(backend) = &mut self.backend else {
            if self.ground.config.models().planner.is_some() {
                return Err((usable::NOT_USABLE.to_owned(), exit::USAGE));
            }
            let hint = "; a command for the sandbox begins with `!`, and `help` lists the others";
            return Err((format!("{}{hint}", choice::NO_MODEL), exit::USAGE));
        };
        if let Some(name) = words::in_no_form_of(request) {
            let line = format!(
                "  `{name}` has no such form, so this goes to the model; `help {name}` shows its own"
            );
            tell_aside(&self.screen, Tone::Dim, &line);
        }
        let asked = self.runtime.servers_to_ask();
        if self.screen.is_lively && !asked.is_empty() {
            let line = format!(
                "  asking for tools: {} (^C goes no further)",
                asked.join(", ")
            );
            tell_aside(&self.screen, Tone::Dim, &line);
        }
        let mut talk = self
            .chat
            .take()
            .unwrap_or_else(|| self.going.chat(&self.runtime, &backend.model));
        let mut model = Spoken {
            model: &mut *backend.port,
            screen: self.screen,
            cancel: self.cancel.clone(),
            has_spoken: Cell::new(false),
        };
        let mut seen = Seen::new(self.screen, self.cancel.clone(), self.is_models.clone());
        // What ran beside is decided before any call, so that no call is taken for what did it.
        let before = self.runtime.last_commit();
        let agent = self.runtime.first_agent();
        self.runtime.decide_ended(agent);
        tell_kept(&self.screen, &self.runtime, before);
        let before = self.runtime.last_commit();
        self.going.ask(request);
        let mut watch = self.going.kept_by(&mut seen);
        let turn = talk.turn_watched(&mut self.runtime, &mut model, request, &mut watch);
        self.is_models.set(false);
        let has_spoken = model.has_spoken.get();
        let called_off = seen.called_off();
        self.going.keep(&talk, &self.runtime);
        self.chat = Some(talk);
        let turn = match turn {
            // It is said that it was called off, and that is all there is to say.
            Err(ChatError::Model(ModelError::Cancelled)) => return Ok(exit::TOOL_FAILED),
            turn => turn.map_err(|error| (error.to_string(), exit::ENVIRONMENT))?,
        };
        if !has_spoken && !turn.text.is_empty() {
            println!("{}", visible(&turn.text));
        }
        let kept = self.runtime.last_commit().filter(|id| before != Some(*id));
        if let Some(line) = became::line(&turn.made, called_off, kept) {
            tell_aside(&self.screen, Tone::Dim, &line);
            // Which place that was may be somebody else's choice, so none stands in the words.
            if turn.looked_elsewhere() && self.runtime.asking() != Asking::Refuse {
                let line =
                    "  in places that are not open nobody is asked: `grant fs.read=DIR` opens one";
                tell_aside(&self.screen, Tone::Dim, line);
            }
        }
        match turn.end {
            // That it was called off, or nothing came, is said.
            TurnEnd::Stopped | TurnEnd::Silent => Ok(exit::TOOL_FAILED),
            end => match super::chat::cut_off(end) {
                None if turn.left_out == 0 => Ok(exit::OK),
                None => Ok(exit::TOOL_FAILED),
                Some(why) => Err((why.to_owned(), exit::TOOL_FAILED)),
            },
        }
    }
}

/// What was kept since, if anything was.
fn tell_kept(screen: &Screen, runtime: &Runtime, before: Option<CommitId>) {
    let after = runtime.last_commit().filter(|id| before != Some(*id));
    if let Some(id) = after {
        let line = format!("  kept as commit {id}; `undo` takes it back");
        tell_aside(screen, Tone::Dim, &line);
    }
}

fn print_all(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        tell(&line);
    }
}
