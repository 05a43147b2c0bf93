//! The configuration: any text, and two files together.

use std::path::Path;
use std::sync::LazyLock;

use hermitcrab::config::{self, Config};
use hermitcrab_core::rules::Layer;

use super::{Verdict, ensure};

const WORKSPACE: &str = "/home/u/w";
const HOME: &str = "/home/u";

/// An empty file, which is the other half of a text of one half.
static EMPTY: LazyLock<Result<Option<Config>, String>> = LazyLock::new(|| read(""));

/// The text as one file, and its halves as the user's and the administrator's.
pub fn check(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let whole = read(&text)?;
    // A text of one half is that half, and was read.
    match text.split_once('\0') {
        Some((one, two)) => both(read(one)?.as_ref(), read(two)?.as_ref()),
        None => both(
            whole.as_ref(),
            EMPTY.as_ref().map_err(Clone::clone)?.as_ref(),
        ),
    }
}

/// A file is understood whole or refused in one line that names it.
fn read(text: &str) -> Result<Option<Config>, String> {
    let file = Path::new("config.toml");
    let one_line = |message: String| {
        ensure(
            message.contains("config.toml") && !message.contains('\n'),
            || format!("not one line that names the file: {message:?}"),
        )
    };
    let config = match config::parse(file, text) {
        Ok(config) => config,
        Err(error) => return one_line(error.to_string()).map(|()| None),
    };
    let (workspace, home) = (Path::new(WORKSPACE), Path::new(HOME));
    for layer in [Layer::User, Layer::Administrator] {
        if let Err(error) = config.rules(layer, workspace, home) {
            one_line(error.to_string())?;
        }
    }
    for words in config.grants(workspace) {
        ensure(!words.verb.is_empty() || !words.on.is_empty(), || {
            "a grant of nothing".to_owned()
        })?;
    }
    Ok(Some(config))
}

/// Two files that were understood, together.
fn both(one: Option<&Config>, two: Option<&Config>) -> Verdict {
    match (one, two) {
        (Some(one), Some(two)) => together(one, two),
        _ => Ok(()),
    }
}

/// Two files together are never laxer than either, whichever is named first.
fn together(one: &Config, two: &Config) -> Verdict {
    let both = one.ceilings(two);
    ensure(both == two.ceilings(one), || {
        "it matters which file is named first".to_owned()
    })?;
    for alone in [one, two] {
        let alone = alone.ceilings(&Config::default());
        ensure(
            at_most(both.files_max, alone.files_max)
                && at_most(both.memory_bytes_max, alone.memory_bytes_max)
                && at_most(both.cpu_percent_max, alone.cpu_percent_max)
                && at_most(both.processes_max, alone.processes_max)
                && at_most(both.timeout_max, alone.timeout_max)
                && (both.keeps_trees || !alone.keeps_trees),
            || format!("{both:?} is laxer than {alone:?}"),
        )?;
    }
    Ok(())
}

/// No ceiling is the laxest.
fn at_most<N: PartialOrd>(both: Option<N>, alone: Option<N>) -> bool {
    match (both, alone) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(both), Some(alone)) => both <= alone,
    }
}
