//! What is said to a server: one connection, one request, and the end of it.

mod counted;

use std::{collections::BTreeSet, fmt, os::unix::net::UnixStream, time::Duration};

use rmcp::{
    RoleClient, ServiceError, ServiceExt as _,
    model::{
        CallToolRequestParams, ClientRequest, GetPromptRequestParams, ListToolsRequest,
        PaginatedRequestParams, ReadResourceRequestParams, ServerResult,
    },
    service::{ClientInitializeError, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, sync::mpsc, time::Instant};

use self::counted::counted;
use super::{
    ExternalServer, Request,
    asked_back::{ASKING_MAX, Attendant, Ears, Put},
    http::Carrier,
    page::Page,
    web::{Web, struck_from},
};
use crate::mcp::{self, Announced, Answer, Kind, Utility};

/// Bytes of everything a server may say about its tools.
pub(super) const LISTING_BYTES_MAX: usize = 4 << 20;
/// How long a server may take to say which tools it has.
const LISTING_TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is asked whether an answer is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Tools one server may have; there are servers with more than eight hundred.
const TOOLS_MAX: usize = 4096;
/// Parts a list is taken in; of a longer one these, as Hermes takes them
/// (`_MCP_LIST_MAX_PAGES`).
const PAGES_MAX: usize = 50;
/// Bytes of such a list.
const STOCK_BYTES_MAX: usize = 1 << 20;
/// Bytes a server may say over one bare connection: lines have no end of their own.
const SAID_BYTES_MAX: u64 = 32 << 20;

type Client = RunningService<RoleClient, Ears>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no way to the server.
    Unreachable(String),
    /// It is no server of the protocol.
    NotConnected(String),
    /// It says that it cannot.
    Refused(String),
    /// It took too long.
    Late(Duration),
    /// The connection ended, or what came was no answer.
    Broken(String),
    /// Whoever waited for it called it off.
    CalledOff,
}

impl Trouble {
    /// The same; what the server said of it without its key.
    fn without_key(self, server: &ExternalServer) -> Self {
        let keys = server.keys();
        let struck = |why: String| struck_from(&keys, why);
        match self {
            Self::Unreachable(why) => Self::Unreachable(struck(why)),
            Self::NotConnected(why) => Self::NotConnected(struck(why)),
            Self::Refused(why) => Self::Refused(struck(why)),
            Self::Broken(why) => Self::Broken(struck(why)),
            Self::Late(limit) => Self::Late(limit),
            Self::CalledOff => Self::CalledOff,
        }
    }

    /// As a model is told it.
    fn told(&self, server: &str) -> Answer {
        match self {
            Self::Unreachable(why) => not_connected(server, why).unheard(),
            Self::NotConnected(why) => not_connected(server, why),
            Self::Refused(why) => mcp::refused(why),
            Self::Late(limit) => {
                let limit = limit.as_secs_f64();
                mcp::failed(&format!(
                    "MCP call failed: TimeoutError: MCP call timed out after {limit:.1}s (configured timeout: \
                     {limit:.1}s)"
                ))
            }
            Self::Broken(why) => mcp::failed(&format!("MCP call failed: {why}")),
            Self::CalledOff => mcp::failed("MCP call interrupted: user sent a new message"),
        }
    }
}

fn not_connected(server: &str, why: &str) -> Answer {
    mcp::failed(&format!("MCP server '{server}' is not connected ({why})"))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why)
            | Self::NotConnected(why)
            | Self::Refused(why)
            | Self::Broken(why) => f.write_str(why),
            Self::Late(limit) => write!(f, "no answer in {} seconds", limit.as_secs()),
            Self::CalledOff => f.write_str("it was called off"),
        }
    }
}

impl From<ServiceError> for Trouble {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Refused(error.message.into_owned()),
            // In the words of the official client, which takes an end for an answer.
            ServiceError::TransportClosed => Self::Refused("Connection closed".to_owned()),
            // What carries messages names itself around the reason.
            ServiceError::TransportSend(error) => Self::Broken(error.error.to_string()),
            other => Self::Broken(other.to_string()),
        }
    }
}

/// Asks a server for something: one that was started, over its input and output. That one is
/// ended where it is called off; any other is no longer listened to once it is not wanted. Once
/// it is greeted, it is asked only if that may still be. What it asks in turn is put by who
/// attends to the call; the time of that is not the server's.
pub(super) fn ask(
    server: &ExternalServer,
    started: Option<UnixStream>,
    request: &Request,
    attending: &mut dyn Attendant,
    may_ask: impl Fn() -> bool,
) -> Result<Answer, Trouble> {
    let (ears, asked) = Ears::that_hear(attending.hears());
    in_time(server.call_time, (attending, asked), async {
        let client = connected(server, started, ears).await?;
        if !may_ask() {
            return Err(Trouble::CalledOff);
        }
        let said = answered(&client, request).await;
        // What the server does after its answer is no concern of the call's.
        let _ended = client.cancel().await;
        let mut said = said?;
        strike_key(server, &mut said);
        Ok(match request {
            Request::Call { .. } => Answer::of(&server.name, &said),
            Request::Ask { utility, .. } => mcp::told(&server.name, *utility, &said),
        })
    })
    .map_err(|trouble| trouble.without_key(server))
}

/// What a server says it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Its tools as it describes them: `name`, `description`, `inputSchema`. One
    /// that is called twice is there once.
    pub tools: Vec<Value>,
    /// What it lists among them that is no tool of the protocol: what it calls it, and what
    /// is wrong with it.
    pub misshapen: Vec<(String, String)>,
    /// What there is at all.
    pub announced: Announced,
}

/// What a server says it has, while that is wanted; one that has no tools is not asked for
/// them.
pub(super) fn list(
    server: &ExternalServer,
    started: Option<UnixStream>,
    attending: &mut dyn Attendant,
) -> Result<Said, Trouble> {
    let (ears, asked) = Ears::that_hear(false);
    let limit = LISTING_TIME_MAX.min(server.call_time);
    in_time(limit, (attending, asked), async {
        let client = connected(server, started, ears).await?;
        let announced = announced(&client);
        let tools = if announced.tools {
            listed(server, &client).await
        } else {
            Ok((Vec::new(), Vec::new()))
        };
        // As for a call.
        let _ended = client.cancel().await;
        let (mut tools, misshapen) = tools?;
        tools.iter_mut().for_each(|tool| strike_key(server, tool));
        Ok(Said {
            tools,
            misshapen,
            announced,
        })
    })
    .map_err(|trouble| trouble.without_key(server))
}

/// What a server said when it was greeted; of one that said nothing of the kind it
/// is taken that it has tools.
fn announced(client: &Client) -> Announced {
    let told = client.peer_info().map(|info| info.capabilities.clone());
    told.map_or(
        Announced {
            tools: true,
            ..Announced::default()
        },
        |told| Announced {
            tools: told.tools.is_some(),
            resources: told.resources.is_some(),
            prompts: told.prompts.is_some(),
        },
    )
}

/// What comes of a request, in the protocol's spelling.
async fn answered(client: &Client, request: &Request) -> Result<Value, Trouble> {
    match request {
        Request::Call { tool, args } => {
            let mut params = CallToolRequestParams::new(tool.clone());
            params.arguments = args.as_object().cloned();
            value(client.call_tool(params).await?)
        }
        Request::Ask { utility, params } => match utility {
            Utility::ListResources | Utility::ListPrompts => stock(client, utility.kind()).await,
            Utility::ReadResource => {
                let uri = params["uri"].as_str().unwrap_or_default();
                let params = ReadResourceRequestParams::new(uri);
                value(client.read_resource(params).await?)
            }
            Utility::GetPrompt => {
                let name = params["name"].as_str().unwrap_or_default();
                let mut asked = GetPromptRequestParams::new(name);
                asked.arguments = params["arguments"].as_object().cloned();
                value(client.get_prompt(asked).await?)
            }
        },
    }
}

fn value(said: impl Serialize) -> Result<Value, Trouble> {
    serde_json::to_value(said)
        .map_err(|error| Trouble::Broken(format!("the answer cannot be read: {error}")))
}

/// A list in all its parts. One that goes round in circles, or has no end, is taken
/// as far as the parts that are taken go.
async fn stock(client: &Client, kind: Kind) -> Result<Value, Trouble> {
    let mut all: Vec<Value> = Vec::new();
    let mut bytes = 0_usize;
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let (page, next) = match kind {
            Kind::Resources => {
                let page = client.list_resources(Some(params)).await?;
                (value(page.resources)?, page.next_cursor)
            }
            Kind::Prompts => {
                let page = client.list_prompts(Some(params)).await?;
                (value(page.prompts)?, page.next_cursor)
            }
        };
        // Before it is kept: each part may be as long as an answer, and there are many.
        bytes = bytes.saturating_add(page.to_string().len());
        if bytes > STOCK_BYTES_MAX {
            return Err(Trouble::Broken(format!(
                "it says more than {STOCK_BYTES_MAX} bytes about its {}",
                kind.name()
            )));
        }
        if let Value::Array(page) = page {
            all.extend(page);
        }
        cursor = next.filter(|cursor| !cursor.is_empty());
        if cursor.is_none() {
            break;
        }
    }
    Ok(json!({ kind.name(): all }))
}

/// Takes the keys of a server out of what it says: one that repeats what it was
/// sent or started with must not hand them to a model, and into every record of the session.
fn strike_key(server: &ExternalServer, said: &mut Value) {
    for key in server.keys() {
        key.strike(said);
    }
}

/// The tools of a server, each name once, in all parts of the list that are taken, and what
/// is none.
async fn listed(
    server: &ExternalServer,
    client: &Client,
) -> Result<(Vec<Value>, Vec<(String, String)>), Trouble> {
    let mut tools: Vec<Value> = Vec::new();
    let mut misshapen = Vec::new();
    let mut names = BTreeSet::new();
    let mut bytes = 0_usize;
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let request = ClientRequest::ListToolsRequest(ListToolsRequest {
            method: Default::default(),
            params: Some(params),
            extensions: Default::default(),
        });
        let page = match client.send_request(request).await? {
            ServerResult::ListToolsResult(page) => Page::from(page),
            // The library reads a list whole or not at all.
            ServerResult::CustomResult(mut page) => {
                // What is told of a misshapen tool is cut short, and half a key is none that
                // could be struck out.
                if let Some(tools) = page.0.get_mut("tools") {
                    strike_key(server, tools);
                }
                Page::read(&page.0).map_err(Trouble::Broken)?
            }
            _ => return Err(ServiceError::UnexpectedResponse.into()),
        };
        misshapen.extend(page.misshapen);
        if tools.len().saturating_add(misshapen.len()) > TOOLS_MAX {
            return Err(Trouble::Broken(format!(
                "it has more than {TOOLS_MAX} tools"
            )));
        }
        for tool in page.tools {
            let is_new = names.insert(tool.name.clone());
            let tool = json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": *tool.input_schema,
            });
            // Before it is kept: each part may be as long as an answer, and there are many.
            bytes = bytes.saturating_add(tool.to_string().len());
            if bytes > LISTING_BYTES_MAX {
                return Err(Trouble::Broken(format!(
                    "it says more than {LISTING_BYTES_MAX} bytes about its tools"
                )));
            }
            if is_new {
                tools.push(tool);
            }
            if tools.len() > TOOLS_MAX {
                return Err(Trouble::Broken(format!(
                    "it has more than {TOOLS_MAX} tools"
                )));
            }
        }
        cursor = page.next.filter(|cursor| !cursor.is_empty());
        if cursor.is_none() {
            break;
        }
    }
    Ok((tools, misshapen))
}

fn in_time<T>(
    limit: Duration,
    (attending, mut asked): (&mut dyn Attendant, mpsc::Receiver<Put>),
    what: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::Unreachable(error.to_string()))?;
    let came = runtime.block_on(async {
        let mut what = std::pin::pin!(what);
        let mut until = Instant::now() + limit;
        loop {
            tokio::select! {
                came = &mut what => return came,
                () = tokio::time::sleep_until(until) => return Err(Trouble::Late(limit)),
                Some((question, reply)) = asked.recv() => {
                    let began = Instant::now();
                    let back = attending.asked(question);
                    until += began.elapsed().min(ASKING_MAX);
                    // A call that is gone wants nothing.
                    let _ = reply.send(back);
                }
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if !attending.is_wanted() {
                return Err(Trouble::CalledOff);
            }
        }
    });
    // A name that is still looked up ends by itself, and holds up nobody; so does what carries
    // a request that was called off.
    runtime.shutdown_background();
    came
}

async fn connected(
    server: &ExternalServer,
    started: Option<UnixStream>,
    ears: Ears,
) -> Result<Client, Trouble> {
    if let Some(stream) = started {
        let unreachable = |error: std::io::Error| Trouble::Unreachable(error.to_string());
        stream.set_nonblocking(true).map_err(unreachable)?;
        let stream = tokio::net::UnixStream::from_std(stream).map_err(unreachable)?;
        let (said, to_say) = stream.into_split();
        return ears
            .serve((counted(said.take(SAID_BYTES_MAX)), to_say))
            .await
            .map_err(|error| Trouble::NotConnected(reason(&error)));
    }
    if let Some(web) = &server.web {
        return over_http(web, server.call_time, ears).await;
    }
    let stream = tokio::net::TcpStream::connect((server.host.as_str(), server.port))
        .await
        .map_err(|error| Trouble::Unreachable(error.to_string()))?;
    let (said, to_say) = stream.into_split();
    ears.serve((counted(said.take(SAID_BYTES_MAX)), to_say))
        .await
        .map_err(|error| Trouble::NotConnected(reason(&error)))
}

/// Why a server could not be greeted, without what carries messages naming itself.
fn reason(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        other => other.to_string(),
    }
}

async fn over_http(web: &Web, time: Duration, ears: Ears) -> Result<Client, Trouble> {
    // Its answer waits for what it asks in turn; who waits for it looks at the time by themselves.
    let time = match ears.hear() {
        true => time.saturating_add(ASKING_MAX),
        false => time,
    };
    let carrier = Carrier::new(&web.url, time).map_err(Trouble::Unreachable)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(web.url.as_str());
    if let Some(key) = &web.key {
        config = config.auth_header(key.reveal());
    }
    let transport = StreamableHttpClientTransport::with_client(carrier.clone(), config);
    ears.serve(transport).await.map_err(|error| {
        if carrier.has_heard() {
            Trouble::NotConnected(reason(&error))
        } else {
            Trouble::Unreachable(reason(&error))
        }
    })
}

/// What a model is told of a call, whatever came of it.
pub fn told(server: &ExternalServer, answer: Result<Answer, Trouble>) -> Answer {
    answer.unwrap_or_else(|trouble| trouble.told(&server.name))
}
