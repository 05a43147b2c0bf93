//! What documents name of the tree: files and directories, links, tests.
//!
//! A page that says where something is done, and which test shows it, is of use as
//! long as both are there. Decisions tell of their time, so of them only links are read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the names of the tree begin.
const ROOMS: [&str; 11] = [
    "agent/", "benches/", "docs/", "fuzz/", "oracle/", "python/", "shim/", "vectors/", "world/",
    "xtask/", ".ci/",
];
/// Directories that are there once something was found, and are never committed empty.
const MADE: [&str; 3] = ["fuzz/artifacts/", "fuzz/corpus/", "vectors/regressions/"];
/// Where the decisions are listed.
pub(super) const INDEX: &str = "docs/decisions/README.md";
/// So many words joined by `_` are the name of a test, fewer may be a key or a call.
const WORDS_OF_A_TEST: usize = 5;

/// What the document `name`, at `root`, names and is not there. `tests` are the functions of
/// all sources.
pub(super) fn missing(
    root: &Path,
    name: &str,
    text: &str,
    tests: &BTreeSet<String>,
) -> Vec<String> {
    let beside = root
        .join(name)
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned);
    let history = name.starts_with("docs/decisions/");
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut find = |what: &str, is: &str| {
            findings.push(format!("{name}:{}: no {what} `{is}`", index + 1));
        };
        for link in links(line) {
            if !beside.join(link).exists() {
                find("file behind the link", link);
            }
        }
        if history {
            continue;
        }
        for code in line.split('`').skip(1).step_by(2) {
            for place in places(code) {
                let there = root.join(&place);
                if !there.exists() && !there.with_extension("rs").exists() {
                    find("file or directory", &place);
                }
            }
            if is_a_test(code) && !tests.contains(code) {
                find("test", code);
            }
        }
    }
    findings
}

/// Whether the index of decisions, a row for each, lists all pages beside it, once, and those
/// below one heading in order.
pub(super) fn unlisted(index: &str, pages: &[String]) -> Vec<String> {
    let below = index.split("\n## ").map(|part| {
        let rows = part.lines().filter(|line| line.starts_with("| ["));
        rows.filter_map(|row| links(row).next()).collect()
    });
    let listed: Vec<Vec<&str>> = below.collect();
    let mut findings = Vec::new();
    for page in pages {
        match listed.iter().flatten().filter(|link| *link == page).count() {
            1 => {}
            rows => findings.push(format!("{INDEX}: {rows} rows for the decision `{page}`")),
        }
    }
    let late = |part: &Vec<&str>| {
        let found = part.array_windows().find(|[one, next]| one > next);
        found.map(|[_, late]| format!("{INDEX}: `{late}` is not in its place"))
    };
    findings.extend(listed.iter().filter_map(late));
    findings
}

/// The functions a source defines.
pub(super) fn functions(text: &str) -> impl Iterator<Item = &str> {
    let after = |line: &'_ str| line.find("fn ").map(|at| at.saturating_add(3));
    text.lines().filter_map(move |line| {
        let rest = line.get(after(line)?..)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

/// Where the links of a line lead in the tree.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1);
    let whole = ends.filter_map(|rest| rest.split_once(')').map(|(link, _)| link));
    let in_the_tree = |link: &&str| !link.contains("://") && !link.starts_with('#');
    whole
        .filter(in_the_tree)
        .map(|link| link.split_once('#').map_or(link, |(file, _)| file))
}

/// The places of the tree that a piece of code names, `{a,b}` written out.
fn places(code: &str) -> Vec<String> {
    let is_a_name = |c: char| c.is_ascii_alphanumeric() || "._-/{},".contains(c);
    let named = ROOMS.iter().any(|room| code.starts_with(room)) && code.chars().all(is_a_name);
    if !named || MADE.contains(&code) {
        return Vec::new();
    }
    written_out(code)
}

fn written_out(code: &str) -> Vec<String> {
    let choice = code
        .split_once('{')
        .and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    match choice {
        None => vec![code.to_owned()],
        Some((head, (choices, tail))) => choices
            .split(',')
            .flat_map(|one| written_out(&format!("{head}{one}{tail}")))
            .collect(),
    }
}

fn is_a_test(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    code.chars().all(plain)
        && code.split('_').count() >= WORDS_OF_A_TEST
        && code.split('_').all(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_names_and_is_not_there_is_found() {
        let tests =
            functions("    fn what_is_said_is_also_done() {}\npub(super) fn two_a<T>(_: T) {}\n");
        let tests: BTreeSet<String> = tests.map(str::to_owned).collect();
        assert_eq!(tests.len(), 2);
        let root = crate::cmd::root();
        let page = "[map](ARCHITECTURE.md#crates) [gone](NOWHERE.md) [out](https://example.com/x)\n\
            `xtask/src/house` `xtask/src/{house,main}.rs` `xtask/src/{house,gone}.rs`\n\
            `fuzz/corpus/` `agent/<name>` `what_is_said_is_also_done` `what_is_said_is_left_undone`\n";
        assert_eq!(
            missing(&root, "docs/PAGE.md", page, &tests),
            [
                "docs/PAGE.md:1: no file behind the link `NOWHERE.md`",
                "docs/PAGE.md:2: no file or directory `xtask/src/gone.rs`",
                "docs/PAGE.md:3: no test `what_is_said_is_left_undone`",
            ]
        );
        assert_eq!(
            missing(&root, "docs/decisions/0000-x.md", page, &tests).len(),
            2,
            "both links lead nowhere from there, and nothing else is read"
        );
    }

    #[test]
    fn a_decision_that_is_not_listed_once_and_in_its_place_is_found() {
        let pages = ["0001-a.md", "0002-b.md", "0003-c.md"].map(str::to_owned);
        let row =
            |page: &str| format!("| [{}]({page}) | as [0001](0001-a.md) says |\n", &page[..4]);
        let index = |rows: &[&str]| rows.iter().map(|page| row(page)).collect::<String>();
        let all = index(&["0001-a.md", "0002-b.md", "0003-c.md"]);
        assert_eq!(unlisted(&all, &pages), Vec::<String>::new());
        assert_eq!(
            unlisted(&index(&["0001-a.md", "0003-c.md", "0003-c.md"]), &pages),
            [
                "docs/decisions/README.md: 0 rows for the decision `0002-b.md`",
                "docs/decisions/README.md: 2 rows for the decision `0003-c.md`",
            ]
        );
        assert_eq!(
            unlisted(&index(&["0001-a.md", "0003-c.md", "0002-b.md"]), &pages),
            ["docs/decisions/README.md: `0002-b.md` is not in its place"]
        );
        let parts = [
            "## One\n\n",
            &index(&["0001-a.md", "0003-c.md"]),
            "\n## Other\n\n",
        ];
        let parted = parts.concat() + &index(&["0002-b.md"]);
        assert_eq!(unlisted(&parted, &pages), Vec::<String>::new());
    }
}
