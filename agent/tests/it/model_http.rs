//! Backends that stream, refuse, hang, lie and talk without end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead, BufReader, Read, Write as _},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use hermitcrab::{
    cancel::Cancel,
    model::{
        Finish, Message, ModelError, ModelPort, ModelReply, ModelRequest, ReplyLimits, Schema,
        Structured,
        http::{HttpConfig, HttpModel},
    },
};
use serde_json::{Value, json};

use crate::support::backend::{backend, request, send};

fn raw(answer: &'static [u8]) -> String {
    backend(move |_, stream, _| {
        send(stream, answer);
    })
}

fn model(base: &str) -> HttpModel {
    HttpModel::new(base, None).unwrap()
}

fn ask(base: &str, limits: ReplyLimits) -> Result<ModelReply, ModelError> {
    model(base).complete(ModelRequest::new("m", &[Message::User("hi".into())]).within(limits))
}

fn short() -> ReplyLimits {
    ReplyLimits {
        time_max: Duration::from_millis(1500),
        bytes_max: 200_000,
        tokens_max: None,
    }
}

const EVENTS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

fn piece(words: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"delta": {"content": words}}]})
    )
}

#[test]
fn words_are_heard_as_they_come_and_the_answer_is_all_of_them() {
    let (hear, was_heard) = std::sync::mpsc::channel();
    let base = backend(move |_, stream, body| {
        assert_eq!(body["stream"], true);
        send(stream, EVENTS);
        for words in ["one ", "two ", "three"] {
            send(stream, piece(words).as_bytes());
            // None waits for the next one to be told.
            was_heard.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
        send(
            stream,
            format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes(),
        );
    });
    let mut heard = Vec::new();
    let reply = model(&base)
        .stream(ModelRequest::new("m", &[]), &mut |words| {
            heard.push(words.to_owned());
            hear.send(()).unwrap();
        })
        .unwrap();
    assert_eq!(reply.text, "one two three");
    assert_eq!(heard, ["one ", "two ", "three"]);
    assert_eq!(reply.finish, Finish::Ended);
}

#[test]
fn a_backend_that_does_not_stream_is_heard_in_one_piece() {
    let base = raw(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"all\"}}]}",
    );
    let mut heard = String::new();
    model(&base)
        .stream(ModelRequest::new("m", &[]), &mut |words| {
            heard.push_str(words);
        })
        .unwrap();
    assert_eq!(heard, "all");
}

#[test]
fn answers_that_are_none_are_refused_in_bounded_time() {
    let limits = ReplyLimits {
        time_max: Duration::from_secs(60),
        ..short()
    };
    let unreadable = |answer: &'static [u8], part: &str| match ask(&raw(answer), limits) {
        Err(ModelError::Unreadable(why)) => assert!(why.contains(part), "{why}"),
        other => panic!("{part}: {other:?}"),
    };
    unreadable(
        b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{\"choices\":[",
        "breaks off",
    );
    unreadable(
        b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"x\"}}]}",
        "EOF",
    );
    unreadable(
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"\xff\xfe\"}}]}",
        "UTF-8",
    );
    unreadable(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"\xc3\x28\"}}]}\n\n",
        "UTF-8",
    );
    unreadable(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n",
        "in the middle",
    );
}

#[test]
fn an_endpoint_that_hangs_is_left_after_the_time_allowed() {
    let check = |answer: &'static [u8]| {
        let base = backend(move |_, stream, _| {
            send(stream, answer);
            // Longer than anybody waits; the end of the test ends it.
            std::thread::sleep(Duration::from_secs(60));
        });
        let began = Instant::now();
        let error = ask(&base, short()).unwrap_err();
        assert_eq!(error, ModelError::TimedOut(Duration::from_millis(1500)));
        assert!(began.elapsed() < Duration::from_secs(30));
    };
    check(b"");
    check(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choi");
    check(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: ping\n\n");
}

#[test]
fn a_model_that_talks_without_end_is_cut_off() {
    let endless = |words: fn(usize) -> String| {
        let base = backend(move |_, stream, _| {
            send(stream, EVENTS);
            let mut place = 0;
            while send(stream, piece(&words(place)).as_bytes()) {
                place += 1;
            }
        });
        let mut heard = 0;
        let limits = ReplyLimits {
            time_max: Duration::from_secs(60),
            ..short()
        };
        let error = model(&base)
            .stream(ModelRequest::new("m", &[]).within(limits), &mut |words| {
                heard += words.len();
            })
            .unwrap_err();
        assert!(heard < 300_000);
        error
    };
    assert_eq!(endless(|_| "and so on ".repeat(20)), ModelError::Repeats);
    assert_eq!(
        endless(|place| format!("{place} and ")),
        ModelError::TooLong(200_000)
    );
}

#[test]
fn a_long_answer_that_comes_a_letter_at_a_time_is_not_cut_off_for_what_it_is_wrapped_in() {
    let base = backend(|_, stream, _| {
        send(stream, EVENTS);
        for number in 0..5_000 {
            let letter = char::from(b'a' + u8::try_from(number * number % 26).unwrap());
            send(stream, piece(&letter.to_string()).as_bytes());
        }
        send(stream, b"data: [DONE]\n\n");
    });
    let limits = |bytes_max| ReplyLimits {
        time_max: Duration::from_secs(60),
        bytes_max,
        ..short()
    };
    let ask = |bytes_max| {
        let request = ModelRequest::new("m", &[]).within(limits(bytes_max));
        model(&base).stream(request, &mut |_| {})
    };
    assert_eq!(ask(6_000).unwrap().text.len(), 5_000);
    assert_eq!(ask(4_000).unwrap_err(), ModelError::TooLong(4_000));
}

#[test]
fn a_wait_is_called_off_at_once() {
    let base = backend(|_, _, _| std::thread::sleep(Duration::from_secs(60)));
    let cancel = Cancel::default();
    let mut model = model(&base).with_cancel(cancel.clone());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        cancel.throw();
    });
    let began = Instant::now();
    let error = model.complete(ModelRequest::new("m", &[])).unwrap_err();
    assert_eq!(error, ModelError::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn what_may_pass_is_tried_again_and_nothing_else() {
    let check = |status: &'static str, retries: u32, expected: Result<&str, u16>| {
        let base = backend(move |place, stream, _| {
            let answer = if place == 0 {
                format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\nbusy")
            } else {
                "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"ok\"}}]}".to_owned()
            };
            send(stream, answer.as_bytes());
        });
        let mut model = HttpModel::configured(HttpConfig {
            base_url: base,
            retries,
            ..HttpConfig::default()
        })
        .unwrap();
        let got = model.complete(ModelRequest::new("m", &[]));
        match (got, expected) {
            (Ok(reply), Ok(text)) => assert_eq!(reply.text, text, "{status}"),
            (Err(ModelError::Refused(code, words)), Err(expected)) => {
                assert_eq!(code, expected);
                let told = "busy (it wants to be asked again after 3600 s)";
                assert_eq!(words == told, status.contains("3600"), "{words}");
            }
            (got, _) => panic!("{status}: {got:?}"),
        }
    };
    check("503 Busy", 1, Ok("ok"));
    check("429 Slow", 1, Ok("ok"));
    check("500 Fault", 1, Ok("ok"));
    check("429 Slow\r\nretry-after: 1", 1, Ok("ok"));
    // Who wants to be left alone for an hour is not asked again in a second.
    check("429 Slow\r\nretry-after: 3600", 1, Err(429));
    check("429 Slow\r\nretry-after: soon", 1, Ok("ok"));
    check("503 Busy", 0, Err(503));
    check("400 Bad", 3, Err(400));
    check("401 Who", 3, Err(401));
}

#[test]
fn a_backend_that_says_when_to_come_again_is_left_alone_until_then() {
    let first = Arc::new(std::sync::Mutex::new(None::<Instant>));
    let seen = Arc::clone(&first);
    let base = backend(move |place, stream, _| {
        let answer = if place == 0 {
            *seen.lock().unwrap() = Some(Instant::now());
            "HTTP/1.1 429 Slow\r\nretry-after: 1\r\nconnection: close\r\n\r\nbusy".to_owned()
        } else {
            let waited = seen.lock().unwrap().unwrap().elapsed();
            let text = if waited >= Duration::from_secs(1) {
                "waited"
            } else {
                "hurried"
            };
            format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{{\"choices\":[{{\"message\":{{\"content\":\"{text}\"}}}}]}}"
            )
        };
        send(stream, answer.as_bytes());
    });
    let mut model = HttpModel::configured(HttpConfig {
        base_url: base,
        retries: 1,
        ..HttpConfig::default()
    })
    .unwrap();
    let reply = model.complete(ModelRequest::new("m", &[])).unwrap();
    assert_eq!(reply.text, "waited");
}

#[test]
fn a_refusal_of_a_backend_says_what_can_be_done() {
    for (status, part) in [
        (401, "`--key-env`"),
        (404, "before `/chat/completions`"),
        (429, "for the time being"),
        (503, "on its side"),
    ] {
        let told = ModelError::Refused(status, "no".into()).to_string();
        assert!(
            told.contains(&format!("{status}: no; ")) && told.contains(part),
            "{told}"
        );
    }
    let told = ModelError::Refused(418, String::new()).to_string();
    assert!(told.ends_with("status 418"), "{told}");
}

#[test]
fn an_answer_cut_off_at_its_limit_is_none_where_a_form_was_asked_for() {
    let base = backend(|_, stream, body| {
        assert_eq!(body["max_tokens"], 5);
        assert_eq!(body["response_format"]["type"], "json_object");
        send(
            stream,
            b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"{\"},\"finish_reason\":\"length\"}]}",
        );
    });
    let mut model = HttpModel::configured(HttpConfig {
        base_url: base,
        structured: Structured::JsonObject,
        ..HttpConfig::default()
    })
    .unwrap();
    let schema = Schema {
        name: "plan".into(),
        json: json!({"type": "object"}),
        grammar: None,
    };
    let limits = ReplyLimits {
        tokens_max: Some(5),
        ..short()
    };
    let request = ModelRequest::new("m", &[]).shaped(&schema).within(limits);
    assert_eq!(model.complete(request), Err(ModelError::CutOff));
}

#[test]
fn a_proxy_is_used_only_if_it_is_configured() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let seen = std::thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut first = String::new();
        BufReader::new(&mut stream).read_line(&mut first).unwrap();
        send(&mut stream, b"HTTP/1.1 502 No\r\nconnection: close\r\n\r\n");
        first
    });
    let mut model = HttpModel::configured(HttpConfig {
        base_url: "http://model.invalid/v1".into(),
        proxy: Some(address),
        ..HttpConfig::default()
    })
    .unwrap();
    let request = ModelRequest::new("m", &[]).within(short());
    assert!(model.complete(request).is_err());
    let first = seen.join().unwrap();
    assert!(first.contains("model.invalid"), "{first}");
}

#[test]
fn an_address_with_tls_is_checked_against_what_the_machine_trusts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("https://{}/v1", listener.local_addr().unwrap());
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let chain = vec![made.cert.der().clone()];
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key.into())
        .unwrap();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(session, stream.unwrap());
            // A client that does not trust us leaves before it asks.
            let mut first = [0];
            if stream.read_exact(&mut first).is_ok() {
                let _ = request(&mut stream);
                send(
                    &mut stream,
                    b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"sealed\"}}]}",
                );
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    let home = crate::support::home::Home::new();
    let trusted = home.path().join("trusted.pem");
    std::fs::write(&trusted, made.cert.pem()).unwrap();
    let chat = |cert_file: Option<&std::path::Path>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(["chat", "--model", "m", "--base-url", &base, "hello"])
            .current_dir(home.project())
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin");
        if let Some(file) = cert_file {
            command.env("SSL_CERT_FILE", file);
        }
        let output = command.output().unwrap();
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (out, err) = chat(Some(&trusted));
    assert_eq!(out, "sealed\n", "{err}");
    let (out, err) = chat(None);
    assert_eq!(out, "", "{err}");
    assert!(
        err.contains("cannot be reached") || err.contains("no trusted certificates"),
        "{err}"
    );
}

#[test]
fn what_openai_ollama_and_vllm_send_is_read_alike() {
    // Bodies as these servers write them, in one piece and in events.
    let whole = [
        // OpenAI.
        json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok", "refusal": null,
                "annotations": []}, "logprobs": null, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, "service_tier": "default"}),
        // Ollama.
        json!({"id": "chatcmpl-2", "object": "chat.completion", "model": "m", "system_fingerprint": "fp_ollama",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok", "reasoning": "hm"},
                "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}),
        // vLLM.
        json!({"id": "chatcmpl-3", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "reasoning_content": null, "content": "ok",
                "tool_calls": []}, "logprobs": null, "finish_reason": "stop", "stop_reason": null}],
            "usage": {"prompt_tokens": 3, "total_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": null},
            "prompt_logprobs": null}),
    ];
    for body in whole {
        let base = backend(move |_, stream, _| {
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            send(stream, (head + &body).as_bytes());
        });
        let reply = ask(&base, ReplyLimits::default()).unwrap();
        assert_eq!((reply.text.as_str(), reply.tokens), ("ok", (3, 2)));
        assert_eq!((reply.calls.len(), reply.finish), (0, Finish::Ended));
    }
    let call = |index: u64, id: &str| {
        json!({"index": index, "id": id, "type": "function",
            "function": {"name": "read_file", "arguments": format!("{{\"path\":\"{id}\"}}")}})
    };
    let delta = |delta: Value, finish: Value| json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let usage = |choices: Value| json!({"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
    let calls = [
        // OpenAI and vLLM number the calls; the last event has no choice.
        vec![
            delta(
                json!({"role": "assistant", "content": null, "tool_calls": [call(0, "a")]}),
                Value::Null,
            ),
            delta(json!({"tool_calls": [call(1, "b")]}), Value::Null),
            delta(json!({}), json!("tool_calls")),
            usage(json!([])),
        ],
        // Ollama may give every call the same number.
        vec![
            delta(
                json!({"role": "assistant", "content": "", "tool_calls": [call(0, "a")]}),
                Value::Null,
            ),
            delta(
                json!({"role": "assistant", "content": "", "tool_calls": [call(0, "b")]}),
                Value::Null,
            ),
            delta(
                json!({"role": "assistant", "content": ""}),
                json!("tool_calls"),
            ),
            usage(json!([])),
        ],
    ];
    for events in calls {
        let base = backend(move |_, stream, _| {
            let mut text = String::from_utf8(EVENTS.to_vec()).unwrap();
            for event in &events {
                text.push_str(&format!("data: {event}\n\n"));
            }
            text.push_str("data: [DONE]\n\n");
            send(stream, text.as_bytes());
        });
        let reply = model(&base)
            .stream(ModelRequest::new("m", &[]), &mut |_| {})
            .unwrap();
        let seen: Vec<_> = reply
            .calls
            .iter()
            .map(|call| {
                (
                    call.id.as_str(),
                    call.tool.as_str(),
                    call.arguments.as_str(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("a", "read_file", "{\"path\":\"a\"}"),
                ("b", "read_file", "{\"path\":\"b\"}")
            ]
        );
        assert_eq!(reply.tokens, (3, 2));
    }
}
