use proptest::prelude::*;
use serde_json::json;

use super::*;

fn round(place: usize, argument: &str, result: &str) -> [Message; 2] {
    let id = format!("c{place}");
    [
        Message::Assistant {
            text: format!("round {place}"),
            calls: vec![ProposedCall {
                id: id.clone(),
                tool: "write_file".to_owned(),
                arguments: json!({"path": "a", "content": argument}).to_string(),
            }],
        },
        Message::Tool {
            call: id,
            tool: "write_file".to_owned(),
            text: result.to_owned(),
        },
    ]
}

/// Words of the user's, and rounds with texts of these lengths.
fn conversation(turns: &[(usize, Vec<(usize, usize)>)]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (words, rounds) in turns {
        messages.push(Message::User("ü".repeat(*words)));
        for (argument, result) in rounds {
            let place = messages.len();
            messages.extend(round(place, &"ä".repeat(*argument), &"\n".repeat(*result)));
        }
    }
    messages
}

/// Each result follows the call it is of, and each call has one.
fn is_whole(messages: &[Message]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Tool { call, .. } => match open.iter().position(|id| id == call) {
                Some(place) => drop(open.remove(place)),
                None => return false,
            },
            Message::Assistant { calls, .. } if open.is_empty() => {
                open.extend(calls.iter().map(|call| call.id.as_str()));
            }
            Message::Assistant { .. } => return false,
            Message::System(_) | Message::User(_) | Message::Told(_) => {}
        }
    }
    open.is_empty()
}

fn said(messages: &[Message]) -> Vec<&Message> {
    let is_users = |message: &&Message| matches!(message, Message::User(_));
    messages.iter().filter(is_users).collect()
}

fn turns() -> impl Strategy<Value = Vec<(usize, Vec<(usize, usize)>)>> {
    let rounds = prop::collection::vec((0..3_000_usize, 0..6_000_usize), 0..6);
    prop::collection::vec((0..400_usize, rounds), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_made_shorter_is_a_conversation_still(turns in turns(), room in 0..40_000_u64) {
        let whole = conversation(&turns);
        let mut rest = whole.clone();
        results(&mut rest, room);
        prop_assert_eq!(said(&rest), said(&whole));
        prop_assert!(is_whole(&rest));
        prop_assert!(length(&rest) <= length(&whole));
        let count = rest.len();
        let gone = rounds(&mut rest, room);
        prop_assert_eq!(gone.len() + rest.len(), count);
        prop_assert!(is_whole(&rest) && is_whole(&gone) && !rest.is_empty());
        let users: Vec<&Message> = said(&gone).into_iter().chain(said(&rest)).collect();
        prop_assert_eq!(users, said(&whole));
        let before = length(&rest);
        newest(&mut rest, room);
        prop_assert!(is_whole(&rest) && length(&rest) <= before);
        for message in &rest {
            if let Message::Assistant { calls, .. } = message {
                for call in calls {
                    let read: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                    prop_assert!(read.is_object(), "{}", call.arguments);
                }
            }
        }
    }
}

#[test]
fn the_oldest_go_first_and_only_as_many_as_it_takes() {
    let long = "x".repeat(10_000);
    let mut messages: Vec<Message> = vec![Message::User("do it".to_owned())];
    for place in 0..6 {
        messages.extend(round(place, "short", &long));
    }
    let whole = length(&messages);
    assert_eq!(results(&mut messages.clone(), whole), 0, "it fits");
    assert_eq!(results(&mut messages, whole - 15_000), 2);
    let text = |place: usize| match &messages[place] {
        Message::Tool { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(
        text(2).ends_with("call it again if they matter]"),
        "{}",
        text(2)
    );
    assert!(
        text(4).contains("9760 bytes of what `write_file` told"),
        "{}",
        text(4)
    );
    assert_eq!(text(6), long);
    // The last two rounds are what the model works with.
    assert_eq!(results(&mut messages, 0), 2);
    let gone = rounds(&mut messages, 21_000);
    assert_eq!(gone.len(), 9);
    assert_eq!(newest(&mut messages, 4_000), 2);
    assert!(length(&messages) <= 4_000);
    // What is short is not cut further, wherever that leads.
    assert!(rounds(&mut messages, 0).len() == 2 && messages.len() == 2);
    newest(&mut messages, 0);
    let left = length(&messages);
    newest(&mut messages, 0);
    assert_eq!(length(&messages), left);
}

#[test]
fn the_users_words_are_never_cut_and_arguments_stay_readable() {
    let mut messages = vec![Message::User("w".repeat(50_000))];
    messages.extend(round(0, &"y".repeat(9_000), "ok"));
    if let Message::Assistant { calls, .. } = &mut messages[1] {
        calls.push(ProposedCall {
            id: "c1".to_owned(),
            tool: "terminal".to_owned(),
            arguments: "{\"command\": \"".to_owned() + &"z".repeat(900),
        });
    }
    for place in 2..5 {
        messages.extend(round(place, "", ""));
    }
    assert_eq!(results(&mut messages, 0), 2);
    assert_eq!(messages[0], Message::User("w".repeat(50_000)));
    let Message::Assistant { calls, .. } = &messages[1] else {
        panic!("{messages:?}")
    };
    let read: Value = serde_json::from_str(&calls[0].arguments).expect("an object");
    let told = read["content"].as_str().unwrap_or_default();
    assert!(told.starts_with("yyy") && told.ends_with("[8760 bytes left out to make room]"));
    assert_eq!(read["path"], "a");
    assert_eq!(calls[1].arguments, "{}");
}
