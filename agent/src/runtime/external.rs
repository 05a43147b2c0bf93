//! Tools of servers outside, spoken to in the Model Context Protocol.
//!
//! A browser, a picture model or a messenger is not part of this program. The
//! program is told which server has such a tool; a call connects to that
//! server, if the agent holds `net.connect` on it, and to nothing else. What
//! comes back is data from the network and is remembered as such. This module
//! must never start a server, and never follow one to another address.

use std::time::Duration;

use hermitcrab_core::{
    authority::{Host, HostPattern, Name, Object, Port, Verb},
    grant::AgentId,
    label::Source,
    outcome::{Denial, DenialCode},
    tool::Tool,
};
use rmcp::{
    ServiceExt as _,
    model::{CallToolRequestParams, ContentBlock},
};
use serde_json::{Value, json};

use super::{
    Runtime,
    call::{Asked, Fate, ToolResult},
};
use crate::{digest::sha256, pyjson, tools::pytext};

/// How long a call may take, the connection included.
const CALL_SECONDS_MAX: u64 = 60;
/// Letters of an answer that reach the model.
const ANSWER_LETTERS_MAX: usize = 100_000;
/// Servers one session may know.
const SERVERS_MAX: usize = 64;

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

/// A server and the tools that are taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalServer {
    /// What it is called here.
    pub name: String,
    /// Its address or host name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its tools that are offered under their own names, such as `web_search`;
    /// every other one is `mcp_<server>_<tool>`.
    pub tools: Vec<String>,
}

/// What a server answered.
pub(super) struct Answer {
    /// Its text.
    pub text: String,
    /// What it sent as data beside the text.
    pub data: Option<Value>,
    /// Whether it says that it did not work.
    pub failed: bool,
}

impl Answer {
    fn failed(text: String) -> Self {
        Self {
            text,
            data: None,
            failed: true,
        }
    }
}

impl Runtime {
    /// Makes a server known. Knowing it permits nothing.
    ///
    /// # Errors
    /// The refusal, for a name that is none or for too many servers.
    pub fn declare_external(&mut self, server: ExternalServer) -> Result<(), Denial> {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if server.name.is_empty() || !server.name.chars().all(plain) {
            return Err(Denial::new(DenialCode::BadArguments, &server.name));
        }
        if self.externals.len() >= SERVERS_MAX {
            return Err(Denial::new(
                DenialCode::LimitReached,
                "servers in one session",
            ));
        }
        host(&server)?;
        self.externals.retain(|known| known.name != server.name);
        self.externals.push(server);
        Ok(())
    }

    /// Whether a declared server has a tool of this name, as far as names tell.
    #[must_use]
    pub fn is_of_a_server(&self, tool: &str) -> bool {
        self.external(tool).is_some()
    }

    /// The tools of declared servers that go by their own names.
    pub fn tools_outside(&self) -> impl Iterator<Item = String> {
        let tools = self.externals.iter().flat_map(|server| &server.tools);
        tools.cloned()
    }

    /// The server a tool's name leads to, and what the tool is called there.
    pub(super) fn external(&self, tool: &str) -> Option<(ExternalServer, String)> {
        if let Some(server) = self
            .externals
            .iter()
            .find(|server| server.tools.iter().any(|known| known == tool))
        {
            return Some((server.clone(), tool.to_owned()));
        }
        let (server, inner) = tool.strip_prefix("mcp_")?.split_once('_')?;
        let server = self.externals.iter().find(|known| known.name == server)?;
        (!inner.is_empty()).then(|| (server.clone(), inner.to_owned()))
    }

    /// Calls a tool outside; `None` if no server is known for the name.
    pub(super) fn call_external(
        &mut self,
        by: AgentId,
        tool: &str,
        args: &Value,
        questions: &mut Vec<Asked>,
    ) -> Option<ToolResult> {
        let Some((server, inner)) = self.external(tool) else {
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
        let object = match host(&server) {
            Ok(object) => object,
            Err(denial) => return Some(refused(&denial, false)),
        };
        let sent = json!({"tool": inner, "arguments": args}).to_string();
        let shown = format!(
            "call `{inner}` of the server `{}` at {}:{} with\n{sent}",
            server.name, server.host, server.port
        );
        let action = (Verb::NetConnect, object, sha256(sent.as_bytes()));
        let before = questions.len();
        let answer = self.guarded(by, Tool::External, action, shown, questions, |_| {
            ask(&server, &inner, args)
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(denial) => return Some(refused(&denial, questions.len() > before)),
        };
        // Whoever may have written the answer is now part of what the agent knows.
        match &mut self.heard_late {
            Some(late) => late.push(Source::Network),
            None => {
                if let Err(denial) = self.hear(by, Source::Network) {
                    return Some(refused(&denial, false));
                }
            }
        }
        let text = pytext::head(&answer.text, ANSWER_LETTERS_MAX);
        Some(if answer.failed {
            ToolResult::error(text)
        } else {
            ToolResult::ran(&json!({ "result": text }))
        })
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

/// The server as a thing to connect to.
pub(super) fn host(server: &ExternalServer) -> Result<Object, Denial> {
    let name = Name::parse_caseless(&server.host)
        .map_err(|error| Denial::new(DenialCode::BadArguments, format_args!("{error}")))?;
    Ok(Object::Host(Host {
        name: HostPattern::Exact(name),
        port: Port::Only(server.port),
    }))
}

/// One connection, one call, and the end of it.
pub(super) fn ask(server: &ExternalServer, tool: &str, args: &Value) -> Answer {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Answer::failed(format!("cannot call `{tool}`: {error}")),
    };
    let limit = Duration::from_secs(CALL_SECONDS_MAX);
    let asked = async { tokio::time::timeout(limit, exchange(server, tool, args)).await };
    match runtime.block_on(asked) {
        Ok(Ok(answer)) => answer,
        Ok(Err(problem)) => Answer::failed(format!("cannot call `{tool}`: {problem}")),
        Err(_) => Answer::failed(format!(
            "cannot call `{tool}`: no answer in {CALL_SECONDS_MAX} seconds"
        )),
    }
}

async fn exchange(server: &ExternalServer, tool: &str, args: &Value) -> Result<Answer, String> {
    let stream = tokio::net::TcpStream::connect((server.host.as_str(), server.port))
        .await
        .map_err(|error| error.to_string())?;
    let client = ().serve(stream).await.map_err(|error| error.to_string())?;
    let mut params = CallToolRequestParams::new(tool.to_owned());
    params.arguments = args.as_object().cloned();
    let result = client
        .call_tool(params)
        .await
        .map_err(|error| error.to_string());
    // What the server does after its answer is no concern of the call's.
    let _ended = client.cancel().await;
    let result = result?;
    let text: Vec<String> = result
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(_)
            | ContentBlock::Audio(_)
            | ContentBlock::Resource(_)
            | ContentBlock::ResourceLink(_) => "[content that is no text]".to_owned(),
            _ => "[content of an unknown kind]".to_owned(),
        })
        .collect();
    Ok(Answer {
        text: text.join("\n"),
        data: result.structured_content,
        failed: result.is_error == Some(true),
    })
}
