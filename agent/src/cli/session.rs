//! `session`: what a session that runs holds, and ending it from elsewhere.

mod which;

use std::io::Read as _;

use clap::{Args, Subcommand};
use hermitcrab_core::approval::Asking;

use super::{Trouble, Where, as_json::print_json, open, say, span, state_dir};
use crate::{
    ambient,
    control::{ControlError, GrantRow, Listing, Reply, Request},
    exit,
    runtime::real,
    screen::visible,
};

/// A session that runs.
#[derive(Debug, Args)]
pub struct Session {
    #[command(flatten)]
    place: Where,
    /// Which one, where several run: the beginning of its number, as listed [default: the one that works here]
    #[arg(long, value_name = "NUMBER", global = true)]
    session: Option<String>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show its agents, their grants (also those that ended or lost their granter), and what waits for a yes
    List {
        /// One JSON object for each session
        #[arg(long)]
        json: bool,
    },
    /// End a grant and everything derived from it; what runs on it is killed
    Revoke {
        /// As listed, such as grant4
        #[arg(value_parser = numbered)]
        grant: u32,
        /// Return only when nothing runs on it any more
        #[arg(long)]
        drain: bool,
    },
    /// Grant something for as long as this program's input lasts; without it, until the grant's deadline
    Grant {
        /// Such as fs.modify=./src
        #[arg(value_name = "VERB=PATH")]
        grant: String,
        /// How long at most
        #[arg(long)]
        seconds: Option<u64>,
    },
    /// Pass a grant on to an agent
    Forward {
        /// As listed
        #[arg(value_parser = numbered)]
        grant: u32,
        /// As listed, such as agent1
        #[arg(value_parser = numbered)]
        agent: u32,
    },
    /// End an agent, what it holds, and every agent it started
    EndAgent {
        /// As listed
        #[arg(value_parser = numbered)]
        agent: u32,
    },
    /// From here on ask about what is not granted (prompt), allow what can be taken back (approve_all), or refuse it (reject_all)
    Mode {
        /// Never laxer than the administrator's
        #[arg(value_parser = super::mode)]
        mode: Asking,
    },
    /// Accept what a judge proposes, exactly as listed
    Accept {
        /// As listed, such as proposal0
        #[arg(value_parser = numbered)]
        proposal: u32,
    },
    /// Turn down what a judge proposes
    Decline {
        /// As listed
        #[arg(value_parser = numbered)]
        proposal: u32,
    },
    /// Forget the answers that this session repeats
    Forget,
    /// End it, with everything it holds and everything that runs in it
    End,
}

/// The number in a name such as `grant4`.
fn numbered(text: &str) -> Result<u32, String> {
    text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic())
        .parse()
        .map_err(|_| "it is a name as `hermitcrab session` lists it, such as grant4".to_owned())
}

pub fn session(session: &Session) -> u8 {
    match run(session) {
        Ok(code) => code,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

/// A reader that went away has seen enough.
fn print(line: &str) {
    super::tell(line);
}

fn trouble(error: &ControlError) -> Trouble {
    let code = match error {
        ControlError::NoSession(_) => exit::USAGE,
        ControlError::Io(_) | ControlError::Garbled(_) => exit::INTERNAL,
    };
    (error.to_string(), code)
}

fn run(session: &Session) -> Result<u8, Trouble> {
    let dir = state_dir(session.place.state_dir.as_deref())?;
    let meant = which::Meant {
        number: session.session.as_deref(),
        workspace: session.place.workspace.as_deref().map(real),
    };
    let is_a_list = matches!(session.what, None | Some(What::List { .. }));
    let (found, silent) = which::running(&dir, &meant)?;
    if found.is_empty() {
        let none = ControlError::NoSession(dir);
        if !is_a_list || meant.is_said() {
            return Err(trouble(&none));
        }
        say(&none.to_string());
    }
    if let Some(error) = &silent {
        say(&error.to_string());
    }
    let what = match &session.what {
        None => return Ok(all(&found, false)),
        Some(What::List { json }) => return Ok(all(&found, *json)),
        Some(what) => what,
    };
    // The one that is silent may be the one that works here.
    if silent.is_some() && !meant.is_said() {
        let message = "a session does not answer, so the one you mean is not known; name it with `--session NUMBER`";
        return Err((message.to_owned(), exit::USAGE));
    }
    let current = ambient::places()
        .map(|places| places.current)
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let mut to = which::one(found, &real(&current))?.to;
    let mut ask = |request: &Request| to.ask(request).map_err(|error| trouble(&error));
    let request = match what {
        What::List { .. } => Request::List,
        What::Revoke { grant, drain } => Request::Revoke {
            grant: *grant,
            drain: *drain,
        },
        What::Grant { grant, seconds } => {
            let current = open::ground(&session.place)?.places.current;
            let words = open::words(grant, &current)?;
            let on = match words.on.as_str() {
                "*" => "*".to_owned(),
                on => real(std::path::Path::new(on)).display().to_string(),
            };
            let made = ask(&Request::Grant {
                verb: words.verb,
                on,
                seconds: *seconds,
            })?;
            let Reply::Done { grants } = made else {
                return Ok(tell(made));
            };
            for grant in &grants {
                print(&format!("grant{grant}  until this program's input ends"));
            }
            // What is typed means nothing; its end does.
            let _typed = std::io::stdin().lock().read_to_end(&mut Vec::new());
            let mut code = exit::OK;
            for grant in grants {
                code = code.max(tell(ask(&Request::Revoke {
                    grant,
                    drain: false,
                })?));
            }
            return Ok(code);
        }
        What::Forward { grant, agent } => Request::Forward {
            grant: *grant,
            agent: *agent,
        },
        What::EndAgent { agent } => Request::EndAgent { agent: *agent },
        What::Mode { mode } => Request::Mode {
            mode: mode.to_string(),
        },
        What::Accept { proposal } => {
            let listed = ask(&Request::List)?;
            let Reply::Listing(listing) = listed else {
                return Ok(tell(listed));
            };
            let shown = listing
                .proposals
                .into_iter()
                .find(|shown| shown.proposal == *proposal);
            let Some(shown) = shown else {
                return Err((
                    format!("there is no proposal{proposal} that waits"),
                    exit::REFUSED,
                ));
            };
            print(&format!(
                "proposed by `{}` for agent{}: {}",
                shown.judge.escape_debug(),
                shown.agent,
                shown.what.escape_debug()
            ));
            Request::Accept {
                proposal: *proposal,
                digest: shown.digest,
            }
        }
        What::Decline { proposal } => Request::Decline {
            proposal: *proposal,
        },
        What::Forget => Request::Forget,
        What::End => Request::End,
    };
    let became = match request {
        Request::Forward { .. } | Request::Accept { .. } => "granted",
        _ => "ended",
    };
    Ok(tell_of(ask(&request)?, became))
}

fn tell(reply: Reply) -> u8 {
    tell_of(reply, "ended")
}

/// Says what came of it, and what became of the grants it was about.
fn tell_of(reply: Reply, became: &str) -> u8 {
    match reply {
        Reply::Done { grants } => {
            let names: Vec<String> = grants.iter().map(|grant| format!("grant{grant}")).collect();
            match names.as_slice() {
                [] => print("done"),
                names => print(&format!("done; {became}: {}", names.join(", "))),
            }
            exit::OK
        }
        Reply::Refused { code, why } => {
            say(&format!("refused ({code}): {why}"));
            exit::REFUSED
        }
        Reply::Listing(listing) => {
            list(&listing, "");
            exit::OK
        }
    }
}

/// All that were found, one after the other.
fn all(found: &[which::Running], json: bool) -> u8 {
    for one in found {
        if json {
            print_json(&serde_json::json!(one.listing));
        } else {
            list(&one.listing, &one.whose());
        }
    }
    exit::OK
}

fn list(listing: &Listing, whose: &str) {
    print(&format!(
        "session {} in {}{}, {}, {} call{} running",
        listing.session,
        visible(&listing.workspace),
        whose,
        listing.mode,
        listing.running,
        if listing.running == 1 { "" } else { "s" }
    ));
    for agent in &listing.agents {
        print(&format!(
            "agent{}{}",
            agent.agent,
            if agent.ended { " (ended)" } else { "" }
        ));
        for grant in listing.grants.iter().filter(|row| row.agent == agent.agent) {
            print(&format!("  {}", line(grant)));
        }
    }
    for proposal in &listing.proposals {
        print(&format!(
            "proposal{}  by `{}` for agent{}: {} (`hermitcrab session accept proposal{}`)",
            proposal.proposal,
            proposal.judge.escape_debug(),
            proposal.agent,
            proposal.what.escape_debug(),
            proposal.proposal
        ));
    }
}

fn line(grant: &GrantRow) -> String {
    let uses = grant
        .uses_left
        .map_or_else(String::new, |left| format!(", {left} uses left"));
    let from = grant
        .from
        .map_or_else(String::new, |from| format!(" from grant{from}"));
    let left = match grant.state.as_str() {
        "live" => format!(", {} left", span::words(grant.seconds_left)),
        "orphaned" => format!(
            ", its granter is gone; it ends in {}",
            span::words(grant.seconds_left)
        ),
        _ => String::new(),
    };
    format!(
        "grant{}  {}  {}  (by {}{from}{uses}{left})",
        grant.grant,
        grant.state,
        grant.what.escape_debug(),
        grant.origin
    )
}
