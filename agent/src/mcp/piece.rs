//! What a server sends that is no text: pictures, sounds and documents.
//!
//! Here it is read from an answer and given a name; whether it is kept, and
//! where, is for a capability to say. Nothing a server says decides in which
//! directory a file lies. Pure.

mod name;

use data_encoding::BASE64_NOPAD;
use serde_json::Value;

/// One such piece.
#[derive(Clone, PartialEq, Eq)]
pub struct Piece {
    kind: Kind,
    mime: String,
    uri: String,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Audio,
    Document,
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Piece")
            .field("kind", &self.kind)
            .field("mime", &self.mime)
            .field("uri", &self.uri)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

impl Piece {
    /// The piece a block is; `None` if it is none, words if no bytes can be made of it.
    pub(super) fn of(block: &Value) -> Option<Result<Self, String>> {
        let of = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let (kind, whole, data) = match block["type"].as_str()? {
            "image" => (Kind::Image, block, block["data"].as_str().unwrap_or("A")),
            "audio" => (Kind::Audio, block, block["data"].as_str().unwrap_or("A")),
            "resource" => {
                let whole = &block["resource"];
                (Kind::Document, whole, whole["blob"].as_str()?)
            }
            _ => return None,
        };
        let piece = Self {
            kind,
            mime: of(whole, "mimeType"),
            uri: of(whole, "uri"),
            bytes: Vec::new(),
        };
        Some(match decoded(data) {
            Some(bytes) => Ok(Self { bytes, ..piece }),
            None => Err(match kind {
                Kind::Image | Kind::Audio => piece.unkept(Some("no bytes can be made of it")),
                Kind::Document => format!(
                    "[MCP embedded resource could not be decoded: {}]",
                    piece.called()
                ),
            }),
        })
    }

    /// What it is made of.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Why it is not kept whoever grants it, if so.
    #[must_use]
    pub fn flaw(&self) -> Option<&'static str> {
        (self.kind == Kind::Image && !is_picture(&self.bytes))
            .then_some("what it is made of is no picture")
    }

    /// The directory for such pieces that it comes into.
    #[must_use]
    pub const fn shelf(&self) -> &'static str {
        match self.kind {
            Kind::Image => "images",
            Kind::Audio => "audio",
            Kind::Document => "documents",
        }
    }

    /// The file it is kept in, seen from the directory for such pieces, with letters
    /// that no other piece's name has.
    #[must_use]
    pub fn file(&self, drawn: &str) -> String {
        let name = match self.kind {
            Kind::Image => format!("img_{drawn}{}", name::of_image(&self.mime)),
            Kind::Audio => format!("audio_{drawn}{}", name::of_audio(&self.mime)),
            Kind::Document => {
                let name = name::of_document(&self.uri, &self.mime);
                format!("doc_{drawn}_{name}")
            }
        };
        format!("{}/{name}", self.shelf())
    }

    /// The line of the result once it lies at this path.
    #[must_use]
    pub fn kept_at(&self, path: &str) -> String {
        if self.kind != Kind::Document {
            return format!("MEDIA:{path}");
        }
        let mime = match self.mime.as_str() {
            "" => "unknown type",
            mime => mime,
        };
        format!(
            "[MCP resource saved to {path} ({mime}, {} bytes) \u{2014} read it with read_file or terminal tools]",
            self.bytes.len()
        )
    }

    /// The line of the result where it is not kept, and why if that is known.
    #[must_use]
    pub fn unkept(&self, why: Option<&str>) -> String {
        let what = match self.kind {
            Kind::Image => "image not kept",
            Kind::Audio => "audio not kept",
            Kind::Document => "embedded resource could not be cached",
        };
        let called = self.called();
        match why {
            Some(why) => format!("[MCP {what}: {called} ({why})]"),
            None => format!("[MCP {what}: {called}]"),
        }
    }

    /// What the server says it is, or where it lies there.
    #[must_use]
    pub fn called(&self) -> &str {
        match self.mime.as_str() {
            "" => &self.uri,
            mime => mime,
        }
    }
}

/// The bytes of a text in base64 as Python's decoder reads it: letters that mean
/// nothing are passed over, what stands after the padding as well.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut quad, mut pads) = (0_usize, 0);
    let mut letters = Vec::with_capacity(text.len());
    if !text.is_ascii() {
        return None;
    }
    let mut is_whole = false;
    for letter in text.bytes() {
        match letter {
            b'=' if quad >= 2 => {
                pads += 1;
                if quad + pads >= 4 {
                    is_whole = true;
                    break;
                }
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => {
                pads = 0;
                quad = (quad + 1) % 4;
                letters.push(letter);
            }
            _ => {}
        }
    }
    if !is_whole && quad != 0 {
        return None;
    }
    // What is left over of the last letter is passed over, too.
    let mut lenient = BASE64_NOPAD.specification();
    lenient.check_trailing_bits = false;
    lenient.encoding().ok()?.decode(&letters).ok()
}

/// Whether bytes begin as those of a picture do, of the kinds that are kept.
fn is_picture(bytes: &[u8]) -> bool {
    let begins = |with: &[u8]| bytes.starts_with(with);
    begins(b"\x89PNG\r\n\x1a\n")
        || begins(b"\xff\xd8\xff")
        || begins(b"GIF87a")
        || begins(b"GIF89a")
        || (begins(b"BM") && bytes.len() >= 4)
        || (begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Piece, decoded};

    fn piece(block: Value) -> Piece {
        Piece::of(&block).expect("a piece").expect("bytes")
    }

    #[test]
    fn bytes_are_those_python_makes_of_a_text() {
        // What the decoder of Python 3.11 says of each.
        let none: Option<&[u8]> = None;
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("AAEC", Some(b"\x00\x01\x02")),
            ("AA==", Some(b"\x00")),
            ("AB==", Some(b"\x00")),
            ("AAE=", Some(b"\x00\x01")),
            ("A A\n=%=", Some(b"\x00")),
            ("AA==AAA", Some(b"\x00")),
            ("====", Some(b"")),
            ("%", Some(b"")),
            ("A", none),
            ("AA", none),
            ("AA=", none),
            ("AA=A", none),
            ("A===", none),
            ("AAEC\u{e9}", none),
        ] {
            assert_eq!(decoded(text).as_deref(), bytes, "{text:?}");
        }
    }

    #[test]
    fn each_kind_has_its_place_and_its_words() {
        let picture =
            piece(json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}));
        assert_eq!(picture.flaw(), None);
        assert_eq!(picture.file("0a"), "images/img_0a.png");
        assert_eq!(picture.kept_at("/c/i.png"), "MEDIA:/c/i.png");
        let sound = piece(json!({"type": "audio", "mimeType": "audio/x-wav", "data": "AA=="}));
        assert_eq!(sound.file("0a"), "audio/audio_0a.wav");
        assert_eq!(
            sound.unkept(Some("no")),
            "[MCP audio not kept: audio/x-wav (no)]"
        );
        let document =
            piece(json!({"type": "resource", "resource": {"uri": "f:a/b.pdf", "blob": "AAEC"}}));
        assert_eq!(document.file("0a"), "documents/doc_0a_b.pdf");
        assert_eq!(
            document.kept_at("/c/d"),
            "[MCP resource saved to /c/d (unknown type, 3 bytes) \u{2014} read it with read_file or terminal tools]"
        );
        assert_eq!(
            document.unkept(None),
            "[MCP embedded resource could not be cached: f:a/b.pdf]"
        );
    }

    #[test]
    fn what_is_called_a_picture_and_is_none_has_a_flaw() {
        let page = piece(json!({"type": "image", "mimeType": "image/png", "data": "PGh0bWw+"}));
        assert!(page.flaw().is_some());
        let document =
            piece(json!({"type": "resource", "resource": {"uri": "f", "blob": "PGh0bWw+"}}));
        assert_eq!(document.flaw(), None);
    }

    #[test]
    fn what_no_bytes_can_be_made_of_is_told_and_what_is_no_piece_is_none() {
        for (block, words) in [
            (
                json!({"type": "resource", "resource": {"uri": "f:b", "blob": "A"}}),
                "[MCP embedded resource could not be decoded: f:b]",
            ),
            (
                json!({"type": "image", "mimeType": "image/png"}),
                "[MCP image not kept: image/png (no bytes can be made of it)]",
            ),
        ] {
            assert_eq!(Piece::of(&block), Some(Err(words.to_owned())), "{block}");
        }
        for none in [
            json!({"type": "text", "text": ""}),
            json!({"type": "resource", "resource": {"uri": "f"}}),
            json!({"type": "later"}),
            json!(5),
        ] {
            assert_eq!(Piece::of(&none), None, "{none}");
        }
    }
}
