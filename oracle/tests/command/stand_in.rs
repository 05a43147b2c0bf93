//! Recorded calls of programs that a world cannot have as they were.

use super::{bisim, can_run, errors, home_with};

#[test]
fn a_recorded_call_of_a_program_that_is_stood_in_for_counts_as_not_replayable() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ok = r#"{"output": "", "exit_code": 0, "error": null}"#;
    let calls = [
        (
            "write_file",
            r#"{"path": "a.txt", "content": "a"}"#,
            r#"{"bytes_written": 1}"#,
        ),
        (
            "terminal",
            r#"{"command": "pip install requests && echo done"}"#,
            ok,
        ),
        ("terminal", r#"{"command": "cat a.txt"}"#, ok),
        ("terminal", r#"{"command": "docker ps"}"#, ok),
    ];
    home_with(std::path::Path::new(&at("home")), &calls);
    let output = bisim(&[
        "migrate",
        "--jobs",
        "1",
        "--hermes-home",
        &at("home"),
        "--out",
        &at("out"),
    ]);
    let report = std::fs::read_to_string(at("out/migration.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let why = &report["replayed"]["not_replayed"];
    for program in ["pip", "docker"] {
        let reason = format!("it runs `{program}`, for which a world has only a stand-in");
        assert_eq!(why[&reason], 1, "{why}\n{}", errors(&output));
    }
    let rows = report["replayed"]["rows"].as_array().unwrap();
    let became = |call: &str| {
        let row = rows.iter().find(|row| row["call"] == call);
        row.map(|row| row["class"].clone())
    };
    // What comes after it in the same session is judged all the same.
    assert_eq!(became("cat a.txt"), Some("same".into()), "{rows:?}");
}
