//! The packages office documents are: archives with XML in them.

use std::io::{Cursor, Read as _};

use roxmltree::{Document, Node};
use zip::ZipArchive;

/// Bytes of one part after unpacking. A small archive can claim to hold anything.
const PART_BYTES_MAX: u64 = 64 << 20;

/// An archive that is open.
pub struct Package<'c>(ZipArchive<Cursor<&'c [u8]>>);

impl<'c> Package<'c> {
    /// Opens one; `None` if it is none.
    pub fn open(content: &'c [u8]) -> Option<Self> {
        ZipArchive::new(Cursor::new(content)).ok().map(Self)
    }

    /// Is there a part of this name?
    pub fn has(&self, name: &str) -> bool {
        self.0.index_for_name(name).is_some()
    }

    /// A part as a text; `None` if it is not there, is none, or is too long.
    pub fn part(&mut self, name: &str) -> Option<String> {
        let part = self.0.by_name(name).ok()?;
        let mut bytes = Vec::new();
        part.take(PART_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > PART_BYTES_MAX {
            return None;
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// The XML of a part, which declares no entities; `None` if it is not well formed.
pub fn parsed(part: &str) -> Option<Document<'_>> {
    Document::parse(part).ok()
}

/// The text of an element up to its first child.
pub fn text_of(node: Node<'_, '_>) -> String {
    let children = node.children().take_while(|child| !child.is_element());
    children
        .filter(Node::is_text)
        .filter_map(|child| child.text())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::super::Kind;
    use super::{PART_BYTES_MAX, Package};

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
    fn what_declares_entities_is_not_read() {
        let xml = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]>\
                   <w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
                   <w:p><w:r><w:t>&b;</w:t></w:r></w:p></w:document>";
        let whole = archive("word/document.xml", |archive| {
            archive.write_all(xml.as_bytes()).unwrap();
        });
        assert_eq!(Kind::Letter.text(&whole), None);
    }
}
