//! What was said before a case begins, as the agent keeps it.
//!
//! The lines are written here and not by the agent's own code: what it keeps is a form that
//! other versions of it read.

use bisim_world::protocol::{
    Conversation, ConversationSource, FileKind, FileSpec, Job, Said, WorldSpec,
};
use hermitcrab::ambient;
use hermitcrab::conversation::Shelf;
use serde_json::{Value, json};

use super::agent_world::STATE_DIR;

/// The files of a job's conversations, and the directories they lie in.
pub(super) fn files(job: &Job) -> Vec<FileSpec> {
    let Some(world) = job.world.as_ref() else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for one in &world.conversations {
        let shelf = match one.source {
            ConversationSource::Cli => Shelf::Terminal,
            ConversationSource::Acp => Shelf::Editor,
        };
        let place = shelf.dir_of(STATE_DIR.as_ref(), &one.id);
        let mut above: Vec<_> = place
            .ancestors()
            .filter(|dir| dir.starts_with(STATE_DIR))
            .map(|dir| dir.display().to_string())
            .collect();
        above.reverse();
        files.extend(above.into_iter().map(|path| FileSpec {
            path,
            kind: FileKind::Dir(true),
            mode: Some(0o700),
        }));
        files.push(FileSpec {
            path: place.join("conversation.jsonl").display().to_string(),
            kind: FileKind::Text(text(world, one)),
            mode: Some(0o600),
        });
    }
    files
}

fn text(world: &WorldSpec, one: &Conversation) -> String {
    let last = one.messages.iter().map(Said::at).max();
    let seconds = last.unwrap_or(one.started) / 1000;
    let updated = format!("{}:00Z", ambient::date(seconds).replace(' ', "T"));
    let standing = json!({"updated": updated, "read": true});
    let mut head = standing.clone();
    head["cwd"] = json!(world.cwd);
    head["title"] = json!(one.title);
    head["started"] = json!(one.started);
    if let Some(model) = &one.model {
        head["model"] = json!(model);
    }
    let said = one.messages.iter().map(message);
    let lines = std::iter::once(head).chain(said).chain([standing]);
    lines.map(|line| format!("{line}\n")).collect()
}

fn message(said: &Said) -> Value {
    match said {
        Said::User { user, at } => json!({"user": user, "at": at}),
        Said::Assistant {
            assistant,
            calls,
            at,
        } => json!({"assistant": assistant, "calls": calls, "at": at}),
        Said::Tool {
            tool,
            call,
            text,
            at,
        } => json!({"tool": tool, "call": call, "text": text, "at": at}),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use hermitcrab::conversation;
    use hermitcrab::model::Message;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_what_the_agent_reads() {
        let conversation: Conversation = serde_json::from_value(json!({
            "id": "a".repeat(32), "source": "acp", "title": "t", "model": "m",
            "started": 1_767_225_600_000_u64,
            "messages": [
                {"user": "one\n\"two\"", "at": 1_767_225_660_000_u64},
                {"assistant": "", "calls": [["c", "terminal", "{}"]], "at": 1_767_225_661_000_u64},
                {"tool": "terminal", "call": "c", "text": "out", "at": 1_767_225_662_000_u64},
                {"assistant": "done", "at": 1_767_225_720_000_u64},
            ],
        }))
        .unwrap();
        let world = WorldSpec {
            cwd: "/w".to_owned(),
            files: Vec::new(),
            flip: None,
            serves: None,
            conversations: Vec::new(),
        };
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("conversation.jsonl");
        std::fs::write(&file, text(&world, &conversation)).unwrap();
        // What others may read is nothing the agent reads.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let read = conversation::Conversation::look(temp.path()).unwrap();
        assert_eq!(read.cwd, std::path::Path::new("/w"));
        assert_eq!(read.title.as_deref(), Some("t"));
        assert_eq!(read.updated, "2026-01-01T00:02:00Z");
        assert!(read.has_read);
        assert_eq!(read.messages.len(), 4);
        assert_eq!(read.messages[0], Message::User("one\n\"two\"".into()));
    }
}
