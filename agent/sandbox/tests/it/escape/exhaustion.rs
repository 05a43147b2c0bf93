//! Probes that use things up: each asks for more than its limit, its twin for
//! less; then the same without control groups, and without limits on single
//! processes.
//!
//! How much is asked for is bounded by the probe itself, so that one that gets
//! through does no harm. Lines that start with LIMITS become a table of
//! docs/escape-matrix.md.

use std::collections::BTreeMap;
use std::time::Duration;

use hermitcrab_sandbox::SpawnError;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{Command, Ending, Finished, Limits};

use super::{run_without, tried_without};
use crate::support::{self, Workspace, marker, processes_with, text};

const FILES: &str = include_str!("exhaustion.pl");

/// What is left out in turn; nothing, first.
const LEFT_OUT: [Option<Mechanism>; 3] = [
    None,
    Some(Mechanism::ControlGroups),
    Some(Mechanism::ResourceLimits),
];

/// When those that do not want to end are ended: the first at which all were there.
const DEADLINES: [Duration; 4] = [
    Duration::from_millis(2500),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// Probes only one mechanism stops, and which.
const SINGLE_LINE: &[(&str, Mechanism)] = &[
    (
        "memory shared out among processes",
        Mechanism::ControlGroups,
    ),
    ("one long file", Mechanism::ResourceLimits),
    ("open files", Mechanism::ResourceLimits),
];

/// What got through, by the probe's name.
type Results = BTreeMap<String, bool>;

/// Small ones, so that a probe need not ask for much.
fn limits() -> Limits {
    Limits {
        processes_max: 120,
        open_files_max: 64,
        file_bytes_max: 8 << 20,
        data_bytes_max: Some(64 << 20),
        view_bytes_max: 16 << 20,
        view_inodes_max: 500,
        tmp_bytes_max: 16 << 20,
        memory_bytes_max: 64 << 20,
        cpu_percent_max: 200,
        output_bytes_max: 4096,
        ..Limits::default()
    }
}

fn hog(megabytes: u32) -> String {
    format!(
        "perl -e '$| = 1; my @h; for (1..{megabytes}) {{ push @h, \"x\" x (1 << 20) }} print \"in\\n\"' 2> /dev/null"
    )
}

/// One after the other takes 30 megabytes and keeps them; then each is asked
/// whether it is still there. One that the kernel has killed does not answer, while
/// it can be there to be waited for, with its memory taken away, for as long as the
/// machine is busy.
const THREE_HOGS: &str = r#"exec perl -MSocket -e '
$SIG{PIPE} = "IGNORE"; my ($ok, @hogs) = 1;
for (1..3) {
  socketpair my $ours, my $theirs, AF_UNIX, SOCK_STREAM, 0;
  if (!fork) { close $ours; my @h; push @h, "x" x (1 << 20) for 1..30;
    syswrite $theirs, "x"; sysread $theirs, my $b, 1; syswrite $theirs, "y"; sleep 60; exit }
  close $theirs; $ok &&= sysread $ours, my $b, 1; push @hogs, $ours }
for (@hogs) { $ok &&= syswrite $_, "?"; $ok &&= sysread $_, my $b, 1 }
print "in\n" if $ok' 2> /dev/null"#;

struct Probing<'a> {
    workspace: &'a Workspace,
    without: MechanismSet,
    results: Results,
}

impl Probing<'_> {
    fn run(&self, script: &str, set: impl FnOnce(&mut Command<'_>)) -> Finished {
        let mut command = self.workspace.command(script);
        command.limits = limits();
        set(&mut command);
        run_without(self.without, &command)
    }

    /// The probe got through if it says `in`, as its twin has to.
    fn counted(&mut self, name: &str, twin: &str, probe: &str) {
        let allowed = self.run(twin, |_| {});
        assert_eq!(text(&allowed), "in\n", "{name}");
        let tried = self.run(probe, |_| {});
        self.results
            .insert(name.to_owned(), text(&tried).contains("in\n"));
    }

    fn memory(&mut self) {
        self.counted("memory of one process", &hog(4), &hog(96));
        self.counted("memory shared out among processes", &hog(4), THREE_HOGS);
    }

    fn processes(&mut self) {
        let forks = |many: u32| {
            format!(
                "perl -e 'my $n = 0; for (1..{many}) {{ my $p = fork; last unless defined $p; if (!$p) {{ sleep 60; exit }} $n++ }} print \"in\\n\" if $n == {many}'"
            )
        };
        self.counted("processes", &forks(20), &forks(200));
    }

    fn files(&mut self) {
        let script = format!(
            "exec perl exhaustion.pl {}",
            self.workspace.path().display()
        );
        let finished = self.run(&script, |command| {
            // Apart from its size, what is in a file is memory as well.
            command.limits.memory_bytes_max = 256 << 20;
            command.limits.data_bytes_max = None;
        });
        assert_eq!(finished.ending, Ending::Exited(0), "{}", text(&finished));
        let mut seen = 0;
        for line in text(&finished).lines() {
            let parts: Vec<_> = line.split('\t').collect();
            let [name, probe, twin] = parts.as_slice() else {
                panic!("{line}");
            };
            assert_eq!(*twin, "works", "{line}");
            self.results.insert((*name).to_owned(), *probe == "through");
            seen += 1;
        }
        assert_eq!(seen, 8);
    }

    fn output(&mut self) {
        let script = "echo in; exec perl -e 'print \"x\" x 65536 for 1..320'";
        let finished = self.run(script, |_| {});
        assert_eq!(finished.ending, Ending::Exited(0));
        assert_eq!(finished.stdout.total_bytes(), 3 + 65536 * 320);
        let kept = finished.stdout.to_bytes();
        assert!(kept.starts_with(b"in\nxxx"));
        self.results
            .insert("a flood of output".to_owned(), kept.len() > 4096);
    }

    /// Descendants in sessions of their own that ignore being asked to end.
    fn daemons(&mut self, number: u32) {
        let marker = marker(9_700 + number);
        let script = format!(
            "trap '' TERM HUP INT; for i in $(seq 99); do setsid sleep {marker} > /dev/null & done; echo in; exec sleep {marker}"
        );
        // On a busy machine they are not all there so soon, or not even the sandbox.
        let all_there = DEADLINES.into_iter().any(|deadline| {
            let mut command = self.workspace.command(&script);
            command.limits = Limits {
                timeout: deadline,
                memory_bytes_max: 512 << 20,
                ..limits()
            };
            match tried_without(self.without, &command) {
                Ok(finished) => {
                    assert_eq!(finished.ending, Ending::TimedOut);
                    text(&finished) == "in\n"
                }
                Err(SpawnError::Step(_)) => false,
                Err(error) => panic!("{error}"),
            }
        });
        assert!(all_there);
        self.results.insert(
            "100 descendants after the deadline".to_owned(),
            processes_with(&marker) > 0,
        );
    }
}

#[test]
fn a_second_mechanism_holds_what_would_be_used_up() {
    let workspace = Workspace::new();
    workspace.file("exhaustion.pl", FILES);
    let allowed = workspace.run("perl -e 1");
    if allowed.ending != Ending::Exited(0) {
        println!("SKIPPED: no perl to ask for things with");
        return;
    }
    if !allowed.confined.by.contains(Mechanism::ControlGroups) {
        println!("SKIPPED: {:?}", allowed.confined.missing);
        return;
    }
    let mut matrix: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for (number, left_out) in (0..).zip(LEFT_OUT) {
        let mut probing = Probing {
            workspace: &workspace,
            without: MechanismSet::of(left_out),
            results: Results::new(),
        };
        probing.memory();
        probing.processes();
        probing.files();
        probing.output();
        probing.daemons(number);
        for (name, through) in probing.results {
            matrix.entry(name).or_default().push(through);
        }
    }
    let names: Vec<_> = LEFT_OUT
        .map(|left_out| left_out.map_or("nothing", Mechanism::as_str))
        .into();
    println!("LIMITS probe | {}", names.join(" | "));
    let mut found = Vec::new();
    for (probe, row) in &matrix {
        let cells: Vec<_> = row
            .iter()
            .map(|through| if *through { "**through**" } else { "held" })
            .collect();
        println!("LIMITS {probe} | {}", cells.join(" | "));
        for (left_out, through) in LEFT_OUT.iter().zip(row) {
            match left_out {
                Some(mechanism) if *through => found.push((probe.as_str(), *mechanism)),
                None => assert!(!through, "{probe} got through"),
                Some(_) => {}
            }
        }
    }
    // Both ways: what is called a single line is one, and is a live probe.
    assert_eq!(found, SINGLE_LINE);
}

#[test]
fn over_copied_views_what_would_be_used_up_is_held_as_well() {
    support::on(Layer::Copy, a_second_mechanism_holds_what_would_be_used_up);
}
