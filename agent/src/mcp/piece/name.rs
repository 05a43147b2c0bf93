//! What the file of a piece is called: letters of its own, and an ending by which
//! programs know what it is.

use hermitcrab_core::letters;
use percent_encoding::percent_decode_str;

/// Letters of a name that are kept of what a server calls a document.
const LETTERS_MAX: usize = 150;
/// And bytes: a name on the disk has no more than 255, with what stands before it.
const BYTES_MAX: usize = 200;
/// Letters of an ending that is kept when a name is cut.
const ENDING_MAX: usize = 12;

const IMAGES: &[(&str, &str)] = &[
    ("image/jpeg", ".jpg"),
    ("image/jpg", ".jpg"),
    ("image/png", ".png"),
    ("image/gif", ".gif"),
    ("image/bmp", ".bmp"),
    ("image/webp", ".webp"),
];

const SOUNDS: &[(&str, &str)] = &[
    ("audio/wav", ".wav"),
    ("audio/x-wav", ".wav"),
    ("audio/wave", ".wav"),
    ("audio/mpeg", ".mp3"),
    ("audio/aac", ".aac"),
    ("audio/mp4", ".m4a"),
    ("audio/flac", ".flac"),
    ("audio/x-aiff", ".aif"),
    ("audio/basic", ".au"),
    ("audio/webm", ".webm"),
];

const DOCUMENTS: &[(&str, &str)] = &[
    ("application/pdf", ".pdf"),
    ("application/zip", ".zip"),
    ("application/gzip", ".gz"),
    ("application/x-tar", ".tar"),
    ("application/json", ".json"),
    ("application/xml", ".xml"),
    ("application/msword", ".doc"),
    ("application/vnd.ms-excel", ".xls"),
    ("application/vnd.ms-powerpoint", ".ppt"),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ".docx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ".xlsx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ".pptx",
    ),
    ("text/plain", ".txt"),
    ("text/html", ".html"),
    ("text/csv", ".csv"),
    ("text/markdown", ".md"),
    ("text/xml", ".xml"),
    ("video/mp4", ".mp4"),
    ("video/webm", ".webm"),
];

/// The ending of a picture's file.
pub(super) fn of_image(mime: &str) -> &'static str {
    ending(mime, IMAGES).unwrap_or(".png")
}

/// That of a sound's.
pub(super) fn of_audio(mime: &str) -> &'static str {
    ending(mime, SOUNDS).unwrap_or(".ogg")
}

/// What a document is called: the last name of its address, or what it is.
pub(super) fn of_document(uri: &str, mime: &str) -> String {
    let name = cut(&last_name(uri));
    match name.as_str() {
        "" | "." | ".." => {
            let known = [DOCUMENTS, IMAGES, SOUNDS];
            let ending = known.into_iter().find_map(|table| ending(mime, table));
            format!("resource{}", ending.unwrap_or(".bin"))
        }
        _ => name,
    }
}

fn ending(mime: &str, table: &[(&str, &'static str)]) -> Option<&'static str> {
    let mime = mime.split(';').next().unwrap_or_default().trim();
    table
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(mime))
        .map(|(_, ending)| *ending)
}

/// The last name of an address' path, without letters that draw on a screen.
fn last_name(uri: &str) -> String {
    let is_scheme = |text: &str| {
        text.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    };
    let rest = match uri.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ => uri,
    };
    let rest = match rest.strip_prefix("//") {
        Some(behind) => behind.split_once('/').map_or("", |(_, path)| path),
        None => rest,
    };
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let path = percent_decode_str(path).decode_utf8_lossy();
    let mut names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let name: String = names
        .next_back()
        .unwrap_or_default()
        .chars()
        .filter(|letter| !letter.is_control() && !letters::is_unseen(*letter))
        .collect();
    name.trim().to_owned()
}

/// As much of a name as is kept, with its ending.
fn cut(name: &str) -> String {
    let fits = |name: &str| name.chars().count() <= LETTERS_MAX && name.len() <= BYTES_MAX;
    if fits(name) {
        return name.to_owned();
    }
    let is_kept = |ending: &&str| {
        (1..=ENDING_MAX).contains(&ending.chars().count()) && ending.len() <= BYTES_MAX / 2
    };
    let (stem, ending) = match name.rsplit_once('.').filter(|(_, ending)| is_kept(ending)) {
        Some((stem, ending)) => (stem, format!(".{ending}")),
        None => (name, String::new()),
    };
    let mut kept = String::new();
    for letter in stem.chars().take(LETTERS_MAX - ending.chars().count()) {
        if kept.len() + letter.len_utf8() + ending.len() > BYTES_MAX {
            break;
        }
        kept.push(letter);
    }
    kept + &ending
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, LETTERS_MAX, of_audio, of_document, of_image};

    #[test]
    fn a_document_goes_by_the_last_name_of_its_address() {
        for (uri, mime, name) in [
            ("lib:shelf/a%20b.pdf", "", "a b.pdf"),
            ("file:///home/u/report.txt", "", "report.txt"),
            ("https://h.example/a/b.zip?x=1#y", "", "b.zip"),
            ("https://h.example", "application/pdf", "resource.pdf"),
            ("a/b/", "", "b"),
            ("a/.", "", "a"),
            ("f:..", "text/plain; charset=utf-8", "resource.txt"),
            ("", "later/kind", "resource.bin"),
            ("f:a%2Fb", "", "b"),
            ("f:a%0A\u{1b}[2J\u{202e}b", "", "a[2Jb"),
            ("f:%FF", "", "\u{fffd}"),
        ] {
            assert_eq!(of_document(uri, mime), name, "{uri}");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_its_ending() {
        let name = of_document(&format!("f:{}.pdf", "a".repeat(200)), "");
        assert_eq!(name, format!("{}.pdf", "a".repeat(LETTERS_MAX - 4)));
        let name = of_document(&format!("f:{}.pdf", "\u{20ac}".repeat(200)), "");
        assert!(name.ends_with("\u{20ac}.pdf") && name.len() <= BYTES_MAX);
        let name = of_document(&format!("f:a.{}", "b".repeat(200)), "");
        assert_eq!(name.len(), LETTERS_MAX);
    }

    #[test]
    fn an_ending_says_what_is_inside() {
        assert_eq!(of_image("IMAGE/JPEG; x=y"), ".jpg");
        assert_eq!(of_image("image/later"), ".png");
        assert_eq!(of_audio("audio/mpeg"), ".mp3");
        assert_eq!(of_audio(""), ".ogg");
    }
}
