//! Which names are asked about each time, and which are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    authority::Verb,
    digest::Digest,
    path::RelPath,
    rules::{Isolation, Rules, Sensitivity},
    tool::Tool,
};
use proptest::prelude::*;
use support::path;

pub(crate) fn is_asked(tool: Tool, verb: Verb, place: &str) -> bool {
    let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
    let dir = rules.add_dir(RelPath::root()).unwrap();
    let action = Action::on_path(verb, dir, path(place), Digest::NONE).unwrap();
    rules.sensitivity(tool, &action) != Sensitivity::Plain
}

#[test]
fn files_made_to_hold_secrets_are_asked_about_for_reading_and_writing() {
    for place in [
        "home/u/proj/.env",
        "home/u/proj/.ENV",
        "home/u/proj/.env.local",
        "home/u/proj/.env.production",
        "home/u/proj/.envrc",
        "home/u/.ssh/id_rsa",
        "home/u/.ssh/config",
        "home/u/.aws/credentials",
        "home/u/.kube/config",
        "home/u/.docker/config.json",
        "home/u/.config/gh/hosts.yml",
        "home/u/.config/gcloud/x",
        "home/u/.netrc",
        "home/u/.git-credentials",
        "home/u/.hermes/auth.json",
        "srv/keys/id_ed25519",
        "etc/shadow",
    ] {
        for verb in [Verb::FsRead, Verb::FsCreate, Verb::FsModify, Verb::FsDelete] {
            assert!(is_asked(Tool::Directory, verb, place), "{verb} {place}");
        }
        assert!(!is_asked(Tool::Directory, Verb::FsList, place), "{place}");
    }
}

#[test]
fn ordinary_files_are_not_asked_about() {
    for place in [
        "home/u/proj/src/main.rs",
        "home/u/proj/.env.example",
        "home/u/proj/.env.sample",
        "home/u/proj/env",
        "home/u/proj/.environment",
        "home/u/proj/.gitignore",
        "home/u/proj/.github/workflows/ci.yml",
        "home/u/proj/.config/settings.json",
        "home/u/proj/.vscode/settings.json",
        "home/u/proj/tasks.json",
        "home/u/proj/vimrc",
        "home/u/proj/etc/passwd",
        "home/u/proj/ssh/id.txt",
        "home/u/proj/docs/credentials.md",
        "tmp/t/x",
        "srv/data/db.sqlite",
        "var/tmp/x",
    ] {
        for verb in Verb::FILES {
            assert!(!is_asked(Tool::WriteFile, verb, place), "{verb} {place}");
        }
    }
}

#[test]
fn what_runs_later_by_itself_is_asked_about_before_it_is_changed() {
    for place in [
        "home/u/.bashrc",
        "home/u/.profile",
        "home/u/.gitconfig",
        "home/u/.bash_aliases",
        "home/u/.config/fish/conf.d/x.fish",
        "home/u/.config/environment.d/x.conf",
        "home/u/.vimrc",
        "home/u/.vim/plugin/x.vim",
        "home/u/proj/.exrc",
        "home/u/proj/.gdbinit",
        "home/u/proj/.Rprofile",
        "home/u/proj/.irbrc",
        "home/u/.psqlrc",
        "home/u/.inputrc",
        "home/u/.config/git/config",
        "home/u/.config/git/hooks/pre-commit",
        "home/u/proj/.husky/pre-commit",
        "home/u/proj/.vscode/tasks.json",
        "home/u/.config/autostart/x.desktop",
        "home/u/.config/systemd/user/x.service",
        "home/u/.hermes/config.yaml",
        "home/u/.hermes/scripts/report.py",
        "home/u/proj/.git/hooks/pre-commit",
        "home/u/proj/.git/config",
        "home/u/proj/.git/modules/x/config",
        "home/u/proj/.git/modules/x/hooks/post-checkout",
        "home/u/proj/.git/config.worktree",
        "home/u/proj/.git/commondir",
        "home/u/proj/.git/remotes/origin",
        "home/u/proj/.git/branches/origin",
        "home/u/proj/.git/modules/x/remotes/a/b",
        "home/u/proj/.git/modules/refs/remotes/origin",
        "home/u/proj/it.git/Branches/origin",
        "home/u/proj/.git",
        "etc/passwd",
        "etc/sudoers.d/x",
        "boot/x",
        "usr/local/bin/x",
        "usr/lib/systemd/system/x.service",
        "var/spool/cron/crontabs/u",
    ] {
        for tool in [
            Tool::Terminal,
            Tool::WriteFile,
            Tool::Patch,
            Tool::Directory,
        ] {
            assert!(is_asked(tool, Verb::FsModify, place), "{tool} {place}");
            assert!(is_asked(tool, Verb::FsCreate, place), "{tool} {place}");
        }
        assert!(!is_asked(Tool::ReadFile, Verb::FsRead, place), "{place}");
    }
}

/// Whether a command is asked about for this effect with this content.
#[test]
fn a_link_stands_for_what_is_found_behind_its_name() {
    use hermitcrab_core::rules::behind_a_link;
    let behind = |place: &str| {
        behind_a_link(&RelPath::parse(place.as_bytes()).unwrap()).map(|found| found.to_string())
    };
    assert_eq!(
        behind("proj/.vscode").as_deref(),
        Some("proj/.vscode/tasks.json")
    );
    assert_eq!(behind(".Config").as_deref(), Some(".Config/autostart"));
    assert_eq!(behind("proj/.git").as_deref(), Some("proj/.git/hooks"));
    // Also where more than one name follows.
    assert_eq!(behind("proj/.hg").as_deref(), Some("proj/.hg/hgrc"));
    for (link, found) in [
        ("proj/.jj", "proj/.jj/repo/config.toml"),
        ("proj/.jj/repo", "proj/.jj/repo/config.toml"),
        ("proj/_darcs", "proj/_darcs/prefs/defaults"),
    ] {
        assert_eq!(behind(link).as_deref(), Some(found), "{link}");
        assert!(is_asked(Tool::Terminal, Verb::FsCreate, found), "{found}");
    }
    for place in ["proj/vscode", "proj/.vscode/x", "hooks", "a", "proj/repo"] {
        assert_eq!(behind(place), None, "{place}");
    }
    let found = RelPath::parse(behind("home/u/.hermes").unwrap().as_bytes()).unwrap();
    assert!(is_asked(Tool::Terminal, Verb::FsCreate, &found.to_string()));
}

#[test]
fn a_tools_own_directory_is_its_own_and_no_other_tools() {
    let owners = [
        (Tool::Memory, "home/u/.hermes/memories/MEMORY.md"),
        (Tool::SkillManage, "home/u/.hermes/skills/x/SKILL.md"),
        (Tool::Cronjob, "home/u/.hermes/cron/jobs.json"),
    ];
    for (owner, place) in owners {
        for (tool, _) in owners {
            let asked = is_asked(tool, Verb::FsModify, place);
            assert_eq!(asked, tool != owner, "{tool} {place}");
        }
        assert!(is_asked(Tool::WriteFile, Verb::FsModify, place), "{place}");
    }
}

/// Names that mean something to the rules, on their own or in a row.
const TELLING: &[&str] = &[
    ".ssh",
    ".SSH",
    ".config",
    "gh",
    "mcp-tokens",
    "MCP-tokens",
    "mcp-token",
    "m",
    ".hermes",
    "auth",
    "auth.json",
    ".env",
    ".env.local",
    ".env.sample",
    ".git",
    "hooks",
    "config",
    "a.pem",
    "cert.pem",
    "id_rsa",
    "plain.txt",
    "w",
    "etc",
    ".",
    "..",
    "",
    "a/b",
];

proptest! {
    #[test]
    fn names_of_one_directory_are_judged_as_each_file_by_itself(
        root in prop::collection::vec(prop::sample::select(TELLING), 0..3),
        way in prop::collection::vec(prop::sample::select(TELLING), 0..4),
        guarded in prop::collection::vec(prop::sample::select(TELLING), 0..5),
        is_guarded: bool,
        verb in prop::sample::select(&[
            Verb::FsList, Verb::FsRead, Verb::FsCreate, Verb::FsModify, Verb::FsDelete,
        ][..]),
        tool in prop::sample::select(&[Tool::SearchFiles, Tool::Terminal, Tool::Memory][..]),
    ) {
        let joined = |names: &[&str]| {
            names.iter().try_fold(RelPath::root(), |path, name| path.child(name.as_bytes()))
        };
        let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
        let (Ok(root), Ok(way), Ok(guarded)) = (joined(&root), joined(&way), joined(&guarded)) else {
            return Ok(());
        };
        if is_guarded {
            rules.guard_place(guarded).unwrap();
        }
        let dir = rules.add_dir(root).unwrap();
        let siblings = rules.siblings(tool, verb, dir, &way);
        for name in TELLING {
            let alone = way.child(name.as_bytes()).map(|below| {
                let action = Action::on_path(verb, dir, below, Digest::NONE).unwrap();
                rules.sensitivity(tool, &action)
            });
            match alone {
                Ok(alone) => prop_assert_eq!(siblings.sensitivity(name.as_bytes()), alone, "{}", name),
                // What is no name is nobody's file, and doubt asks.
                Err(_) => prop_assert_ne!(way.may_have(name.as_bytes()), Ok(())),
            }
        }
    }
}

#[test]
fn names_in_a_directory_nobody_knows_are_all_asked_about() {
    let mut other = Rules::new(2, Isolation::Isolated, Vec::new());
    let dir = other.add_dir(RelPath::root()).unwrap();
    let rules = Rules::new(1, Isolation::Isolated, Vec::new());
    let siblings = rules.siblings(Tool::SearchFiles, Verb::FsRead, dir, &RelPath::root());
    assert_ne!(siblings.sensitivity(b"plain.txt"), Sensitivity::Plain);
}

#[test]
fn where_more_than_names_decides_siblings_are_judged_by_their_place() {
    let check = |root: &str, way: &str, verb: Verb, name: &str, guarded: Option<&str>| {
        let place = |text: &str| RelPath::parse(text.as_bytes()).unwrap();
        let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
        if let Some(guarded) = guarded {
            rules.guard_place(place(guarded)).unwrap();
        }
        let dir = rules.add_dir(place(root)).unwrap();
        let siblings = rules.siblings(Tool::WriteFile, verb, dir, &place(way));
        siblings.sensitivity(name.as_bytes()) != Sensitivity::Plain
    };
    assert!(check("w", ".git/hooks", Verb::FsModify, "pre-commit", None));
    assert!(!check("w", ".git/hooks", Verb::FsRead, "pre-commit", None));
    // What only both names together tell.
    for (way, name, asked) in [
        (".config", "gh", true),
        (".config", "gcloud", true),
        (".hermes", "auth", true),
        (".hermes", "PAIRING", true),
        (".config", "fish", false),
        (".hermes", "auths", false),
        ("hermes", "auth", false),
    ] {
        let found = check("w", way, Verb::FsRead, name, None);
        assert_eq!(found, asked, "{way}/{name}");
    }
    assert!(check("w", "sub", Verb::FsRead, "plain.txt", Some("w/sub")));
    assert!(check(
        "w",
        "sub",
        Verb::FsRead,
        "plain.txt",
        Some("w/sub/plain.txt")
    ));
    assert!(!check(
        "w",
        "sub",
        Verb::FsRead,
        "other.txt",
        Some("w/sub/plain.txt")
    ));
    assert!(!check(
        "w",
        "sub",
        Verb::FsRead,
        "plain.txt",
        Some("w/else")
    ));
}

#[test]
fn what_starts_programs_where_it_lies_is_asked_about_like_what_does_at_login() {
    for place in [
        // A debugger, a language's prompt and an editor read these where they are started.
        "home/u/proj/.pdbrc",
        "home/u/proj/sub/.PDBRC",
        "home/u/proj/.lldbinit",
        "home/u/proj/.ghci",
        "home/u/proj/.ocamlinit",
        "home/u/proj/.octaverc",
        "home/u/proj/.iex.exs",
        "home/u/proj/.nvimrc",
        "home/u/proj/.nvim.lua",
        "home/u/.login",
        "home/u/.logout",
        "home/u/.mkshrc",
        "home/u/.config/nushell/config.nu",
        "home/u/.config/emacs/init.el",
        "home/u/.config/vim/vimrc",
        // Other agents start what these name, before each call or as a server.
        "home/u/proj/.mcp.json",
        "home/u/proj/.claude/settings.json",
        "home/u/proj/.claude/settings.local.json",
        "home/u/.claude.json",
        "home/u/proj/.cursor/mcp.json",
        "home/u/proj/.cursor/hooks.json",
        "home/u/proj/.gemini/settings.json",
        "home/u/proj/.codex/config.toml",
        "home/u/proj/.vscode/mcp.json",
    ] {
        for tool in [Tool::Terminal, Tool::WriteFile, Tool::Patch] {
            for verb in [Verb::FsModify, Verb::FsCreate, Verb::FsDelete] {
                assert!(is_asked(tool, verb, place), "{tool} {verb} {place}");
            }
        }
        assert!(!is_asked(Tool::ReadFile, Verb::FsRead, place), "{place}");
    }
    // Words for other agents, and what only looks like these.
    for place in [
        "home/u/proj/CLAUDE.md",
        "home/u/proj/.claude/commands/x.md",
        "home/u/proj/.claude/agents/x.md",
        "home/u/proj/.cursor/rules/x.mdc",
        "home/u/proj/.vscode/settings.json",
        "home/u/proj/settings.json",
        "home/u/proj/mcp.json",
        "home/u/proj/x.pdbrc",
        "home/u/proj/login",
    ] {
        assert!(!is_asked(Tool::Terminal, Verb::FsModify, place), "{place}");
    }
}
