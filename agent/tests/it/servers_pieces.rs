//! Pictures, sounds and documents of servers: kept in files by who may make them, after
//! the server counts as heard, and told with the reason where they are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use hermitcrab::runtime::{CallReport, ExternalServer, Fate};
use serde_json::{Value, json};

use crate::{servers::grant, servers_besides::serve, support::Bench, together::answered};

const READ: &str = "mcp__shelf__read_resource";

/// A bench whose agent may reach a server with these resources, kept in `keep`.
fn bench(keep: &str, contents: Vec<Value>) -> Bench {
    let announced = json!({"resources": {}});
    let port = serve(announced, move |_, _| Ok(json!({"contents": contents})));
    let mut bench = Bench::with_files();
    bench
        .runtime
        .declare_external(ExternalServer {
            keep: keep.to_owned(),
            ..ExternalServer::at("shelf", "127.0.0.1", port)
        })
        .unwrap();
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{port}"));
    bench
}

fn document(uri: &str) -> Value {
    json!({"uri": uri, "mimeType": "application/pdf", "blob": "AAEC"})
}

/// Reads the resources, after the user was given these words to say.
fn read(bench: &mut Bench, words: &[&'static str]) -> (CallReport, Vec<String>) {
    bench.user.words.borrow_mut().extend(words);
    let report = bench.call(READ, json!({"uri": "shelf:1"}));
    let told: Value = serde_json::from_str(&report.text).unwrap();
    let lines = told["result"].as_str().unwrap_or_else(|| panic!("{told}"));
    (report.clone(), lines.lines().map(str::to_owned).collect())
}

fn kept(bench: &Bench) -> Vec<PathBuf> {
    let found = fs::read_dir(bench.workspace.join("received/documents"));
    let mut files: Vec<PathBuf> = found
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn a_document_is_kept_with_leave_and_can_be_read_at_the_path_that_is_told() {
    let contents = vec![
        json!({"uri": "shelf:0", "text": "before"}),
        document("shelf:a/b%2fc.pdf"),
    ];
    let mut bench = bench("received", contents);
    let (report, lines) = read(&mut bench, &["once"]);
    assert_eq!(report.fate, Fate::Ran);
    // A grant from before the server was heard asks again, and shows what is made.
    assert_eq!(report.questions.len(), 1);
    let shown = &report.questions[0].shown;
    assert!(shown.contains("received/documents/doc_"), "{shown}");
    assert!(shown.contains("+\\x00\\u{1}\\u{2}\n"), "{shown}");
    assert!(
        shown.ends_with("\nthe server `shelf` sent it, and says it is application/pdf\n"),
        "{shown}"
    );
    let files = kept(&bench);
    let [file] = files.as_slice() else {
        panic!("{files:?}")
    };
    assert_eq!(fs::read(file).unwrap(), [0, 1, 2]);
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(file.to_str().unwrap().ends_with("_c.pdf"));
    let said = format!(
        "[MCP resource saved to {} (application/pdf, 3 bytes) \u{2014} read it with read_file or terminal tools]",
        file.display()
    );
    assert_eq!(lines, ["before".to_owned(), said]);
}

#[test]
fn a_no_is_told_in_its_place_and_nothing_else_of_that_answer_is_asked() {
    let contents = vec![
        document("shelf:a"),
        document("shelf:b"),
        json!({"uri": "shelf:c", "text": "after"}),
    ];
    let mut bench = bench("received", contents);
    let (report, lines) = read(&mut bench, &["deny", "once"]);
    assert_eq!((report.fate, report.questions.len()), (Fate::Ran, 1));
    assert!(
        lines[0].contains("could not be cached: application/pdf (Denied (rejected-by-user)"),
        "{lines:?}"
    );
    assert!(lines[1].contains("as the one before"), "{lines:?}");
    assert_eq!(lines[2], "after");
    assert_eq!(kept(&bench), Vec::<PathBuf>::new());
    assert!(!bench.workspace.join("received").exists());
}

#[test]
fn where_nothing_is_held_nothing_is_kept_and_the_answer_stands() {
    let mut bench = bench("~/.hermes/cache", vec![document("shelf:a")]);
    let (report, lines) = read(&mut bench, &["once"]);
    assert_eq!((report.fate, report.questions.len()), (Fate::Ran, 0));
    assert!(lines[0].contains("Denied (no-cap)"), "{lines:?}");
}

#[test]
fn no_server_says_where_its_pieces_lie_nor_how_many_they_are() {
    let contents = (0..20)
        .map(|n| document(&format!("shelf:../../../x{n}")))
        .collect();
    let mut bench = bench("received", contents);
    let (report, lines) = read(&mut bench, &["session"]);
    let files = kept(&bench);
    assert_eq!(files.len(), 16, "{lines:?}");
    // One question, which shows all of them.
    assert_eq!(report.questions.len(), 1);
    let shown = &report.questions[0].shown;
    assert!(
        files
            .iter()
            .all(|file| shown.contains(file.to_str().unwrap()))
    );
    assert_eq!(shown.matches("the server `shelf` sent it").count(), 16);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert!(files.iter().all(|file| mode(file) == 0o600));
    assert_eq!(mode(&bench.workspace.join("received/documents")), 0o700);
    assert!(
        lines[16..]
            .iter()
            .all(|line| line.contains("the first 16 are kept")),
        "{lines:?}"
    );
    assert_eq!(fs::read_dir(&bench.workspace).unwrap().count(), 1);
    // The same once more lies beside it.
    bench.clock.set(5);
    let (report, _) = read(&mut bench, &["session"; 2]);
    // Whether the server may be asked after what it said, and the new names.
    assert_eq!(report.questions.len(), 2);
    assert_eq!(kept(&bench).len(), 32);
}

#[test]
fn what_came_beside_other_calls_is_told_and_not_kept() {
    let piece = json!({"type": "resource", "resource": document("shelf:a")});
    let port = serve(json!({"tools": {}}), move |method, _| match method {
        "tools/call" => Ok(json!({"content": [piece]})),
        _ => Err("no such method"),
    });
    let mut bench = Bench::with_files();
    bench
        .runtime
        .declare_external(ExternalServer {
            keep: "received".to_owned(),
            tools: vec!["web_search".to_owned()],
            ..ExternalServer::at("shelf", "127.0.0.1", port)
        })
        .unwrap();
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{port}"));
    let search = |query: &str| ("web_search", json!({"query": query}));
    let (_, told) = answered(&mut bench.runtime, &[search("one"), search("two")]);
    assert_eq!(told.len(), 2);
    for text in told {
        assert!(text.contains("call it by itself"), "{text}");
    }
    assert_eq!(kept(&bench), Vec::<PathBuf>::new());
}
