//! The packages office documents are: archives with XML in them.

use std::io::{Cursor, Read as _};

use roxmltree::{Document, Node, ParsingOptions};
use zip::ZipArchive;

/// Bytes of one part after unpacking. A small archive can claim to hold anything.
const PART_BYTES_MAX: u64 = 64 << 20;
/// Bytes of all parts together: one may be named many times.
const PARTS_BYTES_MAX: u64 = 2 * PART_BYTES_MAX;
/// Elements and texts of one part.
const NODES_MAX: u32 = 1 << 22;
/// Elements and texts looked at for one document: one in many others is looked at for
/// each of them.
const LOOKS_MAX: usize = 1 << 24;
/// Bytes of a document told as a text: one text may be named by every cell.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// An archive that is open.
pub struct Package<'c> {
    archive: ZipArchive<Cursor<&'c [u8]>>,
    bytes_left: u64,
}

/// How much of a document may still be looked at and told.
pub struct Room {
    looks: usize,
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            looks: LOOKS_MAX,
            bytes: TEXT_BYTES_MAX,
        }
    }
}

impl Room {
    /// One more element or text is looked at; `None` if that is one too many.
    pub fn look(&mut self) -> Option<()> {
        self.looks = self.looks.checked_sub(1)?;
        Some(())
    }

    /// So much more is told; `None` if that is too much.
    pub fn tell(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }
}

impl<'c> Package<'c> {
    /// Opens one; `None` if it is none.
    pub fn open(content: &'c [u8]) -> Option<Self> {
        let archive = ZipArchive::new(Cursor::new(content)).ok()?;
        Some(Self {
            archive,
            bytes_left: PARTS_BYTES_MAX,
        })
    }

    /// Is there a part of this name?
    pub fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// A part as a text; `None` if it is not there, is none, or is too long.
    pub fn part(&mut self, name: &str) -> Option<String> {
        let bytes_max = PART_BYTES_MAX.min(self.bytes_left);
        let part = self.archive.by_name(name).ok()?;
        let mut bytes = Vec::new();
        part.take(bytes_max + 1).read_to_end(&mut bytes).ok()?;
        self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
        if bytes.len() as u64 > bytes_max {
            return None;
        }
        decoded(bytes)
    }
}

/// XML as a text, in the letters it says it is in: those every reader of XML knows.
fn decoded(bytes: Vec<u8>) -> Option<String> {
    let pairs = |bytes: &[u8], join: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let letters = char::decode_utf16(pairs.iter().copied().map(join));
        rest.is_empty()
            .then(|| letters.collect::<Result<String, _>>().ok())
            .flatten()
    };
    match *bytes.as_slice() {
        [0xef, 0xbb, 0xbf, ref rest @ ..] => return String::from_utf8(rest.to_vec()).ok(),
        [0xff, 0xfe, ref rest @ ..] => return pairs(rest, u16::from_le_bytes),
        [0xfe, 0xff, ref rest @ ..] => return pairs(rest, u16::from_be_bytes),
        _ => {}
    }
    match declared(&bytes).as_deref() {
        // The first 256 letters are those bytes.
        Some("iso-8859-1") => Some(bytes.into_iter().map(char::from).collect()),
        Some("us-ascii") if !bytes.is_ascii() => None,
        _ => String::from_utf8(bytes).ok(),
    }
}

/// The letters a part says it is in, in small ones.
fn declared(bytes: &[u8]) -> Option<String> {
    let head = bytes.strip_prefix(b"<?xml")?;
    let end = head.iter().position(|byte| *byte == b'>')?;
    let head = std::str::from_utf8(head.get(..end)?).ok()?;
    let (_, after) = head.split_once("encoding")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = after
        .chars()
        .next()
        .filter(|first| "\"'".contains(*first))?;
    let (name, _) = after.get(1..)?.split_once(quote)?;
    Some(name.to_ascii_lowercase())
}

/// The XML of a part, which declares no entities; `None` if it is not well formed.
pub fn parsed(part: &str) -> Option<Document<'_>> {
    let options = ParsingOptions {
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(part, options).ok()
}

/// The text of an element up to its first child; `None` if there is no room for it.
pub fn text_of(node: Node<'_, '_>, room: &mut Room) -> Option<String> {
    let mut said = String::new();
    for child in node.children().take_while(|child| !child.is_element()) {
        room.look()?;
        if child.is_text()
            && let Some(text) = child.text()
        {
            room.tell(text.len())?;
            said.push_str(text);
        }
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::super::Kind;
    use super::{PART_BYTES_MAX, Package, decoded};

    fn archive(name: &str, write: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive
            .start_file(name, SimpleFileOptions::default())
            .unwrap();
        write(&mut archive);
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn a_part_that_unpacks_to_more_than_is_read_is_none() {
        let zeros = vec![b' '; 1 << 20];
        let of = |pieces: u64| {
            archive("word/document.xml", |archive| {
                for _ in 0..pieces {
                    archive.write_all(&zeros).unwrap();
                }
            })
        };
        let pieces = PART_BYTES_MAX >> 20;
        let whole = of(pieces);
        assert!(whole.len() < 1 << 20, "{}", whole.len());
        let part = |content: &[u8]| Package::open(content).unwrap().part("word/document.xml");
        assert_eq!(part(&whole).unwrap().len() as u64, PART_BYTES_MAX);
        let longer = of(pieces + 1);
        assert_eq!(part(&longer), None);
        assert_eq!(Kind::Letter.text(&longer), None);
    }

    #[test]
    fn what_is_cut_off_or_changed_anywhere_is_read_or_not_and_never_stops_the_program() {
        let xml = "<w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
                   <w:p><w:r><w:t>said</w:t></w:r></w:p></w:document>";
        let whole = archive("word/document.xml", |archive| {
            archive.write_all(xml.as_bytes()).unwrap();
        });
        assert_eq!(Kind::Letter.text(&whole).unwrap(), "said\n");
        assert_eq!(Kind::Sheets.text(&whole), None);
        for end in 0..whole.len() {
            assert_eq!(Kind::Letter.text(&whole[..end]), None, "{end}");
        }
        for place in 0..whole.len() {
            for change in [1_u8, 0x80, 0xff] {
                let mut other = whole.clone();
                other[place] ^= change;
                let text = Kind::Letter.text(&other);
                assert!(
                    text.is_none() || text.as_deref() == Some("said\n"),
                    "{place}: {text:?}"
                );
            }
        }
    }

    #[test]
    fn a_part_is_read_in_the_letters_it_says_it_is_in() {
        let two = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(bytes).collect()
        };
        let of = |mark: &[u8], rest: Vec<u8>| decoded([mark, &rest].concat());
        let text = "<a>caf\u{e9} \u{1f600}</a>";
        let read = Some(text.to_owned());
        assert_eq!(of(b"\xff\xfe", two(text, u16::to_le_bytes)), read);
        assert_eq!(of(b"\xfe\xff", two(text, u16::to_be_bytes)), read);
        assert_eq!(of(b"\xef\xbb\xbf", text.as_bytes().to_vec()), read);
        assert_eq!(of(b"", text.as_bytes().to_vec()), read);
        let latin = b"<?xml version='1.0' encoding = 'ISO-8859-1'?><a>\xe9</a>";
        assert!(decoded(latin.to_vec()).unwrap().ends_with("<a>\u{e9}</a>"));
        for wrong in [
            b"\xff\xfe<".to_vec(),
            b"\xff\xfe\x00\xd8".to_vec(),
            b"<a>\xe9</a>".to_vec(),
            b"<?xml encoding=\"US-ASCII\"?><a>\xc3\xa9</a>".to_vec(),
            b"<?xml encoding=\"windows-1252\"?><a>\x80</a>".to_vec(),
        ] {
            assert_eq!(decoded(wrong.clone()), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_declares_entities_is_not_read() {
        let xml = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>\
                   <w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
                   <w:p><w:r><w:t>&b;</w:t></w:r></w:p></w:document>";
        let whole = archive("word/document.xml", |archive| {
            archive.write_all(xml.as_bytes()).unwrap();
        });
        assert_eq!(Kind::Letter.text(&whole), None);
    }

    const LETTER: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";
    const SHEET: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";

    fn letter(body: &str) -> Option<String> {
        let xml = format!("<w:document {LETTER}>{body}</w:document>");
        let whole = archive("word/document.xml", |archive| {
            archive.write_all(xml.as_bytes()).unwrap();
        });
        Kind::Letter.text(&whole)
    }

    /// Sheets that all lead to one part.
    fn sheets(count: usize, sheet: &str, shared: &str) -> Option<String> {
        let links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let package = "http://schemas.openxmlformats.org/package/2006/relationships";
        let one = "<sheet name=\"s\" r:id=\"a\"/>";
        let parts = [
            (
                "xl/_rels/workbook.xml.rels",
                format!("<R xmlns=\"{package}\"><Relationship Id=\"a\" Target=\"s.xml\"/></R>"),
            ),
            (
                "xl/sharedStrings.xml",
                format!("<sst {SHEET}><si><t>{shared}</t></si></sst>"),
            ),
            ("xl/s.xml", format!("<d {SHEET}>{sheet}</d>")),
        ];
        let book = format!("<b {SHEET} xmlns:r=\"{links}\">{}</b>", one.repeat(count));
        let whole = archive("xl/workbook.xml", |archive| {
            archive.write_all(book.as_bytes()).unwrap();
            for (name, xml) in parts {
                archive
                    .start_file(name, SimpleFileOptions::default())
                    .unwrap();
                archive.write_all(xml.as_bytes()).unwrap();
            }
        });
        Kind::Sheets.text(&whole)
    }

    #[test]
    fn what_says_more_than_it_holds_is_not_told() {
        let nested = |depth: usize, text: &str| {
            letter(&format!(
                "{}<w:t>{text}</w:t>{}",
                "<w:p>".repeat(depth),
                "</w:p>".repeat(depth)
            ))
        };
        assert_eq!(nested(3, "x").unwrap(), "x\nx\nx\n");
        // Each paragraph tells what is in those it holds.
        assert_eq!(nested(8_000, "x"), None);
        assert_eq!(nested(200, &"x".repeat(1 << 20)), None);
        assert_eq!(letter(&"<w:p/>".repeat(1 << 22)), None);

        let cell = "<c t=\"s\"><v>0</v></c>";
        let row = |cells: usize| format!("<row>{}</row>", cell.repeat(cells));
        let told = sheets(2, &row(2), "x").unwrap();
        assert_eq!(
            told,
            "# \u{2500}\u{2500} Sheet: s \u{2500}\u{2500}\nx\tx\n\n"
                .repeat(2)
                .trim_end()
                .to_owned()
                + "\n"
        );
        assert_eq!(sheets(1, &row(200), &"x".repeat(1 << 20)), None);
        let rows = "<row>".repeat(5_000) + cell + &"</row>".repeat(5_000);
        assert_eq!(sheets(2, &rows, "x"), None);
        let long = format!("{}<!--{}-->", row(1), "x".repeat(1 << 20));
        let told = sheets(1_000, &long, "x").unwrap();
        assert!(told.matches("Sheet: s").count() < 150);
    }

    #[test]
    fn what_is_nested_as_deep_as_it_can_be_does_not_stop_the_program() {
        let depth = 1 << 20;
        let body = "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert_eq!(letter(&body), None);
    }
}
