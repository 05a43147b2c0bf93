//! A question in a turn: what it shows is held against the book, and it is
//! answered in any way a client can think of.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::book::Turn;
use super::ground::Text;
use super::talk::{Client, Talk};

/// How often one question is beaten about the bush before it is answered.
const DETOURS_MAX: u32 = 4;

/// A change a question shows: where, from what, to what.
type Shown = (String, Text, Text);

impl Talk<'_> {
    /// A question of the server.
    pub fn asked(&mut self, question: &Value, turn: &mut Turn) -> Result<Client, String> {
        if question["method"] != "session/request_permission" {
            return Err(format!("a request no client offered: {question}"));
        }
        let params = &question["params"];
        if params["sessionId"] != turn.session {
            return Err(format!(
                "a question of a session that is not at work: {question}"
            ));
        }
        if turn.is_stopped || turn.is_dry {
            return Err(format!("asked although it was over or dry: {question}"));
        }
        // Whatever was answered before has landed by now, or never will. A later call that
        // needs no answer may be at work beside the one that asks.
        self.reached.questions += 1;
        self.reached.landed += self.book.settle(turn, self.ground.texts_so_far()?)?;
        turn.approved.clear();
        let shown = self.shown(&params["toolCall"])?;
        let offered: Vec<&str> = params["options"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|option| option["optionId"].as_str())
            .collect();
        self.answer(&question["id"], &offered, shown, turn)
    }

    /// The changes a call shows: from what is there, and bound to their digests.
    fn shown(&self, call: &Value) -> Result<Vec<Shown>, String> {
        let mut shown = Vec::new();
        let workspace = self.ground.workspace();
        let bound: BTreeMap<&str, &Value> = call["_meta"]["hermitcrab"]["files"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|file| Some((file["path"].as_str()?, file)))
            .collect();
        for part in call["content"].as_array().into_iter().flatten() {
            if part["type"] != "diff" {
                continue;
            }
            let path = part["path"].as_str().unwrap_or_default();
            let name = std::path::Path::new(path)
                .strip_prefix(&workspace)
                .map_err(|_| format!("`{path}` is shown and lies outside"))?
                .to_string_lossy()
                .into_owned();
            let old = part["oldText"].as_str().map(str::to_owned);
            let is_gone = part["_meta"]["hermitcrab"]["deleted"] == true;
            let new = part["newText"]
                .as_str()
                .filter(|_| !is_gone)
                .map(str::to_owned);
            if old != self.book.text(&name) {
                return Err(format!(
                    "`{name}` is shown as {old:?}, and is {:?}",
                    self.book.text(&name)
                ));
            }
            let of = |text: &Text| {
                text.as_ref()
                    .map_or(Value::Null, |text| digest(text).into())
            };
            let bound = bound.get(path).copied().unwrap_or(&Value::Null);
            if bound["base"] != of(&old) || bound["new"] != of(&new) {
                return Err(format!("`{name}` is not bound to what is shown: {bound}"));
            }
            shown.push((name, old, new));
        }
        Ok(shown)
    }

    fn answer(
        &mut self,
        id: &Value,
        offered: &[&str],
        shown: Vec<Shown>,
        turn: &mut Turn,
    ) -> Result<Client, String> {
        let mut is_void = false;
        for _ in 0..DETOURS_MAX {
            match self.pick(9) {
                1 => {
                    // A yes to another question, to none, or in a batch.
                    let other = self.stale.clone().unwrap_or_else(|| json!("nobody"));
                    self.wire.tell(&yes(&other));
                    self.wire.tell(&json!([yes(id)]));
                }
                2 if !turn.is_cancelled => {
                    // A second prompt for a session that is at work.
                    let text = json!([{"type": "text", "text": "[]"}]);
                    let params = json!({"sessionId": turn.session, "prompt": text});
                    let busy = self.request("session/prompt", &params);
                    self.to_be_refused.insert(busy);
                }
                3 if !shown.is_empty() => {
                    // The user works on: a yes to what was shown is void.
                    let place = self.pick(shown.len() - 1);
                    if let Some((name, ..)) = shown.get(place) {
                        self.saves(&name.clone())?;
                        self.reached.overtaken += 1;
                        is_void = true;
                    }
                }
                4 => {
                    let params = json!({"sessionId": turn.session});
                    self.wire.tell(
                        &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}),
                    );
                    turn.is_cancelled = true;
                }
                5 => self.sends_junk(),
                _ => break,
            }
        }
        self.stale = Some(id.clone());
        if self.pick(24) == 1 {
            return Ok(Client::Leaves);
        }
        let option = match self.pick(10) {
            1..=3 => "allow-once",
            4..=5 => "allow-session",
            6 => "allow-always",
            7 => "reject-stop",
            8 => {
                self.no_yes(id);
                return Ok(Client::Stays);
            }
            _ => "reject-once",
        };
        self.wire.tell(&chosen(id, option));
        if option.starts_with("reject") {
            // The first answer counts, whatever comes after it.
            self.wire.tell(&yes(id));
        }
        if !offered.contains(&option) || option.starts_with("reject") {
            turn.is_stopped |= option == "reject-stop" && offered.contains(&option);
            return Ok(Client::Stays);
        }
        if !is_void {
            for (name, _, new) in shown {
                if option != "allow-once" {
                    self.book
                        .lasting
                        .insert((turn.session.clone(), name.clone()));
                }
                turn.approved.push((name, new));
            }
        }
        Ok(Client::Stays)
    }

    /// An answer that is none, or not one that was offered.
    fn no_yes(&mut self, id: &Value) {
        let result = match self.pick(6) {
            0 => json!({"outcome": {"outcome": "cancelled"}}),
            1 => json!({"outcome": {"outcome": "selected"}}),
            2 => json!({"outcome": {"outcome": "granted", "optionId": "allow-once"}}),
            3 => json!({"outcome": "allow-once"}),
            4 => Value::Null,
            5 => json!({"outcome": {"outcome": "selected", "optionId": "Allow-Once"}}),
            _ => {
                let error = json!({"code": -32603, "message": "allow-once"});
                self.wire
                    .tell(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                return;
            }
        };
        self.wire
            .tell(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

fn yes(id: &Value) -> Value {
    chosen(id, "allow-once")
}

fn chosen(id: &Value, option: &str) -> Value {
    let outcome = json!({"outcome": "selected", "optionId": option});
    json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
