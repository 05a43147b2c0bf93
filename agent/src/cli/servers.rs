//! `servers`: what servers outside say about their tools, to be read by a person.

use clap::Args;
use serde_json::json;

use super::{Setting, Trouble, as_json::print_json, begin, open, say, tell};
use crate::{
    config::servers::HELP,
    exit,
    runtime::{ExternalServer, GrantWords, Listing, Runtime},
    screen::visible,
    text::pyjson,
};

/// Which server.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Servers {
    #[command(flatten)]
    setting: Setting,
    /// The server to ask, as the configuration names it; without it they are listed
    #[arg(value_name = "SERVER")]
    name: Option<String>,
    /// As JSON; of the list, one for each line
    #[arg(long)]
    json: bool,
}

/// Lists the servers, or asks one for its tools.
pub fn servers(servers: &Servers) -> u8 {
    match done(servers) {
        Ok(code) => code,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn done(servers: &Servers) -> Result<u8, Trouble> {
    let ground = open::seen_from(&servers.setting.place)?;
    let declared = ground.servers();
    let Some(name) = &servers.name else {
        if declared.is_empty() && !servers.json {
            tell(
                "no servers are configured; `hermitcrab servers --help` shows how one is declared",
            );
        }
        for server in declared {
            match servers.json {
                true => print_json(&json!({"name": server.name, "at": server.place()})),
                false => tell(&format!("{}  {}", server.name, server.place())),
            }
        }
        return Ok(exit::OK);
    };
    let Some(server) = declared.into_iter().find(|server| server.name == *name) else {
        let is_left_out = ground
            .config
            .servers(&ground.admin)
            .any(|(known, _)| known == name);
        let name = name.escape_debug();
        if is_left_out {
            let why = format!("the server `{name}` cannot be asked without what it lacks");
            return Err((why, exit::ENVIRONMENT));
        }
        return Err((
            format!(
                "no server `{name}` is configured; `hermitcrab servers` alone lists those that are, and [servers.{name}] with its `url`, its `host` and `port`, or its `command` declares it"
            ),
            exit::USAGE,
        ));
    };
    let mut runtime = begin::session(&servers.setting)?;
    let listing = asked(&mut runtime, &server);
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))?;
    let listing = listing?;
    if servers.json {
        print_json(&as_json(&listing));
    } else {
        shown(&server, &listing);
    }
    Ok(exit::OK)
}

/// Naming the server on the command line is the user's grant to ask it once.
fn asked(runtime: &mut Runtime, server: &ExternalServer) -> Result<Listing, Trouble> {
    let agent = runtime.first_agent();
    let (verb, on) = match &server.program {
        Some(_) => ("proc.exec", "*".to_owned()),
        None => ("net.connect", format!("{}:{}", server.host, server.port)),
    };
    let once = GrantWords {
        uses: Some(1),
        ..GrantWords::new(verb, &on)
    };
    runtime
        .grant(agent, &once)
        .map_err(|error| (error.to_string(), exit::USAGE))?;
    match runtime.listing(agent, server) {
        Ok(Ok(listing)) => Ok(listing),
        Ok(Err(why)) => Err((
            format!(
                "the server `{}` at {} does not say which tools it has: {}",
                server.name,
                server.place(),
                visible(&why)
            ),
            exit::ENVIRONMENT,
        )),
        Err(denial) => Err((denial.to_string(), exit::REFUSED)),
    }
}

fn as_json(listing: &Listing) -> serde_json::Value {
    let tools: Vec<_> = listing
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        })
        .collect();
    json!({"listing": listing.digest, "tools": tools})
}

fn shown(server: &ExternalServer, listing: &Listing) {
    for tool in &*listing.tools {
        println!("{}", tool.name);
        for line in tool.description.lines() {
            tell(&format!("    {}", visible(line)));
        }
        println!("    {}", visible(&pyjson::text(&tool.parameters)));
    }
    for line in &listing.left_out {
        say(line);
    }
    if !listing.has_its_words() {
        tell("Nothing of this is the server's; it is all in this program's own words.");
    } else if server.listing.as_ref() == Some(&listing.digest) {
        println!("This is what the configuration says you have read.");
    } else {
        tell(&format!(
            "If you have read this and trust it, put into [servers.{}]:\n    listing = \"{}\"",
            server.name, listing.digest
        ));
    }
}
