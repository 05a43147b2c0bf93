//! What is typed wrong, or names what is not there or is something else: said in words of the
//! command line, with what to do, before anything is started.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{bisim, code, errors};

/// A directory with one of everything that is no file of cases, no report and no campaign.
fn odd_things() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["dir", "home", "log", "report"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    for (name, text) in [
        ("garbage", "root:x:0:0:root:/root:/bin/bash\n"),
        ("empty", ""),
        ("blank", " \n\n"),
        ("other.json", "{\"schema\": 1}"),
        ("home/config.yaml", "approvals:\n  mode: manual\n"),
        ("log/campaign.jsonl", "garbage\n"),
        ("report/summary.json", "{\n"),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    std::fs::write(at("bytes"), [0xff, 0xfe, 0, 1]).unwrap();
    folder
}

/// Each is refused with this code, in these words, on one line or two, and nothing is begun.
fn check(folder: &Path, mistakes: &[(&str, i32, &[&str])]) {
    for (words, expected, parts) in mistakes {
        let output = Command::new(env!("CARGO_BIN_EXE_bisim"))
            .args(words.split(' '))
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = errors(&output);
        assert_eq!(code(&output), *expected, "{words}: {said}");
        for part in *parts {
            assert!(said.contains(part), "{words}: no `{part}` in: {said}");
        }
        for raw in [
            "invalid digit",
            "fit in target type",
            "is not in 0..",
            "is not in 1..",
            "panicked",
        ] {
            assert!(!said.contains(raw), "{words}: {said}");
        }
        assert!(!said.contains("starting "), "{words}: {said}");
        assert!(!said.contains('\u{1b}'), "{words}: {said}");
    }
}

#[test]
fn what_is_replayed_is_cases_and_what_is_no_file_of_them_is_told_with_what_is() {
    let folder = odd_things();
    let what = "give a finding of a campaign";
    check(
        folder.path(),
        &[
            (
                "replay garbage",
                5,
                &["`garbage` is no file of cases: it is no JSON", what],
            ),
            (
                "replay empty",
                5,
                &["`empty` is no file of cases: it is empty", what],
            ),
            ("replay blank", 5, &["it is empty", what]),
            ("replay other.json", 5, &["missing field `suite`", what]),
            ("replay dir", 64, &["it is a directory, and no file", what]),
            ("replay bytes", 64, &["no text in UTF-8", what]),
            (
                "replay nothing",
                64,
                &["there is no file `nothing`, and no campaign gives", what],
            ),
            (
                "replay smoke-echo",
                64,
                &["it is a case of the suite `smoke`"],
            ),
            (
                "replay other.json --tries 0",
                64,
                &["nothing would be tried"],
            ),
        ],
    );
}

#[test]
fn reports_vectors_and_campaigns_that_are_none_are_named_with_what_would_be() {
    let folder = odd_things();
    check(
        folder.path(),
        &[
            (
                "report --html garbage",
                64,
                &[
                    "`garbage` is no directory",
                    "`index.html`",
                    "--html garbage-page",
                ],
            ),
            (
                "report --html page --fuzz nope",
                64,
                &["no campaign is on record in `nope`", "--fuzz"],
            ),
            (
                "report --html page --fuzz garbage",
                64,
                &["no campaign is on record in `garbage`"],
            ),
            (
                "report --html page --fuzz log",
                64,
                &["line 1 of `log/campaign.jsonl` is damaged"],
            ),
            (
                "report --html page --from report",
                64,
                &["`report/summary.json` is no summary of a check"],
            ),
            (
                "report --html page --from nope",
                64,
                &[
                    "cannot read `nope/summary.json`",
                    "run `cargo bisim check` first",
                ],
            ),
            (
                "report --html page --vectors nope",
                64,
                &[
                    "`nope` is no directory of vectors: it is not there",
                    "--vectors",
                ],
            ),
            (
                "check --vectors nope",
                64,
                &[
                    "`nope` is no directory of vectors: it is not there",
                    "leave it out",
                ],
            ),
            ("check --vectors garbage", 64, &["it is a file"]),
            (
                "check --vectors dir",
                64,
                &["it holds no directory `suites`"],
            ),
            (
                "check --report garbage",
                64,
                &["`garbage` is no directory", "--report"],
            ),
            (
                "fuzz --report garbage",
                64,
                &["`garbage` is no directory", "--report"],
            ),
            (
                "merge dir --out garbage",
                64,
                &["`garbage` is no directory", "--out"],
            ),
            (
                "migrate --hermes-home home --out garbage",
                64,
                &["`garbage` is no directory", "--out"],
            ),
            (
                "shadow --hermes-home home --report garbage -- true",
                64,
                &["`garbage` is no directory", "--report"],
            ),
            (
                "merge dir --out all --vectors dir",
                64,
                &["it holds no directory `suites`"],
            ),
            (
                "merge dir dir/../dir --out all",
                64,
                &["`dir/../dir` is named twice"],
            ),
            (
                "merge dir --out all",
                64,
                &[
                    "cannot read `dir/summary.json`",
                    "a part is the --report directory",
                ],
            ),
        ],
    );
    assert!(!folder.path().join("page").exists());
}

#[test]
fn what_a_migration_or_a_mirror_names_is_looked_for_first() {
    let folder = odd_things();
    let to_do = "name with --config the file that `hermitcrab config path` says";
    check(
        folder.path(),
        &[
            (
                "migrate --hermes-home home --config nope",
                64,
                &["there is no configuration `nope`", to_do],
            ),
            (
                "migrate --hermes-home home --config dir",
                64,
                &["it is a directory", to_do],
            ),
            (
                "migrate --hermes-home home --config garbage",
                64,
                &["`garbage` is not a configuration: line 1", to_do],
            ),
            (
                "migrate --hermes-home home --workspace garbage",
                64,
                &["`garbage` is not a directory; name with --workspace"],
            ),
            (
                "migrate --hermes-home home --sample 0",
                64,
                &["nothing would be tried"],
            ),
            (
                "shadow --hermes-home home -- no-such-hermes",
                64,
                &["cannot start `no-such-hermes`", "no directory of PATH"],
            ),
            (
                "shadow --hermes-home home -- ./garbage",
                64,
                &["cannot start `./garbage`", "may not be executed"],
            ),
            (
                "shadow --hermes-home home --workspace garbage -- true",
                64,
                &["the workspace `garbage` is a file"],
            ),
            (
                "shadow --hermes-home home --workspace nope -- true",
                64,
                &["the workspace `nope` cannot be entered", "--workspace"],
            ),
        ],
    );
    assert!(!folder.path().join("target/bisim/shadow").exists());
}

#[test]
fn numbers_that_are_none_or_of_no_use_are_told_in_words() {
    let whole = "write it as a whole number without a sign, such as 100";
    let none = "nothing would be tried, and nothing would have passed";
    check(
        odd_things().path(),
        &[
            ("fuzz --seed x", 64, &["'x' for '--seed <NUMBER>'", whole]),
            ("fuzz --seed -1", 64, &["'-1' for '--seed <NUMBER>'", whole]),
            (
                "fuzz --seed 99999999999999999999",
                64,
                &["that is too large; 18446744073709551615 is the most"],
            ),
            ("fuzz --count 1.5", 64, &[whole]),
            ("fuzz --screen 0", 64, &[none]),
            (
                "fuzz --jobs 100000000000",
                64,
                &["that is too large; 1024 is the most"],
            ),
            ("leaks --jobs 99999", 64, &["1024 is the most"]),
            (
                "migrate --hermes-home home --jobs 99999",
                64,
                &["1024 is the most"],
            ),
            ("check --inconclusive-max x", 64, &[whole]),
            ("benign --run 99999999999", 64, &["10000000 is the most"]),
            ("benign --contrast x", 64, &[whole]),
            ("patterns --seed x", 64, &[whole]),
            ("operators --seeds x", 64, &[whole]),
            ("speed --worlds 0", 64, &[none]),
            ("speed --cases 0", 64, &[none]),
            ("speed --seconds 0", 64, &[none]),
            (
                "speed --targets nope",
                64,
                &["`nope` is no directory", "campaign-report"],
            ),
            ("selftest --buckets --count 0", 64, &[none]),
            ("selftest --buckets --seed x", 64, &[whole]),
            (
                "operators --operator no-such",
                64,
                &[
                    "no operator `no-such`",
                    "`bisim operators --list` shows all",
                ],
            ),
            (
                "operators --operator base64-evaluate",
                64,
                &["did you mean `base64-evaluated`?"],
            ),
            (
                "benign --observe --only no-such-shape",
                64,
                &["no shape of a command holds `no-such-shape`"],
            ),
        ],
    );
}

#[test]
fn a_file_nobody_may_read_is_said_to_be_one() {
    let folder = odd_things();
    let file = folder.path().join("closed.json");
    std::fs::write(&file, "{}").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads every file, unless it gives that up.
    let root = nix::unistd::geteuid().is_root();
    let mut command = Command::new(if root { "setpriv" } else { "env" });
    if root {
        command.arg("--bounding-set=-dac_override,-dac_read_search");
    }
    let output = command
        .args([env!("CARGO_BIN_EXE_bisim"), "replay", "closed.json"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(code(&output), 64, "{}", errors(&output));
    assert!(
        errors(&output).contains("you may not read it"),
        "{}",
        errors(&output)
    );
}

#[test]
fn lists_of_operators_are_for_people_and_for_programs() {
    let list = bisim(&["operators", "--list"]);
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert_eq!(code(&list), 0, "{}", errors(&list));
    let for_programs = bisim(&["operators", "--list", "--json"]);
    let lines = String::from_utf8_lossy(&for_programs.stdout).into_owned();
    assert_eq!(lines.lines().count(), text.lines().count());
    for (line, row) in lines.lines().zip(text.lines()) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = line["operator"].as_str().unwrap();
        assert_eq!(row.split(' ').next(), Some(name));
    }
    let count = format!("{} operators\n", text.lines().count());
    assert_eq!(errors(&list), count);
}
