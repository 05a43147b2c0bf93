//! `skills_list`, `skill_view` and `skill_manage`: instructions kept in files.
//!
//! Skills are data in a directory that is a capability like any other: reading
//! them needs a grant to read it, managing them one to change it, and what was
//! read counts as read from a file. No text of a skill is ever run here.

mod front;
mod manage;
mod needs;
mod shelf;
mod sound;
mod view;

use serde_json::{Map, Value, json};

use self::{front::Front, shelf::Shelf};
pub use self::{manage::run as manage, view::run as view};
use crate::{
    runtime::{Hands, Stop, ToolResult},
    text::{args, pytext},
};

/// Letters of a name at most.
const NAME_LETTERS_MAX: usize = 64;
/// Letters of a description at most.
const DESCRIPTION_LETTERS_MAX: usize = 1024;
/// Letters of a skill's file that are looked at for its heading.
const HEADING_LETTERS: usize = 4000;

/// A skill as lists show it.
struct Listed {
    name: String,
    description: String,
    category: Option<String>,
}

/// Runs `skills_list`.
///
/// # Errors
/// It was refused, or the machinery failed.
pub fn list(hands: &mut Hands<'_>, given: &Value) -> Result<ToolResult, Stop> {
    let shelf = Shelf::open(hands)?;
    let mut skills = listed(hands, &shelf)?;
    if skills.is_empty() {
        return Ok(ToolResult::ran(&json!({
            "success": true, "skills": [], "categories": [], "message": "No skills found in skills/ directory.",
        })));
    }
    if let Some(wanted) = given
        .get("category")
        .filter(|wanted| args::truthy(Some(wanted)))
    {
        skills.retain(|skill| {
            skill
                .category
                .as_deref()
                .is_some_and(|category| wanted == category)
        });
    }
    let mut categories: Vec<&String> = skills
        .iter()
        .filter_map(|skill| skill.category.as_ref())
        .collect();
    categories.sort();
    categories.dedup();
    let rows: Vec<Value> = skills
        .iter()
        .map(|skill| json!({"name": skill.name, "description": skill.description, "category": skill.category}))
        .collect();
    Ok(ToolResult::ran(&json!({
        "success": true,
        "skills": rows,
        "categories": categories,
        "count": rows.len(),
        "hint": "Use skill_view(name) to see full content, tags, and linked files",
    })))
}

/// All skills, by category and name.
fn listed(hands: &mut Hands<'_>, shelf: &Shelf) -> Result<Vec<Listed>, Stop> {
    let mut skills: Vec<Listed> = Vec::new();
    for dir in shelf.skills() {
        let Some(text) = shelf.text_of_one(hands, &shelf::below(&dir, "SKILL.md"))? else {
            continue;
        };
        let front = Front::parse(pytext::head(&text, HEADING_LETTERS));
        if !front.fits_here() {
            continue;
        }
        let folder = dir.rsplit('/').next().unwrap_or(&dir).to_owned();
        let name = match front.get("name") {
            None => folder,
            Some(Value::String(name)) => name.clone(),
            Some(_) => continue,
        };
        let name = pytext::head(&name, NAME_LETTERS_MAX).to_owned();
        if skills.iter().any(|known| known.name == name) {
            continue;
        }
        let description = match front.get("description") {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(value) if args::truthy(Some(value)) => continue,
            Some(_) | None => pytext::strip(&front.body)
                .split('\n')
                .map(pytext::strip)
                .find(|line| !line.is_empty() && !line.starts_with('#'))
                .unwrap_or_default()
                .to_owned(),
        };
        let description = if description.chars().count() > DESCRIPTION_LETTERS_MAX {
            format!(
                "{}...",
                pytext::head(&description, DESCRIPTION_LETTERS_MAX - 3)
            )
        } else {
            description
        };
        let category = dir.split_once('/').map(|(first, _)| first.to_owned());
        skills.push(Listed {
            name,
            description,
            category,
        });
    }
    skills.sort_by(|left, right| {
        let key = |skill: &Listed| {
            (
                skill.category.clone().unwrap_or_default(),
                skill.name.clone(),
            )
        };
        key(left).cmp(&key(right))
    });
    Ok(skills)
}

/// A refusal of the tool itself, with more to say.
fn unsuccessful(message: &str, more: &[(&str, Value)]) -> ToolResult {
    let mut result = Map::new();
    result.insert("success".into(), false.into());
    result.insert("error".into(), message.into());
    for (key, value) in more {
        result.insert((*key).to_owned(), value.clone());
    }
    ToolResult::failed(&Value::Object(result))
}
