//! The `id` of a request whose line is not kept: looked for byte by byte.

use serde_json::Value;

/// The longest id and the longest key that are looked at.
const KEPT_BYTES_MAX: usize = 256;

/// Reads past a JSON object and keeps the top level's `id`, and whether there
/// was a `method`. It trusts nothing: what it keeps is parsed in the end.
#[derive(Debug, Default)]
pub struct IdScan {
    depth: u64,
    in_string: bool,
    escaped: bool,
    in_value: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    id: Option<Value>,
    has_method: bool,
}

impl IdScan {
    /// The next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    /// The request's id; `None` if it is no request, or has none that could be
    /// answered.
    pub fn id(mut self) -> Option<Value> {
        self.end_member();
        if self.has_method { self.id } else { None }
    }

    fn take(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.keep(byte);
                self.depth = self.depth.saturating_add(1);
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.end_member();
                } else {
                    self.keep(byte);
                }
            }
            b':' if self.depth == 1 => self.in_value = true,
            b',' if self.depth == 1 => self.end_member(),
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let kept = match (self.depth, self.in_value) {
            (1.., true) => &mut self.value,
            (1, false) => &mut self.key,
            _ => return,
        };
        // One more than is looked at, so that what is too long is seen to be.
        if kept.len() <= KEPT_BYTES_MAX {
            kept.push(byte);
        }
    }

    fn end_member(&mut self) {
        self.in_value = false;
        let key = std::mem::take(&mut self.key);
        let value = std::mem::take(&mut self.value);
        if key.len() > KEPT_BYTES_MAX {
            return;
        }
        match serde_json::from_slice::<String>(&key).as_deref() {
            Ok("method") => self.has_method = true,
            Ok("id") if value.len() <= KEPT_BYTES_MAX => {
                self.id = serde_json::from_slice::<Value>(&value)
                    .ok()
                    .filter(|id| id.is_string() || id.is_number());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::IdScan;

    #[test]
    fn only_the_id_of_a_request_counts() {
        let check = |text: &str, expected: Option<serde_json::Value>| {
            let mut scan = IdScan::default();
            scan.push(text.as_bytes());
            assert_eq!(scan.id(), expected, "{text}");
        };
        check(r#"{"id":1,"method":"a"}"#, Some(json!(1)));
        check(
            r#"{"method":"a","params":{"id":2},"id":"x\"y"}"#,
            Some(json!("x\"y")),
        );
        check(r#"{"method":"a","params":[{"id":2}]}"#, None);
        check(r#"{"id":1,"result":{"method":"a"}}"#, None);
        check(r#"{"id":{"a":1},"method":"a"}"#, None);
        check(r#"[{"id":1,"method":"a"}]"#, None);
        check(r#"{"method":"a","id":7"#, Some(json!(7)));
        check("}}}}:::,,,\"", None);
    }
}
