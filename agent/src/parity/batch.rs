//! Planning a batch from the calls as the model wrote them.

use std::io;

use hermitcrab_core::batch::{
    Argument, Arguments, Footprint, LinkFact, Links, ScopeError, ScopePath, Segment, Standing,
    canonical, footprint, plan,
};
use serde_json::{Map, Value};

/// Reads links of the file system the process is in.
#[derive(Clone, Copy, Debug)]
pub struct HostLinks;

impl Links for HostLinks {
    fn look(&self, path: &ScopePath) -> LinkFact {
        match std::fs::read_link(path.as_str()) {
            Ok(target) => target
                .into_os_string()
                .into_string()
                .map_or(LinkFact::Unknown, LinkFact::Target),
            Err(error) => match error.kind() {
                // Not a link, not there, or below something that is no directory.
                io::ErrorKind::InvalidInput
                | io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory => LinkFact::NotALink,
                _ => LinkFact::Unknown,
            },
        }
    }
}

/// The canonical path of a path argument.
///
/// # Errors
/// See [`ScopeError`].
pub fn scope(raw: &str, standing: Standing<'_>) -> Result<ScopePath, ScopeError> {
    canonical(raw, standing, &HostLinks)
}

/// What one call may touch; `arguments` is the JSON text the model wrote.
#[must_use]
pub fn footprint_of(tool: &str, arguments: &str, standing: Standing<'_>) -> Footprint {
    footprint_by(tool, arguments, |raw| scope(raw, standing))
}

/// The same, with `scope_of` to find the canonical path of the `path` argument.
pub fn footprint_by(
    tool: &str,
    arguments: &str,
    scope_of: impl FnOnce(&str) -> Result<ScopePath, ScopeError>,
) -> Footprint {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => footprint(tool, reduced(&map), scope_of),
        Ok(_) | Err(_) => footprint(tool, Arguments::Unreadable, scope_of),
    }
}

/// Cuts a batch of (tool, JSON arguments) into segments.
#[must_use]
pub fn segments<'a>(
    calls: impl IntoIterator<Item = (&'a str, &'a str)>,
    standing: Standing<'_>,
) -> Vec<Segment> {
    let batch: Vec<Footprint> = calls
        .into_iter()
        .map(|(tool, arguments)| footprint_of(tool, arguments, standing))
        .collect();
    plan(&batch)
}

fn reduced(arguments: &Map<String, Value>) -> Arguments<'_> {
    let argument = |name: &str| match arguments.get(name) {
        None => Argument::Absent,
        Some(Value::String(text)) => Argument::Text(text),
        Some(_) => Argument::NotText,
    };
    Arguments::Object {
        path: argument("path"),
        mode: argument("mode"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_to_a_file_and_the_file_are_not_written_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let cwd = root.to_str().unwrap();
        symlink("f", root.join("lf")).unwrap();
        let standing = Standing { cwd, home: None };
        let write = |path: &str| format!(r#"{{"path": "{path}", "content": ""}}"#);
        let check = |paths: [&str; 2], expected: &str| {
            let arguments = paths.map(write);
            let calls = arguments
                .iter()
                .map(|arguments| ("write_file", arguments.as_str()));
            let got = segments(calls, standing);
            assert_eq!(got.len(), 1, "{paths:?}");
            assert_eq!(got[0].lane.as_str(), expected, "{paths:?}");
        };
        check(["f", "g"], "parallel");
        check(["f", "lf"], "sequential");
        check(["f", "./new/../f"], "sequential");
        check(["f", "~/f"], "sequential");
    }

    #[test]
    fn arguments_that_are_no_object_make_a_barrier() {
        let standing = Standing {
            cwd: "/",
            home: None,
        };
        for arguments in ["None", "", "[]", "\"x\"", "null", "{"] {
            assert_eq!(
                footprint_of("web_search", arguments, standing),
                Footprint::Barrier,
                "{arguments:?}"
            );
        }
        assert_eq!(
            footprint_of("web_search", "{}", standing),
            Footprint::Independent
        );
    }
}
