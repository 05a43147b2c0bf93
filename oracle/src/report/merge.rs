//! Several report directories, such as the shards of a CI matrix, as one run.
//!
//! The gate is the same as for a single run, and stricter in one thing: what no
//! shard ran counts as not run, so that a lost shard never looks like a pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hermitcrab::screen::on_one_line;

use crate::commit;
use crate::report::json;
use crate::report::publish::NotRun;
use crate::result::CaseResult;
use crate::suite::Suites;

/// What several reports hold together.
#[derive(Debug)]
pub struct Merged {
    /// The results, in the order of the vectors.
    pub results: Vec<CaseResult>,
    /// Cases that none of them ran.
    pub not_run: Vec<NotRun>,
    /// The Hermes version they all compared with.
    pub hermes: String,
    /// The commit they were made from, if one of them says it.
    pub commit: String,
    /// Wall time of all of them, in milliseconds.
    pub wall_ms: u64,
}

/// Reads the reports in `folders`, which were to run `chosen` suites, or all if none is named.
/// What they ran besides counts all the same.
///
/// # Errors
/// One cannot be read, they compare with different releases or come from
/// different versions or commits of the agent, one was checked with other vectors than these,
/// or a case is in two of them.
pub fn read(folders: &[PathBuf], suites: &Suites, chosen: &[String]) -> Result<Merged, String> {
    let mut found: BTreeMap<String, (CaseResult, &Path)> = BTreeMap::new();
    let mut versions: Option<(String, String, &Path)> = None;
    let mut wall_ms = 0_u64;
    let mut commit: Option<(String, &Path)> = None;
    for folder in folders {
        let summary = json::read_summary(folder).map_err(|why| {
            format!("{why}; a part is the --report directory of a `check` that came to its end")
        })?;
        wall_ms = wall_ms.saturating_add(summary.wall_ms);
        // What a report says of itself is anybody's.
        let (hermes, agent) = (on_one_line(&summary.hermes), on_one_line(&summary.agent));
        match &versions {
            Some((h, a, first)) if (h, a) != (&hermes, &agent) => {
                return Err(format!(
                    "`{}` compares agent {a} with Hermes {h}, `{}` agent {agent} with Hermes {hermes}; they cannot be merged",
                    first.display(),
                    folder.display()
                ));
            }
            Some(_) => {}
            None => versions = Some((hermes, agent, folder)),
        }
        let made_from = on_one_line(&summary.commit);
        match &commit {
            Some((other, first)) if commit::differ(other, &made_from) => {
                return Err(format!(
                    "`{}` was made from {other}, `{}` from {made_from}; run all parts of one commit",
                    first.display(),
                    folder.display()
                ));
            }
            None if !made_from.is_empty() => commit = Some((made_from, folder)),
            Some(_) | None => {}
        }
        // The cases may be called the same and be others.
        if summary.vectors != suites.digest {
            return Err(format!(
                "`{}` was checked with other vectors, or another catalogue of known differences, than these; run it again with these, or name those with --vectors",
                folder.display()
            ));
        }
        let results = json::read_results(folder)
            .map_err(|why| format!("{why}; bring the whole part again, or run it again"))?;
        // What one lost on its way here may be what it found.
        if results.len() != summary.ran {
            return Err(format!(
                "of {} cases that ran, `{}` holds {}; bring the whole part again, or run it again",
                summary.ran,
                folder.join(json::LOG).display(),
                results.len()
            ));
        }
        for result in results {
            let id = result.id.clone();
            if let Some((_, other)) = found.insert(id.clone(), (result, folder)) {
                return Err(format!(
                    "case `{}` is in `{}` and in `{}`; merge the shards of one run only",
                    on_one_line(&id),
                    other.display(),
                    folder.display()
                ));
            }
        }
    }
    let Some((hermes, _, _)) = versions else {
        return Err("no report was named".to_owned());
    };
    let (mut results, mut not_run) = (Vec::new(), Vec::new());
    for case in &suites.cases {
        match found.remove(&case.id) {
            Some((result, _)) => results.push(result),
            None if chosen.is_empty() || chosen.contains(&case.suite) => {
                not_run.push(NotRun::new(case, "none of the merged reports has them"));
            }
            None => {}
        }
    }
    if let Some((id, (_, folder))) = found.first_key_value() {
        return Err(format!(
            "`{}` holds case `{}`, which these vectors do not have",
            folder.display(),
            on_one_line(id)
        ));
    }
    Ok(Merged {
        results,
        not_run,
        hermes,
        commit: commit.map(|(commit, _)| commit).unwrap_or_default(),
        wall_ms,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{json, read};
    use crate::report::html::tests::result;
    use crate::result::{CaseResult, Summary};
    use crate::suite;
    use crate::verdict::Kind;

    #[test]
    fn what_a_part_says_of_itself_is_told_on_one_line_and_draws_nothing() {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        let suites = suite::load(&vectors).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let odd = "\u{1b}[2J\u{202e}x\n::error::y";
        let part = |name: &str, hermes: &str, id: &str| {
            let place = folder.path().join(name);
            let mut summary = Summary {
                hermes: hermes.to_owned(),
                vectors: suites.digest.clone(),
                ..Summary::default()
            };
            let one = result(id, Kind::Equal, "");
            json::Log::create(&place).unwrap().add(&one).unwrap();
            summary.add(&one);
            json::write_summary(&place, &summary).unwrap();
            place
        };
        let of_another = part("a", odd, "x");
        let plain = part("b", "0.19.0", "x");
        let of_no_case = part("c", "0.19.0", odd);
        let again = part("d", "0.19.0", odd);
        let broken = part("e", "0.19.0", "x");
        let line = json!({ "id": 1, odd: odd, "verdict": {"kind": odd} }).to_string() + "\n";
        std::fs::write(broken.join(json::LOG), line).unwrap();
        let pipe = part("f", "0.19.0", "x");
        std::fs::remove_file(pipe.join(json::LOG)).unwrap();
        nix::unistd::mkfifo(&pipe.join(json::LOG), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (parts, told) in [
            (vec![plain, of_another], "they cannot be merged"),
            (vec![of_no_case.clone()], "do not have"),
            (vec![of_no_case, again], "merge the shards of one run only"),
            (vec![broken], "bring the whole part again"),
            (vec![pipe], "it is a pipe, and no file"),
        ] {
            let why = read(&parts, &suites, &[]).unwrap_err();
            assert!(why.contains(told), "{why}");
            assert!(!why.contains(['\u{1b}', '\u{202e}', '\n']), "{why:?}");
        }
    }

    #[test]
    fn parts_of_two_agents_are_not_one_run_and_the_time_of_all_is_told() {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        let suites = suite::load(&vectors).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let part_of = |place: usize, agent: &str, commit: &str| {
            let part = folder.path().join(format!("{place}-{agent}-{commit}"));
            let one = result(&suites.cases[place].id, Kind::Equal, "");
            json::Log::create(&part).unwrap().add(&one).unwrap();
            let mut summary = Summary {
                hermes: "0.19.0".to_owned(),
                agent: agent.to_owned(),
                commit: commit.to_owned(),
                vectors: suites.digest.clone(),
                wall_ms: 40,
                ..Summary::default()
            };
            summary.add(&one);
            json::write_summary(&part, &summary).unwrap();
            part
        };
        let part = |place: usize, agent: &str| part_of(place, agent, "");
        let merged = read(&[part(0, "0.1.0"), part(1, "0.1.0")], &suites, &[]).unwrap();
        assert_eq!((merged.results.len(), merged.wall_ms), (2, 80));
        let why = read(&[part(0, "0.1.0"), part(1, "0.2.0")], &suites, &[]).unwrap_err();
        assert!(
            why.ends_with("agent 0.2.0 with Hermes 0.19.0; they cannot be merged"),
            "{why}"
        );
        // So are those of one version and two commits; one that does not say it is of any.
        let of = |place: usize, commit: &str| part_of(place, "0.1.0", commit);
        let merged = read(&[of(0, ""), of(1, "ab"), of(2, "ab")], &suites, &[]).unwrap();
        assert_eq!((merged.results.len(), merged.commit.as_str()), (3, "ab"));
        let why = read(&[of(0, ""), of(1, "ab"), of(2, "ab+1")], &suites, &[]).unwrap_err();
        assert!(
            why.contains("1-0.1.0-ab` was made from ab, `")
                && why.ends_with("2-0.1.0-ab+1` from ab+1; run all parts of one commit"),
            "{why}"
        );
    }

    #[test]
    fn parts_of_chosen_suites_are_whole_and_a_lost_one_is_noticed() {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
        let suites = suite::load(&vectors).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let of_smoke = || suites.cases.iter().filter(|case| case.suite == "smoke");
        let parts: Vec<_> = ["part-1", "part-2"]
            .map(|name| folder.path().join(name))
            .into();
        for (place, part) in parts.iter().enumerate() {
            let mut log = json::Log::create(part).unwrap();
            let mut summary = Summary {
                vectors: suites.digest.clone(),
                ..Summary::default()
            };
            for case in of_smoke().skip(place).step_by(2) {
                let one = CaseResult {
                    suite: case.suite.clone(),
                    ..result(&case.id, Kind::Equal, "")
                };
                log.add(&one).unwrap();
                summary.add(&one);
            }
            json::write_summary(part, &summary).unwrap();
        }
        let all = suites.cases.len();
        let smoke = of_smoke().count();
        let missed = |parts: &[_], chosen: &[&str]| {
            let chosen: Vec<String> = chosen.iter().map(|&name| name.to_owned()).collect();
            let merged = read(parts, &suites, &chosen).unwrap();
            (merged.results.len(), merged.not_run.len())
        };
        assert_eq!(missed(&parts, &["smoke"]), (smoke, 0));
        assert_eq!(
            missed(&parts[..1], &["smoke"]),
            (smoke.div_ceil(2), smoke / 2)
        );
        assert_eq!(missed(&parts, &[]), (smoke, all - smoke));
        // What was run besides counts all the same.
        let other = suites.cases.iter().filter(|case| case.suite == "fs-cap");
        assert_eq!(missed(&parts, &["fs-cap"]), (smoke, other.count()));
        // A part that lost its end is no part that found less.
        let log = parts[1].join(json::LOG);
        let text = std::fs::read_to_string(&log).unwrap();
        let (cut, _) = text.trim_end().rsplit_once('\n').unwrap();
        std::fs::write(&log, format!("{cut}\n")).unwrap();
        let lost = read(&parts, &suites, &["smoke".to_owned()]).unwrap_err();
        let told = format!("of {} cases that ran, `{}` holds", smoke / 2, log.display());
        assert!(lost.starts_with(&told), "{lost}");
        assert!(suites.named(&["smoke".to_owned()]).is_ok());
        let unknown = suites.named(&["smoky".to_owned()]).unwrap_err();
        assert!(
            unknown.contains("no suite `smoky`; did you mean `smoke`? There are acp"),
            "{unknown}"
        );
        let unknown = suites.named(&["nothing-like-it".to_owned()]).unwrap_err();
        assert!(unknown.contains("`; there are acp"), "{unknown}");
    }
}
