//! Servers that are programs: started for one exchange, in copies like any
//! command, spoken to over a socket that is their input and output, and ended.
//!
//! What such a server did to files is decided when it has ended, under the call
//! it was started for. This module must never leave one running.

use std::{os::unix::net::UnixStream, time::Duration};

use hermitcrab_core::{grant::AgentId, outcome::Denial, tool::Tool};
use hermitcrab_sandbox::spawn::{Ending, Finished, Grace, Input, Output, Streams};

use super::{
    ExternalServer, Program,
    asked_back::{ASKING_MAX, Afar},
    exchange::Trouble,
    web::{Key, struck_from},
};
use crate::{
    digest::sha256,
    runtime::{
        Runtime,
        command::{Launch, Over},
        hands::Hands,
        result::{Asked, ChangeSummary},
        turn::Stop,
    },
};

/// How long a server may take to end by itself once nobody listens any more.
const FAREWELL: Duration = Duration::from_secs(2);
/// What one that goes on has to put away what it made.
const GRACE: Grace = Grace::Terminate(Duration::from_secs(2));
/// Letters of its last complaint that are told.
const COMPLAINT_MAX: usize = 300;
/// How often it is looked at.
const PATIENCE: Duration = Duration::from_millis(5);

/// What came of an exchange with a server that was started for it.
pub(super) struct Spoken<T> {
    /// What it said.
    pub said: Result<T, Trouble>,
    /// How its program ended and what it complained of last, for a person who looks for
    /// why there is no answer. Nobody vouches for these words: no model is told them.
    pub end: String,
    /// Why what it did to files was thrown away, if it was.
    pub discarded: Option<Denial>,
}

impl Runtime {
    /// Starts a server, lets `speak` talk to it, and ends it.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn spoken_with<T: Send>(
        &mut self,
        by: AgentId,
        (server, program): (&ExternalServer, &Program),
        about: &str,
        questions: &mut Vec<Asked>,
        speak: impl FnOnce(UnixStream, Afar) -> Result<T, Trouble> + Send,
    ) -> Result<Spoken<T>, Denial> {
        let mut changes = ChangeSummary::default();
        let spoken = self.with_hands((by, Tool::External), questions, &mut changes, |hands| {
            hands.spoken_with((server, program), about, speak)
        });
        match spoken {
            Ok(spoken) => Ok(spoken),
            Err(Stop::Refused { denial, .. }) => Err(denial),
            Err(stop) => Ok(Spoken {
                said: Err(Trouble::Unreachable(stop.words())),
                end: "its program did not run".to_owned(),
                discarded: None,
            }),
        }
    }
}

impl Hands<'_> {
    fn spoken_with<T: Send>(
        &mut self,
        (server, program): (&ExternalServer, &Program),
        about: &str,
        speak: impl FnOnce(UnixStream, Afar) -> Result<T, Trouble> + Send,
    ) -> Result<Spoken<T>, Stop> {
        let seen = self.seen()?;
        let io = |error: std::io::Error| Stop::Io(error.to_string());
        let (ours, theirs) = UnixStream::pair().map_err(io)?;
        let streams = Streams {
            stdout: Output::To(theirs.try_clone().map_err(io)?.into()),
            stdin: Input::From(theirs.into()),
            stderr: Output::Captured,
        };
        let own = program
            .env
            .iter()
            .map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()));
        // Whoever speaks with it looks at its time by themselves, and gives it more while a
        // person is asked.
        let hears = self.runtime.user.hears_words();
        let asking = if hears { ASKING_MAX } else { Duration::ZERO };
        let time = server.call_time.saturating_add(asking);
        let (afar, asked) = Afar::new(hears);
        let mut count = 0;
        let launch = Launch {
            tool: Tool::External,
            about,
            argv: self.argv_of(program),
            env: self.looks_elsewhere().into_iter().chain(own).collect(),
            inputs: Vec::new(),
            merge_stderr: false,
            timeout: time.saturating_add(FAREWELL),
            grace: Grace::None,
        };
        let (call, running) = self.launch(launch, &seen, streams)?;
        let mut running = match running {
            Ok(running) => running,
            Err(error) => return Err(self.not_started(call, error)?),
        };
        let mut wanted = true;
        let (said, over) = std::thread::scope(|scope| {
            let speaking = scope.spawn(move || speak(ours, afar));
            let mut leaving_at = None;
            let over = loop {
                match running.attend(PATIENCE, |_, _| {}) {
                    Ok(true) => break Ok(()),
                    Ok(false) if speaking.is_finished() => {
                        let end = *leaving_at.get_or_insert(running.elapsed() + FAREWELL);
                        if running.elapsed() >= end {
                            running.end(GRACE);
                        }
                    }
                    Ok(false) => {
                        if let Ok((question, reply)) = asked.try_recv() {
                            let who = (self.by, server);
                            let back = self
                                .runtime
                                .asked_back(who, &question, &mut count, || false);
                            // A call that is gone wants nothing.
                            let _ = reply.send(back);
                        }
                        let progress = self.runtime.progress.as_mut();
                        if wanted && progress.is_some_and(|progress| !progress.is_wanted()) {
                            wanted = false;
                            running.kill();
                        }
                    }
                    Err(error) => {
                        // Its end is the end of what is spoken, too.
                        running.kill();
                        break Err(error);
                    }
                }
            };
            let said = speaking
                .join()
                .unwrap_or_else(|_| Err(Trouble::Broken("the exchange broke".to_owned())));
            (said, over)
        });
        let over_with = Over {
            call,
            about,
            seen: &seen,
            unwanted: (!wanted).then_some("the server was stopped"),
        };
        let finished = over.and_then(|()| running.wait());
        let (finished, discarded) =
            self.conclude(&over_with, finished, |_| sha256(about.as_bytes()))?;
        Ok(Spoken {
            said,
            end: end_of(&finished, &server.keys()),
            discarded,
        })
    }

    /// The program where the session works, not where the last command left off.
    fn argv_of(&self, program: &Program) -> Vec<Vec<u8>> {
        let start = [
            "/usr/bin/bash",
            "-c",
            "builtin cd -- \"$1\" || exit 126; shift; exec -- \"$@\"",
            "hermitcrab",
        ];
        let workspace = self.runtime.workspace().as_os_str().as_encoded_bytes();
        start
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .chain([workspace.to_vec()])
            .chain(program.argv.iter().map(|word| word.clone().into_bytes()))
            .collect()
    }
}

/// How a program ended, and the last line it complained in, without the keys it was given.
fn end_of(finished: &Finished, keys: &[Key]) -> String {
    let how = match finished.ending {
        Ending::Exited(status) => format!("its program ended with status {status}"),
        Ending::Signalled(signal) => format!("its program was ended by signal {signal}"),
        Ending::TimedOut | Ending::Killed => "its program had to be ended".to_owned(),
        Ending::OutOfMemory => "its program needed more memory than it may have".to_owned(),
        Ending::OutOfRoom => "its program wrote more than there is room for".to_owned(),
    };
    let complained = finished.stderr.to_bytes();
    let complained = String::from_utf8_lossy(&complained);
    let last = complained.lines().rfind(|line| !line.trim().is_empty());
    match last {
        Some(last) => {
            let last = struck_from(keys, last.trim().to_owned());
            let last: String = last.chars().take(COMPLAINT_MAX).collect();
            format!("{how}, and complained last: {last}")
        }
        None => how,
    }
}
