//! What makes a skill sound: its name, its category, its text, the places of its files.

use serde_json::Value;

use super::{
    DESCRIPTION_LETTERS_MAX, NAME_LETTERS_MAX,
    front::{self, divided},
    shelf::PARTS,
};
use crate::text::{args, pytext};

/// Letters of a skill's file at most.
const CONTENT_LETTERS_MAX: usize = 100_000;

/// Whether a text is a name of a skill or a category.
fn is_name(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.starts_with(plain)
        && text
            .chars()
            .all(|letter| plain(letter) || matches!(letter, '.' | '_' | '-'))
}

/// Said of names and categories.
const NAME_RULE: &str = "Use lowercase letters, numbers, hyphens, dots, and underscores.";

/// What is wrong with the name of a skill.
pub(super) fn name_problem(name: &str) -> Option<String> {
    if name.chars().count() > NAME_LETTERS_MAX {
        return Some(format!("Skill name exceeds {NAME_LETTERS_MAX} characters."));
    }
    (!is_name(name)).then(|| {
        format!("Invalid skill name '{name}'. {NAME_RULE} Must start with a letter or digit.")
    })
}

/// What is wrong with the category of a skill; one need not be said.
pub(super) fn category_problem(category: Option<&Value>) -> Option<String> {
    let category = match category {
        None | Some(Value::Null) => return None,
        Some(Value::String(category)) => pytext::strip(category),
        Some(_) => return Some("Category must be a string.".into()),
    };
    if category.is_empty() {
        return None;
    }
    let invalid = format!(
        "Invalid category '{category}'. {NAME_RULE} Categories must be a single directory name."
    );
    if category.contains(['/', '\\']) {
        return Some(invalid);
    }
    if category.chars().count() > NAME_LETTERS_MAX {
        return Some(format!("Category exceeds {NAME_LETTERS_MAX} characters."));
    }
    (!is_name(category)).then_some(invalid)
}

/// What is wrong with a skill's text.
pub(super) fn content_problem(content: &str) -> Option<String> {
    if pytext::strip(content).is_empty() {
        return Some("Content cannot be empty.".into());
    }
    let content = content.trim_start_matches('\u{feff}');
    if !content.starts_with("---") {
        return Some(
            "SKILL.md must start with YAML frontmatter (---). See existing skills for format."
                .into(),
        );
    }
    let Some((heading, body)) = divided(content) else {
        return Some(
            "SKILL.md frontmatter is not closed. Ensure you have a closing '---' line.".into(),
        );
    };
    let values = match front::value(heading) {
        Ok(Value::Object(values)) => values,
        Ok(_) => return Some("Frontmatter must be a YAML mapping (key: value pairs).".into()),
        Err(problem) => return Some(format!("YAML frontmatter parse error: {problem}")),
    };
    if !values.contains_key("name") {
        return Some("Frontmatter must include 'name' field.".into());
    }
    let Some(description) = values.get("description") else {
        return Some("Frontmatter must include 'description' field.".into());
    };
    if args::text_of(description).chars().count() > DESCRIPTION_LETTERS_MAX {
        return Some(format!(
            "Description exceeds {DESCRIPTION_LETTERS_MAX} characters."
        ));
    }
    pytext::strip(body).is_empty().then(|| {
        "SKILL.md must have content after the frontmatter (instructions, procedures, etc.).".into()
    })
}

/// What is wrong with the length of a text, named so.
pub(super) fn size_problem(content: &str, label: &str) -> Option<String> {
    let letters = content.chars().count();
    (letters > CONTENT_LETTERS_MAX).then(|| {
        format!(
            "{label} content is {} characters (limit: {}). Consider splitting into a smaller SKILL.md with supporting \
             files in references/ or templates/.",
            pytext::thousands(letters as u64),
            pytext::thousands(CONTENT_LETTERS_MAX as u64)
        )
    })
}

/// What is wrong with the path of a file beside a skill's own.
pub(super) fn path_problem(path: &str) -> Option<String> {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Some("Path traversal ('..') is not allowed.".into());
    }
    let rooted = path.starts_with('/');
    if !rooted && parts.len() <= 2 && parts.last() == Some(&"SKILL.md") {
        return None;
    }
    match parts.first() {
        Some(first) if !rooted && PARTS.contains(first) => (parts.len() < 2).then(|| {
            format!("Provide a file path, not just a directory. Example: '{first}/myfile.md'")
        }),
        Some(_) | None => Some(format!(
            "File must be under one of: {}. Got: '{path}'",
            PARTS.join(", ")
        )),
    }
}
