//! A server outside, as it is declared: where it is and what is taken from it.

use std::time::Duration;

use hermitcrab_core::{
    authority::{Host, HostPattern, Name, Object, Port, Program as AnyProgram, Verb},
    outcome::{Denial, DenialCode},
    tool::Tool,
};

use super::{
    Program,
    web::{self, Key, Web},
};
use crate::{
    mcp::{self, Announced, Utility, Wanted},
    runtime::words::known_as,
};

/// How long a call may take if nothing is said, the connection included.
pub const CALL_TIME_USUAL: Duration = Duration::from_mins(5);
/// The longest a call may take.
pub const CALL_TIME_MAX: Duration = Duration::from_hours(1);
/// Where what is no text is kept, if nothing is said: where the compared agent keeps it.
pub const KEEP_USUAL: &str = "~/.hermes/cache";
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;

/// A server and the tools that are taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalServer {
    /// What it is called here.
    pub name: String,
    /// Its address or host name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its address, if it speaks HTTP; otherwise messages go over the bare connection, one a line.
    pub web: Option<Web>,
    /// How it is started, if it is a program that speaks over its input and output;
    /// then it has no address.
    pub program: Option<Program>,
    /// Its tools that are offered under their own names, such as `web_search`;
    /// every other one is `mcp__<server>__<tool>`.
    pub tools: Vec<String>,
    /// The tools that are taken from it, as it calls them; all if there are none.
    pub only: Vec<String>,
    /// The tools that are not, even if they are among these.
    pub except: Vec<String>,
    /// Whether its resources are wanted, if it says it has any.
    pub resources: bool,
    /// Whether its prompts are.
    pub prompts: bool,
    /// The directory in which what it sends that is no text is kept, by who may make
    /// files there.
    pub keep: String,
    /// How long a call may take, the connection included.
    pub call_time: Duration,
    /// The digest of what it says about its tools, if the user has read that.
    pub listing: Option<String>,
}

impl ExternalServer {
    /// A server at an address, with all of its tools.
    #[must_use]
    pub fn at(name: &str, host: &str, port: u16) -> Self {
        Self {
            name: name.to_owned(),
            host: host.to_owned(),
            port,
            web: None,
            program: None,
            tools: Vec::new(),
            only: Vec::new(),
            except: Vec::new(),
            resources: true,
            prompts: true,
            keep: KEEP_USUAL.to_owned(),
            call_time: CALL_TIME_USUAL,
            listing: None,
        }
    }

    /// A server that speaks HTTP at an address, with all of its tools.
    ///
    /// # Errors
    /// `bad-arguments`: the address is none.
    pub fn at_url(name: &str, url: &str) -> Result<Self, Denial> {
        let (host, port) = web::place(url)?;
        Ok(Self {
            web: Some(Web {
                url: url.to_owned(),
                key: None,
            }),
            ..Self::at(name, &host, port)
        })
    }

    /// A server that is a program, with all of its tools.
    #[must_use]
    pub fn started(name: &str, program: Program) -> Self {
        Self {
            program: Some(program),
            ..Self::at(name, "", 0)
        }
    }

    /// What proves to it, or by it to others, who asks: nothing of that is to be in what it says.
    pub(super) fn keys(&self) -> Vec<Key> {
        let of_web = self.web.as_ref().and_then(|web| web.key.clone());
        let of_program = self.program.iter().flat_map(Program::secrets);
        of_web.into_iter().chain(of_program).collect()
    }

    /// Where it is, for a person.
    #[must_use]
    pub fn place(&self) -> String {
        if let Some(program) = &self.program {
            return format!("the command {}", program.shown());
        }
        match &self.web {
            Some(web) => web.url.clone(),
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    /// Whether it can be declared at all.
    ///
    /// # Errors
    /// The refusal, with what is wrong.
    pub fn check(&self) -> Result<(), Denial> {
        let wrong = |what: String| Err(Denial::new(DenialCode::BadArguments, what));
        if !is_server_name(&self.name) {
            return wrong(format!(
                "the server's name `{}` is not made of small letters, digits and single `-` or `_` between them",
                self.name.escape_debug()
            ));
        }
        if let Some(tool) = self.tools.iter().find(|tool| !is_tool_name(tool)) {
            return wrong(format!(
                "`{}` of the server `{}` cannot go by its own name: a name is made of letters, digits and `_`, and \
                 is none of this program's tools",
                tool.escape_debug(),
                self.name
            ));
        }
        if self.keep.is_empty() || self.keep.contains('\0') {
            return wrong(format!(
                "`keep` of the server `{}` names no directory",
                self.name
            ));
        }
        if self.call_time.is_zero() || self.call_time > CALL_TIME_MAX {
            return wrong(format!(
                "a call of the server `{}` may take from 1 to {} seconds",
                self.name,
                CALL_TIME_MAX.as_secs()
            ));
        }
        if let Some(program) = &self.program {
            return program.check(&self.name);
        }
        if let Some(web) = &self.web {
            if web::place(&web.url)? != (self.host.clone(), self.port) {
                return wrong(format!(
                    "the address of the server `{}` leads elsewhere than to its host",
                    self.name
                ));
            }
            if web.key.is_some() && !web::may_carry_a_key(&web.url, &self.host) {
                return wrong(format!(
                    "the key of the server `{}` would go over the network unsealed; its address begins with https://, or the server is on this machine",
                    self.name
                ));
            }
        }
        self.peer().map(drop)
    }

    /// What an agent has to hold to ask it anything.
    ///
    /// # Errors
    /// Its host is no name.
    pub(super) fn needs(&self) -> Result<(Verb, Object), Denial> {
        match &self.program {
            Some(_) => Ok((Verb::ProcExec, Object::Program(AnyProgram::AnyInView))),
            None => Ok((Verb::NetConnect, self.peer()?)),
        }
    }

    /// The server as a thing to connect to.
    ///
    /// # Errors
    /// Its host is no name.
    pub fn peer(&self) -> Result<Object, Denial> {
        let name = match known_as(&self.host) {
            Some(name) => name,
            None => Name::parse_caseless(&self.host)
                .map_err(|error| Denial::new(DenialCode::BadArguments, format_args!("{error}")))?,
        };
        Ok(Object::Host(Host {
            name: HostPattern::Exact(name),
            port: Port::Only(self.port),
        }))
    }

    /// What one of its tools is called here.
    #[must_use]
    pub fn offered_name(&self, tool: &str) -> String {
        if self.tools.iter().any(|known| known == tool) {
            tool.to_owned()
        } else {
            mcp::tool_name(&self.name, tool)
        }
    }

    /// Whether this is taken from it.
    #[must_use]
    pub fn takes(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Tool(tool) => self.takes_tool(tool),
            Wanted::Utility(utility) => self.has(*utility),
        }
    }

    /// Whether a tool of it is taken, by its name there.
    #[must_use]
    pub fn takes_tool(&self, tool: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|known| known == tool);
        (self.only.is_empty() || among(&self.only)) && !among(&self.except)
    }

    /// Whether what it has of this besides its tools is wanted.
    #[must_use]
    pub const fn has(&self, utility: Utility) -> bool {
        utility.is_of(Announced {
            tools: true,
            resources: self.resources,
            prompts: self.prompts,
        })
    }

    /// What a name after the server's stands for, as far as names tell.
    #[must_use]
    pub fn wanted(&self, name: &str) -> Wanted {
        match Utility::named(name).filter(|utility| self.has(*utility)) {
            Some(utility) => Wanted::Utility(utility),
            None => Wanted::Tool(name.to_owned()),
        }
    }
}

/// Two `_` are what stands between server and tool in a name.
fn is_server_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.len() <= NAME_BYTES_MAX
        && name
            .split(['-', '_'])
            .all(|part| !part.is_empty() && part.chars().all(plain))
}

fn is_tool_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && mcp::component(name) == name
        && !name.starts_with(mcp::PREFIX)
        && Tool::offered(name).is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::web::Key, ExternalServer, Web};

    fn named(name: &str) -> ExternalServer {
        ExternalServer::at(name, "127.0.0.1", 1)
    }

    #[test]
    fn a_name_can_be_told_from_the_tools_name_behind_it() {
        for (name, is_one) in [
            ("echo", true),
            ("my-files_2", true),
            ("", false),
            ("a__b", false),
            ("_a", false),
            ("a-", false),
            ("Echo", false),
            ("a b", false),
        ] {
            assert_eq!(named(name).check().is_ok(), is_one, "{name}");
        }
    }

    #[test]
    fn no_server_takes_the_name_of_a_tool_that_is_here() {
        for (tool, is_free) in [
            ("web_search", true),
            ("read_file", false),
            ("mcp__a__b", false),
            ("a\"b", false),
            ("", false),
        ] {
            let server = ExternalServer {
                tools: vec![tool.to_owned()],
                ..named("echo")
            };
            assert_eq!(server.check().is_ok(), is_free, "{tool}");
        }
    }

    #[test]
    fn a_call_takes_some_time_and_not_for_ever() {
        for (seconds, is_right) in [(0, false), (1, true), (3600, true), (3601, false)] {
            let server = ExternalServer {
                call_time: Duration::from_secs(seconds),
                ..named("echo")
            };
            assert_eq!(server.check().is_ok(), is_right, "{seconds}");
        }
    }

    #[test]
    fn a_key_goes_only_where_the_address_leads_and_not_unsealed_over_a_network() {
        let with_key = |url: &str| {
            let server = ExternalServer::at_url("echo", url).expect(url);
            let web = server.web.clone().map(|web| Web {
                key: Key::new("k").ok(),
                ..web
            });
            ExternalServer { web, ..server }
        };
        assert_eq!(with_key("https://example.com/mcp").check(), Ok(()));
        assert_eq!(with_key("http://127.0.0.1:1/mcp").check(), Ok(()));
        assert!(with_key("http://example.com/mcp").check().is_err());
        let elsewhere = ExternalServer {
            host: "other.example".to_owned(),
            ..with_key("https://example.com/mcp")
        };
        assert!(elsewhere.check().is_err());
    }

    #[test]
    fn a_tool_goes_by_its_own_name_only_where_that_is_declared() {
        let server = ExternalServer {
            tools: vec!["web_search".to_owned()],
            only: vec!["web_search".to_owned()],
            ..named("echo")
        };
        assert_eq!(server.offered_name("web_search"), "web_search");
        assert_eq!(server.offered_name("get-x"), "mcp__echo__get_x");
        assert!(server.takes_tool("web_search") && !server.takes_tool("get-x"));
        assert!(named("echo").takes_tool("get-x"));
    }

    #[test]
    fn what_is_excepted_is_not_taken_even_if_it_is_named_besides() {
        let but = |only: &[&str]| ExternalServer {
            only: only.iter().map(|&name| name.to_owned()).collect(),
            except: vec!["drop".to_owned()],
            ..named("echo")
        };
        for (only, tool, is_taken) in [
            (&[][..], "get", true),
            (&[], "drop", false),
            (&["get", "drop"], "get", true),
            (&["get", "drop"], "drop", false),
            (&["get"], "put", false),
        ] {
            assert_eq!(but(only).takes_tool(tool), is_taken, "{only:?} {tool}");
        }
    }
}
