//! What a server has besides its tools: resources and prompts.
//!
//! Both are reached by four tools that are the same for every server that says
//! it has such things, in words of this program. What there is, and what it is
//! called, only a call tells. Pure.

use serde_json::{Value, json};

use super::schema::is_said;

/// One of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utility {
    /// Which resources there are.
    ListResources,
    /// What is in one.
    ReadResource,
    /// Which prompts there are.
    ListPrompts,
    /// One of them, filled in.
    GetPrompt,
}

/// What a server may have besides its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts and documents, by their URI.
    Resources,
    /// Messages for a model, by name.
    Prompts,
}

impl Kind {
    /// What the protocol calls a list of them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// What a call of a server is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A tool of its own, by its name there.
    Tool(String),
    /// What it has besides.
    Utility(Utility),
}

/// What a server says it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// Tools.
    pub tools: bool,
    /// Resources.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
}

impl Utility {
    /// All four.
    pub const ALL: [Self; 4] = [
        Self::ListResources,
        Self::ReadResource,
        Self::ListPrompts,
        Self::GetPrompt,
    ];

    /// What it is called, after the server's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    /// The one that is called so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The protocol's name for it.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::ListResources => "resources/list",
            Self::ReadResource => "resources/read",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => "prompts/get",
        }
    }

    /// What it is about.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::ListResources | Self::ReadResource => Kind::Resources,
            Self::ListPrompts | Self::GetPrompt => Kind::Prompts,
        }
    }

    /// Whether it is there for a server that says it has this.
    #[must_use]
    pub const fn is_of(self, announced: Announced) -> bool {
        match self.kind() {
            Kind::Resources => announced.resources,
            Kind::Prompts => announced.prompts,
        }
    }

    /// What it is for.
    #[must_use]
    pub fn description(self, server: &str) -> String {
        let does = match self {
            Self::ListResources => "List available resources",
            Self::ReadResource => "Read a resource by URI",
            Self::ListPrompts => "List available prompts",
            Self::GetPrompt => "Get a prompt by name",
        };
        format!("{does} from MCP server '{server}'")
    }

    /// The form of its arguments.
    #[must_use]
    pub fn form(self) -> Value {
        let text = |what: &str| json!({"type": "string", "description": what});
        let (properties, required) = match self {
            Self::ListResources | Self::ListPrompts => {
                return json!({"type": "object", "properties": {}});
            }
            Self::ReadResource => (json!({"uri": text("URI of the resource to read")}), "uri"),
            Self::GetPrompt => (
                json!({
                    "name": text("Name of the prompt to retrieve"),
                    "arguments": {
                        "type": "object",
                        "description": "Optional arguments to pass to the prompt",
                        "properties": {},
                        "additionalProperties": true,
                    },
                }),
                "name",
            ),
        };
        json!({"type": "object", "properties": properties, "required": [required]})
    }

    /// What is sent for these arguments.
    ///
    /// # Errors
    /// What is missing or is none, as a model is told it.
    pub fn params(self, args: &Value) -> Result<Value, String> {
        match self {
            Self::ListResources | Self::ListPrompts => Ok(json!({})),
            Self::ReadResource => Ok(json!({"uri": needed(args, "uri")?})),
            Self::GetPrompt => {
                let name = needed(args, "name")?;
                let mut params = json!({ "name": name });
                match args.get("arguments") {
                    None => params["arguments"] = json!({}),
                    // Said to be nothing, nothing is sent.
                    Some(Value::Null) => {}
                    Some(given) => params["arguments"] = texts(given)?,
                }
                Ok(params)
            }
        }
    }
}

/// A text that has to be there.
fn needed<'a>(args: &'a Value, name: &str) -> Result<&'a str, String> {
    match args.get(name).filter(|given| is_said(given)) {
        None => Err(format!("Missing required parameter '{name}'")),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("MCP call failed: '{name}' is a text")),
    }
}

/// The arguments of a prompt: texts by name, and nothing else.
fn texts(given: &Value) -> Result<Value, String> {
    let Value::Object(fields) = given else {
        return Err("MCP call failed: 'arguments' are texts by name".to_owned());
    };
    match fields.iter().find(|(_, value)| !value.is_string()) {
        Some((name, _)) => Err(format!(
            "MCP call failed: the argument '{name}' of a prompt is a text"
        )),
        None => Ok(given.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Announced, Utility};

    #[test]
    fn each_goes_by_its_name_and_is_there_for_what_is_announced() {
        for utility in Utility::ALL {
            assert_eq!(Utility::named(utility.name()), Some(utility));
            let method = utility.method();
            assert_eq!(
                utility.is_of(Announced {
                    resources: true,
                    ..Announced::default()
                }),
                method.starts_with("resources/"),
            );
            assert_eq!(
                utility.is_of(Announced {
                    prompts: true,
                    ..Announced::default()
                }),
                method.starts_with("prompts/"),
            );
            assert!(utility.form()["properties"].is_object());
        }
        assert_eq!(Utility::named("resources/read"), None);
    }

    #[test]
    fn what_is_sent_is_what_was_given_and_no_more() {
        let check = |utility: Utility, args: Value, sent: Value| {
            assert_eq!(utility.params(&args), Ok(sent), "{args}");
        };
        check(Utility::ListResources, json!({"x": 1}), json!({}));
        check(Utility::ListPrompts, json!(null), json!({}));
        check(
            Utility::ReadResource,
            json!({"uri": "a:b c", "x": 1}),
            json!({"uri": "a:b c"}),
        );
        for (arguments, sent) in [
            (json!({"name": "p"}), json!({"name": "p", "arguments": {}})),
            (
                json!({"name": "p", "arguments": null}),
                json!({"name": "p"}),
            ),
            (
                json!({"name": "p", "arguments": {"n": "5"}}),
                json!({"name": "p", "arguments": {"n": "5"}}),
            ),
        ] {
            check(Utility::GetPrompt, arguments, sent);
        }
    }

    #[test]
    fn what_is_missing_or_is_no_text_is_told_and_not_sent() {
        for (utility, args, why) in [
            (
                Utility::ReadResource,
                json!({}),
                "Missing required parameter 'uri'",
            ),
            (
                Utility::ReadResource,
                json!({"uri": ""}),
                "Missing required parameter 'uri'",
            ),
            (
                Utility::ReadResource,
                json!({"uri": 0}),
                "Missing required parameter 'uri'",
            ),
            (
                Utility::ReadResource,
                json!({"uri": 5}),
                "MCP call failed: 'uri' is a text",
            ),
            (
                Utility::GetPrompt,
                json!("p"),
                "Missing required parameter 'name'",
            ),
            (
                Utility::GetPrompt,
                json!({"name": "p", "arguments": [1]}),
                "MCP call failed: 'arguments' are texts by name",
            ),
            (
                Utility::GetPrompt,
                json!({"name": "p", "arguments": {"a": "x", "n": 5}}),
                "MCP call failed: the argument 'n' of a prompt is a text",
            ),
        ] {
            assert_eq!(utility.params(&args), Err(why.to_owned()), "{args}");
        }
    }
}
