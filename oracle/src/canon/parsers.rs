//! Rule `parser-words`: why a data file is not written.
//!
//! Each subject reads YAML and TOML with a parser of its own, and each parser has
//! words and places of its own for the same mistake. JSON is no part of this: its
//! messages are compared. This must take out nothing but what the parser said.

use serde_json::Value;

const WRITING_TOOLS: [&str; 2] = ["write_file", "patch"];
/// Who speaks, and what comes before.
const BEGINNINGS: [&str; 2] = [
    " syntax validation (YAMLError: ",
    " syntax validation (TOMLDecodeError: ",
];
/// What follows.
const END: &str = "). The file was NOT created or modified.";

/// The error of a result without a parser's own words.
pub fn without_parsers_words(tool: &str, value: &mut Value) {
    if WRITING_TOOLS.contains(&tool) {
        without_words(value);
    }
}

/// The same of a result whose tool is not told, as conversations hold them: nothing but a
/// refusal to write begins and ends like this.
pub(super) fn without_words(value: &mut Value) {
    if let Some(Value::String(error)) = value.get_mut("error")
        && let Some(plain) = plain(error)
    {
        *error = plain;
    }
}

fn plain(error: &str) -> Option<String> {
    let (at, beginning) = BEGINNINGS
        .iter()
        .find_map(|beginning| Some((error.find(beginning)?, beginning)))?;
    let (before, words) = error.split_at_checked(at + beginning.len())?;
    let (_, after) = words.split_at_checked(words.rfind(END)?)?;
    Some(format!("{before}<own>{after}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::without_parsers_words;

    fn check(tool: &str, error: &str, expected: &str) {
        let mut value = json!({"bytes_written": 0, "error": error});
        without_parsers_words(tool, &mut value);
        assert_eq!(value["error"], expected, "{error}");
    }

    #[test]
    fn only_a_parsers_words_are_taken_out() {
        let refused = |kind: &str, why: &str| {
            format!(
                "Refusing to write '/p/a': candidate content fails .x syntax validation ({kind}: {why}). The file was \
                 NOT created or modified. Fix the content and retry."
            )
        };
        for kind in ["YAMLError", "TOMLDecodeError"] {
            let told = refused(kind, "while (parsing)\n  in x). y");
            check("write_file", &told, &refused(kind, "<own>"));
            check("patch", &told, &refused(kind, "<own>"));
            check("terminal", &told, &told);
        }
        let json = refused("JSONDecodeError", "x");
        check("write_file", &json, &json);
        check("write_file", "YAMLError: x", "YAMLError: x");
    }
}
