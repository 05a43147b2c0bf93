//! The page in a real browser: everything on it is pressed, by mouse and by keyboard, at the
//! width of a desk and of a phone.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use bisim_world::protocol::{EffectKind, End, FsEffect, RawTrace, StepOutcome, StepTrace};
use serde_json::Value;

use self::driver::Browser;
use super::tests::{page_with, result};
use super::*;
use crate::verdict::Kind;

mod driver;

const WALK: &str = include_str!("browser/walk.js");
const DESK: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (390, 844);

/// What a case may hold: the end of the page's data, markup, and letters that turn the order of
/// others.
const HOSTILE: &str = "</script><img src=x onerror=\"document.title='hit'\"> \u{202e}txt.exe\u{2066} \u{200b}\u{7}{{data}}";

/// How a person presses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    Mouse,
    Keys,
}

/// One step that made these files.
fn trace(made: &[&str]) -> RawTrace {
    let mut step = StepTrace::of(StepOutcome::Ran);
    step.text = format!("the text of step one {HOSTILE}");
    RawTrace {
        steps: vec![step],
        effects: made
            .iter()
            .map(|path| FsEffect {
                path: (*path).to_owned(),
                kind: EffectKind::Created,
                digest: String::new(),
                size: 1,
                mode: 0o644,
            })
            .collect(),
        network: Vec::new(),
        tripwires: Vec::new(),
        end: End::Finished,
        cpu_us: 1,
        wall_us: 1,
    }
}

/// A page with more cases than are shown at once, of several verdicts.
fn many(dir: &Path) -> PathBuf {
    let mut results: Vec<CaseResult> = (0..105)
        .map(|number| result(&format!("case-{number}"), Kind::Equal, "the same"))
        .collect();
    let mut strict = result("strict", Kind::Stricter, "it asked");
    strict.explained_by = vec!["effect-stays".to_owned()];
    (strict.hermes, strict.agent) = (Some(trace(&["/both", "/one"])), Some(trace(&["/both"])));
    results.push(strict);
    results.push(result("odd", Kind::Different, HOSTILE));
    written(dir, &results)
}

fn written(dir: &Path, results: &[CaseResult]) -> PathBuf {
    let page = dir.join("index.html");
    fs::write(&page, page_with(results)).unwrap();
    page
}

/// Presses one control, and waits until something is another than before.
fn press(browser: &mut Browser, means: Means, name: &str) {
    let quoted = json!(name).to_string();
    browser.run("walk.top()");
    browser.run("globalThis.before = walk.state()");
    let kind = browser.run(&format!("walk.kind({quoted})"));
    match (means, kind.as_str().unwrap()) {
        // The list of a closed one is the system's and not the page's, so keys choose from it.
        (_, "select") => {
            assert_eq!(browser.run(&format!("walk.focus({quoted})")), name);
            browser.key("ArrowDown");
        }
        (_, "input") => {
            match means {
                Means::Mouse => {
                    let at = browser.run(&format!("walk.point({quoted})"));
                    browser.click(&at);
                }
                Means::Keys => drop(browser.run(&format!("walk.focus({quoted})"))),
            }
            assert_eq!(browser.run("walk.here()"), name);
            browser.ask("Input.insertText", json!({ "text": "strict" }));
        }
        (Means::Mouse, _) => {
            let at = browser.run(&format!("walk.point({quoted})"));
            assert_eq!(at["free"], true, "{name} lies under something else");
            browser.run("globalThis.before = walk.state()");
            browser.click(&at);
        }
        (Means::Keys, _) => {
            assert_eq!(browser.run(&format!("walk.focus({quoted})")), name);
            browser.run("globalThis.before = walk.state()");
            browser.key("Enter");
        }
    }
    browser.until("walk.state() !== before && !document.querySelector('[aria-busy]')");
    assert_eq!(
        browser.run("walk.fits()"),
        true,
        "after {name} the page is wider than its window"
    );
}

fn names(value: &Value) -> Vec<String> {
    let list = value.as_array().unwrap().iter();
    list.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Presses all there is, and all that appears by it; the names of what was pressed.
fn press_all(browser: &mut Browser, page: &Path, means: Means) -> BTreeSet<String> {
    let mut done = BTreeSet::new();
    let mut ways: VecDeque<Vec<String>> = VecDeque::from([Vec::new()]);
    let mut queued = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        browser.open(page, WALK);
        for name in &way {
            press(browser, means, name);
        }
        done.extend(way.last().cloned());
        for name in names(&browser.run("walk.controls()")) {
            if queued.insert(name.clone()) {
                ways.push_back([way.clone(), vec![name]].concat());
            }
        }
    }
    done
}

#[test]
fn everything_on_the_page_can_be_pressed_by_mouse_and_by_keys_at_both_widths() {
    if !driver::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let page = many(dir.path());
    let mut browser = Browser::start(dir.path());
    for (size, scheme, means) in [
        (DESK, "light", Means::Mouse),
        (DESK, "dark", Means::Keys),
        (PHONE, "dark", Means::Mouse),
        (PHONE, "light", Means::Keys),
    ] {
        browser.size(size, scheme);
        let done = press_all(&mut browser, &page, means);
        // So that a walk that found nothing is no pass.
        for name in [
            "#words",
            "#suite",
            "#kind",
            "#named",
            "#reset",
            "#more",
            "#cases button.case odd",
            "#cases button.case case-#",
            "#suites button. suite",
            "#differences-list button.plain effect-stays",
            "#trend-plot button. number",
            "#campaign-plots button. wrapper",
            "#campaign-plots button. copy: cargo bisim replay delete-file+env~#",
            "#cases button. copy: cargo bisim check --explain strict",
        ] {
            let found = done.iter().any(|one| one.starts_with(name));
            assert!(found, "{name} was not pressed, only {done:#?}");
        }
        assert_eq!(browser.complaints, Vec::<String>::new());
        let title = browser.run("document.title");
        assert_eq!(title, "hermitcrab and Hermes 0.19.0", "markup stayed text");
    }
}

#[test]
fn the_keyboard_comes_by_everything_and_nothing_holds_it() {
    if !driver::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let page = many(dir.path());
    let mut browser = Browser::start(dir.path());
    for size in [DESK, PHONE] {
        browser.size(size, "light");
        browser.open(&page, WALK);
        let wanted: BTreeSet<String> = names(&browser.run("walk.stops()")).into_iter().collect();
        assert!(wanted.len() > 20, "{wanted:?}");
        let mut came_by = BTreeSet::new();
        // More presses than there are places, and in the end nothing is left out.
        let places = browser.run("document.querySelectorAll('*').length");
        for _ in 0..places.as_u64().unwrap() {
            browser.key("Tab");
            let here = browser.run("walk.here()").as_str().unwrap().to_owned();
            if here.is_empty() && wanted.is_subset(&came_by) {
                break;
            }
            came_by.insert(here);
            if wanted.is_subset(&came_by) {
                break;
            }
        }
        let missed: Vec<_> = wanted.difference(&came_by).collect();
        assert!(missed.is_empty(), "the keyboard never came by {missed:?}");
    }
}

#[test]
fn verdicts_filter_and_a_case_shows_both_sides_and_what_only_one_did() {
    if !driver::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let page = many(dir.path());
    let mut browser = Browser::start(dir.path());
    for (size, columns) in [(DESK, 2), (PHONE, 1)] {
        browser.size(size, "light");
        browser.open(&page, WALK);
        let shown = |browser: &mut Browser| {
            browser.run("[document.getElementById('count').textContent, document.querySelectorAll('#cases>li').length]")
        };
        assert_eq!(shown(&mut browser), json!(["107 cases", 100]));
        press(&mut browser, Means::Mouse, "#more");
        assert_eq!(shown(&mut browser), json!(["107 cases", 107]));
        assert_eq!(browser.run("document.getElementById('more').hidden"), true);
        // The first verdict is what does not pass.
        press(&mut browser, Means::Keys, "#kind");
        assert_eq!(shown(&mut browser), json!(["1 of 107 cases", 1]));
        assert_eq!(browser.run("location.hash"), "#kind=not+passing");
        press(&mut browser, Means::Mouse, "#reset");
        press(&mut browser, Means::Keys, "#words");
        assert_eq!(shown(&mut browser), json!(["1 of 107 cases", 1]));
        browser.run("document.querySelector('#cases button').click()");
        browser.until("document.querySelector('.more .sides')");
        let sides = "[...document.querySelectorAll('.more .sides h4')].slice(0, 2).map((n) => n.textContent)";
        assert_eq!(browser.run(sides), json!(["Hermes", "hermitcrab"]));
        let line = browser.run("document.querySelector('.more .replay').textContent");
        assert_eq!(line, "cargo bisim check --explain strict");
        let effects = browser.run(
            "[...document.querySelectorAll('.more .effects li')].map((n) => [n.className, ...[...n.children].map((c) => c.textContent)])",
        );
        let told = json!([
            ["", "both", "created /both  1 B  644  "],
            ["only", "only Hermes", "created /one  1 B  644  "],
        ]);
        assert_eq!(effects, told);
        let text = browser.run("document.querySelector('.more').textContent");
        let text = text.as_str().unwrap();
        assert!(
            text.contains("the text of step one </script><img"),
            "{text}"
        );
        assert!(
            text.contains("\\u{202e}txt.exe\\u{2066} \\u{200b}\\u{7}{{data}}"),
            "{text}"
        );
        let tracks = browser.run(
            "getComputedStyle(document.querySelector('.sides')).gridTemplateColumns.split(' ').length",
        );
        assert_eq!(tracks, columns, "side by side where there is room");
        let address = browser.run("location.hash");
        assert_eq!(address, "#words=strict&case=strict");
        let title =
            "[...document.querySelectorAll('#campaign-plots td[title]')].map((n) => n.title)";
        assert_eq!(
            browser.run(title),
            json!(["wrapper, hermes unasked: 3 of 3, 100 %"])
        );
        assert_eq!(
            browser.run("document.querySelectorAll('#trend-plot rect').length"),
            2
        );
        let picture = browser.picture();
        assert_eq!(size_of(&picture), size);
        assert!(picture.len() > 4_000, "{size:?}: an empty picture");
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

/// Nobody's cases, none at all, and as many as there may be.
#[test]
fn a_run_of_nothing_and_a_run_of_ten_thousand_cases_open() {
    if !driver::is_here() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(dir.path());
    browser.size(PHONE, "light");
    for (count, told) in [(0, "0 cases"), (10_000, "10,000 cases")] {
        let results: Vec<CaseResult> = (0..count)
            .map(|number| {
                let mut one = result(&format!("case-{number}"), Kind::Stricter, "it asked");
                (one.hermes, one.agent) = (Some(trace(&["/a"])), Some(trace(&["/a"])));
                one
            })
            .collect();
        let page = written(dir.path(), &results);
        browser.open(&page, WALK);
        assert_eq!(
            browser.run("document.getElementById('count').textContent"),
            told
        );
        assert_eq!(browser.run("walk.fits()"), true);
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

/// Width and height, as the picture says.
fn size_of(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}
