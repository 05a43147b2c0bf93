//! The configuration: shown, changed, and read by what decides.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::{
    asleep::{mark, out_of_time},
    home::Home,
};

#[test]
fn keys_are_set_shown_and_reset_and_comments_stay() {
    let home = Home::new();
    let file = home.configure("# mine\nmode = \"prompt\" # why\n");
    home.ok(&["config", "set", "limits.pids_max", "50"]);
    home.ok(&["config", "set", "safety.block_rm_rf", "true"]);
    let shown = home.ok(&["config", "show"]);
    let line = |key: &str| {
        let lines = shown.lines().find(|line| line.starts_with(key));
        lines.unwrap_or_else(|| panic!("{key}: {shown}")).to_owned()
    };
    assert!(
        line("limits.pids_max").contains("50") && line("limits.pids_max").contains("(set by you)")
    );
    // Whose value it is stands behind what the key is for, not where a value would.
    assert_eq!(
        line("limits.timeout_seconds").split_once("# ").unwrap().1,
        "the longest time it may run (usual)"
    );
    assert!(line("mode").contains("\"prompt\""));
    home.ok(&["config", "reset", "limits.pids_max"]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("# mine\nmode = \"prompt\" # why"), "{text}");
    assert!(
        !text.contains("pids_max") && text.contains("block_rm_rf = true"),
        "{text}"
    );
    home.ok(&["config", "reset"]);
    assert_eq!(
        std::fs::read_to_string(file.with_extension("toml.1")).unwrap(),
        text
    );
}

/// The file says where a file is beside itself; who types a command is elsewhere.
#[test]
fn a_file_named_on_the_command_line_is_the_one_there() {
    let home = Home::new();
    let script = home.project().join("answers.jsonl");
    std::fs::write(&script, "{\"text\": \"said so\"}\n").unwrap();
    let backend = ["config", "backend", "scripted", "--model", "s", "--file"];
    let ran = home.run(&[&backend[..], &["answers.jsonl"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(home.ok(&["chat", "hello"]).contains("said so"));
    let ran = home.run(&[&backend[..], &["none.jsonl"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("proj/none.jsonl` yet"), "{}", ran.err);

    std::fs::write(home.project().join("key"), "secret\n").unwrap();
    let backend = ["config", "backend", "http", "--model", "m", "--base-url"];
    let here = ["http://127.0.0.1:1/v1", "--key-file", "key"];
    home.ok(&[&backend[..], &here].concat());
    let file = home.ok(&["config", "path"]);
    let text = std::fs::read_to_string(file.trim_end()).unwrap();
    assert!(text.contains("proj/key\""), "{text}");
}

#[test]
fn another_model_keeps_what_is_set_for_it_and_says_so() {
    let home = Home::new();
    let file = home.configure(
        "# which\n[models.planner]\nmodel = \"m\"\nkey_env = \"K\" # mine\n# dull\ntemperature = 0.2\n",
    );
    let backend = ["config", "backend", "http", "--model", "o"];
    let said = home.ok(&backend);
    assert!(
        said.contains("\nas before: key_env, temperature\n"),
        "{said}"
    );
    let there = ["--base-url", "http://127.0.0.1:9/v1"];
    let said = home.ok(&[&backend[..], &there].concat());
    assert!(said.contains("\nas before: temperature"), "{said}");
    assert!(said.contains(" with this: key_env\n"), "{said}");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.starts_with("# which\n[models.planner]\nmodel = \"o\"\n"),
        "{text}"
    );
    assert!(text.contains("# dull\ntemperature = 0.2\n"), "{text}");
}

#[test]
fn what_means_nothing_is_refused_with_what_was_meant() {
    let home = Home::new();
    let check = |arguments: &[&str], part: &str| {
        let ran = home.run(arguments);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    };
    check(
        &["config", "set", "limits.pid_max", "5"],
        "did you mean `limits.pids_max`",
    );
    for (key, words, takes) in [
        ("limits.memory_max_mb", "much", "is a whole number"),
        ("limits.pids_max", "-1", "is a whole number"),
        ("safety.block_rm_rf", "maybe", "is true or false"),
        ("directories", "3", "is a list"),
    ] {
        let said = format!("`{key}` {takes}");
        check(&["config", "set", key, words], &said);
    }
    let perl = ["config", "set", "sandbox.interpreters", r#"["perl"]"#];
    check(&perl, "not sh, dash, bash or python3");
    check(&["config", "set", "limits.pids_max", "lots"], "lots");
    check(&["config", "set", "mode", "yolo"], "yolo");
    check(&["config", "add-directory", "/"], "whole home");
    check(&["config", "add-directory", "~"], "whole home");
    check(&["config", "add-directory", "~/nowhere"], "No such file");
    let makes = format!("`mkdir -p {}/nowhere` makes it", home.path().display());
    check(&["config", "add-directory", "~/nowhere"], &makes);
    check(&["config", "import", "nowhere.json"], "nowhere.json");
    home.configure("[limit]\npids_max = 1\n");
    check(&["exec", "--", "true"], "did you mean `limits`");
}

#[test]
fn a_configuration_counts_only_where_nobody_else_can_have_written_it() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    let home = Home::new();
    let file = home.configure("[[grants]]\nverb = \"fs.create\"\non = \".\"\n");
    let dir = file.parent().unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let made = home.project().join("b.txt");
    let refused = |words: &str| {
        for arguments in [
            &["exec", "--", "echo b > b.txt"][..],
            &["config", "set", "mode", "prompt"],
            &["caps", "list"],
        ] {
            let ran = home.run(arguments);
            assert_eq!(ran.code, Some(64), "{arguments:?}: {ran:?}");
            assert!(ran.err.contains(words), "{arguments:?}: {}", ran.err);
        }
        assert!(!made.exists());
    };
    mode(&file, 0o646);
    refused("anybody may write it");
    mode(&file, 0o644);
    mode(dir, 0o757);
    refused("anybody may write it");
    mode(dir, 0o755);
    if chown(&file, None, Some(12_345)).is_ok() {
        mode(&file, 0o664);
        refused("its group may write it");
        mode(&file, 0o644);
    }
    if chown(&file, Some(12_345), None).is_ok() {
        refused("it belongs to user 12345");
        chown(&file, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    }
    // Where it is kept elsewhere, that is looked at.
    let elsewhere = home.path().join("dotfiles");
    std::fs::create_dir(&elsewhere).unwrap();
    let kept = elsewhere.join("settings.toml");
    std::fs::rename(&file, &kept).unwrap();
    symlink(&kept, &file).unwrap();
    mode(&elsewhere, 0o777);
    refused("anybody may write it");
    mode(&elsewhere, 0o755);
    home.ok(&["exec", "--", "echo b > b.txt"]);
    assert!(made.exists());
    std::fs::remove_file(&made).unwrap();
    // What nobody writes into is not waited for.
    std::fs::remove_file(&kept).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &kept,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    refused("it is a pipe, and no file");
}

#[test]
fn a_directory_that_is_added_can_be_read_until_it_is_removed() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("more")).unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join("more/b.txt"), "beta\n").unwrap();
    let read = || home.run(&["exec", "--", "cat ~/more/b.txt"]);
    assert_ne!(read().code, Some(0));
    home.ok(&["config", "add-directory", "~/more"]);
    assert!(
        home.ok(&["config", "add-directory", "~/more"])
            .contains("nothing to change")
    );
    assert_eq!(read().out, "beta\n");
    // To read is not to change.
    assert_eq!(home.run(&["exec", "--", "rm ~/more/b.txt"]).code, Some(77));
    assert_eq!(
        home.run(&["config", "add-directory", "~/.ssh"]).code,
        Some(64)
    );
    std::fs::create_dir(home.path().join("less")).unwrap();
    home.ok(&["config", "add-directory", "~/less"]);
    let ran = home.run(&["config", "remove-directory", "~/less", "~/more", "~/none"]);
    let told = "`~/less`, `~/more` are the agent's no more";
    assert!(ran.code == Some(64) && ran.out.contains(told), "{ran:?}");
    assert!(ran.err.contains("`~/none` is not on the list"), "{ran:?}");
    assert_ne!(read().code, Some(0));
}

#[test]
fn every_switch_is_read_by_what_decides() {
    let home = Home::new();
    let put = || {
        std::fs::create_dir_all(home.project().join("d")).unwrap();
        std::fs::write(home.project().join("d/x"), "x\n").unwrap();
        std::fs::write(home.project().join("a.txt"), "a\n").unwrap();
    };
    let all = ["--grant", "fs.*=."];
    let run = |config: &str, line: &str| {
        put();
        home.configure(config);
        home.run(&["exec", all[0], all[1], "--", line])
    };
    let refused = |config: &str, line: &str, part: &str| {
        let ran = run(config, line);
        assert_eq!(ran.code, Some(77), "{config}: {ran:?}");
        assert!(ran.err.contains(part), "{config}: {ran:?}");
    };
    let granted = |config: &str, line: &str| {
        let ran = run(config, line);
        assert_eq!(ran.code, Some(0), "{config}: {ran:?}");
    };
    granted("", "rm -r d && rm a.txt");
    refused("safety.block_rm_rf = true\n", "rm -r d", "block_rm_rf");
    assert!(home.project().join("d/x").exists());
    granted("safety.block_rm_rf = true\n", "rm a.txt && mv d e");
    std::fs::remove_dir_all(home.project().join("e")).unwrap();
    refused(
        "safety.max_files_per_operation = 2\n",
        "touch 1 2 3",
        "max_files_per_operation",
    );
    granted("safety.max_files_per_operation = 3\n", "touch 1 2 3");
    refused(
        "safety.require_confirmation_for_delete = true\n",
        "rm a.txt",
        "asked-by-rule",
    );
    granted(
        "safety.require_confirmation_for_delete = true\n",
        "echo b > a.txt",
    );
    refused(
        "safety.confirm_before_execute = true\n",
        "true",
        "asked-by-rule",
    );
    refused(
        "safety.dry_run_by_default = true\n",
        "rm a.txt",
        "a dry run",
    );
    assert!(home.project().join("a.txt").exists());
    let ran = home.run(&["exec", "--for-real", all[0], all[1], "--", "rm a.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.project().join("a.txt").exists());
    let mark = mark();
    let ran = out_of_time(&mark, |seconds| {
        run(
            &format!("limits.timeout_seconds = {seconds}\n"),
            &format!("sleep {mark}"),
        )
    });
    assert_eq!(ran.code, Some(124), "{ran:?}");
}

#[test]
fn what_a_command_may_use_is_what_is_configured() {
    let home = Home::new();
    let run = |config: &str, line: &str| {
        home.configure(config);
        home.run(&["exec", "--", line])
    };
    let processes =
        "python3 -c 'import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[0])'";
    // The second bound; the first is a little closer, and tells what it refused.
    assert_eq!(run("", processes).out, "104\n");
    assert_eq!(run("limits.pids_max = 7\n", processes).out, "11\n");
    let crowd = "perl -e 'my @all; for (1..9) { my $p = fork; next unless defined $p; $p or sleep 60; \
                 push @all, $p } kill 9, @all; exit 3'";
    let ran = run("limits.pids_max = 7\n", crowd);
    let doctor = home.ok(&["doctor"]);
    if doctor.contains("control groups: holding") && doctor.contains("processes") {
        assert!(ran.err.contains("limits.pids_max"), "{ran:?}");
    }
    assert!(!run("", crowd).err.contains("limits.pids_max"));
    if !home
        .ok(&["doctor"])
        .contains("control groups: holding memory")
    {
        println!("SKIPPED: memory: no control group holds it here");
        return;
    }
    let takes = "python3 -c 'print(len(b\"x\" * (300 << 20)))'";
    assert_eq!(run("", takes).out, "314572800\n");
    let ran = run("limits.memory_max_mb = 64\n", takes);
    assert_eq!(ran.code, Some(137), "{ran:?}");
    assert!(!ran.out.contains("314572800"), "{ran:?}");
    // Where the kernel ends a part of it alone, it is said as well why.
    let ran = run(
        "limits.memory_max_mb = 64\n",
        &format!("{takes}; came=$?; exit $came"),
    );
    assert_eq!(ran.code, Some(137), "{ran:?}");
    for part in [
        "needed more memory than it may have",
        "memory_max_mb",
        "kept on disk",
    ] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
}

#[test]
fn without_any_model_everything_else_works_and_it_is_said_what_is_missing() {
    let home = Home::new();
    let plan = r#"{"version": 1, "steps": [
        {"id": "r", "call": "read_file", "with": {"path": "a.txt"}},
        {"id": "x", "extract": {"$": "r.text"}, "ask": "all", "schema": "text"},
        {"id": "w", "call": "create_file", "with": {"path": "x.txt", "text": {"$": "x"}}},
        {"id": "c", "call": "copy_file", "with": {"from": "a.txt", "to": "c.txt"}}]}"#;
    std::fs::write(home.path().join("plan.json"), plan).unwrap();
    for asks_a_model in [
        &["run", "copy a.txt"][..],
        &["plan", "copy a.txt"],
        &["chat", "copy a.txt"],
    ] {
        let ran = home.run(asks_a_model);
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(
            ran.err.contains("no model is configured; name one with"),
            "{ran:?}"
        );
    }
    assert_eq!(home.ok(&["exec", "--", "cat a.txt"]), "a\n");
    home.ok(&["plan", "--plan", "../plan.json"]);
    let ran = home.run(&[
        "run",
        "--plan",
        "../plan.json",
        "--yes-low",
        "--grant",
        "fs.*=.",
    ]);
    // What needs a model is left out and says so; the rest is done.
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = "! x: no model is configured that could read it";
    assert!(ran.out.contains(said), "{ran:?}");
    assert!(home.project().join("c.txt").exists());
    assert!(!home.project().join("x.txt").exists());
    for works in [&["audit"][..], &["audit", "verify"], &["caps"], &["doctor"]] {
        home.ok(works);
    }
}

#[test]
fn a_dry_run_shows_what_would_change_and_keeps_nothing() {
    let home = Home::new();
    let ran = home.run(&[
        "exec",
        "--dry-run",
        "--grant",
        "fs.*=.",
        "--",
        "echo b > a.txt",
    ]);
    assert!(
        ran.err.contains("-a\n+b") && ran.err.contains("a dry run"),
        "{ran:?}"
    );
    assert_eq!(
        std::fs::read_to_string(home.project().join("a.txt")).unwrap(),
        "a\n"
    );
    let project = home.project().canonicalize().unwrap();
    let noted = format!("a dry run in {}", project.display());
    assert!(home.ledger().contains(&noted), "{}", home.ledger());
}

#[test]
fn a_server_whose_key_is_not_there_is_told_of_as_a_server_and_as_configured() {
    let home = Home::new();
    let file = home.path().join(".config/hermitcrab/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(
        &file,
        "[servers.issues]\nurl = \"https://i.example/mcp\"\nkey_env = \"NO_SUCH\"\n",
    )
    .unwrap();
    let ran = home.run(&["servers", "issues"]);
    assert_eq!(ran.code, Some(69), "{ran:?}");
    assert!(
        ran.err
            .contains("the server `issues` is left out: the variable `NO_SUCH`"),
        "{ran:?}"
    );
    assert!(
        !ran.err.contains("model") && !ran.err.contains("is configured"),
        "{ran:?}"
    );
    assert_eq!(home.run(&["servers", "others"]).code, Some(64));
}

#[test]
fn completions_and_manuals_are_written_for_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = home.ok(&["completions", shell]);
        assert!(
            text.contains("hermitcrab") && text.contains("add-directory"),
            "{shell}"
        );
    }
    assert!(home.ok(&["man"]).contains(".TH hermitcrab"));
    assert!(home.ok(&["man", "exec"]).contains("workspace"));
    assert!(
        home.ok(&["man", "caps", "grant"])
            .contains("hermitcrab caps grant")
    );
    let pages = home.dir.path().join("pages");
    let to = pages.to_str().unwrap();
    let ran = home.run(&["man", "--to", to]);
    assert_eq!(ran.code, Some(69), "{ran:?}");
    assert!(ran.err.contains("the directory must exist"), "{ran:?}");
    std::fs::create_dir(&pages).unwrap();
    home.ok(&["man", "--to", to]);
    for (page, says) in [
        ("hermitcrab.1", ".TH hermitcrab"),
        ("hermitcrab-exec.1", "workspace"),
        ("hermitcrab-caps-grant.1", "grant"),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(says), "{page}: {text}");
    }
    let ran = home.run(&["man", "caps", "gratn"]);
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.err.contains("`caps gratn`; did you mean `grant`?"),
        "{}",
        ran.err
    );
    assert_eq!(home.run(&["man", "nothing"]).code, Some(64));
}

#[test]
fn one_key_is_shown_by_its_name_and_a_slip_in_it_is_met_with_the_one_meant() {
    let home = Home::new();
    for word in ["show", "get"] {
        let shown = home.ok(&["config", word, "limits.pids_max"]);
        let keys: Vec<&str> = shown
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert!(
            matches!(keys.as_slice(), [line] if line.starts_with("limits.pids_max ")),
            "{shown}"
        );
    }
    let shown = home.ok(&["config", "show", "limits"]);
    let keys: Vec<&str> = shown.lines().skip(1).collect();
    assert!(keys.len() > 4, "{shown}");
    assert!(
        keys.iter().all(|line| line.starts_with("limits.")),
        "{shown}"
    );
    let ran = home.run(&["config", "show", "limits.pids_mx"]);
    assert_eq!(ran.code, Some(64), "{}", ran.err);
    assert!(
        ran.err.contains("did you mean `limits.pids_max`?"),
        "{}",
        ran.err
    );
    let ran = home.run(&["man", "exce"]);
    assert!(ran.err.contains("did you mean `exec`?"), "{}", ran.err);
}

#[test]
fn a_number_no_machine_has_is_refused_and_one_this_machine_has_not_is_told() {
    let home = Home::new();
    let ran = home.run(&["config", "set", "limits.memory_max_mb", "99999999999"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.err
            .contains("is 99999999999, and the most it can be is"),
        "{ran:?}"
    );
    let ran = home.run(&["config", "set", "limits.cpu_quota_percent", "99999999999"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.err.contains("at most; `99999999999` is more"),
        "{ran:?}"
    );
    assert!(
        !home
            .ok(&["config", "show", "limits"])
            .contains("set by you")
    );
    let told = |value: &str| {
        let ran = home.run(&["config", "set", "limits.memory_max_mb", value]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.err.contains("MiB of memory, so") && ran.err.contains("bounds nothing here")
    };
    // A pebibyte, and what any machine has.
    assert!(told("1073741824"));
    assert!(!told("64"));
}

#[test]
fn a_limit_that_nothing_holds_here_is_said_to_hold_nothing_where_it_is_shown_and_set() {
    let home = Home::new();
    let doctor = home.run(&["doctor"]).out;
    let groups = doctor
        .lines()
        .find(|line| line.starts_with("control groups"))
        .unwrap();
    let has_none = groups.split_whitespace().nth(2) == Some("no");
    let shown = home.ok(&["config", "show", "limits.memory_max_mb"]);
    assert_eq!(
        shown.contains("not in force here"),
        has_none,
        "{groups}: {shown}"
    );
    let set = home.run(&["config", "set", "limits.memory_max_mb", "64"]);
    assert_eq!(
        set.err.contains("not in force here"),
        has_none,
        "{groups}: {set:?}"
    );
    let other = home.ok(&["config", "show", "limits.pids_max"]);
    assert!(!other.contains("not in force"), "{other}");
}

#[test]
fn a_configuration_behind_a_link_that_leads_nowhere_is_not_none() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    let file = home.configure("mode = \"reject_all\"\n");
    let aside = home.path().join("not-mounted");
    let refused = |what: &str| {
        for args in [
            &["config", "show", "mode"][..],
            &["config", "set", "mode", "prompt"],
            &["exec", "--", "true"],
        ] {
            let ran = home.run(args);
            assert_eq!(ran.code, Some(64), "{ran:?}");
            assert!(ran.err.contains(what), "{ran:?}");
            // One way out and not two: what the link leads to is no file to be mended.
            assert!(ran.err.contains("or remove the link"), "{ran:?}");
            assert!(!ran.err.contains("config reset"), "{ran:?}");
        }
    };
    std::fs::remove_file(&file).unwrap();
    symlink(aside.join("config.toml"), &file).unwrap();
    refused("where nothing is");
    // The link is kept: what it leads to may come back.
    home.ok(&["config", "reset"]);
    assert_eq!(
        std::fs::read_link(file.with_extension("toml.1")).unwrap(),
        aside.join("config.toml")
    );
    let dir = file.parent().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    symlink(&aside, dir).unwrap();
    refused("where nothing is");
}
