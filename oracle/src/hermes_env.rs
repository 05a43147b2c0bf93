//! The private Python environment that holds the real Hermes.
//!
//! A Hermes version is installed once, from a lock file kept in the repository
//! that pins every file of its dependency closure by digest, into a virtual
//! environment that nothing else uses. Later runs only check that it is still
//! what was installed. It never touches the user's own Python packages, never
//! installs a version it has no lock for, and never uses a half-made
//! environment: the stamp that makes one valid is written last.

mod fingerprint;
mod install;
mod interpreter;
mod locks;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use interpreter::Interpreter;
pub use locks::known_versions;

use crate::processes::Processes;

/// What the edge knows about this machine; this module reads no environment.
#[derive(Clone, Debug)]
pub struct EnvRequest {
    /// Where environments are kept; made when missing.
    pub cache_dir: PathBuf,
    /// The directories of `PATH`, in order.
    pub path_dirs: Vec<PathBuf>,
    /// What is ended when the user has had enough, an installation included.
    pub processes: Processes,
}

/// An environment that is ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HermesEnv {
    /// The Hermes release in it.
    pub version: String,
    /// The interpreter the environment was made from.
    pub interpreter: Interpreter,
    /// The virtual environment's directory.
    pub venv: PathBuf,
    /// Its `site-packages`.
    pub site_packages: PathBuf,
}

/// A sign of life for the front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A stage without a count, such as making the virtual environment.
    Stage(String),
    /// `done` of `total` packages are fetched; `name` is the one in hand.
    Package {
        /// Packages fetched so far.
        done: usize,
        /// Packages in the lock file.
        total: usize,
        /// The package in hand.
        name: String,
    },
}

/// Why no environment could be had.
#[derive(Debug)]
pub enum EnvError {
    /// There is no lock file for this release.
    UnknownVersion {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// No usable interpreter; each candidate with the reason it was passed over.
    NoPython(Vec<String>),
    /// A stage of the installation failed; the tail of its output is kept.
    Install {
        /// What was being done.
        stage: String,
        /// The last lines it printed.
        output: String,
    },
    /// The cache directory could not be used.
    Cache {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl EnvError {
    /// What failed, on what, why: one line.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::UnknownVersion { asked, .. } => {
                format!("no lock file pins hermes-agent `{asked}`")
            }
            Self::NoPython(passed_over) if passed_over.is_empty() => {
                "no python 3.11 to 3.13 was found on PATH".to_owned()
            }
            Self::NoPython(passed_over) => format!(
                "no usable python 3.11 to 3.13 was found on PATH: {}",
                passed_over.join("; ")
            ),
            Self::Install { stage, output } => {
                format!("could not {stage}: {}", cause(output))
            }
            Self::Cache { path, source } => {
                format!(
                    "could not use the cache directory `{}`: {source}",
                    path.display()
                )
            }
        }
    }

    /// What the user can do next.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::UnknownVersion { known, .. } => format!("known releases: {}", known.join(", ")),
            Self::NoPython(_) => "without it the real Hermes cannot be run and nothing can be compared; \
                install python 3.11, 3.12 or 3.13 with its venv module (Debian: `apt install python3 python3-venv`)"
                .to_owned(),
            Self::Install { output, .. } if is_distrusted(output) => format!(
                "where a proxy opens what is sealed, pip has to know its certificate: name the file that holds it, such as \
                 `export PIP_CERT=/etc/ssl/certs/ca-certificates.crt`, and run the command again. Its last output:\n{}",
                without_repeats(output)
            ),
            Self::Install { output, .. } if is_unreachable(output) => format!(
                "the network is needed once, to fetch Hermes and what it depends on; pip's own settings count \
                 (a proxy, another index). Run the command again when there is one. Its last output:\n{}",
                without_repeats(output)
            ),
            Self::Install { output, .. } => format!(
                "nothing of the attempt is used; run the command again once the cause is gone. Its last output:\n{output}"
            ),
            Self::Cache { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "a release takes 240 MB; free some space, or name another directory: `export HERMITCRAB_CACHE=DIR`"
                }
                ErrorKind::Interrupted => "the run was ended before another one let go of it",
                _ => {
                    "name a directory in which you may write: `export HERMITCRAB_CACHE=DIR`"
                }
            }
            .to_owned(),
        }
    }
}

/// Finds or makes the environment for `version`.
///
/// Two processes that ask at once are serialised by a lock in the cache
/// directory; the second finds what the first made.
///
/// # Errors
/// See [`EnvError`]; no half-made environment is ever returned.
pub fn ensure(
    version: &str,
    request: &EnvRequest,
    progress: &mut dyn FnMut(Progress),
) -> Result<HermesEnv, EnvError> {
    let lock = locks::find(version).ok_or_else(|| EnvError::UnknownVersion {
        asked: version.to_owned(),
        known: known_versions(),
    })?;
    let found = interpreter::find(&request.path_dirs, &request.processes)?;
    let (major, minor) = found.version;
    let home = request
        .cache_dir
        .join("hermes")
        .join(format!("{version}-cp{major}{minor}"));
    // Of several of one version the first on the path may be another one today. What was made
    // with one is not made again for that, each time the path has another order.
    let made_with = fingerprint::identity(&home)
        .and_then(|identity| locks::made_with(&identity, lock, &found))
        .filter(|executable| *executable != found.executable)
        .and_then(|executable| interpreter::known(&executable, &request.processes))
        .filter(|known| known.version == found.version);
    let interpreter = made_with.unwrap_or(found);
    let hermes_env = HermesEnv {
        version: version.to_owned(),
        site_packages: home
            .join("venv")
            .join("lib")
            .join(format!("python{major}.{minor}"))
            .join("site-packages"),
        venv: home.join("venv"),
        interpreter,
    };
    let cache_error = |source| EnvError::Cache {
        path: home.clone(),
        source,
    };
    std::fs::create_dir_all(&home).map_err(cache_error)?;
    let _serialised = install::exclusive(&home, &request.processes, &mut || {
        progress(Progress::Stage(format!(
            "another run looks after the environment of hermes-agent {version}, and goes first"
        )));
    })
    .map_err(cache_error)?;
    let identity = locks::identity(lock, &hermes_env.interpreter);
    let state = fingerprint::check(&home, &identity, &hermes_env.site_packages);
    // Follows the link: the interpreter behind it may have been removed.
    let runs = hermes_env.venv.join("bin/python").is_file();
    match state {
        fingerprint::State::Whole if runs => return Ok(hermes_env),
        fingerprint::State::Whole => progress(Progress::Stage(format!(
            "the environment of hermes-agent {version} has lost its interpreter; installing it afresh"
        ))),
        fingerprint::State::Absent => {}
        fingerprint::State::Grown(grown) if runs => {
            progress(Progress::Stage(format!(
                "something was installed into hermes-agent {version} after it was made, as Hermes does where it runs \
                 outside a world; taking it away ({})",
                grown.told()
            )));
            grown
                .take_away(&hermes_env.site_packages)
                .map_err(cache_error)?;
            return Ok(hermes_env);
        }
        fingerprint::State::Grown(grown) => progress(Progress::Stage(format!(
            "the environment of hermes-agent {version} has lost its interpreter, and holds more than was installed \
             ({}); installing it afresh",
            grown.told()
        ))),
        fingerprint::State::Different(why) => progress(Progress::Stage(format!(
            "the installed hermes-agent {version} is not what was installed ({why}); installing it afresh"
        ))),
    }
    install::run(lock, &home, &hermes_env, &request.processes, progress)?;
    fingerprint::write(&home, &identity, &hermes_env.site_packages).map_err(cache_error)?;
    Ok(hermes_env)
}

/// What pip says when it talks to nobody.
const UNREACHABLE: [&str; 5] = [
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ProxyError",
    "Network is unreachable",
];

/// What pip says at the end when the index had nothing at all for a package that is pinned.
const NOTHING_FOUND: &str = "(from versions: none)";

/// Whether the package index could not be reached. Pip tells that only on the way, and at the
/// end that there is no such package; where it is not to try again, not even on the way.
fn is_unreachable(output: &str) -> bool {
    UNREACHABLE.iter().any(|words| output.contains(words)) || output.contains(NOTHING_FOUND)
}

/// Whether the package index showed a certificate nobody vouches for here.
fn is_distrusted(output: &str) -> bool {
    output.contains("CERTIFICATE_VERIFY_FAILED")
}

/// The lines of an output, of those that differ in figures only the last.
fn without_repeats(output: &str) -> String {
    let figures = |line: &str| -> String {
        let words = line
            .split(' ')
            .filter(|word| !word.contains(char::is_numeric));
        words.collect()
    };
    let lines: Vec<&str> = output.lines().collect();
    let kept = lines.iter().enumerate().filter(|(place, line)| {
        let next = lines.get(place + 1);
        next.is_none_or(|next| figures(next) != figures(line))
    });
    kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
}

/// One line for why an installation failed.
fn cause(output: &str) -> &str {
    if is_distrusted(output) {
        return "the package index shows a certificate that nobody vouches for on this machine";
    }
    if is_unreachable(output) {
        return "the package index cannot be reached";
    }
    let said = || output.lines().rev().filter(|line| !line.trim().is_empty());
    said()
        .find(|line| line.starts_with("ERROR: "))
        .or_else(|| said().next())
        .unwrap_or("it printed nothing")
}

/// Joins for messages; kept here so that both stages word paths alike.
fn shown(path: &Path) -> String {
    format!("`{}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_release_is_refused_with_the_list_of_known_ones() {
        let request = EnvRequest {
            cache_dir: PathBuf::from("/nonexistent"),
            path_dirs: Vec::new(),
            processes: Processes::default(),
        };
        let error = ensure("0.0.1", &request, &mut |_| {}).unwrap_err();
        assert_eq!(error.message(), "no lock file pins hermes-agent `0.0.1`");
        assert!(error.help().contains("0.19.0"), "{}", error.help());
    }

    #[test]
    fn a_machine_without_python_is_told_what_to_install() {
        let request = EnvRequest {
            cache_dir: PathBuf::from("/nonexistent"),
            path_dirs: Vec::new(),
            processes: Processes::default(),
        };
        let error = ensure("0.19.0", &request, &mut |_| {}).unwrap_err();
        assert!(matches!(error, EnvError::NoPython(_)), "{error:?}");
        assert!(error.help().contains("python3-venv"));
    }

    fn failed(output: &str) -> EnvError {
        EnvError::Install {
            stage: "install the pinned packages".to_owned(),
            output: output.to_owned(),
        }
    }

    #[test]
    fn a_machine_without_a_network_is_told_so_and_not_that_a_package_does_not_exist() {
        let error = failed(
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('x')'\n\
             ERROR: No matching distribution found for x==1\n(exit status: 1)",
        );
        assert_eq!(
            error.message(),
            "could not install the pinned packages: the package index cannot be reached"
        );
        assert!(error.help().contains("network is needed once"));
    }

    #[test]
    fn a_proxy_that_opens_what_is_sealed_is_told_from_a_network_that_is_not_there() {
        let retry = |left: u8| {
            format!(
                "WARNING: Retrying (Retry(total={left}, connect=None)) after connection broken by 'SSLError(CERTIFICATE_VERIFY_FAILED)'\n"
            )
        };
        let said = format!(
            "{}{}{}ERROR: No matching distribution found for x==1",
            retry(2),
            retry(1),
            retry(0)
        );
        let error = failed(&said);
        assert!(
            error.message().contains("certificate"),
            "{}",
            error.message()
        );
        assert!(error.help().contains("PIP_CERT"), "{}", error.help());
        assert_eq!(
            error.help().matches("Retrying").count(),
            1,
            "{}",
            error.help()
        );
        assert!(error.help().ends_with("found for x==1"), "{}", error.help());

        let told_to_try_once = failed(
            "ERROR: Could not find a version that satisfies the requirement x==1 (from versions: none)\n\
             ERROR: No matching distribution found for x==1",
        );
        assert!(told_to_try_once.message().ends_with("cannot be reached"));
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_not_said_to_be_full() {
        let help = |kind: ErrorKind| {
            let error = EnvError::Cache {
                path: PathBuf::from("/c"),
                source: kind.into(),
            };
            error.help()
        };
        assert!(help(ErrorKind::StorageFull).contains("free some space"));
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
            assert!(help(kind).contains("may write"), "{kind:?}");
        }
    }

    #[test]
    fn another_failure_is_told_in_the_installers_own_words() {
        let error =
            failed("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n    x\n(exit status: 1)");
        assert_eq!(
            error.message(),
            "could not install the pinned packages: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"
        );
        assert!(!error.help().contains("network is needed"));
        assert!(failed("").message().ends_with("it printed nothing"));
    }
}
