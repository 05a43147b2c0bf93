//! Tool calls as the client sees them: a title, a kind, places, contents.

mod readable;

use std::path::Path;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Diff, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use hermitcrab_core::{outcome::DenialCode, tool::Tool, v4a};
use serde_json::{Map, Value, json};

use crate::{
    ports::{FileDiff, Prompt, Side},
    runtime::{Fate, STANDS_OUT, in_bytes},
    screen::visible,
    text::visible::named,
    tools::title,
};

pub use self::readable::readable;

/// Letters of a command's output or a result that are shown.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// A call before it is made.
#[derive(Clone, Debug)]
pub struct Described {
    /// One line.
    pub title: String,
    /// Its kind.
    pub kind: ToolKind,
    /// Where it works.
    pub locations: Vec<ToolCallLocation>,
}

/// Describes a call; relative paths are from `base`.
#[must_use]
pub fn described(name: &str, arguments: &Value, base: &Path) -> Described {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or("");
    let kind = match Tool::offered(name) {
        Some(Tool::ReadFile | Tool::SkillsList | Tool::SkillView) => ToolKind::Read,
        Some(Tool::WriteFile | Tool::Patch | Tool::Memory | Tool::SkillManage | Tool::Cronjob) => {
            ToolKind::Edit
        }
        Some(Tool::SearchFiles | Tool::SessionSearch) => ToolKind::Search,
        Some(Tool::Terminal | Tool::ExecuteCode | Tool::Process) => ToolKind::Execute,
        Some(Tool::DelegateTask | Tool::Todo) => ToolKind::Think,
        Some(Tool::Clarify | Tool::External | Tool::Converse | Tool::Directory | Tool::Undo)
        | None => ToolKind::Other,
    };
    let mut paths: Vec<String> = Vec::new();
    if !text("path").is_empty() {
        paths.push(text("path").to_owned());
    }
    if let Ok(operations) = v4a::parse(text("patch")) {
        for operation in &operations {
            paths.push(operation.path().to_owned());
            paths.extend(operation.new_path().map(str::to_owned));
        }
    }
    let locations = paths
        .iter()
        .filter(|path| !path.starts_with('~'))
        .map(|path| ToolCallLocation::new(base.join(path)))
        .collect();
    Described {
        title: visible(&title::title(name, arguments)),
        kind,
        locations,
    }
}

/// What a command is called that an earlier call left running.
#[must_use]
pub fn in_the_background(command: &str) -> String {
    let title = title::title("terminal", &json!({ "command": command }));
    visible(&format!("In the background: {title}"))
}

/// The end of a card that was there for one question.
pub fn answered(id: impl Into<ToolCallId>, is_yes: bool) -> SessionUpdate {
    let status = if is_yes {
        ToolCallStatus::Completed
    } else {
        ToolCallStatus::Failed
    };
    let fields = ToolCallUpdateFields::new().status(status);
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))
}

/// A text as content.
#[must_use]
pub fn text(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::from(text.to_owned())))
}

/// The same of what a person decides by, or what was done: not a letter of it is read as a sign
/// of how it is to be drawn.
#[must_use]
pub fn verbatim(words: &str) -> ToolCallContent {
    text(&readable::block("", words))
}

/// Lets go of the beginning of what is too long to be shown.
pub fn keep_the_end(text: &mut String) {
    if text.len() > SHOWN_BYTES_MAX {
        let from = text.len() - SHOWN_BYTES_MAX / 2;
        let from = (from..text.len())
            .find(|place| text.is_char_boundary(*place))
            .unwrap_or(text.len());
        text.replace_range(..from, "[\u{2026}]\n");
    }
}

/// A question's content: each file whole, and in words what is no text, or what no difference
/// of two texts shows.
#[must_use]
pub fn question(prompt: &Prompt<'_>) -> Vec<ToolCallContent> {
    let mut contents: Vec<ToolCallContent> = prompt.files.iter().flat_map(file).collect();
    let comes_or_goes: Vec<String> = prompt.files.iter().filter_map(comes_or_goes).collect();
    let is_all = !prompt.files.is_empty()
        && prompt.files.iter().all(is_text)
        && prompt.besides.is_empty()
        && prompt.question.because() != DenialCode::UntrustedFlow;
    // Where a question is long its last line names what would be asked about alone.
    let stands_out = prompt.shown.lines().last();
    let stands_out = stands_out.filter(|line| line.starts_with(STANDS_OUT));
    let said = comes_or_goes.iter().map(String::as_str).chain(stands_out);
    let words = if is_all {
        said.collect::<Vec<_>>().join("\n")
    } else if prompt.files.is_empty() && prompt.besides.is_empty() {
        prompt.shown.to_owned()
    } else {
        why(prompt)
            .into_iter()
            .chain(prompt.besides.iter().map(String::as_str))
            .chain(said)
            .collect::<Vec<_>>()
            .join("\n")
    };
    if !words.is_empty() {
        contents.push(verbatim(&words));
    }
    contents
}

/// What a call put in place, each file whole, where nobody was asked.
#[must_use]
pub fn written(files: &[FileDiff], more: usize) -> Vec<ToolCallContent> {
    let mut contents: Vec<ToolCallContent> = files.iter().flat_map(file).collect();
    let mut words: Vec<String> = files.iter().filter_map(comes_or_goes).collect();
    if more > 0 {
        words.push(format!("{more} more files were changed and are not shown"));
    }
    if !words.is_empty() {
        contents.push(verbatim(&words.join("\n")));
    }
    contents
}

/// That a text goes, which might be emptied as well, or one comes that is empty.
fn comes_or_goes(file: &FileDiff) -> Option<String> {
    let name = named(&file.path);
    match (&file.before, &file.after) {
        (Side::Text(_), Side::Nothing) => Some(format!("deleted file {name}")),
        (Side::Nothing, Side::Text(new)) if new.is_empty() => {
            Some(format!("new file {name}, empty"))
        }
        (
            Side::Nothing | Side::Text(_) | Side::Opaque { .. } | Side::Unread,
            Side::Nothing | Side::Text(_) | Side::Opaque { .. } | Side::Unread,
        ) => None,
    }
}

/// Who asks, for what reason, and what may be behind it: all that stands before what is to
/// be done, which the files show.
fn why<'p>(prompt: &Prompt<'p>) -> Vec<&'p str> {
    let (tool, by) = (prompt.question.tool().in_words(), prompt.question.by());
    let begins = format!("{tool} by {by}: ");
    let ends = format!("({})", prompt.question.because());
    let is_heading = |line: &str| line.starts_with(&begins) && line.ends_with(&ends);
    let heading = prompt.shown.lines().position(is_heading).unwrap_or(0);
    prompt.shown.lines().take(heading + 1).collect()
}

fn is_text(file: &FileDiff) -> bool {
    file.before.text().is_some() && file.after.text().is_some()
}

fn file(file: &FileDiff) -> Vec<ToolCallContent> {
    let (Some(old), Some(new)) = (file.before.text(), file.after.text()) else {
        let words = verbatim(&format!(
            "{}: {} becomes {}",
            named(&file.path),
            side(&file.before),
            side(&file.after)
        ));
        // What is to be there is shown, whatever was.
        return match &file.after {
            Side::Text(new) => {
                let diff = Diff::new(&file.path, new.clone());
                vec![words, ToolCallContent::Diff(diff)]
            }
            Side::Nothing | Side::Opaque { .. } | Side::Unread => vec![words],
        };
    };
    let mut diff = Diff::new(&file.path, new.to_owned());
    if file.before != Side::Nothing {
        diff = diff.old_text(old.to_owned());
    }
    if file.after == Side::Nothing {
        let mut meta = Map::new();
        meta.insert("hermitcrab".into(), json!({"deleted": true}));
        diff = diff.meta(meta);
    }
    vec![ToolCallContent::Diff(diff)]
}

fn side(side: &Side) -> String {
    match side {
        Side::Nothing => "nothing".to_owned(),
        Side::Text(text) => format!("a text of {}", in_bytes(text.len())),
        Side::Opaque {
            bytes: Some(bytes),
            digest,
        } => format!(
            "{} that are not shown as text, sha256 {digest},",
            in_bytes(*bytes)
        ),
        Side::Opaque {
            bytes: None,
            digest,
        } => format!("what is not shown as text, sha256 {digest},"),
        Side::Unread => "what may not be read".to_owned(),
    }
}

/// The result a model gets for an edit its user did not want, in the compared
/// agent's own words.
#[must_use]
pub fn rejected(name: &str, fate: &Fate) -> Option<Value> {
    let is_edit = matches!(Tool::offered(name), Some(Tool::WriteFile | Tool::Patch));
    match fate {
        Fate::AskedRefused(
            DenialCode::RejectedByUser | DenialCode::NoAnswer | DenialCode::UnknownAnswer,
        ) if is_edit => Some(json!({"success": false, "error": "Edit rejected by user"})),
        _ => None,
    }
}

/// A result as the client gets it: as JSON where it is some.
#[must_use]
pub fn raw(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The agent's list as a plan; `None` if this is no list.
#[must_use]
pub fn plan_of_list(result: &str) -> Option<Plan> {
    let value: Value = serde_json::from_str(result).ok()?;
    let items = value.get("todos")?.as_array()?;
    let entries = items
        .iter()
        .filter_map(|item| {
            let content = item.get("content")?.as_str()?;
            let status = match item.get("status").and_then(Value::as_str)? {
                "in_progress" => PlanEntryStatus::InProgress,
                "completed" | "cancelled" => PlanEntryStatus::Completed,
                _ => PlanEntryStatus::Pending,
            };
            Some(PlanEntry::new(
                content.to_owned(),
                PlanEntryPriority::Medium,
                status,
            ))
        })
        .collect();
    Some(Plan::new(entries))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agent_client_protocol::v1::schema::ToolKind;
    use hermitcrab_core::outcome::DenialCode;
    use serde_json::json;

    use super::{described, keep_the_end, plan_of_list, rejected, verbatim};
    use crate::runtime::Fate;

    #[test]
    fn a_call_is_described_by_what_it_works_on() {
        let of = |name: &str, arguments| described(name, &arguments, Path::new("/w"));
        let read = of("read_file", json!({"path": "a.txt"}));
        assert_eq!(
            (read.title.as_str(), read.kind),
            ("Read a.txt", ToolKind::Read)
        );
        assert_eq!(read.locations[0].path, Path::new("/w/a.txt"));
        let patch = of(
            "patch",
            json!({"mode": "patch", "patch": "*** Begin Patch\n*** Add File: n\n+x\n*** Delete File: /o\n*** End Patch"}),
        );
        let places: Vec<_> = patch.locations.iter().map(|place| &place.path).collect();
        assert_eq!(places, [Path::new("/w/n"), Path::new("/o")]);
        let run = of("terminal", json!({"command": "a\n  b"}));
        assert_eq!((run.title.as_str(), run.kind), ("a b", ToolKind::Execute));
        assert_eq!(of("no_such", json!(null)).kind, ToolKind::Other);
    }

    #[test]
    fn only_an_edit_that_was_asked_about_is_worded_as_rejected() {
        let no = Fate::AskedRefused(DenialCode::NoAnswer);
        assert!(rejected("write_file", &no).is_some());
        assert!(rejected("patch", &no).is_some());
        assert!(rejected("terminal", &no).is_none());
        let unasked = Fate::Refused(DenialCode::NoCap);
        assert!(rejected("write_file", &unasked).is_none());
        assert!(rejected("write_file", &Fate::Ran).is_none());
    }

    #[test]
    fn what_is_decided_by_is_a_block_that_nothing_in_it_ends() {
        let told = |words: &str| serde_json::to_value(verbatim(words)).expect("JSON");
        let of = |words: &str| told(words)["content"]["text"].as_str().map(str::to_owned);
        assert_eq!(
            of("new link a<!-- to b\nnew link .git/hooks to c").as_deref(),
            Some("```\nnew link a<!-- to b\nnew link .git/hooks to c\n```")
        );
        let closing = of("a\n```\n<!--\n````\nb").expect("a text");
        let fence = "`".repeat(5);
        assert!(
            closing.starts_with(&format!("{fence}\n")) && closing.ends_with(&format!("\n{fence}")),
            "{closing}"
        );
    }

    #[test]
    fn long_texts_keep_their_end() {
        let mut long = "\u{e4}".repeat(100_000);
        long.push_str("end");
        keep_the_end(&mut long);
        assert!(long.len() < 40_000 && long.ends_with("end"));
    }

    #[test]
    fn a_list_is_shown_as_a_plan() {
        let list = r#"{"todos": [{"id": "1", "content": "a", "status": "completed"},
            {"id": "2", "content": "b", "status": "in_progress"}, {"id": "3"}]}"#;
        let plan = plan_of_list(list).expect("a list");
        assert_eq!(plan.entries.len(), 2);
        assert!(plan_of_list("{}").is_none());
    }
}
