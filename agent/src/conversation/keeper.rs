//! Keeping a conversation while it is had: what is new is added to what is there.
//!
//! To write all of it anew each time would cost, over the turns, the square of its length.
//! It is written whole where it must be: by each program once, where its title changed,
//! and where it became too long.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use super::{BYTES_MAX, Conversation, END_BYTES_MAX, FILE, Mark, OLDER_FILE, lines};
use crate::state_dir::own_file::{self, Access, OwnFileError};

/// When a conversation is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Within a turn: it survives the end of the program.
    Within,
    /// After a turn: it survives a loss of power, too.
    After,
}

/// Keeps one conversation.
#[derive(Debug, Default)]
pub struct Keeper(Option<Open>);

/// A file that holds what was said up to now.
#[derive(Debug)]
struct Open {
    file: File,
    bytes: usize,
    /// So many messages at the beginning are not in it.
    dropped: usize,
    /// So many messages are, those included.
    messages: usize,
    title: Option<String>,
    standing: Standing,
}

/// What of how things stand is written as soon as it is other.
type Standing = (bool, Option<Mark>, Option<String>);

fn standing(said: &Conversation) -> Standing {
    (said.has_read, said.mark, said.model.clone())
}

impl Keeper {
    /// Keeps what was said in a directory. So many of the first messages are as they were
    /// when it was kept last.
    ///
    /// # Errors
    /// The disk's.
    pub fn keep(
        &mut self,
        dir: &Path,
        said: &Conversation,
        unchanged: usize,
        when: When,
    ) -> io::Result<()> {
        if let Some(mut open) = self.0.take()
            && open.add(said, unchanged, when)?
        {
            self.0 = Some(open);
            return Ok(());
        }
        self.0 = Some(Open::whole(dir, said)?);
        Ok(())
    }
}

impl Open {
    /// All of it anew, whole or not at all.
    fn whole(dir: &Path, said: &Conversation) -> io::Result<Self> {
        let failed = |error: OwnFileError| io::Error::other(error.to_string());
        let (text, dropped) = said.text(BYTES_MAX, END_BYTES_MAX);
        own_file::put_whole(dir, FILE, text.as_bytes()).map_err(failed)?;
        // What an older version wrote is in it.
        let _ = fs::remove_file(dir.join(OLDER_FILE));
        Ok(Self {
            file: own_file::open(&dir.join(FILE), Access::Append).map_err(failed)?,
            bytes: text.len(),
            dropped,
            messages: said.messages.len(),
            title: said.title.clone(),
            standing: standing(said),
        })
    }

    /// Adds what is new; `false` where all of it is to be written anew.
    fn add(&mut self, said: &Conversation, unchanged: usize, when: When) -> io::Result<bool> {
        let is_there = self.file.metadata()?.nlink() > 0;
        let unchanged = unchanged.min(self.messages);
        if !is_there || self.title != said.title || unchanged < self.dropped {
            return Ok(false);
        }
        let mut text = String::new();
        let standing = standing(said);
        if standing != self.standing {
            text.push_str(&self.facts(said));
        }
        if unchanged < self.messages {
            text.push_str(&lines::anew_from(unchanged - self.dropped));
        }
        for (message, at) in said.timed().skip(unchanged) {
            text.push_str(&lines::message(message, at));
        }
        if when == When::After {
            text.push_str(&self.facts(said));
        }
        let bytes = self.bytes.saturating_add(text.len());
        if bytes > BYTES_MAX {
            return Ok(false);
        }
        self.file.write_all(text.as_bytes())?;
        if when == When::After {
            self.file.sync_data()?;
        }
        self.bytes = bytes;
        self.messages = said.messages.len();
        self.standing = standing;
        Ok(true)
    }

    fn facts(&self, said: &Conversation) -> String {
        let has_read = said.has_read || (self.dropped > 0 && said.has_data());
        lines::facts(said, has_read)
    }
}
