//! A scripted model on the world's loopback, for either subject.
//!
//! Whoever talks to it says in their last words what it is to do: [`MARK`],
//! then a list of calls. It makes them one after the other and then is done. It
//! remembers what it was told of each, so that a step can say so.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use crate::http;

/// What a list of calls begins with.
pub(super) const MARK: &str = "case call ";
/// The port of [`super::MODEL_URL`]; each world has a loopback of its own.
const PORT: u16 = 8642;

/// What became of a list.
#[derive(Clone, Debug, Default)]
struct Course {
    told: Option<String>,
    has_finished: bool,
}

type Courses = Arc<Mutex<BTreeMap<String, Course>>>;

/// The model.
pub(super) struct Model {
    courses: Courses,
}

impl Model {
    /// Starts it; it ends with the process.
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
        let courses = Courses::default();
        let shared = Arc::clone(&courses);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let courses = Arc::clone(&shared);
                // A subject that hangs up has no use for an answer.
                thread::spawn(move || {
                    let _ = serve(stream, &courses);
                });
            }
        });
        Ok(Self { courses })
    }

    fn course(&self, calls: &Value) -> Course {
        let courses = lock(&self.courses);
        courses.get(&calls.to_string()).cloned().unwrap_or_default()
    }

    /// A list that is given again is a new one.
    pub(super) fn forget(&self, calls: &Value) {
        lock(&self.courses).remove(&calls.to_string());
    }

    /// The last result that the model was given for this list.
    pub(super) fn told(&self, calls: &Value) -> Option<String> {
        self.course(calls).told
    }

    /// Whether every call of the list was made, and its result told.
    pub(super) fn has_finished(&self, calls: &Value) -> bool {
        self.course(calls).has_finished
    }
}

fn lock(courses: &Courses) -> MutexGuard<'_, BTreeMap<String, Course>> {
    // A map is valid whoever broke down beside it.
    courses.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The list in a text, if there is one.
fn list(text: &str) -> Option<Value> {
    let (_, rest) = text.split_once(MARK)?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    values.next()?.ok().filter(Value::is_array)
}

/// The lists that a list hands out to children.
pub(super) fn lists_within(calls: &Value) -> Vec<Value> {
    let calls = calls.as_array().into_iter().flatten();
    calls
        .filter_map(|call| list(call.pointer("/1/goal")?.as_str()?))
        .collect()
}

fn serve(stream: TcpStream, courses: &Courses) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = http::request(&mut reader)? {
        let request: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let stream = reader.get_mut();
        if request.get("messages").is_none() {
            let text = "{\"error\": \"no such thing\"}";
            http::respond(stream, "404 Not Found", &[http::JSON], text)?;
            continue;
        }
        let message = reply(&request, courses);
        let finish = match message.get("tool_calls") {
            Some(_) => "tool_calls",
            None => "stop",
        };
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        if request.get("stream") == Some(&Value::Bool(true)) {
            let parts = [
                json!({"choices": [{"index": 0, "delta": message, "finish_reason": null}]}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}),
                json!({"choices": [], "usage": usage}),
            ];
            let mut text = String::new();
            for mut part in parts {
                if let Some(part) = part.as_object_mut() {
                    part.insert("id".into(), "scripted".into());
                    part.insert("created".into(), 0.into());
                    part.insert("model".into(), "scripted".into());
                    part.insert("object".into(), "chat.completion.chunk".into());
                }
                text.push_str(&format!("data: {part}\n\n"));
            }
            text.push_str("data: [DONE]\n\n");
            http::respond(stream, "200 OK", &[http::EVENTS], &text)?;
        } else {
            let text = json!({
                "id": "scripted", "created": 0, "model": "scripted", "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": usage,
            });
            http::respond(stream, "200 OK", &[http::JSON], &text.to_string())?;
        }
    }
    Ok(())
}

/// What a message says.
fn words(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// The model's next message.
fn reply(request: &Value, courses: &Courses) -> Value {
    let is_role =
        |message: &Value, role: &str| message.get("role").and_then(Value::as_str) == Some(role);
    let messages: &[Value] = request
        .get("messages")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice);
    // Titles and summaries are asked for without tools.
    let has_tools = request
        .get("tools")
        .and_then(Value::as_array)
        .is_some_and(|tools| !tools.is_empty());
    let done = json!({"role": "assistant", "content": "done"});
    let last = messages.iter().rposition(|one| is_role(one, "user"));
    let since = last.and_then(|last| messages.get(last..));
    let (true, Some([said, course @ ..])) = (has_tools, since) else {
        return done;
    };
    let Some(calls) = list(&words(said)) else {
        return done;
    };
    let made = course
        .iter()
        .filter(|one| is_role(one, "assistant"))
        .count();
    let told = course
        .iter()
        .rev()
        .find(|one| is_role(one, "tool"))
        .map(words);
    let next = calls.get(made);
    {
        let mut courses = lock(courses);
        let course = courses.entry(calls.to_string()).or_default();
        course.told = told;
        course.has_finished = next.is_none();
    }
    let Some(next) = next else {
        return done;
    };
    let part = |place: usize| next.get(place).cloned().unwrap_or(Value::Null);
    json!({"role": "assistant", "content": null, "tool_calls": [{
        "index": 0,
        // No id twice in a conversation.
        "id": format!("call_{}", messages.len()),
        "type": "function",
        "function": {"name": part(0), "arguments": part(1).to_string()},
    }]})
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Courses, MARK, lists_within, lock, reply};

    #[test]
    fn calls_are_made_one_after_the_other_and_their_results_remembered() {
        let courses = Courses::default();
        let calls = json!([["a", {"x": 1}], ["b", {}]]);
        let mut messages = vec![json!({"role": "user", "content": format!("{MARK}{calls}")})];
        for name in ["a", "b"] {
            let request = json!({"tools": [{}], "messages": messages});
            let message = reply(&request, &courses);
            assert_eq!(
                message.pointer("/tool_calls/0/function/name"),
                Some(&Value::from(name))
            );
            messages.push(message);
            messages.push(json!({"role": "tool", "content": format!("result of {name}")}));
        }
        let request = json!({"tools": [{}], "messages": messages});
        assert_eq!(reply(&request, &courses)["content"], "done");
        let courses = lock(&courses);
        let course = &courses[&calls.to_string()];
        assert_eq!(course.told.as_deref(), Some("result of b"));
        assert!(course.has_finished);
    }

    #[test]
    fn without_tools_or_a_list_it_has_nothing_to_do() {
        let courses = Courses::default();
        let calls = json!([["a", {}]]);
        let words = format!("{MARK}{calls}");
        for request in [
            json!({"messages": [{"role": "user", "content": words}]}),
            json!({"tools": [{}], "messages": [{"role": "user", "content": "hello"}]}),
            json!({"tools": [{}], "messages": []}),
            Value::Null,
        ] {
            assert_eq!(reply(&request, &courses)["content"], "done");
        }
        assert!(lock(&courses).is_empty());
    }

    #[test]
    fn a_childs_list_is_found_in_what_it_is_handed() {
        let child = json!([["write_file", {"path": "c"}]]);
        let calls = json!([["delegate_task", {"goal": format!("{MARK}{child}")}], ["a", {}]]);
        assert_eq!(lists_within(&calls), [child]);
    }
}
