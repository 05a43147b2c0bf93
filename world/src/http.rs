//! As much of HTTP as a stand-in on a world's loopback needs.

use std::io::{self, BufRead, Write};

/// The longest request that is read.
const BODY_BYTES_MAX: usize = 16 << 20;
/// A header that says what a body is.
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
/// The same for a stream of events.
pub(crate) const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

/// One request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET`, `POST`, ...
    pub(crate) method: String,
    /// Names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A header, by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The next request of a connection; `None` at its end.
pub(crate) fn request(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut first = String::new();
    if from.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut request = Request {
        method: first.split(' ').next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            let header = (name.to_ascii_lowercase(), value.trim().to_owned());
            request.headers.push(header);
        }
    }
    let length = request.header("content-length");
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; BODY_BYTES_MAX.min(length)];
    from.read_exact(&mut request.body)?;
    Ok(Some(request))
}

/// One answer.
pub(crate) fn respond(
    to: &mut impl Write,
    status: &str,
    headers: &[(&str, &str)],
    text: &str,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", text.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    to.write_all(format!("{head}\r\n").as_bytes())?;
    to.write_all(text.as_bytes())?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::{JSON, request, respond};

    #[test]
    fn requests_come_one_after_the_other_and_end_with_the_connection() {
        let mut said: &[u8] =
            b"POST /x HTTP/1.1\r\nContent-Length: 2\r\nKey: a b \r\n\r\n{}GET / HTTP/1.1\r\n\r\n";
        let first = request(&mut said).unwrap().unwrap();
        assert_eq!((&*first.method, &*first.body), ("POST", &b"{}"[..]));
        assert_eq!(first.header("key"), Some("a b"));
        assert_eq!(request(&mut said).unwrap().unwrap().method, "GET");
        assert_eq!(request(&mut said).unwrap(), None);
        let mut cut: &[u8] = b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n{}";
        assert!(request(&mut cut).is_err());
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let mut told = Vec::new();
        respond(&mut told, "200 OK", &[JSON], "{}").unwrap();
        assert_eq!(
            String::from_utf8(told).unwrap(),
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}"
        );
    }
}
