//! The machine's report: a line of JSON per case as it ends, and a summary.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use hermitcrab::screen::on_one_line;

use crate::result::{CaseResult, Summary};
use crate::suite::bytes_of;

/// The name of the per-case log inside a report directory.
pub const LOG: &str = "results.jsonl";
/// The name of the summary inside a report directory.
pub const SUMMARY: &str = "summary.json";

/// An append-only log; a killed run keeps every case that ended.
#[derive(Debug)]
pub struct Log {
    file: File,
}

impl Log {
    /// Starts a new log in a report directory.
    ///
    /// # Errors
    /// The directory or the file cannot be made.
    pub fn create(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        remove_summary(folder)?;
        Ok(Self {
            file: File::create(folder.join(LOG))?,
        })
    }

    /// Writes one case.
    ///
    /// # Errors
    /// The disk is full or the file is gone.
    pub fn add(&mut self, result: &CaseResult) -> io::Result<()> {
        let mut line = serde_json::to_vec(result).map_err(io::Error::other)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Takes away the summary of a run before: it says nothing about this one, which may be killed.
///
/// # Errors
/// It is there and cannot be removed.
pub fn remove_summary(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(SUMMARY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes the summary into a report directory.
///
/// # Errors
/// The file cannot be written.
pub fn write_summary(folder: &Path, summary: &Summary) -> io::Result<()> {
    let text = serde_json::to_string_pretty(summary).map_err(io::Error::other)?;
    std::fs::write(folder.join(SUMMARY), text + "\n")
}

/// Reads the results of a report directory back.
///
/// # Errors
/// The file is missing, or a line is not a result of this version, with its
/// number. A run that was killed may have left half a line at the end: that
/// case did not end, and is left out.
pub fn read_results(folder: &Path) -> Result<Vec<CaseResult>, String> {
    let path = folder.join(LOG);
    let text = text_of(&path)?;
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line.trim_end()).map_err(|error| {
                format!(
                    "line {} of `{}`: {}",
                    index + 1,
                    path.display(),
                    on_one_line(&error.to_string())
                )
            })
        })
        .collect()
}

/// Reads the summary of a report directory back.
///
/// # Errors
/// The file is missing or is not a summary of this version.
pub fn read_summary(folder: &Path) -> Result<Summary, String> {
    let path = folder.join(SUMMARY);
    let text = text_of(&path)?;
    serde_json::from_str(&text).map_err(|error| {
        let why = on_one_line(&error.to_string());
        format!("`{}` is no summary of a check: {why}", path.display())
    })
}

/// The text of a file of a report, which may come from another machine, and be a pipe.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    let cannot =
        |error: &dyn std::fmt::Display| format!("cannot read `{}`: {error}", path.display());
    let bytes = bytes_of(path).map_err(|error| cannot(&error))?;
    String::from_utf8(bytes).map_err(|error| cannot(&error))
}

#[cfg(test)]
mod tests {
    use super::{LOG, Log, SUMMARY, read_results, read_summary, write_summary};
    use crate::report::html::tests::result;
    use crate::result::Summary;
    use crate::verdict::Kind;

    #[test]
    fn a_run_that_begins_leaves_nothing_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("report");
        let mut log = Log::create(&folder).unwrap();
        log.add(&result("a", Kind::Equal, "")).unwrap();
        write_summary(&folder, &Summary::default()).unwrap();
        assert!(read_summary(&folder).is_ok());
        assert_eq!(read_results(&folder).unwrap().len(), 1);
        // It may be killed before it has a summary of its own.
        let _log = Log::create(&folder).unwrap();
        assert!(!folder.join(SUMMARY).exists());
        assert!(read_results(&folder).unwrap().is_empty());
    }

    #[test]
    fn a_case_whose_line_was_cut_off_did_not_end_and_any_other_line_is_a_result() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut log = Log::create(folder).unwrap();
        for id in ["a", "b"] {
            log.add(&result(id, Kind::Weaker, "")).unwrap();
        }
        let path = folder.join(LOG);
        let whole = std::fs::read_to_string(&path).unwrap();
        let ids = || -> Result<Vec<String>, String> {
            let results = read_results(folder)?.into_iter();
            Ok(results.map(|result| result.id).collect())
        };
        assert_eq!(ids().unwrap(), ["a", "b"]);
        std::fs::write(&path, whole.get(..whole.len() - 9).unwrap()).unwrap();
        assert_eq!(ids().unwrap(), ["a"]);
        std::fs::write(&path, whole.replacen('{', "", 1)).unwrap();
        let why = ids().unwrap_err();
        assert!(why.starts_with("line 1 of `"), "{why}");
    }
}
