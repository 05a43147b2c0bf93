//! `explain`: what would become of an effect, and by which rule.

use clap::Args;
use serde_json::{Value, json};

use super::{
    Setting, Trouble,
    as_json::print_json,
    open::{self, Ground},
    say, tell,
};
use crate::{
    exit,
    runtime::{Explained, GrantWords, Runtime},
};

/// What to explain.
#[derive(Debug, Args)]
pub struct Explain {
    #[command(flatten)]
    setting: Setting,
    /// Such as fs.modify, or fs.* for all five on files
    verb: String,
    /// A path, or * for any program on a copy
    #[arg(value_name = "OBJECT")]
    on: String,
    /// One JSON object a line, for programs
    #[arg(long)]
    json: bool,
}

/// Says it; the exit code is that of a refusal only if it would be refused.
pub fn explain(explain: &Explain) -> u8 {
    match explained(explain) {
        Ok(code) => code,
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn explained(explain: &Explain) -> Result<u8, Trouble> {
    let ground = open::ground(&explain.setting.place)?;
    let mut runtime = open::imagine(&explain.setting)?;
    let on = open::object(&explain.verb, &explain.on, &ground.places.current);
    let words = GrantWords::new(&explain.verb, &on);
    let is_open = runtime.has_open(&words);
    let (code, lacks_a_grant) = told_of(&mut runtime, &words, explain.json)?;
    if lacks_a_grant && !explain.json {
        if !is_open {
            tell(
                "so it is once the place is open; until then a model's call there is refused without a question",
            );
        }
        let grant = format!("{}={}", explain.verb, explain.on.escape_debug());
        tell(&format!(
            "`--grant {grant}` grants it for one run, `hermitcrab caps grant {grant}` for this workspace"
        ));
    }
    Ok(code)
}

/// The same of the session one is in, with what it holds and its mode; nothing where that would
/// open a place in it, for who asks what would be asked about changes nothing by it.
pub(super) fn in_session(
    runtime: &mut Runtime,
    ground: &Ground,
    (verb, on): (&str, &str),
) -> Result<Option<u8>, Trouble> {
    let object = open::object(verb, on, &ground.places.current);
    let words = GrantWords::new(verb, &object);
    if !runtime.has_open(&words) {
        return Ok(None);
    }
    let (code, lacks_a_grant) = told_of(runtime, &words, false)?;
    if lacks_a_grant {
        let grant = format!("{verb}={}", on.escape_debug());
        tell(&format!(
            "`grant {grant}` grants it for this session, `caps grant {grant}` for longer"
        ));
    }
    Ok(Some(code))
}

/// Tells of each effect; the exit code, and whether a grant would do something about one.
fn told_of(
    runtime: &mut Runtime,
    words: &GrantWords,
    is_json: bool,
) -> Result<(u8, bool), Trouble> {
    let agent = runtime.first_agent();
    let lines = runtime
        .explain(agent, words)
        .map_err(|error| (error.to_string(), exit::USAGE))?;
    let (mut code, mut lacks_a_grant) = (exit::OK, false);
    for explained in lines {
        match is_json {
            true => print_json(&as_json(&explained)),
            false => tell(&explained.to_string()),
        }
        lacks_a_grant |= explained.lacks_a_grant();
        if explained.is_refused() {
            code = exit::REFUSED;
        }
    }
    Ok((code, lacks_a_grant))
}

/// One effect: `would` be allowed (`allow`), asked about (`ask`) or refused (`deny`), by which
/// `rule` and `grant`, and where it is not allowed why (`code`) and what to do (`next`).
fn as_json(explained: &Explained) -> Value {
    let why = &explained.explanation;
    json!({
        "what": explained.what,
        "would": why.stance.to_string(),
        "rule": why.rule.to_string(),
        "grant": why.grant.map(|grant| grant.to_string()),
        "code": why.code.map(|code| code.as_str()),
        "why": why.code.map(|code| code.wording()),
        "next": why.code.map(|code| code.next_step()),
        "grant_would_do": explained.lacks_a_grant(),
    })
}
