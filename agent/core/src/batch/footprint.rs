//! What one call may touch, as far as planning needs to know.

use super::scope::{ScopeError, ScopePath};

/// What a call may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// Anything: it runs alone, after everything before it and before everything after it.
    Barrier,
    /// Nothing that another call of the batch could change.
    Independent,
    /// This file or directory and what is below it.
    Path(ScopePath),
}

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// It is not there.
    Absent,
    /// It is a string.
    Text(&'a str),
    /// It is there and no string.
    NotText,
}

/// The arguments of a call, reduced to what planning looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments<'a> {
    /// They could not be read, or are no object.
    Unreadable,
    /// An object.
    Object {
        /// `path`.
        path: Argument<'a>,
        /// `mode`.
        mode: Argument<'a>,
    },
}

/// Tools that only look, at things no other call of a batch changes. A tool
/// that is not listed here is a barrier: being forgotten costs time, not order.
const LOOKERS: [&str; 10] = [
    "ha_get_state",
    "ha_list_entities",
    "ha_list_services",
    "search_files",
    "session_search",
    "skill_view",
    "skills_list",
    "vision_analyze",
    "web_extract",
    "web_search",
];

/// What the call of `tool` with these arguments may touch; `scope_of` makes
/// the canonical path of the `path` argument.
pub fn footprint(
    tool: &str,
    arguments: Arguments<'_>,
    scope_of: impl FnOnce(&str) -> Result<ScopePath, ScopeError>,
) -> Footprint {
    let Arguments::Object { path, mode } = arguments else {
        return Footprint::Barrier;
    };
    match tool {
        "read_file" | "write_file" => scoped(path, scope_of),
        // In any other mode the files are named in the patch itself, and a
        // `path` beside it says nothing about them.
        "patch" => match mode {
            Argument::Absent | Argument::Text("replace") => scoped(path, scope_of),
            Argument::Text(_) | Argument::NotText => Footprint::Barrier,
        },
        _ if LOOKERS.contains(&tool) => Footprint::Independent,
        _ => Footprint::Barrier,
    }
}

fn scoped(
    path: Argument<'_>,
    scope_of: impl FnOnce(&str) -> Result<ScopePath, ScopeError>,
) -> Footprint {
    match path {
        Argument::Text(text) if !text.trim().is_empty() => {
            scope_of(text).map_or(Footprint::Barrier, Footprint::Path)
        }
        Argument::Text(_) | Argument::Absent | Argument::NotText => Footprint::Barrier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &str, path: Argument<'_>, mode: Argument<'_>, expected: &Footprint) {
        let got = footprint(tool, Arguments::Object { path, mode }, ScopePath::lexical);
        assert_eq!(&got, expected, "{tool} {path:?} {mode:?}");
    }

    #[test]
    fn a_path_of_nothing_is_not_looked_up() {
        for text in ["", " ", "\t\n"] {
            let found = scoped(Argument::Text(text), |_| Ok(ScopePath::root()));
            assert_eq!(found, Footprint::Barrier, "{text:?}");
        }
        let found = scoped(Argument::Text("x"), |_| Ok(ScopePath::root()));
        assert_eq!(found, Footprint::Path(ScopePath::root()));
    }

    #[test]
    fn file_tools_touch_their_path() {
        let file = Footprint::Path(ScopePath::lexical("/ws/a").unwrap());
        for tool in ["read_file", "write_file", "patch"] {
            check(tool, Argument::Text("/ws/a"), Argument::Absent, &file);
        }
        check(
            "patch",
            Argument::Text("/ws/a"),
            Argument::Text("replace"),
            &file,
        );
    }

    #[test]
    fn a_call_whose_file_is_unclear_is_a_barrier() {
        for path in [
            Argument::Absent,
            Argument::NotText,
            Argument::Text(" \t"),
            Argument::Text("not/absolute"),
        ] {
            check("write_file", path, Argument::Absent, &Footprint::Barrier);
        }
        for mode in [
            Argument::Text("patch"),
            Argument::Text("Replace"),
            Argument::NotText,
        ] {
            check("patch", Argument::Text("/ws/a"), mode, &Footprint::Barrier);
        }
        let unreadable = footprint("web_search", Arguments::Unreadable, ScopePath::lexical);
        assert_eq!(unreadable, Footprint::Barrier);
    }

    #[test]
    fn only_declared_tools_are_independent() {
        check(
            "web_search",
            Argument::Absent,
            Argument::Absent,
            &Footprint::Independent,
        );
        for tool in [
            "terminal",
            "execute_code",
            "clarify",
            "skill_manage",
            "Web_Search",
            "",
            "mcp_x",
        ] {
            check(
                tool,
                Argument::Absent,
                Argument::Absent,
                &Footprint::Barrier,
            );
        }
    }
}
