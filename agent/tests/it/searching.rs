//! Where a search begins decides how names are written, not what is found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support;

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
