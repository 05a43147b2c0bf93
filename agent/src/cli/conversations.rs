//! `conversations`: what was said to models, at a terminal and in editors, listed, shown and
//! forgotten.

mod going;

use std::{fs, io, path::Path};

use clap::{Args, Subcommand};
use serde_json::json;

pub use self::going::{GoOn, Going};
use super::{Trouble, Where, as_json::print_json, open, say, tell};
use crate::{
    acp,
    audit::LedgerError,
    conversation::{self, About, Conversation, Shelf},
    exit,
    model::Message,
    screen::visible,
    tools::title::title,
};

/// Letters of an identifier that are shown, and with which one is named.
const ID_LETTERS: usize = 8;
/// Fewer letters than this name nothing.
const ID_LETTERS_MIN: usize = 4;
/// Letters of a result that are shown.
const RESULT_LETTERS_MAX: usize = 300;

/// Conversations.
#[derive(Debug, Args)]
pub struct Conversations {
    #[command(flatten)]
    place: Where,
    /// Those of every workspace
    #[arg(long)]
    all: bool,
    /// As JSON, one for each line
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    what: Option<ConversationsWhat>,
}

#[derive(Debug, Subcommand)]
enum ConversationsWhat {
    /// Print one
    Show {
        /// As listed; its first letters are enough
        id: String,
    },
    /// Forget some for good; the ledger keeps what was done
    Forget {
        /// As listed; their first letters are enough
        #[arg(required_unless_present = "every")]
        ids: Vec<String>,
        /// Every one of this workspace
        #[arg(long = "every", conflicts_with = "ids")]
        every: bool,
    },
}

pub fn conversations(arguments: &Conversations) -> u8 {
    let done = match &arguments.what {
        None => list(arguments),
        Some(ConversationsWhat::Show { id }) => show(&arguments.place, id),
        Some(ConversationsWhat::Forget { ids, every }) => {
            if *every {
                forget_every(&arguments.place)
            } else {
                forget(&arguments.place, ids)
            }
        }
    };
    done.map_or_else(
        |(message, code)| {
            say(&message);
            code
        },
        |()| exit::OK,
    )
}

/// Every conversation, the newest first.
fn all(state_dir: &Path) -> Vec<(Shelf, String, About)> {
    let mut all: Vec<_> = Shelf::ALL
        .into_iter()
        .flat_map(|shelf| {
            let kept = conversation::all(shelf, state_dir);
            kept.into_iter().map(move |(id, about)| (shelf, id, about))
        })
        .collect();
    // Each shelf is in order, and stays so.
    all.sort_by(|(_, _, left), (_, _, right)| right.updated.cmp(&left.updated));
    all
}

fn newest_of(state_dir: &Path, workspace: &Path) -> Option<(Shelf, String)> {
    all(state_dir)
        .into_iter()
        .find(|(_, _, about)| about.cwd == workspace)
        .map(|(shelf, id, _)| (shelf, id))
}

/// The only one whose identifier begins so.
fn found(state_dir: &Path, wanted: &str) -> Result<(Shelf, String), Trouble> {
    let wrong = |what: &str| {
        let wanted = visible(wanted);
        let message = format!("`{wanted}` {what}; `hermitcrab conversations --all` lists them");
        (message, exit::USAGE)
    };
    if wanted.len() < ID_LETTERS_MIN {
        return Err(wrong("is too short to name a conversation"));
    }
    let mut fitting = all(state_dir)
        .into_iter()
        .filter(|(_, id, _)| id.starts_with(wanted));
    match (fitting.next(), fitting.next()) {
        (Some((shelf, id, _)), None) => Ok((shelf, id)),
        (None, _) => Err(wrong("names no conversation")),
        (Some(_), Some(_)) => Err(wrong("names more than one conversation")),
    }
}

fn when_missing(id: &str, error: &io::Error) -> Trouble {
    (
        format!("the conversation `{}` cannot be opened: {error}", short(id)),
        exit::USAGE,
    )
}

fn short(id: &str) -> &str {
    id.get(..ID_LETTERS).unwrap_or(id)
}

/// When it was written last, for people.
fn when(about: &About) -> String {
    about
        .updated
        .replace('T', " ")
        .trim_end_matches(":00Z")
        .to_owned()
}

fn place_of(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Editor => "editor",
        Shelf::Terminal => "terminal",
    }
}

fn list(arguments: &Conversations) -> Result<(), Trouble> {
    let ground = open::seen_from(&arguments.place)?;
    let mut is_any = false;
    for (shelf, id, about) in all(&ground.state_dir) {
        if !arguments.all && about.cwd != ground.workspace {
            continue;
        }
        is_any = true;
        if arguments.json {
            let facts = json!({
                "id": id,
                "in": place_of(shelf),
                "workspace": about.cwd.to_string_lossy(),
                "title": about.title,
                "last": about.updated,
            });
            print_json(&facts);
            continue;
        }
        let title = about.title.as_deref().unwrap_or_default();
        let dir = if arguments.all {
            format!("  {}", visible(&about.cwd.to_string_lossy()))
        } else {
            String::new()
        };
        tell(&format!(
            "{}  {}  {:<8}  {}{dir}",
            short(&id),
            when(&about),
            place_of(shelf),
            visible(title)
        ));
    }
    if !is_any && !arguments.json {
        let hint = if arguments.all {
            "there is no conversation"
        } else {
            "there is no conversation in this workspace; `--all` lists those of every one"
        };
        tell(hint);
    }
    Ok(())
}

fn show(place: &Where, id: &str) -> Result<(), Trouble> {
    let ground = open::seen_from(place)?;
    let (shelf, id) = found(&ground.state_dir, id)?;
    let dir = shelf.dir_of(&ground.state_dir, &id);
    let said = Conversation::look(&dir).ok_or_else(|| {
        (
            format!("the conversation `{}` cannot be read", short(&id)),
            exit::USAGE,
        )
    })?;
    for message in &said.messages {
        for line in shown(message) {
            println!("{line}");
        }
    }
    Ok(())
}

/// A message as a person reads it: words whole, results in short.
fn shown(message: &Message) -> Vec<String> {
    let under = |who: &str, text: &str| {
        let mut lines = vec![format!("{who}:")];
        lines.extend(
            text.trim_end()
                .lines()
                .map(|line| format!("  {}", visible(line))),
        );
        lines
    };
    match message {
        Message::System(_) => Vec::new(),
        Message::User(words) => under("you", words),
        Message::Told(words) => under("hermitcrab", words),
        Message::Assistant { text, calls } => {
            let mut lines = if text.trim().is_empty() {
                Vec::new()
            } else {
                under("model", text)
            };
            for call in calls {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                lines.push(format!("  > {}", visible(&title(&call.tool, &arguments))));
            }
            lines
        }
        Message::Tool { text, .. } => {
            let short: String = text.chars().take(RESULT_LETTERS_MAX).collect();
            let end = if short.len() < text.len() { " …" } else { "" };
            vec![format!("    {}{end}", visible(&short.replace('\n', " ")))]
        }
    }
}

fn forget(place: &Where, ids: &[String]) -> Result<(), Trouble> {
    let ground = open::seen_from(place)?;
    // All are there, or nothing is forgotten.
    let named: Vec<_> = ids
        .iter()
        .map(|id| found(&ground.state_dir, id))
        .collect::<Result<_, _>>()?;
    for (shelf, id) in named {
        forget_one(&ground.state_dir, shelf, &id)?;
        println!("forgotten: {}", short(&id));
    }
    Ok(())
}

fn forget_every(place: &Where) -> Result<(), Trouble> {
    let ground = open::seen_from(place)?;
    let (mut count, mut done) = (0, Ok(()));
    for (shelf, id, about) in all(&ground.state_dir) {
        if about.cwd != ground.workspace {
            continue;
        }
        // One that is open keeps none of the others.
        match forget_one(&ground.state_dir, shelf, &id) {
            Ok(()) => count += 1,
            Err(trouble) => done = Err(trouble),
        }
    }
    println!("forgotten: {count}");
    done
}

fn forget_one(state_dir: &Path, shelf: Shelf, id: &str) -> Result<(), Trouble> {
    let dir = shelf.dir_of(state_dir, id);
    let busy = || {
        (
            format!(
                "the conversation `{}` is open in another program; close it there first",
                short(id)
            ),
            exit::USAGE,
        )
    };
    let failed = |error: &dyn std::fmt::Display| {
        (
            format!(
                "the conversation `{}` cannot be forgotten: {error}",
                short(id)
            ),
            exit::ENVIRONMENT,
        )
    };
    match shelf {
        Shelf::Editor => match acp::forget(&dir) {
            Ok(()) => Ok(()),
            Err(LedgerError::Busy(_)) => Err(busy()),
            Err(error) => Err(failed(&error)),
        },
        Shelf::Terminal => {
            let held = conversation::hold(&dir).map_err(|error| failed(&error))?;
            let _held = held.ok_or_else(busy)?;
            conversation::forget(&dir).map_err(|error| failed(&error))?;
            // An empty directory that stays is no conversation.
            let _ = fs::remove_dir(&dir);
            Ok(())
        }
    }
}
