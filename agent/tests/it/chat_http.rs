//! The chat command against a backend on this machine's loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attached;
mod named_key;
mod whole_input;

use std::{
    fs,
    io::{BufRead as _, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    thread::JoinHandle,
};

use hermitcrab::model::{Message, ModelError, ModelPort, ModelRequest, http::HttpModel};
use serde_json::{Value, json};

use crate::support::backend::request;

/// A backend that answers one request with each of these, and hands back what
/// it was asked: the head and the body of each request.
fn backend(answers: Vec<(u16, String)>) -> (String, JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            asked.push(request(&mut stream));
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 location: http://127.0.0.1:1/elsewhere\r\nconnection: close\r\n\r\n{answer}",
                answer.len()
            );
            stream.write_all(text.as_bytes()).unwrap();
        }
        asked
    });
    (base, thread)
}

fn says(text: &str) -> (u16, String) {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": text}}]});
    (200, body.to_string())
}

fn calls(tool: &str, arguments: &Value) -> (u16, String) {
    let call = json!({"id": "c1", "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}});
    let body = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call]}}]});
    (200, body.to_string())
}

fn hermitcrab(dir: &Path, arguments: &[&str]) -> Output {
    Command::new("setsid")
        .arg("--wait")
        .arg(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(arguments)
        .current_dir(dir.join("proj"))
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/bin:/bin")
        // A proxy in the environment must not see the conversation.
        .env("http_proxy", "http://127.0.0.1:1")
        .env("ALL_PROXY", "http://127.0.0.1:1")
        .output()
        .unwrap()
}

fn bench() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("proj")).unwrap();
    std::fs::write(dir.path().join("proj/a.txt"), "alpha\n").unwrap();
    dir
}

fn files_below(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}

/// A script has no answer in its hands then, and can tell.
#[test]
fn a_model_that_answers_nothing_is_no_success() {
    let dir = bench();
    let (base, asked) = backend((0..4).map(|_| says("")).collect());
    let words = ["chat", "--model", "m", "--base-url", &base, "hi"];
    let output = hermitcrab(dir.path(), &words);
    assert_eq!(asked.join().unwrap().len(), 4);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("No reply"), "{said}");
}

/// The model is told of each; its user, and a script, are as well.
#[test]
fn calls_of_one_answer_that_were_too_many_are_told_and_no_success() {
    let dir = bench();
    let many: Vec<Value> = (0..130)
        .map(|number| {
            let arguments =
                json!({"todos": [{"id": number.to_string(), "content": "x", "status": "pending"}]});
            json!({"id": format!("c{number}"), "type": "function",
                "function": {"name": "todo", "arguments": arguments.to_string()}})
        })
        .collect();
    let body = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": many}}]});
    let (base, asked) = backend(vec![(200, body.to_string()), says("done")]);
    let output = hermitcrab(
        dir.path(),
        &["chat", "--model", "m", "--base-url", &base, "hi"],
    );
    let asked = asked.join().unwrap();
    let told = asked[1].1.to_string();
    assert_eq!(told.matches("too many calls in one answer").count(), 2);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("2 calls of one answer not run: of an answer the first 128 are"),
        "{errors}"
    );
}

#[test]
fn a_conversation_runs_from_the_command_line_to_the_backend_and_back() {
    let dir = bench();
    let key = dir.path().join("key");
    std::fs::write(&key, "sesame\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let open = ["chat", "--model", "m", "--key-file", "../key", "hi"];
    let refused = hermitcrab(dir.path(), &open);
    assert_eq!(refused.status.code(), Some(64));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("may be read by others"), "{why}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let (base, asked) = backend(vec![
        calls("read_file", &json!({"path": "a.txt"})),
        calls("write_file", &json!({"path": "b.txt", "content": "beta\n"})),
        says("a.txt says alpha"),
    ]);
    let output = hermitcrab(
        dir.path(),
        &[
            "chat",
            "--model",
            "m-1",
            "--base-url",
            &base,
            "--key-file",
            "../key",
            "--grant",
            "fs.create=.",
            "what is in a.txt?",
        ],
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    let (words, footer) = said.split_once("\n\n").expect(&said);
    assert_eq!(words, "a.txt says alpha", "{errors}");
    assert!(
        footer.contains("1 file(s) were NOT modified")
            && footer.contains("`b.txt`")
            && !footer.contains('\u{2026}'),
        "{footer}"
    );
    // A script can tell that it was not done, and what does it.
    assert_eq!(output.status.code(), Some(77), "{errors}");
    assert!(
        errors.contains("nobody could be asked, and 1 call was refused: once the model has read")
            && errors.contains("`hermitcrab chat --continue --grant VERB=PLACE"),
        "{errors}"
    );
    // Nobody can be asked, and the file that was read could be behind the write.
    assert!(
        errors.contains("  Write b.txt\n    Denied (untrusted-flow)"),
        "{errors}"
    );
    assert!(!dir.path().join("proj/b.txt").exists());
    // The key is in no file that the program keeps, the ledger among them.
    let kept = files_below(&dir.path().join(".local/state/hermitcrab"));
    assert!(kept.iter().any(|file| file.ends_with("ledger.jsonl")));
    for file in kept {
        let bytes = fs::read(&file).unwrap();
        let has_key = bytes.windows(6).any(|part| part == b"sesame");
        assert!(!has_key, "{}", file.display());
    }
    let asked = asked.join().unwrap();
    assert!(
        asked[0].0.starts_with("POST /v1/chat/completions"),
        "{}",
        asked[0].0
    );
    assert!(asked.iter().all(|(head, _)| head.contains("Bearer sesame")));
    assert_eq!(asked[0].1["model"], "m-1");
    assert_eq!(asked[0].1["messages"][1]["content"], "what is in a.txt?");
    let result = asked[1].1["messages"][3]["content"].as_str().unwrap();
    assert!(result.contains("1|alpha"), "{result}");
}

#[test]
fn an_answer_that_is_cut_off_is_told_and_is_no_success() {
    let dir = bench();
    let cut = json!({"choices": [{
        "message": {"role": "assistant", "content": "half of what"},
        "finish_reason": "length",
    }]});
    let (base, asked) = backend(vec![(200, cut.to_string())]);
    let output = hermitcrab(
        dir.path(),
        &["chat", "--model", "m", "--base-url", &base, "tell"],
    );
    asked.join().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.stdout, b"half of what\n", "{errors}");
    assert!(
        errors.contains("stops at the limit of its length"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(1), "{errors}");
}

#[test]
fn arguments_that_are_no_json_are_told_as_that_and_not_as_cut_off() {
    let told = |finish: &str| {
        let dir = bench();
        let call = json!({"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": "{path: 1}"}});
        let body = json!({"choices": [{
            "message": {"role": "assistant", "content": null, "tool_calls": [call]},
            "finish_reason": finish,
        }]});
        let (base, asked) = backend(vec![(200, body.to_string()); 5]);
        let words = ["chat", "--model", "m", "--base-url", &base, "write"];
        let output = hermitcrab(dir.path(), &words);
        asked.join().unwrap();
        // The words for the conversation are those of the compared agent.
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, "Response truncated due to output length limit\n");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let why = "the arguments of `write_file` are no JSON (9 bytes: ";
    let errors = told("tool_calls");
    assert!(errors.contains(why), "{errors}");
    let errors = told("length");
    assert!(!errors.contains(why), "{errors}");
}

#[test]
fn each_call_is_shown_before_the_model_is_asked_again() {
    let dir = bench();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (seen, is_seen) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let answer = |(status, answer): (u16, String)| {
            let (mut stream, _) = listener.accept().unwrap();
            request(&mut stream);
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).unwrap();
        };
        answer(calls("read_file", &json!({"path": "a.txt"})));
        // Its next answer waits until the call was seen.
        let shown: String = is_seen
            .recv_timeout(std::time::Duration::from_secs(60))
            .unwrap();
        answer(says("done"));
        shown
    });
    let mut chat = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args(["chat", "--model", "m", "--base-url", &base, "look"])
        .current_dir(dir.path().join("proj"))
        .env_clear()
        .env("HOME", dir.path())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut errors = std::io::BufReader::new(chat.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    seen.send(line).unwrap();
    assert_eq!(thread.join().unwrap(), "  Read a.txt\n");
    assert!(chat.wait().unwrap().success());
}

/// What is configured says which model; the line says where it is this time. The configured
/// key is for the configured address.
#[test]
fn an_address_alone_is_for_the_configured_model_and_without_its_key() {
    let dir = bench();
    let refused = hermitcrab(
        dir.path(),
        &["chat", "--base-url", "http://127.0.0.1:1/v1", "hi"],
    );
    let why = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{why}");
    assert!(
        why.contains("none is configured; name it with `--model NAME`"),
        "{why}"
    );

    let file = dir.path().join(".config/hermitcrab/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let key = dir.path().join("key");
    fs::write(&key, "sesame\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let configured = format!(
        "[models.planner]\nmodel = \"the-one\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_file = \"{}\"\n",
        key.display()
    );
    fs::write(&file, configured).unwrap();
    let (base, asked) = backend(vec![(200, says("hello").1)]);
    let output = hermitcrab(dir.path(), &["chat", "--base-url", &base, "hi"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let asked = asked.join().unwrap();
    assert_eq!(asked[0].1["model"], "the-one");
    assert!(!asked[0].0.contains("sesame"), "{}", asked[0].0);
}

#[test]
fn who_speaks_no_tls_is_not_told_to_be_started() {
    let dir = bench();
    let there = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!(
        "https://127.0.0.1:{}/v1",
        there.local_addr().unwrap().port()
    );
    std::thread::spawn(move || {
        for stream in there.incoming() {
            let _said = std::io::Write::write_all(&mut stream.unwrap(), b"HTTP/1.1 400 no\r\n\r\n");
        }
    });
    let output = hermitcrab(
        dir.path(),
        &["chat", "--model", "m", "--base-url", &base, "hi"],
    );
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{why}");
    assert!(
        why.contains("speaks no TLS; is its address one with `http://`?"),
        "{why}"
    );
}

#[test]
fn a_backend_that_is_not_there_is_said_in_one_line() {
    let dir = bench();
    let output = hermitcrab(
        dir.path(),
        &[
            "chat",
            "--model",
            "m",
            "--base-url",
            "http://127.0.0.1:1/v1",
            "hello",
        ],
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{errors}");
    assert!(errors.contains("the model cannot be reached"), "{errors}");
    assert!(errors.contains("start what serves it there"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn refusals_redirects_and_nonsense_of_a_backend_are_told_apart() {
    let check = |answer: (u16, String)| {
        let (base, asked) = backend(vec![answer]);
        let mut model = HttpModel::new(&base, None).unwrap();
        let error = model
            .complete(ModelRequest::new("m", &[Message::User("hi".into())]))
            .unwrap_err();
        let asked = asked.join().unwrap();
        assert_eq!(asked.len(), 1);
        assert!(!asked[0].0.to_lowercase().contains("authorization"));
        error
    };
    let denied = r#"{"error": {"message": "no such model"}}"#.to_owned();
    assert_eq!(
        check((404, denied)),
        ModelError::Refused(404, "no such model".into())
    );
    assert!(matches!(
        check((302, String::new())),
        ModelError::Refused(302, _)
    ));
    // Somebody else's page is known for what it is.
    let page = check((200, " <html><body>Welcome</body></html>".into())).to_string();
    assert!(page.contains("begins with `<html><body>Welcome"), "{page}");
    assert!(page.contains("before `/chat/completions`"), "{page}");
    assert!(matches!(
        check((200, "{}".into())),
        ModelError::Unreadable(_)
    ));
}

#[test]
fn a_key_comes_from_variable_file_or_keyring_and_is_shown_nowhere() {
    let dir = bench();
    let home = dir.path();
    // The keyring's own program, as far as it is used.
    let bin = home.join("bin");
    fs::create_dir(&bin).unwrap();
    let tool = bin.join("secret-tool");
    let script =
        "#!/bin/sh\n[ \"$*\" = 'lookup service hermitcrab key mine' ] && printf 'sesame-ring'\n";
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let file = home.join("key");
    fs::write(&file, "sesame-file\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let config = home.join(".config/hermitcrab");
    fs::create_dir_all(&config).unwrap();
    let other = home.join("other");
    fs::create_dir(&other).unwrap();
    let check_in = |here: &Path, words: &str, expected: Option<&str>| {
        // A backend that says the key back, to see that it is not passed on.
        let (base, asked) = backend(vec![(
            401,
            json!({"error": "no sesame-env sesame-file sesame-ring"}).to_string(),
        )]);
        fs::write(
            config.join("config.toml"),
            format!(
                "[models.planner]\nmodel = \"m\"\nbase_url = \"{base}\"\nretries = 0\n{words}\n"
            ),
        )
        .unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(["model", "check"])
            .current_dir(here)
            .env_clear()
            .env("HOME", home)
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("TINY_KEY", "sesame-env")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        match expected {
            Some(key) => {
                let (head, _) = asked.join().unwrap().remove(0);
                assert!(
                    head.to_lowercase().contains(&format!("bearer {key}")),
                    "{words}: {head}"
                );
                assert!(
                    said.contains("401") && !said.contains(key),
                    "{words}: {said}"
                );
            }
            None => assert!(
                !said.contains("401") && said.contains("key"),
                "{words}: {said}"
            ),
        }
    };
    let check = |words: &str, expected: Option<&str>| check_in(&other, words, expected);
    check("key_env = \"TINY_KEY\"", Some("sesame-env"));
    check(
        &format!("key_file = \"{}\"", file.display()),
        Some("sesame-file"),
    );
    let machines = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
    if machines
        .iter()
        .any(|dir| Path::new(dir).join("secret-tool").exists())
    {
        println!("SKIPPED: the machine's own secret-tool is asked here");
    } else {
        check("key_keyring = \"mine\"", Some("sesame-ring"));
        // What is worked on may hold a program of that name.
        for here in [home, &bin] {
            check_in(here, "key_keyring = \"mine\"", None);
        }
    }
    check("key_keyring = \"other\"", None);
    check("key_env = \"NO_SUCH_VARIABLE\"", None);
    check("key_env = \"TINY_KEY\"\nkey_keyring = \"mine\"", None);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    check(&format!("key_file = \"{}\"", file.display()), None);
}

#[test]
fn a_conversation_a_server_finds_too_long_is_sent_shorter_and_goes_on() {
    let dir = bench();
    fs::write(
        dir.path().join("proj/long.txt"),
        "a line of it\n".repeat(3_000),
    )
    .unwrap();
    let full = json!({"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 20_000,
        "n_ctx": 16_000, "message": "request exceeds the available context size"}});
    let (base, asked) = backend(vec![
        calls("read_file", &json!({"path": "long.txt", "limit": 2_000})),
        (400, full.to_string()),
        says("it is long"),
    ]);
    let words = "what is in long.txt?";
    let arguments = ["chat", "--model", "m", "--base-url", &base, words];
    let output = hermitcrab(dir.path(), &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "it is long");
    assert!(
        errors.contains("came near what the model holds"),
        "{errors}"
    );
    let asked = asked.join().unwrap();
    let sent = |place: usize| asked[place].1["messages"].to_string();
    assert!(
        sent(2).len() < sent(1).len() / 2,
        "{} of {}",
        sent(2).len(),
        sent(1).len()
    );
    assert!(sent(2).contains("left out here to make room") && sent(2).contains(words));
    assert_eq!(asked[2].1["tools"], asked[1].1["tools"]);
}

#[test]
fn notes_and_skills_that_may_be_read_are_named_to_the_model() {
    let dir = bench();
    for (name, text) in [
        ("memories/USER.md", "likes short answers"),
        (
            "skills/x/SKILL.md",
            "---\nname: x\ndescription: d\n---\nDo x.\n",
        ),
    ] {
        let file = dir.path().join(".hermes").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let told = || {
        let (base, asked) = backend(vec![says("hello")]);
        let output = hermitcrab(
            dir.path(),
            &["chat", "--model", "m", "--base-url", &base, "hi"],
        );
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let asked = asked.join().unwrap();
        asked[0].1["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let before = told();
    assert!(
        !before.contains("memories") && !before.contains("skills_list"),
        "{before}"
    );
    for opened in ["memories", "skills"] {
        let opened = format!("../.hermes/{opened}");
        let output = hermitcrab(dir.path(), &["config", "add-directory", &opened]);
        assert!(output.status.success(), "{output:?}");
    }
    let place = told();
    assert!(
        place.contains("lie in `~/.hermes/memories/USER.md`."),
        "{place}"
    );
    assert!(place.contains("There are skills"), "{place}");
    assert!(
        !place.contains("short answers") && !place.contains("MEMORY.md"),
        "{place}"
    );
}
