//! What a search finds, how it names that, and how little it reads for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

use hermitcrab::runtime::Fate;
use serde_json::{Value, json};
use support::Bench;

#[test]
fn a_search_from_here_finds_what_one_from_the_whole_name_of_the_place_finds() {
    let mut bench = Bench::with_files();
    for (name, text) in [
        ("a.txt", "alpha one\n"),
        ("src/b.txt", "beta\nalpha two\nalpha three\n"),
        ("src/deep/c.md", "gamma alpha\n"),
        (".hidden/d.txt", "alpha in a hidden directory\n"),
        ("src/.e.txt", "alpha in a hidden file\n"),
    ] {
        bench.put(name, text);
    }
    let whole = bench.workspace.to_str().unwrap().to_owned();
    let mut found = 0;
    for extra in [
        json!({}),
        json!({"output_mode": "files_only"}),
        json!({"output_mode": "count"}),
        json!({"context": 1}),
        json!({"file_glob": "*.md"}),
        json!({"limit": 2, "offset": 1}),
        json!({"pattern": "no such text"}),
    ] {
        for (start, from) in [
            (None, whole.clone()),
            (Some("."), whole.clone()),
            (Some("./"), whole.clone()),
            (Some("./src"), format!("{whole}/src")),
            (Some("src/../."), whole.clone()),
        ] {
            let mut args = json!({"pattern": "alpha"});
            for (key, value) in extra.as_object().unwrap() {
                args[key] = value.clone();
            }
            args["path"] = json!(from);
            let expected = bench.call("search_files", args.clone()).text;
            match start {
                Some(start) => args["path"] = json!(start),
                None => drop(args.as_object_mut().unwrap().remove("path")),
            }
            let here = bench.call("search_files", args.clone()).text;
            let total =
                |text: &str| serde_json::from_str::<Value>(text).unwrap()["total_count"].clone();
            assert_eq!(total(&here), total(&expected), "{args}: {here} {expected}");
            let plain = |text: &str| {
                let shorter = text.replace(&format!("{whole}/"), "");
                shorter.replace("src/../", "").replace("./", "")
            };
            assert_eq!(plain(&here), plain(&expected), "{args}");
            found += total(&here).as_u64().unwrap();
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn long_files_are_read_a_few_at_a_time_and_all_of_them() {
    let mut bench = Bench::with_files();
    // Two of them are as much as is in memory at once.
    let long = "x\n".repeat(4 << 20) + "needle\n";
    for number in 0..8 {
        bench.put(&format!("log{number}.txt"), &long);
    }
    let found = bench.call("search_files", json!({"pattern": "needle", "limit": 50}));
    let found: Value = serde_json::from_str(&found.text).unwrap();
    assert_eq!(found["total_count"], 8, "{found}");
    assert_eq!(read(&bench), [8, 6, 4]);
}

/// The places each decision to read in the ledger was about, in order.
fn read(bench: &Bench) -> Vec<usize> {
    let ledger = std::fs::read_to_string(bench.state.join("ledger.jsonl")).unwrap();
    ledger
        // Behind the records is room for more while they are written.
        .trim_end_matches('\0')
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["kind"] == "intent")
        .map(|record| {
            let text = record["text"].as_str().unwrap().to_owned();
            let more = text
                .split_once(" and ")
                .and_then(|(_, rest)| rest.split_once(" more, all "))
                .map_or(0, |(more, _)| more.parse().unwrap());
            text.matches(" fs.read dir").count() + more
        })
        // A look at the place itself comes first, and is no reading.
        .filter(|read| *read > 2)
        .collect()
}

#[test]
fn a_search_reads_no_more_files_than_its_page_needs() {
    const FILES: usize = 600;
    let search = |text: &dyn Fn(usize) -> String, args: Value| {
        let mut bench = Bench::with_files();
        for number in 0..FILES {
            bench.put(&format!("many/{number}.txt"), &text(number));
        }
        let mut all = json!({"pattern": "needle", "path": "many"});
        for (key, value) in args.as_object().unwrap() {
            all[key] = value.clone();
        }
        let report = bench.call("search_files", all);
        let told = report.text.split("\n\n[Hint").next().unwrap();
        let result: Value = serde_json::from_str(told).unwrap();
        (result["total_count"].as_u64().unwrap(), read(&bench))
    };
    let one = |_| "first\nneedle\n".to_owned();
    for (args, found, expected) in [
        (json!({"limit": 40}), 40, &[40][..]),
        (json!({"limit": 40, "offset": 60}), 100, &[100]),
        (json!({"limit": 300}), 300, &[256, 44]),
        // A few where a page is short, in case not every one has a row.
        (json!({"limit": 3}), 3, &[8]),
        (json!({"limit": 40, "output_mode": "files_only"}), 40, &[40]),
        // Each with the line above it and a mark between: 250 rows hold 167 lines.
        (json!({"limit": 50, "context": 1}), 167, &[84]),
    ] {
        let seen = search(&one, args.clone());
        assert_eq!(seen, (found, expected.to_vec()), "{args}");
    }
    // Many rows in each file.
    let rows = |_| "needle\n".repeat(30);
    let seen = search(&rows, json!({"limit": 400}));
    assert_eq!(seen, (400, vec![256]));
    // Nothing to be found: all of them, ever more at once.
    let none = |_| "hay\n".to_owned();
    let seen = search(&none, json!({"limit": 40}));
    assert_eq!(seen, (0, vec![40, 80, 240, 240]));
    // One match in ten files, in whatever order they are kept.
    let few = |number: usize| {
        if number.is_multiple_of(10) {
            "needle\n"
        } else {
            "hay\n"
        }
        .to_owned()
    };
    let (found, read) = search(&few, json!({"limit": 20}));
    assert!(found >= 20, "{found} {read:?}");
    let mut before = 20;
    for (at, read) in read.iter().enumerate() {
        assert!(*read <= if at == 0 { 20 } else { before * 2 }, "{read}");
        before += if at == 0 { 0 } else { *read };
    }
    assert!(
        (20..FILES).contains(&before),
        "{before} files read for 20 rows"
    );
}

#[test]
fn a_file_that_is_no_file_by_now_has_no_rows_and_ends_no_search() {
    let mut bench = Bench::with_files();
    for name in ["a.txt", "b.txt", "c/d.txt", "c/e.txt", "z.txt"] {
        bench.put(name, "needle\n");
    }
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f"), "needle from outside\n").unwrap();
    std::os::unix::fs::symlink(outside.path().join("f"), bench.workspace.join("link")).unwrap();
    std::os::unix::fs::symlink("c", bench.workspace.join("way")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.workspace.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    bench.put("binary", "needle\0needle\n");
    bench.put("latin", "");
    std::fs::write(
        bench.workspace.join("latin"),
        b"needle \xe9\nplain needle\n",
    )
    .unwrap();
    let args = json!({"pattern": "needle", "output_mode": "files_only"});
    let report = bench.call("search_files", args);
    let result: Value = serde_json::from_str(&report.text).unwrap();
    let mut files: Vec<&str> = result["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap().trim_start_matches("./"))
        .collect();
    files.sort_unstable();
    let workspace = format!("{}/", bench.workspace.display());
    let files: Vec<&str> = files
        .into_iter()
        .map(|file| file.strip_prefix(&workspace).unwrap_or(file))
        .collect();
    assert_eq!(
        files,
        [
            "a.txt", "b.txt", "binary", "c/d.txt", "c/e.txt", "latin", "z.txt"
        ]
    );
}

#[test]
fn what_lies_in_a_directory_of_its_own_is_found_where_its_name_stands() {
    let mut bench = Bench::with_files();
    for name in [
        "a.txt",
        "inner/b.txt",
        "inner/deep/c.txt",
        "d.txt",
        "inner/.env",
    ] {
        bench.put(name, "needle\n");
    }
    let search = |bench: &mut Bench, path: &str| {
        let report = bench.call("search_files", json!({"pattern": "needle", "path": path}));
        assert_eq!(report.fate, Fate::Ran, "{}", report.text);
        report.text
    };
    let whole = bench.workspace.to_str().unwrap().to_owned();
    let before: Vec<String> = [".", &whole].map(|path| search(&mut bench, path)).into();
    assert!(
        before.iter().all(|text| text.contains("_omitted")),
        "{before:?}"
    );
    // The same tree, a part of it under a handle of its own.
    bench.grant("fs.*", "inner");
    let after: Vec<String> = [".", &whole].map(|path| search(&mut bench, path)).into();
    let plain = |texts: Vec<String>| -> Vec<Value> {
        let value = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        texts.into_iter().map(value).collect()
    };
    assert_eq!(plain(after), plain(before));
}
