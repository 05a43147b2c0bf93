//! Sites, limits and the settings that have no counterpart.

use serde_json::Value;

use super::super::settings::Settings;
use super::{About, Proposal, ProposedDenial};

/// Settings that need nothing here, and why.
const NOTHING: [(&str, &str); 14] = [
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
    (
        "terminal.docker_volumes",
        "there is no container; what a command is to see beside the workspace is opened with `hermitcrab config add-directory`",
    ),
    (
        "terminal.env_passthrough",
        "a command is shown none of these; `NAME=value` before a command gives it one",
    ),
    (
        "terminal.cwd",
        "the workspace is where `hermitcrab` is started, or what `--workspace` says",
    ),
];

/// What something was made of elsewhere.
const MADE: [&str; 6] = [
    "approvals.mode",
    "approvals.cron_mode",
    "approvals.deny",
    "delegation.subagent_auto_approve",
    "security.website_blocklist.enabled",
    "security.website_blocklist.domains",
];
/// Files with more blocked sites.
const SITE_FILES: &str = "security.website_blocklist.shared_files";
const TIMEOUT: &str = "terminal.timeout";

/// Sections beside those, and why nothing is made of them.
const SECTIONS: [(&str, &str); 5] = [
    (
        "agent.max_turns",
        "how many answers a turn may take is not set here: as many as Hermes allows unless told otherwise",
    ),
    (
        "memory",
        "notes are kept where Hermes keeps them, once that is there (`mkdir -p ~/.hermes/memories`) and opened: `hermitcrab config add-directory ~/.hermes/memories`; what changes there is asked about",
    ),
    (
        "toolsets",
        "which tools are offered is not set here: what is held decides what they can do",
    ),
    (
        "fallback_providers",
        "one model is named; where it cannot be reached, the turn ends and says so",
    ),
    (
        "display",
        "how a terminal looks is not set here, but for colours, which `NO_COLOR` turns off",
    ),
];

/// Of so many settings of a section what they say is shown.
const SHOWN_MAX: usize = 20;

pub(super) fn proposals(settings: &Settings) -> Vec<Proposal> {
    let mut all = Vec::new();
    for (place, site) in settings.blocked_sites.iter().enumerate() {
        all.push(blocked(place + 1, site));
    }
    if let Some(files) = settings.values.get(SITE_FILES).filter(|_| blocks(settings)) {
        all.push(Proposal {
            id: "site-files".to_owned(),
            from: SITE_FILES.to_owned(),
            said: files.to_string(),
            in_hermes: "its web tools refuse the sites these files list; a command such as curl does not".to_owned(),
            here: "no rule was made of them: these files were not read. Commands reach only peers that are granted, and these sites are among what can be granted".to_owned(),
            confirm: "whether sites in these files should be denied whatever is granted: each as a rule like those of `domains`".to_owned(),
            ..Proposal::default()
        });
    }
    if let Some(seconds) = timeout(settings) {
        all.push(Proposal {
            id: "timeout".to_owned(),
            from: TIMEOUT.to_owned(),
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
    others(settings, &mut all);
    all
}

fn timeout(settings: &Settings) -> Option<u64> {
    settings.number(TIMEOUT).filter(|seconds| *seconds > 0)
}

fn blocks(settings: &Settings) -> bool {
    settings.is_on("security.website_blocklist.enabled")
        && !is_empty(settings.values.get(SITE_FILES).unwrap_or(&Value::Null))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(below) => below.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether nothing says what becomes of a setting of a section that is shown whole.
fn is_unsaid(settings: &Settings, key: &str, value: &Value) -> bool {
    let is_said = MADE.contains(&key)
        || NOTHING.iter().any(|(start, _)| key.starts_with(start))
        || (key == TIMEOUT && timeout(settings).is_some())
        || (key == SITE_FILES && blocks(settings));
    !is_said && !is_empty(value)
}

/// What stands in sections nothing is made of: none is left out without a word.
fn others(settings: &Settings, all: &mut Vec<Proposal>) {
    let section_of = |key: &str| {
        let mut known = SECTIONS.iter();
        known.find(|(section, _)| {
            let rest = key.strip_prefix(section);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    for (section, why) in SECTIONS {
        let of_it = |(key, value): (&String, &Value)| {
            let is_of_it = section_of(key).is_some_and(|(name, _)| *name == section);
            is_of_it.then(|| format!("{key}: {value}"))
        };
        let said: Vec<String> = settings.others.iter().filter_map(of_it).collect();
        if !said.is_empty() {
            all.push(Proposal {
                id: format!("setting-{section}"),
                from: section.to_owned(),
                said: shown(&said),
                in_hermes: "as its manual says".to_owned(),
                here: why.to_owned(),
                ..Proposal::default()
            });
        }
    }
    let unsaid = settings.values.iter();
    let unsaid = unsaid.filter(|(key, value)| is_unsaid(settings, key, value));
    let strange = settings.others.keys();
    let strange = strange.filter(|key| section_of(key).is_none());
    let mut unknown: Vec<String> = unsaid.map(|(key, _)| key).chain(strange).cloned().collect();
    unknown.sort();
    if !unknown.is_empty() {
        all.push(Proposal {
            id: "without-counterpart".to_owned(),
            from: "(all other settings)".to_owned(),
            said: unknown.join(", "),
            in_hermes: "as its manual says".to_owned(),
            here: "nothing: these have no counterpart".to_owned(),
            ..Proposal::default()
        });
    }
}

fn shown(said: &[String]) -> String {
    let more = match said.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let some: Vec<&str> = said.iter().take(SHOWN_MAX).map(String::as_str).collect();
    some.join(", ") + &more
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::proposals;
    use crate::migrate::settings::Settings;

    #[test]
    fn no_setting_is_left_out_without_a_word() {
        let config = json!({
            "approvals": {"mode": "manual", "deny": [], "new_one": 1},
            "security": {
                "website_blocklist": {"enabled": true, "domains": [], "shared_files": ["more.txt"]},
                "tirith_path": "x",
            },
            "terminal": {
                "timeout": "soon",
                "env_passthrough": ["A_TOKEN"],
                "docker_volumes": ["/srv:/srv"],
                "shell_init_files": ["~/.profile"],
                "docker_extra_args": [],
            },
            "delegation": {"model": "small"},
            "hooks": {"pre_tool_call": [{"command": "check"}]},
        });
        let mut notes = Vec::new();
        let settings = Settings::read(&config, &mut notes);
        let all = proposals(&settings);
        let said: Vec<&str> = all
            .iter()
            .flat_map(|one| one.from.split(", ").chain(one.said.split(", ")))
            .collect();
        for key in [
            "approvals.new_one",
            "security.website_blocklist.shared_files",
            "security.tirith_path",
            "terminal.timeout",
            "terminal.env_passthrough",
            "terminal.docker_volumes",
            "terminal.shell_init_files",
            "delegation.model",
            "hooks.pre_tool_call",
        ] {
            assert!(said.contains(&key), "{key}: {said:?}");
        }
        for key in [
            "approvals.mode",
            "approvals.deny",
            "terminal.docker_extra_args",
        ] {
            assert!(!said.contains(&key), "{key}: {said:?}");
        }
        // The names of variables are no secrets.
        assert!(
            settings.environment.is_empty(),
            "{:?}",
            settings.environment
        );
    }
}
