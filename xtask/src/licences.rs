//! May every dependency be used? The licences of `deny.toml` against the
//! licence expressions of the packages that are really built.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::cmd;

/// Names of packages whose licence expression is not met by the allowed ones.
pub fn findings() -> Result<Vec<String>> {
    let path = cmd::root().join("deny.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{} is not TOML", path.display()))?;
    let allowed: BTreeSet<&str> = table
        .get("licenses")
        .and_then(|t| t.get("allow"))
        .and_then(toml::Value::as_array)
        .context("deny.toml has no list licenses.allow")?
        .iter()
        .filter_map(toml::Value::as_str)
        .collect();

    let host = cmd::host()?;
    let metadata = cmd::output(cmd::cargo().args([
        "metadata",
        "--format-version=1",
        "--all-features",
        "--filter-platform",
        &host,
    ]))?;
    let metadata: Value = serde_json::from_slice(&metadata).context("cargo metadata")?;
    let mut findings = Vec::new();
    for package in metadata
        .get("packages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = package.get("name").and_then(Value::as_str).unwrap_or("?");
        match package.get("license").and_then(Value::as_str) {
            None => findings.push(format!("package {name} states no licence")),
            Some(expression) if !met(expression, &allowed) => findings.push(format!(
                "package {name} is under `{expression}`, which deny.toml does not allow"
            )),
            Some(_) => {}
        }
    }
    Ok(findings)
}

/// Can `expression` be met by choosing only among `allowed`? What cannot be read is not met.
fn met(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let value = any_of(&mut rest, allowed);
    value == Some(true) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<&str>) -> Option<bool> {
    let mut value = all_of(rest, allowed)?;
    while let Some((&"OR", tail)) = rest.split_first() {
        *rest = tail;
        value |= all_of(rest, allowed)?;
    }
    Some(value)
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<&str>) -> Option<bool> {
    let mut value = one(rest, allowed)?;
    while let Some((&"AND", tail)) = rest.split_first() {
        *rest = tail;
        value &= one(rest, allowed)?;
    }
    Some(value)
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<&str>) -> Option<bool> {
    let (&word, tail) = rest.split_first()?;
    *rest = tail;
    match word {
        "(" => {
            let value = any_of(rest, allowed)?;
            let (&")", tail) = rest.split_first()? else {
                return None;
            };
            *rest = tail;
            Some(value)
        }
        ")" | "OR" | "AND" | "WITH" => None,
        id => match rest {
            [w, exception, tail @ ..] if *w == "WITH" => {
                *rest = tail;
                Some(allowed.contains(format!("{id} WITH {exception}").as_str()))
            }
            _ => Some(allowed.contains(id)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_met_by_allowed_choices_only() {
        let allowed = BTreeSet::from(["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"]);
        let check =
            |expression, expected| assert_eq!(met(expression, &allowed), expected, "{expression}");
        check("MIT", true);
        check("GPL-3.0", false);
        check("GPL-3.0 OR MIT", true);
        check("GPL-3.0/MIT", true);
        check("GPL-3.0 AND MIT", false);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND GPL-3.0", false);
        check("MIT AND GPL-3.0 OR Unicode-3.0", true);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("Apache-2.0", false);
        check("MIT WITH LLVM-exception", false);
        check("", false);
        check("(MIT", false);
        check("MIT MIT", false);
    }
}
