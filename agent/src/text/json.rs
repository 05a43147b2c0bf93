//! JSON, with the extensions and the wording of the compared agent's parser.

use super::place;

/// Deeper nesting than this is a problem of its own.
const DEPTH_MAX: usize = 900;

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

type Fault = (usize, &'static str);

/// What is wrong with the text, if anything.
pub fn problem(text: &str) -> Option<String> {
    if text.starts_with('\u{feff}') {
        return Some(
            "JSONDecodeError: Unexpected UTF-8 BOM (decode using utf-8-sig) (line 1, column 1)"
                .into(),
        );
    }
    let mut reader = Reader { text, at: 0 };
    reader.blanks();
    let read = reader.value(0).and_then(|()| {
        reader.blanks();
        if reader.at == text.len() {
            Ok(())
        } else {
            Err((reader.at, "Extra data"))
        }
    });
    read.err().map(|(at, what)| {
        if what.is_empty() {
            return "RecursionError: maximum recursion depth exceeded while decoding a JSON object"
                .to_owned();
        }
        let (line, column) = place(text, at);
        format!("JSONDecodeError: {what} (line {line}, column {column})")
    })
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), Fault> {
        if depth > DEPTH_MAX {
            return Err((self.at, ""));
        }
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            _ => {
                for word in ["null", "true", "false", "NaN", "Infinity", "-Infinity"] {
                    if self.rest().starts_with(word) {
                        self.at += word.len();
                        return Ok(());
                    }
                }
                if self.number() {
                    Ok(())
                } else {
                    Err((start, "Expecting value"))
                }
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    /// Reads the longest number here; a lone tail such as `.` is left.
    fn number(&mut self) -> bool {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = if self.peek() == Some(b'0') {
            self.at += 1;
            1
        } else {
            self.digits()
        };
        if whole == 0 {
            self.at = start;
            return false;
        }
        let after_whole = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                self.at = after_whole;
            }
        }
        let after_fraction = self.at;
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                self.at = after_fraction;
            }
        }
        true
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            let at = self.at;
            match self.peek() {
                None => return Err((start, "Unterminated string starting at")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        None => return Err((start, "Unterminated string starting at")),
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.at += 1
                        }
                        Some(b'u') => {
                            let digits = self.rest().get(1..5).unwrap_or_default();
                            if digits.len() != 4
                                || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                            {
                                return Err((at + 1, "Invalid \\uXXXX escape"));
                            }
                            self.at += 5;
                        }
                        Some(_) => return Err((at, "Invalid \\escape")),
                    }
                }
                Some(byte) if byte < 0x20 => return Err((at, "Invalid control character at")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Fault> {
        const NAME: &str = "Expecting property name enclosed in double quotes";
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err((self.at, NAME));
            }
            self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err((self.at, "Expecting ':' delimiter"));
            }
            self.at += 1;
            self.blanks();
            self.value(depth + 1)?;
            self.blanks();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b',') => self.at += 1,
                _ => return Err((self.at, "Expecting ',' delimiter")),
            }
            self.blanks();
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Fault> {
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.blanks();
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b',') => self.at += 1,
                _ => return Err((self.at, "Expecting ',' delimiter")),
            }
            self.blanks();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::problem;

    fn check(text: &str, expected: Option<&str>) {
        let expected = expected.map(|what| format!("JSONDecodeError: {what}"));
        assert_eq!(problem(text), expected, "{text:?}");
    }

    #[test]
    fn valid_documents_have_no_problem() {
        for text in [
            "{}",
            " [1, -2.5e3, \"\\u00e9\"] ",
            "NaN",
            "\"x\"",
            "{\"a\": {\"b\": [null, true]}}",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn problems_are_worded_and_placed() {
        check("", Some("Expecting value (line 1, column 1)"));
        check(
            "{\"a\":1,}",
            Some("Expecting property name enclosed in double quotes (line 1, column 8)"),
        );
        check(
            "{\"a\" 1}",
            Some("Expecting ':' delimiter (line 1, column 6)"),
        );
        check("[1 2]", Some("Expecting ',' delimiter (line 1, column 4)"));
        check("[1,\n]", Some("Expecting value (line 2, column 1)"));
        check("{} x", Some("Extra data (line 1, column 4)"));
        check(
            "\"abc",
            Some("Unterminated string starting at (line 1, column 1)"),
        );
        check(
            "\"a\nb\"",
            Some("Invalid control character at (line 1, column 3)"),
        );
        check("\"\\q\"", Some("Invalid \\escape (line 1, column 2)"));
        check("01", Some("Extra data (line 1, column 2)"));
    }
}
