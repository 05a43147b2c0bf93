use super::super::settings::{Server, Settings};
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
    let wider = "# approvals.deny curl *\n# to confirm: whether so much should be denied";
    assert!(made.text.contains(wider), "{}", made.text);
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

#[test]
fn what_was_taken_over_before_is_proposed_no_second_time() {
    let scratch = tempfile::tempdir().unwrap();
    let settings = Settings {
        servers: vec![Server::read(
            "notes",
            &serde_json::json!({"url": "https://notes.example/mcp"}),
        )],
        model: super::super::settings::Model {
            name: Some("m".into()),
            ..Default::default()
        },
        ..settings()
    };
    let suggested = [ProposedGrant::new("fs.delete", "./build")];
    let existing = scratch.path().join("mine.toml");
    let again = |text: &str, settings: &Settings| {
        std::fs::write(&existing, text).unwrap();
        let proposals = translate(settings);
        propose(&proposals, &suggested, Some(&existing), scratch.path()).unwrap()
    };
    let first = again("", &settings).text;
    for before in [first.clone(), taken(&first)] {
        let made = again(&before, &settings);
        assert_eq!(made.diff, "");
        assert_eq!(made.text, before);
    }
    // What is new comes all the same, under a name of its own, and is known by what it denies.
    let mut other = settings.clone();
    other.deny = vec!["cat /srv/x".into(), "* .env*".into()];
    let made = again(&first.replace("\"fs.*\"", " 'fs.*' "), &other);
    let added: Vec<&str> = made
        .diff
        .lines()
        .filter(|line| line.starts_with("+id"))
        .collect();
    assert_eq!(added, ["+id = \"deny-1-2\""], "{}", made.diff);
    assert!(made.diff.contains("+on = \"/srv/x\""), "{}", made.diff);
}
