//! Bytes that come in pieces, as text.

/// Reads UTF-8 piece by piece: a letter that is cut in two waits for its rest.
/// What is no UTF-8 becomes replacement characters, as it would in one piece.
#[derive(Debug, Default)]
pub struct Letters {
    /// The beginning of a letter, at most three bytes.
    begun: Vec<u8>,
}

impl Letters {
    /// The text up to the last whole letter.
    pub fn take(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let begun = bytes.utf8_chunks().last().map_or(0, |chunk| {
            let odd = chunk.invalid();
            let is_cut = std::str::from_utf8(odd).is_err_and(|error| error.error_len().is_none());
            if is_cut { odd.len() } else { 0 }
        });
        self.begun = bytes.split_off(bytes.len() - begun);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What is left at the end of everything.
    pub fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.begun)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Letters;

    #[test]
    fn wherever_it_is_cut_the_text_is_the_same() {
        let whole = b"a\xc3\xa4\xf0\x9f\xa6\x80b\xff\xf0\x9fc\xe6\xbc";
        for cut in 0..=whole.len() {
            for other in cut..=whole.len() {
                let mut letters = Letters::default();
                let mut text = letters.take(&whole[..cut]);
                text.push_str(&letters.take(&whole[cut..other]));
                text.push_str(&letters.take(&whole[other..]));
                text.push_str(&letters.rest());
                assert_eq!(text, String::from_utf8_lossy(whole), "{cut} {other}");
            }
        }
    }

    #[test]
    fn a_whole_letter_does_not_wait() {
        let mut letters = Letters::default();
        assert_eq!(letters.take("\u{6f22}".as_bytes()), "\u{6f22}");
        assert_eq!(letters.take(b"\xe6"), "");
        assert_eq!(letters.take(b"\xbc\xa2!"), "\u{6f22}!");
    }
}
