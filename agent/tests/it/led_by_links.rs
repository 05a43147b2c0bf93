//! Links on the way to what binds the agent: its own files, and what a rule is about. Who may
//! change such a link could put another thing in the place of what it led to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::home::{Home, Ran};

/// A home with a directory the agent is given, `given`, and one it has nothing to do with.
fn home() -> Home {
    let home = Home::new();
    for dir in ["given", "elsewhere/hermitcrab", ".config/hermitcrab"] {
        std::fs::create_dir_all(home.path().join(dir)).unwrap();
    }
    home
}

fn refused(ran: &Ran, code: i32, why: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    let told = format!("{}{}", ran.out, ran.err);
    assert!(told.contains(why), "{ran:?}");
}

#[test]
fn nobody_works_where_a_link_lies_by_which_the_agents_own_files_are_found() {
    let below = "is below it";
    let exec = ["exec", "--grant", "fs.*=.", "--", "rm -rf led *; mkdir led"];
    // A file by two links.
    let one = home();
    let led = one.project().join("led");
    symlink(&led, one.path().join(".config/hermitcrab/config.toml")).unwrap();
    symlink(one.path().join("elsewhere/c.toml"), &led).unwrap();
    std::fs::write(one.path().join("elsewhere/c.toml"), "mode = \"prompt\"\n").unwrap();
    refused(&one.run(&exec), 64, below);
    assert!(led.is_symlink() && one.project().join("a.txt").exists());
    // A directory on the way, the last or not.
    for rest in ["", "/hermitcrab"] {
        let two = home();
        let led = two.project().join("led");
        std::fs::remove_dir(two.path().join(".config/hermitcrab")).unwrap();
        symlink(
            format!("{}{rest}", led.display()),
            two.path().join(".config/hermitcrab"),
        )
        .unwrap();
        let target = if rest.is_empty() {
            "elsewhere/hermitcrab"
        } else {
            "elsewhere"
        };
        symlink(two.path().join(target), &led).unwrap();
        refused(&two.run(&exec), 64, below);
        assert!(led.is_symlink());
    }
    // Where records and grants are kept.
    let three = home();
    let led = three.project().join("led");
    std::fs::create_dir_all(three.path().join(".local/state")).unwrap();
    symlink(&led, three.path().join(".local/state/hermitcrab")).unwrap();
    symlink(three.path().join("elsewhere/hermitcrab"), &led).unwrap();
    refused(&three.run(&exec), 64, below);
    assert!(led.is_symlink());
}

#[test]
fn such_a_link_in_a_directory_that_is_given_stays_what_it_is() {
    let home = home();
    let led = home.path().join("given/led");
    symlink(&led, home.path().join(".config/hermitcrab/config.toml")).unwrap();
    symlink(home.path().join("elsewhere/c.toml"), &led).unwrap();
    std::fs::write(home.path().join("elsewhere/c.toml"), "mode = \"prompt\"\n").unwrap();
    let given = home.path().join("given");
    let grant = format!("fs.*={}", given.display());
    let path = led.to_str().unwrap();
    let moved = home.path().join("given/moved");
    for patch in [
        format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch"),
        format!(
            "*** Begin Patch\n*** Move File: {path} -> {}\n*** End Patch",
            moved.display()
        ),
    ] {
        let arguments = json!({"mode": "patch", "patch": patch}).to_string();
        let ran = home.run(&["call", "--grant", &grant, "patch", &arguments]);
        refused(&ran, 77, "(protected)");
        assert!(led.is_symlink() && !moved.is_symlink());
    }
}

/// A home is behind a link where its disk is another one, and settings are where they are kept
/// in order: what lies beside the agent's own files is nothing of theirs.
#[test]
fn what_lies_behind_such_a_link_besides_is_worked_on_as_ever() {
    let home = home();
    std::fs::create_dir_all(home.path().join("dotfiles/config/nvim")).unwrap();
    std::fs::write(home.path().join("dotfiles/config/nvim/init.lua"), "x = 1\n").unwrap();
    std::fs::remove_dir_all(home.path().join(".config")).unwrap();
    symlink("dotfiles/config", home.path().join(".config")).unwrap();
    std::fs::create_dir(home.path().join("other-disk")).unwrap();
    symlink("other-disk", home.path().join(".local")).unwrap();
    let by = tempfile::tempdir().unwrap();
    symlink(home.path().parent().unwrap(), by.path().join("by")).unwrap();
    let spelled = by.path().join("by").join(home.path().file_name().unwrap());
    let run = |dir: &str, arguments: &[&str]| {
        let mut command = home.command(&spelled.join(dir), arguments);
        let output = command.env("HOME", &spelled).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let read = "{\"path\": \"a.txt\"}";
    assert!(run("proj", &["call", "read_file", read]).contains("1|a"));
    run(
        "proj",
        &["exec", "--grant", "fs.*=.", "--", "echo b > a.txt"],
    );
    run(
        "proj",
        &["config", "add-directory", "~/dotfiles/config/nvim"],
    );
    // By the name that was written down, which has no links on the way.
    let real = home.path().canonicalize().unwrap();
    let name = real.join("dotfiles/config/nvim/init.lua");
    let read = json!({"path": name}).to_string();
    assert!(run("proj", &["call", "read_file", &read]).contains("x = 1"));
    let nvim = ["exec", "--grant", "fs.*=.", "--", "echo 'x = 2' > init.lua"];
    run("dotfiles/config/nvim", &nvim);
    // The agent's own are out of reach all the same, by whatever name.
    for own in [
        "dotfiles/config/hermitcrab/config.toml",
        ".config/hermitcrab/config.toml",
    ] {
        let read = json!({"path": spelled.join(own)}).to_string();
        let grant = format!("fs.read={}", spelled.join("dotfiles").display());
        let ran = home
            .command(
                &spelled.join("proj"),
                &["call", "--grant", &grant, "read_file", &read],
            )
            .env("HOME", &spelled)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(77), "{own}: {ran:?}");
    }
}

#[test]
fn a_rule_goes_on_being_about_the_place_its_user_meant() {
    let home = home();
    std::fs::create_dir_all(home.path().join("given/private")).unwrap();
    std::fs::write(home.path().join("given/private/s"), "topsecret\n").unwrap();
    std::fs::create_dir(home.project().join("sub")).unwrap();
    symlink("data", home.project().join("sub/by")).unwrap();
    symlink(home.path().join("given"), home.project().join("sub/data")).unwrap();
    let given = home.path().join("given");
    let rule = |decision: &str| {
        home.configure(&format!(
            "directories = [\"{}\"]\n[[rules]]\nid = \"no-private\"\ndecision = \"{decision}\"\nverbs = [\"fs.read\", \"fs.list\"]\non = \"sub/by/private\"\n",
            given.display()
        ));
    };
    let secret = json!({"path": given.join("private/s")}).to_string();
    let look = |home: &Home| home.run(&["call", "read_file", &secret]);
    for decision in ["deny", "ask"] {
        rule(decision);
        for script in [
            "rm sub/data; mkdir -p sub/data/private",
            "rm sub/by; mkdir -p sub/by/private",
            "mv sub/data sub/other",
            "mv sub elsewhere",
            "rm -r sub",
            "ln -sfn /tmp sub/by",
        ] {
            let ran = home.run(&["exec", "--grant", "fs.*=.", "--", script]);
            refused(&ran, 77, "a configured rule");
            refused(&look(&home), 77, "rule");
        }
        // All else there is changed as ever.
        home.ok(&[
            "exec",
            "--grant",
            "fs.*=.",
            "--",
            "echo x > sub/x; rm sub/x; echo y > a.txt",
        ]);
    }
    // What allows is about nothing but the place.
    rule("allow");
    home.ok(&["exec", "--grant", "fs.*=.", "--", "rm sub/by"]);
}

#[test]
fn nothing_is_no_place_to_grant_or_to_rule_about() {
    let home = home();
    for arguments in [
        &["exec", "--grant", "fs.*=", "--", "rm a.txt"][..],
        &["caps", "grant", "fs.modify="],
    ] {
        refused(&home.run(arguments), 64, "fs.");
    }
    assert!(home.project().join("a.txt").exists());
    let exec = ["exec", "--", "true"];
    home.configure("[[grants]]\nverb = \"fs.modify\"\non = \"\"\n");
    refused(&home.run(&exec), 64, "cannot be granted on nothing");
    home.configure(
        "[[rules]]\nid = \"r\"\ndecision = \"deny\"\nverbs = [\"fs.read\"]\non = \"\"\n",
    );
    refused(&home.run(&exec), 64, "`on` is empty");
}

#[test]
fn a_list_of_directories_is_held_to_what_one_is_held_to() {
    let home = home();
    let file = home.configure("mode = \"prompt\"\n");
    let before = std::fs::read_to_string(&file).unwrap();
    for (list, why) in [
        ("[\"/\"]", "your whole home"),
        ("[\"~\"]", "your whole home"),
        ("[\"~/given\", \"~/.config/hermitcrab\"]", "own files"),
        ("[\"rel\"]", "named from where you are"),
    ] {
        let ran = home.run(&["config", "set", "directories", list]);
        refused(&ran, 64, why);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    }
    home.ok(&[
        "config",
        "set",
        "directories",
        "[\"~/given\", \"~/not/yet\"]",
    ]);
    // What is nowhere opens nothing above it, and ends no session.
    home.configure("directories = [\"/no-such-directory/x\"]\n");
    let ran = home.run(&["call", "read_file", "{\"path\": \"a.txt\"}"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("is left out: nothing is there"), "{ran:?}");
}

#[test]
fn a_peer_is_granted_by_the_name_it_is_reached_by() {
    let home = home();
    for (peer, told) in [
        ("EXAMPLE.com.:443", "net.connect example.com:443"),
        ("example.com", "net.connect example.com"),
        ("[0:0::1]:80", "net.connect ::1:80"),
    ] {
        home.ok(&["caps", "grant", &format!("net.connect={peer}")]);
        assert!(
            home.ok(&["caps"]).contains(told),
            "{peer}: {}",
            home.ok(&["caps"])
        );
    }
    for peer in [
        "127.1:80",
        "0x7f000001:80",
        "a..b:1",
        "localhost:80",
        "-a.b:1",
    ] {
        let ran = home.run(&["caps", "grant", &format!("net.connect={peer}")]);
        refused(&ran, 64, "a peer is a name and a port");
    }
    // One of the configuration ends no session.
    home.configure("[[grants]]\nverb = \"net.connect\"\non = \"localhost:3000\"\n");
    let ran = home.run(&["call", "read_file", "{\"path\": \"a.txt\"}"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("left out of the configuration"), "{ran:?}");
}
