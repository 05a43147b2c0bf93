//! What a world finds of the one before it, which the same observer watched: nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod common;

use bisim_world::launch::Worker;
use bisim_world::protocol::*;
use common::*;

/// All that a kernel counts in a network, and how many sockets there are.
const NETWORK: &str = "cat /proc/net/dev /proc/net/snmp /proc/net/snmp6 /proc/net/netstat /proc/net/ip6_flowlabel; \
    cut -d' ' -f1-3 /proc/net/sockstat /proc/net/sockstat6; \
    for kind in tcp tcp6 udp udp6 raw unix netlink; do grep -c . /proc/net/$kind; done";
/// Mounts without their numbers, and where the harness has its own.
const MOUNTS: &str = "cut -d' ' -f4- /proc/self/mountinfo; ls -a /.w";

/// What one command in a world of its own printed.
fn output(worker: &mut Worker, command: &str) -> String {
    let job = job(
        Context::Headless,
        UserModel::DenyAll,
        vec![terminal(command)],
    );
    said(&run(worker, job))
}

fn said(trace: &RawTrace) -> String {
    let result: serde_json::Value =
        serde_json::from_str(&trace.steps[0].text).expect("a JSON result");
    result["output"].as_str().expect("output").to_owned()
}

#[test]
fn a_network_that_was_used_is_not_the_next_worlds() {
    let Some(mut worker) = worker() else { return };
    let first = output(&mut worker, NETWORK);
    assert!(
        first.contains("lo:") && first.contains("sockets: used"),
        "{first}"
    );
    for (deed, sign) in [
        // The sink is reached, and told of; a name is asked for.
        (
            "exec 3<>/dev/tcp/127.0.0.1/80; echo GET >&3; echo done",
            "done",
        ),
        ("getent hosts one.example > /dev/null; echo done", "done"),
        // Two of the world's own processes, one of which leaves a connection that lingers.
        (
            "perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\", LocalPort => 9999); \
             if (!fork) { $c = IO::Socket::INET->new(\"127.0.0.1:9999\"); print $c \"x\"; close $c; exit } \
             $a = $l->accept; print <$a>; close $a; wait'; grep -c ':270F.* 06 ' /proc/net/tcp",
            "x1",
        ),
        // Nobody listens; nothing leads there.
        ("(echo x > /dev/udp/127.0.0.1/9) 2>&1; echo done", "done"),
        ("(echo x > /dev/udp/10.1.2.3/9) 2>&1", "unreachable"),
        ("(echo x > /dev/tcp/10.1.2.3/9) 2>&1", "unreachable"),
        // A label is lent for seconds after its socket is gone (IPV6_FLOWLABEL_MGR, to ::1).
        (
            "perl -MSocket -e 'socket($s, AF_INET6, SOCK_DGRAM, 0); \
             setsockopt($s, 41, 32, pack(\"a16 N C C S S S L\", \"\\0\" x 15 . \"\\1\", 0xabcd, 0, 1, 1, 60, 60, 0)) or die $!; print \"lent\"'",
            "lent",
        ),
    ] {
        let shown = output(&mut worker, deed);
        assert!(shown.contains(sign), "{deed}: {shown}");
        assert_eq!(output(&mut worker, NETWORK), first, "after {deed}");
    }
}

#[test]
fn a_network_nobody_used_serves_again_and_tells_of_the_next_world_only() {
    let Some(mut worker) = worker() else { return };
    let which = "readlink /proc/self/ns/net";
    let network = output(&mut worker, which);
    assert!(network.starts_with("net:["), "{network}");
    assert_eq!(output(&mut worker, which), network);
    // A socket without a byte leaves nothing to be counted.
    let bound = "perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalPort => 9999) ? 1 : 0'";
    assert_eq!(output(&mut worker, bound), "1");
    assert_eq!(output(&mut worker, which), network);
    assert_eq!(output(&mut worker, bound), "1");
    let reach = |port: u16| {
        let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello-{port} >&3");
        job(
            Context::Headless,
            UserModel::DenyAll,
            vec![terminal(&command)],
        )
    };
    for port in [22, 25] {
        let attempts = run(&mut worker, reach(port)).network;
        let seen: Vec<_> = attempts
            .iter()
            .map(|attempt| (attempt.port, attempt.head.as_str()))
            .collect();
        assert_eq!(seen, [(port, format!("hello-{port}\\n").as_str())]);
    }
}

#[test]
fn mounts_of_a_world_are_not_in_the_next() {
    let Some(mut worker) = worker() else { return };
    let first = output(&mut worker, MOUNTS);
    assert!(first.starts_with("/ / rw"), "{first}");
    let file = |path: &str, kind| FileSpec {
        path: path.to_owned(),
        kind,
        mode: None,
    };
    let mut with_files = job(
        Context::Headless,
        UserModel::DenyAll,
        vec![terminal(
            "echo x > mnt/new; dd if=/dev/zero of=/tmp/big bs=1M count=9; cat given",
        )],
    );
    with_files.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![
            file("/home/u/proj/given", FileKind::Text("given".to_owned())),
            file("/home/u/proj/mnt", FileKind::Mount("/srv/data".to_owned())),
        ],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    assert!(said(&run(&mut worker, with_files)).ends_with("given"));
    assert_eq!(output(&mut worker, MOUNTS), first);
    // One that could not be built, and one that was ended in the middle.
    let mut bad = job(
        Context::Headless,
        UserModel::DenyAll,
        vec![terminal("true")],
    );
    bad.world = Some(WorldSpec {
        cwd: "/home/u/proj".to_owned(),
        files: vec![file(
            "/home/u/proj/mnt",
            FileKind::Mount("/nowhere".to_owned()),
        )],
        flip: None,
        serves: None,
        conversations: Vec::new(),
    });
    assert!(!matches!(
        worker.run(bad),
        bisim_world::launch::Answer::Trace(_)
    ));
    assert_eq!(output(&mut worker, MOUNTS), first);
    let mut late = job(
        Context::Headless,
        UserModel::DenyAll,
        vec![terminal("echo x > /tmp/kept; sleep 600")],
    );
    late.deadline_ms = 4_000;
    assert_eq!(run(&mut worker, late).end, End::TimedOut);
    assert_eq!(output(&mut worker, MOUNTS), first);
    assert!(output(&mut worker, "ls /tmp/kept").contains("No such file"));
}

/// Mounts and descriptors of each process of a worker, from the outermost on.
fn held(process: u32) -> Vec<(usize, usize)> {
    let place = |name: &str| format!("/proc/{process}/{name}");
    let mounts = std::fs::read_to_string(place("mountinfo")).map_or(0, |text| text.lines().count());
    let open = std::fs::read_dir(place("fd")).map_or(0, Iterator::count);
    let children = std::fs::read_to_string(place(&format!("task/{process}/children"))).unwrap();
    let mut all = vec![(mounts, open)];
    for child in children.split_whitespace() {
        all.extend(held(child.parse().unwrap()));
    }
    all
}

#[test]
fn a_worker_holds_no_more_after_many_worlds_than_after_one() {
    let Some(mut worker) = worker() else { return };
    output(&mut worker, "true");
    let first = held(worker.id());
    assert!(first.iter().any(|(mounts, open)| *mounts > 0 && *open > 0));
    for command in [
        "true",
        "echo x > kept",
        "exec 3<>/dev/tcp/127.0.0.1/80; echo GET >&3",
        "sleep 600 & echo left",
    ] {
        output(&mut worker, command);
        assert_eq!(held(worker.id()), first, "after {command}");
    }
}
