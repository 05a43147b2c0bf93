//! Notebooks as a text: the cells one after the other, with what each is.

use serde_json::Value;

/// What is read in place of a notebook; `None` if this is none, or has nothing to read.
#[must_use]
pub fn text(content: &[u8]) -> Option<String> {
    let book: Value = serde_json::from_str(&String::from_utf8_lossy(content)).ok()?;
    let book = book.as_object()?;
    let cells: Vec<&Value> = match book.get("cells").and_then(Value::as_array) {
        Some(cells) => cells.iter().collect(),
        // The form of old: sheets, each with cells.
        None => {
            let sheets = book.get("worksheets")?.as_array()?;
            let cells = sheets.iter().filter_map(|sheet| sheet.get("cells"));
            cells.filter_map(Value::as_array).flatten().collect()
        }
    };
    let (mut notes, mut codes) = (0_usize, 0_usize);
    let mut parts: Vec<String> = Vec::new();
    for cell in cells {
        let title = match cell.get("cell_type").and_then(Value::as_str) {
            Some("markdown") => {
                notes += 1;
                format!("Markdown cell {notes}")
            }
            Some("code") => {
                codes += 1;
                format!("Code cell {codes}")
            }
            Some("raw") => "Raw cell".to_owned(),
            _ => continue,
        };
        let source = match cell.get("source") {
            Some(Value::String(source)) => source.clone(),
            Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
            _ => String::new(),
        };
        parts.push(format!(
            "# \u{2500}\u{2500} {title} \u{2500}\u{2500}\n{}\n",
            source.trim_end_matches('\n')
        ));
    }
    let text = parts.join("\n");
    (!parts.is_empty()).then(|| format!("{}\n", text.trim_end_matches('\n')))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::text;

    fn read(book: Value) -> Option<String> {
        text(book.to_string().as_bytes())
    }

    #[test]
    fn cells_are_told_in_order_and_counted_by_their_kind() {
        let cell = |kind: &str, source: Value| json!({"cell_type": kind, "source": source});
        let book = json!({"cells": [
            cell("markdown", "# T\n\n".into()), cell("code", json!(["x = 1\n", 5, "y"])),
            cell("raw", "r".into()), cell("heading", "no".into()), 7, cell("code", Value::Null),
        ]});
        assert_eq!(
            read(book).unwrap(),
            "# ── Markdown cell 1 ──\n# T\n\n# ── Code cell 1 ──\nx = 1\ny\n\n# ── Raw cell ──\nr\n\n\
             # ── Code cell 2 ──\n"
        );
        let old = json!({"worksheets": [{"cells": [cell("code", "a".into())]}]});
        assert_eq!(read(old).unwrap(), "# ── Code cell 1 ──\na\n");
    }

    #[test]
    fn what_is_no_notebook_or_has_no_cells_is_not_told_as_one() {
        for book in [
            json!([]),
            json!({}),
            json!({"cells": []}),
            json!({"cells": [{"cell_type": "heading"}]}),
            json!({"worksheets": 5}),
        ] {
            assert_eq!(read(book.clone()), None, "{book}");
        }
        assert_eq!(text(b"not JSON"), None);
    }
}
