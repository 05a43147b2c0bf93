//! What commands change, on disk until it is decided: by the program as it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::home::Home;

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
