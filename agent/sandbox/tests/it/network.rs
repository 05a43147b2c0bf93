//! What of the network a command has is what is held, on the loopback alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Port, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::outcome::DenialCode;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::net::{Attempt, Network, Verdict};
use hermitcrab_sandbox::spawn::{Command, Ending, Finished, ViewMode};
use support::arranged::{ROOTLESS, Run, UNPRIVILEGED, UNSHARE, twice};
use support::{Workspace, peer, sandbox, text, view, with_permits};

/// Answers each connection with one line, on a port of its own.
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

fn action(verb: Verb, object: Object) -> Action {
    Action::new(verb, object, Digest::NONE).unwrap()
}

/// Runs a script with these on the network.
fn run_with(workspace: &Workspace, script: &str, held: &[(Verb, Object)]) -> Finished {
    run_in_common(workspace, script, held, 0)
}

/// The same, with its loopback shared under a number.
fn run_in_common(
    workspace: &Workspace,
    script: &str,
    held: &[(Verb, Object)],
    number: u64,
) -> Finished {
    run_command(workspace.command(script), held, number)
}

fn run_command(mut command: Command<'_>, held: &[(Verb, Object)], number: u64) -> Finished {
    let any = Object::Program(Program::AnyInView);
    let mut actions = vec![action(Verb::ProcExec, any)];
    actions.extend(
        held.iter()
            .map(|(verb, object)| action(*verb, object.clone())),
    );
    with_permits(Tool::Terminal, actions, |mut permits| {
        let network = permits.split_off(1);
        command.network = Network::from_permits(network).unwrap().in_common(number);
        sandbox().run(permits.pop().unwrap(), &command).unwrap()
    })
}

/// Asks the proxy for a port of the machine's loopback and prints the answer.
fn tunnel(port: u16) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n' >&3
         read -r version status rest <&3; echo $status
         if [ \"$status\" = 200 ]; then read -r empty <&3; echo hello >&3; cat <&3; fi\n"
    )
}

#[test]
fn a_command_reaches_exactly_the_peers_that_are_held() {
    let workspace = Workspace::new();
    let (open, shut) = (server("welcome\n"), server("a secret\n"));
    let held = [(Verb::NetConnect, peer("127.0.0.1", Port::Only(open)))];
    let script = format!(
        "({}) 2>/dev/null; ({}) 2>/dev/null
         for way in {open} {shut} 1; do (exec 3<>/dev/tcp/127.0.0.1/$way) 2>/dev/null && echo direct; done
         (exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null && echo away
         echo $http_proxy:$no_proxy",
        tunnel(open),
        tunnel(shut)
    );
    let finished = run_with(&workspace, &script, &held);
    assert_eq!(
        text(&finished),
        "200\nwelcome\n403\nhttp://127.0.0.1:3128:\n"
    );
    let attempt = |port: u16, verdict| Attempt {
        target: format!("127.0.0.1:{port}"),
        verdict,
    };
    assert_eq!(
        finished.attempts,
        [
            attempt(open, Verdict::Connected),
            attempt(shut, Verdict::NotListed)
        ]
    );
    assert!(finished.confined.is_complete());
}

#[test]
fn without_a_capability_there_is_no_socket_and_no_proxy() {
    let workspace = Workspace::new();
    let port = server("welcome\n");
    let script = format!("({}) 2>&1; echo \"proxy: $http_proxy\"", tunnel(port));
    let finished = run_with(&workspace, &script, &[]);
    let shown = text(&finished);
    assert!(
        shown.ends_with("proxy: \n") && !shown.contains("200"),
        "{shown}"
    );
    assert_eq!(finished.attempts, []);
}

/// Listens on its own loopback and talks to itself there.
const TALK: &str = r#"perl -MIO::Socket::INET -e '
  my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die "no listening\n";
  my $c = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $l->sockport) or die "no connecting\n";
  print $c "inside\n"; $c->close; my $s = $l->accept; print <$s>' 2>&1
"#;

#[test]
fn the_loopback_is_the_commands_own() {
    let workspace = Workspace::new();
    let port = server("a secret\n");
    let outside = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo outside\n");
    let script = format!("{TALK}{outside}echo \"proxy: $http_proxy\"");
    let held = [(Verb::NetListen, peer("localhost", Port::Any))];
    let finished = run_with(&workspace, &script, &held);
    if text(&finished).contains("not found") || text(&finished).contains("Can't locate") {
        println!("SKIPPED: no perl to listen with");
        return;
    }
    assert_eq!(text(&finished), "inside\nproxy: \n");
    // A way out is no loopback: there, nothing but the proxy can be reached.
    let held = [(Verb::NetConnect, peer("127.0.0.1", Port::Only(1)))];
    let finished = run_with(&workspace, &script, &held);
    // Landlock holds that since its version 4; without it, what is listened at is the
    // command's own all the same.
    let begins = if finished.confined.landlock_version < 4 {
        "inside\n"
    } else {
        "no "
    };
    assert!(text(&finished).starts_with(begins), "{}", text(&finished));
    assert!(!text(&finished).contains("outside"), "{}", text(&finished));
}

/// Answers with one line until it hears that it should stop.
const SERVER: &str = r#"perl -MIO::Socket::INET -e '
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8088, Listen => 5) or die "no server: $!";
while (my $c = $s->accept) { my $w = <$c>; print $c "heard $w"; close $c; last if $w =~ /stop/ }
print "stopped\n";' 2>&1"#;

/// Says a word to what listens there, and waits for it a while where it should.
fn saying(word: &str, tries: u32) -> String {
    format!(
        "for i in $(seq {tries}); do (exec 3<>/dev/tcp/127.0.0.1/8088 && echo {word} >&3 && cat <&3) 2>/dev/null \
         && exit; sleep 0.05; done; echo nobody\n"
    )
}

#[test]
fn commands_that_share_a_loopback_reach_each_other_and_nobody_else_does() {
    let workspace = Workspace::new();
    let held = [(Verb::NetListen, peer("localhost", Port::Any))];
    let says = |word: &str, tries: u32, held: &[(Verb, Object)], number: u64| {
        let finished = run_in_common(&workspace, &saying(word, tries), held, number);
        text(&finished)
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| run_in_common(&workspace, SERVER, &held, 7));
        let first = says("hello", 1200, &held, 7);
        if first.contains("nobody") && server.is_finished() {
            let finished = server.join().unwrap();
            println!("SKIPPED: no perl to listen with: {}", text(&finished));
            return;
        }
        assert_eq!(first, "heard hello\n");
        assert_eq!(
            says("x", 3, &held, 8),
            "nobody\n",
            "another number is another loopback"
        );
        assert_eq!(
            says("x", 3, &held, 0),
            "nobody\n",
            "its own is nobody else's"
        );
        assert_eq!(says("x", 3, &[], 7), "nobody\n", "a number is no network");
        // A way to peers is a port of a command's own loopback.
        let peers = [
            held[0].clone(),
            (Verb::NetConnect, peer("127.0.0.1", Port::Only(1))),
        ];
        assert_eq!(says("x", 3, &peers, 7), "nobody\n");
        assert_eq!(says("stop", 1, &held, 7), "heard stop\n");
        assert_eq!(text(&server.join().unwrap()), "stopped\n");
        assert_eq!(says("hello", 3, &held, 7), "nobody\n");
    });
}

/// What runs while a server of its own serves on a loopback with the number 7.
fn beside_a_server(clients: impl FnOnce(&Workspace, &dyn Fn(Command<'_>) -> String)) {
    let workspace = Workspace::new();
    let held = [(Verb::NetListen, peer("localhost", Port::Any))];
    let says = |command: Command<'_>| text(&run_command(command, &held, 7));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| run_in_common(&workspace, SERVER, &held, 7));
        let first = says(workspace.command(&saying("hello", 1200)));
        if first.contains("nobody") && server.is_finished() {
            let finished = server.join().unwrap();
            println!("SKIPPED: no perl to listen with: {}", text(&finished));
            return;
        }
        assert_eq!(first, "heard hello\n");
        clients(&workspace, &says);
        let last = says(workspace.command(&saying("stop", 1)));
        assert_eq!(last, "heard stop\n");
        assert_eq!(text(&server.join().unwrap()), "stopped\n");
    });
}

#[test]
fn a_server_is_reached_from_other_places_than_it_was_started_in() {
    beside_a_server(|workspace, says| {
        let other = Workspace::new();
        let say = saying("hello", 1);
        // Another directory beside the first, less, another one in its place.
        let mut command = workspace.command(&say);
        command
            .views
            .push(view(&other.cap, "/srv/more", ViewMode::CopyOnWrite));
        assert_eq!(says(command), "heard hello\n");
        let mut command = workspace.command(&say);
        command.views.clear();
        command.cwd = "/".into();
        assert_eq!(says(command), "heard hello\n");
        assert_eq!(says(other.command(&say)), "heard hello\n");
        // What was used before is used again, and more than are kept ready.
        for number in 0..12 {
            let mut command = workspace.command(&say);
            command.private_dirs.push(format!("/srv/{number}").into());
            assert_eq!(says(command), "heard hello\n", "{number}");
        }
        assert_eq!(says(workspace.command(&say)), "heard hello\n");
    });
}

#[test]
fn a_server_is_reached_after_the_mounts_of_the_machine_changed() {
    let name = "network::a_server_is_reached_after_the_mounts_of_the_machine_changed";
    for starter in [&UNSHARE[..], &UNPRIVILEGED, &ROOTLESS] {
        if let Some(Run::Inner) = twice(name, starter, "mkdir more", "") {
            beside_a_server(|workspace, says| {
                for _ in 0..2 {
                    let mounted = std::process::Command::new("mount")
                        .args(["-t", "tmpfs", "none", "more"])
                        .status();
                    assert!(mounted.unwrap().success());
                    let command = workspace.command(&saying("hello", 1));
                    assert_eq!(says(command), "heard hello\n");
                }
            });
            return;
        }
    }
}

#[test]
fn a_server_is_reached_from_a_directory_of_another_owner() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root has directories of others");
        return;
    }
    beside_a_server(|_, says| {
        // One of them has no id in the range that commands of root have.
        for owner in [1000, 1_664_000_000] {
            let other = Workspace::new();
            std::os::unix::fs::chown(other.path(), Some(owner), Some(owner)).unwrap();
            let who = format!("id -u; {}", saying("hello", 1));
            let said = says(other.command(&who));
            assert_eq!(said, format!("{owner}\nheard hello\n"));
        }
    });
}

#[test]
fn a_server_is_reached_however_many_others_share_loopbacks_of_their_own() {
    beside_a_server(|workspace, says| {
        let held = [(Verb::NetListen, peer("localhost", Port::Any))];
        let say = saying("hello", 1);
        for number in 100..120 {
            let finished = run_in_common(workspace, &say, &held, number);
            assert_eq!(text(&finished), "nobody\n", "{number}");
        }
        // The spawner, which is the first, keeps so many and no more.
        let spawner = sandbox().helpers()[0];
        if let Ok(open) = std::fs::read_dir(format!("/proc/{spawner}/fd")) {
            let links = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
            let kept = links.filter(|link| link.to_string_lossy().starts_with("net:"));
            assert_eq!(kept.count(), 16);
        }
        assert_eq!(says(workspace.command(&say)), "heard hello\n");
    });
}

#[test]
fn commands_with_the_same_peers_share_a_loopback_and_each_has_its_own_way_out() {
    let workspace = Workspace::new();
    let (open, other) = (server("welcome\n"), server("another\n"));
    let listen = (Verb::NetListen, peer("localhost", Port::Any));
    let to = |port| (Verb::NetConnect, peer("127.0.0.1", Port::Only(port)));
    // Asks the proxy that the variables name for a port of the machine's loopback.
    let through = |port| {
        format!(
            "at=${{http_proxy#http://}}; (exec 3<>/dev/tcp/${{at%:*}}/${{at#*:}} && \
             printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nhello\\n' >&3; read -r version status rest <&3; \
             echo \"$at $status\"; if [ \"$status\" = 200 ]; then read -r empty <&3; cat <&3; fi) 2>&1; "
        )
    };
    let held = [listen.clone(), to(open), to(other)];
    let run = |script: &str, held: &[(Verb, Object)], number| {
        let finished = run_in_common(&workspace, script, held, number);
        (text(&finished), finished.attempts)
    };
    let attempt = |port: u16| Attempt {
        target: format!("127.0.0.1:{port}"),
        verdict: Verdict::Connected,
    };
    let serving = format!("{}{SERVER}", through(open));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| run(&serving, &held, 7));
        // The same in another order.
        let same = [to(other), listen.clone(), to(open), to(open)];
        let asking = format!("({}); {}", saying("hello", 1200), through(other));
        let (said, attempts) = run(&asking, &same, 7);
        if said.contains("nobody") && server.is_finished() {
            println!("SKIPPED: no perl to listen with: {:?}", server.join());
            return;
        }
        let (heard, way) = said.split_once('\n').unwrap();
        assert_eq!(heard, "heard hello");
        let (own, answer) = way.split_once(' ').unwrap();
        assert_eq!(answer, "200\nanother\n");
        assert_eq!(attempts, [attempt(other)]);
        // Less, none and more is another loopback, on which is no proxy of these.
        for held in [
            &[listen.clone(), to(open)][..],
            std::slice::from_ref(&listen),
            &[listen.clone(), to(open), to(other), to(1)],
        ] {
            assert_eq!(run(&saying("x", 3), held, 7).0, "nobody\n", "{held:?}");
        }
        let proxies = "for last in 1 2 3 4; do (exec 3<>/dev/tcp/127.31.28.$last/3128) 2>/dev/null && echo $last; done";
        assert_eq!(run(proxies, std::slice::from_ref(&listen), 7).0, "");
        assert_eq!(run(&saying("x", 3), &held, 8).0, "nobody\n");
        assert_eq!(run(&saying("stop", 1), &held, 7).0, "heard stop\n");
        let (said, attempts) = server.join().unwrap();
        let (first, rest) = said.split_once(' ').unwrap();
        assert_eq!(rest, "200\nwelcome\nstopped\n");
        assert_eq!(attempts, [attempt(open)]);
        assert_ne!(first, own, "both ran at once");
        assert_ne!(first, "127.0.0.1:3128", "that may be a server's");
    });
}

#[test]
fn nobody_changes_a_loopback_that_is_shared() {
    let workspace = Workspace::new();
    let held = [(Verb::NetListen, peer("localhost", Port::Any))];
    let tried = "ip link set lo down; ip addr add 10.9.9.9/8 dev lo; ifconfig lo down; \
                 echo $((1 - before)) > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start";
    // A new network forwards if the machine does.
    let script = format!(
        "before=$(cat /proc/sys/net/ipv4/ip_forward); ({tried}) > /dev/null 2>&1; cat /proc/net/dev | wc -l; \
                          [ $(cat /proc/sys/net/ipv4/ip_forward) = $before ] && echo same; \
                          grep -c '10\\.9' /proc/net/fib_trie; (exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 | grep -q refused && echo up"
    );
    for _ in 0..2 {
        let finished = run_in_common(&workspace, &script, &held, 9);
        assert_eq!(text(&finished), "3\nsame\n0\nup\n");
    }
}

#[test]
fn the_next_command_has_none_of_the_network_of_the_one_before() {
    let workspace = Workspace::new();
    let port = server("welcome\n");
    let held = [(Verb::NetConnect, peer("127.0.0.1", Port::Only(port)))];
    for _ in 0..3 {
        let with = run_with(&workspace, &tunnel(port), &held);
        assert_eq!(text(&with), "200\nwelcome\n");
        let without = run_with(&workspace, "(exec 3<>/dev/tcp/127.0.0.1/3128) 2>&1", &[]);
        assert_ne!(without.ending, Ending::Exited(0));
    }
}

#[test]
fn a_permit_for_something_else_makes_no_network() {
    let actions = vec![action(Verb::ProcExec, Object::Program(Program::AnyInView))];
    with_permits(Tool::Terminal, actions, |permits| {
        let denial = Network::from_permits(permits).unwrap_err();
        assert_eq!(denial.code(), DenialCode::PermitMismatch);
    });
    assert!(Network::none().is_none() && Network::default().is_none());
}

#[test]
fn no_program_that_speaks_over_a_network_reaches_the_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ways = [
        ("bash", format!("exec 3<>/dev/tcp/127.0.0.1/{port}")),
        ("curl", format!("curl -s -m 2 http://127.0.0.1:{port}/")),
        (
            "wget",
            format!("wget -q -t 1 -T 2 -O - http://127.0.0.1:{port}/"),
        ),
        ("nc", format!("nc -w 2 127.0.0.1 {port} < /dev/null")),
        (
            "ssh",
            format!("ssh -o BatchMode=yes -o ConnectTimeout=2 -p {port} 127.0.0.1 true"),
        ),
        (
            "python3",
            format!(
                "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'"
            ),
        ),
        (
            "perl",
            format!(
                "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => {port}, Timeout => 2) or exit 1'"
            ),
        ),
        (
            "git",
            format!("timeout 2 git ls-remote git://127.0.0.1:{port}/x"),
        ),
    ];
    let (tell, callers) = std::sync::mpsc::channel();
    // Each is heard and let go at once, so that none waits for an answer.
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let from = caller.unwrap().peer_addr().unwrap();
            tell.send(from).unwrap();
        }
    });
    // How many called before this call, which comes after them.
    let called = || {
        let own = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let own = own.local_addr().unwrap();
        callers.iter().take_while(|from| *from != own).count()
    };
    let mut tried = 0;
    for (program, way) in ways {
        // Outside it gets there; or it is not there, or not built for it.
        let _ended = std::process::Command::new("timeout")
            .args(["20", "bash", "-c", &way])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        if called() == 0 {
            println!("{program} does not get there from outside either");
            continue;
        }
        tried += 1;
        let finished = Workspace::new().run(&way);
        assert_eq!(called(), 0, "{program}");
        assert_ne!(finished.ending, Ending::Exited(0), "{program}");
    }
    assert!(tried > 0);
}
