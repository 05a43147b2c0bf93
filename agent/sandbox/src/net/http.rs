//! The HTTP side of the proxy: reading one request, writing one refusal.
//!
//! Only what is needed to know where a client wants to go: the request line
//! and the end of the head. Bodies and answers pass by untouched.

use super::allow::Target;

/// The longest head that is read.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

/// What a client asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A tunnel to this peer.
    Tunnel(Target),
    /// One plain request to this peer; these bytes are what it is to be sent.
    Plain(Target, Vec<u8>),
}

/// Where the head ends, if it is complete.
pub(super) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at.saturating_add(4))
}

/// Reads a whole head. `None`: not understood, and so refused.
pub(super) fn read(head: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(head).ok()?;
    let (line, rest) = text.split_once("\r\n")?;
    // A lone line feed ends a line to some and not to others, who would see another host.
    let is_odd = |byte: u8| byte != b'\t' && byte.is_ascii_control();
    if line
        .bytes()
        .chain(rest.split("\r\n").flat_map(str::bytes))
        .any(is_odd)
    {
        return None;
    }
    let mut words = line.split(' ');
    let (method, uri, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = uri.rsplit_once(':')?;
        return Some(Request::Tunnel(Target::parse(host, port_number(port)?)?));
    }
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let rest_of_uri = uri.strip_prefix("http://")?;
    let (authority, path) = match rest_of_uri.find(['/', '?']) {
        Some(at) => rest_of_uri.split_at_checked(at)?,
        None => (rest_of_uri, "/"),
    };
    // A name before `@` would be read as the host by some and not by others.
    if authority.contains('@') || path.contains('#') {
        return None;
    }
    let target = authority_target(authority)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut plain = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\n");
    for field in rest.split("\r\n").take_while(|field| !field.is_empty()) {
        let (name, _value) = field.split_once(':')?;
        // A continued or padded name is an old way of saying two things at once.
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        // The host of the request is the one that was checked. What a command sends behind it
        // reaches that same address, whatever host it names.
        if name == "host" || name == "connection" || name.starts_with("proxy-") {
            continue;
        }
        plain.push_str(field);
        plain.push_str("\r\n");
    }
    plain.push_str("Connection: close\r\n\r\n");
    Some(Request::Plain(target, plain.into_bytes()))
}

fn authority_target(authority: &str) -> Option<Target> {
    let after_bracket = authority.rfind(']').map_or(0, |at| at.saturating_add(1));
    match authority.get(after_bracket..)?.rfind(':') {
        Some(at) => {
            let (host, port) = authority.split_at_checked(after_bracket.saturating_add(at))?;
            Target::parse(host, port_number(port.strip_prefix(':')?)?)
        }
        None => Target::parse(authority, 80),
    }
}

fn port_number(text: &str) -> Option<u16> {
    // `parse` alone would take a plus sign.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// An answer that ends the connection.
pub(super) fn refusal(status: &str, why: &str) -> Vec<u8> {
    let body = format!("{why}\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nX-Hermitcrab: refused\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(head: &str) -> Option<String> {
        read(head.as_bytes()).map(|request| match request {
            Request::Tunnel(target) => format!("tunnel {target}"),
            Request::Plain(target, _) => format!("plain {target}"),
        })
    }

    #[test]
    fn tunnels_and_plain_requests_name_their_peer() {
        for (head, wanted) in [
            (
                "CONNECT example.com:443 HTTP/1.1\r\n\r\n",
                "tunnel example.com:443",
            ),
            (
                "CONNECT [::1]:8443 HTTP/1.1\r\nHost: x\r\n\r\n",
                "tunnel [::1]:8443",
            ),
            (
                "GET http://example.com/a?b HTTP/1.1\r\n\r\n",
                "plain example.com:80",
            ),
            (
                "POST http://example.com:8080 HTTP/1.0\r\n\r\n",
                "plain example.com:8080",
            ),
            ("GET http://[::1]/ HTTP/1.1\r\n\r\n", "plain [::1]:80"),
        ] {
            assert_eq!(target(head).as_deref(), Some(wanted), "{head}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for head in [
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "CONNECT example.com:+443 HTTP/1.1\r\n\r\n",
            // Another host to whoever ends lines at less, or reads what comes first.
            "GET http://example.com/ HTTP/1.1\r\nX: y\nHost: other\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nX: y\rHost: other\r\n\r\n",
            "GET http://example.com/a\nHost:\tother HTTP/1.1\r\n\r\n",
            "GET http://example.com/\0 HTTP/1.1\r\n\r\n",
            "CONNECT example.com:99999 HTTP/1.1\r\n\r\n",
            "CONNECT a:1 b:2 HTTP/1.1\r\n\r\n",
            "GET /relative HTTP/1.1\r\nHost: example.com\r\n\r\n",
            "GET https://example.com/ HTTP/1.1\r\n\r\n",
            "GET http://user@example.com/ HTTP/1.1\r\n\r\n",
            "GET http://example.com@evil.test/ HTTP/1.1\r\n\r\n",
            "GET http://example.com/ HTTP/2\r\n\r\n",
            "GET http://example.com/ HTTP/1.1 more\r\n\r\n",
            "GET http://example.com/a#b HTTP/1.1\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\n folded: x\r\n\r\n",
            "GET http://example.com/ HTTP/1.1\r\nbad name: x\r\n\r\n",
            "get http://example.com/ HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(target(head), None, "{head}");
        }
    }

    #[test]
    fn a_plain_request_carries_the_checked_host_and_nothing_for_proxies() {
        let head = b"GET http://a.test:81/x HTTP/1.1\r\nHost: b.test\r\nProxy-Authorization: s\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n";
        let Some(Request::Plain(_, sent)) = read(head) else {
            panic!("not plain");
        };
        assert_eq!(
            String::from_utf8(sent).unwrap(),
            "GET /x HTTP/1.1\r\nHost: a.test:81\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
    }
}
