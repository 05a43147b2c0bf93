//! What a plan's actions did, taken back by its person.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::support::home::{Home, Ran};

#[track_caller]
fn run(home: &Home, steps: &Value) -> Ran {
    let plan = json!({"version": 1, "summary": "a test", "steps": steps});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let grant = ["--yes-low", "--grant", "fs.*=."];
    let ran = home.run(&[&["run", "--plan", "../plan.json"][..], &grant].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn read(home: &Home, name: &str) -> Option<String> {
    std::fs::read_to_string(home.project().join(name)).ok()
}

fn put(home: &Home, name: &str, content: &str) {
    let path = home.project().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn names(home: &Home, below: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(home.project().join(below))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_an_action_replaced_or_deleted_comes_back_with_undo() {
    let home = Home::new();
    put(&home, "b.txt", "b\n");
    let steps = json!([
        {"id": "r", "call": "create_file", "with": {"path": "a.txt", "text": "new", "replace": true}},
        {"id": "d", "call": "delete_files", "with": {"paths": ["b.txt"]}},
    ]);
    let ran = run(&home, &steps);
    assert_eq!(
        ran.out.matches("to undo: `hermitcrab undo`").count(),
        2,
        "{ran:?}"
    );
    assert_eq!(names(&home, "."), ["a.txt"]);
    home.ok(&["undo", "--last", "2"]);
    assert_eq!(read(&home, "a.txt").unwrap(), "a\n");
    assert_eq!(read(&home, "b.txt").unwrap(), "b\n");
}

/// Every kind of action, one after the other, and all of it taken back.
#[test]
fn moves_directories_and_trees_come_back_with_undo() {
    let home = Home::new();
    put(&home, "tree/deep/x", "x\n");
    std::os::unix::fs::symlink("x", home.project().join("tree/deep/l")).unwrap();
    put(&home, "sort/p.png", "p\n");
    put(&home, "sort/q.txt", "q\n");
    put(&home, "one.txt", "1\n");
    put(&home, "two.txt", "2\n");
    let inode = |name: &str| {
        let path = home.project().join(name);
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
    };
    let numbers = [inode("one.txt"), inode("sort/p.png"), inode("tree/deep/x")];
    let steps = json!([
        {"id": "m", "call": "create_directory", "with": {"path": "made/in"}},
        {"id": "v", "call": "move_file", "with": {"from": "a.txt", "to": "made/in/a.txt"}},
        {"id": "vv", "call": "move_files", "with": {"paths": ["one.txt", "two.txt"], "into": "made"}},
        {"id": "o", "call": "organize_by_type", "with": {"path": "sort"}},
        {"id": "d", "call": "delete_files", "with": {"paths": ["tree"], "recursive": true}},
    ]);
    let ran = run(&home, &steps);
    let said = ran.out.matches("to undo: `hermitcrab undo`").count();
    assert_eq!(said, 5, "{ran:?}");
    assert_eq!(names(&home, "."), ["made", "sort"]);
    assert_eq!(names(&home, "sort"), ["Documents", "Images"]);
    // What is something else by now stays, and is named.
    std::fs::remove_file(home.project().join("sort/Images/p.png")).unwrap();
    put(&home, "sort/Images/p.png", "p\n");
    home.ok(&["undo"]);
    assert_eq!(inode("tree/deep/x"), numbers[2]);
    let refused = home.run(&["undo"]);
    assert_eq!(refused.code, Some(77), "{refused:?}");
    assert!(refused.err.contains("sort/Images/p.png"), "{refused:?}");
    assert_eq!(names(&home, "sort"), ["Documents", "Images"]);
    std::fs::remove_file(home.project().join("sort/Images/p.png")).unwrap();
    std::fs::remove_dir(home.project().join("sort/Images")).unwrap();
    let commits = home.ok(&["undo", "--list"]);
    let of = |word: &str| {
        let line = commits.lines().find(|line| line.contains(word)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    // The sorting is left as it is; what came before it is apart from it.
    assert!(commits.contains("a plan: 2 files"), "{commits}");
    for id in ["3", "2", "1"] {
        home.ok(&["undo", id]);
    }
    assert_eq!(of("a plan: 2 directories"), "1", "{commits}");
    assert_eq!(
        names(&home, "."),
        ["a.txt", "one.txt", "sort", "tree", "two.txt"]
    );
    assert_eq!(read(&home, "tree/deep/l").unwrap(), "x\n");
    assert_eq!(inode("one.txt"), numbers[0]);
}

/// A directory that is missing is made with what is to lie in it, whatever the step does.
#[test]
fn a_step_that_made_its_directory_is_taken_back_with_it() {
    for (steps, made) in [
        (
            json!([{"id": "c", "call": "create_file", "with": {"path": "new/in/c.txt", "text": "c"}}]),
            "new/in/c.txt",
        ),
        (
            json!([{"id": "c", "call": "copy_file", "with": {"from": "a.txt", "to": "new/in/c.txt"}}]),
            "new/in/c.txt",
        ),
        (
            json!([{"id": "m", "call": "move_file", "with": {"from": "a.txt", "to": "new/b.txt"}}]),
            "new/b.txt",
        ),
        (
            json!([{"id": "m", "call": "move_files", "with": {"paths": ["a.txt", "b.txt"], "into": "new/in"}}]),
            "new/in/b.txt",
        ),
        (
            json!([{"id": "m", "call": "move_files", "with": {"paths": [], "into": "new/in"}}]),
            "new/in",
        ),
    ] {
        let home = Home::new();
        put(&home, "b.txt", "b\n");
        let ran = run(&home, &steps);
        let said = ran.out.matches("to undo: `hermitcrab undo`").count();
        assert_eq!(said, 1, "{ran:?}");
        assert!(home.project().join(made).exists(), "{ran:?}");
        let listed = home.ok(&["undo", "--list"]);
        assert_eq!(listed.matches("a plan: ").count(), 1, "{listed}");
        home.ok(&["undo"]);
        assert_eq!(names(&home, "."), ["a.txt", "b.txt"], "{steps}");
        home.ok(&["undo", "2"]);
        assert!(home.project().join(made).exists(), "{steps}");
    }
}

/// What comes to nothing leaves no directory that was made for it.
#[test]
fn a_step_that_fails_leaves_no_directory_that_was_made_for_it() {
    let home = Home::new();
    let steps = json!([
        {"id": "m", "call": "move_files", "with": {"paths": ["a.txt", "gone.txt"], "into": "new"}},
    ]);
    let plan = json!({"version": 1, "summary": "a test", "steps": steps});
    std::fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    let ran = home.run(&[
        "run",
        "--plan",
        "../plan.json",
        "--yes-low",
        "--grant",
        "fs.*=.",
    ]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(names(&home, "."), ["a.txt"], "{ran:?}");
}

#[test]
fn what_is_made_on_the_way_is_as_its_user_wants_new_directories() {
    let home = Home::new();
    put(&home, "sort/p.png", "p\n");
    let steps = json!([
        {"id": "c", "call": "create_file", "with": {"path": "new/c.txt", "text": "c"}},
        {"id": "o", "call": "organize_by_type", "with": {"path": "sort"}},
        {"id": "d", "call": "create_directory", "with": {"path": "made"}},
    ]);
    run(&home, &steps);
    let mode = |name: &str| {
        let stat = std::fs::metadata(home.project().join(name)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&stat.permissions()) & 0o777
    };
    assert_eq!(
        (mode("new"), mode("sort/Images")),
        (mode("made"), mode("made"))
    );
}
