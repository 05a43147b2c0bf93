//! A command whose output is shown as it comes, that reaches one listed host, and is killed.
//!
//! ```console
//! $ cargo run -p hermitcrab-sandbox --example watched
//! $ cargo run -p hermitcrab-sandbox --example watched -- example.com 443 'curl -sI https://example.com'
//! ```

use std::{
    env::args,
    error::Error,
    io::{self, Write as _},
    path::PathBuf,
    thread,
    time::Duration,
};

use hermitcrab_core::{
    Permit,
    action::Action,
    audit::Head,
    authority::{Authority, Cap, Host, HostPattern, Name, Object, Port, Program, Verb},
    digest::Digest,
    grant::{AgentId, Lifetime, Uses},
    rules::Isolation,
    session::{Asking, Call, Event, GrantSpec, Session, SessionConfig},
    time::Instant,
    tool::Tool,
};
use hermitcrab_sandbox::{
    Sandbox,
    net::Network,
    sha256,
    spawn::{Command, Limits, Streams},
};

fn main() -> Result<(), Box<dyn Error>> {
    hermitcrab_sandbox::maybe_run_as_child();

    let mut words = args().skip(1);
    let host = words.next().unwrap_or_else(|| "example.com".to_owned());
    let port = words.next().map_or(Ok(443), |port| port.parse())?;
    let script = words
        .next()
        .unwrap_or_else(|| "for n in 1 2 3; do echo $n; sleep 0.2; done; sleep 60".to_owned());

    let program = Object::Program(Program::AnyInView);
    let peer = Object::Host(Host {
        name: HostPattern::Exact(Name::parse(&host)?),
        port: Port::Only(port),
    });
    let mut session = holding(vec![
        Cap::new(Verb::ProcExec, program.clone())?,
        Cap::new(Verb::NetConnect, peer.clone())?,
    ])?;
    let mut parts = session
        .step(
            Instant::BOOT,
            Event::Call(Call {
                by: AgentId::FIRST,
                tool: Tool::Terminal,
                actions: vec![
                    Action::new(Verb::ProcExec, program, Digest::NONE)?,
                    Action::new(Verb::NetConnect, peer, Digest::NONE)?,
                ],
            }),
        )
        .into_parts();
    // In the order of the actions: one to run it, the rest are its network.
    let connect: Vec<Permit<'_>> = parts.permits.drain(1..).collect();
    let Some(permit) = parts.permits.pop() else {
        return Err(format!("not allowed: {:?}", parts.denials).into());
    };
    let command = Command {
        argv: vec![b"bash".to_vec(), b"-c".to_vec(), script.into_bytes()],
        env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
        // It sees no directory of anybody's: /tmp is its own.
        cwd: PathBuf::from("/tmp"),
        views: Vec::new(),
        private_dirs: Vec::new(),
        inputs: Vec::new(),
        merge_stderr: false,
        network: Network::from_permits(connect).map_err(|refused| refused.to_string())?,
        limits: Limits {
            timeout: Duration::from_secs(20),
            ..Limits::default()
        },
    };
    let sandbox = Sandbox::builder().build();
    let running = sandbox.spawn(permit, &command, Streams::default())?;

    // Another thread may end it while this one waits.
    let killer = running.killer();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(3));
        killer.kill();
    });
    let finished = running.wait_with(|from, piece| {
        let text = String::from_utf8_lossy(piece);
        // Where nobody reads any more there is nobody to tell it.
        let _written = write!(io::stdout(), "{from:?}: {text}");
    })?;
    println!("{:?} after {:?}", finished.ending, finished.elapsed);
    for attempt in &finished.attempts {
        println!("tried {}: {:?}", attempt.target, attempt.verdict);
    }
    println!(
        "what held it: {}",
        if finished.confined.is_complete() {
            "everything there is".to_owned()
        } else {
            format!("not {:?}", finished.confined.missing)
        }
    );
    Ok(())
}

/// A session whose first agent holds these until it ends.
fn holding(caps: Vec<Cap>) -> Result<Session, Box<dyn Error>> {
    let (mut session, _records) = Session::open(SessionConfig {
        id: 1,
        hash: sha256,
        isolation: Isolation::Isolated,
        protected: Vec::new(),
        asking: Asking::Refuse,
        ledger: Head::EMPTY,
        opened_at: Instant::BOOT,
    });
    let spec = GrantSpec {
        holder: AgentId::FIRST,
        authority: Authority::from_caps(caps)?,
        uses: Uses::Uncounted,
        lifetime: Lifetime::Session,
    };
    drop(session.step(Instant::BOOT, Event::Grant(spec)));
    Ok(session)
}
