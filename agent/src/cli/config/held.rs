//! Which of the configured limits nothing holds on this machine, as was just tried out.
//!
//! Memory and processor time of all that a command starts are held by a control group, and in
//! most logins nobody but root may make one. A limit that is shown and holds nothing would be
//! believed.

use hermitcrab_sandbox::{
    SpawnerProgram,
    profile::{Mechanism, Row},
};

use crate::{ambient, config::keys::Key};

/// What holds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacking {
    memory: bool,
    processor: bool,
}

/// What is said of one that holds nothing.
const NOT_HELD: &str =
    "not in force here: no control group can be made, and `hermitcrab doctor` says what gives one";

/// Whether a key's limit is held by a control group.
pub(super) fn concerns(key: &Key) -> bool {
    matches!(
        key.name,
        "limits.memory_max_mb" | "limits.cpu_quota_percent"
    )
}

/// What was seen of the sandbox; nothing where it cannot be tried out.
pub(super) fn rows() -> Vec<Row> {
    let profile = ambient::probe(&SpawnerProgram::Own);
    profile.map_or_else(|_| Vec::new(), |profile| profile.rows)
}

/// What of it holds nothing. What was not looked at is not said to.
pub(super) fn lacking(rows: &[Row]) -> Lacking {
    let groups = rows
        .iter()
        .find(|row| row.mechanism == Mechanism::ControlGroups);
    let is_held = |what: &str| match groups.map(|row| (row.available, &row.seen)) {
        None | Some((None, _)) => true,
        Some((Some(false), _)) => false,
        // Groups there are may hold some of it.
        Some((Some(true), seen)) => seen.contains(what),
    };
    Lacking {
        memory: !is_held("memory"),
        processor: !is_held("cpu"),
    }
}

impl Lacking {
    /// That this key's limit holds nothing here.
    pub(super) fn not_held(self, key: &Key) -> Option<&'static str> {
        let lacks = match key.name {
            "limits.memory_max_mb" => self.memory,
            "limits.cpu_quota_percent" => self.processor,
            _ => false,
        };
        lacks.then_some(NOT_HELD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys;

    fn row(available: Option<bool>, seen: &str) -> [Row; 1] {
        [Row {
            mechanism: Mechanism::ControlGroups,
            available,
            used: available == Some(true),
            mandatory: false,
            seen: seen.to_owned(),
            lost_without: "",
        }]
    }

    #[test]
    fn a_limit_is_said_to_hold_nothing_where_that_was_seen() {
        let told = |rows: &[Row]| {
            let lacking = lacking(rows);
            let names = [
                "limits.memory_max_mb",
                "limits.cpu_quota_percent",
                "limits.pids_max",
            ];
            names.map(|name| lacking.not_held(keys::find(name).unwrap()).is_some())
        };
        assert_eq!(told(&row(Some(false), "no group")), [true, true, false]);
        let all = row(Some(true), "holding memory, cpu, processes");
        assert_eq!(told(&all), [false; 3]);
        let some = row(Some(true), "holding memory");
        assert_eq!(told(&some), [false, true, false]);
        assert_eq!(told(&row(None, "")), [false; 3]);
        assert_eq!(told(&[]), [false; 3]);
    }
}
