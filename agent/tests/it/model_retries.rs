//! What is asked of a backend again, what is not, and what bounds both.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hermitcrab::model::{
    ModelError, ModelPort as _, ModelRequest, ReplyLimits,
    http::{HttpConfig, HttpModel},
};
use serde_json::{Value, json};

use crate::support::backend::{backend, send};

const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"ok\"}}]}";

fn model(base_url: String, retries: u32, limits: ReplyLimits) -> HttpModel {
    HttpModel::configured(HttpConfig {
        base_url,
        retries,
        limits,
        ..HttpConfig::default()
    })
    .unwrap()
}

/// A backend that says this first and is well from then on; and how often it was asked.
fn at_first(first: String) -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let base = backend(move |place, stream, _| {
        count.fetch_add(1, Ordering::SeqCst);
        send(stream, if place == 0 { first.as_bytes() } else { OK });
    });
    (base, asked)
}

#[test]
fn who_wants_to_be_left_alone_for_longer_than_anybody_waits_is_not_asked_again() {
    let check = |wanted: u64, time_max: Duration| {
        let first =
            format!("HTTP/1.1 429 Slow\r\nretry-after: {wanted}\r\nconnection: close\r\n\r\nbusy");
        let (base, asked) = at_first(first);
        let limits = ReplyLimits {
            time_max,
            ..ReplyLimits::default()
        };
        let got = model(base, 1, limits).complete(ModelRequest::new("m", &[]));
        let told = format!("busy (it wants to be asked again after {wanted} s)");
        assert_eq!(got, Err(ModelError::Refused(429, told)));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    };
    // There is time for it, and nobody sits there for so long.
    check(90, Duration::from_secs(600));
    // Somebody would, and there is no time for it.
    check(20, Duration::from_secs(5));
}

#[test]
fn what_was_heard_already_is_not_said_a_second_time() {
    let word = json!({"choices": [{"delta": {"content": "one "}}]});
    // It says how much is to come and goes before that.
    let first = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5000\r\n\r\ndata: {word}\n\n"
    );
    let (base, asked) = at_first(first);
    let mut heard = String::new();
    let got =
        model(base, 3, ReplyLimits::default()).stream(ModelRequest::new("m", &[]), &mut |words| {
            heard.push_str(words);
        });
    assert!(got.is_err(), "{got:?}");
    assert_eq!(heard, "one ");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn an_answer_that_its_backend_withholds_is_none() {
    let base = backend(|_, stream, _| {
        let answer = json!({"choices": [
            {"message": {"content": "part"}, "finish_reason": "content_filter"}
        ]});
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        send(stream, format!("{head}{answer}").as_bytes());
    });
    let got = model(base, 0, ReplyLimits::default()).complete(ModelRequest::new("m", &[]));
    let why = "its backend withheld the answer".to_owned();
    assert_eq!(got, Err(ModelError::Declined(why)));
}

#[test]
fn of_two_bounds_on_an_answer_the_narrower_one_is_sent() {
    let tokens = |tokens_max: Option<u32>| ReplyLimits {
        tokens_max,
        ..ReplyLimits::default()
    };
    for (configured, asked, sent) in [
        (Some(7), Some(9), json!(7)),
        (Some(9), Some(7), json!(7)),
        (Some(7), None, json!(7)),
        (None, Some(9), json!(9)),
        (None, None, Value::Null),
    ] {
        let (tell, told) = std::sync::mpsc::channel();
        let base = backend(move |_, stream, body| {
            tell.send(body["max_tokens"].clone()).unwrap();
            send(stream, OK);
        });
        let request = ModelRequest::new("m", &[]).within(tokens(asked));
        model(base, 0, tokens(configured))
            .complete(request)
            .unwrap();
        assert_eq!(told.recv().unwrap(), sent, "{configured:?} {asked:?}");
    }
}

#[test]
fn a_backend_that_stays_busy_is_asked_less_and_less_often() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let base = backend(move |_, stream, _| {
        count.fetch_add(1, Ordering::SeqCst);
        send(
            stream,
            b"HTTP/1.1 503 Busy\r\nconnection: close\r\n\r\nbusy",
        );
    });
    let limits = ReplyLimits {
        time_max: Duration::from_secs(2),
        ..ReplyLimits::default()
    };
    let got = model(base, 20, limits).complete(ModelRequest::new("m", &[]));
    assert!(got.is_err(), "{got:?}");
    // After 0.3 and 0.6 seconds more; 1.2 are too long. At one pace it would be seven times.
    let asked = asked.load(Ordering::SeqCst);
    assert!(asked <= 3, "{asked}");
}
