//! What a person does elsewhere while a question waits for them, by the doors the agent has
//! for it: the socket that `caps` and `session` talk to, its store, and the clock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bisim_world::protocol::{Happened, Meanwhile};
use hermitcrab::control::{Connection, Reply, Request};
use hermitcrab_core::grant::{AgentId, GrantId};
use hermitcrab_core::rules::Isolation;

use super::STATE_DIR;
use super::clock::CaseClock;
use super::kept::Surrounding;

/// The grants of a session by the case's names.
pub(super) type Names = Rc<RefCell<BTreeMap<String, GrantId>>>;
/// The children of a session, likewise.
pub(super) type Children = Rc<RefCell<BTreeMap<String, AgentId>>>;
/// The machine of a case, if it starts the program again.
pub(super) type Kept = Rc<RefCell<Option<Surrounding>>>;

/// What another terminal can reach.
pub(super) struct Doors {
    pub(super) names: Names,
    pub(super) children: Children,
    pub(super) clock: CaseClock,
    pub(super) kept: Kept,
    pub(super) workspace: PathBuf,
    pub(super) isolation: Isolation,
    /// Somebody ended the session, and no other has begun.
    pub(super) has_ended: Cell<bool>,
}

impl Doors {
    /// Does it; what came of it.
    pub(super) fn go(&self, what: &Meanwhile) -> Happened {
        let lacks = match what {
            Meanwhile::Revoke { grant } => match self.names.borrow().get(grant) {
                Some(id) => tell(&Request::Revoke {
                    grant: id.get(),
                    drain: false,
                }),
                None => "unknown-grant".to_owned(),
            },
            Meanwhile::Advance { seconds } => {
                self.clock.advance(*seconds);
                String::new()
            }
            Meanwhile::EndSession {} => {
                let lacks = tell(&Request::End);
                self.has_ended.set(lacks.is_empty());
                lacks
            }
            Meanwhile::Mode { to } => tell(&Request::Mode {
                mode: to.word().to_owned(),
            }),
            Meanwhile::Withdraw {} => self.withdraw(),
            Meanwhile::EndAgent { child } => match self.children.borrow().get(child) {
                Some(id) => tell(&Request::EndAgent { agent: id.get() }),
                None => "unknown-agent".to_owned(),
            },
            Meanwhile::Others {} => self.clock.others_end(),
        };
        Happened {
            what: what.clone(),
            lacks,
        }
    }

    fn withdraw(&self) -> String {
        match self.kept.borrow().as_ref() {
            Some(kept) => kept
                .withdraw(&self.workspace, self.isolation)
                .err()
                .unwrap_or_default(),
            None => "nothing-kept".to_owned(),
        }
    }
}

/// Says it to the session; why it refused, or nothing.
fn tell(request: &Request) -> String {
    let came = Connection::open(Path::new(STATE_DIR)).and_then(|mut door| door.ask(request));
    match came {
        Ok(Reply::Done { .. } | Reply::Listing(_)) => String::new(),
        Ok(Reply::Refused { code, .. }) => code,
        Err(error) => error.to_string(),
    }
}
