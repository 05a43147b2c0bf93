//! Rule `drawn-file-names`: under which name Hermes keeps what a server of tools sent.
//!
//! This must take out nothing but the letters that are drawn by chance.

use serde_json::Value;

use super::each_field;

/// What the names of such tools begin with.
const SERVERS_TOOLS: &str = "mcp__";
/// Where Hermes keeps them, up to what is drawn.
const PLACES: [&str; 3] = [
    "/home/u/.hermes/cache/images/img_",
    "/home/u/.hermes/cache/audio/audio_",
    "/home/u/.hermes/cache/documents/doc_",
];
/// Letters that are drawn.
const DRAWN: usize = 12;

/// The result of a server's tool without them; every other letter as it is.
pub fn without_drawn_names(tool: &str, value: &mut Value) {
    if !tool.starts_with(SERVERS_TOOLS) {
        return;
    }
    each_field(value, &mut |_, field| {
        if let Value::String(text) = field {
            for place in PLACES {
                *text = plain(text, place);
            }
        }
    });
}

fn plain(text: &str, place: &str) -> String {
    let mut parts = text.split(place);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        told.push_str(place);
        let drawn = part.get(..DRAWN).unwrap_or_default();
        let is_drawn = drawn.len() == DRAWN && drawn.bytes().all(|b| b.is_ascii_hexdigit());
        told.push_str(if is_drawn { "<drawn>" } else { drawn });
        told.push_str(part.get(drawn.len()..).unwrap_or_default());
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::without_drawn_names;

    fn check(tool: &str, text: &str, expected: &str) {
        let mut value = json!({"result": text});
        without_drawn_names(tool, &mut value);
        assert_eq!(value["result"], expected, "{text}");
    }

    #[test]
    fn only_what_is_drawn_is_taken_out() {
        let kept = "a\nMEDIA:/home/u/.hermes/cache/images/img_0123456789ab.png";
        let plain = "a\nMEDIA:/home/u/.hermes/cache/images/img_<drawn>.png";
        check("mcp__desk__picture", kept, plain);
        check("read_file", kept, kept);
        let saved = "[saved to /home/u/.hermes/cache/documents/doc_0123456789ab_a b (x)]";
        check(
            "mcp__desk__blob",
            saved,
            "[saved to /home/u/.hermes/cache/documents/doc_<drawn>_a b (x)]",
        );
        for other in [
            "MEDIA:/home/u/.hermes/cache/images/img_nothing.png",
            "MEDIA:/home/u/.hermes/cache/images/img_\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}.png",
            "MEDIA:/home/u/proj/img_0123456789ab.png",
        ] {
            check("mcp__desk__picture", other, other);
        }
    }
}
