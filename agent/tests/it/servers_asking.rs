//! Servers that ask their user something in the midst of a call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use hermitcrab::runtime::{ExternalServer, Fate, GrantWords};
use hermitcrab_core::{grant::GrantId, outcome::DenialCode};
use serde_json::{Value, json};

use crate::{
    servers_command::{declared, willing},
    servers_http::Peer,
    support::{Bench, peers::Peers},
};

/// Calls the tool that asks this, with a person who says these words; what the server was
/// answered.
fn asked(bench: &mut Bench, asks: Value, said: &[&'static str]) -> Value {
    bench.user.said.borrow_mut().clear();
    bench.user.said.borrow_mut().extend(said);
    bench.user.shown.borrow_mut().clear();
    let report = bench.call("mcp__s__ask", asks);
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    let answer: Value = serde_json::from_str(&report.text).unwrap();
    serde_json::from_str(answer["result"].as_str().unwrap()).unwrap()
}

fn form() -> Value {
    json!({"message": "Pay?", "requestedSchema": {
        "type": "object",
        "required": ["amount", "to"],
        "properties": {
            "to": {"type": "string", "minLength": 2},
            "amount": {"type": "integer", "minimum": 1, "description": "in cents"},
            "note": {"type": "string"},
        },
    }})
}

#[test]
fn what_a_server_asks_is_put_as_its_words_and_what_is_typed_goes_to_it_alone() {
    let (mut bench, _) = declared(Bench::new(), "well", 20);
    willing(&bench);
    let back = asked(&mut bench, form(), &["go on", "x", "bob", "5", "-"]);
    let expected = json!({"action": "accept", "content": {"to": "bob", "amount": 5}});
    assert_eq!(back, expected);
    let shown = bench.user.shown.borrow().clone();
    let questions: Vec<&str> = shown.iter().map(String::as_str).collect();
    assert_eq!(
        questions[questions.len() - 5..],
        [
            "the server `s` asks: Pay? (to be filled in, and sent to that server: to, amount, note) [go on|decline]",
            "the server `s` asks for `to` (a text)",
            "that is shorter than 2 letters; the server `s` asks for `to` (a text)",
            "the server `s` asks for `amount`: in cents (a whole number)",
            "the server `s` asks for `note` (a text; `-` leaves it out)",
        ],
        "{shown:?}"
    );
    // A form with nothing to fill in asks for a yes.
    let plain =
        json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
    let back = asked(&mut bench, plain, &["go on"]);
    assert_eq!(back, json!({"action": "accept", "content": {}}));
}

#[test]
fn nothing_is_accepted_for_a_person_who_did_not_say_so() {
    let (mut bench, _) = declared(Bench::new(), "well", 20);
    willing(&bench);
    for (said, action) in [
        (&["decline"][..], "decline"),
        (&[""], "decline"),
        (&["yes"], "decline"),
        // They leave it in the midst, or never get it right.
        (&["go on", "bob"], "cancel"),
        (&["go on", "bob", "0", "0", "x"], "cancel"),
    ] {
        let back = asked(&mut bench, form(), said);
        assert_eq!(back, json!({"action": action}), "{said:?}");
    }
    // An address to visit, and a form of no simple kinds, are put to nobody.
    let address =
        json!({"mode": "url", "message": "Go there", "url": "http://evil/", "elicitationId": "1"});
    let mut long = form();
    long["message"] = "x".repeat(2001).into();
    for asks in [address, long] {
        let back = asked(&mut bench, asks, &["go on"]);
        assert_eq!(back, json!({"action": "decline"}));
        let shown = bench.user.shown.borrow();
        assert!(
            !shown.iter().any(|shown| shown.contains("[go on|")),
            "{shown:?}"
        );
    }
}

/// How often it is on record that nobody was asked.
fn notes(bench: &Bench) -> usize {
    let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
    ledger.matches("wanted to ask something").count()
}

#[test]
fn a_server_that_asks_without_end_is_put_eight_times_and_fills_no_ledger() {
    let (mut bench, _) = declared(Bench::new(), "well", 60);
    willing(&bench);
    // What can be put, and what cannot.
    let mut long = form();
    long["message"] = "x".repeat(2001).into();
    for (mut asks, put, noted) in [(form(), 8, 1), (long, 0, 9)] {
        asks["times"] = 100.into();
        let before = notes(&bench);
        let back = asked(&mut bench, asks, &["decline"; 100]);
        assert_eq!(back, json!({"action": "decline"}));
        let shown = bench.user.shown.borrow();
        let asked = shown.iter().filter(|shown| shown.contains("[go on|"));
        assert_eq!(asked.count(), put, "{shown:?}");
        drop(shown);
        assert_eq!(notes(&bench) - before, noted);
    }
}

#[test]
fn a_server_is_told_whether_anybody_is_there_to_be_asked() {
    let (mut bench, _) = declared(Bench::new(), "well", 20);
    willing(&bench);
    let mut can = |said: &[&'static str]| {
        bench.user.said.borrow_mut().clear();
        bench.user.said.borrow_mut().extend(said);
        bench.call("mcp__s__can", json!({})).text
    };
    assert_eq!(can(&[]), r#"{"result": "{}"}"#);
    let forms = r#"{"result": "{\"elicitation\": {\"form\": {}}}"}"#;
    assert_eq!(can(&["x"]), forms);
    // Who asks all the same is answered for nobody.
    assert_eq!(asked(&mut bench, form(), &[]), json!({"action": "decline"}));
}

#[test]
fn a_person_may_take_longer_than_the_server_may() {
    let (mut bench, _) = declared(Bench::new(), "well", 2);
    willing(&bench);
    bench.call("mcp__s__can", json!({}));
    let thinks = || std::thread::sleep(Duration::from_secs(3));
    *bench.user.meanwhile.borrow_mut() = Some(Box::new(thinks));
    let plain =
        json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
    let back = asked(&mut bench, plain, &["go on"]);
    assert_eq!(back["action"], "accept");
}

/// The official SDK's server, declared, which may be reached.
fn granted(peer: &Peer) -> (Bench, GrantId) {
    let mut bench = Bench::new();
    let url = format!("http://127.0.0.1:{}/mcp", peer.port());
    let server = ExternalServer::at_url("peer", &url).unwrap();
    bench.runtime.declare_external(server).unwrap();
    let words = GrantWords::new("net.connect", &format!("127.0.0.1:{}", peer.port()));
    let agent = bench.runtime.first_agent();
    let grant = bench.runtime.grant(agent, &words).unwrap();
    (bench, grant)
}

#[test]
fn a_grant_that_is_taken_back_while_they_think_is_no_longer_gone_on_with() {
    let Some(peers) = Peers::ready() else { return };
    let peer = Peer::start(&peers, &["--asks"]);
    let (mut bench, grant) = granted(&peer);
    let remote = bench.runtime.remote();
    *bench.user.meanwhile.borrow_mut() = Some(Box::new(move || drop(remote.revoke(grant))));
    bench
        .user
        .said
        .borrow_mut()
        .extend(["go on", "2", "single", "-"]);
    let report = bench.call("mcp__peer__book", json!({"where": "Rome"}));
    let code = Some(DenialCode::Revoked);
    assert_eq!(report.fate.code(), code, "{}", report.text);
    assert!(!report.text.contains("nights"), "{}", report.text);
    // They were asked, and of their answer nothing more is.
    let shown = bench.user.shown.borrow();
    assert!(
        shown.len() == 1 && shown[0].contains("Book Rome?"),
        "{shown:?}"
    );
}

#[test]
fn the_official_server_asks_over_http_and_is_answered() {
    let Some(peers) = Peers::ready() else { return };
    let peer = Peer::start(&peers, &["--asks"]);
    let (mut bench, _) = granted(&peer);
    let book = json!({"where": "Rome"});
    let said = ["go on", "2", "2", "yes"];
    bench.user.said.borrow_mut().extend(said);
    let report = bench.call("mcp__peer__book", book.clone());
    let told = "2 nights, double, quiet True";
    assert!(report.text.contains(told), "{}", report.text);
    bench.user.words.borrow_mut().push_back("session");
    bench.user.said.borrow_mut().push_back("decline");
    let report = bench.call("mcp__peer__book", book);
    let told = "decline: nothing booked";
    assert!(report.text.contains(told), "{}", report.text);
}

#[test]
fn calls_beside_each_other_ask_one_after_the_other() {
    let Some(peers) = Peers::ready() else { return };
    let peer = Peer::start(&peers, &["--asks"]);
    let (mut bench, _) = granted(&peer);
    let said = ["go on", "1", "single", "-", "go on", "2", "single", "-"];
    bench.user.said.borrow_mut().extend(said);
    let (rome, oslo) = (json!({"where": "Rome"}), json!({"where": "Oslo"}));
    let calls = [("mcp__peer__book", &rome), ("mcp__peer__book", &oslo)];
    let agent = bench.runtime.first_agent();
    let reports = bench.runtime.call_together(agent, &calls);
    for (report, nights) in reports.iter().zip(["1 nights", "2 nights"]) {
        assert!(report.text.contains(nights), "{}", report.text);
    }
    let shown = bench.user.shown.borrow();
    let asked: Vec<bool> = shown.iter().map(|shown| shown.contains("Oslo")).collect();
    assert_eq!(asked.iter().position(|oslo| *oslo), Some(4), "{shown:?}");
}

#[test]
fn for_a_child_nobody_is_asked_unless_it_was_handed_the_right_to_ask() {
    let Some(peers) = Peers::ready() else { return };
    let peer = Peer::start(&peers, &["--asks"]);
    let (mut bench, reach) = granted(&peer);
    let first = bench.runtime.first_agent();
    let asking = bench.runtime.asking_grants(first);
    assert!(!asking.is_empty());
    for (more, told) in [(&[][..], "decline: nothing booked"), (&asking, "2 nights")] {
        let handed = [&[reach], more].concat();
        let child = bench.runtime.spawn(first, &handed).unwrap();
        bench.user.said.borrow_mut().clear();
        let said = ["go on", "2", "single", "-"];
        bench.user.said.borrow_mut().extend(said);
        let book = json!({"where": "Rome"});
        let report = bench.runtime.call(child, "mcp__peer__book", &book);
        assert!(report.text.contains(told), "{}", report.text);
    }
}
