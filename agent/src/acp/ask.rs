//! Questions, put to the client: every file with its old and its new text.
//!
//! Only the options offered count, and only as far as the question allows. A
//! rejection, a cancel, silence, an error, a client that went away or an id
//! that was not offered is a refusal.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc, sync::Arc, time::Duration};

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationAction, ElicitationContentValue, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, SessionUpdate, StringPropertySchema,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use hermitcrab_core::{
    action::Action,
    approval::{Question, Reply, Scope},
    authority::{Extent, Object},
    grant::AgentId,
};
use serde_json::{Map, Value, json};

use super::{
    control::{Control, Waited},
    desk::{ANSWER_BYTES_MAX, Desk},
    link::Link,
    scene::Scene,
    updates,
};
use crate::{
    answers,
    digest::sha256,
    ports::{FileDiff, Prompt, Side, UserPort},
    text::visible::{escaped, one_line},
};

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosable {
    /// Yes, to exactly this.
    AllowOnce,
    /// Yes, and to the same on these paths until the session ends.
    AllowSession,
    /// Yes, and kept beyond the session until it is confirmed again.
    AllowAlways,
    /// No.
    RejectOnce,
    /// No, and the turn ends.
    RejectStop,
}

impl Choosable {
    const ALL: [Choosable; 5] = [
        Choosable::AllowOnce,
        Choosable::AllowSession,
        Choosable::AllowAlways,
        Choosable::RejectOnce,
        Choosable::RejectStop,
    ];

    /// Its id on the wire.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Choosable::AllowOnce => "allow-once",
            Choosable::AllowSession => "allow-session",
            Choosable::AllowAlways => "allow-always",
            Choosable::RejectOnce => "reject-once",
            Choosable::RejectStop => "reject-stop",
        }
    }

    /// What a question of this width can be answered with.
    #[must_use]
    pub fn offered(widest: Scope) -> Vec<Choosable> {
        Choosable::ALL
            .into_iter()
            .filter(|choosable| match choosable {
                Choosable::AllowSession => widest >= Scope::Session,
                Choosable::AllowAlways => widest >= Scope::Always,
                Choosable::AllowOnce | Choosable::RejectOnce | Choosable::RejectStop => true,
            })
            .collect()
    }

    fn option(self, question: &Question) -> PermissionOption {
        let (name, kind) = match self {
            Choosable::AllowOnce => ("Allow once".to_owned(), PermissionOptionKind::AllowOnce),
            Choosable::AllowSession => (
                format!("Allow for this session{}", places(question)),
                PermissionOptionKind::AllowAlways,
            ),
            Choosable::AllowAlways => (
                format!(
                    "Always allow here{}, in later sessions, too (asked again after 30 days at the latest)",
                    places(question)
                ),
                PermissionOptionKind::AllowAlways,
            ),
            Choosable::RejectOnce => ("Reject".to_owned(), PermissionOptionKind::RejectOnce),
            Choosable::RejectStop => (
                "Reject and stop".to_owned(),
                PermissionOptionKind::RejectAlways,
            ),
        };
        PermissionOption::new(self.id(), name, kind)
    }
}

/// On how many places a longer yes is for the same effects.
fn places(question: &Question) -> String {
    let objects: BTreeSet<&Object> = question.uncovered().map(Action::object).collect();
    let is_place = |object: &&Object| matches!(object, Object::Dir { .. });
    if !objects.iter().all(is_place) {
        return ", for the same effects".to_owned();
    }
    match (objects.len(), answers::extent(question)) {
        (1, Extent::Alone) => ", on this path".to_owned(),
        (1, Extent::Tree) => ", on this path and all that lies in it".to_owned(),
        (places, Extent::Alone) => format!(", on these {places} paths"),
        (places, Extent::Tree) => format!(", on these {places} paths and all that lies in them"),
    }
}

/// What an answer means; the second is whether the turn is to end.
#[must_use]
pub fn meaning(outcome: &RequestPermissionOutcome, widest: Scope) -> (Reply, bool) {
    match outcome {
        RequestPermissionOutcome::Cancelled => (Reply::Cancelled, false),
        RequestPermissionOutcome::Selected(chosen) => {
            let id = chosen.option_id.0.as_ref();
            let found = Choosable::offered(widest)
                .into_iter()
                .find(|choosable| choosable.id() == id);
            match found {
                Some(Choosable::AllowOnce) => (Reply::Yes(Scope::Once), false),
                Some(Choosable::AllowSession) => (Reply::Yes(Scope::Session), false),
                Some(Choosable::AllowAlways) => (Reply::Yes(Scope::Always), false),
                Some(Choosable::RejectOnce) => (Reply::No, false),
                Some(Choosable::RejectStop) => (Reply::No, true),
                None => (Reply::Unknown(id.chars().take(64).collect()), false),
            }
        }
        // A later protocol's outcome is none of ours.
        _ => (Reply::Unknown(String::new()), false),
    }
}

/// The user, behind the client.
pub struct AcpUser {
    pub(super) link: Link,
    pub(super) control: Arc<Control>,
    pub(super) scene: Rc<RefCell<Scene>>,
    pub(super) within: Duration,
    pub(super) desk: Rc<Desk>,
}

impl AcpUser {
    fn put(&self, prompt: &Prompt<'_>) -> Reply {
        let is_dry = self.only_shows(prompt.question);
        let (id, fields, is_apart) = {
            let mut scene = self.scene.borrow_mut();
            // Of calls made together the later ones find the turn at its end.
            if scene.stop {
                return Reply::Cancelled;
            }
            let apart = scene.asking_of_earlier(&self.link);
            let is_apart = apart.is_some();
            let (id, title, kind) = match apart {
                Some((id, title)) => (id, title, ToolKind::Execute),
                None => {
                    let by = prompt.question.by();
                    let id = scene.asking(by, &self.link);
                    match scene.call_of(by) {
                        Some(call) => (id, call.title.clone(), call.kind),
                        None => (id, "A question".to_owned(), ToolKind::Other),
                    }
                }
            };
            let content = updates::question(prompt);
            let kind = if prompt.files.is_empty() && prompt.besides.is_empty() {
                kind
            } else {
                if !is_apart {
                    scene.shows(prompt.question.by(), &content);
                }
                ToolKind::Edit
            };
            let mut fields = ToolCallUpdateFields::new()
                .title(title)
                .kind(kind)
                .status(ToolCallStatus::Pending)
                .content(content);
            if !prompt.files.is_empty() {
                let locations = prompt.files.iter().map(|file| file.path.as_str());
                fields = fields.locations(
                    locations
                        .map(ToolCallLocation::new)
                        .collect::<Vec<ToolCallLocation>>(),
                );
            }
            (id, fields, is_apart)
        };
        let call = ToolCallUpdate::new(id.clone(), fields).meta(bound_to(prompt));
        let reply = if is_dry {
            self.link.tell(SessionUpdate::ToolCallUpdate(call));
            Reply::No
        } else {
            self.permission(call, prompt)
        };
        if is_apart {
            self.link
                .tell(updates::answered(id, matches!(reply, Reply::Yes(_))));
        }
        reply
    }

    fn permission(&self, call: ToolCallUpdate, prompt: &Prompt<'_>) -> Reply {
        let options = Choosable::offered(prompt.question.widest())
            .into_iter()
            .map(|choosable| choosable.option(prompt.question))
            .collect();
        let request = RequestPermissionRequest::new(self.link.session(), call, options);
        match self.link.ask(&self.control, request, self.within) {
            Waited::Got(Ok(answer)) => {
                let (reply, stop) = meaning(&answer.outcome, prompt.question.widest());
                if stop {
                    self.scene.borrow_mut().stop = true;
                }
                reply
            }
            Waited::Got(Err(_)) => Reply::Failed,
            Waited::Cancelled => Reply::Cancelled,
            Waited::TimedOut => Reply::Silence,
        }
    }
}

impl UserPort for AcpUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.put(&prompt)
    }

    fn only_shows(&self, question: &Question) -> bool {
        // What the session's own agent left running is no part of a dry run, which another
        // one has: its user decides about that as ever.
        self.scene.borrow().is_dry && question.by() != AgentId::FIRST
    }

    fn about(&mut self, call: usize) {
        self.scene.borrow_mut().about(call);
    }

    fn about_earlier(&mut self, command: Option<&str>) {
        self.scene.borrow_mut().about_earlier(command);
    }

    fn hears_words(&self) -> bool {
        true
    }

    fn clarify(&mut self, question: &str, choices: Option<&[String]>) -> Option<String> {
        match choices.filter(|choices| !choices.is_empty()) {
            Some(choices) => self.choose(question, choices),
            None => self.words(question),
        }
    }
}

impl AcpUser {
    /// Free words: by a form where the client has some, else by its user's next
    /// prompt.
    fn words(&self, question: &str) -> Option<String> {
        if self.link.offers().forms {
            let schema = ElicitationSchema::new().property(
                FIELD,
                StringPropertySchema::new().title("Your answer".to_owned()),
                true,
            );
            let scope = ElicitationSessionScope::new(self.link.session());
            let form = ElicitationFormMode::new(scope, schema);
            let request = CreateElicitationRequest::new(form, escaped(question));
            match self.link.ask(&self.control, request, self.desk.within) {
                Waited::Got(Ok(answer)) => return typed_in(answer.action),
                Waited::Cancelled | Waited::TimedOut => return None,
                // It has no forms after all.
                Waited::Got(Err(_)) => {}
            }
        }
        self.desk.words(question)
    }

    /// A choice among given words is put as a permission is.
    fn choose(&self, question: &str, choices: &[String]) -> Option<String> {
        let id = self.scene.borrow_mut().asking_for_words(&self.link);
        let fields = ToolCallUpdateFields::new()
            .title(escaped(question))
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Pending);
        let options = choices
            .iter()
            .enumerate()
            .map(|(place, words)| {
                let id = choice_id(place);
                PermissionOption::new(id, worded(words), kind_of(words))
            })
            .collect();
        let call = ToolCallUpdate::new(id, fields);
        let request = RequestPermissionRequest::new(self.link.session(), call, options);
        let Waited::Got(Ok(answer)) = self.link.ask(&self.control, request, self.within) else {
            return None;
        };
        let RequestPermissionOutcome::Selected(chosen) = answer.outcome else {
            return None;
        };
        let place = (0..choices.len()).find(|place| *choice_id(*place) == *chosen.option_id.0)?;
        choices.get(place).cloned()
    }
}

/// A word to choose, as somebody else wrote it. One that reads like an answer to a question for
/// a permission stands in quotation marks.
fn worded(words: &str) -> String {
    let words = one_line(words);
    let begins = words.trim_start().to_lowercase();
    let is_like_ours = ["allow", "always allow", "reject"]
        .iter()
        .any(|ours| begins.starts_with(ours));
    if is_like_ours {
        format!("\u{201c}{words}\u{201d}")
    } else {
        words
    }
}

/// What a word stands for to a client that answers by itself, such as one that is told to turn
/// everything down: a no is one.
fn kind_of(words: &str) -> PermissionOptionKind {
    match words.trim().to_ascii_lowercase().as_str() {
        "no" | "decline" => PermissionOptionKind::RejectOnce,
        _ => PermissionOptionKind::AllowOnce,
    }
}

/// What one of the given words is chosen by.
fn choice_id(place: usize) -> String {
    format!("choice-{place}")
}

/// The one field of a form.
const FIELD: &str = "answer";

/// What a form was filled in with; anything but one text is nothing.
fn typed_in(action: ElicitationAction) -> Option<String> {
    let ElicitationAction::Accept(accepted) = action else {
        return None;
    };
    match accepted.content?.remove(FIELD)? {
        ElicitationContentValue::String(words)
            if !words.trim().is_empty() && words.len() <= ANSWER_BYTES_MAX =>
        {
            Some(words)
        }
        _ => None,
    }
}

/// What the answer is bound to, for a client that wants to keep it.
fn bound_to(prompt: &Prompt<'_>) -> Map<String, Value> {
    let side = |side: &Side| match side {
        Side::Nothing | Side::Unread => Value::Null,
        Side::Text(text) => sha256(text.as_bytes()).to_string().into(),
        Side::Opaque { digest, .. } => digest.to_string().into(),
    };
    let files: Vec<Value> = prompt
        .files
        .iter()
        .map(
            |FileDiff {
                 path,
                 before,
                 after,
             }| { json!({"path": path, "base": side(before), "new": side(after)}) },
        )
        .collect();
    let mut meta = Map::new();
    meta.insert(
        "hermitcrab".into(),
        json!({
            "request": prompt.question.digest().to_string(),
            "because": prompt.question.because().as_str(),
            "files": files,
        }),
    );
    meta
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{RequestPermissionOutcome, SelectedPermissionOutcome};
    use hermitcrab_core::approval::{Reply, Scope};

    use serde_json::json;

    use super::{ANSWER_BYTES_MAX, Choosable, meaning, typed_in, worded};

    fn selected(id: &str) -> RequestPermissionOutcome {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id.to_owned()))
    }

    #[test]
    fn only_what_was_offered_is_a_yes() {
        for widest in [Scope::Once, Scope::Session, Scope::Always] {
            let offered = Choosable::offered(widest);
            for choosable in Choosable::ALL {
                let (reply, _) = meaning(&selected(choosable.id()), widest);
                let yes = matches!(reply, Reply::Yes(_));
                let is_reject = matches!(choosable, Choosable::RejectOnce | Choosable::RejectStop);
                assert_eq!(yes, offered.contains(&choosable) && !is_reject);
                if let Reply::Yes(scope) = reply {
                    assert!(scope <= widest);
                }
            }
            for odd in [
                "",
                "allow",
                "allow_once",
                "Allow-Once",
                "allow-once ",
                "yes",
            ] {
                let (reply, stop) = meaning(&selected(odd), widest);
                assert!(matches!(reply, Reply::Unknown(_)) && !stop, "{odd}");
            }
            let cancelled = meaning(&RequestPermissionOutcome::Cancelled, widest);
            assert_eq!(cancelled, (Reply::Cancelled, false));
        }
        assert_eq!(
            meaning(&selected("reject-stop"), Scope::Once),
            (Reply::No, true)
        );
    }

    #[test]
    fn a_choice_draws_nothing_and_reads_like_no_permission() {
        for (words, shown) in [
            ("blue", "blue"),
            ("no", "no"),
            (
                "Allow for this session",
                "\u{201c}Allow for this session\u{201d}",
            ),
            (" reject", "\u{201c} reject\u{201d}"),
            ("a\n\u{1b}]0;x\u{202e}b", "a\\u{a}\\u{1b}]0;x\\u{202e}b"),
        ] {
            assert_eq!(worded(words), shown);
        }
    }

    #[test]
    fn a_form_is_answered_with_so_many_words_and_no_more() {
        let typed = |bytes: usize| {
            let content = json!({"answer": "x".repeat(bytes)});
            let action = json!({"action": "accept", "content": content});
            typed_in(serde_json::from_value(action).expect("an answer")).map(|words| words.len())
        };
        assert_eq!(typed(ANSWER_BYTES_MAX), Some(ANSWER_BYTES_MAX));
        assert_eq!(typed(ANSWER_BYTES_MAX + 1), None);
    }
}
