//! Documents that are read as a text: notebooks, letters and sheets.
//!
//! As Hermes 0.19.0 tells them (`tools/read_extract.py`). What cannot be read as the
//! kind its name says is a file like any other.

mod letter;
mod notebook;
mod package;
mod sheets;

/// What a document is, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.ipynb`
    Notebook,
    /// `.docx`
    Letter,
    /// `.xlsx`
    Sheets,
}

impl Kind {
    /// The kind of what has this name; case is ignored.
    #[must_use]
    pub fn of(name: &str) -> Option<Kind> {
        let (stem, ending) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        match ending.to_lowercase().as_str() {
            "ipynb" => Some(Kind::Notebook),
            "docx" => Some(Kind::Letter),
            "xlsx" => Some(Kind::Sheets),
            _ => None,
        }
    }

    /// What is read in its place; `None` if it is not what its name says, or has
    /// nothing to read.
    #[must_use]
    pub fn text(self, content: &[u8]) -> Option<String> {
        match self {
            Kind::Notebook => notebook::text(content),
            Kind::Letter => letter::text(content),
            Kind::Sheets => sheets::text(content),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn the_ending_tells_and_a_name_that_is_all_ending_does_not() {
        assert_eq!(Kind::of("a.DocX"), Some(Kind::Letter));
        assert_eq!(Kind::of("..xlsx"), Some(Kind::Sheets));
        assert_eq!(Kind::of("a.b.ipynb"), Some(Kind::Notebook));
        for name in [".docx", "docx", "a.docx.txt", "a.", ""] {
            assert_eq!(Kind::of(name), None, "{name}");
        }
    }
}
