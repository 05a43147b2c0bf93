//! What is kept between sessions, from the command line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod killed;
mod listed;

use crate::support::home;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use home::Home;

const REMOVE: [&str; 3] = ["exec", "--", "rm a.txt"];

/// A home whose project has one standing grant.
fn with_grant() -> Home {
    let home = Home::new();
    let said = home.ok(&["caps", "grant", "fs.delete=."]);
    assert!(said.starts_with("standing0  fs.delete /"), "{said}");
    home
}

#[test]
fn a_standing_grant_counts_in_later_sessions_until_it_is_revoked() {
    let home = with_grant();
    assert!(
        home.ok(&["caps"]).contains("counts for another 29 days")
            || home.ok(&["caps"]).contains("counts for another 30 days")
    );
    let ran = home.run(&REMOVE);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.project().join("a.txt").exists());
    assert!(ran.err.contains("counting here: standing0"), "{}", ran.err);

    std::fs::write(home.project().join("a.txt"), "a\n").unwrap();
    assert!(
        home.ok(&["caps", "revoke", "standing0"])
            .contains("is revoked")
    );
    assert_eq!(home.run(&REMOVE).code, Some(77));
    assert!(home.project().join("a.txt").exists());
    assert!(
        home.ok(&["caps"])
            .contains("nothing is kept for this workspace")
    );
    assert!(
        home.ok(&["caps", "list", "--all"])
            .contains("it was revoked")
    );
    assert_eq!(home.run(&["caps", "revoke", "standing0"]).code, Some(64));
    assert_eq!(home.run(&["caps", "confirm", "standing0"]).code, Some(77));
    assert_eq!(home.run(&["caps", "revoke", "everything"]).code, Some(64));

    let ledger = home.ledger();
    for line in [
        "to be kept by command: always fs.delete",
        "kept by command as standing0",
        "by standing standing0",
        "to be revoked by command: standing0",
        "\"revoked by command: standing0\"",
    ] {
        assert!(
            ledger.contains(line),
            "`{line}` is not in the ledger:\n{ledger}"
        );
    }
    assert!(home.ok(&["audit", "verify"]).contains("whole"));
}

#[test]
fn a_standing_grant_is_for_its_workspace_alone() {
    let home = with_grant();
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("a.txt"), "a\n").unwrap();
    assert!(
        home.run_in(&other, &["caps"])
            .out
            .contains("nothing is kept")
    );
    assert_eq!(home.run_in(&other, &REMOVE).code, Some(77));
    assert!(other.join("a.txt").exists());
}

#[test]
fn a_reference_gives_a_grant_to_one_other_workspace() {
    let home = with_grant();
    let others = ["one", "two"].map(|name| {
        let dir = home.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    });
    let with = others[0].to_str().unwrap();
    let reference = home.ok(&["caps", "share", "standing0", "--with", with]);
    assert!(reference.starts_with("/object/") && reference.trim().len() == 60);
    let file = home.path().join("reference");
    std::fs::write(&file, &reference).unwrap();
    let target = home.project().join("a.txt");
    let call = format!("rm {}", target.display());
    let presented = |dir: &std::path::Path| {
        home.run_in(
            dir,
            &["exec", "--object", file.to_str().unwrap(), "--", "true"],
        )
    };
    // For another workspace it is as if it did not exist, and so is nonsense.
    let foreign = presented(&others[1]);
    assert_eq!(foreign.code, Some(77), "{foreign:?}");
    assert!(foreign.err.contains("no-such-object"), "{foreign:?}");
    let nonsense = home.path().join("nonsense");
    std::fs::write(&nonsense, "/object/x").unwrap();
    let unknown = home.run_in(
        &others[1],
        &["exec", "--object", nonsense.to_str().unwrap(), "--", "true"],
    );
    assert_eq!((unknown.code, unknown.err), (foreign.code, foreign.err));

    let ran = home.run_in(
        &others[0],
        &[
            "exec",
            "--object",
            file.to_str().unwrap(),
            "--grant",
            &format!("fs.read={}", home.project().display()),
            "--",
            &call,
        ],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!target.exists());

    // The reference ends with the grant, and was never written down.
    home.ok(&["caps", "revoke", "standing0"]);
    assert_eq!(presented(&others[0]).code, Some(77));
    let letters = reference.trim().strip_prefix("/object/").unwrap();
    for name in ["ledger.jsonl", "store.redb", "anchor", "ledger.index"] {
        let bytes = std::fs::read(home.state(name)).unwrap();
        let found = bytes
            .windows(letters.len())
            .any(|window| window.eq_ignore_ascii_case(letters.as_bytes()));
        assert!(!found, "the reference is in `{name}`");
    }
}

#[test]
fn a_grant_of_what_a_rule_refuses_is_told_by_which() {
    let home = Home::new();
    home.configure(
        "[[rules]]\nid = \"deny-1\"\ndecision = \"deny\"\nverbs = [\"net.connect\"]\nhost = \"127.0.0.1:*\"\n",
    );
    let grant = "net.connect=127.0.0.1:8099";
    for arguments in [
        ["caps", "grant", grant].as_slice(),
        &["exec", "--grant", grant, "--", "true"],
    ] {
        let ran = home.run(arguments);
        assert!(
            ran.err
                .contains("stays refused, whatever is granted: by the rule deny-1"),
            "{ran:?}"
        );
    }
    let ran = home.run(&[
        "exec",
        "--grant",
        "net.connect=127.0.0.2:8099",
        "--",
        "true",
    ]);
    assert!(!ran.err.contains("stays refused"), "{ran:?}");
}

#[test]
fn the_mode_decides_what_becomes_of_what_is_not_held() {
    let home = Home::new();
    assert_eq!(
        home.run(&["exec", "--mode", "reject_all", "--", "rm a.txt"])
            .code,
        Some(77)
    );
    assert_eq!(
        home.run(&["exec", "--mode", "sometimes", "--", "rm a.txt"])
            .code,
        Some(64)
    );
    // What is asked about each time has nobody to say yes to it.
    let env = "{\"path\": \".env\", \"content\": \"x\"}";
    assert_eq!(
        home.run(&["call", "--mode", "approve_all", "write_file", env])
            .code,
        Some(77)
    );
    assert!(!home.project().join(".env").exists());
    let ran = home.run(&["exec", "--mode", "approve_all", "--", "rm a.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.project().join("a.txt").exists());
    home.configure("mode = \"approve_all\"\n");
    assert!(
        home.ok(&["doctor"])
            .contains("mode: approve_all (your file)")
    );
    home.configure("mode = \"reject_all\"\n");
    std::fs::write(home.project().join("a.txt"), "a\n").unwrap();
    assert_eq!(home.run(&REMOVE).code, Some(77));
}

/// A grant on one file opens the directory it lies in; the mode allows nothing else there.
#[test]
fn a_mode_allows_nothing_where_only_a_file_was_granted() {
    let home = Home::new();
    let other = home.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("one"), "1\n").unwrap();
    let grant = "fs.read=~/other/one";
    let call = |tool, name: &str, rest: &str| {
        let place = other.join(name).display().to_string();
        let args = format!("{{\"path\": \"{place}\"{rest}}}");
        home.run(&[
            "call",
            "--mode",
            "approve_all",
            "--grant",
            grant,
            tool,
            &args,
        ])
    };
    assert_eq!(call("read_file", "one", "").code, Some(0));
    let made = call("write_file", "two", ", \"content\": \"x\"");
    assert_eq!(made.code, Some(77), "{made:?}");
    assert!(!other.join("two").exists());
    let changed = call("write_file", "one", ", \"content\": \"x\"");
    assert_eq!(changed.code, Some(77), "{changed:?}");
    assert_eq!(std::fs::read(other.join("one")).unwrap(), b"1\n");
}

#[test]
fn decisions_name_their_rule_its_file_and_its_line() {
    let home = Home::new();
    let file = home.configure(
        "[[rules]]\nid = \"all-files\"\ndecision = \"allow\"\nverbs = [\"fs.*\"]\non = \".\"\n\n\
         [[rules]]\nid = \"no-keys\"\ndecision = \"deny\"\nverbs = [\"fs.*\"]\nnamed = \"*.pem\"\n\n\
         [[rules]]\nid = \"docs\"\ndecision = \"ask\"\nverbs = [\"fs.modify\"]\non = \"docs\"\n",
    );
    std::fs::create_dir(home.project().join("docs")).unwrap();
    let check = |verb: &str, object: &str, code: i32, parts: &[&str]| {
        let ran = home.run(&["explain", verb, object]);
        assert_eq!(ran.code, Some(code), "{verb} {object}: {ran:?}");
        for part in parts {
            assert!(
                ran.out.contains(part),
                "{verb} {object} lacks `{part}`: {}",
                ran.out
            );
        }
    };
    let line = |id: &str, line: u32| format!("rule: {id} at {}:{line}", file.display());
    check(
        "fs.modify",
        "a.txt",
        0,
        &["allow: fs.modify /", "builtin.held"],
    );
    check(
        "fs.modify",
        "tls/key.pem",
        77,
        &["deny:", &line("no-keys", 7)],
    );
    check("fs.modify", "docs/a.md", 0, &["ask:", &line("docs", 13)]);
    check("fs.create", "docs/a.md", 0, &["allow:"]);
    check(
        "fs.modify",
        "~/elsewhere.txt",
        0,
        &["ask:", "builtin.not-held", "no-cap"],
    );
    check(
        "fs.modify",
        "~/.local/state/hermitcrab/ledger.jsonl",
        77,
        &["builtin.own-files", "protected"],
    );
    check(
        "fs.read",
        "~/.config/hermitcrab/config.toml",
        77,
        &["builtin.own-files"],
    );
    assert_eq!(home.run(&["explain", "fs.fly", "a"]).code, Some(64));
    // What is explained is what happens.
    let write = |path: &str| {
        let args = format!("{{\"path\": \"{path}\", \"content\": \"x\"}}");
        home.run(&["call", "write_file", &args]).code
    };
    assert_eq!(write("new.txt"), Some(0));
    assert_eq!(write("new.pem"), Some(77));
    assert!(!home.project().join("new.pem").exists());
    // No standing grant, no mode reaches past it.
    home.ok(&["caps", "grant", "fs.*=."]);
    let args = "{\"path\": \"new.pem\", \"content\": \"x\"}";
    assert_eq!(
        home.run(&["call", "--mode", "approve_all", "write_file", args])
            .code,
        Some(77)
    );
    assert!(
        !home.state("ledger.jsonl").exists() || home.ok(&["audit", "verify"]).contains("whole")
    );
}

#[test]
fn what_would_be_asked_about_is_explained_with_the_grants_that_allow_it() {
    let home = Home::new();
    let told = home.ok(&["explain", "--mode", "prompt", "fs.delete", "a.txt"]);
    assert!(
        told.contains("`hermitcrab caps grant fs.delete=a.txt`"),
        "{told}"
    );
    let told = home.ok(&["explain", "fs.read", "a.txt"]);
    assert!(!told.contains("caps grant"), "{told}");
    // What is asked about each time no grant spares.
    let told = home.ok(&["explain", "--mode", "prompt", "fs.modify", ".env"]);
    assert!(
        told.contains("(sensitive-path)") && !told.contains("caps grant"),
        "{told}"
    );
}

#[test]
fn explaining_leaves_no_trace() {
    let home = Home::new();
    home.ok(&["explain", "fs.read", "a.txt"]);
    assert!(!home.state("ledger.jsonl").exists());
    assert!(!home.state("store.key").exists());
}

/// What one thing wrong with the state directory leads to.
struct Damage {
    name: &'static str,
    does: fn(&Home),
    /// What is said about it.
    said: &'static str,
    /// Whether a session still opens (without what is kept).
    opens: bool,
    /// Whether the standing grant counts again after the repair, and after
    /// confirming what waits.
    comes_back: [bool; 2],
}

fn flip(path: &std::path::Path, from_end: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.len() - from_end;
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn set_mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn link_away(home: &Home, name: &str) {
    let elsewhere = home.path().join(format!("{name}.elsewhere"));
    std::fs::rename(home.state(name), &elsewhere).unwrap();
    symlink(&elsewhere, home.state(name)).unwrap();
}

#[test]
fn damage_widens_nothing_is_told_and_can_be_repaired() {
    const KEEPS: [bool; 2] = [true, true];
    const WAITS: [bool; 2] = [false, true];
    const GONE: [bool; 2] = [false, false];
    let all = [
        Damage {
            name: "the store is empty",
            does: |home| std::fs::write(home.state("store.redb"), b"").unwrap(),
            said: "store",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the store is half there",
            does: |home| {
                let bytes = std::fs::read(home.state("store.redb")).unwrap();
                std::fs::write(home.state("store.redb"), &bytes[..bytes.len() / 2]).unwrap();
            },
            said: "is damaged",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the store is gone",
            does: |home| std::fs::remove_file(home.state("store.redb")).unwrap(),
            said: "is an older one",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the store is a link",
            does: |home| link_away(home, "store.redb"),
            said: "symbolic link",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the store can be written by others",
            does: |home| set_mode(&home.state("store.redb"), 0o666),
            said: "mode 0666",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the store can be read by others",
            does: |home| set_mode(&home.state("store.redb"), 0o644),
            said: "mode 0644",
            opens: true,
            comes_back: KEEPS,
        },
        Damage {
            name: "the key is cut",
            does: |home| std::fs::write(home.state("store.key"), b"short").unwrap(),
            said: "has 5 bytes",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the key has a bit flipped",
            does: |home| flip(&home.state("store.key"), 1),
            said: "another key",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the key is gone",
            does: |home| std::fs::remove_file(home.state("store.key")).unwrap(),
            said: "key is gone",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the key can be read by others",
            does: |home| set_mode(&home.state("store.key"), 0o604),
            said: "mode 0604",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the key is a link",
            does: |home| link_away(home, "store.key"),
            said: "symbolic link",
            opens: true,
            comes_back: GONE,
        },
        Damage {
            name: "the anchor is gone",
            does: |home| std::fs::remove_file(home.state("anchor")).unwrap(),
            said: "anchor is gone",
            opens: true,
            comes_back: WAITS,
        },
        Damage {
            name: "the anchor has a bit flipped",
            does: |home| flip(&home.state("anchor"), 500),
            said: "anchor",
            opens: true,
            comes_back: WAITS,
        },
        Damage {
            name: "the ledger has a byte changed",
            does: |home| {
                let text = home.ledger().replacen("\"intent\"", "\"INTENT\"", 1);
                std::fs::write(home.state("ledger.jsonl"), text).unwrap();
            },
            said: "was changed",
            opens: false,
            comes_back: KEEPS,
        },
        Damage {
            name: "the ledger is gone",
            does: |home| std::fs::remove_file(home.state("ledger.jsonl")).unwrap(),
            said: "lacks records it had",
            opens: false,
            comes_back: KEEPS,
        },
        Damage {
            name: "the ledger can be written by others",
            does: |home| set_mode(&home.state("ledger.jsonl"), 0o622),
            said: "mode 0622",
            opens: false,
            comes_back: KEEPS,
        },
        Damage {
            name: "the directory can be written by others",
            does: |home| set_mode(&home.state(""), 0o777),
            said: "mode 0777",
            opens: false,
            comes_back: KEEPS,
        },
    ];
    for damage in all {
        let home = with_grant();
        home.ok(&["exec", "--", "true"]);
        (damage.does)(&home);
        let name = damage.name;

        // Told, by the doctor and at a start.
        let told = home.run(&["doctor"]);
        assert_eq!(told.code, Some(74), "{name}: {told:?}");
        assert!(told.err.contains(damage.said), "{name}: {}", told.err);
        let ran = home.run(&REMOVE);
        let code = if damage.opens { 77 } else { 74 };
        assert_eq!(ran.code, Some(code), "{name}: {ran:?}");
        assert!(ran.err.contains(damage.said), "{name}: {}", ran.err);
        // Nothing is wider for it.
        assert!(home.project().join("a.txt").exists(), "{name}");

        // Everything found is kept.
        let before: Vec<(String, Vec<u8>)> = ["ledger.jsonl", "store.redb", "store.key", "anchor"]
            .into_iter()
            .filter_map(|file| {
                let seen = std::fs::symlink_metadata(home.state(file)).ok()?;
                let bytes = seen
                    .is_file()
                    .then(|| std::fs::read(home.state(file)).unwrap());
                Some((file.to_owned(), bytes?))
            })
            .collect();
        let repaired = home.run(&["doctor", "--repair"]);
        assert_eq!(repaired.code, Some(0), "{name}: {repaired:?}");
        let copy = std::fs::read_dir(home.state(""))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.is_dir() && !path.ends_with("journal"));
        for (file, bytes) in before {
            let kept = copy
                .as_ref()
                .and_then(|copy| std::fs::read(copy.join(&file)).ok());
            let now = std::fs::read(home.state(&file)).ok();
            let there = [kept, now.clone()]
                .into_iter()
                .flatten()
                .any(|found| found == bytes)
                || (file == "anchor" || file == "ledger.jsonl")
                    && now.is_some_and(|now| now.len() >= bytes.len());
            assert!(there, "{name}: `{file}` is lost");
        }
        let healthy = home.run(&["doctor"]);
        assert_eq!(healthy.code, Some(0), "{name}: {healthy:?}");

        // What was held is held again, or less.
        let [at_once, confirmed] = damage.comes_back;
        let held = |expected: bool, when: &str| {
            let ran = home.run(&REMOVE);
            let code = if expected { 0 } else { 77 };
            assert_eq!(ran.code, Some(code), "{name}, {when}: {ran:?}");
            std::fs::write(home.project().join("a.txt"), "a\n").unwrap();
        };
        held(at_once, "after the repair");
        home.run(&["caps", "confirm", "standing0"]);
        held(confirmed, "after confirming");
        home.ok(&["audit", "verify"]);
    }
}

#[test]
fn repairing_what_holds_changes_nothing() {
    let home = with_grant();
    let before = home.ledger();
    assert!(
        home.ok(&["doctor", "--repair"])
            .contains("nothing was changed")
    );
    assert_eq!(home.ledger(), before);
    let fresh = Home::new();
    assert!(
        fresh
            .ok(&["doctor", "--repair"])
            .contains("nothing to repair")
    );
}
