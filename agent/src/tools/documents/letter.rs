//! Letters (`.docx`) as a text: their paragraphs, one after the other.

use super::package::{Package, Room, parsed, text_of};

const NS: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

/// What is read in place of a letter; `None` if this is none, or has no text.
#[must_use]
pub fn text(content: &[u8]) -> Option<String> {
    let part = Package::open(content)?.part("word/document.xml")?;
    let document = parsed(&part)?;
    let mut room = Room::default();
    let mut lines: Vec<String> = Vec::new();
    for paragraph in document.descendants() {
        room.look()?;
        if !paragraph.has_tag_name((NS, "p")) {
            continue;
        }
        let mut said = String::new();
        for node in paragraph.descendants() {
            room.look()?;
            match node.tag_name().name() {
                _ if node.tag_name().namespace() != Some(NS) => {}
                "t" => said.push_str(&text_of(node, &mut room)?),
                "tab" => said.push('\t'),
                "br" | "cr" => {
                    room.tell(size_of::<String>())?;
                    said.push('\n');
                }
                _ => {}
            }
        }
        room.tell(size_of::<String>())?;
        lines.extend(said.split('\n').map(str::to_owned));
    }
    if lines.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    Some(format!("{}\n", lines.join("\n").trim_end_matches('\n')))
}
