//! Every report of a run tells the same: how many cases of each suite had which verdict, what
//! did not run, and which do not pass. Each is read back by a reader of its own kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use roxmltree::{Document, Node};
use serde_json::Value;

use super::html::tests::{result, unpack};
use super::html::{self, Page};
use super::publish::{NotRun, Outputs, Run};
use super::row::{CATALOGUE, name};
use super::{json, merge, table};
use crate::case::{Case, Defaults};
use crate::cli::Allowed;
use crate::known::{Catalogue, Fault};
use crate::result::{CaseResult, Summary};
use crate::suite::Suites;
use crate::verdict::{KINDS, Kind, UNSTEADY};

const PLAIN: &str = "plain";
/// A name no file of vectors may have, and a report is not confused by.
const ODD: &str = "an \"odd\" <suite> & 'more' \u{fffd}";
const SKIPPED: &str = "skipped";

/// How many cases of a suite had each kind of verdict, or were skipped; those without any are
/// left out.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// What a report tells.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    counts: Counts,
    /// Suite and id of what does not pass.
    failing: BTreeSet<(String, String)>,
}

impl Told {
    fn add(&mut self, suite: &str, kind: &str) {
        let suite = self.counts.entry(suite.to_owned()).or_default();
        *suite.entry(kind.to_owned()).or_default() += 1;
    }

    fn fails(&mut self, suite: &str, id: &str) {
        self.failing.insert((suite.to_owned(), id.to_owned()));
    }

    /// With names as a reader sees them who is shown no control letters.
    fn seen(&self) -> Self {
        let counts = self.counts.iter();
        let failing = self.failing.iter();
        Self {
            counts: counts.map(|(s, kinds)| (name(s), kinds.clone())).collect(),
            failing: failing.map(|(suite, id)| (name(suite), name(id))).collect(),
        }
    }
}

/// Letters that mean something to one of the forms, and some that none has a place for.
fn odd_id(kind: Kind, number: usize) -> String {
    const MARKS: [&str; 6] = [
        "<b>&amp;\"'",
        "\u{1b}[31mred\u{7}",
        "two\nlines\tand\r",
        "]]><!--{{data}}-->",
        "\u{0}\u{202e}\u{ffff}\u{fffd}",
        "</script> ",
    ];
    let mark = MARKS[number % MARKS.len()];
    format!("{} {mark} {number}", kind.word())
}

/// A run with every kind of verdict, of each a number of its own, and with what is in no kind.
struct Bench {
    suites: Suites,
    results: Vec<CaseResult>,
    skipped: Vec<NotRun>,
    told: Told,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            suites: Suites::default(),
            results: Vec::new(),
            skipped: Vec::new(),
            told: Told::default(),
        };
        for (place, kind) in KINDS.into_iter().enumerate() {
            // One bucket has more than a reader is told by name.
            let many = if kind == Kind::Weaker {
                7
            } else {
                1 + place % 2
            };
            for number in 0..many {
                bench.ran(PLAIN, &odd_id(kind, place + number), kind, &[]);
            }
            if place % 3 != 1 {
                bench.ran(
                    ODD,
                    &format!("{}-of-odd", kind.word()),
                    kind,
                    &["why-\"<\u{1b}>"],
                );
            }
        }
        bench.ran(PLAIN, "unsteady", Kind::Inconclusive, &[UNSTEADY]);
        for (suite, id) in [
            (PLAIN, "left-out"),
            (ODD, "left <out>\u{1b}"),
            ("lost", "lost"),
        ] {
            let case = bench.case(suite, id);
            bench
                .skipped
                .push(NotRun::new(&case, "none of the merged reports has them"));
            bench.told.add(suite, SKIPPED);
        }
        bench
    }

    fn case(&mut self, suite: &str, id: &str) -> Case {
        let file = serde_json::json!({"id": id, "script": []});
        let file = serde_json::from_value(file).unwrap();
        let case = Case::resolve(suite, &Defaults::default(), file);
        self.suites.cases.push(case.clone());
        let about = self.suites.descriptions.entry(suite.to_owned());
        about.or_default().push('.');
        case
    }

    fn ran(&mut self, suite: &str, id: &str, kind: Kind, ids: &[&str]) {
        self.case(suite, id);
        let why = format!("of {id}: `<a href=\"x\">` & \u{1b}[0m, \u{1}\nsecond line");
        let mut one = result(id, kind, &why);
        one.suite = suite.to_owned();
        one.verdict.ids = ids.iter().map(|&id| id.to_owned()).collect();
        one.label = one.verdict.label();
        self.results.push(one);
        self.told.add(suite, kind.word());
        if !kind.passes() {
            self.told.fails(suite, id);
        }
    }

    fn run<'r>(&'r self, results: &'r [CaseResult], catalogue: &'r Catalogue) -> Run<'r> {
        Run {
            results,
            not_run: &self.skipped,
            vectors: (&self.suites, catalogue),
            hermes: "0.19.0",
            today: "2026-01-02",
            again: "",
        }
    }
}

/// Makes every report of a run in a directory and holds what each tells against `told`.
fn in_step(told: &Told, run: &Run<'_>, folder: &Path) -> Summary {
    let mut summary = run.summary(Allowed {
        inconclusive_max: 0,
        unsteady_max: 0,
    });
    summary.faults.push(Fault {
        entry: "an \"entry\" <\u{1b}>".to_owned(),
        kind: "stale".into(),
        why: "nothing & nobody".to_owned(),
    });
    let (junit, sarif) = (folder.join("junit.xml"), folder.join("made.sarif"));
    let outputs = Outputs {
        folder,
        json: false,
        junit: Some(&junit),
        sarif: Some(&sarif),
        places: (folder, folder),
    };
    run.publish(&summary, &outputs).unwrap();
    let page = Page {
        made: "2026-01-02",
        summary: &summary,
        results: run.results,
        vectors: run.vectors,
        history: &[],
        campaigns: &[],
    };
    let page = html::render(&page).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();

    let by_json = by_json(folder);
    assert_eq!(&by_json, told, "JSON");
    assert_eq!(by_junit(&read(&junit)), told.seen(), "JUnit");
    assert_eq!(&by_sarif(&read(&sarif)), told, "SARIF");
    assert_eq!(&by_page(&page), told, "the page's data");
    assert_eq!(
        by_page_without_scripts(&page),
        told.seen().counts,
        "the page"
    );
    assert_eq!(
        by_table(&table::render(&summary, Some(folder))),
        told.seen(),
        "the table"
    );
    summary
}

/// The summary has the counts, the log has the cases.
fn by_json(folder: &Path) -> Told {
    let summary = json::read_summary(folder).unwrap();
    let mut told = Told::default();
    for result in json::read_results(folder).unwrap() {
        told.add(&result.suite, result.verdict.kind.word());
        if !result.verdict.kind.passes() {
            told.fails(&result.suite, &result.id);
        }
    }
    for (suite, kinds) in &summary.suites {
        let kinds = kinds.iter().map(|(kind, n)| (kind.word().to_owned(), *n));
        assert_eq!(told.counts[suite], kinds.collect(), "log and summary");
    }
    for (suite, count) in &summary.skipped {
        let suite = told.counts.entry(suite.clone()).or_default();
        suite.insert(SKIPPED.to_owned(), *count);
    }
    let open: BTreeSet<_> = summary.open.iter().map(|open| open.id.clone()).collect();
    let failing: BTreeSet<_> = told.failing.iter().map(|(_, id)| id.clone()).collect();
    assert_eq!(open, failing, "log and summary");
    assert_eq!(summary.faults.len(), 1);
    told
}

fn kind_of(code: &str) -> &str {
    code.split(':').next().unwrap_or(code)
}

/// A parser of XML reads it, and each suite's sums are those of its cases.
fn by_junit(text: &str) -> Told {
    let document = Document::parse(text).unwrap();
    let mut told = Told::default();
    let (mut faults, mut all) = (0, [0; 4]);
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    for suite in root.children().filter(Node::is_element) {
        let mut sums = [0; 4];
        for case in suite
            .children()
            .filter(|node| node.has_tag_name("testcase"))
        {
            let (of, id) = (
                suite.attribute("name").unwrap(),
                case.attribute("name").unwrap(),
            );
            assert_eq!(case.attribute("classname"), Some(of));
            sums[0] += 1;
            let child = |tag| case.children().find(|node| node.has_tag_name(tag));
            let wrong = [("failure", 1), ("error", 2), ("skipped", 3)];
            let wrong = wrong
                .into_iter()
                .find_map(|(tag, at)| Some((child(tag)?, at)));
            if let Some((_, at)) = wrong {
                sums[at] += 1;
            }
            match wrong {
                Some((_, 3)) => told.add(of, SKIPPED),
                Some((why, _)) => {
                    let code = why.attribute("type").unwrap();
                    if of == CATALOGUE {
                        assert_eq!(code, "catalogue-stale");
                        faults += 1;
                        continue;
                    }
                    assert!(why.attribute("message").unwrap().contains("second line"));
                    told.add(of, kind_of(code));
                    told.fails(of, id);
                }
                None => told.add(of, kind_of(child("system-out").unwrap().text().unwrap())),
            }
        }
        assert_eq!(stated(suite), sums);
        all = std::array::from_fn(|at| all[at] + sums[at]);
    }
    assert_eq!(stated(root), all);
    assert_eq!(faults, 1, "what is wrong with the catalogue");
    told
}

/// Tests, failures, errors and those that did not run, as an element says itself.
fn stated(node: Node<'_, '_>) -> [usize; 4] {
    ["tests", "failures", "errors", "skipped"].map(|name| {
        node.attribute(name)
            .map_or(0, |number| number.parse().unwrap())
    })
}

/// What SARIF 2.1.0 requires, and what points into the document points at something.
fn by_sarif(text: &str) -> Told {
    let document: Value = serde_json::from_str(text).unwrap();
    assert_eq!(document["version"], "2.1.0");
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string());
    let rules = driver["rules"].as_array().unwrap();
    let rules: BTreeSet<&str> = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    let mut told = Told::default();
    let mut found: Counts = BTreeMap::new();
    for result in run["results"].as_array().unwrap() {
        let code = result["ruleId"].as_str().unwrap();
        assert!(rules.contains(code), "{code}");
        assert!(
            result["message"]["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        let level = if kind_of(code) == "inconclusive" {
            "warning"
        } else {
            "error"
        };
        assert_eq!(result["level"], level);
        for place in result["locations"].as_array().unwrap() {
            let place = &place["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(
                uri.bytes()
                    .all(|b| b.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&b))
            );
            assert!(
                place["region"]["startLine"]
                    .as_u64()
                    .is_some_and(|line| line > 0)
            );
        }
        let cases = result["properties"]["cases"].as_array().unwrap();
        assert_eq!(result["occurrenceCount"], cases.len());
        // A bucket is of one suite, which its cases' counts tell.
        let text = result["message"]["text"].as_str().unwrap();
        let suite = [PLAIN, ODD]
            .into_iter()
            .find(|suite| text.contains(&format!(" of suite {suite}: ")));
        let Some(suite) = suite else {
            assert!(text.contains("1 entry of the catalogue"), "{text}");
            continue;
        };
        for case in cases {
            told.fails(suite, case.as_str().unwrap());
        }
        let kinds = found.entry(suite.to_owned()).or_default();
        *kinds.entry(kind_of(code).to_owned()).or_default() += cases.len();
    }
    told.counts = serde_json::from_value(run["properties"]["suites"].clone()).unwrap();
    let faults = told.counts.remove(CATALOGUE).unwrap();
    assert_eq!(faults, BTreeMap::from([("catalogue-stale".to_owned(), 1)]));
    for (suite, kinds) in found {
        for (kind, count) in kinds {
            assert_eq!(told.counts[&suite][&kind], count, "results and counts");
        }
    }
    told
}

/// What the page's script works with. Of what did not run it has the table alone.
fn by_page(page: &str) -> Told {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let data = unpack(rest.split_once('<').unwrap().0);
    let mut told = Told::default();
    for row in data["rows"].as_array().unwrap() {
        let text = |at: usize| row[at].as_str().unwrap();
        let kind = usize::try_from(row[2].as_u64().unwrap()).unwrap();
        let kind = &data["kinds"][kind];
        assert_eq!(kind_of(text(3)), kind["word"]);
        told.add(text(1), kind["word"].as_str().unwrap());
        if kind["passes"] == false {
            told.fails(text(1), text(0));
            assert!(row[5].as_str().unwrap().contains("second line"));
        }
        let pack = data["suites"][text(1)]["pack"].as_str().unwrap();
        assert!(unpack(pack)[text(0)]["why"].is_string(), "{}", text(0));
    }
    for (suite, kinds) in by_page_without_scripts(page) {
        let Some(skipped) = kinds.get(SKIPPED) else {
            continue;
        };
        let whole = [PLAIN, ODD].into_iter().find(|one| name(one) == suite);
        let suite = told.counts.entry(whole.unwrap_or(&suite).to_owned());
        suite.or_default().insert(SKIPPED.to_owned(), *skipped);
    }
    told
}

/// The table of suites, whose sums are those of the list of verdicts above it.
fn by_page_without_scripts(page: &str) -> Counts {
    let part = |from: &str, to: &str| {
        let (_, rest) = page.split_once(from).unwrap();
        let (inside, _) = rest.split_once(to).unwrap();
        format!("{from}{inside}{to}")
    };
    let text = part("<table id=\"suites\">", "</table>");
    let document = Document::parse(&text).unwrap();
    let mut counts = Counts::new();
    let mut sums: BTreeMap<String, usize> = BTreeMap::new();
    for row in document
        .descendants()
        .filter(|node| node.has_attribute("data-suite"))
    {
        let suite = row.attribute("data-suite").unwrap();
        let number = |cell: Node<'_, '_>| -> usize {
            let mut texts = cell.descendants().filter_map(|node| node.text());
            texts.next().unwrap().parse().unwrap()
        };
        let cells: Vec<_> = row
            .children()
            .filter(|node| node.has_tag_name("td"))
            .collect();
        let [.., skipped, all] = cells.as_slice() else {
            panic!("{text}");
        };
        let kinds = cells
            .iter()
            .filter_map(|cell| Some((cell.attribute("data-kind")?, number(*cell))));
        let mut told: BTreeMap<String, usize> =
            kinds.map(|(kind, n)| (kind.to_owned(), n)).collect();
        for (kind, count) in &told {
            *sums.entry(kind.clone()).or_default() += count;
        }
        if number(*skipped) > 0 {
            told.insert(SKIPPED.to_owned(), number(*skipped));
        }
        assert_eq!(told.values().sum::<usize>(), number(*all), "{suite}");
        assert!(
            counts.insert(suite.to_owned(), told).is_none(),
            "{suite} twice"
        );
    }
    let text = part("<ul class=\"kinds\">", "</ul>");
    let document = Document::parse(&text).unwrap();
    let verdicts = document.descendants().filter_map(|node| {
        let first = node.descendants().find(|node| node.has_tag_name("b"))?;
        Some((
            node.attribute("data-kind")?.to_owned(),
            first.text()?.parse().unwrap(),
        ))
    });
    assert_eq!(verdicts.collect::<BTreeMap<String, usize>>(), sums);
    counts
}

/// The words at the end of a run.
fn by_table(text: &str) -> Told {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let [_, kinds @ .., _] = head.as_slice() else {
        panic!("{text}");
    };
    let mut told = Told::default();
    let mut sums: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines.by_ref() {
        // From the right, since names have spaces.
        let mut rest = line;
        let mut numbers: Vec<usize> = Vec::new();
        for _ in 0..=kinds.len() {
            let (before, number) = rest.trim_end().rsplit_once(' ').unwrap();
            numbers.push(number.parse().unwrap());
            rest = before;
        }
        let (all, counts) = numbers.split_first().unwrap();
        assert_eq!(*all, counts.iter().sum::<usize>(), "{line}");
        let counts = kinds.iter().rev().zip(counts);
        let counts = counts.filter(|(_, count)| **count > 0);
        let counts: BTreeMap<String, usize> = counts.map(|(k, n)| ((*k).to_owned(), *n)).collect();
        let suite = rest.trim_end();
        if suite == "all" {
            assert_eq!(counts, sums);
            break;
        }
        for (kind, count) in &counts {
            *sums.entry(kind.clone()).or_default() += count;
        }
        told.counts.insert(suite.to_owned(), counts);
    }
    assert!(
        text.contains("an \"entry\" <\\u{1b}>: nothing & nobody"),
        "{text}"
    );
    let (_, open) = text.split_once("\nfull report: ").unwrap();
    let open: Vec<&str> = open.lines().skip(2).collect();
    let [open @ .., last, _] = open.as_slice() else {
        panic!("{text}");
    };
    for line in open.iter().filter(|line| !line.starts_with("    ")) {
        let (label, id) = line.split_once("  ").unwrap();
        // The one suite whose verdicts have a reason with such a mark.
        let suite = if label.contains('<') { ODD } else { PLAIN };
        told.fails(suite, id);
    }
    let count = told.failing.len();
    assert!(
        last.starts_with(&format!("{count} cases need an answer")),
        "{text}"
    );
    told
}

#[test]
fn every_report_of_a_run_tells_the_same_of_every_verdict() {
    let bench = Bench::new();
    let kinds: BTreeSet<&String> = bench
        .told
        .counts
        .values()
        .flat_map(BTreeMap::keys)
        .collect();
    assert_eq!(kinds.len(), KINDS.len() + 1, "all, and what was skipped");
    let folder = tempfile::tempdir().unwrap();
    let mut log = json::Log::create(folder.path()).unwrap();
    bench
        .results
        .iter()
        .for_each(|result| log.add(result).unwrap());
    let catalogue = Catalogue::default();
    let whole = in_step(
        &bench.told,
        &bench.run(&bench.results, &catalogue),
        folder.path(),
    );
    assert_eq!(whole.unsteady, 1);

    // The same in two parts that are put together.
    let parts = [folder.path().join("part-1"), folder.path().join("part-2")];
    for (place, part) in parts.iter().enumerate() {
        let mut log = json::Log::create(part).unwrap();
        let own: Vec<_> = bench.results.iter().skip(place).step_by(2).collect();
        own.iter().for_each(|result| log.add(result).unwrap());
        let summary = Summary {
            ran: own.len(),
            ..whole.clone()
        };
        json::write_summary(part, &summary).unwrap();
    }
    let merged = merge::read(&parts, &bench.suites, &[]).unwrap();
    let not_run: BTreeSet<_> = merged.not_run.iter().map(|case| &case.id).collect();
    assert_eq!(not_run, bench.skipped.iter().map(|case| &case.id).collect());
    let all = folder.path().join("all");
    let mut log = json::Log::create(&all).unwrap();
    merged
        .results
        .iter()
        .for_each(|result| log.add(result).unwrap());
    let run = Run {
        not_run: &merged.not_run,
        hermes: &merged.hermes,
        ..bench.run(&merged.results, &catalogue)
    };
    let together = in_step(&bench.told, &run, &all);
    assert_eq!(together.suites, whole.suites);
    assert_eq!(together.not_run, whole.not_run);
    assert_eq!(together.exit, whole.exit);
}
