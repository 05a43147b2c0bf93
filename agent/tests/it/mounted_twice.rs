//! What is said of a place holds for it by each path a file system is mounted at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home::Home;

/// Runs a script in a mount namespace of its own, the program as `$0`; what it printed, or
/// nothing where nothing can be mounted.
fn mounted(home: &Home, script: &str) -> Option<String> {
    let ran = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_hermitcrab")])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    let told = String::from_utf8(ran.stdout).unwrap();
    let why = String::from_utf8_lossy(&ran.stderr);
    if ran.status.code() == Some(96) || told.is_empty() {
        println!("SKIPPED: nothing can be mounted here: {why}");
        return None;
    }
    Some(format!("{told}{why}"))
}

#[test]
fn the_agents_own_places_are_known_behind_another_mount() {
    let home = Home::new();
    std::fs::create_dir_all(home.project().join("hc")).unwrap();
    std::fs::create_dir_all(home.path().join("twin")).unwrap();
    // A first run makes the places.
    home.run(&["exec", "--", "true"]);
    let told = mounted(
        &home,
        r#"
        mkdir -p /tmp/hc.$$ && mount -t tmpfs t /tmp/hc.$$ && mkdir /tmp/hc.$$/home || exit 96
        mount --bind "$HOME" /tmp/hc.$$/home || exit 96
        cd /tmp/hc.$$/home
        "$0" exec -- 'find . -name store.key'; echo "the home: $?"
        cd "$HOME/proj"
        mount --bind "$HOME/.local/state/hermitcrab" hc || exit 96
        "$0" exec --grant 'fs.*=./hc' -- 'cat hc/store.key; echo x > hc/new'; echo "the state: $?"
        "$0" call --grant 'fs.*=./hc' read_file '{"path":"hc/store.key"}'; echo "a tool: $?"
        "$0" call --grant 'fs.*=./hc' write_file '{"path":"hc/new","content":"x"}'; echo "a write: $?"
        ls hc/new
        cd /; umount -R /tmp/hc.$$; rmdir /tmp/hc.$$
        "#,
    );
    let Some(told) = told else { return };
    for part in [
        "the home: 64\n",
        "cannot be worked in, because",
        "(protected)",
        "a tool: 77",
        "a write: 77",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("ls: cannot access"), "{told}");
    let key = home.path().join(".local/state/hermitcrab/store.key");
    assert!(key.exists());
}

/// What is mounted over a part of the way hides what was mounted there, and is what counts.
#[test]
fn a_mount_that_another_one_hides_is_not_taken_for_it() {
    let home = Home::new();
    home.run(&["exec", "--", "true"]);
    let told = mounted(
        &home,
        r#"
        at="$HOME/proj/b/c/$(basename "$HOME")"
        mkdir -p "$at" && mount -t tmpfs hidden "$at" || exit 96
        mount --bind "$(dirname "$HOME")" "$HOME/proj/b/c" || exit 96
        cd "$at"
        "$0" exec -- 'find . -name store.key'; echo "the home: $?"
        "#,
    );
    let Some(told) = told else { return };
    assert!(told.contains("the home: 64\n"), "{told}");
    assert!(told.contains("cannot be worked in, because"), "{told}");
}

#[test]
fn a_rule_about_a_place_holds_behind_another_mount() {
    let home = Home::new();
    let secrets = home.path().join("secrets");
    std::fs::create_dir_all(&secrets).unwrap();
    std::fs::write(secrets.join("a.txt"), "needle\n").unwrap();
    std::fs::create_dir_all(home.project().join("by")).unwrap();
    home.configure(&format!(
        "[[rules]]\nid = \"r\"\ndecision = \"deny\"\nverbs = [\"fs.read\"]\non = \"{}\"\n",
        secrets.display()
    ));
    let told = mounted(
        &home,
        r#"
        cd "$HOME/proj"
        mount --bind "$HOME/secrets" by || exit 96
        "$0" call --grant 'fs.*=./by' read_file '{"path":"by/a.txt"}'; echo "a tool: $?"
        "$0" exec --grant 'fs.*=./by' -- 'cat by/a.txt'; echo "a command: $?"
        "$0" call --grant 'fs.*=./by' search_files '{"pattern":"need","path":"by"}'; echo "a search: $?"
        "#,
    );
    let Some(told) = told else { return };
    assert!(told.contains("denied-by-rule"), "{told}");
    assert!(told.contains("a tool: 77"), "{told}");
    assert!(!told.contains("needle"), "{told}");
}
