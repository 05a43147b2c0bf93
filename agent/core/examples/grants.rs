//! A grant that ends: by time, by use, by a word; and what asks where nothing is held.
//!
//! ```console
//! $ cargo run -p hermitcrab-core --example grants
//! ```
//!
//! The core has no clock, no files and no hash of its own. What the time is, where the
//! directories are and how a digest is made is said to it, so a test can say anything.

use std::error::Error;

use hermitcrab_core::{
    action::Action,
    approval::{Answer, Reply, Scope},
    audit::Head,
    authority::{Authority, Cap, DirId, Object, Verb},
    digest::Digest,
    grant::{AgentId, GrantId, Lifetime, Uses},
    path::RelPath,
    rules::Isolation,
    session::{Asking, Call, Event, GrantSpec, Session, SessionConfig},
    time::{Instant, Millis},
    tool::Tool,
};
use sha2::{Digest as _, Sha256};

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let mut desk = Desk::open()?;
    let at = |seconds| Instant::BOOT.after(Millis::from_seconds(seconds));

    // For a minute.
    desk.grant(
        at(0),
        Verb::FsRead,
        Uses::Uncounted,
        Lifetime::For(Millis::from_minutes(1)),
    )?;
    desk.tries(at(59), Verb::FsRead)?;
    desk.tries(at(61), Verb::FsRead)?;

    // Twice.
    desk.grant(at(70), Verb::FsRead, Uses::AtMost(2), Lifetime::Session)?;
    desk.tries(at(71), Verb::FsRead)?;
    desk.tries(at(72), Verb::FsRead)?;
    desk.tries(at(73), Verb::FsRead)?;

    // Until somebody ends it.
    let grant = desk.grant(at(80), Verb::FsRead, Uses::Uncounted, Lifetime::Session)?;
    desk.tries(at(81), Verb::FsRead)?;
    drop(desk.session.step(at(82), Event::Revoke(grant)));
    desk.tries(at(83), Verb::FsRead)?;

    // Nothing is held: the session says what to ask, and the answer is bound to that.
    drop(desk.session.step(at(90), Event::SetAsking(Asking::Prompt)));
    desk.asks(at(91), Verb::FsRead)?;
    Ok(())
}

/// A session, and the directory it is about.
struct Desk {
    session: Session,
    dir: DirId,
}

impl Desk {
    fn open() -> Result<Desk, Failed> {
        let (mut session, _records) = Session::open(SessionConfig {
            id: 1,
            hash: sha256,
            isolation: Isolation::Isolated,
            protected: Vec::new(),
            asking: Asking::Refuse,
            ledger: Head::EMPTY,
            opened_at: Instant::BOOT,
        });
        let notes = RelPath::parse(b"home/me/notes")?;
        // A refusal is a result and no error: whoever wants one makes it.
        let dir = session
            .add_dir(notes)
            .map_err(|refused| refused.to_string())?;
        Ok(Desk { session, dir })
    }

    fn grant(
        &mut self,
        now: Instant,
        verb: Verb,
        uses: Uses,
        lifetime: Lifetime,
    ) -> Result<GrantId, Failed> {
        let all = Object::tree(self.dir, RelPath::root());
        let spec = GrantSpec {
            holder: AgentId::FIRST,
            authority: Authority::from_caps(vec![Cap::new(verb, all)?])?,
            uses,
            lifetime,
        };
        let parts = self.session.step(now, Event::Grant(spec)).into_parts();
        let grant = parts.granted.ok_or("the grant was not made")?;
        println!("{now}: {grant} of {verb}, {uses:?}, {lifetime:?}");
        Ok(grant)
    }

    fn call(&self, verb: Verb) -> Result<Event, Failed> {
        let name = RelPath::parse(b"today.txt")?;
        let action = Action::on_path(verb, self.dir, name, Digest::NONE)?;
        Ok(Event::Call(Call {
            by: AgentId::FIRST,
            tool: Tool::ReadFile,
            actions: vec![action],
        }))
    }

    fn tries(&mut self, now: Instant, verb: Verb) -> Result<(), Failed> {
        let call = self.call(verb)?;
        let parts = self.session.step(now, call).into_parts();
        match parts.denials.first() {
            None => println!("{now}: {} permit", parts.permits.len()),
            Some((_, denial)) => println!("{now}: refused ({}): {denial}", denial.code()),
        }
        Ok(())
    }

    fn asks(&mut self, now: Instant, verb: Verb) -> Result<(), Failed> {
        let call = self.call(verb)?;
        let parts = self.session.step(now, call).into_parts();
        let question = parts.question.ok_or("nothing was asked")?;
        println!("{now}: asked, because of {}", question.because());
        let yes = Answer {
            question: question.id(),
            digest: question.digest(),
            reply: Reply::Yes(Scope::Once),
        };
        let parts = self.session.step(now, Event::Answer(yes)).into_parts();
        println!("{now}: after a yes, {} permit", parts.permits.len());
        Ok(())
    }
}

/// SHA-256; a program that has the sandbox has it as `hermitcrab_sandbox::sha256`.
fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}
