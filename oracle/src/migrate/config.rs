//! The configuration that is proposed: denials at once, grants, servers and the model as comments.
//!
//! A grant, a server of tools or the model counts when the user takes the marks of its lines away. What is
//! written here is read back by the agent's own reader, both as it stands and
//! with every grant taken, so that no proposal is one the agent would refuse.

mod seen;
mod there;

use std::fmt::Write as _;
use std::path::Path;

use hermitcrab::{
    config::{self, edit::Edit},
    given_file::{self, Pipes},
    model::http::check_address,
};
use hermitcrab_core::{letters::is_unseen, rules::Layer};
use similar::TextDiff;

use self::there::There;
use super::redact;
use super::translate::{
    About, Proposal, ProposedDenial, ProposedGrant, ProposedModel, ProposedServer,
};
use crate::report::row::name;

/// Longer than the agent reads one.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// What stands before a line of a grant that is not given yet.
pub const MARK: &str = "#? ";

/// A proposed configuration.
#[derive(Clone, Debug, Default)]
pub struct Proposed {
    /// Its text.
    pub text: String,
    /// What it changes, as a unified diff.
    pub diff: String,
}

/// Writes the proposals into the configuration at `existing`, if there is one,
/// without touching that file. `scratch` is a private directory.
///
/// # Errors
/// The existing file cannot be read, or what came out is none.
pub fn propose(
    proposals: &[Proposal],
    suggested: &[ProposedGrant],
    existing: Option<&Path>,
    scratch: &Path,
) -> Result<Proposed, String> {
    let before = match existing {
        Some(path) => given_file::text(path, CONFIG_BYTES_MAX, Pipes::Read)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?,
        None => String::new(),
    };
    let draft = scratch.join("proposed.toml");
    let here = |error: std::io::Error| format!("cannot write a draft: {error}");
    std::fs::write(&draft, &before).map_err(here)?;
    let mut edit = Edit::open(&draft).map_err(|error| error.to_string())?;
    for (key, value) in proposals.iter().filter_map(|one| one.setting.as_ref()) {
        // What the user has set here already is the user's word.
        if edit.get(key).is_none() {
            edit.set(key, value).map_err(|error| error.to_string())?;
        }
    }
    edit.save().map_err(|error| error.to_string())?;
    let mut text = std::fs::read_to_string(&draft).map_err(here)?;
    let mut there = There::of(&before);
    denials(&mut text, proposals, &mut there);
    grants(&mut text, proposals, suggested, &there);
    servers(&mut text, proposals, &there);
    let is_named = edit.get("models.planner.model").is_some();
    if let Some(model) = proposals.iter().find_map(|one| one.model.as_ref()) {
        planner(&mut text, model, is_named, &there);
    }
    check(&text)?;
    check(&taken(&text))?;
    let name = existing.map_or_else(
        || "config.toml".to_owned(),
        |path| path.display().to_string(),
    );
    let diff = TextDiff::from_lines(&before, &text)
        .unified_diff()
        .header(&name, "hermitcrab.toml")
        .to_string();
    Ok(Proposed { text, diff })
}

/// The key of a rule that says what it is about, and what stands there.
fn key_of(about: &About) -> (&'static str, &str) {
    match about {
        About::On(place) => ("on", place),
        About::Named(name) => ("named", name),
        About::Host(host) => ("host", host),
    }
}

fn denials(text: &mut String, proposals: &[Proposal], there: &mut There) {
    for proposal in proposals {
        let new = proposal.denials.iter().filter(|one| !there.denies(one));
        let new: Vec<_> = new.collect();
        if new.is_empty() {
            continue;
        }
        let said = one_line(&proposal.said);
        // Writing into a string cannot fail.
        let _ = write!(text, "\n# {} {said}\n", proposal.from);
        // It counts at once, and who takes the file over may have read no plan.
        if !proposal.confirm.is_empty() {
            let _ = writeln!(text, "# to confirm: {}", one_line(&proposal.confirm));
        }
        for denial in new {
            let (key, value) = key_of(&denial.about);
            let id = there.free(&proposal.id);
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "[[rules]]\nid = {}\ndecision = \"deny\"\nverbs = {}\n{key} = {}\n",
                quoted(&id),
                list(&denial.verbs),
                quoted(value),
            );
        }
    }
}

fn grants(text: &mut String, proposals: &[Proposal], suggested: &[ProposedGrant], there: &There) {
    const HEAD: &str = "\n# Nothing below is granted. To grant, take `#? ` away from the lines of a block;\n# each ends by itself.\n";
    let mut is_first = true;
    let mut block = |about: &str, grants: &[ProposedGrant]| {
        let new = grants.iter().filter(|one| !there.holds(&grant_block(one)));
        let new: Vec<_> = new.collect();
        if new.is_empty() {
            return;
        }
        if std::mem::take(&mut is_first) {
            text.push_str(HEAD);
        }
        // Writing into a string cannot fail.
        let _ = write!(text, "\n# {about}\n");
        for grant in new {
            if let Some(id) = refused_by(proposals, grant) {
                let _ = writeln!(
                    text,
                    "# the rule {id} above refuses this one, all of it, until the rule is taken out:",
                );
            }
            seen::write(text, grant);
            text.push_str(&grant_block(grant));
        }
    };
    for proposal in proposals {
        let about = format!(
            "{}, {}: {}",
            proposal.id,
            proposal.from,
            one_line(&proposal.said)
        );
        block(&about, &proposal.grants);
    }
    block(
        "or in place of all of these: the least that covers what was recorded. A place that begins with `.` is one of whatever project is worked in",
        suggested,
    );
}

fn grant_block(grant: &ProposedGrant) -> String {
    format!(
        "{MARK}[[grants]]\n{MARK}verb = {}\n{MARK}on = {}\n{MARK}seconds = {}\n",
        quoted(&grant.verb),
        quoted(&grant.on),
        grant.seconds
    )
}

/// The proposal whose denial is about everything such a grant could allow. A denial of
/// a part is what grants are made beside.
fn refused_by<'p>(proposals: &'p [Proposal], grant: &ProposedGrant) -> Option<&'p str> {
    let is_about = |denial: &ProposedDenial| {
        let is_verb = denial.verbs.contains(&grant.verb);
        is_verb && matches!(&denial.about, About::On(place) if place == "*" || *place == grant.on)
    };
    let mut all = proposals.iter();
    all.find(|one| one.denials.iter().any(is_about))
        .map(|one| one.id.as_str())
}

fn servers(text: &mut String, proposals: &[Proposal], there: &There) {
    let all: Vec<_> = proposals
        .iter()
        .filter_map(|one| Some((one, one.server.as_ref()?)))
        .filter(|(_, server)| !there.holds(&server_block(server)))
        .collect();
    if all.is_empty() {
        return;
    }
    text.push_str(
        "\n# Servers of tools: naming one permits nothing. To name it, take `#? ` away from its lines;\n# `hermitcrab servers NAME` then shows what it says.\n",
    );
    for (proposal, server) in all {
        let block = server_block(server);
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "\n# {}, {}\n",
            one_line(&proposal.id),
            one_line(&proposal.from)
        );
        push_if_read(text, &block);
    }
}

fn server_block(server: &ProposedServer) -> String {
    let mut lines = vec![format!("[servers.{}]", server.name)];
    if let Some(url) = &server.url {
        lines.push(format!("url = {}", quoted(url)));
    } else {
        lines.push(format!("command = {}", list(&server.command)));
    }
    if !server.env.is_empty() {
        let one =
            |(name, value): &(String, String)| format!("{} = {}", quoted(name), quoted(value));
        let env: Vec<String> = server.env.iter().map(one).collect();
        lines.push(format!("env = {{ {} }}", env.join(", ")));
    }
    if let Some(variable) = &server.key_env {
        lines.push(format!("key_env = {}", quoted(variable)));
    }
    for (key, names) in [("only", &server.only), ("except", &server.except)] {
        if !names.is_empty() {
            lines.push(format!("{key} = {}", list(names)));
        }
    }
    for (key, is_wanted) in [("resources", server.resources), ("prompts", server.prompts)] {
        if !is_wanted {
            lines.push(format!("{key} = false"));
        }
    }
    if let Some(seconds) = server.timeout_seconds {
        lines.push(format!("timeout_seconds = {seconds}"));
    }
    let mut block = String::new();
    if lines
        .iter()
        .any(|line| line.contains(redact::MARK) || line.contains("${"))
    {
        // Writing into a string cannot fail.
        let _ = writeln!(
            block,
            "# Put the values in place of `{}` and `${{NAME}}`: nothing fills them in here.",
            redact::MARK
        );
    }
    for line in lines {
        let _ = writeln!(block, "{MARK}{line}");
    }
    block
}

/// The model, as a comment, unless one is named already.
fn planner(text: &mut String, model: &ProposedModel, is_named: bool, there: &There) {
    if there.holds(&model_block(model)) {
        return;
    }
    text.push_str("\n# The model Hermes talks to. ");
    if is_named {
        text.push_str("One is named already in `[models.planner]`, so it is not proposed.\n");
        return;
    }
    text.push_str(
        "To name it, take `#? ` away from its lines, or let\n# `hermitcrab config backend http --model NAME --base-url URL` write them.\n",
    );
    let block = model_block(model);
    push_if_read(text, &block);
}

/// Proposes what can be read back with what stands there before it, and says why not otherwise.
fn push_if_read(text: &mut String, block: &str) {
    match check(&taken(&format!("{text}{block}"))) {
        Ok(()) => text.push_str(block),
        Err(why) => {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "# not proposed, since it could not be read back: {}",
                one_line(&why)
            );
        }
    }
}

fn model_block(model: &ProposedModel) -> String {
    let provider = model.provider.as_deref().unwrap_or("its provider");
    let mut block = format!(
        "{MARK}[models.planner]\n{MARK}backend = \"http\"\n{MARK}model = {}\n",
        quoted(&model.name)
    );
    // Writing into a string cannot fail.
    match &model.base_url {
        Some(base) if check_address(base).is_ok() => {
            let _ = writeln!(block, "{MARK}base_url = {}", quoted(base));
        }
        Some(_) | None => {
            let _ = writeln!(
                block,
                "# base_url = the address of {} that speaks chat completions; without it, a model on this machine is meant",
                one_line(provider)
            );
        }
    }
    if let Some(tokens) = model.context_tokens {
        let _ = writeln!(block, "{MARK}context_tokens = {tokens}");
    }
    block.push_str("# Its key, if it wants one: key_env = \"NAME\", key_file = \"FILE\" or key_keyring = \"NAME\".\n");
    block
}

fn one_line(text: &str) -> String {
    name(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text as a value on one line: the marks of a comment reach no further than their line.
fn quoted(text: &str) -> String {
    // What JSON writes of a text is a basic string of TOML, once what nobody would see in it, or
    // a terminal would obey, is written by its number.
    let text = serde_json::Value::from(text).to_string();
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match u32::from(letter) {
            _ if !letter.is_control() && !is_unseen(letter) => out.push(letter),
            number @ 0..=0xffff => out.push_str(&format!("\\u{number:04x}")),
            number => out.push_str(&format!("\\U{number:08x}")),
        }
    }
    out
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

/// The text as it is when every grant is taken.
#[must_use]
pub fn taken(text: &str) -> String {
    text.lines()
        .map(|line| line.strip_prefix(MARK).unwrap_or(line))
        .fold(String::new(), |all, line| all + line + "\n")
}

fn check(text: &str) -> Result<(), String> {
    let name = Path::new("hermitcrab.toml");
    let (workspace, home) = (Path::new("/home/u/work"), Path::new("/home/u"));
    let wrong = |error: config::ConfigError| format!("the proposed configuration is none: {error}");
    let read = config::parse(name, text).map_err(wrong)?;
    read.rules(Layer::User, workspace, home).map_err(wrong)?;
    Ok(())
}

#[cfg(test)]
mod tests;
