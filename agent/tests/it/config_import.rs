//! What is taken over from the Python tool Hermit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::json;

use crate::support::home::Home;

#[test]
fn the_settings_of_the_python_tool_are_taken_over() {
    let home = Home::new();
    std::fs::create_dir(home.path().join(".hermit")).unwrap();
    std::fs::write(
        home.path().join(".hermit/config.json"),
        r#"{"safety": {"block_rm_rf": true}, "cgroups": {"pids_max": 64}, "openai_key": "sk-sesame", "openai_model": "m", "llm_backend": "openai"}"#,
    )
    .unwrap();
    let out = home.ok(&["config", "import"]);
    assert!(
        out.contains("taken over: safety.block_rm_rf = true") && !out.contains("sesame"),
        "{out}"
    );
    let shown = home.ok(&["config"]);
    assert!(
        !shown.contains("sesame") && shown.contains("openai.key"),
        "{shown}"
    );
}

#[test]
fn what_is_taken_over_opens_no_directory_that_could_not_be_added() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".hermit")).unwrap();
    std::fs::create_dir(home.path().join("Notes")).unwrap();
    std::os::unix::fs::symlink("/", home.path().join("top")).unwrap();
    let of_the_home = home.path().to_str().unwrap();
    let refused = json!([
        "/",
        "/.",
        "/usr/..",
        "//",
        "~",
        "~/.",
        "~/none/..",
        "~/top",
        "~/.ssh",
        "~/x/../.gnupg",
        of_the_home,
        "~/.local/state/hermitcrab",
        "here"
    ]);
    let mut listed = refused.as_array().unwrap().clone();
    listed.push("~/Notes".into());
    std::fs::write(
        home.path().join(".hermit/config.json"),
        json!({ "allowed_directories": listed }).to_string(),
    )
    .unwrap();
    let out = home.ok(&["config", "import"]);
    assert_eq!(out.matches("taken over:").count(), 1, "{out}");
    assert!(out.contains("taken over: directories: ~/Notes"), "{out}");
    assert!(out.contains("`/.`: it holds your whole home"), "{out}");
    assert!(out.contains("`~/.ssh`: keys are kept there"), "{out}");
}

#[test]
fn a_home_of_hermes_is_no_configuration_of_hermits_and_it_is_said_what_looks_at_one() {
    let home = Home::new();
    let hermes = home.path().join(".hermes");
    std::fs::create_dir(&hermes).unwrap();
    std::fs::write(hermes.join("config.yaml"), "model: m\n").unwrap();
    for from in [hermes.clone(), hermes.join("config.yaml")] {
        let ran = home.run(&["config", "import", from.to_str().unwrap()]);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.err.contains("migrate --hermes-home"), "{ran:?}");
    }
    // Without a file it looks for Hermit's, which such a person does not have.
    let ran = home.run(&["config", "import"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.err
            .contains("config.json` is not a configuration: it is not there"),
        "{ran:?}"
    );
    assert!(ran.err.contains("migrate --hermes-home"), "{ran:?}");
}

#[test]
fn what_lies_in_the_place_of_its_settings_is_not_waited_for_and_is_told() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let home = Home::new();
    std::fs::create_dir_all(home.path().join(".hermit/models")).unwrap();
    let file = home.path().join(".hermit/config.json");
    mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let model = home.path().join(".hermit/models/a.gguf");
    mknodat(CWD, &model, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let ran = home.run(&["config", "import"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.err.contains("it is a pipe that nobody writes to"),
        "{ran:?}"
    );
    // Models are looked for where others put theirs.
    let listed = home.ok(&["model", "list"]);
    assert!(listed.contains("it is a pipe, and no file"), "{listed}");
}
