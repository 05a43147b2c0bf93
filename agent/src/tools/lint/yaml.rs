//! YAML, by `saphyr-parser`: syntax only, so that streams of documents and
//! unknown tags pass.

use saphyr_parser::Parser;

/// What is wrong with the text, if anything.
pub fn problem(text: &str) -> Option<String> {
    Parser::new_from_str(text)
        .find_map(Result::err)
        .map(|error| {
            let marker = error.marker();
            format!(
                "YAMLError: {} (line {}, column {})",
                error.info(),
                marker.line(),
                marker.col() + 1
            )
        })
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn well_formed_streams_pass() {
        for text in [
            "",
            "a: 1\nb: [1, 2]\n",
            "---\na: 1\n---\nb: !Sub x\n",
            "t: |\n  free { text\n",
            "- 'it''s'\n",
        ] {
            assert_eq!(problem(text), None, "{text:?}");
        }
    }

    #[test]
    fn broken_structure_is_named() {
        for text in [
            "a: [1\nb: 2",
            "a: 'x\n",
            "a: {b: 1\n",
            "a:\n\t- b\n",
            "a: b: c\n",
        ] {
            assert!(problem(text).is_some(), "{text:?}");
        }
    }
}
