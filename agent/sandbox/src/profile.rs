//! What of the isolation works here, found out by doing it.
//!
//! What for: `doctor`, and the session, which refuses to run commands unless
//! isolation was proved. Why: versions and settings say little; agents have
//! reported a sandbox as active while every command failed or ran naked.
//!
//! The probe runs one fixed script, written here, on a copy-on-write view and
//! throws the view away; it is the only command that needs no permit, because
//! permits depend on its result. It must never count something as present
//! that it did not see.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use hermitcrab_core::rules::Isolation;
use hermitcrab_core::rules::Withheld;
use rustix::fs::AtFlags;

use crate::dircap::DirCap;
use crate::identity;
use crate::net::Network;
use crate::program::SpawnerProgram;
use crate::spawn::{
    Builder, Command, Ending, Finished, Limits, PoolSize, Sandbox, SpawnError, View, ViewMode,
};

pub use crate::confined::Confined;
pub use crate::mechanism::{Mechanism, MechanismSet};

/// What was found out about one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which one.
    pub mechanism: Mechanism,
    /// Whether it was seen to work; `None` if nobody looked.
    pub available: Option<bool>,
    /// Whether commands get it.
    pub used: bool,
    /// Whether commands are refused without it.
    pub mandatory: bool,
    /// What was seen.
    pub seen: String,
    /// What is lost without it.
    pub lost_without: &'static str,
}

/// The result of a probe.
#[derive(Debug)]
pub struct IsolationProfile {
    /// What the session needs to know.
    pub isolation: Isolation,
    /// One row for each mechanism.
    pub rows: Vec<Row>,
    /// Why nothing could be seen, if the probe itself could not run.
    pub failure: Option<SpawnError>,
}

/// Prints what the command sees, one `name=value` a line.
const SCRIPT: &str = r#"
for name in user mnt pid net ipc uts cgroup; do
  echo "ns.$name=$(readlink /proc/self/ns/$name)"
done
while read -r name value; do
  case $name in CapEff:|CapPrm:|CapBnd:|CapAmb:|NoNewPrivs:|Seccomp:) echo "$name$value" ;; esac
done < /proc/self/status | tr ':' '='
echo "pid=$$"
while read -r inner outer count; do echo "uid=$inner $outer $count"; break; done < /proc/self/uid_map
for place in /usr /bin /etc /proc/sys /; do
  if { echo probe > "$place/.hermitcrab-probe"; } 2>/dev/null; then echo "writable=$place"; fi
done
for place in /home /root /sys /var/lib /run/user; do
  if [ -e "$place" ] && [ "${1#"$place"}" = "$1" ]; then echo "visible=$place"; fi
done
for name in cmdline config.gz interrupts kallsyms kcore key-users keys sched_debug timer_list; do
  if IFS= read -r line < /proc/$name; then echo "told=$name"; fi
done 2>/dev/null
for open in /proc/$$/fd/*; do
  if [ "${open##*/}" -gt 2 ] && [ -e "$open" ]; then echo "open=${open##*/}"; fi
done
while read -r first second soft rest; do
  if [ "$first $second" = "Max processes" ]; then echo "processes=$soft"; fi
done < /proc/self/limits
# Read a byte at a time, it ends before the end of its line, which read calls a failure.
most=; read -r most < /proc/sys/user/max_user_namespaces; echo "nested=$most"
first=; read -r first < /proc/self/oom_score_adj; echo "victim=$first"
if (exec < /dev/tty) 2>/dev/null; then echo "tty=open"; fi
if [ -O "$1" ]; then echo "owner=own"; else echo "owner=other"; fi
echo probe > "$1/.hermitcrab-probe" && echo "view=written"
"#;
const PROBE_FILE: &str = ".hermitcrab-probe";
const PLACE: &str = "/work/probe";

/// Runs the probe on a view of `dir`, which is not changed.
#[must_use]
pub fn probe(program: &SpawnerProgram, dir: &DirCap) -> IsolationProfile {
    probe_as(builder(program), dir)
}

/// The same, for commands of a sandbox that is built like this.
#[must_use]
pub fn probe_as(builder: Builder, dir: &DirCap) -> IsolationProfile {
    probe_with(builder.pool(PoolSize::OFF), dir)
}

/// As [`probe`], of what would be where no overlay can be mounted.
#[doc(hidden)]
#[must_use]
pub fn probe_copying(program: &SpawnerProgram, dir: &DirCap) -> IsolationProfile {
    probe_as(builder(program).copied_views(true), dir)
}

fn builder(program: &SpawnerProgram) -> Builder {
    Sandbox::builder().spawner(program.clone())
}

fn probe_with(builder: Builder, dir: &DirCap) -> IsolationProfile {
    let command = Command {
        argv: ["sh", "-c", SCRIPT, "probe", PLACE]
            .map(|argument| argument.as_bytes().to_vec())
            .to_vec(),
        env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
        cwd: PathBuf::from("/"),
        views: vec![View {
            dir,
            at: PathBuf::from(PLACE),
            mode: ViewMode::CopyOnWrite,
            withheld: Withheld::default(),
        }],
        private_dirs: Vec::new(),
        inputs: Vec::new(),
        merge_stderr: false,
        network: Network::none(),
        limits: Limits {
            timeout: Duration::from_secs(30),
            ..Limits::default()
        },
    };
    let sandbox = builder.build();
    let (facts, failure) = match sandbox.run_own(&command) {
        Ok(finished) => (Facts::of(&finished, dir), None),
        Err(error) => {
            // What needs no sandbox is known all the same.
            let facts = Facts {
                contained: crate::dircap::kernel_contains_paths(),
                ..Facts::default()
            };
            (facts, Some(error))
        }
    };
    let rows: Vec<Row> = Mechanism::ALL
        .into_iter()
        .map(|mechanism| facts.row(mechanism))
        .collect();
    let proved = rows
        .iter()
        .all(|row| !row.mandatory || (row.used && row.available == Some(true)));
    IsolationProfile {
        isolation: if proved {
            Isolation::Isolated
        } else {
            Isolation::Unknown
        },
        rows,
        failure,
    }
}

/// What the script printed, and what was seen from outside.
#[derive(Debug, Default)]
struct Facts {
    values: BTreeMap<String, Vec<String>>,
    view_held_back: bool,
    contained: bool,
    /// Whether uid 0 of this process's user namespace is another one outside of it.
    root_is_somebody_else: bool,
    confined: Confined,
}

impl Facts {
    fn of(finished: &Finished, dir: &DirCap) -> Self {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if finished.ending == Ending::Exited(0) && finished.stdout.omitted_bytes == 0 {
            let text = String::from_utf8_lossy(&finished.stdout.to_bytes()).into_owned();
            for line in text.lines() {
                if let Some((name, value)) = line.split_once('=') {
                    values
                        .entry(name.trim().to_owned())
                        .or_default()
                        .push(value.trim().to_owned());
                }
            }
        }
        let listed = finished.changes.iter().any(|set| {
            set.changes()
                .iter()
                .any(|change| change.path.as_bytes() == PROBE_FILE.as_bytes())
        });
        let outside =
            rustix::fs::statat(dir.as_fd(), PROBE_FILE, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        Self {
            values,
            view_held_back: listed && !outside,
            contained: crate::dircap::kernel_contains_paths(),
            root_is_somebody_else: identity::root_is_somebody_else(),
            confined: finished.confined.clone(),
        }
    }

    fn one(&self, name: &str) -> Option<&str> {
        match self.values.get(name).map(Vec::as_slice) {
            Some([value]) => Some(value),
            _ => None,
        }
    }

    fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    fn row(&self, mechanism: Mechanism) -> Row {
        let (available, seen) = match mechanism {
            Mechanism::UserNamespace => {
                let (own, seen) = self.own_namespace("user");
                // Root of a namespace that an ordinary user made is that user to the machine.
                let root = self.one("uid").is_none_or(|map| {
                    map.split(' ').nth(1) == Some("0") && !self.root_is_somebody_else
                });
                (own.map(|own| own && !root), seen)
            }
            Mechanism::MountNamespace => self.own_namespace("mnt"),
            Mechanism::PidNamespace => self.own_namespace("pid"),
            Mechanism::NetworkNamespace => self.own_namespace("net"),
            Mechanism::IpcNamespace => self.own_namespace("ipc"),
            Mechanism::UtsNamespace => self.own_namespace("uts"),
            Mechanism::CgroupNamespace => self.own_namespace("cgroup"),
            Mechanism::PrivateRoot => {
                let open: Vec<_> = [self.all("writable"), self.all("visible")].concat();
                let looked = self.one("view").is_some();
                let seen = match open.as_slice() {
                    [] => String::from("system read-only, no home, no /var, no /sys"),
                    open => format!("open: {}", open.join(" ")),
                };
                (looked.then_some(open.is_empty()), seen)
            }
            Mechanism::MaskedProc => self.nothing("told", "the machine's own files are empty"),
            Mechanism::ClosedDescriptors => self.nothing("open", "0, 1 and 2 only"),
            Mechanism::CopyOnWrite => {
                let mut how = match (&self.confined.copied, self.confined.on_disk) {
                    (None, false) => String::from("overlay, its layer in memory"),
                    (None, true) => String::from("overlay, its layer on disk"),
                    (Some(why), _) => {
                        let beyond = if self.confined.by.contains(Mechanism::IdMaps) {
                            "directories beyond half of a command's memory"
                        } else {
                            "rights to what is root's in directories beyond half of a command's memory"
                        };
                        format!(
                            "copy, because {why}; lost: speed, memory, sandboxes kept ready, and {beyond}"
                        )
                    }
                };
                if let Some(why) = self.why("layers on disk") {
                    // Writing to a String cannot fail.
                    let _written = write!(how, "; no layer can lie on disk: {why}");
                }
                (
                    self.one("view").map(|_| self.view_held_back),
                    format!("{how}: a file written inside stayed inside"),
                )
            }
            Mechanism::NoCapabilities => {
                let sets = ["CapEff", "CapPrm", "CapBnd", "CapAmb"];
                let none = sets.iter().all(|set| {
                    self.one(set)
                        .is_some_and(|value| value.chars().all(|digit| digit == '0'))
                });
                let locked = self.one("NoNewPrivs") == Some("1");
                (
                    self.one("CapEff").map(|_| none && locked),
                    format!("effective {}", self.one("CapEff").unwrap_or("unknown")),
                )
            }
            Mechanism::SystemCallFilter => (
                self.one("Seccomp").map(|mode| mode == "2"),
                format!("mode {}", self.one("Seccomp").unwrap_or("unknown")),
            ),
            Mechanism::ResourceLimits => (
                self.one("processes").map(|limit| limit != "unlimited"),
                format!("{} processes", self.one("processes").unwrap_or("unknown")),
            ),
            Mechanism::ContainedPaths => (
                Some(self.contained),
                String::from(if self.contained {
                    "`..` refused by the kernel"
                } else {
                    "the kernel must be 5.6 or newer"
                }),
            ),
            Mechanism::ControlGroups => {
                let limited = self.confined.limited;
                let held = self.confined.by.contains(mechanism);
                let seen = match self.why("control groups") {
                    Some(why) => why,
                    None => format!("holding {limited}"),
                };
                (self.looked().then_some(held), seen)
            }
            Mechanism::Landlock => {
                let version = self.confined.landlock_version;
                let held = self.confined.by.contains(mechanism);
                let seen = match self.why("landlock") {
                    Some(why) => why,
                    None if version == 0 => String::from("not seen"),
                    None => format!("version {version}{}", crate::landlock::lacks(version)),
                };
                (self.looked().then_some(held), seen)
            }
            Mechanism::IdMaps => (
                // The root of a view is its layer's: that it is the command's own
                // says little of what lies below.
                self.one("owner")
                    .map(|owner| owner == "own" && self.confined.by.contains(mechanism)),
                self.why(mechanism.as_str())
                    .unwrap_or_else(|| String::from("what is shown belongs to whoever runs there")),
            ),
            Mechanism::NoNesting => {
                let seen = self.one("nested");
                let told = match seen {
                    Some(most) => format!("{most} can be made"),
                    None => String::from("not seen"),
                };
                (
                    self.looked().then_some(seen == Some("0")),
                    self.why(mechanism.as_str()).unwrap_or(told),
                )
            }
            // Of the namespace above the command's, which cannot be looked into.
            Mechanism::SharedWatches => (
                self.looked()
                    .then_some(self.confined.by.contains(mechanism)),
                self.why(mechanism.as_str()).unwrap_or_else(|| {
                    String::from("an eighth, and none of fanotify's; set and read back")
                }),
            ),
            Mechanism::FirstVictim => {
                let seen = self.one("victim");
                let told = format!("adjusted by {}", seen.unwrap_or("what was not seen"));
                (
                    self.looked().then_some(seen == Some("1000")),
                    self.why(mechanism.as_str()).unwrap_or(told),
                )
            }
            Mechanism::OwnSession => self.nothing("tty", "none can be opened"),
        };
        let used = self.confined.by.contains(mechanism);
        Row {
            mechanism,
            available,
            used,
            mandatory: mechanism.is_mandatory(),
            seen,
            lost_without: mechanism.lost_without(),
        }
    }

    fn looked(&self) -> bool {
        self.one("view").is_some()
    }

    /// Why a mechanism is missing, if a reason was told.
    fn why(&self, name: &str) -> Option<String> {
        self.confined.why(name).map(str::to_owned)
    }

    /// A row that holds when the script listed nothing under `name`.
    fn nothing(&self, name: &str, good: &str) -> (Option<bool>, String) {
        let listed = self.all(name);
        let seen = if listed.is_empty() {
            good.to_owned()
        } else {
            format!("open: {}", listed.join(" "))
        };
        let looked = self.one("view").is_some();
        (looked.then_some(listed.is_empty()), seen)
    }

    /// Whether the command's namespace is another one than the agent's.
    fn own_namespace(&self, name: &str) -> (Option<bool>, String) {
        let inside = self.one(&format!("ns.{name}"));
        let outside = std::fs::read_link(format!("/proc/self/ns/{name}"))
            .map(|link| link.display().to_string());
        match (inside, outside) {
            (Some(inside), Ok(outside)) if !inside.is_empty() => (
                Some(inside != outside),
                format!("{inside}, outside {outside}"),
            ),
            _ => (None, String::from("not seen")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_to_be_missing_is_not_called_available() {
        let told = |mechanism: Mechanism, why: &str| {
            let mut confined = Confined::default();
            confined.note(mechanism, &Err(why.to_owned()));
            let facts = Facts {
                values: BTreeMap::from([("view".to_owned(), vec!["written".to_owned()])]),
                confined,
                ..Facts::default()
            };
            facts.row(mechanism)
        };
        for mechanism in [
            Mechanism::NoNesting,
            Mechanism::SharedWatches,
            Mechanism::FirstVictim,
        ] {
            let row = told(mechanism, "the kernel does not");
            assert_eq!((row.available, row.used), (Some(false), false), "{row:?}");
            assert_eq!(row.seen, "the kernel does not");
            assert!(!row.mandatory);
        }
    }
}
