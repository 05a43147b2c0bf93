//! What is said where a command did not reach what it wanted to: programs say of it whatever
//! they say where a network is down, or that somebody forbids it, and not who.

use std::time::Duration;

use hermitcrab_sandbox::{
    net::{Attempt, Verdict},
    spawn::Ending,
};

/// More peers than anybody is told of.
const PEERS_MAX: usize = 4;
/// A command that ends sooner after it did not reach somebody says so at its end alone.
const GOES_ON_AFTER: Duration = Duration::from_secs(2);
/// What programs say of a network that is not there.
const NO_NETWORK: [&str; 8] = [
    "EAI_AGAIN",
    "ENOTFOUND",
    "ENETUNREACH",
    "ould not resolve",
    "ame or service not known",
    "emporary failure in name resolution",
    "ailed to lookup address",
    "etwork is unreachable",
];
/// Where they name whom they wanted to reach.
const BEFORE_A_NAME: [&str; 6] = [
    "EAI_AGAIN ",
    "ENOTFOUND ",
    "resolve host: ",
    "resolve host '",
    "resolve '",
    "lookup ",
];
/// What they say where they get no socket at all.
const NO_SOCKET: [&str; 10] = [
    "listen EPERM",
    "connect EPERM",
    "socket: operation not permitted",
    "socket: Operation not permitted",
    "socket(): Operation not permitted",
    "open socket: Operation not permitted",
    "netlink socket: Operation not permitted",
    "Operation not permitted - socket(2)",
    "socket.socket.__init__(self",
    "SocketException: Operation not permitted",
];
/// What they say where nothing listens on a loopback.
const NOBODY_LISTENS: [&str; 3] = [
    "onnection refused",
    "ECONNREFUSED",
    "ouldn't connect to server",
];
/// How somebody is reached. Whom a command looks for may be in what it read: so no name of
/// its choice stands in a grant that is ready to be given.
const HOW: &str = "If that is wanted, `net.connect=HOST:PORT` grants a host; what a command looks for is no wish of its user's";
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What of the network a command had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Had {
    /// Peers, through the proxy.
    pub peers: bool,
    /// A loopback that others share.
    pub loopback: bool,
    /// Peers that are granted and were left out, because their grants ask again and nobody
    /// can be asked.
    pub unasked: Vec<String>,
}

/// Why it did not reach whom it wanted to, and what lets it.
pub(super) fn unreached(
    had: &Had,
    ending: Ending,
    attempts: &[Attempt],
    said: &[&str],
) -> Option<String> {
    let refused = refused(attempts);
    let unasked = had.unasked_in_words();
    if !refused.is_empty() {
        let is_grantable = attempts
            .iter()
            .any(|attempt| attempt.verdict == Verdict::NotListed);
        let how = if let Some(unasked) = unasked {
            format!(" {unasked}")
        } else if is_grantable {
            format!(" {HOW}.")
        } else {
            String::new()
        };
        return Some(format!("Of the network it did not reach {refused}.{how}"));
    }
    let failed = matches!(ending, Ending::Exited(status) if status != 0);
    let says = |words: &[&str], line: &str| words.iter().any(|words| line.contains(words));
    let mut lines = said.iter().flat_map(|said| said.lines());
    if !failed {
        return None;
    }
    if !had.peers
        && lines.clone().any(|line| {
            says(&NO_NETWORK, line) || says(&NO_SOCKET, line) || says(&NOBODY_LISTENS, line)
        })
        && let Some(unasked) = unasked
    {
        return Some(unasked);
    }
    if !had.peers && lines.clone().any(|line| says(&NO_NETWORK, line)) {
        let sought = sought(lines.clone());
        return Some(format!(
            "Commands reach nobody who is not granted.{sought} {HOW}."
        ));
    }
    if !had.peers && !had.loopback && lines.clone().any(|line| says(&NO_SOCKET, line)) {
        let sought = sought(lines.clone());
        return Some(format!(
            "Commands get no sockets of the network: the grant `net.listen=localhost` lets those of one agent serve and \
             reach each other on a loopback.{sought} {HOW}."
        ));
    }
    let loopback = |line| says(&NOBODY_LISTENS, line) && says(&LOOPBACK, line);
    let whose = match had.loopback {
        false => {
            "Each command has a loopback of its own: with the grant `net.listen=localhost` those of one agent share one, \
             and `net.connect=127.0.0.1:PORT` reaches what listens there outside."
        }
        true => {
            "The loopback of `net.listen=localhost` is shared by the commands of one agent and by nobody else, and none of \
             them listened there: `net.connect=127.0.0.1:PORT` reaches what listens there outside."
        }
    };
    lines.any(loopback).then(|| whose.to_owned())
}

impl Had {
    /// That granted peers were left out, and what has them back.
    fn unasked_in_words(&self) -> Option<String> {
        let mut named: Vec<String> = self
            .unasked
            .iter()
            .take(PEERS_MAX)
            .map(|peer| format!("`{peer}`"))
            .collect();
        let first = self.unasked.first()?;
        match self.unasked.len().saturating_sub(PEERS_MAX) {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        Some(format!(
            "It ran without {}, which is granted: data was read after the grant was made, so that the grant asks again, and \
             nobody can be asked. Granted anew it counts for what was read by then: `grant net.connect={first}`.",
            named.join(", ")
        ))
    }
}

/// Whom the proxy did not let it reach, and why, in words.
fn refused(attempts: &[Attempt]) -> String {
    let mut told: Vec<String> = Vec::new();
    for why in attempts.iter().filter_map(why_not) {
        if !told.contains(&why) {
            told.push(why);
        }
    }
    let more = told.len().saturating_sub(PEERS_MAX);
    told.truncate(PEERS_MAX);
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told.join("; ")
}

/// Whom it did not reach with one attempt, and why.
fn why_not(attempt: &Attempt) -> Option<String> {
    let target = &attempt.target;
    match attempt.verdict {
        Verdict::Connected | Verdict::Unreadable => None,
        Verdict::NotListed => Some(format!("`{target}`, which is not granted")),
        Verdict::NotPublic => Some(format!(
            "`{target}`, which leads to an address of this machine or its neighbourhood, for which no grant of a name stands"
        )),
        Verdict::Ruled => Some(format!(
            "`{target}`, which leads to an address that a rule refuses or wants asked about"
        )),
        Verdict::Unreachable => Some(format!("`{target}`, which did not answer")),
        Verdict::Unnoticed => Some(format!(
            "`{target}`, since the ledger could not be told of it before"
        )),
    }
}

/// What is said of a command that goes on though it did not reach somebody: a program that
/// tries again for minutes prints nothing of it for as long.
#[derive(Debug, Default)]
pub(super) struct Vain {
    known: usize,
    /// Each once, and how long the command had run when it was seen first.
    seen: Vec<(String, Duration)>,
    told: usize,
}

impl Vain {
    /// What is to be said after so long, of the attempts there are `since` the ones known.
    pub(super) fn news(
        &mut self,
        elapsed: Duration,
        since: impl FnOnce(usize) -> Vec<Attempt>,
    ) -> Vec<String> {
        let new = since(self.known);
        self.known = self.known.saturating_add(new.len());
        for why in new.iter().filter_map(why_not) {
            if self.seen.len() < PEERS_MAX && !self.seen.iter().any(|(seen, _)| *seen == why) {
                self.seen.push((why, elapsed));
            }
        }
        let mut lines = Vec::new();
        while let Some((why, at)) = self.seen.get(self.told) {
            if elapsed.saturating_sub(*at) < GOES_ON_AFTER {
                break;
            }
            lines.push(format!("It goes on, but did not reach {why}."));
            self.told = self.told.saturating_add(1);
        }
        lines
    }
}

/// Whom it says it looked for: its own words, or those of what it read.
fn sought<'l>(mut lines: impl Iterator<Item = &'l str>) -> String {
    let name = lines.find_map(named);
    name.map_or_else(String::new, |name| {
        format!(" By its own output this one looked for `{name}`.")
    })
}

/// Whom a line says that it wanted to reach.
fn named(line: &str) -> Option<&str> {
    BEFORE_A_NAME.iter().find_map(|before| {
        let (_, rest) = line.split_once(before)?;
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let name = rest.get(..end)?.trim_end_matches('.');
        let is_host = name.contains('.') && name.len() < 254 && !name.starts_with(['-', '.']);
        is_host.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Had = Had {
        peers: false,
        loopback: false,
        unasked: Vec::new(),
    };

    fn told(had: Had, status: i32, said: &str) -> String {
        unreached(&had, Ending::Exited(status), &[], &["", said]).unwrap_or_default()
    }

    fn tried(target: &str, verdict: Verdict) -> Attempt {
        Attempt {
            target: target.to_owned(),
            verdict,
        }
    }

    #[test]
    fn where_no_network_is_held_it_is_said_what_lets_a_command_reach_whom_it_named() {
        for said in [
            "npm error request to https://r.example.org/x failed, reason: getaddrinfo EAI_AGAIN r.example.org\n",
            "curl: (6) Could not resolve host: r.example.org\n",
            "fatal: unable to access 'https://r.example.org/a/b/': Could not resolve host: r.example.org\n",
            "dial tcp: lookup r.example.org: Temporary failure in name resolution\n",
        ] {
            let told = told(NOTHING, 1, said);
            assert!(
                told.contains("looked for `r.example.org`.")
                    && told.contains("`net.connect=HOST:PORT`")
                    && !told.contains("net.connect=r"),
                "{said}: {told}"
            );
        }
        let odd = "NewConnectionError('<pip._vendor.urllib3.connection object>: [Errno -2] Name or service not known')\n";
        let odd = told(NOTHING, 1, odd);
        assert!(
            odd.contains("`net.connect=HOST:PORT`") && !odd.contains("looked for"),
            "{odd}"
        );
        let said = "curl: (6) Could not resolve host: r.example.org\n";
        assert_eq!(told(NOTHING, 0, said), "");
        assert_eq!(
            told(
                Had {
                    peers: true,
                    ..NOTHING
                },
                6,
                said
            ),
            ""
        );
        assert_eq!(told(NOTHING, 1, "no such file\n"), "");
    }

    #[test]
    fn where_no_socket_is_to_be_had_it_is_said_what_gives_one() {
        for said in [
            "    _socket.socket.__init__(self, family, type, proto, fileno)\nPermissionError: [Errno 1] Operation not permitted\n",
            "Error: listen EPERM: operation not permitted 0.0.0.0\n",
            "Caused by: java.net.SocketException: Operation not permitted\n",
            "-e:1:in `initialize': Operation not permitted - socket(2) for nil port 8000 (Errno::EPERM)\n",
        ] {
            let told = told(NOTHING, 1, said);
            assert!(
                told.contains("`net.listen=localhost`") && told.contains("`net.connect=HOST:PORT`"),
                "{said}: {told}"
            );
        }
        let go = "Get \"https://r.example.org/x\": dial tcp: lookup r.example.org on [::1]:53: dial udp [::1]:53: socket: operation not permitted\n";
        let go = told(NOTHING, 1, go);
        assert!(
            go.contains("`r.example.org`") && !go.contains("net.connect=r"),
            "{go}"
        );
        let held = Had {
            loopback: true,
            ..NOTHING
        };
        assert_eq!(told(held, 1, "Error: listen EPERM\n"), "");
    }

    #[test]
    fn where_what_is_granted_was_left_out_that_is_said_and_what_has_it_back() {
        let had = Had {
            unasked: vec!["r.example.org:443".to_owned()],
            ..NOTHING
        };
        for said in [
            "curl: (6) Could not resolve host: r.example.org\n",
            "Error: connect EPERM 127.0.0.1:8000\n",
            "curl: (7) Failed to connect to localhost port 8000: Connection refused\n",
        ] {
            let told = told(had.clone(), 6, said);
            assert!(
                told.contains("without `r.example.org:443`, which is granted")
                    && told.contains("`grant net.connect=r.example.org:443`"),
                "{said}: {told}"
            );
        }
        assert_eq!(told(had.clone(), 1, "no such file\n"), "");
        assert_eq!(told(had, 0, ""), "");
    }

    #[test]
    fn where_nobody_listens_on_a_loopback_of_its_own_that_is_said() {
        let said =
            "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Connection refused\n";
        assert!(told(NOTHING, 7, said).contains("net.listen=localhost"));
        let shared = Had {
            loopback: true,
            ..NOTHING
        };
        // Of one that is shared the person knows that it is; not that it is not the machine's.
        let shared = told(shared, 7, said);
        assert!(
            shared.contains("`net.connect=127.0.0.1:PORT` reaches")
                && !shared.contains("a loopback of its own"),
            "{shared}"
        );
        assert_eq!(
            told(NOTHING, 7, "connection refused by db.example.org\n"),
            ""
        );
    }

    #[test]
    fn a_command_that_goes_on_is_said_once_not_to_have_reached_somebody() {
        let mut all = vec![
            tried("a.example:443", Verdict::NotListed),
            tried("b.example:443", Verdict::Connected),
        ];
        let mut vain = Vain::default();
        let mut after = |millis, all: &[Attempt]| {
            let elapsed = Duration::from_millis(millis);
            vain.news(elapsed, |known| all.get(known..).unwrap().to_vec())
        };
        assert!(after(100, &all).is_empty());
        all.push(tried("a.example:443", Verdict::NotListed));
        assert!(after(2_000, &all).is_empty());
        let [line] = <[String; 1]>::try_from(after(2_200, &all)).unwrap();
        assert!(
            line.contains("`a.example:443`, which is not granted") && line.contains("goes on"),
            "{line}"
        );
        all.extend((0..9).map(|n| tried(&format!("h{n}.example:1"), Verdict::Unreachable)));
        assert!(after(3_000, &all).is_empty());
        let more = after(9_000, &all);
        assert_eq!(more.len(), PEERS_MAX - 1, "{more:?}");
        assert!(more.iter().all(|line| line.contains("did not answer")));
        assert!(after(20_000, &all).is_empty());
    }

    #[test]
    fn whom_the_proxy_did_not_let_through_is_named_with_the_reason_once() {
        let attempts = [
            tried("a.example:443", Verdict::NotListed),
            tried("a.example:443", Verdict::NotListed),
            tried("b.example:443", Verdict::NotPublic),
            tried("c.example:443", Verdict::Connected),
            tried("d.example:443", Verdict::Unreachable),
        ];
        let had = Had {
            peers: true,
            ..NOTHING
        };
        let told = unreached(&had, Ending::Exited(0), &attempts, &[]).unwrap_or_default();
        assert_eq!(told.matches("`a.example:443`").count(), 1, "{told}");
        for part in [
            "`net.connect=HOST:PORT`",
            "`b.example:443`, which leads to an address",
            "`d.example:443`, which did",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(!told.contains("c.example"), "{told}");
        let many: Vec<Attempt> = (0..9)
            .map(|n| tried(&format!("h{n}.example:1"), Verdict::NotListed))
            .collect();
        let told = unreached(&had, Ending::Exited(0), &many, &[]).unwrap_or_default();
        assert!(told.contains("5 more") && !told.contains("h4"), "{told}");
    }
}
