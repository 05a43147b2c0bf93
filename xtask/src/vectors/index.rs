//! The documents that count: which suites there are, and where they are from.
//!
//! Both are written from the files and never by hand, so that a number in them
//! cannot grow old unseen.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::emit::Suite;
use super::ordinary::Ordinary;

/// `INDEX.md`: every suite with its cases, probes, tools and expectations.
///
/// # Errors
/// A suite that cannot be read or is not JSON.
pub fn render(vectors: &Path) -> anyhow::Result<String> {
    let mut text = String::from(
        "# Index of the vectors\n\nWritten by `cargo xtask vectors index`; do not edit.\n\n\
         | suite | cases | must-permit | must-deny | either | about |\n|---|---:|---:|---:|---:|---|\n",
    );
    let mut flags = String::new();
    let mut steps: BTreeMap<String, usize> = BTreeMap::new();
    let mut total = 0;
    let mut ordinary = Ordinary::default();
    for folder in ["suites", "regressions"] {
        for path in files(&vectors.join(folder))? {
            let body =
                fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            let suite: Value = serde_json::from_str(&body)
                .with_context(|| format!("{}: not JSON", path.display()))?;
            let name = suite["suite"].as_str().unwrap_or_default();
            let cases = suite["cases"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let owed = |word: &str| {
                cases
                    .iter()
                    .filter(|case| case["expect"]["agent"] == word)
                    .count()
            };
            total += cases.len();
            ordinary.count(&suite);
            text.push_str(&format!(
                "| [{name}]({folder}/{}) | {} | {} | {} | {} | {} |\n",
                path.file_name().unwrap_or_default().to_string_lossy(),
                cases.len(),
                owed("must-permit"),
                owed("must-deny"),
                owed("either"),
                suite["description"].as_str().unwrap_or_default(),
            ));
            for (flag, about) in suite["flags"].as_object().into_iter().flatten() {
                let marked = cases
                    .iter()
                    .filter(|case| {
                        case["flags"]
                            .as_array()
                            .is_some_and(|flags| flags.iter().any(|mark| mark == flag))
                    })
                    .count();
                flags.push_str(&format!(
                    "| {name} | `{flag}` | {marked} | {} |\n",
                    about["description"].as_str().unwrap_or_default(),
                ));
            }
            for case in cases {
                for step in case["script"].as_array().into_iter().flatten() {
                    *steps.entry(step_name(step)).or_default() += 1;
                }
            }
        }
    }
    text.push_str(&format!(
        "\nTogether {total} cases.\n\n## Steps\n\n| step | times |\n|---|---:|\n"
    ));
    for (step, times) in steps {
        text.push_str(&format!("| {step} | {times} |\n"));
    }
    text.push_str(&ordinary.table());
    text.push_str(
        "\n## Flags\n\n| suite | flag | cases | what the cases do |\n|---|---|---:|---|\n",
    );
    text.push_str(&flags);
    Ok(text)
}

/// `probe <name>`, `call <tool>`, or the step's own word.
fn step_name(step: &Value) -> String {
    if let Some(name) = step["probe"]["name"].as_str() {
        return format!("probe `{name}`");
    }
    if let Some(tool) = step["call"]["tool"].as_str() {
        return format!("call `{tool}`");
    }
    let word = step.as_object().and_then(|fields| fields.keys().next());
    format!("`{}`", word.map_or("?", String::as_str))
}

fn files(folder: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("list {}", folder.display()))?
            .path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// `SOURCES.md`: where the converted suites are from, and the rows that gave no case.
pub fn sources(suites: &[Suite]) -> String {
    let mut text = String::from(
        "# Where the vectors are from\n\nWritten by `cargo xtask vectors convert`; do not edit.\n\n\
         The converted suites hold facts recorded from the real `hermes-agent` 0.19.0 (a package on PyPI), one row a line:\n\
         inputs seen while the upstream test suite of the release passed, inputs that later upstream tests have an\n\
         expectation for, inputs made up by the recorder, and commands that were run in throw-away worlds. No code of\n\
         Hermes or of its tests is kept, only inputs and observed answers. Every case names its row in `source`, and\n\
         `recorded` holds what was seen; `bisim` compares it with the live package.\n\n\
         `$TMP`, `$HOME` and `$REPO` of the rows of test runs became `/tmp/t`, `/home/u` and `/ws`.\n\n\
         | rows | count | suite | cases |\n|---|---:|---|---:|\n",
    );
    for suite in suites {
        text.push_str(&format!(
            "| `cases/{}.jsonl` | {} | {} | {} |\n",
            suite.name.replace('-', "_"),
            suite.rows,
            suite.name,
            suite.cases.len(),
        ));
    }
    text.push_str("\nThe other suites are written by hand; each of their cases says in `source` or `comment` what it is from.\n");
    text.push_str("\n## Rows without a case\n\n");
    let mut none = true;
    for suite in suites {
        for (row, reason) in &suite.left_out {
            none = false;
            text.push_str(&format!("- `{row}`: {reason}\n"));
        }
    }
    if none {
        text.push_str("None.\n");
    }
    text
}
