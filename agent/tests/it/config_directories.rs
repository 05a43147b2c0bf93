//! Directories that are opened to every session, and closed again, by whatever path they are named.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::symlink;

use crate::support::home::Home;

#[test]
fn a_directory_is_closed_by_every_path_that_leads_to_it() {
    let home = Home::new();
    let extra = home.path().join("extra");
    std::fs::create_dir_all(extra.join("in")).unwrap();
    std::fs::write(extra.join("b.txt"), "beta\n").unwrap();
    symlink("extra", home.path().join("led")).unwrap();
    let absolute = extra.to_str().unwrap().to_owned();
    let read = || home.run(&["exec", "--", "cat ~/extra/b.txt"]).out == "beta\n";
    for named in [
        "~/extra".to_owned(),
        "~/extra/".to_owned(),
        "../extra".to_owned(),
        "../extra/../extra/".to_owned(),
        "../led".to_owned(),
        "../extra/in/..".to_owned(),
        format!("{absolute}/"),
        absolute.clone(),
    ] {
        home.ok(&["config", "add-directory", "../led"]);
        assert!(read(), "{named}");
        let told = home.ok(&["config", "remove-directory", &named]);
        assert!(told.contains("is the agent's no more"), "{named}: {told}");
        assert!(!read(), "{named}");
    }
    // One that is gone is known by where it was.
    home.ok(&["config", "add-directory", "../extra"]);
    std::fs::remove_dir_all(&extra).unwrap();
    home.ok(&["config", "remove-directory", "../extra/"]);
    let ran = home.run(&["config", "remove-directory", "../extra"]);
    assert!(
        ran.code == Some(64) && ran.err.contains("`../extra` is not on the list"),
        "{ran:?}"
    );
}

#[test]
fn a_key_is_not_taken_for_the_name_of_a_variable_and_told_nowhere() {
    let home = Home::new();
    let key = "sk-proj-0123456789abcdefghijklmnopqrstuv";
    let ran = home.run(&[
        "config",
        "backend",
        "http",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:1/v1",
        "--key-env",
        key,
    ]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.err.contains("`key_env` is the name of a variable"),
        "{ran:?}"
    );
    assert!(!ran.err.contains(key) && !ran.out.contains(key), "{ran:?}");
    let ran = home.run(&["config", "set", "models.planner.key_env", key]);
    assert!(ran.code == Some(64) && !ran.err.contains(key), "{ran:?}");
    let file = home.path().join(".config/hermitcrab/config.toml");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    assert!(!text.contains(key), "{text}");
    let ran = home.run(&["chat", "--model", "m", "--key-env", key, "hello"]);
    assert!(ran.code == Some(64) && !ran.err.contains(key), "{ran:?}");
}
