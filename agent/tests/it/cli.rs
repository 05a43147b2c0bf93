//! The program from its command line to its exit code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use hermitcrab_sandbox::profile::Mechanism;

/// Runs the program in `dir`, detached from any terminal: nobody can be asked.
pub(crate) fn hermitcrab(dir: &Path, arguments: &[&str]) -> Output {
    hermitcrab_with(dir, "022", arguments)
}

/// The same, of somebody who keeps so much from others in all they make.
fn hermitcrab_with(dir: &Path, umask: &str, arguments: &[&str]) -> Output {
    hermitcrab_under(dir, &format!("umask {umask}"), arguments)
}

/// The same, after what a shell did first.
fn hermitcrab_under(dir: &Path, before: &str, arguments: &[&str]) -> Output {
    let script = format!("{before} && exec \"$0\" \"$@\"");
    Command::new("setsid")
        .args(["--wait", "sh", "-c", &script])
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(dir.join("proj"))
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap()
}

pub(crate) fn bench() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("proj")).unwrap();
    std::fs::write(dir.path().join("proj/a.txt"), "a\n").unwrap();
    dir
}

fn check(dir: &Path, arguments: &[&str], status: i32, stdout: &str) {
    let output = hermitcrab(dir, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).as_ref()
        ),
        (Some(status), stdout),
        "{arguments:?}: {errors}"
    );
}

#[test]
fn a_command_runs_and_its_status_is_the_programs() {
    let dir = bench();
    check(dir.path(), &["exec", "--", "cat", "a.txt"], 0, "a\n");
    check(dir.path(), &["exec", "--", "exit 7"], 7, "");
}

#[test]
fn a_shell_that_allows_few_open_files_is_told_so_or_gets_more() {
    let dir = bench();
    let under = |limit: &str| {
        let output = hermitcrab_under(dir.path(), limit, &["exec", "--", "cat", "a.txt"]);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for limit in ["ulimit -S -n 12", "ulimit -S -n 32", "ulimit -n 64"] {
        let (status, said, errors) = under(limit);
        assert_eq!(
            (status, said.as_str()),
            (Some(0), "a\n"),
            "{limit}: {errors}"
        );
    }
    for limit in [12, 20, 32, 63] {
        let (status, said, errors) = under(&format!("ulimit -n {limit}"));
        assert_eq!((status, said.as_str()), (Some(69), ""), "{limit}: {errors}");
        let told = format!("it may have {limit} files open and needs 64");
        assert!(errors.contains(&told), "{errors}");
    }
}

#[test]
fn a_grant_reaches_the_workspace_through_the_link_its_user_spells() {
    let dir = bench();
    let place = dir.path();
    std::os::unix::fs::symlink(place, place.join("proj/back")).unwrap();
    std::os::unix::fs::symlink(place, place.join("link")).unwrap();
    std::fs::create_dir(place.join("proj/sub")).unwrap();
    let made = |grant: &str, name: &str| {
        let spelled = format!("fs.create={grant}");
        let command = format!("echo x > {name}");
        let arguments = ["exec", "--grant", &spelled, "--", &command];
        let output = hermitcrab(place, &arguments);
        let there = place.join("proj").join(name).exists();
        (output.status.code(), there)
    };
    let link = place.join("link/proj");
    let link = link.to_str().unwrap();
    assert_eq!(made(link, "a"), (Some(0), true));
    assert_eq!(made(&format!("{link}/sub"), "sub/b"), (Some(0), true));
    assert_eq!(made(&format!("{link}/sub"), "c"), (Some(77), false));
    // A link in the workspace may be anybody's: its own name is granted, and nothing else.
    assert_eq!(made("back/proj", "d"), (Some(77), false));
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let dir = bench();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .arg("config")
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""));
    // A disk that is full is told.
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["config", "show"])
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // Once, however many lines there would be.
    assert_eq!(
        errors.matches("cannot write the output").count(),
        1,
        "{errors}"
    );
}

#[test]
fn what_is_missing_around_the_program_is_named() {
    let dir = bench();
    let gone = dir.path().join("gone");
    let there = format!(
        "mkdir {0}; cd {0}; rmdir {0}; exec \"$0\" exec -- true",
        gone.display()
    );
    let output = Command::new("sh")
        .args(["-c", &there, env!("CARGO_BIN_EXE_hermitcrab")])
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{errors}");
    assert!(errors.contains("there is no current directory"), "{errors}");
    check(
        dir.path(),
        &["servers"],
        0,
        "no servers are configured; `hermitcrab servers --help` shows how one is declared\n",
    );
}

#[test]
fn a_command_without_its_dashes_is_told_where_they_stand() {
    let dir = bench();
    for (arguments, is_told) in [
        (["exec", "rm", "a.txt"].as_slice(), true),
        (["exec", "rm a.txt"].as_slice(), true),
        (["exec", "--dri-run", "--", "rm a.txt"].as_slice(), false),
        (["undo", "1", "2"].as_slice(), false),
    ] {
        let output = hermitcrab(dir.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {errors}");
        assert_eq!(
            errors.contains("behind two dashes"),
            is_told,
            "{arguments:?}: {errors}"
        );
    }
    assert!(dir.path().join("proj/a.txt").exists());
}

#[test]
fn a_change_that_is_not_granted_is_discarded_and_one_that_is_stands() {
    let dir = bench();
    check(dir.path(), &["exec", "--", "rm a.txt"], 77, "");
    assert!(dir.path().join("proj/a.txt").exists());
    check(
        dir.path(),
        &["exec", "--grant", "fs.delete=.", "--", "rm a.txt"],
        0,
        "",
    );
    assert!(!dir.path().join("proj/a.txt").exists());
}

#[test]
fn what_is_made_is_kept_from_others_as_the_user_keeps_it() {
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for (umask, file, directory) in [
        ("022", 0o644, 0o755),
        ("077", 0o600, 0o700),
        ("002", 0o664, 0o775),
    ] {
        let dir = bench();
        let proj = dir.path().join("proj");
        // Files in it are to have its group, and what is made in it does as it does.
        std::fs::set_permissions(&proj, std::fs::Permissions::from_mode(0o2755)).unwrap();
        let arguments = [
            "exec",
            "--grant",
            "fs.create=.",
            "--",
            "umask; mkdir d; echo x > d/f",
        ];
        let done = hermitcrab_with(dir.path(), umask, &arguments);
        assert_eq!(
            String::from_utf8_lossy(&done.stdout).trim(),
            format!("0{umask}")
        );
        let call = r#"{"path": "e/f/g.txt", "content": "x"}"#;
        let arguments = ["call", "write_file", call, "--grant", "fs.create=."];
        let done = hermitcrab_with(dir.path(), umask, &arguments);
        assert!(done.status.success(), "{done:?}");
        let modes = ["d", "d/f", "e", "e/f"].map(|path| mode(&proj.join(path)));
        assert_eq!(
            modes,
            [
                0o2000 | directory,
                file,
                0o2000 | directory,
                0o2000 | directory
            ]
        );
    }
}

#[test]
fn a_call_prints_what_a_model_would_see() {
    let dir = bench();
    check(
        dir.path(),
        &["call", "read_file", "{\"path\": \"a.txt\"}"],
        0,
        "{\"content\": \"1|a\\n2|\", \"total_lines\": 1, \"file_size\": 2, \"truncated\": false, \"is_binary\": false, \"is_image\": false}\n",
    );
    check(dir.path(), &["call", "read_file", "not json"], 64, "");
}

#[test]
fn a_refusal_names_the_place_by_its_path_and_not_by_the_sessions_own_name() {
    let dir = bench();
    let place = |name: &str| {
        let proj = dir.path().join("proj").canonicalize().unwrap();
        proj.join(name).display().to_string()
    };
    for (tool, arguments, effect) in [
        (
            "write_file",
            r#"{"path": "a.txt", "content": "x"}"#,
            format!("fs.modify {}", place("a.txt")),
        ),
        (
            "terminal",
            r#"{"command": "mkdir sub && echo x > sub/new"}"#,
            format!("fs.create {}", place("sub")),
        ),
    ] {
        let output = hermitcrab(dir.path(), &["call", tool, arguments]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            told.contains(&format!(
                "(no-cap): no capability held for this: `{effect}`."
            )),
            "{told}"
        );
        assert_eq!(output.status.code(), Some(77), "{output:?}");
    }
    let output = hermitcrab(dir.path(), &["exec", "--", "rm", "a.txt"]);
    let told = String::from_utf8_lossy(&output.stderr);
    let effect = format!("`fs.delete {}`", place("a.txt"));
    assert!(told.contains(&effect), "{told}");
}

#[test]
fn the_ledger_is_shown_with_paths_and_cannot_draw() {
    let dir = bench();
    let project = dir.path().join("proj").canonicalize().unwrap();
    let more = dir.path().canonicalize().unwrap().join("more");
    std::fs::create_dir(&more).unwrap();
    let grant = format!("fs.create={}", more.display());
    let file = serde_json::json!({"path": more.join("b.txt"), "content": "x"}).to_string();
    hermitcrab(dir.path(), &["call", "read_file", r#"{"path": "a.txt"}"#]);
    hermitcrab(
        dir.path(),
        &["call", "--grant", &grant, "write_file", &file],
    );
    let shown = hermitcrab(dir.path(), &["audit"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in [
        format!("fs.read {}\n", project.display()),
        format!("fs.read {}/a.txt", project.display()),
        format!("fs.read {}/b.txt", more.display()),
    ] {
        assert!(shown.contains(&part), "{part}: {shown}");
    }
    assert!(!shown.contains("dir0:"), "{shown}");
    // Programs get what is in the file.
    let raw = hermitcrab(dir.path(), &["audit", "--json"]);
    let raw = String::from_utf8(raw.stdout).unwrap();
    assert!(raw.contains("fs.read dir0:a.txt"), "{raw}");
}

#[test]
fn the_ledger_is_checked_from_the_command_line() {
    let dir = bench();
    hermitcrab(dir.path(), &["exec", "--", "true"]);
    let output = hermitcrab(dir.path(), &["audit", "verify"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let ledger = dir.path().join(".local/state/hermitcrab/ledger.jsonl");
    let changed = std::fs::read_to_string(&ledger)
        .unwrap()
        .replacen("intent", "INTENT", 1);
    std::fs::write(&ledger, changed).unwrap();
    assert_eq!(
        hermitcrab(dir.path(), &["audit", "verify"]).status.code(),
        Some(74)
    );
    let output = hermitcrab(dir.path(), &["exec", "--", "true"]);
    assert_ne!(
        output.status.code(),
        Some(0),
        "a broken ledger is not continued"
    );
}

#[test]
fn a_workspace_holding_the_agents_files_is_refused_however_they_are_reached() {
    use std::os::unix::fs::symlink;
    for (real, link) in [
        ("proj/state", ".local/state/hermitcrab"),
        ("proj/settings", ".config/hermitcrab"),
    ] {
        let dir = bench();
        let (real, link) = (dir.path().join(real), dir.path().join(link));
        std::fs::create_dir_all(&real).unwrap();
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&real, &link).unwrap();
        check(dir.path(), &["exec", "--", "true"], 64, "");
    }
    let dir = bench();
    std::fs::write(dir.path().join("proj/hermitcrab.toml"), "").unwrap();
    std::fs::create_dir_all(dir.path().join(".config/hermitcrab")).unwrap();
    symlink(
        dir.path().join("proj/hermitcrab.toml"),
        dir.path().join(".config/hermitcrab/config.toml"),
    )
    .unwrap();
    check(dir.path(), &["exec", "--", "true"], 64, "");
}

#[test]
fn words_that_mean_nothing_are_told_apart_from_refusals() {
    let dir = bench();
    check(dir.path(), &["no-such-thing"], 64, "");
    check(
        dir.path(),
        &["exec", "--grant", "fs.fly=.", "--", "true"],
        64,
        "",
    );
    std::fs::create_dir_all(dir.path().join(".config/hermitcrab")).unwrap();
    std::fs::write(
        dir.path().join(".config/hermitcrab/config.toml"),
        "nonsense = 1\n",
    )
    .unwrap();
    check(dir.path(), &["exec", "--", "true"], 64, "");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_page_about_the_filter_is_what_the_program_refuses() {
    let dir = bench();
    let page = include_str!("../../../docs/system-calls.md");
    check(dir.path(), &["doctor", "--system-calls"], 0, page);
}

#[test]
fn the_doctor_writes_the_profile_that_lets_this_very_program_make_user_namespaces() {
    let dir = bench();
    let odd = dir.path().join("a {b}*");
    std::fs::create_dir(&odd).unwrap();
    let program = odd.join("hermitcrab");
    std::fs::copy(env!("CARGO_BIN_EXE_hermitcrab"), &program).unwrap();
    let told = Command::new(&program)
        .args(["doctor", "--apparmor"])
        .output()
        .unwrap();
    assert_eq!(told.status.code(), Some(0));
    let real = std::fs::canonicalize(dir.path()).unwrap();
    let named = format!(
        " \"{}/a \\{{b\\}}\\*/hermitcrab\" flags=(unconfined) {{\n  userns,\n}}\n",
        real.display()
    );
    let profile = String::from_utf8(told.stdout).unwrap();
    assert!(profile.ends_with(&named), "{profile}");
}

#[test]
fn the_doctor_says_of_each_mechanism_whether_it_is_there_and_what_is_lost_without_it() {
    let dir = bench();
    let told = hermitcrab(dir.path(), &["doctor"]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(told.status.code(), Some(0), "{text}");
    assert!(text.contains("isolation: isolated; commands run"), "{text}");
    // What stands behind its name.
    let row = |text: &str, mechanism: Mechanism| {
        let name = format!("{} ", mechanism.as_str());
        let row = text.lines().find_map(|line| line.strip_prefix(&name));
        row.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    for mechanism in Mechanism::ALL {
        let row = row(&text, mechanism);
        assert!(row.contains(mechanism.lost_without()), "{row}");
        let mut words = row.split_ascii_whitespace();
        let seen = (words.next(), words.next());
        assert!(
            !mechanism.is_mandatory() || seen == (Some("yes"), Some("yes")),
            "{row}"
        );
    }

    // The same where nobody gets a user namespace: what was not seen is not claimed.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces || exit 77; cd \"$1/proj\" && HOME=$1 exec setsid --wait \"$0\" doctor";
    let told = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .arg(dir.path())
        .output();
    let Ok(told) = told else {
        println!("SKIPPED: no unshare to take user namespaces away with");
        return;
    };
    if told.status.code() == Some(77) || told.stdout.is_empty() {
        println!("SKIPPED: user namespaces cannot be taken away here: {told:?}");
        return;
    }
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let errors = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(69), "{text}{errors}");
    assert!(
        text.contains("isolation: unknown, so commands are refused"),
        "{text}"
    );
    // Which one depends on who runs this: root of nothing else is refused before.
    assert!(errors.contains("sandbox step "), "{errors}");
    assert!(
        errors.contains("nothing of this could be tried out"),
        "{errors}"
    );
    for claim in [
        "stayed inside",
        "0, 1 and 2 only",
        "no home, no /var",
        "an eighth",
    ] {
        assert!(!text.contains(claim), "{claim}: {text}");
    }
    assert!(
        !row(&text, Mechanism::UserNamespace).contains("yes"),
        "{text}"
    );
}

#[test]
fn the_help_of_call_names_every_tool_there_is() {
    let dir = bench();
    for flag in ["-h", "--help"] {
        let output = hermitcrab(dir.path(), &["call", flag]);
        let help = String::from_utf8(output.stdout).unwrap();
        let help: Vec<&str> = help.split_whitespace().collect();
        let help = help.join(" ");
        let (_, from) = help.split_once("<TOOL> ").unwrap();
        let (_, from) = from.split_once("<TOOL> ").unwrap_or(("", from));
        let (named, _) = from
            .split_once("; or a tool of a configured server")
            .unwrap();
        let tools = hermitcrab_core::tool::Tool::ALL.into_iter();
        let offered: Vec<&str> = tools
            .filter(|tool| tool.is_for_models())
            .map(|tool| tool.as_str())
            .collect();
        assert_eq!(named.split(", ").collect::<Vec<_>>(), offered);
    }
}

#[test]
fn a_call_that_cannot_be_made_tells_a_person_what_to_type() {
    let dir = bench();
    let check = |arguments: &[&str], status: i32, said: &str| {
        let output = hermitcrab(dir.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    };
    check(
        &["call", "read_fil", "{}"],
        77,
        "did you mean `read_file`? `hermitcrab call --help` names all tools",
    );
    check(
        &["call", "read_file", "[]"],
        64,
        "no JSON object; they are one object, such as",
    );
    check(
        &["call", "read_file", "{\"path\""],
        64,
        "they are one object, such as",
    );
    let write = r#"{"path": "a.txt", "content": "b\n"}"#;
    check(&["call", "write_file", write], 77, "`--grant VERB=PLACE`");
    check(
        &["call", "session_search", "{}"],
        77,
        "`--grant VERB=PLACE`",
    );
    let search = ["call", "--grant", "session.read=*", "session_search", "{}"];
    check(&search, 0, "");
    let grant = ["call", "--grant", "fs.creat=new", "todo", "{}"];
    check(
        &grant,
        64,
        "there is no verb `fs.creat`; did you mean `fs.create`?",
    );
}

#[test]
fn what_is_no_text_is_refused_with_words_that_help_and_they_do() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let dir = bench();
    let odd = OsStr::from_bytes(b"caf\xe9.txt");
    let file = dir.path().join("proj").join(odd);
    std::fs::write(&file, "x").unwrap();
    let grant = OsStr::from_bytes(b"fs.modify=./caf\xe9.txt");
    let output = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["exec".as_ref(), "--grant".as_ref(), grant])
        .args(["--", "true"])
        .current_dir(dir.path().join("proj"))
        .env_clear()
        .env("HOME", dir.path())
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(
        said.contains("`fs.modify=./caf\\xe9.txt` is not UTF-8") && said.contains("fs.modify=DIR"),
        "{said}"
    );
    let line = "for file in caf?.txt; do echo y > \"$file\"; done";
    let arguments = ["exec", "--grant", "fs.modify=.", "--", line];
    let output = hermitcrab(dir.path(), &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "y\n");
}
