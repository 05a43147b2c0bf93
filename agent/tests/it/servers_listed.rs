//! What of a server's list is offered where not all of it is one, and where somebody did
//! not wait for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};

use hermitcrab::runtime::ExternalServer;
use serde_json::{Value, json};

use crate::{
    servers::{Model, grant, talk},
    support::Bench,
};

/// A server that answers with this list of tools.
fn serve(tools: Value) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                let result = match message["method"].as_str().unwrap() {
                    "initialize" => json!({
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "s", "version": "1"},
                    }),
                    "tools/list" => json!({ "tools": tools }),
                    _ => continue,
                };
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                let _sent = writeln!(stream, "{reply}");
            }
        }
    });
    port
}

/// What a model is offered of such a server, and what the user is told.
fn offered(tools: Value) -> (Vec<String>, String) {
    let mut bench = Bench::with_files();
    let port = serve(tools);
    let server = ExternalServer::at("s", "127.0.0.1", port);
    bench.runtime.declare_external(server).unwrap();
    grant(&mut bench, "model.send", "m");
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{port}"));
    let mut model = Model::default();
    talk(&mut bench, &mut model);
    let names = model.offered.iter().map(|offer| offer.name.to_string());
    let names = names.filter(|name| name.starts_with("mcp__")).collect();
    (names, bench.runtime.take_told().join("\n"))
}

#[test]
fn a_tool_of_the_wrong_shape_is_named_and_the_others_are_offered() {
    let (names, told) = offered(json!([
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "no_form", "description": "d"},
        {"name": "odd_form", "inputSchema": ["x"]},
        {"description": "nameless", "inputSchema": {}},
        {"name": "fine", "inputSchema": {}},
    ]));
    assert_eq!(names, ["mcp__s__fine", "mcp__s__good"]);
    for named in ["`no_form`", "`odd_form`", "`number 4`"] {
        let line = format!(
            "the tool {named} of the server `s` is not offered: what the server says of it is no"
        );
        assert!(told.contains(&line), "{told}");
    }
}

#[test]
fn what_is_no_list_offers_nothing_and_is_said() {
    let (names, told) = offered(json!("all"));
    assert_eq!(names, [""; 0]);
    assert!(
        told.contains(
            "the tools of the server `s` are not offered: it answers with something else"
        ),
        "{told}"
    );
}
