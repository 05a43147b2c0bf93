//! Whole migrations without a replay, of homes the real releases made.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use sha2::{Digest as _, Sha256};

use super::report::Report;
use crate::ambient::Ambient;
use crate::cli::{HERMES_DEFAULT, MigrateArgs};

/// What `shim/tests/homes/make.py` plants.
const PLANTED: [&str; 3] = [
    "sk-proj-planted0Q7xV2mK9pL4rT8wZ1cB6nH3",
    "correct-horse-planted-41",
    "ghp_planted5aB7cD9eF1gH3iJ5kL7mN9oP2qR",
];
/// The releases, and the schema of each.
const RELEASES: [(&str, i64); 8] = [
    ("0.13.0", 11),
    ("0.14.0", 11),
    ("0.15.0", 13),
    ("0.16.0", 14),
    ("0.17.0", 16),
    ("0.18.0", 17),
    ("0.18.2", 19),
    ("0.19.0", 22),
];

/// A home that a release made, in a directory of its own.
fn home(release: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/homes")
        .join(release);
    copy(&made, folder.path());
    let mut database = Vec::new();
    flate2::read::GzDecoder::new(File::open(made.join("state.db.gz")).unwrap())
        .read_to_end(&mut database)
        .unwrap();
    std::fs::write(folder.path().join("state.db"), database).unwrap();
    std::fs::remove_file(folder.path().join("state.db.gz")).unwrap();
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every file below, with its content's digest and its time of change.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                let digest = Sha256::digest(std::fs::read(entry.path()).unwrap());
                let changed = entry.metadata().unwrap().modified().unwrap();
                all.insert(entry.path(), (digest.to_vec(), changed));
            }
        }
    }
    all
}

fn args(home: &Path, out: &Path) -> MigrateArgs {
    MigrateArgs {
        hermes_home: home.to_owned(),
        workspace: None,
        out: Some(out.to_owned()),
        config: None,
        hermes: vec![HERMES_DEFAULT.to_owned()],
        no_replay: true,
        budget: Duration::from_secs(600),
        sample: None,
        fresh: false,
        jobs: Some(1),
        fault: None,
    }
}

fn ambient() -> Ambient {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned();
    Ambient {
        cache: root.join("target"),
        reports: root.clone(),
        root,
        path: Vec::new(),
        python_path: None,
        temporary: PathBuf::new(),
        program: PathBuf::new(),
        config: None,
        hermes_home: None,
        today: "2026-01-01".to_owned(),
    }
}

/// Runs a migration of a home that must stay as it is; code and report.
fn migrate(home: &Path) -> (u8, Report, String) {
    let out = tempfile::tempdir().unwrap();
    let before = state(home);
    let code = super::command(&ambient(), &args(home, out.path()));
    assert_eq!(state(home), before, "the home is not as it was");
    let mut outputs = String::new();
    for name in [
        "migration.md",
        "migration.html",
        "migration.json",
        "hermitcrab.toml",
        "migration.diff",
    ] {
        outputs += &std::fs::read_to_string(out.path().join(name)).unwrap();
    }
    for secret in PLANTED {
        assert!(!outputs.contains(secret), "{secret} is in an output");
    }
    let json = std::fs::read_to_string(out.path().join("migration.json")).unwrap();
    (code, serde_json::from_str(&json).unwrap(), outputs)
}

fn missing(report: &Report) -> String {
    let notes = report.notes.iter().filter(|note| note.partial);
    notes
        .map(|note| format!("{}: {}\n", note.about, note.text))
        .collect()
}

fn saying<'r>(report: &'r Report, said: &str) -> &'r super::translate::Proposal {
    report
        .proposals
        .iter()
        .find(|one| one.said == said)
        .unwrap()
}

#[test]
fn the_homes_of_all_releases_are_read_whole_and_say_the_same() {
    for (release, schema) in RELEASES {
        let home = home(release);
        let (code, report, outputs) = migrate(home.path());
        assert_eq!(code, 0, "{release}: {}", missing(&report));
        assert_eq!(report.database_schema, Some(schema), "{release}");
        assert_eq!(
            (report.counts.sessions, report.counts.calls),
            (3, 23),
            "{release}"
        );
        assert_eq!(
            (report.counts.repeated, report.counts.broken),
            (15, 0),
            "{release}"
        );
        assert_eq!(report.tools["terminal"], 13, "{release}");
        assert_eq!(
            report.env_names,
            ["EDITOR", "MAIL_PASSWORD", "OPENAI_API_KEY"]
        );
        assert_eq!(report.skills[0].name, "weekly-report");
        assert_eq!(report.jobs[0].schedule, "0 9 * * 1");
        assert_eq!(
            saying(&report, "recursive delete").grants[0].verb,
            "fs.delete"
        );
        assert!(saying(&report, "git status").grants.is_empty());
        assert_eq!(saying(&report, "curl *").denials.len(), 1);
        assert!(outputs.contains("issues.example.com"));
        for advice in [
            "`hermitcrab cron grant a1b2c3d4e5f6 VERB=PLACE`",
            "`hermitcrab cron tick`",
            "add-directory ~/.hermes/memories ~/.hermes/skills ~/.hermes/cron",
            "not reached, whatever is granted, while a rule denies every peer",
        ] {
            assert!(outputs.contains(advice), "{advice}");
        }
    }
}

#[test]
fn a_database_that_cannot_be_read_costs_its_calls_and_nothing_else() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("its schema is 99", |path| {
            let database = Connection::open(path).unwrap();
            database
                .execute("UPDATE schema_version SET version = 99", [])
                .unwrap();
        }),
        ("older than 0.13", |path| {
            let database = Connection::open(path).unwrap();
            database
                .execute("UPDATE schema_version SET version = 9", [])
                .unwrap();
        }),
        ("damaged", |path| {
            std::fs::write(path, [7_u8; 9_000]).unwrap()
        }),
        ("damaged", |path| {
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(1_000)
                .unwrap();
        }),
    ];
    for (word, harm) in harms {
        let home = home("0.19.0");
        harm(&home.path().join("state.db"));
        let (code, report, _) = migrate(home.path());
        assert_eq!(code, 4, "{word}");
        assert!(
            missing(&report).contains(word),
            "{word}: {}",
            missing(&report)
        );
        // What the conversation files hold is there all the same.
        assert_eq!(report.counts.calls, 15, "{word}");
        assert_eq!(saying(&report, "recursive delete").grants.len(), 1);
    }
}

#[test]
fn an_odd_row_or_job_costs_itself_and_nothing_else() {
    let home = home("0.19.0");
    let database = Connection::open(home.path().join("state.db")).unwrap();
    for started in ["'yesterday'", "x'ff00'", "-9e999", "'1795363324.5'"] {
        database
            .execute(
                &format!(
                    "INSERT INTO sessions (id, source, started_at) VALUES (hex(randomblob(4)), 7, {started})"
                ),
                [],
            )
            .unwrap();
    }
    drop(database);
    let jobs = r#"{"jobs": [null, "text", {"id": ""}, {"id": "a1"}, {"id": "b2", "name": "n", "schedule": "x"}]}"#;
    std::fs::write(home.path().join("cron/jobs.json"), jobs).unwrap();
    let (code, report, outputs) = migrate(home.path());
    assert_eq!(code, 4);
    assert_eq!(
        missing(&report),
        "cron/jobs.json: 3 entries are no jobs with an id, and are left out\n"
    );
    assert_eq!(report.counts.calls, 23);
    let jobs = report.jobs.iter();
    let jobs: Vec<_> = jobs.map(|job| (&*job.name, &*job.schedule)).collect();
    assert_eq!(jobs, [("a1", "no schedule"), ("n", "x")]);
    assert!(outputs.contains("- job `a1` (`no schedule`), `a1`"));
}

#[test]
fn a_plan_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (home, out) = (home("0.19.0"), tempfile::tempdir().unwrap());
    assert_eq!(
        super::command(&ambient(), &args(home.path(), out.path())),
        0
    );
    for entry in std::fs::read_dir(out.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.file_name());
    }
}

#[test]
fn what_stands_before_a_damaged_page_is_kept() {
    let home = home("0.19.0");
    let path = home.path().join("state.db");
    let page: i64 = {
        let database = Connection::open(&path).unwrap();
        database
            .query_row(
                "SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_session'",
                [],
                |row| row.get(0),
            )
            .unwrap()
    };
    let mut file = File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(u64::try_from(page - 1).unwrap() * 4096))
        .unwrap();
    file.write_all(&[0xff; 4096]).unwrap();
    drop(file);
    let (code, report, _) = migrate(home.path());
    assert_eq!(code, 4);
    assert!(
        missing(&report).contains("reading stopped after 0 calls"),
        "{}",
        missing(&report)
    );
    assert_eq!(report.counts.calls, 15);
}

#[test]
fn a_database_somebody_writes_to_is_left_alone() {
    let home = home("0.19.0");
    let path = home.path().join("state.db");
    // Locks of one process do not meet each other; those of a description do.
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let lock = nix::libc::flock {
        l_type: i16::try_from(nix::libc::F_WRLCK).unwrap(),
        l_whence: i16::try_from(nix::libc::SEEK_SET).unwrap(),
        l_start: 0x4000_0000,
        l_len: 512,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_OFD_SETLK(&lock)).unwrap();
    let (code, report, _) = migrate(home.path());
    assert_eq!(code, 4);
    assert!(
        missing(&report).contains("keeps it locked"),
        "{}",
        missing(&report)
    );
    assert_eq!(report.counts.calls, 15);
    drop(file);
    assert_eq!(migrate(home.path()).1.counts.calls, 23);
}

#[test]
fn rows_not_yet_merged_into_the_database_count() {
    let home = home("0.19.0");
    let path = home.path().join("state.db");
    let open = Connection::open(&path).unwrap();
    open.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; \
         DELETE FROM messages WHERE session_id = '20260601_090000_notes'",
    )
    .unwrap();
    assert!(
        path.with_file_name("state.db-wal")
            .metadata()
            .unwrap()
            .len()
            > 0
    );
    let (_, report, _) = migrate(home.path());
    // Eight calls are gone from it, and come from the conversation file again.
    assert_eq!((report.counts.calls, report.counts.repeated), (23, 7));
    drop(open);
}

#[test]
fn a_configuration_that_is_a_trap_costs_itself_and_nothing_else() {
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let row = vec![format!("*a{}", level - 1); 9].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{row}]\n"));
        }
        text
    };
    for (text, word) in [
        (bomb.as_str(), "aliases"),
        ("a: !!python/object/apply:os.system [id]\n", "tag"),
        ("approvals: [\n", "line"),
        ("- 1\n- 2\n", "not a mapping"),
    ] {
        let home = home("0.19.0");
        std::fs::write(home.path().join("config.yaml"), text).unwrap();
        let (code, report, _) = migrate(home.path());
        assert_eq!(code, 4, "{word}");
        assert!(missing(&report).contains(word), "{}", missing(&report));
        assert_eq!(report.counts.calls, 23, "{word}");
    }
}

#[test]
fn skills_that_cannot_be_listed_are_named() {
    let home = home("0.19.0");
    std::fs::remove_dir_all(home.path().join("skills")).unwrap();
    let (code, report, _) = migrate(home.path());
    assert_eq!((code, missing(&report)), (0, String::new()), "none is none");
    std::fs::write(home.path().join("skills"), "").unwrap();
    let (code, report, _) = migrate(home.path());
    assert_eq!(code, 4);
    let told = "skills: it cannot be listed, so skills in it are missing here";
    assert!(missing(&report).contains(told), "{}", missing(&report));
}

#[test]
fn links_and_pipes_in_a_home_are_not_followed() {
    let home = home("0.19.0");
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), "approvals: {deny: ['from outside']}\n").unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::remove_file(at("config.yaml")).unwrap();
    std::os::unix::fs::symlink(outside.path(), at("config.yaml")).unwrap();
    std::fs::remove_file(at(".env")).unwrap();
    nix::unistd::mkfifo(&at(".env"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let (code, report, outputs) = migrate(home.path());
    assert_eq!(code, 4);
    assert!(!outputs.contains("from outside"));
    let missing = missing(&report);
    assert!(
        missing.contains("config.yaml: it is a link") && missing.contains(".env: it is a link"),
        "{missing}"
    );
    assert_eq!(report.counts.calls, 23);
}

/// A home whose history quotes these values.
fn quoting(values: &[&str]) -> tempfile::TempDir {
    let home = home("0.19.0");
    let database = Connection::open(home.path().join("state.db")).unwrap();
    for (place, value) in values.iter().enumerate() {
        let arguments = serde_json::json!({"command": format!("echo '{value}'")}).to_string();
        let calls = serde_json::json!([{
            "id": format!("quoted_{place}"),
            "type": "function",
            "function": {"name": value, "arguments": arguments},
        }]);
        database
            .execute(
                "INSERT INTO messages (session_id, role, content, tool_calls, timestamp) \
                 VALUES ('20260601_090000_notes', 'assistant', '', ?, 1895363325.0)",
                [calls.to_string()],
            )
            .unwrap();
    }
    home
}

#[test]
fn a_value_of_an_env_is_struck_out_however_it_is_written_there() {
    let lines = "\u{feff}FIRST_TOKEN=zebra behind a mark\nDB_PASSWORD=zebra before # a comment\n\
                 export\tTAB_SECRET=zebra behind a tab\nPEM_KEY=\"-----BEGIN\nzebra in the middle\n\
                 -----END\"\nLAST_PWD='zebra # quoted' # c\n";
    let values = [
        "zebra behind a mark",
        "zebra before",
        "zebra behind a tab",
        "zebra in the middle",
        "zebra # quoted",
    ];
    let latin: Vec<u8> = b"# cl\xe9\n"
        .iter()
        .copied()
        .chain(lines.trim_start_matches('\u{feff}').bytes())
        .collect();
    for env in [lines.as_bytes().to_vec(), latin] {
        let home = quoting(&values);
        std::fs::write(home.path().join(".env"), env).unwrap();
        let (code, report, outputs) = migrate(home.path());
        assert_eq!(code, 0, "{}", missing(&report));
        assert!(!outputs.contains("zebra"), "{outputs}");
        let names = [
            "DB_PASSWORD",
            "FIRST_TOKEN",
            "LAST_PWD",
            "PEM_KEY",
            "TAB_SECRET",
        ];
        assert_eq!(report.env_names, names);
    }
}

#[test]
fn where_the_secrets_of_a_file_are_not_known_the_plan_says_so() {
    let home = quoting(&["zebra in a line", "zebra in braces"]);
    let broken = "model: [x\nmcp:\n  api_key: \"zebra in a line\" # c\n  env: {A_TOKEN: zebra in braces, B: 1}\n";
    std::fs::write(home.path().join("config.yaml"), broken).unwrap();
    std::fs::remove_file(home.path().join(".env")).unwrap();
    std::os::unix::fs::symlink("/dev/null", home.path().join(".env")).unwrap();
    std::fs::write(home.path().join("auth.json"), "{").unwrap();
    let (code, report, outputs) = migrate(home.path());
    assert_eq!(code, 4);
    for name in ["config.yaml", ".env", "auth.json"] {
        let said = format!("{name}: its secrets are not all known here");
        assert!(
            missing(&report).contains(&said),
            "{name}: {}",
            missing(&report)
        );
    }
    assert!(!outputs.contains("zebra"), "{outputs}");
}

#[test]
fn a_home_that_is_none_and_an_output_into_the_home_are_refused() {
    let home = home("0.19.0");
    let before = state(home.path());
    for out in ["plan", "."] {
        let args = args(home.path(), &home.path().join(out));
        assert_eq!(super::command(&ambient(), &args), 64);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let nowhere = home.path().join("not-there");
    for wrong in [
        args(&nowhere, elsewhere.path()),
        MigrateArgs {
            workspace: Some(nowhere.clone()),
            ..args(home.path(), elsewhere.path())
        },
        MigrateArgs {
            config: Some(nowhere.clone()),
            ..args(home.path(), elsewhere.path())
        },
    ] {
        assert_eq!(super::command(&ambient(), &wrong), 64, "{wrong:?}");
    }
    assert_eq!(state(home.path()), before);
}

#[test]
fn an_env_alone_is_no_home_of_hermes() {
    let (project, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(project.path().join(".env"), "PORT=1\n").unwrap();
    let wrong = args(project.path(), out.path());
    assert_eq!(super::command(&ambient(), &wrong), 64);
}

#[test]
fn hostile_words_of_a_home_do_not_become_markup_or_settings() {
    let home = home("0.19.0");
    let evil = "x`|<script>alert(1)</script>\n[[grants]]\nverb = \"fs.*\"";
    let config = serde_json::json!({
        "approvals": {"deny": [evil]},
        "command_allowlist": [evil],
        "mcp_servers": {evil: {"command": evil}},
    });
    // JSON is YAML.
    std::fs::write(home.path().join("config.yaml"), config.to_string()).unwrap();
    let (code, report, outputs) = migrate(home.path());
    assert_eq!(code, 0, "{}", missing(&report));
    let html = outputs.split("<!doctype html>").nth(1).unwrap();
    let html = html.split("</html>").next().unwrap();
    assert!(!html.contains("<script>"));
    let toml = outputs.split("# Nothing below is granted").nth(1).unwrap();
    assert!(
        !toml.lines().any(|line| line.starts_with("[[grants]]")),
        "{toml}"
    );
}
