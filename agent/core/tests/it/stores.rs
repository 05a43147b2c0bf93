//! Which names in stores of version control are asked about each time: settings and hooks
//! name programs, and whoever works there has them run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab_core::{
    action::Action,
    authority::Verb,
    digest::Digest,
    path::RelPath,
    rules::{Isolation, Rules, Sensitivity},
    store_settings::HarmlessSettings,
    tool::Tool,
};

use crate::sensitive::is_asked;
use crate::support::{self, path};

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
