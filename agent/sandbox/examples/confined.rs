//! One command on a copy of a directory: what it did is looked at, then kept or thrown away.
//!
//! ```console
//! $ cargo run -p hermitcrab-sandbox --example confined -- DIR 'COMMAND'
//! ```
//!
//! Without arguments it makes a directory of its own. What the agent holds is making files: a
//! command that changes or deletes some has its changes thrown away.

use std::{env::args_os, error::Error, fs, io, os::unix::ffi::OsStringExt as _, path::PathBuf};

use hermitcrab_core::{
    action::Action,
    audit::Head,
    authority::{Authority, Cap, Object, Program, Verb},
    digest::Digest,
    grant::{AgentId, Lifetime, Uses},
    outcome::Outcome,
    path::RelPath,
    rules::{Isolation, Withheld},
    session::{Asking, Call, Event, GrantSpec, Session, SessionConfig},
    time::Instant,
    tool::Tool,
};
use hermitcrab_sandbox::{
    DirCap, Journal, Sandbox,
    journal::Part,
    net::Network,
    sha256,
    spawn::{Command, Limits, View, ViewMode},
};

fn main() -> Result<(), Box<dyn Error>> {
    // First of all: the sandbox starts this very program again, as its spawner.
    hermitcrab_sandbox::maybe_run_as_child();

    let temp = tempfile::tempdir()?;
    let (place, script) = match (args_os().nth(1), args_os().nth(2)) {
        (Some(place), Some(script)) => (PathBuf::from(place).canonicalize()?, script.into_vec()),
        _ => {
            let place = temp.path().join("work");
            fs::create_dir(&place)?;
            (place, b"echo hello > new.txt; ls /root; id -u".to_vec())
        }
    };
    // The journal of commits lies outside of every directory that is worked in.
    let state = temp.path().join("state");
    fs::create_dir(&state)?;

    // A session decides, and makes permits. It has no clock: whoever uses it says what time it is.
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    // The directory as the core knows it, seen from `/`, and the same held open.
    let seen = place.strip_prefix("/")?;
    // A refusal is a result and no error: whoever wants one makes it.
    let dir = session
        .add_dir(RelPath::parse(seen.as_os_str().as_encoded_bytes())?)
        .map_err(|refused| refused.to_string())?;
    let cap = DirCap::open_ambient_dir(&place, dir)?;
    let any_program = Object::Program(Program::AnyInView);
    let below = Object::tree(dir, RelPath::root());
    let authority = Authority::from_caps(vec![
        Cap::new(Verb::ProcExec, any_program.clone())?,
        Cap::new(Verb::FsCreate, below)?,
    ])?;
    let granted = session.step(
        Instant::BOOT,
        Event::Grant(GrantSpec {
            holder: AgentId::FIRST,
            authority,
            uses: Uses::Uncounted,
            lifetime: Lifetime::Session,
        }),
    );
    drop(granted);

    // Running it is one decision. The permit is spent by that and cannot be kept.
    let mut parts = session
        .step(
            Instant::BOOT,
            Event::Call(Call {
                by: AgentId::FIRST,
                tool: Tool::Terminal,
                actions: vec![Action::new(Verb::ProcExec, any_program, Digest::NONE)?],
            }),
        )
        .into_parts();
    let (Some(call), Some(permit)) = (parts.call, parts.permits.pop()) else {
        return Err(format!("not allowed: {:?}", parts.denials).into());
    };
    let finished = Sandbox::builder().build().run(
        permit,
        &Command {
            argv: vec![b"bash".to_vec(), b"-c".to_vec(), script],
            env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
            cwd: place.clone(),
            views: vec![View {
                dir: &cap,
                at: place.clone(),
                mode: ViewMode::CopyOnWrite,
                withheld: Withheld::default(),
            }],
            private_dirs: Vec::new(),
            inputs: Vec::new(),
            merge_stderr: true,
            network: Network::none(),
            limits: Limits::default(),
        },
    )?;
    io::Write::write_all(&mut io::stdout(), &finished.stdout.to_bytes())?;
    println!("{:?} after {:?}", finished.ending, finished.elapsed);

    // What it did is another. Nothing has happened outside yet.
    let Some(set) = finished.changes.first() else {
        return Err("there was no view".into());
    };
    for change in set.changes() {
        println!("  {}: {:?}", change.path, change.what);
    }
    if set.is_empty() {
        return Ok(());
    }
    let actions = set.actions(dir)?;
    let parts = session
        .step(Instant::BOOT, Event::Effects { call, actions })
        .into_parts();
    let outcome = if let Some((_, denial)) = parts.denials.first() {
        println!("thrown away: {denial}");
        Outcome::Failed
    } else {
        let (journal, _recovered) = Journal::open(&state)?;
        let permits = parts.permits;
        let part = Part {
            dir: &cap,
            set,
            permits,
        };
        let commit = journal.commit(vec![part], "an example");
        match commit.failure {
            None => println!("kept, {} changes", commit.applied),
            Some(failure) => println!("nothing was changed: {failure}"),
        }
        Outcome::Done(Digest::NONE)
    };
    let ended = session.step(Instant::BOOT, Event::Finished { call, outcome });
    drop(ended);
    Ok(())
}
