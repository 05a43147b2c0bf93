//! Python: what is certain from its tokens alone.
//!
//! Brackets that do not match and strings that do not end are errors whatever
//! the grammar says; nothing else is judged, so a text that passes here may
//! still be wrong.

use crate::text::place;

struct Scan<'t> {
    text: &'t str,
    at: usize,
    open: Vec<(u8, usize)>,
}

/// What is surely wrong with the text, if anything.
pub fn problem(text: &str) -> Option<String> {
    let mut scan = Scan {
        text,
        at: 0,
        open: Vec::new(),
    };
    let fault = scan.run().err().or_else(|| {
        scan.open
            .last()
            .map(|(bracket, at)| (*at, format!("'{}' was never closed", char::from(*bracket))))
    });
    fault.map(|(at, what)| {
        let (line, column) = place(text, at);
        format!("SyntaxError: {what} (line {line}, column {column})")
    })
}

type Fault = (usize, String);

impl Scan<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn run(&mut self) -> Result<(), Fault> {
        while let Some(byte) = self.byte(self.at) {
            match byte {
                b'#' => {
                    while self.byte(self.at).is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                b'"' | b'\'' => self.string(byte)?,
                b'(' | b'[' | b'{' => {
                    self.open.push((byte, self.at));
                    self.at += 1;
                }
                b')' | b']' | b'}' => self.close(byte)?,
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn close(&mut self, byte: u8) -> Result<(), Fault> {
        let shown = char::from(byte);
        let Some((opened, at)) = self.open.pop() else {
            return Err((self.at, format!("unmatched '{shown}'")));
        };
        let fits = matches!((opened, byte), (b'(', b')') | (b'[', b']') | (b'{', b'}'));
        if !fits {
            let (line, here) = (place(self.text, at).0, place(self.text, self.at).0);
            let where_opened = if line == here {
                String::new()
            } else {
                format!(" on line {line}")
            };
            return Err((
                self.at,
                format!(
                    "closing parenthesis '{shown}' does not match opening parenthesis '{}'{where_opened}",
                    char::from(opened)
                ),
            ));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self, quote: u8) -> Result<(), Fault> {
        let start = self.at;
        let triple = self.byte(start + 1) == Some(quote) && self.byte(start + 2) == Some(quote);
        self.at += if triple { 3 } else { 1 };
        loop {
            match self.byte(self.at) {
                Some(b'\\') => self.at += 2,
                Some(b'\n') | None if !triple => {
                    let line = place(self.text, start).0;
                    return Err((
                        start,
                        format!("unterminated string literal (detected at line {line})"),
                    ));
                }
                None => {
                    let line = place(self.text, self.text.trim_end_matches('\n').len()).0;
                    return Err((
                        start,
                        format!(
                            "unterminated triple-quoted string literal (detected at line {line})"
                        ),
                    ));
                }
                Some(byte) if byte == quote => {
                    if !triple {
                        self.at += 1;
                        return Ok(());
                    }
                    if self.byte(self.at + 1) == Some(quote)
                        && self.byte(self.at + 2) == Some(quote)
                    {
                        self.at += 3;
                        return Ok(());
                    }
                    self.at += 1;
                }
                Some(_) => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::problem;

    fn check(text: &str, expected: Option<&str>) {
        let expected = expected.map(|what| format!("SyntaxError: {what}"));
        assert_eq!(problem(text), expected, "{text:?}");
    }

    #[test]
    fn ordinary_programs_pass() {
        check("def f(a):\n    return [a, {'b': \"(\"}]  # )\n", None);
        check("x = '''(\n'' \"\"\" '''\ny = \"\\\"\"\nz = ''\n", None);
    }

    #[test]
    fn brackets_and_strings_must_end() {
        check("x=(\n", Some("'(' was never closed (line 1, column 3)"));
        check("x = )\n", Some("unmatched ')' (line 1, column 5)"));
        check(
            "x = (1]\n",
            Some(
                "closing parenthesis ']' does not match opening parenthesis '(' (line 1, column 7)",
            ),
        );
        check(
            "x = 'a\n",
            Some("unterminated string literal (detected at line 1) (line 1, column 5)"),
        );
        check(
            "x = '''a\n\n",
            Some(
                "unterminated triple-quoted string literal (detected at line 1) (line 1, column 5)",
            ),
        );
    }
}
