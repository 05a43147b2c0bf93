//! Sites, limits and the settings that have no counterpart.

use super::super::settings::Settings;
use super::{About, Proposal, ProposedDenial};

/// Settings that need nothing here, and why.
const NOTHING: [(&str, &str); 11] = [
    (
        "approvals.timeout",
        "an unanswered question is refused in the end here, too",
    ),
    (
        "approvals.mcp_reload_confirm",
        "tools of other servers are listed in the configuration and not reloaded by a model",
    ),
    (
        "approvals.destructive_slash_confirm",
        "`undo` takes commits back, so there is nothing to confirm",
    ),
    (
        "security.redact_secrets",
        "what a model is given has secrets masked, always",
    ),
    (
        "security.tirith",
        "no scanner looks at spelling; effects are compared with grants",
    ),
    (
        "security.allow_private_urls",
        "commands reach the peers that are granted, private or not, and no others",
    ),
    (
        "security.allow_lazy_installs",
        "the agent installs nothing at run time",
    ),
    (
        "code_execution.mode",
        "code runs on a copy of the workspace like any command",
    ),
    (
        "delegation.max",
        "how many children there are decides nothing about what they may do",
    ),
    (
        "tool_output.",
        "results are cut at the sizes Hermes ships with",
    ),
    (
        "terminal.backend",
        "commands run in a sandbox of this machine; other backends are not there",
    ),
];

pub(super) fn proposals(settings: &Settings) -> Vec<Proposal> {
    let mut all = Vec::new();
    for (place, site) in settings.blocked_sites.iter().enumerate() {
        all.push(blocked(place + 1, site));
    }
    if let Some(seconds) = settings
        .number("terminal.timeout")
        .filter(|seconds| *seconds > 0)
    {
        all.push(Proposal {
            id: "timeout".to_owned(),
            from: "terminal.timeout".to_owned(),
            said: seconds.to_string(),
            in_hermes: "a command is ended after this many seconds, unless the model asks for more"
                .to_owned(),
            here: "no command runs longer, whatever is asked for".to_owned(),
            setting: Some(("limits.timeout_seconds".to_owned(), seconds.to_string())),
            ..Proposal::default()
        });
    }
    for (key, value) in &settings.values {
        if let Some((_, why)) = NOTHING.iter().find(|(start, _)| key.starts_with(start)) {
            all.push(Proposal {
                id: format!("setting-{key}"),
                from: key.clone(),
                said: value.to_string(),
                in_hermes: "as its manual says".to_owned(),
                here: (*why).to_owned(),
                ..Proposal::default()
            });
        }
    }
    all
}

fn blocked(number: usize, site: &str) -> Proposal {
    let name = site
        .trim_start_matches("https://")
        .trim_start_matches("http://")
        .trim_start_matches("*.")
        .split(['/', ':'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let plain = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    let hosts = if plain {
        vec![format!("{name}:*"), format!("*.{name}:*")]
    } else {
        Vec::new()
    };
    Proposal {
        id: format!("site-{number}"),
        from: "security.website_blocklist".to_owned(),
        said: site.to_owned(),
        in_hermes: "its web tools refuse the site; a command such as curl does not".to_owned(),
        here: if plain {
            "no command reaches the name or one below it, whatever is granted"
        } else {
            "it is no plain name, so no rule was made of it; commands reach only peers that are granted by name"
        }
        .to_owned(),
        denials: hosts
            .into_iter()
            .map(|host| ProposedDenial {
                verbs: vec!["net.connect".to_owned()],
                about: About::Host(host),
            })
            .collect(),
        ..Proposal::default()
    }
}
