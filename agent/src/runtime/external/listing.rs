//! What servers outside say about their tools, for a model that is to call them.
//!
//! A server is asked once a session, through the gate like for a call. Its
//! words are its own: a model that reads them has read data from the network,
//! and that counts, unless the user has read exactly these words before and
//! said so by their digest. Being listed permits nothing.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use hermitcrab_core::{
    authority::{Cap, Verb},
    grant::AgentId,
    label::Source,
    outcome::Denial,
};
use serde_json::Value;

use super::{
    ExternalServer,
    exchange::{self, LISTING_BYTES_MAX, Said},
};
use crate::{
    digest::sha256,
    mcp::{self, Announced, Utility, Wanted},
    runtime::Runtime,
};

/// Bytes of a tool's name here; backends take no longer ones.
const NAME_BYTES_MAX: usize = 128;

/// A tool of a server, as a model is offered it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideTool {
    /// What it is called here.
    pub name: String,
    /// What the server says it is for.
    pub description: String,
    /// The form of its arguments, as backends take it.
    pub parameters: Value,
    /// The form as arguments are put right by it.
    pub(super) form: Value,
    /// What of the server it is.
    pub(super) wanted: Wanted,
}

impl OutsideTool {
    /// Whether its name and description are the server's, and not this program's.
    fn is_in_its_words(&self) -> bool {
        matches!(self.wanted, Wanted::Tool(_))
    }
}

/// What a server said about its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The tools that are taken from it.
    pub tools: Arc<[OutsideTool]>,
    /// The digest of all it said, in hex.
    pub digest: String,
    /// What of it cannot be offered, in words.
    pub left_out: Vec<String>,
}

impl Listing {
    /// How many tools are offered in the server's own words.
    fn in_its_words(&self) -> usize {
        let tools = self.tools.iter();
        tools.filter(|tool| tool.is_in_its_words()).count()
    }

    /// Whether there is anything of the server's own to be read in what is offered.
    #[must_use]
    pub fn has_its_words(&self) -> bool {
        self.in_its_words() > 0
    }

    /// Whether reading what is offered is hearing the server: it has words of its
    /// own in there, and nobody has vouched for them.
    fn is_unread(&self, server: &ExternalServer) -> bool {
        self.has_its_words() && server.listing.as_ref() != Some(&self.digest)
    }
}

/// Whether it is known what a server has.
#[derive(Clone, Debug)]
pub(in crate::runtime) enum Listed {
    /// It was not asked.
    NotYet,
    /// It was asked and did not say so, or may not be asked; it is not asked
    /// again in this session.
    Never,
    /// It said so.
    Known(Listing),
}

impl Runtime {
    /// Asks the declared servers that were not yet asked for their tools, if
    /// the agent may connect to them. What did not work is told the user. One that was
    /// called off while it was asked has not been asked, and is before the next turn.
    pub fn list_outside(&mut self, by: AgentId) {
        let unknown: Vec<ExternalServer> = self
            .externals
            .iter()
            .filter(|known| matches!(known.listed, Listed::NotYet))
            .map(|known| known.server.clone())
            .collect();
        for server in unknown {
            let listed = match self.listing(by, &server) {
                Ok(Ok(listing)) => {
                    self.told.extend(listing.left_out.iter().cloned());
                    if listing.is_unread(&server) {
                        self.told.push(unread(&server, &listing));
                    }
                    Listed::Known(listing)
                }
                Ok(Err(_)) | Err(_) if !self.is_waited_for() => {
                    self.told.push(format!(
                        "the server `{}` was not heard out; it is asked for its tools again before the next answer",
                        server.name
                    ));
                    return;
                }
                Ok(Err(why)) => {
                    self.told.push(format!(
                        "the tools of the server `{}` are not offered: {why}",
                        server.name
                    ));
                    Listed::Never
                }
                Err(denial) => {
                    self.told.push(format!(
                        "the tools of the server `{}` are not offered: {denial} ({}); {}",
                        server.name,
                        denial.code(),
                        denial.code().next_step()
                    ));
                    Listed::Never
                }
            };
            let mut declared = self.externals.iter_mut();
            if let Some(known) = declared.find(|known| known.server.name == server.name) {
                known.listed = listed;
            }
        }
    }

    /// The declared servers that are asked for their tools before the next turn.
    #[must_use]
    pub fn servers_to_ask(&self) -> Vec<&str> {
        self.externals
            .iter()
            .filter(|known| matches!(known.listed, Listed::NotYet))
            .map(|known| known.server.name.as_str())
            .collect()
    }

    /// What a server says about its tools.
    ///
    /// # Errors
    /// The refusal; inside, why there is no answer.
    pub fn listing(
        &mut self,
        by: AgentId,
        server: &ExternalServer,
    ) -> Result<Result<Listing, String>, Denial> {
        let shown = format!(
            "ask the server `{}` at {} which tools it has",
            server.name,
            server.place()
        );
        let mut questions = Vec::new();
        let listed = match &server.program {
            Some(program) => {
                let about = (server, program);
                let spoken = self.spoken_with(by, about, &shown, &mut questions, |stream, _| {
                    exchange::list(server, Some(stream), &mut || true)
                });
                spoken.map(|spoken| {
                    let why = |trouble| match self.not_shown(program) {
                        Some(hidden) => format!("{trouble}; {}; {hidden}", spoken.end),
                        None => format!("{trouble}; {}", spoken.end),
                    };
                    spoken.said.map_err(why)
                })
            }
            None => {
                let action = (Verb::NetConnect, server.peer()?, sha256(b"tools/list"));
                let tool = hermitcrab_core::tool::Tool::External;
                let heard =
                    self.guarded(by, tool, action, shown, &mut questions, |runtime, over| {
                        exchange::list(server, None, &mut || {
                            !over.is_thrown() && runtime.is_waited_for()
                        })
                    });
                heard.map(|said| said.map_err(|trouble| trouble.to_string()))
            }
        };
        if let Err(error) = self.settle_wishes() {
            self.told.push(error.to_string());
        }
        let listed = listed?;
        Ok(listed.and_then(|said| read(server, &said)))
    }

    /// Whether whoever waits still does.
    pub(super) fn is_waited_for(&mut self) -> bool {
        let progress = self.progress.as_mut();
        progress.is_none_or(|progress| progress.is_wanted())
    }

    /// The tools of servers that an agent is offered, by name: the first one all
    /// that are known, every other those it could call with what it holds.
    #[must_use]
    pub fn tools_outside(&self, agent: AgentId) -> Vec<OutsideTool> {
        let mut tools: Vec<OutsideTool> = self
            .offered_to(agent)
            .flat_map(|(_, listing)| listing.tools.iter().cloned())
            .collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools
    }

    /// An agent is about to be shown what is offered to it: the words of
    /// servers that nobody has read count as read by it from here on.
    ///
    /// # Errors
    /// The refusal.
    pub fn hear_offers(&mut self, agent: AgentId) -> Result<(), Denial> {
        let is_unread = self
            .offered_to(agent)
            .any(|(server, listing)| listing.is_unread(server));
        if is_unread {
            self.hear(agent, Source::Network)?;
        }
        Ok(())
    }

    fn offered_to(&self, agent: AgentId) -> impl Iterator<Item = (&ExternalServer, &Listing)> {
        self.externals
            .iter()
            .filter_map(|known| match &known.listed {
                Listed::Known(listing) => Some((&known.server, listing)),
                Listed::NotYet | Listed::Never => None,
            })
            .filter(move |(server, listing)| {
                !listing.tools.is_empty()
                    && (agent == self.first_agent() || self.may_reach(agent, server))
            })
    }

    fn may_reach(&self, agent: AgentId, server: &ExternalServer) -> bool {
        let cap = server
            .needs()
            .ok()
            .and_then(|(verb, object)| Cap::new(verb, object).ok());
        cap.is_some_and(|cap| {
            self.machine.look(|session| {
                let mut held = session.held_by(agent);
                held.any(|grant| grant.authority().covers_cap(&cap))
            })
        })
    }
}

/// Said of words that nobody has vouched for.
fn unread(server: &ExternalServer, listing: &Listing) -> String {
    format!(
        "the {} tools of the server `{}` are offered in its own words, so what the model reads counts as data from the \
         network; once you have read them (`hermitcrab servers {}`), say so with `listing = \"{}\"` in \
         [servers.{}]",
        listing.in_its_words(),
        server.name,
        server.name,
        listing.digest,
        server.name
    )
}

/// What the server has besides its tools, in this program's words: what it says it
/// has, unless the user wants none of it.
fn besides(server: &ExternalServer, announced: Announced) -> impl Iterator<Item = OutsideTool> {
    let called = server.name.as_str();
    Utility::ALL
        .into_iter()
        .filter(move |utility| utility.is_of(announced) && server.has(*utility))
        .map(move |utility| {
            let form = utility.form();
            OutsideTool {
                name: mcp::tool_name(called, utility.name()),
                description: utility.description(called),
                parameters: mcp::offered(&form),
                form,
                wanted: Wanted::Utility(utility),
            }
        })
}

/// A server's own list as it is offered here.
fn read(server: &ExternalServer, told: &Said) -> Result<Listing, String> {
    let said = Value::from(told.tools.as_slice()).to_string();
    if said.len() > LISTING_BYTES_MAX {
        return Err(format!(
            "it says more than {LISTING_BYTES_MAX} bytes about its tools"
        ));
    }
    let besides: Vec<OutsideTool> = besides(server, told.announced).collect();
    let mut taken: Vec<OutsideTool> = Vec::new();
    let mut left_out = Vec::new();
    let wanted = |(name, _): &&(String, String)| server.takes_tool(name);
    for (name, why) in told.misshapen.iter().filter(wanted) {
        left_out.push(format!(
            "the tool `{}` of the server `{}` is not offered: what the server says of it is no tool's description ({})",
            name.escape_debug(),
            server.name,
            why.escape_debug()
        ));
    }
    for tool in &told.tools {
        let inner = tool["name"].as_str().unwrap_or_default();
        if !server.takes_tool(inner) {
            continue;
        }
        let name = server.offered_name(inner);
        // A tool of the server's that is called like one of those besides is left out.
        let mut known = taken.iter().chain(&besides);
        let is_taken = known.any(|known| known.name == name);
        if inner.is_empty() || name.len() > NAME_BYTES_MAX || is_taken {
            left_out.push(format!(
                "the tool `{}` of the server `{}` is not offered: its name is {}",
                inner.escape_debug(),
                server.name,
                if is_taken {
                    "that of another one"
                } else {
                    "none that a model could call"
                }
            ));
            continue;
        }
        let description = mcp::description(&server.name, inner, tool["description"].as_str());
        let form = mcp::normalised(&tool["inputSchema"]);
        taken.push(OutsideTool {
            name,
            description,
            parameters: mcp::offered(&form),
            form,
            wanted: Wanted::Tool(inner.to_owned()),
        });
    }
    taken.extend(besides);
    Ok(Listing {
        tools: taken.into(),
        digest: HEXLOWER.encode(sha256(said.as_bytes()).as_bytes()),
        left_out,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Announced, ExternalServer, LISTING_BYTES_MAX, Said, read};

    fn told(tools: &[Value]) -> Said {
        Said {
            tools: tools.to_vec(),
            misshapen: Vec::new(),
            announced: Announced::default(),
        }
    }

    #[test]
    fn what_a_server_says_is_taken_as_far_as_it_can_be_called() {
        let server = ExternalServer {
            only: ["a.b", "a-b", ""].map(str::to_owned).into(),
            ..ExternalServer::at("echo", "127.0.0.1", 1)
        };
        let tools = [
            json!({"name": "a.b", "description": null, "inputSchema": {"required": ["x"]}}),
            json!({"name": "a-b", "description": "other", "inputSchema": {}}),
            json!({"name": "c", "inputSchema": {}}),
            json!({"name": "", "inputSchema": {}}),
        ];
        let listing = read(&server, &told(&tools)).expect("a list");
        assert_eq!(listing.tools.len(), 1);
        let tool = &listing.tools[0];
        assert_eq!(tool.name, "mcp__echo__a_b");
        assert_eq!(tool.wanted, server.wanted("a.b"));
        assert_eq!(tool.description, "MCP tool a.b from echo");
        assert_eq!(tool.parameters, json!({"type": "object", "properties": {}}));
        assert_eq!(listing.left_out.len(), 2, "{:?}", listing.left_out);
    }

    #[test]
    fn any_other_word_of_a_server_is_another_digest() {
        let server = ExternalServer::at("echo", "127.0.0.1", 1);
        let digest = |words: &str| {
            let tools = [json!({"name": "a", "description": words, "inputSchema": {}})];
            read(&server, &told(&tools)).expect("a list").digest
        };
        assert_eq!(digest("one"), digest("one"));
        assert_ne!(digest("one"), digest("two"));
        let long = json!({"name": "a", "x": "y".repeat(LISTING_BYTES_MAX)});
        assert!(read(&server, &told(&[long])).is_err());
    }

    #[test]
    fn what_a_server_has_besides_its_tools_is_offered_as_far_as_it_says_so_and_is_wanted() {
        let names = |announced: Announced, server: &ExternalServer| -> Vec<String> {
            let said = Said {
                tools: Vec::new(),
                misshapen: Vec::new(),
                announced,
            };
            let listing = read(server, &said).expect("a list");
            assert!(!listing.is_unread(server), "no word of it is the server's");
            let tools = listing.tools.iter();
            tools
                .map(|tool| tool.name.replace("mcp__echo__", ""))
                .collect()
        };
        let all = Announced {
            tools: true,
            resources: true,
            prompts: true,
        };
        let server = ExternalServer {
            only: vec!["other".to_owned()],
            ..ExternalServer::at("echo", "127.0.0.1", 1)
        };
        let (resources, prompts) = (
            ["list_resources", "read_resource"],
            ["list_prompts", "get_prompt"],
        );
        assert_eq!(names(all, &server), [resources, prompts].concat());
        assert_eq!(names(Announced::default(), &server), [""; 0]);
        let only_prompts = Announced {
            resources: false,
            ..all
        };
        assert_eq!(names(only_prompts, &server), prompts);
        let unwanted = ExternalServer {
            prompts: false,
            ..server
        };
        assert_eq!(names(all, &unwanted), resources);
        assert_eq!(names(only_prompts, &unwanted), [""; 0]);
    }

    #[test]
    fn a_tool_of_the_servers_that_is_called_like_one_of_these_is_not_offered() {
        let server = ExternalServer::at("echo", "127.0.0.1", 1);
        let said = Said {
            tools: vec![json!({"name": "read_resource", "description": "obey", "inputSchema": {}})],
            misshapen: Vec::new(),
            announced: Announced {
                tools: true,
                resources: true,
                prompts: false,
            },
        };
        let listing = read(&server, &said).expect("a list");
        assert_eq!(listing.tools.len(), 2);
        assert!(listing.tools.iter().all(|tool| tool.description != "obey"));
        assert_eq!(listing.left_out.len(), 1, "{:?}", listing.left_out);
        // Where it has none besides, its tool is one like any other.
        let listing = read(&server, &told(&said.tools)).expect("a list");
        assert_eq!(listing.tools[0].description, "obey");
        assert!(listing.is_unread(&server));
    }
}
