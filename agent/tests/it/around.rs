//! Directories that lie in each other: all are shown to commands, and each place is decided
//! about by the innermost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home::Home;

#[test]
fn a_directory_around_the_workspace_is_shown_and_the_workspace_is_held_as_before() {
    let home = Home::new();
    let project = home.project();
    let around = project.parent().unwrap().to_owned();
    std::fs::create_dir_all(around.join("beside/lib")).unwrap();
    std::fs::write(around.join("beside/lib/a.txt"), "seen\n").unwrap();
    let beside = around.join("beside");
    // One that is around another which was shown first, and one in the workspace.
    std::fs::create_dir_all(project.join("part")).unwrap();
    for dir in [&beside.join("lib"), &beside, &project.join("part")] {
        home.ok(&["config", "add-directory", dir.to_str().unwrap()]);
    }
    let read = format!(
        "cat {}; ls {}",
        beside.join("lib/a.txt").display(),
        beside.display()
    );
    let ran = home.run(&["exec", "--", &read]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "seen\nlib\n"),
        "{ran:?}"
    );
    // The workspace itself lies in one.
    std::fs::create_dir_all(beside.join("work")).unwrap();
    let at = beside.join("work");
    let workspace = ["--workspace", at.to_str().unwrap()];
    let within = format!("fs.*={}", at.display());
    let all_around = format!("fs.*={}", beside.display());
    let exec = |grants: &[&str], line: &str| {
        home.run(&[&["exec"][..], &workspace, grants, &["--", line]].concat())
    };
    let ran = exec(
        &["--grant", &within],
        "cat ../lib/a.txt > copy; mkdir d; echo x > d/y; pwd",
    );
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(std::fs::read_to_string(at.join("copy")).unwrap(), "seen\n");
    assert_eq!(std::fs::read_to_string(at.join("d/y")).unwrap(), "x\n");
    // Around it nothing is held but to read.
    let ran = exec(&["--grant", &within], "echo z > ../z; echo z > z");
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.err.contains("fs.create"), "{ran:?}");
    assert!(!beside.join("z").exists() && !at.join("z").exists());
    let ran = exec(
        &["--grant", &all_around, "--grant", &within],
        "echo z > ../z; mv copy ../moved",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(beside.join("moved")).unwrap(),
        "seen\n"
    );
    assert!(beside.join("z").exists() && !at.join("copy").exists());
}

#[test]
fn many_directories_are_shown_and_too_many_are_said_to_be() {
    let home = Home::new();
    let add = |numbers: std::ops::Range<usize>| {
        let dirs: Vec<String> = numbers
            .map(|number| {
                let dir = home.path().join(format!("many/{number}"));
                std::fs::create_dir_all(&dir).unwrap();
                dir.to_string_lossy().into_owned()
            })
            .collect();
        let words = ["config", "add-directory"].into_iter();
        let words: Vec<&str> = words.chain(dirs.iter().map(String::as_str)).collect();
        home.ok(&words);
    };
    let count = format!("ls {} | wc -l", home.path().join("many").display());
    add(0..60);
    let ran = home.run(&["exec", "--", &count]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "60\n"), "{ran:?}");
    add(60..120);
    let ran = home.run(&["exec", "--", &count]);
    assert!(ran.err.contains("can be shown 100 directories"), "{ran:?}");
}

#[test]
fn a_file_system_mounted_in_the_workspace_is_held_once_it_is_granted_itself() {
    let home = Home::new();
    let script = r#"
        mount -t tmpfs disk vol && mkdir -p vol/d && echo seen > vol/a.txt || exit 96
        cd "$HOME/proj"
        "$0" exec --grant 'fs.*=.' -- 'echo x > b; echo y > vol/b'
        echo "workspace alone: $?"
        "$0" exec --grant 'fs.*=.' --grant "fs.*=$PWD/vol" -- 'cat vol/a.txt; mv vol/a.txt vol/d/c.txt; echo y > vol/new; echo x > own'
        echo "and itself: $?"
        "$0" exec --grant "fs.*=$PWD/vol/d" -- 'ls vol; cat vol/d/c.txt a.txt 2>/dev/null'
        "$0" call --grant "fs.*=$PWD/vol/d" write_file '{"path":"vol/d/made.txt","content":"z\n"}' >/dev/null
        echo "a directory there: $?"
        mkdir vol/far && mount -t tmpfs other vol/far && ln -s far vol/link
        "$0" exec --grant "fs.*=$PWD/vol/link" -- 'echo x > vol/link/x'
        echo "through a link: $?"
        cat vol/d/c.txt vol/new vol/d/made.txt own
        ls . vol/far
    "#;
    std::fs::create_dir_all(home.project().join("vol")).unwrap();
    let ran = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_hermitcrab")])
        .current_dir(home.project())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    let told = String::from_utf8(ran.stdout).unwrap();
    if ran.status.code() == Some(96) || told.is_empty() {
        println!(
            "SKIPPED: nothing can be mounted here: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        return;
    }
    assert_eq!(
        told,
        "workspace alone: 77\nseen\nand itself: 0\na\na directory there: 0\nthrough a link: 1\n\
         seen\ny\nz\nx\n.:\na.txt\nown\nvol\n\nvol/far:\n",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    // What was held of the workspace alone did nothing by halves.
    assert!(!home.project().join("b").exists());
}
