//! What stands behind a single line of defence: the probe gets through without it, and
//! still does no harm outside. The reasons in `single_line` say so; here it is tried.

use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use hermitcrab_core::action::Action;
use hermitcrab_core::authority::{Object, Program, Verb};
use hermitcrab_core::digest::Digest;
use hermitcrab_core::tool::Tool;
use hermitcrab_sandbox::changeset::Layer;
use hermitcrab_sandbox::profile::{Mechanism, MechanismSet};
use hermitcrab_sandbox::spawn::{Ending, Input, Streams};

use super::{run_without, sandbox_without};
use crate::support::numbers::numbered;
use crate::support::{self, Workspace, text, with_permits};

/// Takes a lease on a file of the view and watches its directory, waits, and says what
/// it was told.
const HOLDS: &str = r#"exec perl -e '
use Fcntl; $| = 1; my $told = 0; $SIG{IO} = sub { $told++ };
sysopen my $f, "shared", O_RDONLY or die; sysopen my $d, ".", O_RDONLY or die;
syscall(SYS_fcntl, fileno $f, 1024, 0) == 0 or die "lease"; syscall(SYS_fcntl, fileno $d, 1026, 4 | 8 | 0x80000000) == 0 or die "watch";
print "held\n"; sysread STDIN, my $b, 1; print "told $told\n"' 2>&1"#;

/// A key on the ring of the user.
const ADDS_A_KEY: &str = r#"exec perl -e 'my @t = ("user\0", "left\0", "x"); exit(syscall(SYS_add_key, @t, 1, -4) < 0)'"#;
/// Whether it is there: KEYCTL_SEARCH.
const FINDS_THE_KEY: &str = r#"exec perl -e 'my @t = ("user\0", "left\0"); exit(syscall(SYS_keyctl, 10, -4, $t[0], $t[1], 0) < 0)'"#;

fn without_filter() -> MechanismSet {
    MechanismSet::of([Mechanism::SystemCallFilter])
}

#[test]
fn a_lease_and_a_watch_in_a_view_reach_nobody_outside() {
    let workspace = Workspace::new();
    workspace.file("shared", "before");
    if workspace.run("perl -e 1").ending != Ending::Exited(0) {
        println!("SKIPPED: no perl to make system calls with");
        return;
    }
    let program = Object::Program(Program::AnyInView);
    let action = Action::new(Verb::ProcExec, program, Digest::NONE).unwrap();
    let streams = Streams {
        stdin: Input::Pipe,
        ..Streams::default()
    };
    let sandbox = sandbox_without(without_filter());
    let mut running = with_permits(Tool::Terminal, vec![action], |mut permits| {
        let script = numbered(HOLDS);
        let command = workspace.command(&script);
        sandbox.spawn(permits.pop().unwrap(), &command, streams)
    })
    .unwrap();
    let stdin = running.take_stdin().unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\n") {
        let over = running
            .attend(Duration::from_secs(20), |_, bytes| {
                seen.extend_from_slice(bytes);
            })
            .unwrap();
        assert!(!over, "{}", String::from_utf8_lossy(&seen));
    }
    assert_eq!(String::from_utf8_lossy(&seen), "held\n");
    // Who would have to wait is told so instead.
    std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(workspace.path().join("shared"))
        .unwrap();
    workspace.file("new", "");
    std::fs::remove_file(workspace.path().join("new")).unwrap();
    drop(stdin);
    let finished = running.wait().unwrap();
    assert_eq!(text(&finished), "held\ntold 0\n");
}

#[test]
fn over_copied_views_they_reach_nobody_either() {
    support::on(
        Layer::Copy,
        a_lease_and_a_watch_in_a_view_reach_nobody_outside,
    );
}

#[test]
fn a_key_is_not_found_by_the_next_command() {
    let workspace = Workspace::new();
    let ran = |script: &str| {
        let script = numbered(script);
        run_without(without_filter(), &workspace.command(&script)).ending
    };
    let both = format!("({ADDS_A_KEY}) && ({FINDS_THE_KEY})");
    if ran(&both) != Ending::Exited(0) {
        println!("SKIPPED: no perl, or a kernel that gives no key");
        return;
    }
    assert_eq!(ran(FINDS_THE_KEY), Ending::Exited(1));
}

#[test]
fn an_attribute_that_lends_capabilities_stays_inside() {
    let workspace = Workspace::new();
    let script = "cp /bin/true plain && exec python3 -c \"
import os, struct
os.setxattr('plain', 'security.capability', struct.pack('<5I', 0x02000001, 1 << 7, 0, 0, 0))
\"";
    let without = MechanismSet::of([Mechanism::NoCapabilities]);
    let finished = run_without(without, &workspace.command(script));
    if finished.ending != Ending::Exited(0) {
        println!("SKIPPED: it cannot be set here: {}", text(&finished));
        return;
    }
    support::commit(&finished, &workspace);
    let path = workspace.path().join("plain");
    assert!(path.is_file());
    assert_eq!(support::xattrs(&path), [""; 0]);
}
