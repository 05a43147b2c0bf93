//! The configuration that is proposed: denials at once, grants, servers and the model as comments.
//!
//! A grant, a server of tools or the model counts when the user takes the marks of its lines away. What is
//! written here is read back by the agent's own reader, both as it stands and
//! with every grant taken, so that no proposal is one the agent would refuse.

mod seen;

use std::fmt::Write as _;
use std::path::Path;

use hermitcrab::{
    config::{self, edit::Edit},
    model::http::check_address,
};
use hermitcrab_core::{letters::is_unseen, rules::Layer};
use similar::TextDiff;

use super::redact;
use super::translate::{
    About, Proposal, ProposedDenial, ProposedGrant, ProposedModel, ProposedServer,
};
use crate::report::row::name;

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
        Some(path) => std::fs::read_to_string(path)
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
    denials(&mut text, proposals);
    grants(&mut text, proposals, suggested);
    servers(&mut text, proposals);
    let is_named = edit.get("models.planner.model").is_some();
    if let Some(model) = proposals.iter().find_map(|one| one.model.as_ref()) {
        planner(&mut text, model, is_named);
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

fn denials(text: &mut String, proposals: &[Proposal]) {
    for proposal in proposals.iter().filter(|one| !one.denials.is_empty()) {
        let said = one_line(&proposal.said);
        // Writing into a string cannot fail.
        let _ = write!(text, "\n# {} {said}\n", proposal.from);
        for (place, denial) in proposal.denials.iter().enumerate() {
            let (key, value) = match &denial.about {
                About::On(place) => ("on", place),
                About::Named(name) => ("named", name),
                About::Host(host) => ("host", host),
            };
            let id = if place == 0 {
                proposal.id.clone()
            } else {
                format!("{}-{}", proposal.id, place + 1)
            };
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

fn grants(text: &mut String, proposals: &[Proposal], suggested: &[ProposedGrant]) {
    text.push_str(
        "\n# Nothing below is granted. To grant, take `#? ` away from the lines of a block;\n# each ends by itself.\n",
    );
    let mut block = |about: &str, grants: &[ProposedGrant]| {
        if grants.is_empty() {
            return;
        }
        // Writing into a string cannot fail.
        let _ = write!(text, "\n# {about}\n");
        for grant in grants {
            if let Some(id) = refused_by(proposals, grant) {
                let _ = writeln!(
                    text,
                    "# the rule {id} above refuses this one, all of it, until the rule is taken out:",
                );
            }
            seen::write(text, grant);
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "{MARK}[[grants]]\n{MARK}verb = {}\n{MARK}on = {}\n{MARK}seconds = {}\n",
                quoted(&grant.verb),
                quoted(&grant.on),
                grant.seconds
            );
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

fn servers(text: &mut String, proposals: &[Proposal]) {
    let all: Vec<_> = proposals
        .iter()
        .filter_map(|one| Some((one, one.server.as_ref()?)))
        .collect();
    if all.is_empty() {
        return;
    }
    text.push_str(
        "\n# Servers of tools: naming one permits nothing. To name it, take `#? ` away from its lines;\n# `hermitcrab servers NAME` then shows what it says.\n",
    );
    for (proposal, server) in all {
        let block = server_block(server);
        let with_it = taken(&format!("{text}{block}"));
        // Writing into a string cannot fail, here and below.
        let _ = write!(
            text,
            "\n# {}, {}\n",
            one_line(&proposal.id),
            one_line(&proposal.from)
        );
        match check(&with_it) {
            Ok(()) => text.push_str(&block),
            Err(why) => {
                let _ = writeln!(
                    text,
                    "# not proposed, since it could not be read back: {}",
                    one_line(&why)
                );
            }
        }
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
fn planner(text: &mut String, model: &ProposedModel, is_named: bool) {
    text.push_str("\n# The model Hermes talks to. ");
    if is_named {
        text.push_str("One is named already in `[models.planner]`, so it is not proposed.\n");
        return;
    }
    text.push_str(
        "To name it, take `#? ` away from its lines, or let\n# `hermitcrab config backend http --model NAME --base-url URL` write them.\n",
    );
    let provider = model.provider.as_deref().unwrap_or("its provider");
    let mut block = format!(
        "{MARK}[models.planner]\n{MARK}backend = \"http\"\n{MARK}model = {}\n",
        quoted(&model.name)
    );
    // Writing into a string cannot fail, here and below.
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
    match check(&taken(&format!("{text}{block}"))) {
        Ok(()) => text.push_str(&block),
        Err(why) => {
            let _ = writeln!(
                text,
                "# not proposed, since it could not be read back: {}",
                one_line(&why)
            );
        }
    }
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
mod tests {
    use super::super::settings::Settings;
    use super::super::translate::translate;
    use super::{ProposedGrant, propose, taken};
    use std::path::Path;

    fn settings() -> Settings {
        Settings {
            mode: Some("off".into()),
            allowlist: vec!["recursive delete".into(), "a \"quoted\"\nthing".into()],
            deny: vec!["curl *".into(), "cat ~/.ssh/*".into(), "* .env*".into()],
            blocked_sites: vec!["ads.example.com".into()],
            ..Settings::default()
        }
    }

    #[test]
    fn denials_count_at_once_and_grants_only_when_they_are_taken() {
        let scratch = tempfile::tempdir().unwrap();
        let proposals = translate(&settings());
        let made = propose(&proposals, &[], None, scratch.path()).unwrap();
        let read = |text: &str| hermitcrab::config::parse(Path::new("c.toml"), text).unwrap();
        let workspace = Path::new("/w");
        assert_eq!(read(&made.text).grants(workspace).count(), 0);
        let rules = |text: &str| {
            read(text)
                .rules(
                    hermitcrab_core::rules::Layer::User,
                    workspace,
                    Path::new("/h"),
                )
                .unwrap()
                .len()
        };
        assert_eq!(rules(&made.text), 5);
        let granted: Vec<_> = read(&taken(&made.text)).grants(workspace).collect();
        assert_eq!(granted.len(), 3);
        assert!(
            granted
                .iter()
                .all(|grant| grant.lifetime.is_some() && grant.on == "/w")
        );
        assert!(made.diff.contains("+[[rules]]"), "{}", made.diff);
    }

    #[test]
    fn a_suggested_grant_that_a_proposed_rule_refuses_says_so() {
        let scratch = tempfile::tempdir().unwrap();
        let with = |glob: &str| {
            let settings = Settings {
                deny: vec![glob.into()],
                ..Settings::default()
            };
            let suggested = [
                ProposedGrant::new("fs.delete", "./build"),
                ProposedGrant::new("fs.create", "./build"),
            ];
            propose(&translate(&settings), &suggested, None, scratch.path())
                .unwrap()
                .text
        };
        let text = with("rm *");
        let told = "# the rule deny-1 above refuses this one";
        assert_eq!(text.matches(told).count(), 1, "{text}");
        let (_, after) = text.split_once(told).unwrap();
        assert!(
            after.lines().nth(2).unwrap().contains("fs.delete"),
            "{text}"
        );
        assert!(!with("rm -rf /*").contains("refuses this one"));
        // Taken as it is, it names the place below the workspace it is used in.
        let config = hermitcrab::config::parse(Path::new("c.toml"), &taken(&text)).unwrap();
        let places: Vec<_> = config
            .grants(Path::new("/w"))
            .map(|words| words.on)
            .collect();
        assert!(places.contains(&"/w/build".to_owned()), "{places:?}");
        assert!(
            places.iter().all(|place| place.starts_with("/w")),
            "{places:?}"
        );
    }

    #[test]
    fn a_line_break_in_a_place_ends_no_comment() {
        let scratch = tempfile::tempdir().unwrap();
        let evil = "#\n[[grants]]\nverb = \"fs.*\"\non = \".\"\n#";
        let made = propose(
            &[],
            &[ProposedGrant::new("fs.create", evil)],
            None,
            scratch.path(),
        )
        .unwrap();
        let read = |text: &str| hermitcrab::config::parse(Path::new("c.toml"), text).unwrap();
        let workspace = Path::new("/w");
        assert_eq!(read(&made.text).grants(workspace).count(), 0);
        let granted: Vec<_> = read(&taken(&made.text)).grants(workspace).collect();
        assert_eq!(granted.len(), 1);
        assert!(granted[0].on.contains(evil), "{}", granted[0].on);
        assert_eq!(super::quoted("a\u{7f}\u{1}"), "\"a\\u007f\\u0001\"");
    }

    #[test]
    fn what_the_user_has_set_already_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let existing = scratch.path().join("mine.toml");
        std::fs::write(&existing, "mode = \"reject_all\"\n[limits]\npids_max = 9\n").unwrap();
        let proposals = translate(&settings());
        let made = propose(&proposals, &[], Some(&existing), scratch.path()).unwrap();
        assert!(
            made.text.starts_with("mode = \"reject_all\""),
            "{}",
            made.text
        );
        assert!(!made.diff.contains("-mode"), "{}", made.diff);
        assert_eq!(
            std::fs::read_to_string(&existing).unwrap(),
            "mode = \"reject_all\"\n[limits]\npids_max = 9\n"
        );
    }

    #[test]
    fn servers_are_comments_that_can_be_taken_and_the_users_own_stay() {
        let scratch = tempfile::tempdir().unwrap();
        let existing = scratch.path().join("mine.toml");
        std::fs::write(&existing, "[servers.mine]\nhost = \"h\"\nport = 1\n").unwrap();
        let words = serde_json::json!({"mcp_servers": {
            "files": {"command": "npx", "args": ["-y", "files", "${ROOT}"], "env": {"LOG_DIR": "x \"y\""},
                      "timeout": 20, "tools": {"exclude": ["drop"], "prompts": "off"}},
            "Mine": {"url": "https://x.example/mcp"},
            "odd": {"url": "ftp://x.example"},
        }});
        let settings = Settings::read(&words, &mut Vec::new());
        let made = propose(&translate(&settings), &[], Some(&existing), scratch.path()).unwrap();
        let read = |text: &str| {
            let config = hermitcrab::config::parse(Path::new("c.toml"), text).unwrap();
            let none = hermitcrab::config::Config::default();
            let names = config.servers(&none).map(|(name, _)| name.to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(read(&made.text), ["mine"]);
        let all = taken(&made.text);
        assert_eq!(read(&all), ["files", "mine"]);
        for line in [
            r#"command = ["npx", "-y", "files", "${ROOT}"]"#,
            "except = [\"drop\"]",
            "prompts = false",
            "timeout_seconds = 20",
        ] {
            assert!(all.lines().any(|known| known == line), "{line}: {all}");
        }
        assert_eq!(
            made.text.matches("# not proposed").count(),
            2,
            "{}",
            made.text
        );
        assert!(!all.contains("x \\\"y"), "{all}");
        assert_eq!(
            made.text.matches("# Put the values").count(),
            1,
            "{}",
            made.text
        );
    }

    fn of(words: serde_json::Value) -> Settings {
        Settings::read(&words, &mut Vec::new())
    }

    #[test]
    fn the_model_is_a_comment_that_can_be_taken_unless_one_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let settings = of(serde_json::json!({"model": {
            "default": "some/model", "provider": "openrouter", "api_key": "k-1",
            "base_url": "https://api.example.com/v1", "context_length": 64000}}));
        let proposals = translate(&settings);
        let made = propose(&proposals, &[], None, scratch.path()).unwrap();
        let named = |text: &str| {
            let config = hermitcrab::config::parse(Path::new("c.toml"), text).unwrap();
            let words = config.models().planner.clone()?;
            Some((words.model.clone(), words.base_url, words.context_tokens))
        };
        assert_eq!(named(&made.text), None);
        let base = Some("https://api.example.com/v1".to_owned());
        let expected = ("some/model".to_owned(), base, Some(64000));
        assert_eq!(named(&taken(&made.text)), Some(expected));
        assert!(made.text.contains("config backend http"), "{}", made.text);
        let plan = proposals.iter().find(|one| one.id == "model").unwrap();
        assert!(plan.confirm.contains("`hermitcrab config backend http "));
        assert!(
            plan.here.ends_with("without a counterpart: api_key"),
            "{}",
            plan.here
        );
        assert_eq!(
            settings.environment,
            [("api_key".to_owned(), "k-1".to_owned())]
        );

        let existing = scratch.path().join("mine.toml");
        let mine = "[models.planner]\nmodel = \"m\"\n";
        std::fs::write(&existing, mine).unwrap();
        let made = propose(&proposals, &[], Some(&existing), scratch.path()).unwrap();
        assert_eq!(
            named(&taken(&made.text)),
            Some(("m".to_owned(), None, None))
        );

        // A name alone, and an address that is none.
        for model in [
            serde_json::json!("m\n[models]"),
            serde_json::json!({"default": "m\n[models]", "base_url": "https://k@h", "context_length": 0}),
        ] {
            let settings = of(serde_json::json!({"model": model}));
            let made = propose(&translate(&settings), &[], None, scratch.path()).unwrap();
            let name = named(&taken(&made.text)).map(|(name, base, _)| (name, base));
            let is_zero = settings.model.context_tokens == Some(0);
            let expected = (!is_zero).then(|| ("m\n[models]".to_owned(), None));
            assert_eq!(name, expected, "{}", made.text);
        }
    }

    #[test]
    fn a_setting_without_a_counterpart_is_named() {
        let settings = of(serde_json::json!({
            "_config_version": 33,
            "agent": {"max_turns": 90, "verbose": true},
            "memory": {"memory_enabled": true},
            "toolsets": ["hermes-cli"],
            "fallback_providers": [{"provider": "p", "api_key": "sesame-sesame"}],
            "display": {"compact": true},
            "tts": {"provider": "edge"},
        }));
        let proposals = translate(&settings);
        let said = |id: &str| {
            let found = proposals.iter().find(|one| one.id == id);
            found.map(|one| one.said.clone()).unwrap_or_default()
        };
        assert_eq!(said("setting-agent.max_turns"), "agent.max_turns: 90");
        assert_eq!(said("setting-memory"), "memory.memory_enabled: true");
        assert_eq!(said("setting-toolsets"), "toolsets: [\"hermes-cli\"]");
        assert!(said("setting-fallback_providers").contains("\"provider\":\"p\""));
        assert_eq!(said("setting-display"), "display.compact: true");
        assert_eq!(said("without-counterpart"), "agent.verbose, tts.provider");
        assert!(
            settings
                .environment
                .iter()
                .any(|(_, secret)| secret == "sesame-sesame")
        );
    }
}
