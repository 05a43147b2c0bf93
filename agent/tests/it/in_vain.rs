//! What was typed or set in vain is told, with what would do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use crate::cli::{bench, hermitcrab};

#[test]
fn a_first_word_that_is_no_command_is_told_where_it_goes() {
    let dir = bench();
    for (words, told) in [
        (
            &["grant", "fs.*=."][..],
            "hermitcrab caps grant 'fs.*=./target'",
        ),
        (&["mode"], "hermitcrab config set mode prompt"),
        (&["version"], "`hermitcrab --version`"),
        (&["what is in a.txt?"], "hermitcrab chat 'what is in src?'"),
        (&["ls", "-la"], "hermitcrab exec -- ls"),
    ] {
        let ran = hermitcrab(dir.path(), words);
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(64), "{errors}");
        assert!(errors.contains(told), "{words:?}: {errors}");
    }
    // Where a command is near, or it is one of a command's own, that is what is told.
    for words in [&["exce"][..], &["caps", "what is this?"]] {
        let ran = hermitcrab(dir.path(), words);
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(64), "{errors}");
        assert!(!errors.contains("Words for a model"), "{words:?}: {errors}");
    }
}

/// They are not gone by, as the specification has it, and that is no secret.
#[test]
fn the_doctor_names_variables_that_name_no_absolute_path() {
    let dir = bench();
    let told = |state: &str| {
        let output = Command::new("setsid")
            .args(["--wait", env!("CARGO_BIN_EXE_hermitcrab"), "doctor"])
            .current_dir(dir.path().join("proj"))
            .env_clear()
            .env("HOME", dir.path())
            .env("PATH", "/usr/bin:/bin")
            .env("XDG_STATE_HOME", state)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = told("rel/state");
    let line =
        "variables: XDG_STATE_HOME is `rel/state`, which is no absolute path, so it is not used\n";
    assert_eq!(text.matches(line).count(), 1, "{text}");
    assert!(!dir.path().join("proj/rel").exists());
    let absolute = dir.path().join("s");
    for state in ["", absolute.to_str().unwrap()] {
        let text = told(state);
        assert!(!text.contains("variables:"), "{text}");
    }
}
