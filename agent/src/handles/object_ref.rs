//! A bearer's name: `/object/` and 256 bits in base32.

use std::fmt;

use data_encoding::BASE32_NOPAD;

/// How it begins.
pub const PREFIX: &str = "/object/";
/// Letters after the prefix.
pub const LETTERS: usize = 52;
const BYTES: usize = 32;

/// The name. It is shown only by [`ObjectRef::reveal`], never by formatting.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectRef([u8; BYTES]);

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectRef(..)")
    }
}

impl ObjectRef {
    /// A new name from the system's randomness.
    ///
    /// # Errors
    /// The system has none.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads a name; one spelling only.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_letters(text.strip_prefix(PREFIX)?)
    }

    /// Reads the letters after the prefix; small ones only.
    #[must_use]
    pub fn from_letters(letters: &str) -> Option<Self> {
        if letters.len() != LETTERS || letters.bytes().any(|letter| letter.is_ascii_uppercase()) {
            return None;
        }
        // The last letter carries one bit: the decoder refuses any other.
        let bytes = BASE32_NOPAD
            .decode(letters.to_ascii_uppercase().as_bytes())
            .ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// The name in full, for whoever is to have it.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!(
            "{PREFIX}{}",
            BASE32_NOPAD.encode(&self.0).to_ascii_lowercase()
        )
    }

    /// The bytes, to be hashed.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{LETTERS, ObjectRef, PREFIX};

    #[test]
    fn a_name_has_one_spelling_and_is_not_printed_by_accident() {
        let name = ObjectRef::draw().expect("randomness");
        let text = name.reveal();
        assert_eq!(text.len(), PREFIX.len() + LETTERS);
        assert_eq!(ObjectRef::parse(&text), Some(name.clone()));
        assert_eq!(format!("{name:?}"), "ObjectRef(..)");
        let mut wrong = vec![
            text.to_ascii_uppercase(),
            text.replace(PREFIX, ""),
            format!("{text}a"),
            format!(" {text}"),
            text[..text.len() - 1].to_owned(),
        ];
        // Bits beyond the 256th would be a second spelling of the same name.
        let last = text.chars().last().expect("a letter");
        let other = if last == 'a' { 'b' } else { 'r' };
        wrong.push(format!("{}{other}", &text[..text.len() - 1]));
        for text in wrong {
            assert_eq!(ObjectRef::parse(&text), None, "{text}");
        }
    }

    #[test]
    fn two_names_differ() {
        assert_ne!(ObjectRef::draw().ok(), ObjectRef::draw().ok());
    }
}
