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
        "git init -q --separate-git-dir new/store new/tree",
    ] {
        let command = format!("git init -q new && {more}");
        let ran = home.run(&[&exec[..], &[&command]].concat());
        assert_eq!(ran.code, Some(77), "{more}: {ran:?}");
        assert!(!home.project().join("new").exists(), "{more}");
    }
}
