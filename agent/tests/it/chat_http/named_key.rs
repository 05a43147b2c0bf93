//! A key that the command line names.

use std::process::Command;

use super::{backend, bench, hermitcrab, says};

#[test]
fn a_key_in_the_environment_is_named_on_the_command_line_and_told_by_its_name() {
    let dir = bench();
    let open = ["chat", "--model", "m", "--key-env", "KEY_OF_M", "hi"];
    let refused = hermitcrab(dir.path(), &open);
    assert_eq!(refused.status.code(), Some(64));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("`KEY_OF_M` that `--key-env` names"), "{why}");
    let both = [&open[..5], &["--key-file", "../key", "hi"]].concat();
    let refused = hermitcrab(dir.path(), &both);
    assert_eq!(refused.status.code(), Some(64));
    let (base, asked) = backend(vec![says("hello")]);
    let output = Command::new("setsid")
        .args(["--wait", env!("CARGO_BIN_EXE_hermitcrab")])
        .args(open)
        .args(["--base-url", &base])
        .current_dir(dir.path().join("proj"))
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .env("KEY_OF_M", "sesame\n")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let asked = asked.join().unwrap();
    assert!(format!("{asked:?}").contains("sesame"), "{asked:?}");
}
