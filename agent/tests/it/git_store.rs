//! A repository is begun without a question where its place is held; whatever it could
//! have programs run by is asked about.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home::Home;

#[test]
fn a_repository_is_begun_by_whoever_holds_its_place() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    let began = "git init -q new && cd new && echo a > a.txt && git add a.txt && git status -s";
    let ran = home.run(&[&exec[..], &[began]].concat());
    assert_eq!((ran.code, &*ran.out), (Some(0), "A  a.txt\n"), "{ran:?}");
    assert_eq!(ran.err, "");
    assert!(home.project().join("new/.git/config").exists());
    // Without a grant it is asked about like everything.
    let ran = home.run(&["exec", "--", "git init -q other"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join("other").exists());
}

#[test]
fn what_a_new_repository_could_run_is_asked_about() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    for more in [
        "git -C new config core.fsmonitor ./x",
        "git -C new remote add origin ext::./x",
        "echo ./x > new/.git/hooks/pre-commit",
        "cp new/.git/hooks/pre-commit.sample new/.git/hooks/pre-commit",
        "mv new/.git/hooks/pre-commit.sample new/.git/hooks/pre-commit",
        "rm -r new/.git/hooks && ln -s .. new/.git/hooks",
        "git init -q --bare new/bare",
        // Whoever may write it has programs run by it.
        "chmod 666 new/.git/config",
        "chmod 777 new/.git/hooks",
        "git init -q --separate-git-dir new/store new/tree",
        // As good as a remote in the settings: `git fetch origin` and `git push origin` go there.
        "mkdir -p new/.git/remotes && echo URL: https://other.example/x > new/.git/remotes/origin",
        "mkdir -p new/.git/branches && echo https://other.example/x > new/.git/branches/origin",
    ] {
        let command = format!("git init -q new && {more}");
        let ran = home.run(&[&exec[..], &[&command]].concat());
        assert_eq!(ran.code, Some(77), "{more}: {ran:?}");
        assert!(!home.project().join("new").exists(), "{more}");
    }
}

#[test]
fn who_commits_to_a_new_repository_is_said_as_it_is_begun() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    let begun = "git init -q new && cd new && git config user.name 'Test User' && git config user.email t@example.com \
                 && git config core.autocrlf input && git config core.fileMode false && git config init.defaultBranch main \
                 && git config commit.gpgsign false && git config pull.rebase false && git config advice.detachedHead false \
                 && echo a > a.txt && git add a.txt && git commit -q -m one && git log --format='%an <%ae> %s'";
    let ran = home.run(&[&exec[..], &[begun]].concat());
    assert_eq!(
        (ran.code, &*ran.out, &*ran.err),
        (Some(0), "Test User <t@example.com> one\n", ""),
        "{ran:?}"
    );
    let settings = std::fs::read_to_string(home.project().join("new/.git/config")).unwrap();
    assert!(settings.contains("\tname = Test User\n"), "{settings}");
    // In one that is there already they are a change of somebody's settings.
    let ran = home.run(&[&exec[..], &["git -C new config user.name other"]].concat());
    assert_eq!(ran.code, Some(77), "{ran:?}");
}

/// What else is set is asked about, however it is written; and git does run it.
#[test]
fn no_other_setting_comes_along_with_who_commits() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    for more in [
        "git config core.hooksPath hooks",
        "git config core.fsmonitor ./x",
        "git config CORE.FSMonitor ./x",
        "git config core.sshCommand ./x",
        "git config core.editor ./x",
        "git config core.pager ./x",
        "git config alias.st '!./x'",
        "git config filter.x.clean ./x",
        "git config credential.helper '!./x'",
        "git config credential.https://example.org.helper '!./x'",
        "git config include.path ../x",
        "git config includeIf.gitdir:..path ../x",
        "git config commit.gpgsign true",
        "git config user.signingKey x",
        "git config user.x.name x",
        "git config user.name 'a
b'",
        "git config user.name \"$(printf 'a\\r')\"",
        "printf '[core] fsmonitor = ./x\\n' >> .git/config",
        "printf '\\tname = x\\\\\\n[core]\\n\\tfsmonitor = ./x\\n' >> .git/config",
        "printf '\\tname = \"x\\n\\tfsmonitor = ./x\\n' >> .git/config",
        "printf '[user \"x\"]\\n\\tname = x\\n' >> .git/config",
        "printf '[user.x]\\n\\tname = x\\n' >> .git/config",
        "chmod 666 .git/config",
        "ln .git/config config && ln -sf ../config .git/config",
    ] {
        let command =
            format!("git init -q new && cd new && git config user.name x && {{ {more}; }}");
        let ran = home.run(&[&exec[..], &[&command]].concat());
        assert_eq!(ran.code, Some(77), "{more}: {ran:?}");
        assert!(!home.project().join("new").exists(), "{more}");
    }
}

/// A directory may have any name, and where branches lie any file: together they would make
/// a store whose settings nobody was asked about.
#[test]
fn a_store_in_the_midst_of_branches_is_asked_about() {
    let home = Home::new();
    let made = "mkdir -p v.git/refs/objects v.git/refs/refs && cd v.git/refs && echo ref: refs/heads/m > HEAD \
                && printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = ./x\n' \
                > config && printf '#!/bin/sh\necho run > ran\n' > x && chmod +x x && git status -s && cat ran";
    let ran = home.run(&["exec", "--grant", "fs.*=.", "--", made]);
    // It is one for git, and what it names is run.
    assert!(ran.out.ends_with("run\n"), "{ran:?}");
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join("v.git").exists());
    // Branches are made as ever, in a store that is there.
    for made in [
        "git init -q new && git -C new -c user.name=n -c user.email=e commit -q --allow-empty -m one",
        "git -C new branch config && git -C new update-ref refs/remotes/o/HEAD HEAD",
    ] {
        let ran = home.run(&["exec", "--grant", "fs.*=.", "--", made]);
        assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    }
}

/// What `cargo new` makes: libgit2 says the same as git, in another order.
#[test]
fn a_repository_begun_by_libgit2_is_begun_like_one_of_gits() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    let begin = |more: &str| {
        format!(
            "git init -q new && printf '[core]\\n\\tbare = false\\n\\trepositoryformatversion = 0\\n\\tfilemode = true\\n\\tlogallrefupdates = true\\n{more}' > new/.git/config"
        )
    };
    let ran = home.run(&[&exec[..], &[&begin("\\tfsmonitor = ./x\\n")]].concat());
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join("new").exists());
    let ran = home.run(&[&exec[..], &[&begin("")]].concat());
    assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{ran:?}");
    let settings = std::fs::read_to_string(home.project().join("new/.git/config")).unwrap();
    assert!(
        settings.starts_with("[core]\n\tbare = false\n"),
        "{settings}"
    );
}

/// A clone of a directory links its files, which changes their numbers in a view: it is told
/// that they cannot be linked, and copies them. What its settings say is asked about.
#[test]
fn a_directory_is_cloned_beside_itself() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    let made = "git init -q a && echo one > a/one && git -C a add . && \
                git -C a -c user.name=n -c user.email=e commit -q -m one";
    assert_eq!(home.run(&[&exec[..], &[made]].concat()).code, Some(0));
    let clone = "git clone -q a b && git clone -q --bare a c.git && git clone -q c.git d && \
                 cat b/one d/one && git -C d fsck && git -C b status --short";
    let ran = home.run(&[&exec[..], &[clone]].concat());
    if ran.err.contains("hardlink different from source") {
        assert!(ran.err.contains("`--no-hardlinks`"), "{ran:?}");
        println!("SKIPPED: nobody can be asked about links before Linux 5.19");
        return;
    }
    assert_eq!((ran.code, &*ran.out), (Some(77), "one\none\n"), "{ran:?}");
    assert!(
        ran.err
            .contains("a sensitive path needs a yes for each call"),
        "{ran:?}"
    );
}

/// What commands are shown begins with the workspace, so git finds nothing that begins above it
/// or lies in a store elsewhere; where that is, and what lets it in, is said.
#[test]
fn where_a_repository_lies_that_commands_are_not_shown_is_said() {
    let home = Home::new();
    let exec = ["exec", "--grant", "fs.*=.", "--"];
    let made = "git init -q a && mkdir a/src && echo one > a/src/one && git -C a add . && \
                git -C a -c user.name=n -c user.email=e commit -q -m one && git -C a worktree add -q ../w 2>&1";
    let outside = std::process::Command::new("sh")
        .args(["-c", made])
        .current_dir(home.project())
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(outside.status.success(), "{outside:?}");
    let (a, w) = (home.project().join("a"), home.project().join("w"));
    let within = home.run_in(&a.join("src"), &["exec", "--", "git status --short"]);
    assert_eq!(within.code, Some(128), "{within:?}");
    let way_out = format!("`hermitcrab --workspace {}`", a.display());
    assert!(within.err.contains(&way_out), "{within:?}");
    let store = a.join(".git").display().to_string();
    let linked = home.run_in(&w, &["exec", "--", "git status --short"]);
    assert_eq!(linked.code, Some(128), "{linked:?}");
    let way_out = format!("`hermitcrab config add-directory {store}`");
    assert!(linked.err.contains(&way_out), "{linked:?}");
    // It is as it says.
    home.ok(&["config", "add-directory", &store]);
    let shown = home.run_in(&w, &["exec", "--", "git log --format=%s"]);
    assert_eq!((shown.code, &*shown.out), (Some(0), "one\n"), "{shown:?}");
    // Where there is none, nothing is said.
    let none = home.run(&[&exec[..], &["git status --short"]].concat());
    assert_eq!(none.code, Some(128), "{none:?}");
    assert!(!none.err.contains("repository begins"), "{none:?}");
}
