//! Taking back what commands did, as a person would, also after a kill.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

fn program(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command
        .arg("--wait")
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(dir.join("proj"))
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin");
    command
}

fn hermitcrab(dir: &Path, arguments: &[&str]) -> Output {
    program(dir, arguments).output().unwrap()
}

fn bench() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("proj")).unwrap();
    std::fs::write(dir.path().join("proj/a.txt"), "a\n").unwrap();
    dir
}

fn exec(dir: &Path, line: &str) {
    let output = hermitcrab(dir, &["exec", "--grant", "fs.*=.", "--", line]);
    assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
}

fn text(dir: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(dir.join("proj").join(name)).ok()
}

#[test]
fn the_last_commands_are_taken_back_one_after_the_other() {
    let dir = bench();
    exec(dir.path(), "echo b > a.txt; mkdir n; echo new > n/f");
    exec(dir.path(), "rm a.txt");
    let list = hermitcrab(dir.path(), &["undo", "--list"]);
    let shown = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        shown.contains("rm a.txt") && shown.contains("fs.delete"),
        "{shown}"
    );
    assert_eq!(hermitcrab(dir.path(), &["undo"]).status.code(), Some(0));
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("b\n"));
    assert_eq!(hermitcrab(dir.path(), &["undo"]).status.code(), Some(0));
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("a\n"));
    assert!(!dir.path().join("proj/n").exists());
    assert_eq!(hermitcrab(dir.path(), &["undo"]).status.code(), Some(1));
    // An undo is undone by its number.
    assert_eq!(
        hermitcrab(dir.path(), &["undo", "4"]).status.code(),
        Some(0)
    );
    assert_eq!(text(dir.path(), "n/f").as_deref(), Some("new\n"));
    let ledger = hermitcrab(dir.path(), &["audit", "verify"]);
    assert_eq!(ledger.status.code(), Some(0), "{ledger:?}");
}

#[test]
fn what_a_command_changed_here_and_around_here_is_taken_back_from_around() {
    let dir = bench();
    std::fs::create_dir(dir.path().join("proj/in")).unwrap();
    std::fs::write(dir.path().join("proj/in/f"), "f\n").unwrap();
    let line = "echo b > ../a.txt; echo g > f";
    let grants = ["--grant", "fs.*=.", "--grant", "fs.*=.."];
    let output = program(dir.path(), &["exec"])
        .args(grants)
        .args(["--", line])
        .current_dir(dir.path().join("proj/in"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(dir.path(), "in/f").as_deref(), Some("g\n"));
    let undone = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("a\n"));
    assert_eq!(text(dir.path(), "in/f").as_deref(), Some("f\n"));
}

#[test]
fn what_happened_in_another_directory_is_taken_back_by_its_number_only() {
    let dir = bench();
    exec(dir.path(), "echo b > a.txt");
    let elsewhere = dir.path().join("other");
    std::fs::create_dir(&elsewhere).unwrap();
    let there = |arguments: &[&str]| {
        let output = program(dir.path(), arguments)
            .current_dir(&elsewhere)
            .output()
            .unwrap();
        let told = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&told).into_owned(),
        )
    };
    for words in [&["undo"][..], &["undo", "--last", "2"]] {
        let (code, told) = there(words);
        assert_eq!(code, Some(1), "{told}");
        assert!(
            told.contains("other`; the last change elsewhere is commit 1 in")
                && told.contains("`hermitcrab undo 1` takes it back"),
            "{told}"
        );
        assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("b\n"));
    }
    let (_, told) = there(&["undo", "--list"]);
    assert!(!told.contains("echo b"), "{told}");
    assert!(
        told.contains("1 more is in other directories; `hermitcrab undo --list --all` shows it"),
        "{told}"
    );
    let (_, told) = there(&["undo", "--list", "--all"]);
    assert!(told.contains("echo b > a.txt"), "{told}");
    let (code, told) = there(&["undo", "1"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("a\n"));
}

#[test]
fn what_somebody_changed_since_is_named_and_stays() {
    let dir = bench();
    exec(dir.path(), "echo b > a.txt; echo x > x");
    std::fs::write(dir.path().join("proj/a.txt"), "mine\n").unwrap();
    let output = hermitcrab(dir.path(), &["undo"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "{said}");
    assert!(said.contains("a.txt") && !said.contains("/x`"), "{said}");
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("mine\n"));
    assert!(dir.path().join("proj/x").exists());
}

/// The person's own git, outside.
fn git(dir: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .args(arguments)
        .current_dir(dir.join("proj"))
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Two branches, of which the other one has another `a.txt`.
fn repository() -> tempfile::TempDir {
    let dir = bench();
    git(dir.path(), &["init", "-q", "-b", "main"]);
    git(dir.path(), &["config", "user.email", "a@example.org"]);
    git(dir.path(), &["config", "user.name", "A"]);
    git(dir.path(), &["add", "-A"]);
    git(dir.path(), &["commit", "-qm", "one"]);
    git(dir.path(), &["checkout", "-qb", "other"]);
    std::fs::write(dir.path().join("proj/a.txt"), "other\n").unwrap();
    git(dir.path(), &["commit", "-qam", "two"]);
    git(dir.path(), &["checkout", "-q", "main"]);
    dir
}

/// Has git write its index anew, by looking.
fn look_at(dir: &Path) {
    let index = || std::fs::read(dir.join("proj/.git/index")).unwrap();
    let before = index();
    let file = std::fs::File::options()
        .write(true)
        .open(dir.join("proj/a.txt"))
        .unwrap();
    let other = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(other).unwrap();
    git(dir, &["status", "-s"]);
    assert_ne!(before, index());
}

#[test]
fn who_looks_at_the_repository_can_take_it_back_all_the_same() {
    let dir = repository();
    exec(dir.path(), "git checkout -q other");
    look_at(dir.path());
    let output = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("a\n"));
    assert_eq!(git(dir.path(), &["status", "-sb"]), "## main\n");
    // And forth again, when that was looked at, too.
    look_at(dir.path());
    let output = hermitcrab(dir.path(), &["undo", "2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(git(dir.path(), &["status", "-sb"]), "## other\n");
}

#[test]
fn a_new_repository_that_was_looked_at_can_be_taken_back() {
    let dir = bench();
    exec(
        dir.path(),
        "mkdir sub && cd sub && git init -q && echo x > f && git add f",
    );
    let sub = dir.path().join("proj/sub");
    std::fs::write(sub.join("f"), "y\n").unwrap();
    std::fs::write(sub.join("f"), "x\n").unwrap();
    let index = || std::fs::read(sub.join(".git/index")).unwrap();
    let before = index();
    git(dir.path(), &["-C", "sub", "status", "-s"]);
    assert_ne!(before, index());
    let output = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!sub.exists());
}

#[test]
fn a_repository_that_was_begun_is_taken_back_where_nobody_can_be_asked() {
    let dir = bench();
    exec(dir.path(), "git init -q");
    let output = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!dir.path().join("proj/.git").exists());
    // To have its settings again is as new as they were: that is asked about.
    let output = hermitcrab(dir.path(), &["undo", "2"]);
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert!(!dir.path().join("proj/.git").exists());
}

#[test]
fn what_the_person_staged_since_is_not_taken_back() {
    let dir = repository();
    exec(dir.path(), "git checkout -q other");
    std::fs::write(dir.path().join("proj/mine"), "mine\n").unwrap();
    git(dir.path(), &["add", "mine"]);
    let output = hermitcrab(dir.path(), &["undo"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "{said}");
    assert!(said.contains(".git/index"), "{said}");
    assert_eq!(git(dir.path(), &["status", "-sb"]), "## other\nA  mine\n");
}

#[test]
fn caches_in_what_a_command_made_go_along_and_come_back() {
    let dir = bench();
    exec(dir.path(), "mkdir pkg && echo x=1 > pkg/m.py");
    let cache = dir.path().join("proj/pkg/__pycache__");
    std::fs::create_dir(&cache).unwrap();
    std::fs::write(cache.join("m.pyc"), "compiled").unwrap();
    let output = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(dir.path(), "pkg/m.py"), None);
    assert!(!dir.path().join("proj/pkg").exists());
    // Nothing of it is lost.
    let output = hermitcrab(dir.path(), &["undo", "2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let compiled = text(dir.path(), "pkg/__pycache__/m.pyc");
    assert_eq!(compiled.as_deref(), Some("compiled"));
    // Anything else somebody put there stays where it is.
    std::fs::write(dir.path().join("proj/pkg/own.py"), "own\n").unwrap();
    let output = hermitcrab(dir.path(), &["undo", "3"]);
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert_eq!(text(dir.path(), "pkg/own.py").as_deref(), Some("own\n"));
}

#[test]
fn caches_in_a_directory_that_was_moved_go_along_there_and_back() {
    let dir = bench();
    let cache = dir.path().join("proj/pkg/__pycache__");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(dir.path().join("proj/pkg/m.py"), "x=1\n").unwrap();
    std::fs::write(cache.join("m.pyc"), "first").unwrap();
    exec(dir.path(), "mv pkg lib");
    // Each time they are other ones by then.
    for (number, at, compiled) in [
        ("1", "lib", "second"),
        ("2", "pkg", "third"),
        ("3", "lib", "4"),
    ] {
        let name = format!("{at}/__pycache__/m.pyc");
        std::fs::write(dir.path().join("proj").join(&name), compiled).unwrap();
        let output = hermitcrab(dir.path(), &["undo", number]);
        assert_eq!(output.status.code(), Some(0), "{number}: {output:?}");
        let to = if at == "lib" { "pkg" } else { "lib" };
        let found = text(dir.path(), &format!("{to}/__pycache__/m.pyc"));
        assert_eq!(found.as_deref(), Some(compiled), "{number}");
        assert!(!dir.path().join("proj").join(at).exists(), "{number}");
    }
    // What somebody wrote there stays where it is.
    std::fs::write(dir.path().join("proj/pkg/m.py"), "x=2\n").unwrap();
    let output = hermitcrab(dir.path(), &["undo", "4"]);
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert_eq!(text(dir.path(), "pkg/m.py").as_deref(), Some("x=2\n"));
}

/// The sorted names below a directory, with what each file holds.
fn below(dir: &Path) -> Vec<(std::path::PathBuf, Option<String>)> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path.clone());
            }
            let text = std::fs::read_to_string(&path).ok();
            found.push((path, text));
        }
    }
    found.sort();
    found
}

#[test]
fn an_undo_that_is_killed_takes_all_of_it_back_or_nothing() {
    let dir = bench();
    let proj = dir.path().join("proj");
    for number in 0..200 {
        let sub = proj.join(format!("tree/d{}", number % 20));
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join(format!("f{number}")), format!("{number}\n")).unwrap();
        std::fs::create_dir_all(proj.join("sort")).unwrap();
        let name = format!("sort/{number}.{}", ["png", "txt", "zip", "mp3"][number % 4]);
        std::fs::write(proj.join(name), format!("{number}\n")).unwrap();
    }
    let plan = serde_json::json!({"version": 1, "steps": [
        {"id": "o", "call": "organize_by_type", "with": {"path": "sort"}},
        {"id": "d", "call": "delete_files", "with": {"paths": ["tree"], "recursive": true}},
    ]});
    std::fs::write(dir.path().join("plan.json"), plan.to_string()).unwrap();
    let before = below(&proj);
    let arguments = [
        "run",
        "--plan",
        "../plan.json",
        "--yes-low",
        "--grant",
        "fs.*=.",
    ];
    let ran = hermitcrab(dir.path(), &arguments);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let after = below(&proj);
    let half: Vec<_> = after
        .iter()
        .chain(
            before
                .iter()
                .filter(|(path, _)| path.starts_with(proj.join("tree"))),
        )
        .cloned()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let states = [after, half, before];
    // Killed at ever later moments until both commits are taken back; in the end not at all.
    let mut came_to = 0;
    let mut kills = 0;
    for try_ in 0..62_u64 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(["undo"])
            .current_dir(&proj)
            .env_clear()
            .env("HOME", dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if try_ < 60 {
            std::thread::sleep(Duration::from_millis(4 * try_));
            // It may have ended by itself.
            let _killed = child.kill();
        }
        kills += usize::from(!child.wait().unwrap().success());
        let list = hermitcrab(dir.path(), &["undo", "--list"]);
        assert_eq!(list.status.code(), Some(0), "{list:?}");
        let found = below(&proj);
        let now = states.iter().position(|state| *state == found);
        let now = now.unwrap_or_else(|| panic!("half an undo after {try_}: {found:?}"));
        assert!(now >= came_to, "what was taken back is gone again");
        came_to = now;
        if came_to + 1 == states.len() {
            break;
        }
    }
    assert_eq!(came_to + 1, states.len());
    assert!(kills > 0, "nothing was killed");
}

#[test]
fn a_program_that_is_killed_leaves_all_of_a_commit_or_nothing() {
    let dir = bench();
    let line = "for i in $(seq 300); do echo new > f$i; done; rm -f a.txt; echo new > g";
    let state = || {
        let names = std::fs::read_dir(dir.path().join("proj")).unwrap().count();
        (names, dir.path().join("proj/a.txt").exists())
    };
    let mut seen = std::collections::BTreeSet::new();
    // Killed at once, at ever later moments, and at last not at all.
    for delay in 0..=16 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(["exec", "--grant", "fs.*=.", "--", line])
            .current_dir(dir.path().join("proj"))
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if delay < 16 {
            std::thread::sleep(Duration::from_millis(25 * delay));
            // It may have ended by itself.
            let _killed = child.kill();
        }
        let _ended = child.wait().unwrap();
        let list = hermitcrab(dir.path(), &["undo", "--list"]);
        assert_eq!(list.status.code(), Some(0), "{list:?}");
        let found = state();
        assert!(
            [(1, true), (301, false)].contains(&found),
            "after {delay}: {found:?}"
        );
        seen.insert(found);
        if found == (301, false) {
            let undone = hermitcrab(dir.path(), &["undo"]);
            assert_eq!(undone.status.code(), Some(0), "{undone:?}");
            assert_eq!(state(), (1, true));
        }
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
}

/// The journal is common to all workspaces: `undo` by itself is about the one it is typed in.
#[test]
fn what_was_done_in_another_workspace_stays_unless_it_is_named() {
    let dir = bench();
    let other = dir.path().join("other");
    let beside = dir.path().join("beside");
    for place in [&other, &beside] {
        std::fs::create_dir(place).unwrap();
    }
    exec(dir.path(), "echo mine > mine");
    let in_other = |arguments: &[&str]| {
        let mut command = program(dir.path(), arguments);
        command.current_dir(&other).output().unwrap()
    };
    let made = in_other(&["exec", "--grant", "fs.*=.", "--", "echo theirs > theirs"]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    exec(dir.path(), "echo more >> mine");

    let undone = in_other(&["undo"]);
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert!(!other.join("theirs").exists());
    assert_eq!(text(dir.path(), "mine").as_deref(), Some("mine\nmore\n"));
    let undone = in_other(&["undo"]);
    let said = String::from_utf8_lossy(&undone.stderr).into_owned();
    assert_eq!(undone.status.code(), Some(1), "{said}");
    assert!(said.contains("`hermitcrab undo 3`"), "{said}");
    assert_eq!(text(dir.path(), "mine").as_deref(), Some("mine\nmore\n"));
    // At the prompt it is the same, and so it is for the last ones.
    let mut prompt = program(dir.path(), &["prompt", "--mode", "prompt"]);
    prompt.current_dir(&other).stdin(Stdio::piped());
    let mut prompt = prompt.spawn().unwrap();
    std::io::Write::write_all(&mut prompt.stdin.take().unwrap(), b"undo 3\n").unwrap();
    assert_eq!(prompt.wait().unwrap().code(), Some(1));
    assert_eq!(text(dir.path(), "mine").as_deref(), Some("mine\nmore\n"));
    // By its number it is meant wherever one is.
    let undone = in_other(&["undo", "3"]);
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert_eq!(text(dir.path(), "mine").as_deref(), Some("mine\n"));

    // What was done from above counts where it was done.
    exec(dir.path(), "mkdir below");
    exec(dir.path(), "echo x > below/made");
    let mut from_below = program(dir.path(), &["undo"]);
    from_below.current_dir(dir.path().join("proj/below"));
    let undone = from_below.output().unwrap();
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert!(!dir.path().join("proj/below/made").exists());

    // A directory that is configured belongs to every workspace.
    let added = in_other(&["config", "add-directory", beside.to_str().unwrap()]);
    assert_eq!(added.status.code(), Some(0), "{added:?}");
    let there = format!("fs.create={}", beside.display());
    let line = format!("echo x > {}", beside.join("made").display());
    let made = in_other(&["exec", "--grant", &there, "--", &line]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let undone = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert!(!beside.join("made").exists());
}

/// Whoever runs `git checkout` is not asked about git's store, and so is not who takes it back.
#[test]
fn a_checkout_is_taken_back_where_nobody_can_be_asked() {
    let dir = bench();
    let git = |line: &str| {
        let ran = Command::new("sh")
            .args(["-c", line])
            .current_dir(dir.path().join("proj"))
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", "/usr/bin:/bin")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{line}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    let commit = "git -c user.name=n -c user.email=a@b commit -qam";
    git(&format!(
        "git init -q -b one && git add a.txt && {commit} 1 && git checkout -q -b two && echo two > a.txt && {commit} 2"
    ));
    exec(dir.path(), "git checkout -q one");
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("a\n"));
    let undone = hermitcrab(dir.path(), &["undo"]);
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert_eq!(text(dir.path(), "a.txt").as_deref(), Some("two\n"));
    assert_eq!(git("git branch --show-current && git status -s"), "two\n");
    let ledger = hermitcrab(dir.path(), &["audit"]);
    let ledger = String::from_utf8_lossy(&ledger.stdout).into_owned();
    assert!(ledger.contains(" undo from "), "{ledger}");
}
