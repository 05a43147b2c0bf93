//! Conversations at a terminal: kept, listed, gone on with, forgotten.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use hermitcrab::{
    conversation::{self, Conversation, Keeper, Shelf, When},
    model::Message,
};
use serde_json::{Value, json};

use crate::support::{
    backend::{backend, send},
    home::{Home, until},
    pty::Pty,
};

/// A home with a model that makes the calls its user's last words are a list of, answers
/// `heard` and the words otherwise, and what it was sent.
fn bench(config: &str) -> (Home, Arc<Mutex<Vec<Value>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let base = backend(move |_, stream, body| {
        let messages = body["messages"].as_array().unwrap();
        let last = messages.iter().rposition(|m| m["role"] == "user").unwrap();
        let words = messages[last]["content"].as_str().unwrap();
        let words = words.rsplit("\n\n").next().unwrap().to_owned();
        let is_answered = messages.len() > last + 1;
        let message = match serde_json::from_str::<Value>(&words) {
            Ok(call) if !is_answered => {
                json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c", "type": "function", "function": {
                    "name": call[0], "arguments": call[1].to_string()}}]})
            }
            _ => json!({"role": "assistant", "content": format!("heard {words}")}),
        };
        seen.lock().unwrap().push(body);
        let text = json!({"choices": [{"message": message}]}).to_string();
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            text.len()
        );
        send(stream, (head + &text).as_bytes());
    });
    let home = Home::new();
    home.configure(&format!(
        "{config}\n[models.planner]\nbackend = \"http\"\nmodel = \"m\"\nbase_url = \"{base}\"\n"
    ));
    (home, asked)
}

/// What was said by whom, in the last request.
fn last(asked: &Mutex<Vec<Value>>) -> Vec<(String, String)> {
    let asked = asked.lock().unwrap();
    let messages = asked.last().unwrap()["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| {
            let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
            let content = text("content");
            let words = content.rsplit("\n\n").next().unwrap_or_default().to_owned();
            (text("role"), words)
        })
        .collect()
}

fn said(role: &str, words: &str) -> (String, String) {
    (role.to_owned(), words.to_owned())
}

/// The identifiers that are listed, in order.
fn listed(home: &Home, arguments: &[&str]) -> Vec<String> {
    home.ok(&[&["conversations", "--json"], arguments].concat())
        .lines()
        .map(|line| {
            let facts: Value = serde_json::from_str(line).unwrap();
            facts["id"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn a_conversation_is_gone_on_with_where_it_was_left() {
    let (home, asked) = bench("");
    assert_eq!(
        home.ok(&["chat", "the first words"]),
        "heard the first words\n"
    );
    home.ok(&["chat", "another one"]);
    let ids = listed(&home, &[]);
    assert_eq!(ids.len(), 2);
    assert_eq!(
        home.ok(&["chat", "--continue", "and then?"]),
        "heard and then?\n"
    );
    let other = [
        said("user", "another one"),
        said("assistant", "heard another one"),
        said("user", "and then?"),
    ];
    assert_eq!(last(&asked), other);
    home.ok(&["chat", "--resume", &ids[1][..8], "go on"]);
    let first = [
        said("user", "the first words"),
        said("assistant", "heard the first words"),
        said("user", "go on"),
    ];
    assert_eq!(last(&asked), first);
    // Each is one conversation still, and the one that was gone on with is the last.
    let mut now = listed(&home, &[]);
    assert_eq!(now[0], ids[1]);
    now.sort();
    let mut before = ids.clone();
    before.sort();
    assert_eq!(now, before);
    let shown = home.ok(&["conversations", "show", &ids[1][..8]]);
    for line in ["you:\n  the first words", "model:\n  heard go on"] {
        assert!(shown.contains(line), "{shown}");
    }
    let table = home.ok(&["conversations"]);
    assert!(table.contains("terminal  the first words"), "{table}");
    let file = home
        .state("conversations")
        .join(&ids[1])
        .join("conversation.jsonl");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn what_was_read_in_it_counts_as_read_and_a_grant_of_the_same_line_knows_of_it() {
    let (home, _) = bench("[[grants]]\nverb = \"fs.create\"\non = \".\"\n");
    let write = |name: &str| json!(["write_file", {"path": name, "content": "x\n"}]).to_string();
    home.ok(&["chat", &write("configured.txt")]);
    assert!(home.project().join("configured.txt").exists());
    home.ok(&["chat", &json!(["read_file", {"path": "a.txt"}]).to_string()]);
    // What was granted once and for all says nothing about what this conversation holds.
    let ran = home.run(&["chat", "--continue", &write("steered.txt")]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(!home.project().join("steered.txt").exists());
    home.ok(&[
        "chat",
        "--continue",
        "--grant",
        "fs.create=.",
        &write("wanted.txt"),
    ]);
    assert!(home.project().join("wanted.txt").exists());
    // Another conversation holds nothing of it.
    home.ok(&["chat", &write("fresh.txt")]);
    assert!(home.project().join("fresh.txt").exists());
}

#[test]
fn an_earlier_one_is_searched_by_its_right_and_counts_as_read() {
    let (home, asked) = bench("[[grants]]\nverb = \"session.read\"\non = \"*\"\n");
    home.ok(&["chat", "indigo dyes wool"]);
    let id = &listed(&home, &[])[0];
    let search = json!(["session_search", {"query": "indigo"}]).to_string();
    home.ok(&["chat", &search]);
    let (role, result) = last(&asked).pop().unwrap();
    assert_eq!(role, "tool");
    let told: Value = serde_json::from_str(&result).unwrap();
    // The words of this conversation match as well, and are left out.
    assert_eq!(told["count"], 1, "{told}");
    let found = &told["results"][0];
    assert_eq!(
        (found["session_id"].as_str(), &found["model"]),
        (Some(&**id), &json!("m"))
    );
    assert_eq!(found["messages"][1]["content"], "heard indigo dyes wool");
    let newest = &listed(&home, &[])[0];
    assert_ne!(newest, id);
    let kept = Conversation::look(&home.state("conversations").join(newest)).unwrap();
    assert!(kept.has_read);
    assert!(kept.times.iter().all(Option::is_some) && kept.times.len() == kept.messages.len());
}

#[test]
fn the_right_to_look_at_earlier_ones_can_be_kept_for_a_workspace() {
    let (home, _) = bench("");
    home.ok(&["chat", "indigo dyes wool"]);
    let search = ["call", "session_search", r#"{"query": "wool"}"#];
    let ran = home.run(&search);
    assert!(
        ran.code == Some(77) && ran.out.contains("no-cap"),
        "{ran:?}"
    );
    home.ok(&["caps", "grant", "session.read=*"]);
    let found: Value = serde_json::from_str(&home.ok(&search)).unwrap();
    assert_eq!(found["count"], 1, "{found}");
    let listed = home.ok(&["caps"]);
    assert!(listed.contains("session.read"), "{listed}");
}

#[test]
fn it_goes_on_only_in_its_workspace_and_in_one_program() {
    let (home, _) = bench("");
    let refused = |arguments: &[&str], why: &str| {
        let ran = home.run(arguments);
        assert_eq!(ran.code, Some(64), "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(why), "{arguments:?}: {ran:?}");
    };
    refused(&["chat", "--continue", "x"], "no conversation in");
    home.ok(&["chat", "words"]);
    let id = &listed(&home, &[])[0];
    for (name, why) in [
        ("abc", "too short"),
        ("zzzz", "names no conversation"),
        ("../../etc", "names no conversation"),
        ("", "too short"),
    ] {
        refused(&["chat", "--resume", name, "x"], why);
        refused(&["conversations", "forget", name], why);
    }
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let ran = home.run_in(&elsewhere, &["chat", "--resume", id, "x"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.err.contains("/proj` and goes on only there"), "{ran:?}");
    let ran = home.run_in(&elsewhere, &["chat", "-c", "x"]);
    assert!(ran.err.contains("no conversation in"), "{ran:?}");
    assert!(
        home.run_in(&elsewhere, &["conversations"])
            .out
            .contains("no conversation")
    );
    assert!(
        home.run_in(&elsewhere, &["conversations", "--all"])
            .out
            .contains(&id[..8])
    );

    let mut other = home
        .command(&home.project(), &["chat", "--continue"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let dir = home.state("conversations").join(id);
    until(|| conversation::hold(&dir).unwrap().is_none().then_some(()));
    refused(&["chat", "--continue", "x"], "open in another program");
    refused(&["conversations", "forget", id], "open in another program");
    home.ok(&["chat", "another"]);
    refused(
        &["conversations", "forget", "--every"],
        "open in another program",
    );
    assert_eq!(listed(&home, &[]), *std::slice::from_ref(id));
    let mut input = other.stdin.take().unwrap();
    writeln!(input, "from there").unwrap();
    drop(input);
    assert!(other.wait().unwrap().success());
    assert!(
        home.ok(&["conversations", "show", id])
            .contains("heard from there")
    );
    home.ok(&["conversations", "forget", &id[..6]]);
    assert!(listed(&home, &["--all"]).is_empty());
    assert!(!dir.exists());
}

#[test]
fn a_beginning_that_names_two_names_none_of_them() {
    let (home, _) = bench("");
    home.ok(&["chat", "words"]);
    let id = &listed(&home, &[])[0];
    let (beginning, last) = id.split_at(id.len() - 1);
    let twin = format!("{beginning}{}", if last == "0" { "1" } else { "0" });
    let shelf = home.state("conversations");
    fs::DirBuilder::new()
        .mode(0o700)
        .create(shelf.join(&twin))
        .unwrap();
    let kept = |id: &str| shelf.join(id).join("conversation.jsonl");
    fs::copy(kept(id), kept(&twin)).unwrap();
    for arguments in [
        ["chat", "--resume", beginning, "x"].as_slice(),
        &["conversations", "show", beginning],
        &["conversations", "forget", beginning],
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, Some(64), "{arguments:?}: {ran:?}");
        let why = "names more than one conversation";
        assert!(ran.err.contains(why), "{arguments:?}: {ran:?}");
    }
    home.ok(&["conversations", "forget", &twin]);
    assert_eq!(listed(&home, &[]), *std::slice::from_ref(id));
}

#[test]
fn as_many_are_kept_as_is_configured_and_none_of_a_dry_run() {
    let (home, _) = bench("");
    home.ok(&["chat", "--dry-run", "not for real"]);
    assert!(listed(&home, &["--all"]).is_empty());
    home.ok(&["config", "set", "chat.conversations_kept", "2"]);
    for words in ["one", "two", "three"] {
        home.ok(&["chat", words]);
    }
    let table = home.ok(&["conversations"]);
    assert!(
        table.contains("  three") && table.contains("  two") && !table.contains("  one"),
        "{table}"
    );
    assert_eq!(
        fs::read_dir(home.state("conversations")).unwrap().count(),
        2
    );
    home.ok(&["config", "set", "chat.conversations_kept", "0"]);
    home.ok(&["chat", "nothing of this"]);
    assert_eq!(listed(&home, &[]).len(), 2);
    assert_eq!(
        home.ok(&["conversations", "forget", "--every"]),
        "forgotten: 2\n"
    );
    assert!(listed(&home, &[]).is_empty());
}

/// A conversation somebody had in an editor.
fn in_an_editor(home: &Home, workspace: &Path) -> String {
    let id = conversation::new_id().unwrap();
    let dir = Shelf::Editor.dir_of(&home.state(""), &id);
    fs::create_dir_all(&dir).unwrap();
    let mut past = Conversation::new(workspace.to_owned());
    past.note(&[
        Message::Told("something ended".into()),
        Message::User("said in the editor".into()),
        Message::Assistant {
            text: "\u{1b}[31mred".into(),
            calls: Vec::new(),
        },
    ]);
    Keeper::default().keep(&dir, &past, 0, When::After).unwrap();
    id
}

#[test]
fn one_of_an_editor_goes_on_at_a_terminal_and_stays_as_it_is() {
    let (home, asked) = bench("");
    home.ok(&["doctor"]);
    let id = in_an_editor(&home, &home.project().canonicalize().unwrap());
    let shown = home.ok(&["conversations", "show", &id]);
    assert!(
        shown.contains("you:\n  said in the editor\n") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
    // What nobody typed is in nobody's mouth.
    assert!(
        shown.starts_with("hermitcrab:\n  something ended\n"),
        "{shown:?}"
    );
    home.ok(&["chat", "--continue", "and here"]);
    // One message: some models take no two of one side after each other.
    let sent = asked.lock().unwrap().last().unwrap()["messages"][1].clone();
    assert_eq!(sent["role"], "user");
    assert_eq!(sent["content"], "something ended\n\nsaid in the editor");
    let ids = listed(&home, &[]);
    assert_eq!(ids.len(), 2, "{ids:?}");
    let kept = Conversation::look(&Shelf::Editor.dir_of(&home.state(""), &id)).unwrap();
    assert_eq!(kept.messages.len(), 3);
    home.ok(&["conversations", "forget", &id]);
    assert_eq!(listed(&home, &[]).len(), 1);
}

#[test]
fn a_damaged_one_is_named_and_nothing_is_lost_of_it() {
    let (home, _) = bench("");
    home.ok(&["chat", "words"]);
    let id = listed(&home, &[])[0].clone();
    let file = home
        .state("conversations")
        .join(&id)
        .join("conversation.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let cut = &whole.replacen("{\"assistant\"", "{", 1);
    assert_ne!(*cut, whole);
    fs::write(&file, cut).unwrap();
    let ran = home.run(&["chat", "--continue", "x"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.err.contains("cannot be read"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), *cut);
    home.ok(&["conversations", "forget", &id]);
}

#[test]
fn at_the_prompt_one_begins_anew_goes_back_and_is_shown_what_was_said_last() {
    let (home, asked) = bench("");
    let mut pty = Pty::start(&home, &[], &[]);
    pty.sees("or `help`.");
    pty.prompt();
    let says = |pty: &mut Pty, words: &str, answer: &str| {
        pty.keys(&format!("{words}\r"));
        pty.sees(answer);
        pty.prompt();
    };
    says(&mut pty, "plant a tree", "heard plant a tree");
    says(&mut pty, "new", "a new conversation");
    says(&mut pty, "dig a well", "heard dig a well");
    assert_eq!(last(&asked), [said("user", "dig a well")]);
    let ids = listed(&home, &[]);
    let id = ids
        .iter()
        .find(|id| {
            home.ok(&["conversations", "show", id])
                .contains("plant a tree")
        })
        .unwrap();
    says(&mut pty, "conversations", "plant a tree");
    let here = ids.iter().find(|other| *other != id).unwrap();
    says(&mut pty, &format!("resume {}", &here[..8]), "already");
    says(
        &mut pty,
        &format!("resume {}", &id[..8]),
        "goes on    plant a tree",
    );
    says(&mut pty, "water it", "heard water it");
    assert_eq!(last(&asked)[0], said("user", "plant a tree"));
    pty.keys("exit\r");
    pty.sees("`hermitcrab --continue` goes on with this conversation");
    assert!(pty.ended().success());

    let mut pty = Pty::start(&home, &["--continue"], &[]);
    let shown = pty.sees("or `help`.");
    assert!(shown.contains("you        water it"), "{shown}");
    assert!(shown.contains("model      heard water it"), "{shown}");
    pty.prompt();
    pty.keys("exit\r");
    assert!(pty.ended().success());
}

#[test]
fn who_goes_on_reads_what_they_typed_and_not_what_the_agent_said_for_them() {
    let (home, _) = bench("");
    let typed = json!(["delegate_task", {"tasks": [{"goal": "count them"}]}]).to_string();
    // Line by line: of words that are all there is, work is waited for where it is handed out.
    let mut lines = home
        .command(&home.project(), &["chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(lines.stdin.take().unwrap(), "{typed}").unwrap();
    assert!(lines.wait().unwrap().success());
    let id = &listed(&home, &[])[0];
    let shown = home.ok(&["conversations", "show", id]);
    assert!(shown.contains("ASYNC DELEGATION BATCH COMPLETE"), "{shown}");
    let mut pty = Pty::start(&home, &["--continue"], &[]);
    pty.sees("or `help`.");
    let shown = pty.prompt();
    assert!(shown.contains("you        [\"delegate_task\","), "{shown}");
    assert!(!shown.contains("ASYNC DELEGATION"), "{shown}");
    pty.keys("and now\r");
    pty.sees("heard and now");
    pty.prompt();
    pty.keys("exit\r");
    pty.ended();
    let mut pty = Pty::start(&home, &["--continue"], &[]);
    pty.sees("you        and now");
}
