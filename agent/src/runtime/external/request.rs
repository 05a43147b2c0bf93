//! One request to a server: what it is, as it is shown, and as it is sent.

use serde_json::{Value, json};

use super::super::visible::one_line;
use crate::mcp::{Utility, Wanted};

/// What a server is asked, whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Call a tool of yours.
    Call {
        /// As the server names it.
        tool: String,
        /// What it is given.
        args: Value,
    },
    /// Say what you have besides.
    Ask {
        /// Which of it.
        utility: Utility,
        /// What goes along, as the protocol spells it.
        params: Value,
    },
}

impl Request {
    /// For what is wanted, with these arguments.
    ///
    /// # Errors
    /// What of them is missing or is none, as a model is told it.
    pub fn of(wanted: Wanted, args: &Value) -> Result<Self, String> {
        Ok(match wanted {
            Wanted::Tool(tool) => Self::Call {
                tool,
                args: args.clone(),
            },
            Wanted::Utility(utility) => Self::Ask {
                utility,
                params: utility.params(args)?,
            },
        })
    }

    /// What it is, for a person, and all that is sent: the answer to a question
    /// is bound to both.
    pub(super) fn shown(&self) -> (String, String) {
        match self {
            Self::Call { tool, args } => (
                // The server chose it: it ends where the quotation does, and says of which
                // server it is nowhere in itself.
                format!("call `{}`", one_line(tool).replace('`', "\\u{60}")),
                json!({"tool": tool, "arguments": args}).to_string(),
            ),
            Self::Ask { utility, params } => (
                format!("ask for `{}`", utility.method()),
                json!({"method": utility.method(), "params": params}).to_string(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Request;

    #[test]
    fn a_tools_name_does_not_read_like_more_of_the_question() {
        let call = Request::Call {
            tool: "read` of the server `safe` at https://safe\n".to_owned(),
            args: json!({}),
        };
        let (asked, _) = call.shown();
        assert_eq!(
            asked,
            "call `read\\u{60} of the server \\u{60}safe\\u{60} at https://safe\\u{a}`"
        );
    }
}
