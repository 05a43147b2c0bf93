//! What `.env` calls by name, in every way Hermes' own reader takes it.
//!
//! A value is struck out of every output, so a writing that is missed here is a secret that
//! is told. Where two readings are possible both are taken: too much struck out is a nuisance.

/// A file of such lines as text: what is not UTF-8 is Latin-1 to Hermes, and UTF-16 where its
/// mark says so.
pub(super) fn decoded(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).filter_map(|two| match two {
            [first, second] => Some(unit([*first, *second])),
            _ => None,
        });
        let letters = char::decode_utf16(units);
        letters
            .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => text.trim_start_matches('\u{feff}').to_owned(),
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
        },
    }
}

/// Each name, and what its value may be.
pub(super) fn entries(text: &str) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let whole = rest;
        rest = after;
        let Some((name, value)) = named(line) else {
            continue;
        };
        let mut values = plain(value);
        if let Some(quote) = value
            .chars()
            .next()
            .filter(|letter| "'\"".contains(*letter))
        {
            // What is quoted goes on over the ends of lines.
            let from = line.len() - value.len() + quote.len_utf8();
            if let Some((inner, beyond)) = whole.get(from..).and_then(|text| quoted(text, quote)) {
                values.extend(inner_values(inner));
                if inner.contains('\n') {
                    rest = beyond.split_once('\n').map_or("", |(_, after)| after);
                }
            }
        }
        all.push((name.to_owned(), values));
    }
    all
}

/// The name of a line, and all that stands behind it.
fn named(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let exported = line.strip_prefix("export");
    let line = exported
        .filter(|rest| rest.starts_with(char::is_whitespace))
        .unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim().trim_matches('\'');
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name, value.trim()))
}

/// The readings of a value on one line: as it stands, and without what comments on it.
fn plain(value: &str) -> Vec<String> {
    let mut values = vec![value.to_owned(), value.trim_matches(['"', '\'']).to_owned()];
    let mut before = ' ';
    for (at, letter) in value.char_indices() {
        if letter == '#' && before.is_whitespace() {
            values.push(value.get(..at).unwrap_or_default().trim().to_owned());
            break;
        }
        before = letter;
    }
    values
}

/// What stands before the quotation mark that ends it, and what comes after that.
fn quoted(text: &str, quote: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        if letter == quote && !escaped {
            let beyond = text.get(at + letter.len_utf8()..)?;
            return Some((text.get(..at)?, beyond));
        }
        escaped = letter == '\\' && !escaped;
    }
    None
}

/// The readings of what is quoted: as it stands, without its escapes, and line by line.
fn inner_values(inner: &str) -> Vec<String> {
    let mut read = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            read.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => read.push('\n'),
            Some('r') => read.push('\r'),
            Some('t') => read.push('\t'),
            Some(other @ ('\\' | '\'' | '"')) => read.push(other),
            Some(other) => read.extend(['\\', other]),
            None => read.push('\\'),
        }
    }
    let lines: Vec<String> = read.lines().map(|line| line.trim().to_owned()).collect();
    let mut values = vec![inner.to_owned(), read];
    values.extend(lines);
    values
}

#[cfg(test)]
mod tests {
    use super::{decoded, entries};

    fn values(text: &str, name: &str) -> Vec<String> {
        let all = entries(text).into_iter().filter(|(known, _)| known == name);
        all.flat_map(|(_, values)| values).collect()
    }

    #[test]
    fn every_writing_of_a_value_is_known() {
        for (line, value) in [
            ("A_KEY=plain value 7", "plain value 7"),
            ("A_KEY = spaced value 7 ", "spaced value 7"),
            ("export A_KEY=exported 7", "exported 7"),
            ("export\tA_KEY=exported 7", "exported 7"),
            ("A_KEY=before it # a comment", "before it"),
            ("A_KEY=has#no comment", "has#no comment"),
            ("A_KEY='single # quoted' # c", "single # quoted"),
            ("A_KEY=\"say \\\"hello\\\"\" # c", "say \"hello\""),
            ("A_KEY=\"first line\nsecond line\"", "second line"),
            (
                "A_KEY=\"first line\nsecond line\"",
                "first line\nsecond line",
            ),
            ("A_KEY=\"in one\\nline\"", "in one\nline"),
            ("A_KEY=\"never ended", "never ended"),
            ("A_KEY=crlf line\r\nB=2", "crlf line"),
            ("'A_KEY'=quoted name", "quoted name"),
        ] {
            let known = values(line, "A_KEY");
            assert!(known.iter().any(|one| one == value), "{line:?}: {known:?}");
        }
    }

    #[test]
    fn what_follows_a_value_of_several_lines_is_read_too() {
        let text = "# c\nA=\"x\ny=1\nz\"\nB=it's\nC='d'\nno name here\nD E=1\n=\n";
        let names: Vec<String> = entries(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "C"]);
    }

    #[test]
    fn no_byte_makes_the_names_and_values_unreadable() {
        assert_eq!(decoded(b"\xef\xbb\xbfA=1"), "A=1");
        assert_eq!(decoded(b"# cl\xe9\nA=1"), "# cl\u{e9}\nA=1");
        assert_eq!(decoded(b"\xff\xfeA\0=\x001\0"), "A=1");
        assert_eq!(decoded(b"\xfe\xff\0A\0=\x001"), "A=1");
        assert_eq!(decoded(b"\xff\xfeA"), "");
    }
}
