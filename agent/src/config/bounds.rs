//! What a number of the configuration can be at most: on any machine, beyond which it is a
//! slip, and on this one, beyond which it bounds nothing.
//!
//! Pure: what this machine has is handed in.

use crate::ambient::Machine;

/// A limit that no machine can use all of: a slip of the pen.
const MOST: [(&str, u64, &str); 8] = [
    // What five levels of pages address.
    ("memory_max_mb", 1 << 32, MIB),
    ("tmp_max_mb", 1 << 32, MIB),
    ("changes_max_mb", 1 << 32, MIB),
    // As many processors as a kernel is built for.
    ("cpu_quota_percent", 8192 * 100, "hundredths of a processor"),
    // The kernel's own most.
    ("pids_max", 1 << 22, "processes"),
    ("timeout_seconds", SECONDS, "seconds, a hundred years"),
    (
        "script_timeout_seconds",
        SECONDS,
        "seconds, a hundred years",
    ),
    ("script_calls_max", 1_000_000_000, "calls"),
];
const MIB: &str = "MiB, more than any machine has";
const SECONDS: u64 = 100 * 365 * 24 * 60 * 60;

/// Why a limit cannot be so much, if it cannot.
#[must_use]
pub fn beyond_any(name: &str, value: u64) -> Option<String> {
    let (_, most, of) = MOST.iter().find(|(known, ..)| *known == name)?;
    (value > *most).then(|| {
        format!(
            "`limits.{name}` is {value}, and the most it can be is {most} ({of}); leave it out for the usual value"
        )
    })
}

/// That a limit is more than the machine has, so that it bounds nothing, if it is.
#[must_use]
pub fn beyond_this(key: &str, value: u64, machine: &Machine) -> Option<String> {
    let (has, of) = match key {
        "limits.memory_max_mb" | "limits.tmp_max_mb" => (machine.memory_mb?, "MiB of memory"),
        "limits.cpu_quota_percent" => (
            machine.processors?.saturating_mul(100),
            "hundredths of a processor",
        ),
        "limits.pids_max" => (machine.processes?, "processes at once"),
        _ => return None,
    };
    (value > has).then(|| format!("this machine has {has} {of}, so {value} bounds nothing here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_a_slip_and_what_this_one_has_not_is_told() {
        for (name, most, _) in MOST {
            assert_eq!(beyond_any(name, most), None, "{name}");
            let why = beyond_any(name, most + 1).unwrap();
            assert!(why.contains(&format!("`limits.{name}`")), "{why}");
        }
        assert_eq!(beyond_any("colour", u64::MAX), None);
        let machine = Machine {
            memory_mb: Some(1000),
            processors: Some(2),
            processes: None,
        };
        let check = |key, value, told: Option<&str>| {
            let why = beyond_this(key, value, &machine);
            assert_eq!(why.as_deref(), told, "{key} {value}");
        };
        check("limits.memory_max_mb", 1000, None);
        check(
            "limits.memory_max_mb",
            1001,
            Some("this machine has 1000 MiB of memory, so 1001 bounds nothing here"),
        );
        check("limits.cpu_quota_percent", 200, None);
        check(
            "limits.cpu_quota_percent",
            201,
            Some("this machine has 200 hundredths of a processor, so 201 bounds nothing here"),
        );
        check("limits.pids_max", 1 << 22, None);
        check("limits.timeout_seconds", 1 << 30, None);
    }
}
