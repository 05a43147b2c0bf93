//! Campaigns in parts, damaged ones, and what a page is given of them.

use super::*;

fn examined(index: u64, fate: Fate) -> Examined {
    Examined {
        fate,
        ..Examined::of(index, "delete-file+env~0".to_owned())
    }
}

fn part(dir: &Path, name: &str, seed: u64, seen: &[(u64, Fate)]) -> PathBuf {
    let place = dir.join(name);
    fs::create_dir(&place).unwrap();
    let mut log = Log::open(&place, Deal::Worlds(Target::Commands), seed, false).unwrap();
    let mut tally = Tally::default();
    for (index, fate) in seen {
        let seen = examined(*index, *fate);
        log.add(&seen).unwrap();
        tally.add(&seen);
    }
    keep::summary(&place, Part::whole(seed), "0.19.0", &tally).unwrap();
    place
}

/// Says anew of a campaign with one variant in its log which part of it this is.
fn told_anew(place: &Path, shard: Option<Shard>, is_stopped: bool) {
    let mut tally = Tally::default();
    log(place)
        .unwrap()
        .1
        .iter()
        .for_each(|(seen, _)| tally.add(seen));
    let part = Part {
        seed: 7,
        shard,
        is_stopped,
        made_from: MadeFrom::default(),
    };
    keep::summary(place, part, "0.19.0", &tally).unwrap();
}

#[test]
fn a_part_that_is_not_there_is_told_and_is_no_pass() {
    let dir = tempfile::tempdir().unwrap();
    let one = part(dir.path(), "1", 7, &[(0, Fate::HermesSilent)]);
    let two = part(dir.path(), "2", 7, &[(1, Fate::HermesStopped)]);
    for (place, number) in [(&one, 1), (&two, 2)] {
        let shard = Some(Shard {
            part: number,
            parts: 3,
        });
        told_anew(place, shard, false);
    }
    let tally = merge(&[one.clone(), two.clone()], &dir.path().join("a")).unwrap();
    assert!(
        tally.render().contains("part 3/3 is missing"),
        "{}",
        tally.render()
    );
    assert_eq!(tally.exit(), crate::exit::INCONCLUSIVE);
    // Who brings the whole lacks nothing.
    told_anew(&two, None, false);
    let tally = merge(&[one.clone(), two.clone()], &dir.path().join("b")).unwrap();
    assert_eq!(tally.exit(), crate::exit::CONFORM);
    // Who was stopped did not see all of it.
    told_anew(&two, None, true);
    let tally = merge(&[one.clone(), two], &dir.path().join("c")).unwrap();
    assert!(tally.render().contains("was stopped"), "{}", tally.render());
    assert_eq!(tally.exit(), crate::exit::INCONCLUSIVE);
    // Neither did whoever brings that on.
    let tally = merge(&[one, dir.path().join("c")], &dir.path().join("d")).unwrap();
    assert_eq!(tally.exit(), crate::exit::INCONCLUSIVE);
}

#[test]
fn parts_that_were_made_from_two_commits_are_not_one_campaign() {
    let dir = tempfile::tempdir().unwrap();
    let made_from = |name: &str, index: u64, commit: &str| {
        let place = part(dir.path(), name, 7, &[(index, Fate::HermesSilent)]);
        let path = place.join(keep::SUMMARY);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("commit"), "{text}");
        let mut told: serde_json::Value = serde_json::from_str(&text).unwrap();
        told["commit"] = commit.into();
        fs::write(&path, told.to_string()).unwrap();
        place
    };
    let one = made_from("1", 0, "ab");
    let two = made_from("2", 2, "ab");
    let out = dir.path().join("a");
    merge(&[one.clone(), two], &out).unwrap();
    // A merged one says it in its turn.
    let other = made_from("3", 2, "cd");
    let why = merge(&[out, other], &dir.path().join("b")).unwrap_err();
    assert_eq!(
        (why.message.as_str(), why.code),
        (
            "the parts were made from different commits: ab, cd; run all parts of one commit",
            exit::USAGE
        )
    );
}

/// A part of the campaign with seed 7 that programs of these commits ran one after the other.
fn gone_on_with(dir: &Path, name: &str, runs: &[(&str, u64)]) -> PathBuf {
    let place = part(dir, name, 7, &[]);
    let mut tally = Tally::default();
    let mut made_from = MadeFrom::default();
    for (commit, index) in runs {
        let mut log = Log::open(&place, Deal::Worlds(Target::Commands), 7, true).unwrap();
        log.goes_on_from(commit);
        let seen = examined(*index, Fate::HermesSilent);
        log.add(&seen).unwrap();
        tally.add(&seen);
        made_from = log.made_from().clone();
    }
    let part = Part {
        made_from,
        ..Part::whole(7)
    };
    keep::summary(&place, part, "0.19.0", &tally).unwrap();
    place
}

#[test]
fn a_part_that_two_commits_made_is_none_of_one_campaign_and_says_so_on_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let one = gone_on_with(dir.path(), "1", &[("ab", 0)]);
    let two = gone_on_with(dir.path(), "2", &[("ab", 1), ("cd", 3)]);
    let told = "made from different commits: 1 variant of ab, 1 variant of cd";
    assert!(read(&two).unwrap().headline.ends_with(told));
    assert!(!read(&one).unwrap().headline.contains("made from"));
    for parts in [vec![two.clone()], vec![one.clone(), two]] {
        let why = merge(&parts, &dir.path().join("b")).unwrap_err();
        let told = "the parts were made from different commits: ab, cd;";
        assert!(why.message.starts_with(told), "{}", why.message);
        assert_eq!(why.code, exit::USAGE);
    }
    // What nobody knows the commit of speaks against nothing, and is no part of it either.
    let three = gone_on_with(dir.path(), "3", &[("", 4), ("ab", 2)]);
    let again = gone_on_with(dir.path(), "4", &[("", 0)]);
    let out = dir.path().join("c");
    let tally = merge(&[one, three, again], &out).unwrap();
    let told = "made from different commits: 1 variant of an unknown commit, 2 variants of ab\n";
    assert!(tally.render().ends_with(told), "{}", tally.render());
    let (_, all, _) = log(&out).unwrap();
    let all: Vec<(u64, &str)> = all.iter().map(|(seen, of)| (seen.index, &**of)).collect();
    assert_eq!(all, [(4, ""), (0, "ab"), (2, "ab")]);
}

#[test]
fn a_place_that_cannot_be_written_is_told_by_the_option_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let one = part(dir.path(), "1", 7, &[(0, Fate::HermesSilent)]);
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    // A link to nowhere: there is no log, and none can be begun.
    std::os::unix::fs::symlink("nowhere/log", out.join(keep::LOG)).unwrap();
    let why = merge(std::slice::from_ref(&one), &out).unwrap_err();
    assert!(
        why.message.ends_with("; name another place with --out"),
        "{}",
        why.message
    );
}

#[test]
fn a_part_that_lost_its_end_or_never_came_to_it_is_no_part_that_found_less() {
    let dir = tempfile::tempdir().unwrap();
    let seen = [(0, Fate::HermesSilent), (2, Fate::AgentUnsafe)];
    let one = part(dir.path(), "1", 7, &seen);
    let path = one.join(keep::LOG);
    let whole = fs::read_to_string(&path).unwrap();
    let last = whole.trim_end().rfind('\n').unwrap();
    let out = dir.path().join("all");
    let refused = |text: &str, told: &str| {
        fs::write(&path, text).unwrap();
        let why = merge(std::slice::from_ref(&one), &out).unwrap_err();
        assert!(why.message.contains(told), "{}", why.message);
        assert_eq!(why.code, exit::USAGE);
        assert!(!out.exists());
    };
    refused(&whole[..=last], "counts 2 variants");
    // Half a line is what a run that was killed leaves.
    refused(&whole[..whole.len() - 9], "holds 1;");
    let more = whole[last + 1..].replace("\"index\":2", "\"index\":4");
    refused(&format!("{whole}{more}"), "holds 3;");
    refused(&format!("{whole}{{\"x\n"), "line 4 of");
    fs::remove_file(one.join(keep::SUMMARY)).unwrap();
    refused(&whole, "a `fuzz` that came to its end");
}

#[test]
fn the_parts_of_a_campaign_are_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let one = part(
        dir.path(),
        "1",
        7,
        &[(0, Fate::HermesSilent), (2, Fate::NoEffect)],
    );
    let two = part(
        dir.path(),
        "2",
        7,
        &[(1, Fate::HermesStopped), (2, Fate::NoEffect)],
    );
    let out = dir.path().join("all");
    let tally = merge(&[one.clone(), two], &out).unwrap();
    assert_eq!(tally.all.valid(), 2);
    assert_eq!(tally.all.of(Fate::NoEffect), 1, "counted once");
    assert!(is_campaign(&out));
    let seen = read(&out).unwrap();
    assert!(
        seen.headline.starts_with("seed 7: 3 variants"),
        "{}",
        seen.headline
    );
    assert_eq!(
        seen.classes
            .get("wrapper")
            .and_then(|fates| fates.get(&Fate::HermesSilent)),
        Some(&1)
    );
    let again = merge(&[one], &out).unwrap_err().message;
    assert!(again.contains("name another --out"), "{again}");
}

#[test]
fn other_campaigns_and_contradictions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let one = part(dir.path(), "1", 7, &[(0, Fate::HermesSilent)]);
    // It is said that it is another one, and not that it disagrees.
    let other = part(dir.path(), "2", 8, &[(0, Fate::HermesStopped)]);
    let against = part(dir.path(), "3", 7, &[(0, Fate::HermesStopped)]);
    let out = dir.path().join("all");
    for (parts, expected) in [
        (
            vec![one.clone(), other],
            "different campaigns: commands with seed 7, commands with seed 8; Hermes",
        ),
        (vec![one, against], "disagrees"),
        (vec![dir.path().join("none")], "cannot read"),
    ] {
        let why = merge(&parts, &out).unwrap_err().message;
        assert!(why.contains(expected), "{why}");
    }
}

/// The counts of a campaign as its reports tell them: by fate, and what was found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    wrapper: BTreeMap<String, u64>,
    found: [BTreeMap<String, u64>; 3],
}

fn counts(value: &serde_json::Value) -> BTreeMap<String, u64> {
    serde_json::from_value(value.clone()).unwrap()
}

fn by_summary(place: &Path) -> Told {
    let text = fs::read_to_string(place.join(keep::SUMMARY)).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tally = &told["tally"];
    assert_eq!(counts(&tally["all"]), counts(&tally["classes"]["wrapper"]));
    Told {
        wrapper: counts(&tally["all"]),
        found: ["findings", "differences", "escapes"].map(|what| counts(&tally[what])),
    }
}

fn by_page(place: &Path) -> Told {
    use crate::report::html::{Page, render, tests::unpack};
    let campaign = serde_json::to_value(read(place).unwrap()).unwrap();
    let page = Page {
        made: "2026-01-02",
        summary: &crate::result::Summary::default(),
        results: &[],
        vectors: (&Default::default(), &Default::default()),
        history: &[],
        campaigns: &[campaign],
    };
    let page = render(&page).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let data = unpack(rest.split_once('<').unwrap().0);
    let told = &data["campaigns"][0];
    let classes = &told["classes"]["wrapper"];
    assert_eq!(
        counts(&told["operators"]["wrapper"]["env"]),
        counts(classes)
    );
    Told {
        wrapper: counts(classes),
        found: ["findings", "differences", "escapes"].map(|what| {
            let found: Vec<Found> = serde_json::from_value(told[what].clone()).unwrap();
            found.into_iter().map(|(name, n, _)| (name, n)).collect()
        }),
    }
}

#[test]
fn a_campaign_and_its_merged_parts_tell_the_same_in_every_report() {
    const FATES: [Fate; 14] = [
        Fate::NotHere,
        Fate::NoEffect,
        Fate::ControlFired,
        Fate::ControlHeld,
        Fate::HermesSilent,
        Fate::HermesStopped,
        Fate::HermesInert,
        Fate::AgentUnsafe,
        Fate::Served,
        Fate::Differs,
        Fate::NoPlan,
        Fate::PlanStopped,
        Fate::PlanDone,
        Fate::Inconclusive,
    ];
    let odd = "an \"odd\" <name> & \u{1b}[31m";
    let mut told = Told::default();
    let mut all = Vec::new();
    for (place, fate) in FATES.into_iter().enumerate() {
        let word = serde_json::to_value(fate).unwrap();
        for number in 0..=place % 4 {
            let index = u64::try_from(all.len()).unwrap();
            let mut seen = examined(index, fate);
            // Some have been made smaller, others not.
            let smallest = (number > 0).then(|| format!("delete-file+env~{number}"));
            let name = smallest.clone().unwrap_or(seen.variant.clone());
            let found = match fate {
                Fate::AgentUnsafe => Some((0, name)),
                Fate::Differs => Some((1, name)),
                Fate::HermesSilent => {
                    seen.bucket = Some(odd.to_owned());
                    Some((2, odd.to_owned()))
                }
                _ => None,
            };
            seen.smallest = smallest;
            if let Some((what, name)) = found {
                *told.found[what].entry(name).or_default() += 1;
            }
            let word = word.as_str().unwrap().to_owned();
            *told.wrapper.entry(word).or_default() += 1;
            all.push(seen);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let keep = |name: &str, chosen: &[&Examined]| {
        let place = dir.path().join(name);
        let deal = Deal::Worlds(Target::Commands);
        fs::create_dir(&place).unwrap();
        let mut log = Log::open(&place, deal, 7, false).unwrap();
        let mut tally = Tally::default();
        for seen in chosen {
            log.add(seen).unwrap();
            tally.add(seen);
        }
        keep::summary(&place, Part::whole(7), "0.19.0", &tally).unwrap();
        (place, tally)
    };
    let every = |step: usize, from: usize| -> Vec<&Examined> {
        all.iter().skip(from).step_by(step).collect()
    };
    let (whole, tally) = keep("whole", &every(1, 0));
    let parts = [keep("1", &every(2, 0)).0, keep("2", &every(2, 1)).0];
    let merged = dir.path().join("merged");
    let together = merge(&parts, &merged).unwrap();
    assert_eq!(together.render(), tally.render());
    for place in [&whole, &merged] {
        assert_eq!(by_summary(place), told, "JSON");
        assert_eq!(by_page(place), told, "the page");
    }
    let words = tally.render();
    for (said, found) in ["UNSAFE", "differs", "escape"].iter().zip(&told.found) {
        assert!(!found.is_empty());
        for (name, count) in found {
            let name = crate::report::row::name(name);
            let line = format!("\n{said} {count} x {name}\n");
            assert!(words.contains(&line), "{line}: {words}");
        }
    }
}

#[test]
fn a_place_that_is_twice_in_a_log_counts_once_and_as_it_was_first_told() {
    let dir = tempfile::tempdir().unwrap();
    let place = part(dir.path(), "1", 7, &[]);
    let told = [
        (0, Fate::HermesSilent),
        (1, Fate::HermesSilent),
        (0, Fate::HermesSilent),
        (1, Fate::HermesStopped),
    ];
    let open = || Log::open(&place, Deal::Worlds(Target::Commands), 7, true).unwrap();
    let mut again = open();
    for (index, fate) in told {
        again.add(&examined(index, fate)).unwrap();
    }
    // Who goes on with it counts, and who puts parts together counts the same.
    let mut tally = Tally::default();
    let old = open().take_old();
    old.iter().for_each(|seen| tally.add(seen));
    keep::summary(&place, Part::whole(7), "0.19.0", &tally).unwrap();
    let out = dir.path().join("all");
    let whole = merge(&[place], &out).unwrap();
    assert_eq!(whole.all, tally.all);
    assert_eq!(old, [0, 1].map(|index| examined(index, Fate::HermesSilent)));
}
