//! Where a search begins.

use bisim_world::protocol::Step;
use serde_json::Value;

use crate::case::Case;

/// Whether a search of text begins where the agent is, or at a name with a dot in front.
pub(super) fn below_a_dot(case: &Case, at: usize) -> bool {
    let Some(Step::Call { tool, args, .. }) = case.job.script.get(at) else {
        return false;
    };
    let field = |name: &str| args.get(name).and_then(Value::as_str);
    tool == "search_files"
        && !matches!(field("target"), Some("files" | "find"))
        && field("path").is_none_or(|path| path.is_empty() || path.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case::Defaults;

    #[test]
    fn only_searches_of_text_that_begin_with_a_dot_or_nowhere_are_meant() {
        let is_meant = |tool: &str, args: &Value| {
            let case = json!({
                "id": "one", "flags": [],
                "script": [{"call": {"tool": tool, "args": args}}],
            });
            let case = serde_json::from_value(case).unwrap();
            below_a_dot(&Case::resolve("suite", &Defaults::default(), case), 0)
        };
        for args in [
            json!({"pattern": "x"}),
            json!({"pattern": "x", "path": "."}),
            json!({"pattern": "x", "path": "./src", "target": "content"}),
            json!({"pattern": "x", "path": ""}),
        ] {
            assert!(is_meant("search_files", &args), "{args}");
            assert!(!is_meant("read_file", &args), "{args}");
        }
        for args in [
            json!({"pattern": "x", "path": "src"}),
            json!({"pattern": "x", "path": "/w"}),
            json!({"pattern": "x", "target": "files"}),
            json!({"pattern": "x", "path": ".", "target": "find"}),
        ] {
            assert!(!is_meant("search_files", &args), "{args}");
        }
    }
}
