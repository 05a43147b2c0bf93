//! `bisim report` and `bisim merge`: what was seen before, told again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ambient::Ambient;
use crate::cli::{Allowed, HERMES_DEFAULT, MergeArgs, ReportArgs};
use crate::exit::Unwritten;
use crate::known::Catalogue;
use crate::pulse::Pulse;
use crate::report::publish::{self, Outputs, Run};
use crate::report::{history, html, json, merge, table};
use crate::result::{CaseResult, Summary};
use crate::suite::Suites;
use crate::{campaign, check, environment, exit};

/// Makes the page of a report directory; returns the exit code.
#[must_use]
pub fn report(ambient: &Ambient, args: &ReportArgs) -> u8 {
    if let Err(message) =
        check::named_vectors(args.vectors.as_deref()).and_then(|()| to_be_a_page(&args.html))
    {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let vectors = vectors(ambient, args.vectors.as_deref());
    let (suites, catalogue) = match check::load(&vectors) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let from = match &args.from {
        Some(from) => Some(from.clone()),
        // Who only hunted has no check to show.
        None => {
            let usual = ambient.reports.join("target/bisim");
            (args.fuzz.is_empty() || usual.join(json::SUMMARY).exists()).then_some(usual)
        }
    };
    let making = Pulse::start("reading what was seen, and making the page");
    let made = page(
        ambient,
        from.as_deref(),
        &args.fuzz,
        (&suites, &catalogue),
        &args.html,
    );
    drop(making);
    match made {
        Ok(place) => {
            println!("{}", place.display());
            exit::CONFORM
        }
        Err(unwritten) => unwritten.exit(),
    }
}

/// A page is a file in a directory of its own, which is made; said before anything is read.
fn to_be_a_page(place: &Path) -> Result<(), String> {
    match place.symlink_metadata() {
        Ok(_) if !place.is_dir() => Err(format!(
            "`{0}` is no directory, and the page goes into one, as `{1}`; name another with --html, such as `--html {0}-page`",
            place.display(),
            html::FILE
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Nobody means the same part twice.
fn each_once(parts: &[PathBuf]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for part in parts {
        // What is not there is told when it is read.
        if let Ok(place) = part.canonicalize()
            && !seen.insert(place)
        {
            return Err(format!(
                "`{}` is named twice; name each part once",
                part.display()
            ));
        }
    }
    Ok(())
}

fn page(
    ambient: &Ambient,
    from: Option<&Path>,
    fuzz: &[PathBuf],
    vectors: (&Suites, &Catalogue),
    place: &Path,
) -> Result<PathBuf, Unwritten> {
    let of_no_use = |message: String| Unwritten {
        message,
        code: exit::USAGE,
    };
    let campaigns = fuzz
        .iter()
        .map(|folder| {
            if !campaign::is_campaign(folder) {
                return Err(format!(
                    "no campaign is on record in `{}`; name with --fuzz the directory of one, which `bisim fuzz` says at its end",
                    folder.display()
                ));
            }
            serde_json::to_value(campaign::read(folder)?).map_err(|error| error.to_string())
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(of_no_use)?;
    let (summary, results, history) = match from {
        Some(from) => {
            let (summary, results) = checked(from).map_err(of_no_use)?;
            (summary, results, history::read(from))
        }
        None => {
            let summary = nothing_checked(ambient, vectors);
            (summary, Vec::new(), Vec::new())
        }
    };
    html::write(
        &html::Page {
            made: &ambient.today,
            summary: &summary,
            results: &results,
            vectors,
            history: &history,
            campaigns: &campaigns,
        },
        place,
    )
}

/// What a check left.
fn checked(from: &Path) -> Result<(Summary, Vec<CaseResult>), String> {
    let summary = json::read_summary(from)
        .map_err(|why| format!("{why}; run `cargo bisim check` first, or name its --report"))?;
    let results = json::read_results(from).map_err(|why| format!("{why}; run the check again"))?;
    // A page of part of them would look like one of a run that found less.
    if results.len() != summary.ran {
        return Err(format!(
            "of {} cases that ran, `{}` holds {}; run the check again",
            summary.ran,
            from.join(json::LOG).display(),
            results.len()
        ));
    }
    Ok((summary, results))
}

/// What is told of a check where there was none.
fn nothing_checked(ambient: &Ambient, vectors: (&Suites, &Catalogue)) -> Summary {
    let run = Run {
        results: &[],
        not_run: &[],
        vectors,
        hermes: HERMES_DEFAULT,
        today: &ambient.today,
        again: "",
    };
    run.summary(Allowed {
        inconclusive_max: 0,
        unsteady_max: 0,
    })
}

/// Puts several reports together and judges them as one run; returns the exit code.
#[must_use]
pub fn merge(ambient: &Ambient, args: &MergeArgs) -> u8 {
    // What is merged would be written over, and could not be merged again.
    let place = |folder: &Path| folder.canonicalize().ok();
    let out = place(&args.out);
    if out.is_some() && args.reports.iter().any(|part| place(part) == out) {
        eprintln!(
            "error: `{}` is one of the parts, and a merged report would replace it; name another --out",
            args.out.display()
        );
        return exit::USAGE;
    }
    if args
        .reports
        .iter()
        .any(|place| campaign::is_campaign(place))
    {
        let stranger = args
            .reports
            .iter()
            .find(|place| !campaign::is_campaign(place));
        if let Some(place) = stranger {
            eprintln!(
                "error: `{}` is no directory of a campaign, and others are; merge parts of one kind only",
                place.display()
            );
            return exit::USAGE;
        }
        return merge_campaign(args);
    }
    if let Err(message) =
        check::named_vectors(args.vectors.as_deref()).and_then(|()| each_once(&args.reports))
    {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let vectors = vectors(ambient, args.vectors.as_deref());
    let (suites, catalogue) = match check::load(&vectors) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let outputs = Outputs {
        folder: &args.out,
        json: args.json,
        junit: args.junit.as_deref(),
        sarif: args.sarif.as_deref(),
        places: (&vectors, &ambient.root),
    };
    if let Err(message) = suites.named(&args.suite) {
        eprintln!("error: {message}");
        return exit::USAGE;
    }
    let _alone = match environment::alone(&args.out, "--out") {
        Ok(alone) => alone,
        Err(unwritten) => return unwritten.exit(),
    };
    // Before the parts are read: what was merged here before is not taken for what cannot be.
    if let Err(unwritten) = outputs.begin() {
        return unwritten.exit();
    }
    let reading = Pulse::start("reading the parts");
    let merged = merge::read(&args.reports, &suites, &args.suite);
    drop(reading);
    let merged = match merged {
        Ok(merged) => merged,
        Err(message) => {
            eprintln!("error: {message}");
            return exit::USAGE;
        }
    };
    let run = Run {
        results: &merged.results,
        not_run: &merged.not_run,
        vectors: (&suites, &catalogue),
        hermes: &merged.hermes,
        today: &ambient.today,
        again: &publish::again(args.vectors.as_deref(), &merged.hermes),
    };
    let summary = Summary {
        wall_ms: merged.wall_ms,
        commit: merged.commit.clone(),
        ..run.summary(args.allowed)
    };
    let written = json::Log::create(&args.out)
        .and_then(|mut log| merged.results.iter().try_for_each(|result| log.add(result)))
        .map_err(|error| format!("cannot write in `{}`: {error}", args.out.display()))
        .and_then(|()| run.publish(&summary, &outputs))
        .and_then(|()| history::add(&args.out, &ambient.today, &summary));
    if !args.json {
        check::show_failures(&merged.results);
        // A report that is not there is not named.
        let report = written.is_ok().then_some(args.out.as_path());
        print!("{}", table::render(&summary, report));
    }
    // Beside what a program reads, and after what a person does.
    if let Some(hint) = only_chosen(args, &merged) {
        eprintln!("{hint}");
    }
    publish::exit(written, &summary)
}

/// What is said of parts that seem to be of chosen suites, when nobody said of which.
fn only_chosen(args: &MergeArgs, merged: &merge::Merged) -> Option<String> {
    let there: BTreeSet<&str> = merged
        .results
        .iter()
        .map(|result| result.suite.as_str())
        .collect();
    let lost = merged
        .not_run
        .iter()
        .any(|case| !there.contains(case.suite.as_str()));
    if !args.suite.is_empty() || there.is_empty() || !lost {
        return None;
    }
    let flags: Vec<String> = there
        .iter()
        .map(|suite| format!("--suite {suite}"))
        .collect();
    Some(format!(
        "of some suites no part has a case; if the parts were of chosen ones, say so: {}",
        flags.join(" ")
    ))
}

fn merge_campaign(args: &MergeArgs) -> u8 {
    // Whoever names a file for a report waits for that file.
    let unmet = [
        ("--suite", !args.suite.is_empty()),
        ("--json", args.json),
        ("--junit", args.junit.is_some()),
        ("--sarif", args.sarif.is_some()),
        ("--vectors", args.vectors.is_some()),
    ];
    if let Some((option, _)) = unmet.iter().find(|(_, is_given)| *is_given) {
        eprintln!(
            "error: {option} is for the parts of a check, and these are of a campaign; leave it out: `campaign.json` in --out has what a program reads"
        );
        return exit::USAGE;
    }
    match campaign::merge(&args.reports, &args.out) {
        Ok(tally) => {
            print!("{}", tally.render());
            println!("log, findings and summary: {}", args.out.display());
            tally.exit()
        }
        Err(unwritten) => unwritten.exit(),
    }
}

fn vectors(ambient: &Ambient, named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| ambient.root.join("vectors"), Path::to_owned)
}
