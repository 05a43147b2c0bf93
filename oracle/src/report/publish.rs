//! From results to a summary, an exit code and the files machines read: the
//! same for a run that has just ended and for several put together.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::case::Case;
use crate::cli::{Allowed, HERMES_DEFAULT};
use crate::exit::{self, Unwritten};
use crate::known::{self, Catalogue, Fault, Usage};
use crate::relation::AUTHORITY_REFINEMENT;
use crate::report::place::Places;
use crate::report::row::{CATALOGUE, Row, VerdictClass};
use crate::report::{json, junit, sarif};
use crate::result::{CaseResult, Summary};
use crate::suite::Suites;
use crate::verdict::Kind;

/// A chosen case without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRun {
    /// The case.
    pub id: String,
    /// Its suite.
    pub suite: String,
    /// Why.
    pub reason: String,
}

impl NotRun {
    /// This case did not run, for this reason.
    #[must_use]
    pub fn new(case: &Case, reason: &str) -> Self {
        Self {
            id: case.id.clone(),
            suite: case.suite.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// What a summary is made from.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r> {
    /// The cases that ran.
    pub results: &'r [CaseResult],
    /// The chosen ones that did not.
    pub not_run: &'r [NotRun],
    /// What all cases and all known divergences are.
    pub vectors: (&'r Suites, &'r Catalogue),
    /// The Hermes version.
    pub hermes: &'r str,
    /// `YYYY-MM-DD`; catalogue entries expire.
    pub today: &'r str,
    /// See [`Summary::again`].
    pub again: &'r str,
}

/// What is wrong with a catalogue before anything ran.
#[must_use]
pub fn faults_before(suites: &Suites, catalogue: &Catalogue, today: &str) -> Vec<Fault> {
    let mut faults = known::lint(catalogue, Some(today));
    let releases = crate::hermes_env::known_versions();
    faults.extend(known::strangers(catalogue, &suites.cases, &releases));
    faults
}

/// What a command needs that shows again what another vectors directory or another release
/// came to.
#[must_use]
pub fn again(vectors: Option<&Path>, hermes: &str) -> String {
    let mut again = String::new();
    if hermes != HERMES_DEFAULT {
        again.push_str(&format!(" --hermes {hermes}"));
    }
    if let Some(vectors) = vectors {
        again.push_str(&format!(
            " --vectors {}",
            quoted(&vectors.to_string_lossy())
        ));
    }
    again
}

/// The exit code of a run after its results were to be written: what the run found wins where
/// the agent is unsafe, and no run whose results are lost looks like a pass.
#[must_use]
pub fn exit(published: Result<(), String>, summary: &Summary) -> u8 {
    let Err(message) = published else {
        return summary.exit;
    };
    eprintln!("error: {message}");
    match summary.exit {
        exit::UNSAFE => exit::UNSAFE,
        _ => exit::INTERNAL,
    }
}

/// A word as the shell reads it back.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Where results are written.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'o> {
    /// The report directory.
    pub folder: &'o Path,
    /// Print the summary as a line of JSON.
    pub json: bool,
    /// A file for JUnit XML.
    pub junit: Option<&'o Path>,
    /// A file for SARIF.
    pub sarif: Option<&'o Path>,
    /// Where cases are written: the vectors, and the repository.
    pub places: (&'o Path, &'o Path),
}

impl Outputs<'_> {
    /// Begins the files that were asked for, so that a place where nothing can be written is
    /// known before an hour of cases, and what a run before left, its summary as well, is not
    /// taken for this one's.
    ///
    /// # Errors
    /// Which cannot be written, and the option that names another.
    pub fn begin(&self) -> Result<(), Unwritten> {
        for (path, option) in [(self.junit, "--junit"), (self.sarif, "--sarif")] {
            let Some(path) = path else { continue };
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            folder
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::File::create(path).map(drop))
                .map_err(|error| {
                    let cannot = format!("cannot write `{}`", path.display());
                    Unwritten::new(&cannot, &error, &format!("file with {option}"))
                })?;
        }
        // The one that is written last would be all there is.
        if let (Some(junit), Some(sarif)) = (self.junit, self.sarif)
            && is_one_file(junit, sarif)
        {
            return Err(Unwritten {
                message: format!(
                    "--junit and --sarif name one file, `{}`; name another with one of them",
                    sarif.display()
                ),
                code: exit::USAGE,
            });
        }
        json::remove_summary(self.folder).map_err(|error| {
            let cannot = format!("cannot begin a report in `{}`", self.folder.display());
            Unwritten::new(&cannot, &error, "directory for it")
        })
    }
}

/// However they are spelled; two that are read by nobody, such as `/dev/null`, are none.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| {
        let seen = std::fs::metadata(path).ok()?;
        seen.is_file().then(|| (seen.dev(), seen.ino()))
    };
    id(one).is_some_and(|one| Some(one) == id(other))
}

impl Run<'_> {
    /// Counts, judges the catalogue and decides the exit code. A catalogue
    /// entry that explained nothing is stale only if every case ran.
    #[must_use]
    pub fn summary(&self, allowed: Allowed) -> Summary {
        let (suites, catalogue) = self.vectors;
        let mut summary = Summary {
            hermes: self.hermes.to_owned(),
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            relation: AUTHORITY_REFINEMENT.name.to_owned(),
            vectors: suites.digest.clone(),
            again: self.again.to_owned(),
            chosen: self.results.len() + self.not_run.len(),
            ..Summary::default()
        };
        let mut usage = Usage::default();
        for result in self.results {
            summary.add(result);
            if result.verdict.kind != Kind::Inconclusive {
                usage.ran(&result.id);
            }
            for id in &result.explained_by {
                usage.explained(id, &result.id);
            }
            for fault in &result.verdict.faults {
                usage.fault(fault.clone());
            }
        }
        for case in self.not_run {
            *summary.not_run.entry(case.reason.clone()).or_default() += 1;
            *summary.skipped.entry(case.suite.clone()).or_default() += 1;
        }
        let whole = self.not_run.is_empty() && self.results.len() == suites.cases.len();
        let exists = |id: &str| suites.cases.iter().any(|case| case.id == id);
        summary.explained = usage.counts();
        summary.faults = faults_before(suites, catalogue, self.today);
        summary
            .faults
            .extend(usage.rot(catalogue, self.hermes, whole, &exists));
        let inconclusive = summary.count(|kind| kind == Kind::Inconclusive);
        summary.exit = exit::code(exit::Tally {
            unsafe_cases: summary.count(Kind::is_unsafe),
            unexplained: summary
                .count(|kind| matches!(kind, Kind::Different | Kind::StricterUnnamed)),
            catalogue: summary.faults.len(),
            inconclusive_over: inconclusive
                .saturating_sub(summary.unsteady)
                .saturating_sub(allowed.inconclusive_max)
                + summary.unsteady.saturating_sub(allowed.unsteady_max),
            incomplete: !self.not_run.is_empty(),
        });
        summary
    }

    /// Writes the summary and the files that were asked for.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn publish(&self, summary: &Summary, outputs: &Outputs<'_>) -> Result<(), String> {
        let wrote = |path: &Path, outcome: std::io::Result<()>| {
            outcome.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
        };
        wrote(outputs.folder, json::write_summary(outputs.folder, summary))?;
        if outputs.json {
            let line = serde_json::to_string(summary).map_err(|error| error.to_string())?;
            println!("{line}");
        }
        if outputs.junit.is_none() && outputs.sarif.is_none() {
            return Ok(());
        }
        let (vectors, root) = outputs.places;
        let rows = self.rows(summary, &Places::read(vectors, root));
        let file = |path: &Path, text: Result<String, String>| {
            let text =
                text.map_err(|error| format!("cannot word `{}`: {error}", path.display()))?;
            wrote(path, std::fs::write(path, text))
        };
        if let Some(path) = outputs.junit {
            file(
                path,
                junit::to_xml(&rows).map_err(|error| error.to_string()),
            )?;
        }
        if let Some(path) = outputs.sarif {
            let text = sarif::to_json(&rows, &summary.hermes).map_err(|error| error.to_string());
            file(path, text)?;
        }
        Ok(())
    }

    fn rows(&self, summary: &Summary, places: &Places) -> Vec<Row> {
        let ran = self.results.iter().map(|result| Row {
            suite: result.suite.clone(),
            case_id: result.id.clone(),
            verdict_code: result.label.clone(),
            verdict_class: match result.verdict.kind {
                Kind::Inconclusive => VerdictClass::Inconclusive,
                kind if kind.passes() => VerdictClass::Pass,
                _ => VerdictClass::Fail,
            },
            means: result.verdict.kind.means(),
            reason: result.verdict.why.clone(),
            place: places.case(&result.suite, &result.id).cloned(),
            seconds: [&result.hermes, &result.agent]
                .into_iter()
                .flatten()
                .map(|trace| trace.wall_us as f64 / 1_000_000.0)
                .sum(),
            replay: summary.replay(&result.id),
        });
        let skipped = self.not_run.iter().map(|case| Row {
            suite: case.suite.clone(),
            case_id: case.id.clone(),
            verdict_code: "skipped".to_owned(),
            verdict_class: VerdictClass::Skipped,
            means: "it did not run, and has not passed",
            reason: case.reason.clone(),
            place: places.case(&case.suite, &case.id).cloned(),
            seconds: 0.0,
            replay: summary.replay(&case.id),
        });
        // What is wrong with the catalogue fails the run as a case does.
        let faults = summary.faults.iter().map(|fault| Row {
            suite: CATALOGUE.to_owned(),
            case_id: fault.entry.clone(),
            verdict_code: format!("catalogue-{}", fault.kind),
            verdict_class: VerdictClass::Fail,
            means: "the catalogue of known differences needs work",
            reason: fault.why.clone(),
            place: Some(places.entry(&fault.entry)),
            seconds: 0.0,
            replay: format!("cargo bisim check{}", self.again),
        });
        ran.chain(skipped).chain(faults).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Catalogue, Fault, HERMES_DEFAULT, NotRun, Run, again, exit, known};
    use crate::case::{Case, Defaults};
    use crate::cli::Allowed;
    use crate::report::html::tests::result;
    use crate::result::{CaseResult, Summary};
    use crate::suite::Suites;
    use crate::verdict::{KINDS, Kind, UNSTEADY};

    #[test]
    fn what_was_not_usual_is_said_again_as_a_shell_reads_it() {
        assert_eq!(again(None, HERMES_DEFAULT), "");
        assert_eq!(
            again(Some(Path::new("a b/it's")), "0.16.0"),
            r" --hermes 0.16.0 --vectors 'a b/it'\''s'"
        );
    }

    fn run_of(results: &[CaseResult], not_run: &[NotRun], catalogue: &Catalogue) -> Summary {
        run_allowing(results, not_run, catalogue, (0, 0))
    }

    fn run_allowing(
        results: &[CaseResult],
        not_run: &[NotRun],
        catalogue: &Catalogue,
        (inconclusive_max, unsteady_max): (usize, usize),
    ) -> Summary {
        let mut suites = Suites::default();
        let ids = results.iter().map(|one| (&one.suite, &one.id));
        for (suite, id) in ids.chain(not_run.iter().map(|one| (&one.suite, &one.id))) {
            let file = serde_json::from_value(serde_json::json!({"id": id, "script": []}));
            let case = Case::resolve(suite, &Defaults::default(), file.unwrap());
            suites.cases.push(case);
        }
        let run = Run {
            results,
            not_run,
            vectors: (&suites, catalogue),
            hermes: HERMES_DEFAULT,
            today: "2026-06-01",
            again: "",
        };
        run.summary(Allowed {
            inconclusive_max,
            unsteady_max,
        })
    }

    fn said(kind: Kind) -> CaseResult {
        CaseResult {
            suite: "s".to_owned(),
            ..result("c-1", kind, "")
        }
    }

    fn unsteady() -> CaseResult {
        let mut one = said(Kind::Inconclusive);
        one.verdict.ids.push(UNSTEADY.to_owned());
        one
    }

    /// The table of docs/CONFORMANCE.md, from what was found to the code the process ends with.
    #[test]
    fn one_case_of_each_verdict_ends_a_run_as_it_must() {
        let nothing = Catalogue::default();
        for kind in KINDS {
            let expected = match kind {
                Kind::Equal
                | Kind::EqualMasked
                | Kind::Stricter
                | Kind::Attenuated
                | Kind::Baselined => exit::CONFORM,
                Kind::Inconclusive => exit::INCONCLUSIVE,
                Kind::StricterUnnamed | Kind::Different => exit::UNEXPLAINED,
                Kind::BeyondGrant | Kind::Weaker | Kind::BothUnsafe => exit::UNSAFE,
            };
            let one = [said(kind)];
            assert_eq!(run_of(&one, &[], &nothing).exit, expected, "{kind:?}");
            // A budget for what has no verdict is one for nothing else.
            let generous = run_allowing(&one, &[], &nothing, (9, 9)).exit;
            match kind {
                Kind::Inconclusive => assert_eq!(generous, exit::CONFORM),
                _ => assert_eq!(generous, expected, "{kind:?}"),
            }
        }
        let mut faulty = said(Kind::Equal);
        faulty.verdict.faults.push(Fault {
            entry: "e".to_owned(),
            kind: "overbroad".into(),
            why: "why".to_owned(),
        });
        assert_eq!(run_of(&[faulty], &[], &nothing).exit, exit::CATALOGUE);
        let left = NotRun {
            id: "c-2".to_owned(),
            suite: "s".to_owned(),
            reason: "lost".to_owned(),
        };
        let lost = run_allowing(&[said(Kind::Equal)], &[left], &nothing, (9, 9));
        assert_eq!((lost.exit, lost.chosen), (exit::INCONCLUSIVE, 2));
    }

    #[test]
    fn what_is_unsteady_has_a_budget_of_its_own() {
        let nothing = Catalogue::default();
        let code = |one: CaseResult, allowed| run_allowing(&[one], &[], &nothing, allowed).exit;
        assert_eq!(code(unsteady(), (0, 1)), exit::CONFORM);
        assert_eq!(code(unsteady(), (9, 0)), exit::INCONCLUSIVE);
        assert_eq!(code(said(Kind::Inconclusive), (0, 9)), exit::INCONCLUSIVE);
        assert_eq!(code(said(Kind::Inconclusive), (1, 0)), exit::CONFORM);
    }

    /// A witness that got no verdict says nothing about its entry, and one that got another does.
    #[test]
    fn an_entry_is_not_stale_for_a_witness_without_a_verdict() {
        let mut entry = known::tests::entry("e");
        entry.versions = vec![HERMES_DEFAULT.to_owned()];
        entry.witness.nomatch.clear();
        let catalogue = Catalogue {
            entries: vec![entry],
        };
        let stale = |results: &[CaseResult]| {
            let left = NotRun {
                id: "c-2".to_owned(),
                suite: "s".to_owned(),
                reason: "lost".to_owned(),
            };
            let faults = run_of(results, &[left], &catalogue).faults;
            faults.iter().filter(|fault| fault.kind == "stale").count()
        };
        assert_eq!(stale(&[said(Kind::Inconclusive)]), 0);
        assert_eq!(stale(&[said(Kind::Equal)]), 1);
        let mut explained = said(Kind::Stricter);
        explained.explained_by.push("e".to_owned());
        assert_eq!(stale(&[explained]), 0);
    }

    #[test]
    fn what_could_not_be_written_is_no_pass_and_hides_nothing_unsafe() {
        for code in [
            exit::CONFORM,
            exit::UNEXPLAINED,
            exit::UNSAFE,
            exit::CATALOGUE,
            exit::INCONCLUSIVE,
        ] {
            let summary = Summary {
                exit: code,
                ..Summary::default()
            };
            assert_eq!(super::exit(Ok(()), &summary), code);
            let unwritten = super::exit(Err("no room".to_owned()), &summary);
            let expected = match code {
                exit::UNSAFE => exit::UNSAFE,
                _ => exit::INTERNAL,
            };
            assert_eq!(unwritten, expected, "{code}");
        }
    }
}
