//! A conversation at a terminal: gone on with where that was asked for, and kept after
//! each turn.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
};

use hermitcrab_core::grant::AgentId;
use serde_json::Value;

use super::{ID_LETTERS_MIN, found, newest_of, when_missing};
use crate::{
    audit::beside,
    chat::{self, Chat, Then, Watch},
    cli::{
        Setting, Trouble,
        open::{Ground, Past},
        say,
    },
    conversation::{self, Conversation, Keeper, Mark, Shelf, Taken, When},
    exit,
    model::{Message, ProposedCall},
    runtime::{Runtime, ToolResult},
    screen::visible,
    state_dir::own_file,
};

/// Lines of the last answer that are shown to who goes on.
const LINES_SHOWN_MAX: usize = 6;

/// What a conversation begins with.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct GoOn {
    /// Go on with the last conversation in this workspace
    #[arg(long = "continue", short = 'c')]
    last: bool,
    /// Go on with this one, as `hermitcrab conversations` names it
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    resume: Option<String>,
}

impl GoOn {
    /// With this one.
    pub fn with(id: &str) -> Self {
        Self {
            last: false,
            resume: Some(id.to_owned()),
        }
    }
}

/// The conversation that is had.
pub struct Going {
    state_dir: PathBuf,
    /// How many are kept; none where nothing of this one is to stay.
    most: usize,
    /// Its directory and the lock on it, once it has one.
    held: Option<(PathBuf, File)>,
    said: Conversation,
    keeper: Keeper,
    /// That it cannot be kept was said.
    is_told: bool,
}

impl Going {
    /// A new one, or the one that was asked for.
    pub fn begin(ground: &Ground, setting: &Setting, go_on: &GoOn) -> Result<Self, Trouble> {
        // What a dry run showed did not happen, and a job's conversation is nobody's to go on with.
        let is_kept = !ground.is_dry(setting) && setting.place.job.is_none();
        let most = ground.config.conversations_kept(&ground.admin);
        let mut going = Self {
            state_dir: ground.state_dir.clone(),
            most: if is_kept { most } else { 0 },
            held: None,
            said: Conversation::new(ground.workspace.clone()),
            keeper: Keeper::default(),
            is_told: false,
        };
        let (shelf, id) = match (&go_on.resume, go_on.last) {
            (Some(id), _) => found(&ground.state_dir, id)?,
            (None, true) => newest_of(&ground.state_dir, &ground.workspace).ok_or_else(|| {
                let dir = visible(&ground.workspace.to_string_lossy());
                (
                    format!(
                        "there is no conversation in `{dir}` to go on with; `hermitcrab conversations --all` lists those of every workspace"
                    ),
                    exit::USAGE,
                )
            })?,
            (None, false) => return Ok(going),
        };
        let dir = shelf.dir_of(&ground.state_dir, &id);
        // One of an editor stays as it is: what is said here becomes another.
        if shelf == Shelf::Terminal {
            let held = conversation::hold(&dir).map_err(|error| when_missing(&id, &error))?;
            let Some(held) = held else {
                return Err((
                    format!(
                        "the conversation `{id}` is open in another program; end it there first"
                    ),
                    exit::USAGE,
                ));
            };
            going.held = Some((dir.clone(), held));
        }
        let mut said = Conversation::look(&dir).ok_or_else(|| {
            (
                format!(
                    "the conversation `{id}` cannot be read: {} is damaged, or of another version",
                    dir.display()
                ),
                exit::USAGE,
            )
        })?;
        if said.cwd != ground.workspace {
            let cwd = visible(&said.cwd.to_string_lossy());
            return Err((
                format!("this conversation was had in `{cwd}` and goes on only there"),
                exit::USAGE,
            ));
        }
        match shelf {
            Shelf::Editor => said.close_calls(&[dir], Taken::Copied),
            Shelf::Terminal => {
                let ledgers: Vec<PathBuf> = beside::all(&ground.state_dir)
                    .into_iter()
                    .map(|(_, ledger)| ledger)
                    .collect();
                said.close_calls(&ledgers, Taken::Over);
            }
        }
        going.said = said;
        Ok(going)
    }

    /// Whether it begins with what was said before.
    pub fn is_old(&self) -> bool {
        self.said.was_kept()
    }

    /// What a session that begins with it has read.
    pub fn past(&self) -> Past {
        if self.said.has_data() {
            Past::Read
        } else {
            Past::Unread
        }
    }

    /// A session that has begun without it goes on with it.
    pub fn enter(&self, runtime: &mut Runtime) -> Result<(), Trouble> {
        match self.past() {
            Past::Unread => Ok(()),
            Past::Read => {
                chat::count_as_read(runtime).map_err(|denial| (denial.to_string(), exit::REFUSED))
            }
        }
    }

    /// This conversation with a model.
    pub fn chat(&self, runtime: &Runtime, model: &str) -> Chat {
        Chat::new(runtime, model).resumed(self.said.messages.clone())
    }

    /// What was said last, for whoever goes on.
    pub fn recalled(&self) -> Vec<String> {
        let title = self.said.title.as_deref().unwrap_or("a conversation");
        let mut lines = vec![format!(
            "goes on    {}, last {}",
            visible(title),
            self.said.updated.replace('T', " ").trim_end_matches(":00Z")
        )];
        let user = self
            .said
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::User(words) => Some(words),
                _ => None,
            });
        // Of what older versions kept nobody knows which of it was typed.
        let user = self.said.asked.as_ref().or(user);
        let answer = self
            .said
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Assistant { text, .. } if !text.trim().is_empty() => Some(text),
                _ => None,
            });
        for (who, words) in [("you", user), ("model", answer)] {
            let words = words.map_or("", |words| words.trim());
            for (place, line) in words.lines().take(LINES_SHOWN_MAX).enumerate() {
                let who = if place == 0 { who } else { "" };
                lines.push(format!("{who:<10} {}", visible(line)));
            }
            if words.lines().nth(LINES_SHOWN_MAX).is_some() {
                lines.push(format!("{:<10} …", ""));
            }
        }
        if self.said.has_data() {
            lines.push("           what was read in it counts as read".to_owned());
        }
        lines
    }

    /// Whether it can be gone on with later.
    pub fn is_kept(&self) -> bool {
        self.held.is_some() && !self.is_told
    }

    /// Whether it is the one of this name.
    pub fn is(&self, id: &str) -> bool {
        let name = self.held.as_ref().and_then(|(dir, _)| dir.file_name());
        id.len() >= ID_LETTERS_MIN
            && name.is_some_and(|name| name.to_string_lossy().starts_with(id))
    }

    /// Another one begins.
    pub fn anew(&mut self) {
        self.held = None;
        self.keeper = Keeper::default();
        self.said = Conversation::new(self.said.cwd.clone());
    }

    /// Keeps what was said up to the end of a turn.
    pub fn keep(&mut self, chat: &Chat, runtime: &Runtime) {
        self.said.model = Some(chat.model().to_owned());
        self.put(chat.messages(), runtime, When::After);
    }

    /// The person says this in it.
    pub fn ask(&mut self, words: &str) {
        self.said.ask(words);
    }

    /// Whoever watches a turn, and keeps what is said in it as it goes on.
    pub fn kept_by<'g, W: Watch>(&'g mut self, watch: &'g mut W) -> KeptBy<'g, W> {
        KeptBy { going: self, watch }
    }

    /// That this fails is said once, and stops nothing.
    fn put(&mut self, messages: &[Message], runtime: &Runtime, when: When) {
        if self.most == 0 {
            return;
        }
        let unchanged = self.said.note(messages);
        self.said.has_read |= runtime.has_read(runtime.first_agent());
        self.said.mark = Some(Mark::of(runtime.calls_made()));
        if let Err(error) = self.write(unchanged, when)
            && !std::mem::replace(&mut self.is_told, true)
        {
            say(&format!(
                "the conversation cannot be kept, so it cannot be gone on with later: {error}"
            ));
        }
    }

    fn write(&mut self, unchanged: usize, when: When) -> io::Result<()> {
        if let Some((dir, _)) = &self.held {
            return self.keeper.keep(dir, &self.said, unchanged, when);
        }
        let own = |error: own_file::OwnFileError| io::Error::other(error.to_string());
        let dir = Shelf::Terminal.dir_of(&self.state_dir, &conversation::new_id()?);
        own_file::state_dir(&dir).map_err(own)?;
        let Some(held) = conversation::hold(&dir)? else {
            return Err(io::Error::other(
                "another program has a conversation of this name",
            ));
        };
        self.keeper.keep(&dir, &self.said, unchanged, when)?;
        self.held = Some((dir, held));
        self.let_old_ones_go();
        Ok(())
    }

    /// Beyond so many the oldest are forgotten, unless somebody has them open.
    fn let_old_ones_go(&self) {
        let all = conversation::all(Shelf::Terminal, &self.state_dir);
        for (id, _) in all.iter().skip(self.most) {
            let dir = Shelf::Terminal.dir_of(&self.state_dir, id);
            // One that stays is forgotten another time.
            if let Ok(Some(_held)) = conversation::hold(&dir)
                && conversation::forget(&dir).is_ok()
            {
                let _ = fs::remove_dir(&dir);
            }
        }
    }
}

/// Whoever watches a turn of a conversation that is kept as it goes on.
pub struct KeptBy<'g, W> {
    going: &'g mut Going,
    watch: &'g mut W,
}

impl<W: Watch> Watch for KeptBy<'_, W> {
    fn wants_words(&self) -> bool {
        self.watch.wants_words()
    }

    fn heard(&mut self, agent: AgentId, words: &str) {
        self.watch.heard(agent, words);
    }

    fn said(&mut self, agent: AgentId, text: &str) {
        self.watch.said(agent, text);
    }

    fn begins(
        &mut self,
        runtime: &mut Runtime,
        agent: AgentId,
        call: &ProposedCall,
        arguments: &Value,
    ) {
        self.watch.begins(runtime, agent, call, arguments);
    }

    fn ended(&mut self, agent: AgentId, call: &ProposedCall, result: &mut ToolResult) -> Then {
        self.watch.ended(agent, call, result)
    }

    fn stands(&mut self, runtime: &Runtime, messages: &[Message]) {
        self.going.put(messages, runtime, When::Within);
        self.watch.stands(runtime, messages);
    }

    fn noted(&mut self, agent: AgentId, words: &str) {
        self.watch.noted(agent, words);
    }

    fn goes_on(&mut self) -> bool {
        self.watch.goes_on()
    }
}
