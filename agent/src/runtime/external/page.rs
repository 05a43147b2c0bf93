//! One part of a server's list of tools, as far as it is one.
//!
//! The library takes such a part whole or not at all. A tool of the wrong shape is its
//! server's mistake, and no reason to do without those beside it.

use rmcp::model::{ListToolsResult, Tool};
use serde_json::Value;

/// Letters that are told of what is wrong with one, and of what it is called.
const TOLD_MAX: usize = 160;

/// What came of it.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub tools: Vec<Tool>,
    /// What each of the others is called, and what is wrong with it.
    pub misshapen: Vec<(String, String)>,
    /// Where the list goes on.
    pub next: Option<String>,
}

impl From<ListToolsResult> for Page {
    fn from(page: ListToolsResult) -> Self {
        Self {
            tools: page.tools,
            misshapen: Vec::new(),
            next: page.next_cursor,
        }
    }
}

impl Page {
    /// What is a tool in it, and what is not.
    ///
    /// # Errors
    /// It is no list at all.
    pub(super) fn read(said: &Value) -> Result<Self, String> {
        let Some(items) = said["tools"].as_array() else {
            return Err("it answers with something else than a list of tools".to_owned());
        };
        let mut page = Self {
            tools: Vec::new(),
            misshapen: Vec::new(),
            next: said["nextCursor"].as_str().map(str::to_owned),
        };
        for (at, item) in items.iter().enumerate() {
            match serde_json::from_value::<Tool>(item.clone()) {
                Ok(tool) => page.tools.push(tool),
                Err(error) => {
                    let called = item["name"]
                        .as_str()
                        .map_or_else(|| format!("number {}", at.saturating_add(1)), short);
                    page.misshapen.push((called, short(&error.to_string())));
                }
            }
        }
        Ok(page)
    }
}

/// The beginning of what a server may have said at any length.
fn short(text: &str) -> String {
    let mut letters = text.chars();
    let mut short: String = letters.by_ref().take(TOLD_MAX).collect();
    if letters.next().is_some() {
        short.push('\u{2026}');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Page, TOLD_MAX};

    #[test]
    fn the_tools_of_a_part_are_taken_and_the_others_named() {
        let long = "x".repeat(5000);
        let page = Page::read(&json!({
            "tools": [
                {"name": "one", "inputSchema": {}},
                {"name": "no-form"},
                {"inputSchema": {}},
                "word",
                {"name": long, "inputSchema": long},
                {"name": "two", "inputSchema": {"type": "object"}},
            ],
            "nextCursor": "more",
        }))
        .expect("a part");
        let names: Vec<&str> = page.tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["one", "two"]);
        let others: Vec<&str> = page
            .misshapen
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(others[..3], ["no-form", "number 3", "number 4"]);
        assert!(page.misshapen[0].1.contains("inputSchema"), "{page:?}");
        let (name, why) = &page.misshapen[3];
        assert!(name.chars().count() <= TOLD_MAX + 1 && why.chars().count() <= TOLD_MAX + 1);
        assert_eq!(page.next.as_deref(), Some("more"));
    }

    #[test]
    fn what_is_no_list_is_told_so() {
        for other in [json!({}), json!({"tools": "all"}), json!([1]), json!(null)] {
            assert!(Page::read(&other).is_err(), "{other}");
        }
    }
}
