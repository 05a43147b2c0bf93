//! The frames between oracle and worker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use bisim_world::protocol::*;
use serde_json::json;

fn framed(message: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, message).unwrap();
    bytes
}

fn job() -> Job {
    serde_json::from_value(json!({
        "world": {"cwd": "/home/u/proj", "files": [
            {"path": "/a", "text": "x"}, {"path": "/b", "symlink": "a", "mode": 511},
            {"path": "/c", "dir": true}, {"path": "/d", "hardlink": "/a"}, {"path": "/e", "fifo": true},
            {"path": "/f", "base64": "AA=="}]},
        "context": "gateway",
        "user": {"literal": "maybe"},
        "held": [{"id": "ws", "verb": "fs.*", "on": "/home/u/proj", "uses": 1}],
        "settings": {"approvals.mode": "manual"},
        "script": [
            {"call": {"tool": "terminal", "args": {"command": "true"}, "by": "c"}},
            {"probe": {"name": "p", "input": 1}}, {"end_session": {}}, {"advance": {"seconds": 3}},
            {"spawn": {"child": "c", "forward": ["ws"]}}, {"revoke": {"grant": "ws"}},
            {"grant": {"id": "g", "verb": "fs.read", "on": "/"}}],
        "deadline_ms": 1000
    }))
    .unwrap()
}

#[test]
fn what_is_written_is_read() {
    for message in [
        Request::Hello {
            protocol: PROTOCOL_VERSION,
        },
        Request::Run {
            id: 7,
            job: Box::new(job()),
        },
        Request::Shutdown,
    ] {
        let bytes = framed(&message);
        assert_eq!(
            read_frame::<Request>(&mut bytes.as_slice()).unwrap(),
            Some(message)
        );
    }
}

#[test]
fn the_end_between_frames_is_clean_and_inside_one_is_not() {
    let bytes = framed(&Request::Shutdown);
    assert_eq!(read_frame::<Request>(&mut [].as_slice()).unwrap(), None);
    for length in 1..bytes.len() {
        assert!(
            read_frame::<Request>(&mut &bytes[..length]).is_err(),
            "{length}"
        );
    }
}

#[test]
fn an_oversized_frame_is_refused_before_it_is_read() {
    let bytes = (FRAME_BYTES_MAX + 1).to_le_bytes();
    let error = read_frame::<Request>(&mut bytes.as_slice()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn a_message_of_another_shape_is_refused() {
    for text in [
        r#"{"op":"jump"}"#,
        r#"{"op":"hello","protocol":1,"extra":2}"#,
        "[]",
        "{",
    ] {
        let mut bytes = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        assert!(
            read_frame::<Request>(&mut bytes.as_slice()).is_err(),
            "{text}"
        );
    }
}
