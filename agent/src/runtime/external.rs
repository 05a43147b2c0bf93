//! Tools of servers outside, and what such servers have besides, spoken to in the
//! Model Context Protocol.
//!
//! A browser, a picture model or a messenger is not part of this program. The
//! program is told which server has such a tool; a call connects to that
//! server, if the agent holds `net.connect` on it, and to nothing else; a server
//! that is a program is started for the call, with what the agent holds, and
//! ended after it. What comes back is data from the network and is remembered as
//! such. This module must never start a server outside a sandbox, and never
//! follow one to another address.

mod asked_back;
pub(super) mod exchange;
mod hidden;
mod http;
mod keep;
pub(super) mod listing;
mod page;
mod program;
mod request;
mod server;
mod started;
mod web;

use std::time::Duration;

use hermitcrab_core::{
    authority::Verb,
    fault::{self, Fault},
    grant::AgentId,
    label::Source,
    outcome::{Denial, DenialCode},
    time::Instant,
    tool::Tool,
};
use serde_json::{Value, json};

use self::asked_back::Attending;
use self::listing::Listed;
pub(super) use self::request::Request;
pub use self::{
    listing::{Listing, OutsideTool},
    program::Program,
    server::ExternalServer,
    web::{Key, Web},
};
use super::{
    Runtime,
    result::{Asked, Fate, ToolResult},
};
use crate::{
    digest::sha256,
    mcp::{self, Answer, Wanted},
    text::pyjson,
};

/// Letters of an answer that reach the model.
const ANSWER_LETTERS_MAX: usize = 100_000;
/// Bytes of an answer with everything in it.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Servers one session may know.
const SERVERS_MAX: usize = 64;
/// Failures in a row after which a server is left alone for a while.
const FAILURES_MAX: u32 = 3;
/// How long.
const REST: Duration = Duration::from_mins(1);

/// Tools the compared agent has by itself and this one only from outside.
pub const OUTSIDE: &[&str] = &[
    "browser_back",
    "browser_click",
    "browser_console",
    "browser_get_images",
    "browser_navigate",
    "browser_press",
    "browser_scroll",
    "browser_snapshot",
    "browser_type",
    "browser_vision",
    "image_generate",
    "send_message",
    "text_to_speech",
    "video_analyze",
    "vision_analyze",
    "web_extract",
    "web_search",
];

/// A declared server, and how it has done.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    server: ExternalServer,
    listed: Listed,
    /// Calls in a row that did not work, and when the last of them ended.
    failures: u32,
    failed_at: Option<Instant>,
}

/// Where a tool's name leads.
struct Found {
    server: ExternalServer,
    /// What is wanted of it.
    wanted: Wanted,
    /// The form of its arguments, as far as it is known.
    form: Value,
}

impl Runtime {
    /// Makes a server known. Knowing it permits nothing.
    ///
    /// # Errors
    /// The refusal, for a name that is none or for too many servers.
    pub fn declare_external(&mut self, server: ExternalServer) -> Result<(), Denial> {
        server.check()?;
        let called = mcp::component(&server.name);
        self.externals
            .retain(|known| mcp::component(&known.server.name) != called);
        if self.externals.len() >= SERVERS_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                format_args!(
                    "{SERVERS_MAX} servers in one session; remove those it does not need from the configuration"
                ),
            ));
        }
        self.externals.push(Declared {
            server,
            listed: Listed::NotYet,
            failures: 0,
            failed_at: None,
        });
        Ok(())
    }

    /// Whether a declared server has a tool of this name: as far as names tell,
    /// where it was not yet asked.
    #[must_use]
    pub fn is_of_a_server(&self, tool: &str) -> bool {
        self.external(tool).is_some()
    }

    /// A declared server by its name.
    pub(super) fn server(&self, name: &str) -> Option<&ExternalServer> {
        self.externals
            .iter()
            .map(|known| &known.server)
            .find(|server| server.name == name)
    }

    /// The server a tool's name leads to, and what the tool is called there.
    fn external(&self, tool: &str) -> Option<Found> {
        let listed = self.externals.iter().find_map(|known| match &known.listed {
            Listed::Known(listing) => listing
                .tools
                .iter()
                .find(|offered| offered.name == tool)
                .map(|offered| Found {
                    server: known.server.clone(),
                    wanted: offered.wanted.clone(),
                    form: offered.form.clone(),
                }),
            Listed::NotYet | Listed::Never => None,
        });
        if listed.is_some() {
            return listed;
        }
        let found = |server: &ExternalServer, wanted: Wanted| Found {
            server: server.clone(),
            form: match &wanted {
                Wanted::Tool(_) => Value::Null,
                Wanted::Utility(utility) => utility.form(),
            },
            wanted,
        };
        let own = |known: &&Declared| {
            !matches!(known.listed, Listed::Known(_))
                && known.server.tools.iter().any(|known| known == tool)
        };
        if let Some(known) = self.externals.iter().find(own) {
            return Some(found(&known.server, Wanted::Tool(tool.to_owned())));
        }
        // A server that was asked in vain has no tools in this session.
        let (called, inner) = mcp::parts(tool)?;
        let known = self.externals.iter().find(|known| {
            matches!(known.listed, Listed::NotYet) && mcp::component(&known.server.name) == called
        })?;
        let wanted = known.server.wanted(inner);
        known
            .server
            .takes(&wanted)
            .then(|| found(&known.server, wanted))
    }

    /// Calls a tool outside; `None` if no server is known for the name.
    pub(super) fn call_external(
        &mut self,
        by: AgentId,
        tool: &str,
        args: &Value,
        questions: &mut Vec<Asked>,
    ) -> Option<ToolResult> {
        let Some(Found {
            server,
            wanted,
            form,
        }) = self.external(tool)
        else {
            return OUTSIDE.contains(&tool).then(|| ToolResult {
                text: pyjson::text(&json!({
                    "error": format!(
                        "Denied (unknown-tool): `{tool}` needs a server outside, and none is declared for it. Next \
                         step: ask the user to declare one."
                    ),
                })),
                fate: Fate::Refused(DenialCode::UnknownTool),
            });
        };
        let args = mcp::put_right(args, &form);
        // Only calls of its own tools are counted, and only they wait for it to rest.
        let counts = matches!(wanted, Wanted::Tool(_));
        if let Some(words) = self.rests(&server.name).filter(|_| counts) {
            return Some(ToolResult::error(&words));
        }
        let request = match Request::of(wanted, &args) {
            Ok(request) => request,
            Err(why) => return Some(ToolResult::error(&why)),
        };
        let before = questions.len();
        let answer = match self.asked_outside(by, &server, &request, questions) {
            Ok(answer) => answer,
            Err(denial) => return Some(refused(&denial, questions.len() > before)),
        };
        if counts {
            self.keeps_count(&server.name, answer.is_error);
        }
        // Whoever may have written the answer is now part of what the agent knows.
        match &mut self.heard_late {
            _ if !answer.is_heard || fault::is(Fault::ServersAreNotHeard) => {}
            Some(late) => late.push(Source::Network),
            None => {
                if let Err(denial) = self.hear(by, Source::Network) {
                    return Some(refused(&denial, false));
                }
            }
        }
        Some(told(&self.kept(by, &server, answer, questions)))
    }

    /// One request to a server, through the gate.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn asked_outside(
        &mut self,
        by: AgentId,
        server: &ExternalServer,
        request: &Request,
        questions: &mut Vec<Asked>,
    ) -> Result<Answer, Denial> {
        let (asked, sent) = request.shown();
        let shown = format!(
            "{asked} of the server `{}` at {} with\n{sent}",
            server.name,
            server.place()
        );
        if let Some(program) = &server.program {
            let about = (server, program);
            let spoken = self.spoken_with(by, about, &shown, questions, |stream, mut afar| {
                exchange::ask(server, Some(stream), request, &mut afar, || true)
            })?;
            return Ok(match spoken.discarded {
                None => exchange::told(server, spoken.said),
                Some(denial) => mcp::failed(&thrown_away(&denial)),
            });
        }
        let action = (Verb::NetConnect, server.peer()?, sha256(sent.as_bytes()));
        self.guarded(
            by,
            Tool::External,
            action,
            shown,
            questions,
            |runtime, over| {
                let mut attending = Attending {
                    runtime,
                    over,
                    by,
                    server,
                    asked: 0,
                };
                let may_ask = || !over.is_thrown();
                let answer = exchange::ask(server, None, request, &mut attending, may_ask);
                exchange::told(server, answer)
            },
        )
    }

    /// What is told instead of a call to a server that failed too often just now.
    fn rests(&self, name: &str) -> Option<String> {
        let known = self
            .externals
            .iter()
            .find(|known| known.server.name == name)?;
        let failed_at = known.failed_at.filter(|_| known.failures >= FAILURES_MAX)?;
        let rest = u64::try_from(REST.as_millis()).unwrap_or(u64::MAX);
        let past = self
            .clock
            .now()
            .as_millis()
            .saturating_sub(failed_at.as_millis());
        let left = rest.checked_sub(past).filter(|left| *left > 0)?;
        // Whole seconds that are left for sure: some of the last one has passed by now.
        let seconds = (left.saturating_sub(1) / 1000).max(1);
        Some(mcp::unreachable_words(name, known.failures, seconds))
    }

    fn keeps_count(&mut self, name: &str, has_failed: bool) {
        let now = self.clock.now();
        let mut declared = self.externals.iter_mut();
        let Some(known) = declared.find(|known| known.server.name == name) else {
            return;
        };
        if has_failed {
            known.failures = known.failures.saturating_add(1);
            known.failed_at = Some(now);
        } else {
            known.failures = 0;
            known.failed_at = None;
        }
    }
}

/// What is told instead of an answer whose doings were thrown away.
fn thrown_away(denial: &Denial) -> String {
    let code = denial.code();
    format!(
        "The server ran on a copy and its changes were discarded ({code}): {denial}. Next step: {}.",
        code.next_step()
    )
}

/// An answer as a tool's result.
fn told(answer: &Answer) -> ToolResult {
    let mut shown = answer.shown.clone();
    mcp::fit(&mut shown, ANSWER_LETTERS_MAX);
    let text = pyjson::text(&shown);
    if text.len() > ANSWER_BYTES_MAX {
        return ToolResult::error(&format!(
            "the answer is longer than {ANSWER_BYTES_MAX} bytes and was not taken"
        ));
    }
    if answer.is_error {
        ToolResult::failed(&shown)
    } else {
        ToolResult::ran(&shown)
    }
}

fn refused(denial: &Denial, asked: bool) -> ToolResult {
    let code = denial.code();
    ToolResult {
        text: pyjson::text(&json!({
            "error": format!("Denied ({code}): {denial}. Next step: {}.", code.next_step()),
        })),
        fate: if asked {
            Fate::AskedRefused(code)
        } else {
            Fate::Refused(code)
        },
    }
}
