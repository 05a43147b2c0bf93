//! A model's backend on the loopback, which does what a test says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
};

use serde_json::Value;

/// Reads one request: its head and its body.
pub fn request(stream: &mut impl Read) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// A backend that does this with each connection, for as long as the test runs.
pub fn backend(each: impl Fn(usize, &mut TcpStream, Value) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (place, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let (_, body) = request(&mut stream);
            each(place, &mut stream, body);
        }
    });
    base
}

/// What is sent to a client that may have gone.
pub fn send(stream: &mut impl Write, bytes: &[u8]) -> bool {
    stream
        .write_all(bytes)
        .and_then(|()| stream.flush())
        .is_ok()
}
