//! Which names are asked about each time, and which are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab_core::{
    action::Action,
    authority::Verb,
    digest::Digest,
    path::RelPath,
    rules::{Isolation, Rules, Sensitivity},
    store_settings::HarmlessSettings,
    tool::Tool,
};
use proptest::prelude::*;
use support::path;

fn is_asked(tool: Tool, verb: Verb, place: &str) -> bool {
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
fn is_asked_for(tool: Tool, verb: Verb, place: &str, content: Digest) -> bool {
    let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
    let dir = rules.add_dir(RelPath::root()).unwrap();
    let action = Action::on_path(verb, dir, path(place), content).unwrap();
    rules.sensitivity(tool, &action) != Sensitivity::Plain
}

const NEW_SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = \
                            false\n\tlogallrefupdates = true\n";

#[test]
fn what_git_makes_of_an_empty_place_is_left_to_the_grants() {
    let dir = support::sha256(b"directory 755");
    let settings = support::sha256(NEW_SETTINGS.as_bytes());
    let sample = support::sha256(b"#!/bin/sh\n");
    for (place, content) in [
        ("home/u/proj/new/.git", dir),
        ("home/u/proj/new/.git/hooks", dir),
        ("home/u/proj/new/.git/branches", dir),
        ("home/u/proj/new/.git/config", settings),
        ("home/u/proj/new/.git/hooks/pre-commit.sample", sample),
    ] {
        for tool in [Tool::Terminal, Tool::ExecuteCode] {
            assert!(
                !is_asked_for(tool, Verb::FsCreate, place, content),
                "{place}"
            );
            for verb in [Verb::FsModify, Verb::FsDelete] {
                assert!(is_asked_for(tool, verb, place, content), "{verb} {place}");
            }
        }
        for tool in [Tool::WriteFile, Tool::Patch, Tool::Directory] {
            assert!(
                is_asked_for(tool, Verb::FsCreate, place, content),
                "{tool} {place}"
            );
        }
        // Where the place itself is asked about, and within another store.
        for above in [
            "etc",
            "home/u/.config/git",
            "home/u/proj/.git",
            "home/u/.ssh",
        ] {
            let there = place.replace("home/u/proj/new", above);
            assert!(
                is_asked_for(Tool::Terminal, Verb::FsCreate, &there, content),
                "{there}"
            );
        }
    }
}

#[test]
fn settings_of_a_new_store_that_were_read_as_harmless_are_left_to_the_grants() {
    let content = [NEW_SETTINGS, "[user]\n\tname = Test\n"].concat();
    let read = HarmlessSettings::read(content.as_bytes());
    assert!(read.is_some());
    let asked = |tool: Tool, verb: Verb, place: &str, settings: Option<HarmlessSettings>| {
        let mut rules = Rules::new(1, Isolation::Isolated, Vec::new());
        let dir = rules.add_dir(RelPath::root()).unwrap();
        let digest = support::sha256(content.as_bytes());
        let action = Action::on_path(verb, dir, path(place), digest).unwrap();
        let action = action.with_settings(settings);
        assert_eq!(action.settings(), settings);
        rules.sensitivity(tool, &action) != Sensitivity::Plain
    };
    let place = "home/u/proj/new/.git/config";
    for tool in [Tool::Terminal, Tool::ExecuteCode] {
        assert!(!asked(tool, Verb::FsCreate, place, read), "{tool}");
        // The same bytes, which nobody has read.
        assert!(asked(tool, Verb::FsCreate, place, None), "{tool}");
        for verb in [Verb::FsModify, Verb::FsDelete] {
            assert!(asked(tool, verb, place, read), "{tool} {verb}");
        }
    }
    for tool in [Tool::WriteFile, Tool::Patch, Tool::Directory] {
        assert!(asked(tool, Verb::FsCreate, place, read), "{tool}");
    }
    // What git reads as something else, and where the place itself is asked about.
    for place in [
        "home/u/proj/new/.git",
        "home/u/proj/new/.git/hooks",
        "home/u/proj/new/.git/hooks/pre-commit",
        "home/u/proj/new/.git/config.worktree",
        "home/u/proj/new/.git/modules/x/config",
        "home/u/proj/new/.GIT/config",
        "home/u/.config/git/config",
        "home/u/.gitconfig",
        "etc/.git/config",
    ] {
        let is_asked = asked(Tool::Terminal, Verb::FsCreate, place, read);
        assert!(is_asked, "{place}");
    }
}

#[test]
fn what_is_one_byte_different_from_it_is_asked_about() {
    let asked = |place: &str, content: &[u8]| {
        let content = support::sha256(content);
        is_asked_for(Tool::Terminal, Verb::FsCreate, place, content)
    };
    for place in 0..NEW_SETTINGS.len() {
        let mut other = NEW_SETTINGS.as_bytes().to_vec();
        other[place] ^= 1;
        assert!(asked("p/.git/config", &other), "{place}");
    }
    let more = [NEW_SETTINGS, "\tfsmonitor = ./x\n"].concat();
    for (place, content) in [
        ("p/.git/config", more.as_bytes()),
        ("p/.git/config", b"directory 755"),
        ("p/.git", b"gitdir: ../other\n"),
        ("p/.git", b"link ../other"),
        ("p/.git", NEW_SETTINGS.as_bytes()),
        ("p/.git/hooks", b"link ../programs"),
        ("p/.git/branches", b"link ../elsewhere"),
        ("p/.git/remotes", b"link ../elsewhere"),
        ("p/.git/hooks", b"directory 4755"),
        ("p/.git/hooks/pre-commit", b"#!/bin/sh\n"),
        ("p/.git/hooks/x.sample/pre-commit", b"#!/bin/sh\n"),
        ("p/.git/hooks/pre-commit.sampl", b"#!/bin/sh\n"),
        ("p/.git/config.worktree", NEW_SETTINGS.as_bytes()),
        ("p/.git/modules/x/config", NEW_SETTINGS.as_bytes()),
        ("p/.git/modules/.git/config", NEW_SETTINGS.as_bytes()),
        ("p/x.git/config", NEW_SETTINGS.as_bytes()),
        ("p/.GIT/config", NEW_SETTINGS.as_bytes()),
        ("p/HEAD", b"ref: refs/heads/main\n"),
    ] {
        assert!(asked(place, content), "{place}");
    }
}

#[test]
fn other_version_control_runs_what_its_settings_name_too() {
    for place in [
        "home/u/proj/.hg/hgrc",
        "home/u/proj/.HG/hgrc",
        "home/u/proj/.hg/hgrc-not-shared",
        "home/u/proj/.hg/sharedpath",
        "home/u/proj/sub/.hg/hgrc",
        "home/u/.hgrc",
        "home/u/.config/hg/hgrc",
        "home/u/proj/.sl/config",
        "home/u/proj/.sl/sharedpath",
        "home/u/.config/sapling/sapling.conf",
        "home/u/proj/.bzr/branch/branch.conf",
        "home/u/proj/.bzr/branch/location",
        "home/u/proj/.bzr/branches/x/branch.conf",
        "home/u/.bazaar/plugins/x.py",
        "home/u/.config/breezy/breezy.conf",
        "home/u/proj/.jj/repo/config.toml",
        "home/u/proj/.jj/workspace-config.toml",
        "home/u/proj/.jj/repo",
        "home/u/.config/jj/config.toml",
        "home/u/.jjconfig.toml",
        "home/u/proj/.pijul/config",
        "home/u/proj/.pijul/config.toml",
        "home/u/.config/pijul/config.toml",
        "home/u/proj/_darcs/prefs/defaults",
        "home/u/.darcs/defaults",
        "home/u/.subversion/config",
        "home/u/.cvsrc",
    ] {
        for tool in [Tool::Terminal, Tool::WriteFile, Tool::Patch] {
            for verb in [Verb::FsModify, Verb::FsCreate] {
                assert!(is_asked(tool, verb, place), "{tool} {verb} {place}");
            }
        }
        assert!(!is_asked(Tool::ReadFile, Verb::FsRead, place), "{place}");
    }
    // What these keep of their own with each commit, and what only looks like theirs.
    for place in [
        "home/u/proj/.hg/store/00changelog.i",
        "home/u/proj/.hg/dirstate",
        "home/u/proj/.hgignore",
        "home/u/proj/.sl/store/00changelog.i",
        "home/u/proj/.bzr/branch/last-revision",
        "home/u/proj/.bzr/checkout/dirstate",
        "home/u/proj/.jj/repo/op_heads/heads/x",
        "home/u/proj/jj/repo",
        "home/u/proj/.jj/repo/store/repo",
        "home/u/proj/.jj/working_copy/tree_state",
        "home/u/proj/.pijul/pristine/db",
        "home/u/proj/_darcs/hashed_inventory",
        "home/u/proj/_darcs/prefs/repos",
        "home/u/proj/.svn/wc.db",
        "home/u/proj/hgrc",
        "home/u/proj/branch/branch.conf",
        "home/u/proj/darcs/prefs/defaults",
        "home/u/proj/_drafts/prefs/defaults",
    ] {
        assert!(!is_asked(Tool::Terminal, Verb::FsModify, place), "{place}");
    }
}

/// A working copy of Jujutsu has its store in a directory, or the way to another's in a file.
#[test]
fn the_store_of_jujutsu_is_a_directory_or_leads_to_one() {
    let asked = |content: &[u8]| {
        let content = support::sha256(content);
        is_asked_for(Tool::Terminal, Verb::FsCreate, "p/.jj/repo", content)
    };
    assert!(!asked(b"directory 755"));
    assert!(!asked(b"directory 700"));
    for other in [
        &b"../../other/.jj/repo"[..],
        b"link ../other",
        b"directory 777",
    ] {
        assert!(asked(other));
    }
}

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
fn a_store_of_git_without_a_tree_has_settings_too() {
    for place in [
        "home/u/proj/docs/HEAD",
        "home/u/proj/HEAD",
        "home/u/proj/it.git/config",
        "home/u/proj/it.GIT/hooks/update",
        "home/u/proj/it.git/modules/x/config",
    ] {
        for tool in [Tool::Terminal, Tool::WriteFile, Tool::Directory] {
            assert!(is_asked(tool, Verb::FsCreate, place), "{tool} {place}");
        }
        assert!(!is_asked(Tool::ReadFile, Verb::FsRead, place), "{place}");
    }
    for place in [
        "home/u/proj/.git/HEAD",
        "home/u/proj/.git/refs/remotes/o/HEAD",
        "home/u/proj/.git/refs/heads/branches/x",
        "home/u/proj/.git/modules/x/refs/remotes/o/main",
        "home/u/proj/.git/modules/x/refs/heads/branches/y",
        "home/u/proj/.git/modules/x/logs/refs/remotes/o/main",
        "home/u/proj/.git/worktrees/branches/index",
        "home/u/proj/it.git/HEAD",
        "home/u/proj/it.git",
        "home/u/proj/it.git/refs/heads/config",
        "home/u/proj/docs/HEADER",
        "home/u/proj/docs/config",
        "home/u/proj/hooks/x",
        "home/u/proj/git",
    ] {
        assert!(!is_asked(Tool::Terminal, Verb::FsCreate, place), "{place}");
    }
}

#[test]
fn the_store_of_a_submodule_has_settings_whatever_its_name() {
    for place in [
        "home/u/proj/.git/config",
        "home/u/proj/.git/modules/refs/config",
        "home/u/proj/.git/modules/refs/hooks/pre-commit",
        "home/u/proj/.git/refs/x/.git/config",
    ] {
        assert!(is_asked(Tool::Terminal, Verb::FsModify, place), "{place}");
    }
}

/// Git takes any directory for a store that has a `HEAD`, `refs` and `objects`, or a file
/// that says where these are: also one where the names of branches lie.
#[test]
fn no_directory_among_branches_becomes_a_store_of_its_own() {
    for place in [
        "home/u/proj/it.git/refs/objects",
        "home/u/proj/it.git/refs/objects/pack",
        "home/u/proj/.git/refs/heads/x/objects",
        "home/u/proj/.git/logs/Objects",
        "home/u/proj/.git/objects/objects",
        "home/u/proj/.git/objects/ab/commondir",
        "home/u/proj/it.git/refs/heads/x/commondir",
    ] {
        for verb in [Verb::FsCreate, Verb::FsModify] {
            assert!(is_asked(Tool::Terminal, verb, place), "{verb} {place}");
        }
    }
    for place in [
        "home/u/proj/.git/objects",
        "home/u/proj/.git/objects/pack/x.idx",
        "home/u/proj/.git/modules/x/objects/ab/cd",
    ] {
        assert!(!is_asked(Tool::Terminal, Verb::FsCreate, place), "{place}");
    }
}

#[test]
fn git_may_keep_its_store_but_an_editor_may_not() {
    for place in [
        "home/u/proj/.git/objects/ab/cd",
        "home/u/proj/.git/refs/heads/main",
        "home/u/proj/.git/refs/heads/config",
        "home/u/proj/.git/logs/refs/heads/hooks/config",
        "home/u/proj/.git/index",
        "home/u/proj/.GIT/HEAD",
    ] {
        assert!(!is_asked(Tool::Terminal, Verb::FsCreate, place), "{place}");
        assert!(!is_asked(Tool::ReadFile, Verb::FsRead, place), "{place}");
        for tool in [Tool::WriteFile, Tool::Patch, Tool::Directory] {
            assert!(is_asked(tool, Verb::FsCreate, place), "{tool} {place}");
        }
        // What git did there is taken back without a question that it did not ask.
        assert!(!is_asked(Tool::Undo, Verb::FsModify, place), "{place}");
    }
    for place in ["home/u/proj/.git/config", "home/u/proj/.git/hooks/x"] {
        for verb in [Verb::FsModify, Verb::FsCreate] {
            assert!(is_asked(Tool::Undo, verb, place), "{verb} {place}");
        }
        // What is gone again names no program.
        assert!(!is_asked(Tool::Undo, Verb::FsDelete, place), "{place}");
        assert!(is_asked(Tool::Terminal, Verb::FsDelete, place), "{place}");
    }
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
