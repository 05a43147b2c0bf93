//! A command reaches what its agent holds, and nothing else; on the loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::{
    cell::RefCell,
    io::{Read as _, Write as _},
    net::TcpListener,
    rc::Rc,
};

use hermitcrab::{
    ports::ProgressPort,
    runtime::{CommandInput, Fate, GrantWords, TypedCommand},
};
use hermitcrab_core::{
    approval::Stance,
    authority::Verb,
    grant::AgentId,
    rules::{ConfiguredRule, Layer, Pattern},
    session::Asking,
};
use serde_json::{Value, json};
use support::Bench;

fn server(line: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 1024];
            // Waits for a word, so that the answer is not lost.
            let _heard = stream.read(&mut buffer);
            let _said = stream.write_all(line.as_bytes());
        }
    });
    port
}

/// Asks the proxy for a port of the machine's loopback and prints the answer.
fn tunnel(port: u16) -> String {
    format!(
        "(exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n' >&3; \
         read -r version status rest <&3; echo \"status $status\"; \
         if [ \"$status\" = 200 ]; then read -r empty <&3; echo hello >&3; cat <&3; fi) 2>&1"
    )
}

fn grant(bench: &mut Bench, verb: &str, on: &str) -> hermitcrab_core::grant::GrantId {
    let agent = bench.runtime.first_agent();
    bench
        .runtime
        .grant(agent, &GrantWords::new(verb, on))
        .unwrap()
}

#[test]
fn a_granted_peer_is_reached_from_a_command_and_no_other() {
    let mut bench = Bench::new();
    let (open, shut) = (server("welcome\n"), server("a secret\n"));
    let command = |port| json!({"command": tunnel(port)});

    let report = bench.call("terminal", command(open));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(!report.text.contains("status 200"), "{}", report.text);

    let id = grant(&mut bench, "net.connect", &format!("127.0.0.1:{open}"));
    let report = bench.call("terminal", command(open));
    assert!(report.text.contains("welcome"), "{}", report.text);
    assert_eq!(report.questions.len(), 0);

    // What came from outside may be behind the next one: the user is asked.
    bench.user.words.borrow_mut().push_back("once");
    let report = bench.call("terminal", command(shut));
    assert_eq!(report.questions.len(), 1, "{}", report.text);
    let shown = bench.user.shown.borrow().last().cloned().unwrap();
    assert!(
        shown.contains(&format!("with the network: 127.0.0.1:{open}")),
        "{shown}"
    );
    assert!(
        report.text.contains("status 403") && !report.text.contains("a secret"),
        "{}",
        report.text
    );

    // Revoked: the next command has no network, and nobody is asked about any.
    bench.runtime.revoke(id).unwrap();
    let report = bench.call("terminal", command(open));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(!report.text.contains("welcome"), "{}", report.text);
}

#[test]
fn only_what_did_reach_somebody_counts_as_from_the_network() {
    let mut bench = Bench::new();
    let open = server("welcome\n");
    for (verb, on) in [
        ("fs.*", bench.workspace.to_string_lossy().into_owned()),
        ("net.connect", format!("127.0.0.1:{open}")),
    ] {
        grant(&mut bench, verb, &on);
    }
    // It could reach somebody, or is told that it may not, and what it made is kept.
    let shut = tunnel(server("a secret\n"));
    for (name, script) in [("idle", "true"), ("refused", &*shut)] {
        let command = format!("({script}); echo made > {name}");
        let report = bench.call("terminal", json!({"command": command}));
        assert_eq!(report.questions.len(), 0, "{}", report.text);
        assert!(bench.workspace.join(name).exists(), "{}", report.text);
    }
    assert!(!bench.runtime.has_read(bench.runtime.first_agent()));
    // It does reach somebody: what it made before, too, is made by what may have been told to.
    bench.user.words.borrow_mut().push_back("deny");
    let command = format!("echo made > early; {}", tunnel(open));
    let report = bench.call("terminal", json!({"command": command}));
    assert_eq!(report.questions.len(), 1, "{}", report.text);
    assert!(!bench.workspace.join("early").exists(), "{}", report.text);
    assert!(bench.runtime.has_read(bench.runtime.first_agent()));
}

#[test]
fn a_command_that_goes_on_counts_from_when_it_reaches_somebody() {
    let mut bench = Bench::new();
    let open = server("welcome\n");
    let workspace = bench.workspace.to_string_lossy().into_owned();
    grant(&mut bench, "fs.*", &workspace);
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{open}"));
    let waits = format!(
        "until [ -e go ]; do sleep 0.05; done; {}; sleep 600",
        tunnel(open)
    );
    let started = bench.call("terminal", json!({"command": waits, "background": true}));
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    let agent = bench.runtime.first_agent();
    assert!(!bench.runtime.has_read(agent));
    let written = bench.call("write_file", json!({"path": "go", "content": ""}));
    assert_eq!(written.questions.len(), 0, "{}", written.text);
    for _ in 0..1200 {
        if bench.runtime.has_read(agent) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    bench.user.words.borrow_mut().push_back("deny");
    let written = bench.call("write_file", json!({"path": "more", "content": ""}));
    assert_eq!(written.questions.len(), 1, "{}", written.text);
}

/// Nobody counts what a command says to whom it reaches, so a grant of so many uses is none
/// for commands.
#[test]
fn a_grant_for_so_many_uses_lets_no_command_out() {
    let mut bench = Bench::new();
    let open = server("welcome\n");
    let agent = bench.runtime.first_agent();
    let peer = format!("127.0.0.1:{open}");
    for (uses, is_reached) in [(Some(1), false), (Some(9), false), (None, true)] {
        let words = GrantWords {
            uses,
            ..GrantWords::new("net.connect", &peer)
        };
        let id = bench.runtime.grant(agent, &words).unwrap();
        assert_eq!(bench.runtime.peers(agent).len(), usize::from(is_reached));
        let report = bench.call("terminal", json!({"command": tunnel(open)}));
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        assert_eq!(report.text.contains("welcome"), is_reached, "{uses:?}");
        bench.runtime.revoke(id).unwrap();
    }
}

#[test]
fn where_nobody_is_asked_a_command_runs_without_what_would_be_asked_about() {
    let mut bench = Bench::new();
    let open = server("welcome\n");
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{open}"));
    let written = ("config.toml", 7, Layer::User);
    let verbs = vec![Verb::NetConnect];
    let rule = ConfiguredRule::new("ask", Stance::Ask, verbs, Pattern::Anything, written).unwrap();
    bench.runtime.add_rule(rule).unwrap();
    let agent = bench.runtime.first_agent();
    assert_eq!(bench.runtime.peers(agent).len(), 1);
    bench.runtime.set_asking(Asking::Refuse).unwrap();
    assert!(bench.runtime.peers(agent).is_empty());
    let command = format!("echo began; {}", tunnel(open));
    let report = bench.call("terminal", json!({"command": command}));
    assert_eq!(report.fate, Fate::Ran, "{}", report.text);
    assert!(report.text.contains("began"), "{}", report.text);
    assert!(!report.text.contains("welcome"), "{}", report.text);
}

#[test]
fn no_command_writes_what_network_it_is_said_to_get() {
    let mut bench = Bench::new();
    let open = server("welcome\n");
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{open}"));
    let report = bench.call("terminal", json!({"command": tunnel(open)}));
    assert_eq!(report.questions.len(), 0, "{}", report.text);
    bench.user.words.borrow_mut().push_back("deny");
    let forged = "true\nwith the network: docs.example:443";
    let report = bench.call("terminal", json!({"command": forged}));
    assert_eq!(report.questions.len(), 1, "{}", report.text);
    let shown = bench.user.shown.borrow().last().cloned().unwrap();
    let said = |line: &&str| line.starts_with("with the network: ");
    let said: Vec<&str> = shown.lines().filter(said).collect();
    assert_eq!(said, [format!("with the network: 127.0.0.1:{open}")]);
    let quoted = "run: true\n       | with the network: docs.example:443\n";
    assert!(shown.contains(quoted), "{shown}");
}

#[test]
fn a_granted_loopback_is_the_commands_own() {
    let mut bench = Bench::new();
    let port = server("a secret\n");
    grant(&mut bench, "net.listen", "localhost");
    // Nobody listens on the machine's port in there: refused, and not forbidden.
    let script = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>&1; true");
    let report = bench.call("terminal", json!({"command": script}));
    assert!(
        report.text.contains("Connection refused"),
        "{}",
        report.text
    );
    assert!(!report.text.contains("a secret"));
}

#[test]
fn a_server_in_the_background_is_reached_by_its_agents_commands_and_by_no_others() {
    let mut bench = Bench::new();
    let listen = grant(&mut bench, "net.listen", "localhost");
    let served = "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", \
                  LocalPort => 8077, Listen => 5) or die; while (my $c = $s->accept) { my $w = <$c>; \
                  print $c \"heard $w\"; close $c }'";
    let started = bench.call("terminal", json!({"command": served, "background": true}));
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    let says = |tries: u32| {
        json!({"command": format!(
            "for i in $(seq {tries}); do (exec 3<>/dev/tcp/127.0.0.1/8077 && echo hello >&3 && cat <&3) 2>/dev/null \
             && exit; sleep 0.05; done; echo nobody"
        )})
    };
    let heard = bench.call("terminal", says(1200));
    assert!(heard.text.contains("heard hello"), "{}", heard.text);
    // A child that may listen, too, has another loopback.
    let first = bench.runtime.first_agent();
    let held = bench.runtime.held_by(first);
    assert!(held.contains(&listen));
    let child = bench.runtime.spawn(first, &held).unwrap();
    let heard = bench.runtime.call(child, "terminal", &says(3));
    assert!(heard.text.contains("nobody"), "{}", heard.text);
    // With the grant the server ends, and so does what may reach it.
    bench.runtime.revoke(listen).unwrap();
    grant(&mut bench, "net.listen", "localhost");
    let heard = bench.call("terminal", says(3));
    assert!(heard.text.contains("nobody"), "{}", heard.text);
}

/// Answers on a port, and what says a word to it and waits for it a while where it should.
fn echo(port: u16) -> (String, impl Fn(u32) -> String) {
    let serve = format!(
        "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", \
         LocalPort => {port}, Listen => 5) or die; while (my $c = $s->accept) {{ my $w = <$c>; \
         print $c \"heard $w\"; close $c }}'"
    );
    let say = move |tries: u32| {
        format!(
            "for i in $(seq {tries}); do (exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3 && cat <&3) \
             2>/dev/null && exit; sleep 0.05; done; echo nobody"
        )
    };
    (serve, say)
}

#[test]
fn a_server_is_reached_after_another_directory_was_opened() {
    let mut bench = Bench::new();
    grant(&mut bench, "net.listen", "localhost");
    let (serve, say) = echo(8079);
    let started = bench.call("terminal", json!({"command": serve, "background": true}));
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    let heard = bench.call("terminal", json!({"command": say(1200)}));
    assert!(heard.text.contains("heard hello"), "{}", heard.text);
    // Another directory is shown to commands from here on.
    let other = tempfile::tempdir().unwrap();
    let other = other.path().canonicalize().unwrap();
    std::fs::write(other.join("known.txt"), "there\n").unwrap();
    let first = bench.runtime.first_agent();
    let words = GrantWords::new("fs.read", &other.to_string_lossy());
    bench.runtime.grant(first, &words).unwrap();
    let look = format!("cat {}/known.txt; {}", other.display(), say(1));
    let heard = bench.call("terminal", json!({"command": look}));
    assert!(heard.text.contains("there"), "{}", heard.text);
    assert!(heard.text.contains("heard hello"), "{}", heard.text);
    // The workspace has other rights.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(&bench.workspace, mode).unwrap();
    let heard = bench.call("terminal", json!({"command": say(1)}));
    assert!(heard.text.contains("heard hello"), "{}", heard.text);
    // Something is granted in it, and is held no more.
    let id = bench.grant("fs.create", "sub");
    let heard = bench.call("terminal", json!({"command": say(1)}));
    assert!(heard.text.contains("heard hello"), "{}", heard.text);
    bench.runtime.revoke(id).unwrap();
    let heard = bench.call("terminal", json!({"command": say(1)}));
    assert!(heard.text.contains("heard hello"), "{}", heard.text);
}

#[test]
fn a_server_is_reached_by_commands_with_the_same_peers_which_are_reached_as_well() {
    let mut bench = Bench::new();
    let outside = server("welcome\n");
    grant(&mut bench, "net.listen", "localhost");
    let connect = grant(&mut bench, "net.connect", &format!("127.0.0.1:{outside}"));
    let (serve, say) = echo(8080);
    // What reaches out is data from the network: each command after the first is asked about.
    bench.user.words.borrow_mut().extend(["once"; 3]);
    let started = bench.call("terminal", json!({"command": serve, "background": true}));
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    let through = format!(
        "at=${{http_proxy#http://}}; exec 3<>/dev/tcp/${{at%:*}}/${{at#*:}}; \
         printf 'CONNECT 127.0.0.1:{outside} HTTP/1.1\\r\\n\\r\\nhello\\n' >&3; cat <&3"
    );
    for _ in 0..2 {
        let both = format!("({}); {through}", say(1200));
        let heard = bench.call("terminal", json!({"command": both}));
        assert!(heard.text.contains("heard hello"), "{}", heard.text);
        assert!(heard.text.contains("welcome"), "{}", heard.text);
    }
    // With another peer it is another loopback: who shares one can use what all there can.
    let more = server("more\n");
    let more = grant(&mut bench, "net.connect", &format!("127.0.0.1:{more}"));
    let heard = bench.call("terminal", json!({"command": say(3)}));
    assert_eq!(heard.fate, Fate::Ran, "{}", heard.text);
    assert!(heard.text.contains("nobody"), "{}", heard.text);
    // Without peers there is no way to them, and nothing that points at one.
    bench.runtime.revoke(connect).unwrap();
    bench.runtime.revoke(more).unwrap();
    let without = format!("echo \"<$http_proxy$no_proxy>\"; {}", say(3));
    let heard = bench.call("terminal", json!({"command": without}));
    assert!(heard.text.contains("<>"), "{}", heard.text);
    assert!(heard.text.contains("nobody"), "{}", heard.text);
}

#[test]
fn a_server_in_the_background_serves_what_was_edited_since() {
    let mut bench = Bench::with_files();
    grant(&mut bench, "net.listen", "localhost");
    bench.put("index.html", "<p>hello</p>\n");
    let served = "python3 -m http.server 8078 --bind 127.0.0.1 2>&1";
    let started = bench.call("terminal", json!({"command": served, "background": true}));
    assert_eq!(started.fate, Fate::Ran, "{}", started.text);
    let get = "python3 -c \"
import time, urllib.request, urllib.error
for _ in range(1200):
    try:
        print(urllib.request.urlopen('http://127.0.0.1:8078/index.html').read())
        break
    except urllib.error.HTTPError as e:
        print(e)
        break
    except OSError as e:
        time.sleep(0.05)
else:
    print(e)
\"";
    let got = bench.call("terminal", json!({"command": get}));
    assert!(got.text.contains("hello"), "{}", got.text);
    let edit = json!({"path": "index.html", "old_string": "hello", "new_string": "good bye"});
    let edited = bench.call("patch", edit);
    assert_eq!(edited.fate, Fate::Ran, "{}", edited.text);
    let got = bench.call("terminal", json!({"command": get}));
    assert!(got.text.contains("good bye"), "{}", got.text);
}

#[test]
fn words_that_name_no_peer_grant_nothing() {
    let mut bench = Bench::new();
    let agent = bench.runtime.first_agent();
    for (verb, on) in [
        ("net.connect", "/work/example.org:443"),
        ("net.connect", "*.example.org:443"),
        ("net.connect", ""),
        ("net.listen", "example.org"),
        ("net.listen", "localhost:80"),
        ("net.listen", "0.0.0.0"),
    ] {
        let words = GrantWords::new(verb, on);
        assert!(bench.runtime.grant(agent, &words).is_err(), "{verb} {on}");
    }
}

#[test]
fn a_model_is_told_which_grant_lets_a_command_reach_whom_it_wanted() {
    let mut bench = Bench::new();
    let told = |bench: &mut Bench, command: &str| -> String {
        let report = bench.call("terminal", json!({"command": command}));
        let result: Value = serde_json::from_str(&report.text).unwrap();
        result["network"].as_str().unwrap_or_default().to_owned()
    };
    // The words of a program, whether or not it is installed here.
    let lost = "echo 'curl: (6) Could not resolve host: r.example.org' >&2; exit 6";
    let said = told(&mut bench, lost);
    assert!(said.contains("looked for `r.example.org`."), "{said}");
    assert!(said.contains("the user's to give"), "{said}");
    assert_eq!(told(&mut bench, "echo no such file; exit 6"), "");

    // A script that goes there itself.
    let code = "import urllib.request as u; u.urlopen('https://r.example.org/')";
    let report = bench.call("execute_code", json!({"code": code}));
    let result: Value = serde_json::from_str(&report.text).unwrap();
    let said = result["network"].as_str().unwrap_or_default();
    assert!(said.contains("`net.connect="), "{result}");

    // Where some of it is held, whom the proxy did not let through.
    let (open, shut) = (server("welcome\n"), server("a secret\n"));
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{open}"));
    let said = told(&mut bench, &tunnel(shut));
    assert!(
        said.contains(&format!("`127.0.0.1:{shut}`, which is not granted")),
        "{said}"
    );
    assert_eq!(told(&mut bench, &tunnel(open)), "");
}

#[test]
fn a_person_is_told_why_what_they_granted_is_not_reached_and_has_it_back() {
    let mut bench = Bench::beginning_with(|config| {
        config.asking = Asking::Refuse;
    });
    let port = server("welcome\n");
    let peer = format!("127.0.0.1:{port}");
    // A program says what it says where a network is down.
    let command = format!(
        "{} || exit 1; echo 'Could not resolve host: r.example.org'; exit 6",
        tunnel(port)
    );
    let typed = |bench: &mut Bench| {
        let first = bench.runtime.first_agent();
        let typed = TypedCommand {
            command: &command,
            timeout: None,
            given: CommandInput::Nothing,
            apart: false,
        };
        bench.runtime.run_typed(first, &typed).came.unwrap()
    };
    grant(&mut bench, "net.connect", &peer);
    let run = typed(&mut bench);
    assert!(run.output.contains("welcome"), "{run:?}");
    // It had one when it began, and what came is why the grant asks again.
    assert_eq!(run.reasons.unreached, None, "{run:?}");

    let run = typed(&mut bench);
    assert!(!run.output.contains("welcome"), "{run:?}");
    let told = run.reasons.unreached.unwrap_or_default();
    assert!(
        told.contains(&format!("without `{peer}`, which is granted"))
            && told.contains(&format!("`grant net.connect={peer}`")),
        "{told}"
    );

    grant(&mut bench, "net.connect", &peer);
    for _ in 0..2 {
        let run = typed(&mut bench);
        assert!(run.output.contains("welcome"), "{run:?}");
        assert_eq!(run.reasons.unreached, None, "{run:?}");
    }
}

/// Keeps what is said of a running command, and ends it with the first of that.
#[derive(Clone, Default)]
struct Heard(Rc<RefCell<Vec<String>>>);

impl ProgressPort for Heard {
    fn output(&mut self, _: AgentId, _: &str) {}

    fn notice(&mut self, _: AgentId, line: &str) {
        self.0.borrow_mut().push(line.to_owned());
    }

    fn is_wanted(&mut self) -> bool {
        self.0.borrow().is_empty()
    }
}

#[test]
fn of_a_command_that_goes_on_it_is_said_at_once_whom_it_did_not_reach() {
    let mut bench = Bench::new();
    let (open, shut) = (server("welcome\n"), server("a secret\n"));
    grant(&mut bench, "net.connect", &format!("127.0.0.1:{open}"));
    let heard = Heard::default();
    bench.runtime.show_progress(Box::new(heard.clone()));
    // It waits much longer than anybody would who is told nothing.
    let retries = format!("{}; {}; sleep 170", tunnel(open), tunnel(shut));
    let report = bench.call("terminal", json!({"command": retries}));
    let [line] = <[String; 1]>::try_from(heard.0.take()).unwrap();
    assert!(
        line.contains(&format!("`127.0.0.1:{shut}`, which is not granted"))
            && !line.contains(&format!(":{open}`")),
        "{line}"
    );
    assert!(
        !report.text.contains("\"exit_code\": 124"),
        "{}",
        report.text
    );
}

/// What somebody exports stays, and what points at the proxy is that of the next command.
#[test]
fn options_somebody_adds_to_those_of_the_proxy_are_kept() {
    let mut bench = Bench::new();
    let first = bench.runtime.first_agent();
    let peer = |bench: &mut Bench, peer: &str| {
        let words = GrantWords::new("net.connect", peer);
        bench.runtime.grant(first, &words).unwrap();
    };
    let said = |bench: &mut Bench, command: &str| {
        // What was read from the network counts: each time somebody is asked.
        bench.user.words.borrow_mut().extend(["once"; 3]);
        let report = bench.call("terminal", json!({"command": command}));
        let told: Value = serde_json::from_str(&report.text).unwrap();
        told["output"].as_str().unwrap().to_owned()
    };
    peer(&mut bench, "r.example.org:443");
    let options = said(&mut bench, "echo \"$GRADLE_OPTS\"");
    assert!(options.starts_with("-Dhttp.proxyHost="), "{options}");
    said(&mut bench, "export GRADLE_OPTS=\"-Xmx1g $GRADLE_OPTS\"");
    for _ in 0..2 {
        let kept = said(&mut bench, "echo \"$GRADLE_OPTS\"");
        assert_eq!(kept, format!("-Xmx1g {options}"));
    }
    // The machine's loopback lies behind the proxy from here on.
    peer(&mut bench, "127.0.0.1:9");
    let kept = said(&mut bench, "echo \"$GRADLE_OPTS\"");
    assert!(
        kept.starts_with("-Xmx1g ")
            && kept.contains("nonProxyHosts=")
            && kept.matches("proxyPort").count() == 2,
        "{kept}"
    );
}
