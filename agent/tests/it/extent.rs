//! A yes is for the names that were shown: what it holds afterwards, how that is told, and
//! that the same work is not asked about again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hermitcrab::runtime::{Fate, GrantWords};
use hermitcrab_core::approval::Stance;
use serde_json::{Value, json};

use crate::support::{Bench, home::Home, machine::Machine, pty::Pty};

/// Runs a command; how often it was asked about, and whether what it changed was kept.
fn run(bench: &mut Bench, words: &[&'static str], command: &str) -> (usize, bool) {
    bench.user.shown.borrow_mut().clear();
    bench.user.words.borrow_mut().extend(words);
    let report = bench.call("terminal", json!({"command": command}));
    assert!(
        bench.user.words.borrow().is_empty(),
        "{command}: too few questions"
    );
    let asked = bench.user.shown.borrow().len();
    (asked, report.fate == Fate::Ran)
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.put("src/a.txt", "a\n");
    bench
}

#[test]
fn making_a_directory_for_the_session_makes_nothing_in_it() {
    let mut bench = bench();
    assert_eq!(run(&mut bench, &["session"], "mkdir out"), (1, true));
    for evil in ["echo evil > out/evil", "mkdir out/deep", "ln -s / out/root"] {
        assert_eq!(run(&mut bench, &[], evil), (1, false), "{evil}");
    }
    let written = bench.call("write_file", json!({"path": "out/evil", "content": "x"}));
    assert_ne!(written.fate, Fate::Ran);
    assert_eq!(
        std::fs::read_dir(bench.workspace.join("out"))
            .unwrap()
            .count(),
        0
    );
    // The directory itself can be made again.
    std::fs::remove_dir(bench.workspace.join("out")).unwrap();
    assert_eq!(run(&mut bench, &[], "mkdir out"), (0, true));
}

#[test]
fn changing_the_mode_of_a_directory_for_the_session_changes_no_file_in_it() {
    let mut bench = bench();
    assert_eq!(run(&mut bench, &["session"], "chmod 700 src"), (1, true));
    assert_eq!(run(&mut bench, &[], "chmod 755 src"), (0, true));
    assert_eq!(run(&mut bench, &[], "echo evil > src/a.txt"), (1, false));
    assert_eq!(run(&mut bench, &[], "chmod 600 src/a.txt"), (1, false));
    assert_eq!(bench.text("src/a.txt").unwrap(), "a\n");
}

#[test]
fn removing_an_empty_directory_for_the_session_removes_none_that_is_full() {
    let mut bench = bench();
    let empty = bench.workspace.join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_eq!(run(&mut bench, &["session"], "rmdir empty"), (1, true));
    bench.put("empty/full", "x\n");
    assert_eq!(run(&mut bench, &[], "rm -r empty"), (1, false));
    assert_eq!(bench.text("empty/full").unwrap(), "x\n");
    std::fs::remove_file(empty.join("full")).unwrap();
    assert_eq!(run(&mut bench, &[], "rmdir empty"), (0, true));
}

#[test]
fn a_file_that_could_be_changed_and_is_a_directory_by_now_holds_nothing() {
    let mut bench = bench();
    bench.put("x", "1\n");
    assert_eq!(run(&mut bench, &["session"], "echo 2 > x"), (1, true));
    std::fs::remove_file(bench.workspace.join("x")).unwrap();
    bench.put("x/y", "1\n");
    assert_eq!(run(&mut bench, &[], "echo 2 > x/y"), (1, false));
}

/// Each name is shown in one question, and held by itself.
#[test]
fn a_tree_that_was_removed_or_renamed_for_the_session_is_removed_or_renamed_again_unasked() {
    for (command, back) in [
        ("rm -r tree", "true"),
        ("mv tree other", "mv other tree"),
        ("mkdir made; echo x > made/x", "rm -r made"),
    ] {
        let mut bench = bench();
        let plant = |bench: &Bench| {
            for name in ["tree/a", "tree/deep/b"] {
                bench.put(name, "x\n");
            }
        };
        plant(&bench);
        assert_eq!(
            run(&mut bench, &["session"], command),
            (1, true),
            "{command}"
        );
        let words: &[&str] = if back == "true" { &[] } else { &["session"] };
        assert_eq!(run(&mut bench, words, back).0, words.len(), "{back}");
        plant(&bench);
        assert_eq!(run(&mut bench, &[], command), (0, true), "{command} again");
        assert_eq!(run(&mut bench, &[], back), (0, true), "{back} again");
        // With one name more there is a question again.
        plant(&bench);
        bench.put("tree/more", "x\n");
        let more = command.replace("made/x", "made/y");
        assert_eq!(run(&mut bench, &[], &more), (1, false), "{more}");
    }
}

#[test]
fn a_name_alone_is_told_as_one_and_a_tree_as_ever() {
    let mut bench = bench();
    bench.grant("fs.modify", "src");
    assert_eq!(run(&mut bench, &["session"], "mkdir out"), (1, true));
    let first = bench.runtime.first_agent();
    let held = bench.runtime.grants_in_words(first);
    let told: Vec<&str> = held.iter().map(|(_, words)| words.as_str()).collect();
    let at = bench.workspace.display();
    for words in [
        format!("fs.create on only {at}/out"),
        format!("fs.modify on {at}/src"),
    ] {
        assert!(told.contains(&words.as_str()), "{words}: {told:?}");
    }
}

#[test]
fn always_is_kept_as_the_name_it_was_said_about() {
    let machine = Machine::new();
    let run = |words: &[&'static str], command: &str| {
        let mut opened = machine.open(words);
        let first = opened.runtime.first_agent();
        opened
            .runtime
            .call(first, "terminal", &json!({"command": command}));
        opened.runtime.end_session().unwrap();
        opened.user.shown.borrow().len()
    };
    let out = machine.workspace.join("out");
    assert_eq!(run(&["always"], "mkdir out"), 1);
    let kept = format!("to be kept: always fs.create only {}", out.display());
    assert!(machine.ledger().contains(&kept), "{}", machine.ledger());
    std::fs::remove_dir(&out).unwrap();
    assert_eq!(run(&[], "mkdir out"), 0);
    assert!(out.is_dir());
    assert_eq!(run(&[], "echo evil > out/evil"), 1);
    assert!(!out.join("evil").exists());
}

#[test]
fn a_look_at_a_directory_shows_commands_nothing_of_what_is_in_it() {
    let mut bench = Bench::new();
    let other = bench.workspace.parent().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("a.txt"), "seen\n").unwrap();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("fs.create", &other.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    bench.user.words.borrow_mut().extend(["session"; 2]);
    let path = other.to_string_lossy().into_owned();
    bench.call("read_file", json!({"path": path}));
    let shown = bench.user.shown.borrow().join("\n");
    assert!(shown.contains(&format!("fs.read {path}")), "{shown}");
    let cat = json!({"command": format!("cat {path}/a.txt")});
    let report = bench.call("terminal", cat);
    assert!(!report.text.contains("seen"), "{}", report.text);
}

/// Who lets a directory be searched is asked for all of it, in one question.
#[test]
fn a_search_asks_for_all_of_a_directory_and_not_for_each_of_its_parts() {
    let mut bench = Bench::new();
    let other = bench.workspace.parent().unwrap().join("other");
    for (name, text) in [
        ("a.txt", "alpha\n"),
        ("deep/b.txt", "alpha\n"),
        ("deep/er/c.txt", "alpha\n"),
    ] {
        let at = other.join(name);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, text).unwrap();
    }
    let first = bench.runtime.first_agent();
    let path = other.to_string_lossy().into_owned();
    let words = GrantWords::new("fs.create", &path);
    bench.runtime.grant(first, &words).unwrap();
    bench.user.words.borrow_mut().extend(["session"; 1]);
    let args = json!({"pattern": "alpha", "path": path});
    let report = bench.call("search_files", args.clone());
    let shown = bench.user.shown.borrow().clone();
    let all = format!("fs.list all of {path}\nfs.read all of {path}\n");
    assert!(shown.len() == 1 && shown[0].starts_with(&all), "{shown:?}");
    let found = |text: &str| serde_json::from_str::<Value>(text).unwrap()["total_count"].clone();
    assert_eq!(found(&report.text), 3, "{}", report.text);
    // And what lies there is read without a question from there on.
    let again = bench.call(
        "search_files",
        json!({"pattern": "alpha", "path": format!("{path}/deep")}),
    );
    assert_eq!(found(&again.text), 2, "{}", again.text);
    assert_eq!(bench.user.shown.borrow().len(), 1);
}

#[test]
fn all_skills_are_found_and_read_once_it_was_said_that_they_may_be() {
    let mut bench = Bench::new();
    let skills = bench.workspace.parent().unwrap().join(".hermes/skills");
    let skill = "---\nname: deep\ndescription: A skill.\n---\n\nDo it.\n";
    std::fs::create_dir_all(skills.join("kind/deep")).unwrap();
    std::fs::write(skills.join("kind/deep/SKILL.md"), skill).unwrap();
    let first = bench.runtime.first_agent();
    let path = skills.to_string_lossy().into_owned();
    let words = GrantWords::new("fs.create", &path);
    bench.runtime.grant(first, &words).unwrap();
    bench.user.words.borrow_mut().extend(["session"; 1]);
    let listed = bench.call("skills_list", json!({}));
    assert!(listed.text.contains("A skill."), "{}", listed.text);
    let shown = bench.user.shown.borrow().clone();
    let all = format!("fs.list all of {path}\nfs.read all of {path}\n");
    assert!(shown.len() == 1 && shown[0].starts_with(&all), "{shown:?}");
}

#[test]
fn a_skill_that_cannot_be_read_hides_none_of_the_others() {
    let mut bench = Bench::new();
    let skills = bench.workspace.parent().unwrap().join(".hermes/skills");
    let skill = "---\nname: named\ndescription: A skill.\n---\n\nDo it.\n";
    for name in ["endless", "no-text", "sound"] {
        std::fs::create_dir_all(skills.join(name)).unwrap();
        std::fs::write(skills.join(name).join("SKILL.md"), skill).unwrap();
    }
    let file = std::fs::File::create(skills.join("endless/SKILL.md")).unwrap();
    file.set_len(5 << 30).unwrap();
    std::fs::write(skills.join("no-text/SKILL.md"), [0xff, 0xfe]).unwrap();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("fs.*", &skills.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    let listed = bench.call("skills_list", json!({}));
    let listed: Value = serde_json::from_str(&listed.text).unwrap();
    assert_eq!(listed["count"], 1, "{listed}");
    let seen = bench.call("skill_view", json!({"name": "named"}));
    assert!(seen.text.contains("Do it."), "{}", seen.text);
    // It is told by itself what is wrong with it.
    let seen = bench.call("skill_view", json!({"name": "endless"}));
    assert!(!seen.text.contains("Do it."), "{}", seen.text);
}

#[test]
fn a_list_of_skills_makes_no_directory_for_them_whatever_is_held() {
    let mut bench = Bench::new();
    let skills = bench.workspace.parent().unwrap().join(".hermes/skills");
    std::fs::create_dir_all(skills.parent().unwrap()).unwrap();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("fs.*", &skills.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    let listed = bench.call("skills_list", json!({}));
    let none = "No skills found in skills/ directory.";
    assert!(listed.text.contains(none), "{}", listed.text);
    assert!(!skills.exists());
    assert!(bench.user.shown.borrow().is_empty());
}

#[test]
fn at_the_prompt_the_words_say_names_and_the_list_says_only() {
    let home = Home::new();
    home.configure("");
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    pty.keys("!mkdir out\r");
    pty.sees("[deny]:");
    pty.keys("?\r");
    pty.sees("the same names in this session");
    pty.until(|shown| shown.matches("[deny]:").count() == 2);
    pty.keys("session\r");
    pty.sees("kept as commit 1");
    pty.prompt();
    pty.keys("caps\r");
    pty.sees("fs.create on only ");
    pty.prompt();
    pty.keys("clear\r");
    pty.until(|shown| !shown.contains("[deny]:"));
    pty.keys("!echo evil > out/evil\r");
    pty.sees("[deny]:");
    pty.keys("deny\r");
    pty.prompt();
    assert!(!home.project().join("out/evil").exists());
}

#[test]
fn what_is_explained_is_an_effect_on_a_name() {
    let mut bench = bench();
    let first = bench.runtime.first_agent();
    let stances = |bench: &mut Bench, below: &str| {
        let on = bench.workspace.join(below).to_string_lossy().into_owned();
        let explained = bench
            .runtime
            .explain(first, &GrantWords::new("fs.create", &on));
        let explained = explained.unwrap();
        assert_eq!(explained[0].what, format!("fs.create {on}"));
        explained[0].explanation.stance
    };
    assert_eq!(stances(&mut bench, "out"), Stance::Ask);
    assert_eq!(run(&mut bench, &["session"], "mkdir out"), (1, true));
    assert_eq!(stances(&mut bench, "out"), Stance::Allow);
    assert_eq!(stances(&mut bench, "out/evil"), Stance::Ask);
}
