//! Which cases a run is to run.

use crate::case::Case;
use crate::cli::{CheckArgs, Shard};
use crate::report::table;
use crate::suite::Suites;

/// The source of cases that `cargo xtask vectors make` has made.
const GENERATED: &str = "generated";

/// The cases that the options leave.
pub(super) fn choose<'s>(suites: &'s Suites, args: &CheckArgs) -> Result<Vec<&'s Case>, String> {
    suites.named(&args.suite)?;
    let wanted: Vec<&String> = args.case.iter().chain(&args.explain).collect();
    for id in &wanted {
        if !suites.cases.iter().any(|case| case.id == **id) {
            let ids = suites.cases.iter().map(|case| case.id.as_str());
            let meant = match hermitcrab::config::keys::nearest(id, ids) {
                Some(meant) => format!("did you mean `{meant}`? "),
                None => String::new(),
            };
            return Err(format!(
                "no case `{id}`; {meant}`bisim check --list` shows all"
            ));
        }
    }
    // A gate that runs less than it was told to must not look like one that passed.
    let left_out = suites.cases.iter().find(|case| {
        wanted.iter().any(|id| **id == case.id)
            && !args.suite.is_empty()
            && !args.suite.contains(&case.suite)
    });
    if let Some(case) = left_out {
        return Err(format!(
            "case `{}` is of the suite `{}`, which --suite leaves out",
            case.id, case.suite
        ));
    }
    let chosen: Vec<&Case> = suites
        .cases
        .iter()
        .filter(|case| args.suite.is_empty() || args.suite.contains(&case.suite))
        .filter(|case| wanted.is_empty() || wanted.iter().any(|id| **id == case.id))
        .collect();
    let chosen = match args.generated {
        Some(part) => with_part_of_the_generated(chosen, part),
        None => chosen,
    };
    if chosen.is_empty() {
        return Err("there is no case in what was chosen, and nothing that ran has passed".into());
    }
    let Some(shard) = args.shard else {
        return Ok(chosen);
    };
    let all = chosen.len();
    let part: Vec<&Case> = chosen
        .into_iter()
        .enumerate()
        .filter(|(place, _)| shard.takes(*place))
        .map(|(_, case)| case)
        .collect();
    if part.is_empty() {
        eprintln!(
            "part {} of {} of {} is empty: nothing runs here",
            shard.part,
            shard.parts,
            table::cases(all)
        );
    }
    Ok(part)
}

/// What was written by hand or recorded, and one of several parts of what was generated: each of
/// its suites has many cases of a kind, and all of them run where the other parts do.
fn with_part_of_the_generated(chosen: Vec<&Case>, part: Shard) -> Vec<&Case> {
    let (mut all, mut taken) = (0, 0);
    let left = chosen
        .into_iter()
        .filter(|case| {
            if case.source.from != GENERATED {
                return true;
            }
            let takes = part.takes(all);
            all += 1;
            taken += usize::from(takes);
            takes
        })
        .collect();
    eprintln!(
        "of {all} generated cases {taken} run here, part {} of {}; without --generated all do",
        part.part, part.parts
    );
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::load;

    fn chosen(suites: &Suites, more: &[&str]) -> Vec<String> {
        use clap::Parser as _;
        let words = ["bisim", "check"].iter().chain(more);
        let crate::cli::Command::Check(args) = crate::cli::Cli::parse_from(words).command else {
            panic!("that is `check`");
        };
        let chosen = choose(suites, &args).unwrap();
        chosen.into_iter().map(|case| case.id.clone()).collect()
    }

    #[test]
    fn parts_of_the_generated_are_disjoint_and_with_what_was_not_the_whole() {
        let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        let (suites, _) = load(&vectors).unwrap();
        let is_generated = |id: &String| {
            let case = suites.cases.iter().find(|case| case.id == *id).unwrap();
            case.source.from == GENERATED
        };
        let whole = chosen(&suites, &[]);
        let (drawn, written): (Vec<String>, Vec<String>) =
            whole.into_iter().partition(is_generated);
        assert!(drawn.len() > 1000 && written.len() > 1000);
        let mut found = Vec::new();
        for part in ["1/4", "2/4", "3/4", "4/4"] {
            let (part, rest): (Vec<String>, Vec<String>) = chosen(&suites, &["--generated", part])
                .into_iter()
                .partition(is_generated);
            assert_eq!(rest, written, "what was written by hand runs each time");
            assert!(part.len().abs_diff(drawn.len() / 4) <= 1);
            found.extend(part);
        }
        found.sort();
        let mut all = drawn;
        all.sort();
        assert_eq!(found, all);
    }
}
