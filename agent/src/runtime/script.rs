//! A script that runs in its copies and calls tools of the agent meanwhile.
//!
//! The calls come over a socket that the script holds as a descriptor; each is
//! a call of its own agent like any other, decided and recorded by itself. The
//! script's own changes are decided when it has ended; what is held without a question
//! stands before a tool it calls looks (`afoot`).

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::{ffi::OsStrExt, net::UnixStream},
    time::{Duration, Instant},
};

use hermitcrab_core::{fault::Fault, outcome::Denial, tool::Tool};
use hermitcrab_sandbox::spawn::{
    Captured, EXCHANGE_DIR, Ending, Finished, Grace, Input, Output, Streams,
};
use serde_json::{Map, Value, json};

use super::{
    command::{Care, Launch, Reasons, Whose},
    hands::Hands,
    seen::{Seen, unless_planted},
    turn::Stop,
};
use crate::text::{bulk, pyjson};

/// What a script imports.
const STUBS: &str = include_str!("script/stubs.py");
/// Tools a script may call.
const TOOLS: [Tool; 5] = [
    Tool::Patch,
    Tool::ReadFile,
    Tool::SearchFiles,
    Tool::Terminal,
    Tool::WriteFile,
];
/// Tools it can import as elsewhere, and which say that there is no such thing here.
const ABSENT: [&str; 2] = ["web_extract", "web_search"];
/// Parameters of `terminal` a script cannot use.
const NOT_FOR_SCRIPTS: [&str; 4] = ["background", "pty", "notify_on_complete", "watch_patterns"];
/// How many calls one script may make, unless it is said otherwise.
const CALLS_MAX: usize = 50;
/// The longest request of a script.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// How long a script may take to take an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of an answer that are sent at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How long a script may run, unless it is said otherwise.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(300);
/// What a script has, when its time is over, to put away what it made.
const GRACE: Grace = Grace::Terminate(Duration::from_secs(5));
/// How many requests are answered before whoever waits for the script is heard again: one that
/// asks without end must not keep them from calling it off.
const ANSWERED_AT_ONCE: usize = 16;
/// How often a script's calls are looked for.
const PATIENCE: Duration = Duration::from_millis(2);

/// A script that ran.
#[derive(Debug)]
pub struct ScriptRun {
    /// How it ended.
    pub ending: Ending,
    /// What it printed.
    pub stdout: Captured,
    /// What it complained about.
    pub stderr: Captured,
    /// Calls it made.
    pub calls: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// How long it might have taken.
    pub timeout: Duration,
    /// Why what it changed was thrown away, if it was.
    pub discarded: Option<Denial>,
    /// Why it may have failed, where that can be told.
    pub reasons: Reasons,
}

impl Hands<'_> {
    /// Runs a script to its end, serving its calls.
    pub fn run_script(&mut self, code: &str) -> Result<ScriptRun, Stop> {
        let seen = unless_planted(Fault::ScriptsAreShownAll, self.seen()?).into();
        let (ours, theirs) = UnixStream::pair().map_err(|error| Stop::Io(error.to_string()))?;
        ours.set_nonblocking(true)
            .map_err(|error| Stop::Io(error.to_string()))?;
        let text = |text: &str| text.as_bytes().to_vec();
        let ceilings = self.runtime.ceilings.clone();
        let timeout = ceilings.script_timeout.unwrap_or(SCRIPT_TIMEOUT);
        let timeout = ceilings
            .timeout_max
            .map_or(timeout, |most| most.min(timeout));
        let launch = Launch {
            tool: Tool::ExecuteCode,
            about: code,
            argv: vec![
                text("/usr/bin/bash"),
                text("-c"),
                text(
                    "builtin cd -- \"$1\" 2>/dev/null || builtin cd -- \"$3\" 2>/dev/null; \
                     exec 3<&0 </dev/null /usr/bin/env -u OLDPWD -u PWD -u PYTHONHASHSEED -u SHLVL -u TZ python3 \"$2/script.py\"",
                ),
                text("bash"),
                self.cwd().to_string_lossy().into_owned().into_bytes(),
                text(EXCHANGE_DIR),
                self.runtime
                    .config
                    .workspace
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
            ],
            env: vec![
                (text("HERMITCRAB_RPC"), text("3")),
                (text("PYTHONDONTWRITEBYTECODE"), text("1")),
                (text("PYTHONIOENCODING"), text("utf-8")),
                (text("PYTHONUTF8"), text("1")),
                (text("PYTHONPATH"), text(EXCHANGE_DIR)),
            ],
            inputs: vec![
                ("script.py".to_owned(), text(code)),
                ("hermes_tools.py".to_owned(), text(STUBS)),
            ],
            merge_stderr: false,
            timeout,
            grace: GRACE,
        };
        let streams = Streams {
            stdin: Input::From(theirs.into()),
            stdout: Output::Captured,
            stderr: Output::Captured,
        };
        let mut line = Line {
            socket: ours,
            unread: Vec::new(),
            searched: 0,
            calls: 0,
            calls_max: ceilings.script_calls_max.unwrap_or(CALLS_MAX),
        };
        let care = Care {
            every: PATIENCE,
            called_off: "the script was stopped",
        };
        let whose = self.whose();
        let (finished, discarded) =
            self.run_to_its_end(launch, streams, &seen, &care, |hands| {
                hands.serve(&mut line)
            })?;
        Ok(ScriptRun {
            calls: line.calls,
            discarded,
            ..self.script_run(&whose, finished, &seen, timeout)
        })
    }

    /// What a script came to that saw this, had called nothing and lost nothing.
    pub(super) fn script_run(
        &self,
        whose: &Whose,
        finished: Finished,
        seen: &[Seen],
        timeout: Duration,
    ) -> ScriptRun {
        let (printed, complained) = (finished.stdout.to_bytes(), finished.stderr.to_bytes());
        let said = [&printed, &complained].map(|said| String::from_utf8_lossy(said));
        let reasons = self.reasons(whose, &finished, seen, said.each_ref().map(AsRef::as_ref));
        ScriptRun {
            ending: finished.ending,
            stdout: finished.stdout,
            stderr: finished.stderr,
            calls: 0,
            elapsed: finished.elapsed,
            timeout,
            discarded: None,
            reasons,
        }
    }

    /// Answers the requests that are there, as many as are answered at once.
    fn serve(&mut self, line: &mut Line) {
        for _ in 0..ANSWERED_AT_ONCE {
            let Some(request) = line.next() else {
                return;
            };
            let answer = self.answer(&request, line) + "\n";
            // A script that does not listen any more gets no answer, and after half of
            // one it cannot tell the next apart.
            if line.say(answer.as_bytes(), ANSWER_TIME_MAX).is_err() {
                let _over = line.socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn answer(&mut self, request: &[u8], line: &mut Line) -> String {
        let error = |message: String| pyjson::text(&json!({ "error": message }));
        if bulk::is_too_much(request) {
            return error(format!(
                "Invalid RPC request: it holds more than {} values",
                bulk::VALUES_MAX
            ));
        }
        let request: Value = match serde_json::from_slice(request) {
            Ok(request) => request,
            Err(why) => return error(format!("Invalid RPC request: {why}")),
        };
        let name = request.get("tool").and_then(Value::as_str).unwrap_or("");
        let is_absent = ABSENT.contains(&name);
        let tool = Tool::offered(name).filter(|tool| TOOLS.contains(tool));
        if tool.is_none() && !is_absent {
            let own = TOOLS.iter().map(|tool| tool.as_str());
            let mut offered: Vec<&str> = own.chain(ABSENT).collect();
            offered.sort_unstable();
            return error(format!(
                "Tool '{name}' is not available in execute_code. Available: {}",
                offered.join(", ")
            ));
        }
        if line.calls >= line.calls_max {
            return error(format!(
                "Tool call limit reached ({}). No more tool calls allowed in this execution.",
                line.calls_max
            ));
        }
        line.calls += 1;
        let Some(tool) = tool else {
            return error(format!(
                "{name}: no such tool is configured here; a server's tools are called by the model, not by a script"
            ));
        };
        let mut args = match request.get("args") {
            Some(Value::Object(args)) => args.clone(),
            _ => Map::new(),
        };
        if tool == Tool::Terminal {
            for name in NOT_FOR_SCRIPTS {
                args.shift_remove(name);
            }
        }
        let by = self.by;
        let report = self.runtime.call(by, name, &Value::Object(args));
        self.questions.extend(report.questions);
        report.text
    }
}

/// The script's end of a conversation, as the runtime holds it.
struct Line {
    socket: UnixStream,
    unread: Vec<u8>,
    /// So many bytes of it hold no end of a line. To look at them again with each piece that
    /// comes would be a hundred times the work a long request is for its script.
    searched: usize,
    calls: usize,
    calls_max: usize,
}

impl Line {
    /// The next whole request, if one is there.
    fn next(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0_u8; 65_536];
        loop {
            let fresh = self.unread.get(self.searched..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(self.searched.saturating_add(end + 1));
                self.searched = 0;
                return Some(std::mem::replace(&mut self.unread, rest));
            }
            self.searched = self.unread.len();
            match self.socket.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(count) => {
                    self.unread
                        .extend_from_slice(buffer.get(..count).unwrap_or_default());
                    if self.unread.len() > REQUEST_BYTES_MAX {
                        self.unread.clear();
                        self.searched = 0;
                        return None;
                    }
                }
            }
        }
    }

    /// Sends all of it within this time; a script that does not take it by then, be it
    /// that it reads a letter now and then, is given up.
    fn say(&mut self, bytes: &[u8], within: Duration) -> std::io::Result<()> {
        self.socket.set_nonblocking(false)?;
        let said = self.say_until(bytes, Instant::now() + within);
        self.socket.set_nonblocking(true)?;
        said
    }

    fn say_until(&mut self, mut bytes: &[u8], end: Instant) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            self.socket.set_write_timeout(Some(left))?;
            // In small pieces: a long write ends only when all of it was taken.
            let piece = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
            match self.socket.write(piece) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::net::UnixStream, time::Duration};

    use super::Line;

    fn line(socket: UnixStream) -> Line {
        Line {
            socket,
            unread: Vec::new(),
            searched: 0,
            calls: 0,
            calls_max: 1,
        }
    }

    #[test]
    fn a_request_that_comes_in_pieces_is_looked_at_once_and_is_whole() {
        use std::io::Write as _;
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = line(ours);
        for (piece, searched) in [("{\"a\":", 5), ("1", 6)] {
            theirs.write_all(piece.as_bytes()).unwrap();
            assert_eq!((ours.next(), ours.searched), (None, searched));
        }
        theirs.write_all(b"}\n{}\n\n{").unwrap();
        for whole in ["{\"a\":1}\n", "{}\n", "\n"] {
            assert_eq!(ours.next().unwrap(), whole.as_bytes());
        }
        assert_eq!((ours.next(), ours.searched), (None, 1));
    }

    #[test]
    fn a_script_that_takes_its_answer_letter_by_letter_is_given_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut ours = line(ours);
        let reading = std::thread::spawn(move || {
            // Its end is the end of the other side.
            while theirs.read(&mut [0; 512]).is_ok_and(|count| count > 0) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (answer, within) = (vec![b'x'; 32 << 20], Duration::from_millis(300));
        let error = ours.say(&answer, within).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock
            ),
            "{error}"
        );
        // One that reads gets all of it.
        drop(ours);
        reading.join().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut ours = line(ours);
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all.len()
        });
        let answer = vec![b'x'; 1 << 20];
        ours.say(&answer, Duration::from_secs(60)).unwrap();
        drop(ours);
        assert_eq!(reading.join().unwrap(), answer.len());
    }
}
