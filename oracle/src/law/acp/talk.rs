//! A conversation made from bytes: sessions are opened, closed and taken up
//! again, modes chosen, prompts given whose turns edit files, and every question
//! is answered somehow. The server must answer each request once, must show what
//! is there, and must write nothing without a yes to exactly that.

use std::collections::BTreeSet;

use arbitrary::Unstructured;
use serde_json::{Value, json};

use super::super::Verdict;
use super::book::{Book, Turn};
use super::ground::Ground;
use super::wire::Wire;

const ACTIONS_MAX: usize = 14;
const SESSIONS_MAX: usize = 3;
const FILES: [(&str, &str); 3] = [("a", "alpha\n"), ("b", "beta\n"), (".env", "KEY=1\n")];
/// Where edits go: mostly to where one went already. The last two lead outside.
const PLACES: [&str; 12] = [
    "a",
    "a",
    "a",
    "a",
    "b",
    "b",
    "c",
    "d/e",
    ".env",
    ".git/config",
    "../out",
    "/tmp/../out",
];

/// Lines that ask for nothing.
const JUNK: [&[u8]; 8] = [
    b"42",
    b"null",
    b"[]",
    b"{",
    b"nonsense",
    b"\xff\xfe",
    b"[{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{}}]",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow-once\"}}}",
];

/// How far a conversation came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// Questions that were put.
    pub questions: u64,
    /// Files that changed in turns.
    pub landed: u64,
    /// Turns that ended as cancelled.
    pub cancelled: u64,
    /// Questions whose place the user changed meanwhile.
    pub overtaken: u64,
}

pub struct Talk<'b> {
    pub reached: Reached,
    bytes: Unstructured<'b>,
    pub wire: Wire,
    pub ground: Ground,
    pub book: Book,
    /// Requests that wait for their answer, and those of them that must fail.
    waiting: BTreeSet<u64>,
    pub to_be_refused: BTreeSet<u64>,
    sessions: Vec<String>,
    closed: Vec<String>,
    /// Sessions in which something was said, so that they can be taken up again.
    spoken: BTreeSet<String>,
    /// The turn in which the client went away.
    left: Turn,
    /// A question that was answered already.
    pub stale: Option<Value>,
    requests: u64,
    contents: u64,
}

/// Makes a conversation of these choices, and says what is wrong with it.
pub fn check(choices: &[u8]) -> Verdict {
    converse(choices).map(drop)
}

fn converse(choices: &[u8]) -> Result<Reached, String> {
    let ground = Ground::new(&FILES)?;
    let mut talk = Talk {
        reached: Reached::default(),
        bytes: Unstructured::new(choices),
        wire: Wire::to_server(ground.service()),
        book: Book {
            files: ground.texts()?,
            ..Book::default()
        },
        ground,
        waiting: BTreeSet::new(),
        to_be_refused: BTreeSet::new(),
        sessions: Vec::new(),
        closed: Vec::new(),
        spoken: BTreeSet::new(),
        left: Turn::default(),
        stale: None,
        requests: 0,
        contents: 0,
    };
    let client = talk.all();
    talk.wire.hang_up()?;
    let client = client?;
    if client == Client::Stays && !talk.waiting.is_empty() {
        return Err(format!("requests without an answer: {:?}", talk.waiting));
    }
    // Whoever left in a question said no; what was accepted before may go on
    // until the server notices.
    let disk = talk.ground.texts()?;
    talk.book.settle(&talk.left, disk)?;
    Ok(talk.reached)
}

/// Whether the client is still there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Stays,
    Leaves,
}

impl Talk<'_> {
    /// A number up to `most`; 0 once the bytes are used up.
    pub fn pick(&mut self, most: usize) -> usize {
        self.bytes.int_in_range(0..=most).unwrap_or(0)
    }

    fn all(&mut self) -> Result<Client, String> {
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        self.call("initialize", &hello)?;
        self.open()?;
        for _ in 0..ACTIONS_MAX {
            if self.bytes.is_empty() {
                break;
            }
            if self.act()? == Client::Leaves {
                return Ok(Client::Leaves);
            }
        }
        // Whatever came in, it is there.
        self.call("session/list", &json!({})).map(|_| Client::Stays)
    }

    fn act(&mut self) -> Result<Client, String> {
        match self.pick(15) {
            0 => self.open()?,
            1 => self.choose_mode()?,
            2 => self.sends_junk(),
            3 => self.close()?,
            4 => self.take_up()?,
            5 => {
                let place = self.pick(PLACES.len() - 3);
                self.saves(PLACES.get(place).copied().unwrap_or("a"))?;
            }
            6 => {
                let params =
                    json!({"sessionId": "nobody", "prompt": [{"type": "text", "text": "x"}]});
                self.refused("session/prompt", &params)?;
            }
            7 => self.disbelieve()?,
            _ => return self.prompt(),
        }
        Ok(Client::Stays)
    }

    /// A line that asks for nothing, and is not obeyed.
    pub fn sends_junk(&mut self) {
        let place = self.pick(JUNK.len() - 1);
        self.wire.send(JUNK.get(place).copied().unwrap_or(b"42"));
    }

    /// The user saves a file.
    pub fn saves(&mut self, name: &str) -> Verdict {
        self.contents += 1;
        let text = format!("user {}\n", self.contents);
        self.ground.save(name, &text)?;
        self.book.files.insert(name.to_owned(), text);
        Ok(())
    }

    fn open(&mut self) -> Verdict {
        if self.sessions.len() >= SESSIONS_MAX {
            return Ok(());
        }
        let opened = self.call("session/new", &self.place())?;
        let id = opened["result"]["sessionId"].as_str();
        let id = id.ok_or_else(|| format!("no session: {opened}"))?;
        self.sessions.push(id.to_owned());
        Ok(())
    }

    fn place(&self) -> Value {
        json!({"cwd": self.ground.workspace(), "mcpServers": []})
    }

    fn session(&mut self) -> Option<String> {
        let place = self.pick(self.sessions.len().checked_sub(1)?);
        self.sessions.get(place).cloned()
    }

    fn choose_mode(&mut self) -> Verdict {
        let Some(session) = self.session() else {
            return Ok(());
        };
        let mode = match self.pick(3) {
            0 => "ask",
            1 => "workspace",
            2 => "session",
            _ => {
                return self.refused(
                    "session/set_mode",
                    &json!({"sessionId": session, "modeId": "bypass"}),
                );
            }
        };
        self.call(
            "session/set_mode",
            &json!({"sessionId": session, "modeId": mode}),
        )?;
        if mode == "ask" {
            self.book.accepting.remove(&session);
        } else {
            self.book.accepting.insert(session);
        }
        Ok(())
    }

    fn disbelieve(&mut self) -> Verdict {
        let Some(session) = self.session() else {
            return Ok(());
        };
        let value = ["unknown", "proved"][self.pick(1)];
        let params = json!({"sessionId": session, "configId": "isolation", "value": value});
        self.call("session/set_config_option", &params).map(drop)
    }

    fn close(&mut self) -> Verdict {
        let Some(session) = self.session() else {
            return Ok(());
        };
        self.call("session/close", &json!({"sessionId": session}))?;
        self.sessions.retain(|of| *of != session);
        self.book.ended(&session);
        self.refused(
            "session/set_mode",
            &json!({"sessionId": session, "modeId": "ask"}),
        )?;
        self.closed.push(session);
        Ok(())
    }

    /// A session that was closed; if nothing was said in it, there is none.
    fn take_up(&mut self) -> Verdict {
        let Some(session) = self.closed.pop() else {
            return self.refused(
                "session/load",
                &json!({"sessionId": "../a", "cwd": "/", "mcpServers": []}),
            );
        };
        let mut params = self.place();
        params["sessionId"] = session.clone().into();
        let method = ["session/load", "session/resume"][self.pick(1)];
        let taken_up = self.call(method, &params)?;
        if taken_up.get("result").is_some() {
            self.sessions.push(session);
        } else if self.spoken.contains(&session) {
            return Err(format!(
                "a session that was closed is not taken up: {taken_up}"
            ));
        }
        Ok(())
    }

    fn prompt(&mut self) -> Result<Client, String> {
        let Some(session) = self.session() else {
            return Ok(Client::Stays);
        };
        self.contents += 1;
        let mut turn = Turn {
            session,
            token: format!("agent {}.", self.contents),
            is_dry: self.pick(9) == 1,
            ..Turn::default()
        };
        let rounds = 1 + self.pick(3);
        let script: Vec<Vec<(&str, Value)>> = (0..rounds)
            .map(|_| (0..=self.pick(1)).map(|_| self.edit(&turn.token)).collect())
            .collect();
        let words = json!(script).to_string();
        let words = if turn.is_dry {
            format!("/dry-run {words}")
        } else {
            words
        };
        let text = json!([{"type": "text", "text": words}]);
        let id = self.request(
            "session/prompt",
            &json!({"sessionId": turn.session, "prompt": text}),
        );
        let (client, answer) = self.wait(id, &mut turn)?;
        if client == Client::Leaves {
            turn.is_cancelled = true;
            self.left = turn;
            return Ok(client);
        }
        self.spoken.insert(turn.session.clone());
        let stop = &answer["result"]["stopReason"];
        let is_fine = stop == "end_turn" || (stop == "cancelled" && turn.is_cancelled);
        if !is_fine {
            return Err(format!("a turn that ended so: {answer}"));
        }
        self.reached.cancelled += u64::from(stop == "cancelled");
        self.reached.landed += self.book.settle(&turn, self.ground.texts()?)?;
        Ok(client)
    }

    /// One edit, which may be none that can be made.
    fn edit(&mut self, token: &str) -> (&'static str, Value) {
        let mut place = || {
            let place = self.pick(PLACES.len() - 1);
            PLACES.get(place).copied().unwrap_or("a")
        };
        let (one, other) = (place(), place());
        match self.pick(5) {
            0 => {
                let (old, new) = ("a", token);
                (
                    "patch",
                    json!({"mode": "replace", "path": one, "old_string": old, "new_string": new}),
                )
            }
            1 => {
                let patch = format!(
                    "*** Begin Patch\n*** Add File: {one}\n+{token}\n*** Delete File: {other}\n*** End Patch"
                );
                ("patch", json!({"mode": "patch", "patch": patch}))
            }
            2 => {
                let patch =
                    format!("*** Begin Patch\n*** Move File: {one} -> {other}\n*** End Patch");
                ("patch", json!({"mode": "patch", "patch": patch}))
            }
            3 => ("read_file", json!({"path": one})),
            _ => (
                "write_file",
                json!({"path": one, "content": format!("{token}\n")}),
            ),
        }
    }

    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.waiting.insert(id);
        self.wire
            .tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// A request that no turn is about.
    fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.request(method, params);
        self.wait(id, &mut Turn::default())
            .map(|(_, answer)| answer)
    }

    fn refused(&mut self, method: &str, params: &Value) -> Verdict {
        let answer = self.call(method, params)?;
        match answer.get("error") {
            Some(_) => Ok(()),
            None => Err(format!("{method} was not refused: {answer}")),
        }
    }

    /// Reads until a request is answered, and sees to whatever comes before.
    fn wait(&mut self, id: u64, turn: &mut Turn) -> Result<(Client, Value), String> {
        loop {
            let message = self.wire.next()?.ok_or("the server ended by itself")?;
            if message["jsonrpc"] != "2.0" {
                return Err(format!("not JSON-RPC 2.0: {message}"));
            }
            match (message.get("method"), message["id"].as_u64()) {
                (Some(_), _) if message.get("id").is_some() => {
                    if self.asked(&message, turn)? == Client::Leaves {
                        return Ok((Client::Leaves, Value::Null));
                    }
                }
                (Some(_), _) => {}
                // What was no message is answered without a number.
                (None, None) if message["id"].is_null() && message.get("error").is_some() => {}
                (None, Some(of)) if self.waiting.remove(&of) => {
                    if self.to_be_refused.remove(&of) && message.get("error").is_none() {
                        return Err(format!("not refused: {message}"));
                    }
                    if of == id {
                        return Ok((Client::Stays, message));
                    }
                }
                (None, _) => return Err(format!("an answer nobody waits for: {message}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reached, converse};

    /// Bytes that are the same each time.
    fn choices(mut seed: u64) -> Vec<u8> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        };
        (0..300).map(|_| next()).collect()
    }

    #[test]
    fn conversations_reach_the_gate_and_both_sides_of_it() {
        let mut all = Reached::default();
        for seed in 1..=24 {
            let reached = converse(&choices(seed)).unwrap();
            all.questions += reached.questions;
            all.landed += reached.landed;
            all.cancelled += reached.cancelled;
            all.overtaken += reached.overtaken;
        }
        assert!(
            all.questions >= 20 && all.landed >= 5 && all.cancelled >= 1 && all.overtaken >= 1,
            "{all:?}"
        );
        assert!(all.landed < all.questions * 2, "{all:?}");
    }

    /// A law that finds nothing wrong with a server that is wrong says nothing.
    #[cfg(feature = "planted-faults")]
    #[test]
    fn a_server_with_a_planted_fault_is_found_out() {
        use hermitcrab_core::fault::{Fault, plant};

        for fault in [
            Fault::UnknownAnswerIsYes,
            Fault::SensitivePathsArePlain,
            Fault::ApproveWholeClass,
            Fault::ForgetUses,
            Fault::RefuseEverything,
        ] {
            plant(Some(fault));
            let found = (1..=200).any(|seed| converse(&choices(seed)).is_err());
            plant(None);
            assert!(found, "{fault:?}");
        }
    }
}
