//! What a plan can be written with: tools with their arguments and what they give, and the
//! functions of values. The planning model is told it, and whoever writes a plan themselves.

use std::fmt::Write as _;

use hermitcrab_core::plan::{Kind, Signature, Toolbox, Type, builtin::Builtin, builtin::Over};

/// A type in a few words.
#[must_use]
pub fn words(kind: &Type) -> String {
    told(kind, &|_| None)
}

/// The same, but for the types that are put otherwise.
pub(super) fn told(kind: &Type, otherwise: &dyn Fn(&Type) -> Option<String>) -> String {
    if let Some(words) = otherwise(kind) {
        return words;
    }
    match &kind.kind {
        Kind::Never | Kind::Nothing => "nothing".to_owned(),
        Kind::Truth => "truth".to_owned(),
        Kind::Whole => "whole".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Time => "time".to_owned(),
        Kind::Choice(words) => words.join("|"),
        Kind::List(item) => format!("[{}]", told(item, otherwise)),
        Kind::Optional(item) => format!("{}?", told(item, otherwise)),
        Kind::Record(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, field)| format!("{name}: {}", told(field, otherwise)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// A tool with what it takes: `read_file(path: path)`.
#[must_use]
pub fn takes(tool: &Signature) -> String {
    let params: Vec<String> = tool
        .params
        .iter()
        .map(|param| {
            let mark = if param.required { "" } else { "?" };
            format!("{}{mark}: {}", param.name, words(&param.kind))
        })
        .collect();
    format!("{}({})", tool.name, params.join(", "))
}

/// Every tool and every function, a line for each.
#[must_use]
pub fn listed(toolbox: &Toolbox) -> String {
    let mut out = String::from("Tools:\n");
    for tool in toolbox.all() {
        // Writing to a string does not fail.
        let _ = writeln!(out, "- {} gives {}", takes(tool), words(&tool.result));
    }
    out.push_str("\nFunctions, as {\"fn\": NAME, \"of\": [VALUES]}:\n");
    for builtin in Builtin::ALL {
        let _ = writeln!(out, "- {}: {}", builtin.as_str(), builtin.doc());
    }
    out.push_str(
        "\nFunctions over a list, as {\"fn\": NAME, \"of\": LIST, \"as\": ITEM, \"by\": VALUE}:\n",
    );
    for over in Over::ALL {
        let _ = writeln!(out, "- {}: {}", over.as_str(), over.doc());
    }
    out
}
