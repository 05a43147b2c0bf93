//! A client of `hermitcrab acp` that speaks the wire by itself, and a model
//! whose words are in the prompt.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::{Value, json};

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(120);

/// A backend whose answers stand in the user's last words, as a list: a string
/// is said, a list of `[tool, arguments]` is called, `{"wait": true}` is never
/// answered, `{"cut": words}` stops at the limit of its length, and `{"status": 401}`
/// is a refusal with this status. After the list it says `done`.
pub fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Some(request) = body(&mut reader) {
                    let Some((status, body)) = answer(&request) else {
                        std::thread::sleep(DEADLINE);
                        return;
                    };
                    let text = body.to_string();
                    let sent = write!(
                        reader.get_mut(),
                        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{text}",
                        text.len()
                    );
                    if sent.is_err() {
                        return;
                    }
                }
            });
        }
    });
    base
}

fn body(reader: &mut BufReader<std::net::TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn answer(request: &Value) -> Option<(u64, Value)> {
    let messages = request["messages"].as_array()?;
    let last = messages.iter().rposition(|m| m["role"] == "user")?;
    let words = messages[last]["content"].as_str()?;
    // What the program says beside the user's words comes before them.
    let own = words.rsplit("\n\n").next()?;
    let script: Vec<Value> = serde_json::from_str(words)
        .or_else(|_| serde_json::from_str(own))
        .unwrap_or_else(|_| vec![Value::from(words)]);
    let said = messages[last..]
        .iter()
        .filter(|m| m["role"] == "assistant")
        .count();
    let says = |words: &Value, finish: &str| {
        let message = json!({"role": "assistant", "content": words});
        (
            200,
            json!({"choices": [{"message": message, "finish_reason": finish}]}),
        )
    };
    Some(match script.get(said) {
        None => says(&json!("done"), "stop"),
        Some(Value::Array(calls)) => {
            let calls: Vec<Value> = calls
                .iter()
                .enumerate()
                .map(|(place, call)| {
                    json!({"id": format!("c{place}"), "type": "function", "function": {
                        "name": call[0], "arguments": call[1].to_string()}})
                })
                .collect();
            let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
            (200, json!({"choices": [{"message": message}]}))
        }
        Some(Value::Object(odd)) => match (odd.get("cut"), odd.get("status")) {
            (Some(words), _) => says(words, "length"),
            (None, Some(status)) => {
                let why = json!({"error": {"message": "as the script says"}});
                (status.as_u64()?, why)
            }
            (None, None) => return None,
        },
        Some(words) => says(words, "stop"),
    })
}

/// The editor.
pub struct Editor {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    requests: u64,
    pub dir: tempfile::TempDir,
    /// Every message that came, in order.
    pub seen: Vec<Value>,
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Editor {
    /// Starts the agent with a workspace that holds `a.txt`.
    pub fn start() -> Self {
        Self::start_with(&[], tempfile::tempdir().unwrap())
    }

    /// A second agent in the same home.
    pub fn start_beside(&self) -> Self {
        Self::start_at(&[], self.dir.path(), tempfile::tempdir().unwrap())
    }

    pub fn start_with(options: &[&str], dir: tempfile::TempDir) -> Self {
        let root = dir.path().to_owned();
        Self::start_at(options, &root, dir)
    }

    fn start_at(options: &[&str], root: &Path, dir: tempfile::TempDir) -> Self {
        if !root.join("proj").exists() {
            std::fs::create_dir(root.join("proj")).unwrap();
            std::fs::write(root.join("proj/a.txt"), "alpha\n").unwrap();
        }
        let mut process = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(["acp", "--model", "m", "--base-url", &model()])
            .args(options)
            .current_dir("/")
            .env_clear()
            .env("HOME", root)
            // What runs in a session must not decide what a commit does.
            .env("PATH", "/nonexistent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).expect("a line of JSON");
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            input: process.stdin.take(),
            process,
            lines,
            requests: 0,
            dir,
            seen: Vec::new(),
        }
    }

    /// The workspace, as the agent knows it.
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("proj").canonicalize().unwrap()
    }

    pub fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(name)).ok()
    }

    pub fn put(&self, name: &str, content: &str) {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.raw(message.to_string().as_bytes());
    }

    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next message.
    pub fn next(&mut self) -> Value {
        let message = self.lines.recv_timeout(DEADLINE).expect("a message");
        self.seen.push(message.clone());
        message
    }

    /// Reads until `wanted`, answering each permission with the next of `answers`.
    pub fn until(&mut self, answers: &[Value], wanted: impl Fn(&Value) -> bool) -> Value {
        let mut answers = answers.iter();
        loop {
            let message = self.next();
            if wanted(&message) {
                return message;
            }
            if message["method"] == "session/request_permission" {
                let outcome = answers.next().unwrap_or_else(|| {
                    panic!("asked once more than expected: {message}");
                });
                self.answer(&message, outcome);
            }
        }
    }

    /// Answers a permission: an option's id, or a whole outcome.
    pub fn answer(&mut self, request: &Value, outcome: &Value) {
        let outcome = match outcome {
            Value::String(id) => json!({"outcome": "selected", "optionId": id}),
            outcome => outcome.clone(),
        };
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}}));
    }

    /// The result of a request, or its error.
    pub fn result(&mut self, id: u64, answers: &[Value]) -> Value {
        let answer = self.until(answers, |m| m["id"] == id && m.get("method").is_none());
        answer
            .get("result")
            .or_else(|| answer.get("error"))
            .unwrap()
            .clone()
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.result(id, &[])
    }

    pub fn initialize(&mut self, reads: bool) -> Value {
        self.call(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": reads, "writeTextFile": false}}}),
        )
    }

    /// Opens a session in the workspace.
    pub fn open(&mut self) -> String {
        let cwd = self.workspace();
        self.open_in(&cwd)
    }

    pub fn open_in(&mut self, cwd: &Path) -> String {
        let opened = self.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let id = opened["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    /// Initialized, with one session.
    pub fn ready() -> (Self, String) {
        let mut editor = Self::start();
        editor.initialize(false);
        let session = editor.open();
        (editor, session)
    }

    pub fn begin(&mut self, session: &str, script: &Value) -> u64 {
        let words = match script {
            Value::String(words) => words.clone(),
            script => script.to_string(),
        };
        self.request(
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": words}]}),
        )
    }

    /// Lets the model do as the script says.
    pub fn prompt(&mut self, session: &str, script: &Value, answers: &[Value]) -> Value {
        let id = self.begin(session, script);
        self.result(id, answers)
    }

    /// The next question.
    pub fn question(&mut self) -> Value {
        self.until(&[], |m| m["method"] == "session/request_permission")
    }

    /// The updates of a kind, since the beginning.
    pub fn updates(&self, kind: &str) -> Vec<Value> {
        self.seen
            .iter()
            .map(|m| m["params"]["update"].clone())
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// The questions, since the beginning.
    pub fn questions(&self) -> Vec<Value> {
        self.seen
            .iter()
            .filter(|m| m["method"] == "session/request_permission")
            .map(|m| m["params"].clone())
            .collect()
    }

    /// Everything the agent said, since the beginning.
    pub fn said(&self) -> String {
        self.updates("agent_message_chunk")
            .iter()
            .map(|update| update["content"]["text"].as_str().unwrap().to_owned() + "\n")
            .collect()
    }

    /// The last call's end.
    pub fn ended(&self) -> Value {
        let mut updates = self.updates("tool_call_update");
        updates.pop().unwrap()
    }

    /// Goes away, and waits for the agent to end; its exit code.
    pub fn leave(&mut self) -> Option<i32> {
        drop(self.input.take());
        self.process.wait().unwrap().code()
    }

    /// Kills the agent; its directory.
    pub fn killed(mut self) -> tempfile::TempDir {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    /// Goes away without a word.
    pub fn hang_up(mut self) -> (Option<i32>, tempfile::TempDir) {
        let code = self.leave();
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        (code, dir)
    }
}
