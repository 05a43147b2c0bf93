//! The proxy on the loopback of this machine: what passes, and what does not.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::allow::tests::list;
use super::*;

/// A peer that sends back what it gets, in upper case, to the end of input.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    stream
                        .write_all(&buffer[..count].to_ascii_uppercase())
                        .unwrap();
                }
            });
        }
    });
    port
}

fn start(allow: AllowList, resolver: impl Resolve + 'static) -> (Proxy, u16) {
    noticed(allow, Notice::default(), resolver)
}

fn noticed(allow: AllowList, notice: Notice, resolver: impl Resolve + 'static) -> (Proxy, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = Proxy::start(listener.into(), (allow, notice), Box::new(resolver)).unwrap();
    (proxy, port)
}

/// Answers each question from a list, and counts the questions.
struct Fixed(Vec<IpAddr>, Arc<AtomicUsize>);

impl Resolve for Fixed {
    fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(self.0.clone())
    }
}

struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        panic!("asked for {name}");
    }
}

fn say(port: u16, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

fn first_line(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n") && stream.read(&mut byte).unwrap() == 1 {
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_listed_address_is_reached_through_a_tunnel_and_others_are_not() {
    let peer = echo();
    let (proxy, port) = start(list(&[("127.0.0.1", Some(peer))]), Nobody);
    let mut stream = say(
        port,
        format!("CONNECT 127.0.0.1:{peer} HTTP/1.1\r\n\r\n").as_bytes(),
    );
    assert_eq!(
        first_line(&mut stream),
        "HTTP/1.1 200 Connection established\r\n"
    );
    first_line(&mut stream);
    stream.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HELLO");
    for request in [
        format!("CONNECT 127.0.0.2:{peer} HTTP/1.1\r\n\r\n"),
        format!("CONNECT localhost:{peer} HTTP/1.1\r\n\r\n"),
        format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n\r\n", peer ^ 1),
        format!("GET http://[::ffff:127.0.0.1]:{peer}/ HTTP/1.1\r\n\r\n"),
    ] {
        let mut refused = say(port, request.as_bytes());
        assert_eq!(
            first_line(&mut refused),
            "HTTP/1.1 403 Forbidden\r\n",
            "{request}"
        );
    }
    let attempts = proxy.finish();
    assert_eq!(attempts.len(), 5);
    assert_eq!(
        attempts
            .iter()
            .filter(|attempt| attempt.verdict == Verdict::Connected)
            .count(),
        1
    );
    // The end of the proxy is the end of what it connected.
    assert_eq!(stream.read(&mut answer).unwrap_or(0), 0);
}

#[test]
fn socks_reaches_the_same_peers() {
    let peer = echo();
    let (_proxy, port) = start(list(&[("127.0.0.1", Some(peer))]), Nobody);
    for (last, wanted) in [(1, 0), (2, 2)] {
        let mut request = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, last];
        request.extend(peer.to_be_bytes());
        let mut stream = say(port, &request);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..4], [5, 0, 5, wanted]);
    }
}

#[test]
fn a_listed_name_that_leads_to_this_machine_is_refused() {
    let peer = echo();
    for addresses in [
        vec!["127.0.0.1"],
        vec!["169.254.169.254"],
        vec!["::ffff:127.0.0.1"],
        // One public answer does not make up for a private one.
        vec!["8.8.8.8", "127.0.0.1"],
    ] {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let (proxy, port) = start(
            list(&[("rebound.test", None)]),
            Fixed(addresses, Arc::clone(&asked)),
        );
        let mut stream = say(
            port,
            format!("CONNECT rebound.test:{peer} HTTP/1.1\r\n\r\n").as_bytes(),
        );
        assert_eq!(first_line(&mut stream), "HTTP/1.1 403 Forbidden\r\n");
        assert_eq!(proxy.finish()[0].verdict, Verdict::NotPublic);
        // Asked once: there is no second answer to connect to.
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_name_that_is_not_listed_is_not_even_looked_up() {
    let (proxy, port) = start(list(&[("example.com", Some(443))]), Nobody);
    for request in [
        "CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT example.com:80 HTTP/1.1\r\n\r\n",
        "GET http://secret-in-a-name.evil.test/ HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = say(port, request.as_bytes());
        assert_eq!(
            first_line(&mut stream),
            "HTTP/1.1 403 Forbidden\r\n",
            "{request}"
        );
    }
    assert!(
        proxy
            .finish()
            .iter()
            .all(|attempt| attempt.verdict == Verdict::NotListed)
    );
}

/// Nothing is asked outside before whoever has to know does; they are told once, of what is
/// listed alone.
#[test]
fn whoever_has_to_know_does_before_anything_is_looked_up_or_reached() {
    let peer = echo();
    let (told, refusals) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(2)));
    let (count, left) = (Arc::clone(&told), Arc::clone(&refusals));
    let notice = Notice::to(move || {
        count.fetch_add(1, Ordering::SeqCst);
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        })
        .is_err()
    });
    let listed = list(&[("127.0.0.1", Some(peer)), ("name.test", Some(80))]);
    let asked = Arc::new(AtomicUsize::new(0));
    let (proxy, port) = noticed(listed, notice, Fixed(Vec::new(), Arc::clone(&asked)));
    let status = |target: String| {
        let request = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
        let line = first_line(&mut say(port, request.as_bytes()));
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("other.test:80".to_owned()), "403");
    assert_eq!(told.load(Ordering::SeqCst), 0);
    // Twice they cannot be told.
    assert_eq!(status("name.test:80".to_owned()), "503");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let mut by_socks = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    by_socks.extend(peer.to_be_bytes());
    let mut answer = [0; 12];
    say(port, &by_socks).read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 4]);
    for _ in 0..3 {
        assert_eq!(status(format!("127.0.0.1:{peer}")), "200");
    }
    assert_eq!(told.load(Ordering::SeqCst), 3);
    let verdicts: Vec<Verdict> = proxy.finish().iter().map(|tried| tried.verdict).collect();
    assert_eq!(
        verdicts,
        [
            Verdict::NotListed,
            Verdict::Unnoticed,
            Verdict::Unnoticed,
            Verdict::Connected,
            Verdict::Connected,
            Verdict::Connected
        ]
    );
}

/// Nothing is connected to: that one of its addresses is ruled out is enough.
#[test]
fn a_name_that_leads_to_an_address_which_a_rule_is_about_is_not_followed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let leads_to = ["9.9.9.9", "8.8.4.4"].map(|address| address.parse().unwrap());
    let excluded = list(&[("8.8.4.4", Some(80))]).peers().cloned().collect();
    let listed = list(&[("name.test", None)]).but(excluded);
    let (proxy, port) = start(listed, Fixed(leads_to.to_vec(), Arc::clone(&asked)));
    let line = first_line(&mut say(port, b"CONNECT name.test:80 HTTP/1.1\r\n\r\n"));
    assert!(line.contains("403"), "{line}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let mut by_socks = vec![5, 1, 0, 5, 1, 0, 3, 9];
    by_socks.extend(b"name.test\x00\x50");
    let mut answer = [0; 12];
    say(port, &by_socks).read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 2]);
    let verdicts: Vec<Verdict> = proxy.finish().iter().map(|tried| tried.verdict).collect();
    assert_eq!(verdicts, [Verdict::Ruled, Verdict::Ruled]);
}

#[test]
fn plain_requests_pass_with_the_checked_host() {
    let peer = echo();
    let (_proxy, port) = start(list(&[("127.0.0.1", Some(peer))]), Nobody);
    let request = format!(
        "POST http://127.0.0.1:{peer}/p HTTP/1.1\r\nHost: other\r\nContent-Length: 4\r\n\r\nbody"
    );
    let mut stream = say(port, request.as_bytes());
    stream.shutdown(Shutdown::Write).unwrap();
    let mut echoed = String::new();
    stream.read_to_string(&mut echoed).unwrap();
    assert!(
        echoed.starts_with("POST /P HTTP/1.1\r\nHOST: 127.0.0.1:"),
        "{echoed}"
    );
    assert!(echoed.ends_with("\r\n\r\nBODY"), "{echoed}");
}

#[test]
fn nothing_is_sent_for_a_request_that_the_end_of_the_proxy_overtakes() {
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = peer.local_addr().unwrap().port();
    let shared = |stopped| Shared {
        allow: list(&[("127.0.0.1", Some(port))]),
        notice: Notice::default(),
        resolver: Box::new(Nobody),
        state: Mutex::new(State {
            stopped,
            ..State::default()
        }),
    };
    let inside = TcpListener::bind("127.0.0.1:0").unwrap();
    let (ended, runs) = (shared(true), shared(false));
    let mut client = say(
        inside.local_addr().unwrap().port(),
        format!("GET http://127.0.0.1:{port}/secret HTTP/1.1\r\n\r\n").as_bytes(),
    );
    serve(inside.accept().unwrap().0, &ended).unwrap();
    assert_eq!(first_line(&mut client), "HTTP/1.1 502 Bad Gateway\r\n");
    // It ended while the connection was being made.
    let connected = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(ended.hold(&client, connected).is_none());
    let connected = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let open = runs.hold(&client, connected);
    assert_eq!(runs.lock().open.len(), 1);
    drop(open);
    assert!(runs.lock().open.is_empty());
    // The two connections made here, and none by the proxy.
    for _ in 0..2 {
        let (mut stream, _) = peer.accept().unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed, nothing sent");
    }
    peer.set_nonblocking(true).unwrap();
    assert!(peer.accept().is_err());
}

#[test]
fn rubbish_is_answered_with_a_refusal() {
    let (proxy, port) = start(AllowList::default(), Nobody);
    let mut stream = say(port, b"\x16\x03\x01 not http\r\n\r\n");
    assert_eq!(first_line(&mut stream), "HTTP/1.1 400 Bad Request\r\n");
    assert_eq!(proxy.finish()[0].verdict, Verdict::Unreadable);
}

#[test]
fn a_request_by_socks_that_is_not_understood_is_refused_and_on_record() {
    let (proxy, port) = start(AllowList::default(), Nobody);
    // To listen for somebody, which nobody may.
    let mut stream = say(port, &[5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80]);
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 7]);
    let attempts = proxy.finish();
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].verdict, Verdict::Unreadable);
}

#[test]
fn a_peer_that_does_not_answer_is_told_apart_from_one_that_may_not_be_reached() {
    // Nobody listens there any more.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = silent.local_addr().unwrap().port();
    drop(silent);
    let (proxy, port) = start(list(&[("127.0.0.1", Some(peer))]), Nobody);
    let mut request = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
    request.extend(peer.to_be_bytes());
    let mut stream = say(port, &request);
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 4]);
    let request = format!("CONNECT 127.0.0.1:{peer} HTTP/1.1\r\n\r\n");
    let mut stream = say(port, request.as_bytes());
    assert_eq!(first_line(&mut stream), "HTTP/1.1 502 Bad Gateway\r\n");
    let attempts = proxy.finish();
    assert_eq!(attempts.len(), 2);
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt.verdict == Verdict::Unreachable)
    );
}

#[test]
fn a_connection_that_stands_may_be_silent_for_as_long_as_it_likes() {
    let peer = echo();
    let (proxy, port) = start(list(&[("127.0.0.1", Some(peer))]), Nobody);
    let mut stream = say(
        port,
        format!("CONNECT 127.0.0.1:{peer} HTTP/1.1\r\n\r\n").as_bytes(),
    );
    first_line(&mut stream);
    first_line(&mut stream);
    // What passes does so after the time for a request was lifted.
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let state = proxy.shared.lock();
    assert_eq!(state.open.len(), 1);
    for end in state.open[0].iter() {
        assert_eq!(end.read_timeout().unwrap(), None);
        assert_eq!(end.write_timeout().unwrap(), None);
    }
}

#[test]
fn of_more_attempts_than_anybody_reads_the_first_are_kept() {
    let (proxy, _) = start(AllowList::default(), Nobody);
    for number in 0..=ATTEMPTS_MAX {
        proxy.shared.note(number.to_string(), Verdict::NotListed);
    }
    let attempts = proxy.finish();
    assert_eq!(attempts.len(), ATTEMPTS_MAX);
    assert_eq!(attempts[0].target, "0");
}

#[test]
fn no_command_holds_more_connections_than_there_may_be() {
    let (proxy, port) = start(AllowList::default(), Nobody);
    let busy = |wanted: usize| {
        while proxy.shared.lock().busy != wanted {
            std::thread::yield_now();
        }
    };
    // Those that say nothing are waited for.
    let mut idle = Vec::new();
    for number in 1..=CONNECTIONS_MAX {
        idle.push(TcpStream::connect(("127.0.0.1", port)).unwrap());
        busy(number);
    }
    let mut more = TcpStream::connect(("127.0.0.1", port)).unwrap();
    more.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(more.read(&mut [0]).unwrap(), 0, "closed at once");
    assert_eq!(proxy.shared.lock().busy, CONNECTIONS_MAX);
    drop(idle);
    busy(0);
    let mut again = say(port, b"GET http://example.com/ HTTP/1.1\r\n\r\n");
    assert_eq!(first_line(&mut again), "HTTP/1.1 403 Forbidden\r\n");
}

/// The name of the test that runs again inside a network of its own.
const AGAIN: &str = "net::proxy::tests::of_public_addresses_the_first_that_answers_is_reached_and_none_of_this_machine";

/// Makes, in a network of its own, one public address this machine's (8.8.8.8), two that
/// answer though they are not (1.1.1.1 and 8.8.4.4), and no way to any other; then runs this.
const NETWORK: &str = "ip link set lo up && ip address add 8.8.8.8/32 dev lo \
    && ip route add local 1.1.1.1/32 dev lo src 127.0.0.1 \
    && ip route add local 8.8.4.4/32 dev lo src 127.0.0.1 && exec \"$@\"";

/// A peer at an address that says who it is.
fn says(address: &str, port: u16, word: &'static [u8]) -> io::Result<u16> {
    let listener = TcpListener::bind((address, port))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _said = stream.write_all(word);
        }
    });
    Ok(port)
}

#[test]
fn of_public_addresses_the_first_that_answers_is_reached_and_none_of_this_machine() {
    let Ok(port) = says("8.8.8.8", 0, b"OWN") else {
        in_a_network_of_its_own();
        return;
    };
    says("1.1.1.1", port, b"ONE").unwrap();
    says("8.8.4.4", port, b"TWO").unwrap();
    let reach = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let found = Fixed(addresses, Arc::default());
        let (proxy, at) = start(list(&[("name.test", None)]), found);
        let request = format!("CONNECT name.test:{port} HTTP/1.1\r\n\r\n");
        let mut stream = say(at, request.as_bytes());
        let status = first_line(&mut stream);
        let mut word = [0; 3];
        if status.contains("200") {
            first_line(&mut stream);
            stream.read_exact(&mut word).unwrap();
        }
        (proxy.finish()[0].verdict, word)
    };
    let nothing = [0; 3];
    assert_eq!(reach(&["1.1.1.1"]), (Verdict::Connected, *b"ONE"));
    assert_eq!(
        reach(&["8.8.4.4", "1.1.1.1"]),
        (Verdict::Connected, *b"TWO")
    );
    // Whoever does not answer is passed over, so many times.
    let silent = ["9.9.9.1", "9.9.9.2", "9.9.9.3"];
    let late = [&silent[..], &["1.1.1.1"]].concat();
    assert_eq!(reach(&late), (Verdict::Connected, *b"ONE"));
    let too_late = [&silent[..], &["9.9.9.4", "1.1.1.1"]].concat();
    assert_eq!(reach(&too_late), (Verdict::Unreachable, nothing));
    // A public address behind which this machine would meet itself, in whichever place.
    assert_eq!(reach(&["8.8.8.8"]), (Verdict::NotPublic, nothing));
    assert_eq!(
        reach(&["1.1.1.1", "8.8.8.8"]),
        (Verdict::NotPublic, nothing)
    );
}

fn in_a_network_of_its_own() {
    let with = |program: &[&str]| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args([
            "--user",
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            NETWORK,
            "sh",
        ]);
        unshare.args(program).output()
    };
    match with(&["true"]) {
        Ok(tried) if tried.status.success() => {}
        tried => {
            println!("SKIPPED: no network of its own with addresses of its own: {tried:?}");
            return;
        }
    }
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let ran = with(&[own.to_str().unwrap(), "--exact", AGAIN, "--nocapture"]).unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    let why = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}{why}");
    assert!(told.contains("1 passed"), "{told}{why}");
}
