//! Everything the oracle takes from its surroundings, in one file.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where the environment and the clock enter the oracle"
)]

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The values of the surroundings, read once.
#[derive(Clone, Debug)]
pub struct Ambient {
    /// The repository this binary was built from, or the nearest above the
    /// current directory that holds `vectors/suites`.
    pub root: PathBuf,
    /// Below which reports go that no option places: the repository the current directory is
    /// in, or that directory. A program that was copied elsewhere writes to no checkout.
    pub reports: PathBuf,
    /// Where Python environments are kept: `HERMITCRAB_CACHE`, the user's cache directory, or
    /// without a home the directory of what was built.
    pub cache: PathBuf,
    /// The search path for Python.
    pub path: Vec<PathBuf>,
    /// Where Python looks for modules besides, if that is said.
    pub python_path: Option<std::ffi::OsString>,
    /// Where temporary files go.
    pub temporary: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Where the agent's own configuration is, if that can be said.
    pub config: Option<PathBuf>,
    /// Where Hermes keeps what is its user's, if nothing else is said.
    pub hermes_home: Option<PathBuf>,
    /// Today, `YYYY-MM-DD`, UTC.
    pub today: String,
}

/// Why what `HERMITCRAB_CACHE` says cannot be followed, if so: a directory below wherever
/// somebody is would be another one at each place, and to leave it out would fill one that
/// was not meant.
#[must_use]
pub fn cache_refused() -> Option<String> {
    let said = std::env::var_os("HERMITCRAB_CACHE").filter(|said| !said.is_empty())?;
    let path = PathBuf::from(said);
    (!path.is_absolute()).then(|| {
        format!(
            "HERMITCRAB_CACHE is `{}`, which does not begin with `/`; name a directory by its whole path, or take the variable away",
            path.display().to_string().escape_debug()
        )
    })
}

/// Reads the surroundings.
#[must_use]
pub fn read() -> Ambient {
    let built_in = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let built_in = built_in.parent().map(PathBuf::from).unwrap_or(built_in);
    let here = std::env::current_dir().ok();
    let above = here.as_ref().and_then(|here| {
        here.ancestors()
            .find(|folder| folder.join("vectors/suites").is_dir())
            .map(PathBuf::from)
    });
    let root = above.clone().unwrap_or(built_in);
    let reports = above.or(here).unwrap_or_default();
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // Without a home it is never the directory for temporary files: anybody could have put
    // an interpreter there.
    let cache = absolute("HERMITCRAB_CACHE").unwrap_or_else(|| {
        absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .unwrap_or_else(|| root.join("target/cache"))
            .join("hermitcrab")
    });
    let path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    Ambient {
        root,
        reports,
        cache,
        path,
        python_path: std::env::var_os("PYTHONPATH").filter(|path| !path.is_empty()),
        temporary: std::env::temp_dir(),
        program: std::env::current_exe().unwrap_or_default(),
        config: hermitcrab::ambient::places()
            .ok()
            .map(|places| places.config_file),
        hermes_home: absolute("HOME").map(|home| home.join(".hermes")),
        today: date(seconds),
    }
}

/// The UTC date of a Unix time (days to civil date, proleptic Gregorian).
fn date(seconds: u64) -> String {
    let mut days = seconds / 86_400;
    let mut year = 1970_u64;
    let leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates_across_leap_years() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_735_689_600, "2025-01-01"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
