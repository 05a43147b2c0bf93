//! What commands change, on disk until it is decided: by the program as it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::Ceilings;
use serde_json::{Value, json};

use crate::support::{Bench, home::Home};

const CREATE: [&str; 2] = ["--grant", "fs.create=."];

fn exec(home: &Home, script: &str) -> crate::support::home::Ran {
    let mut arguments = vec!["exec"];
    arguments.extend(CREATE);
    arguments.extend(["--", script]);
    home.run(&arguments)
}

#[test]
fn a_command_writes_more_than_memory_holds_where_its_layer_lies_on_disk() {
    let home = Home::new();
    home.configure(
        "[sandbox]\nlayers = \"disk\"\n[limits]\ncpu_quota_percent = 100\ntimeout_seconds = 300\n",
    );
    let told = home.ok(&["doctor"]);
    if !told.contains("overlay, its layer on disk") {
        println!("SKIPPED: no layer can lie on disk here: {told}");
        return;
    }
    let ran = exec(&home, "head -c 600M /dev/zero > big");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let made = std::fs::metadata(home.project().join("big")).unwrap();
    assert_eq!(made.len(), 600 << 20);
    // One file may be as long as all of them together.
    let ran = exec(&home, "truncate -s 1100M holes");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let made = std::fs::metadata(home.project().join("holes")).unwrap();
    assert_eq!(made.len(), 1100 << 20);
    let left = std::fs::read_dir(home.state("layers")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_command_that_changes_more_than_it_may_is_ended_and_told_why() {
    let home = Home::new();
    home.configure("[sandbox]\nlayers = \"disk\"\n[limits]\nchanges_max_mb = 16\n");
    if !home.ok(&["doctor"]).contains("overlay, its layer on disk") {
        println!("SKIPPED: no layer can lie on disk here");
        return;
    }
    let ran = exec(&home, "head -c 64M /dev/zero > big; sleep 30");
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let told = format!("{}{}", ran.out, ran.err);
    assert!(told.contains("limits.changes_max_mb"), "{told}");
}

#[test]
fn who_wants_a_file_longer_than_any_may_be_is_told_what_lets_it() {
    let home = Home::new();
    let ran = exec(&home, "ulimit -f 1; head -c 4M /dev/zero > big");
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("limits.changes_max_mb"), "{ran:?}");
    assert!(!home.state("roomy").exists());
}

#[test]
fn nothing_is_made_on_disk_where_nobody_wants_it_and_memory_will_do() {
    let home = Home::new();
    let ran = exec(&home, "echo x > made");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    if !hermitcrab_sandbox::layers::memory_holds_layers() {
        println!("SKIPPED: this kernel holds no layers in memory");
        return;
    }
    assert!(!home.state("layers").exists());
    assert!(
        home.ok(&["doctor"])
            .contains("overlay, its layer in memory")
    );
}

#[test]
fn what_a_killed_agent_left_on_disk_goes_where_layers_lie_in_memory_by_now() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.configure("[sandbox]\nlayers = \"disk\"\n");
    assert_eq!(exec(&home, "echo x > made").code, Some(0));
    let left = home.state("layers").join("left");
    std::fs::create_dir_all(left.join("0/upper/d")).unwrap();
    std::fs::write(left.join("0/upper/d/f"), "x").unwrap();
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(left.join("0/upper/d"), closed).unwrap();
    home.configure("[sandbox]\nlayers = \"memory\"\n");
    assert_eq!(exec(&home, "sleep 0.5").code, Some(0));
    crate::support::home::until(|| (!left.exists()).then_some(()));
}

/// Whether memory is held to a limit here, and layers can lie in it and on disk.
fn has_both(home: &Home) -> bool {
    let holds = home
        .ok(&["doctor"])
        .contains("control groups: holding memory");
    home.configure("[sandbox]\nlayers = \"disk\"\n");
    let on_disk = home.ok(&["doctor"]).contains("overlay, its layer on disk");
    holds && on_disk && hermitcrab_sandbox::layers::memory_holds_layers()
}

#[test]
fn a_workspace_where_memory_was_not_enough_has_a_disk_from_the_next_command_on() {
    let home = Home::new();
    if !has_both(&home) {
        println!("SKIPPED: memory is not held to a limit here, or layers lie in one place only");
        return;
    }
    let small = "[limits]\nmemory_max_mb = 64\ncpu_quota_percent = 100\n";
    home.configure(small);
    // Another name for a file of before takes all of it.
    let long = home.project().join("long");
    std::fs::write(&long, vec![b'x'; 100 << 20]).unwrap();
    std::fs::create_dir(home.project().join("d")).unwrap();
    let moves = |home: &Home| home.run(&["exec", "--grant", "fs.*=.", "--", "mv long d/"]);
    let ran = moves(&home);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("run it again"), "{ran:?}");
    assert!(long.exists());
    let ran = moves(&home);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let moved = std::fs::metadata(home.project().join("d/long")).unwrap();
    assert_eq!(moved.len(), 100 << 20);
    assert!(home.ok(&["doctor"]).contains("overlay, its layer on disk"));
    // Elsewhere nothing needed it.
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let told = home.ok(&["doctor", "--workspace", other.to_str().unwrap()]);
    assert!(told.contains("overlay, its layer in memory"), "{told}");
    // Whoever wants it in memory has it there, and is told what that costs.
    home.configure(&format!("{small}[sandbox]\nlayers = \"memory\"\n"));
    let ran = home.run(&["exec", "--grant", "fs.*=.", "--", "mv d/long ."]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("sandbox.layers disk"), "{ran:?}");
    // Where that is not what is wanting, nobody is told to try the same again.
    home.configure(small);
    let greedy = "python3 -c 'print(len(b\"x\" * (300 << 20)))'";
    let ran = exec(&home, greedy);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("limits.memory_max_mb"), "{ran:?}");
    assert!(!ran.err.contains("run it again"), "{ran:?}");
}

#[test]
fn a_session_that_goes_on_has_a_disk_as_well_once_memory_was_not_enough() {
    let mut bench = Bench::with_files();
    bench.runtime.set_ceilings(Ceilings {
        memory_bytes_max: Some(64 << 20),
        ..Ceilings::default()
    });
    let mut run = || -> Value {
        let command = "head -c 100M /dev/zero > big && stat -c %s big && rm big";
        let report = bench.call("terminal", json!({"command": command}));
        serde_json::from_str(&report.text).unwrap()
    };
    let first = run();
    if first["exit_code"] == 0 {
        println!("SKIPPED: no control group holds memory here");
        return;
    }
    let told = first["memory"].as_str().unwrap_or_default();
    assert!(told.contains("run it again"), "{first}");
    let second = run();
    assert_eq!(second["exit_code"], 0, "{second}");
    assert_eq!(second["output"], "104857600", "{second}");
}

#[test]
fn what_finds_no_room_in_memory_is_told_where_there_is_more() {
    if !hermitcrab_sandbox::layers::memory_holds_layers() {
        println!("SKIPPED: this kernel holds no layers in memory");
        return;
    }
    let home = Home::new();
    home.configure("[limits]\nchanges_max_mb = 16\n");
    std::fs::write(home.project().join("long"), vec![b'x'; 24 << 20]).unwrap();
    // Of a file that gets a line more all is kept.
    for script in ["head -c 32M /dev/zero > big", "echo more >> long"] {
        let ran = exec(&home, script);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for part in ["in memory", "sandbox.layers disk", "limits.changes_max_mb"] {
            assert!(ran.err.contains(part), "{script}: {part}: {ran:?}");
        }
    }
    let ran = exec(&home, "echo No space left on device");
    assert!(!ran.err.contains("sandbox.layers"), "{ran:?}");
    let ran = exec(&home, "echo something else; exit 1");
    assert!(!ran.err.contains("sandbox.layers"), "{ran:?}");
}

#[test]
fn who_finds_no_room_in_tmp_is_told_what_gives_it_more() {
    let home = Home::new();
    home.configure("[limits]\ntmp_max_mb = 16\n");
    for script in [
        "dd if=/dev/zero of=/tmp/big bs=1M count=32",
        "echo 'write /tmp/go-build1/b001/x.a: no space left on device'; exit 1",
    ] {
        let ran = exec(&home, script);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("limits.tmp_max_mb"), "{script}: {ran:?}");
        assert!(!ran.err.contains("sandbox.layers"), "{script}: {ran:?}");
    }
    // Not every program says which file it wrote.
    let ran = exec(&home, "head -c 32M /dev/zero > /tmp/big");
    assert!(ran.err.contains("limits.tmp_max_mb"), "{ran:?}");
    // Nothing else is, where what is changed lies on disk.
    home.configure("[sandbox]\nlayers = \"disk\"\n[limits]\ntmp_max_mb = 16\n");
    let ran = exec(&home, "head -c 32M /dev/zero > /tmp/big");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("limits.tmp_max_mb"), "{ran:?}");
    assert!(!ran.err.contains("sandbox.layers"), "{ran:?}");
    // More memory is more room there, unless that is said otherwise.
    let large = "head -c 300M /dev/zero > /tmp/big";
    home.configure("[limits]\nmemory_max_mb = 1024\n");
    assert_eq!(exec(&home, large).code, Some(0));
    home.configure("[limits]\nmemory_max_mb = 1024\ntmp_max_mb = 256\n");
    assert_eq!(exec(&home, large).code, Some(1));
}

#[test]
fn a_model_is_told_as_well_what_took_the_memory() {
    let mut bench = Bench::with_files();
    bench.runtime.set_ceilings(Ceilings {
        memory_bytes_max: Some(64 << 20),
        ..Ceilings::default()
    });
    let command = "exec python3 -c 'print(len(b\"x\" * (300 << 20)))'";
    let report = bench.call("terminal", json!({"command": command}));
    let result: Value = serde_json::from_str(&report.text).unwrap();
    if result["exit_code"] == 0 {
        println!("SKIPPED: no control group holds memory here");
        return;
    }
    let told = result["memory"].as_str().unwrap_or_default();
    assert!(told.contains("limits.memory_max_mb"), "{result}");
}
