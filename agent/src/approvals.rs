//! Approvals at the edge: what the user wants to hold for longer than a call.
//!
//! A [`Desk`] stands between the session's questions and the person. It
//! answers in the person's stead only what they asked to have repeated, for
//! exactly the same request under the same proof; each such yes counts once.
//! It notes who said "always", and the runtime has it kept after the session
//! took the answer. It decides nothing: hard refusals never come here, and
//! what must be asked about each time is asked about each time.

use std::{cell::RefCell, rc::Rc};

use hermitcrab_core::{
    approval::{Question, QuestionId, Reply, Scope},
    authority::Verb,
    digest::Digest,
    standing::{PortableAuthority, PortableCap, PortableObject},
};

use crate::{
    digest::sha256,
    ports::{FileDiff, Keep, Prompt, Side, UserPort, Verdict},
    store::{contents::Said, keeper::Keeper},
};

/// What is to be kept once the session took the answer.
#[derive(Clone, Debug)]
pub enum Wish {
    /// The user said "always".
    Always(PortableAuthority),
    /// The user wants the answer repeated.
    Repeat(Vec<(PortableCap, Digest)>, Said),
}

/// The keeper, and what is still to be done with it.
#[derive(Debug)]
pub struct Desk {
    /// What is kept.
    pub keeper: Keeper,
    /// What is to be kept, and by the answer to which question.
    pub wishes: Vec<(QuestionId, Wish)>,
    /// What was answered in the user's stead, for the ledger.
    pub repeated: Vec<String>,
}

/// A desk that the runtime and the user's port share.
pub type SharedDesk = Rc<RefCell<Desk>>;

impl Desk {
    /// A desk with nothing on it.
    #[must_use]
    pub fn shared(keeper: Keeper) -> SharedDesk {
        Rc::new(RefCell::new(Self {
            keeper,
            wishes: Vec::new(),
            repeated: Vec::new(),
        }))
    }

    /// The answer the user wants repeated, if it is the same for all of it.
    fn recall(&self, prompt: &Prompt<'_>) -> Option<Said> {
        if prompt.question.widest() == Scope::Once {
            return None;
        }
        let mut all = None;
        for action in what(prompt)? {
            if may_lose(&action.0) && !is_told_as_it_is(&action.0) {
                return None;
            }
            let said = self.keeper.recall(&action.0, action.1)?;
            if all.is_some_and(|other| other != said) {
                return None;
            }
            all = Some(said);
        }
        // A no to it stays one, whoever may have asked for it.
        all.filter(|said| *said == Said::No || !prompt.question.is_after_reading())
    }

    fn took(&mut self, prompt: &Prompt<'_>, reply: &Reply, keep: &Keep) {
        if prompt.question.widest() == Scope::Once {
            return;
        }
        let Some(what) = what(prompt) else { return };
        let question = prompt.question.id();
        let said = match reply {
            Reply::Yes(_) => Said::Yes,
            Reply::No => Said::No,
            Reply::Unknown(_) | Reply::Silence | Reply::Cancelled | Reply::Failed => return,
        };
        if *keep == Keep::Repeat {
            self.wishes.push((question, Wish::Repeat(what, said)));
        } else if *reply == Reply::Yes(Scope::Always)
            && prompt.question.widest() == Scope::Always
            && let Ok(authority) =
                PortableAuthority::from_caps(what.into_iter().map(|(cap, _)| cap))
        {
            self.wishes.push((question, Wish::Always(authority)));
        }
    }
}

/// What is asked for, in words that outlive the session; `None` if a part of
/// it has none.
fn what(prompt: &Prompt<'_>) -> Option<Vec<(PortableCap, Digest)>> {
    let mut all = Vec::new();
    for (action, cap) in prompt.question.uncovered().zip(prompt.portable) {
        let cap = cap.clone()?;
        let digest = match replaced(prompt, &cap) {
            Some(before) => {
                sha256(&[before.as_bytes().as_slice(), action.digest().as_bytes()].concat())
            }
            None => action.digest(),
        };
        all.push((cap, digest));
    }
    (!all.is_empty()).then_some(all)
}

/// Whether something that is there may be lost.
fn may_lose(cap: &PortableCap) -> bool {
    matches!(cap.verb(), Verb::FsModify | Verb::FsDelete)
}

/// Whether the name of a place stands in what is shown letter by letter. Another one is written
/// so that it neither draws nor looks like others, and which file is meant by that, and what it
/// holds, is not found by it: an answer about such a one is given once.
fn is_told_as_it_is(cap: &PortableCap) -> bool {
    match cap.object() {
        PortableObject::Place { at: place, .. } => place.to_string().as_bytes() == place.as_bytes(),
        PortableObject::Program(_)
        | PortableObject::Host(_)
        | PortableObject::Secret(_)
        | PortableObject::Model(_)
        | PortableObject::Session
        | PortableObject::Extension(_) => true,
    }
}

/// What the person saw goes with the answer, and that is also what would be lost: to
/// remove or replace another content in the same place is another request.
fn replaced(prompt: &Prompt<'_>, cap: &PortableCap) -> Option<Digest> {
    let PortableObject::Place { at: place, .. } = cap.object() else {
        return None;
    };
    let is_it =
        |file: &&FileDiff| file.path.as_bytes().strip_prefix(b"/") == Some(place.as_bytes());
    match &prompt.files.iter().find(is_it)?.before {
        Side::Text(text) => Some(sha256(text.as_bytes())),
        Side::Opaque { digest, .. } => Some(*digest),
        Side::Nothing | Side::Unread => None,
    }
}

/// A user in front of whom stands a desk.
pub struct DeskUser {
    desk: SharedDesk,
    user: Box<dyn UserPort>,
}

impl DeskUser {
    /// Puts the desk in front of the user.
    #[must_use]
    pub fn new(desk: SharedDesk, user: Box<dyn UserPort>) -> Self {
        Self { desk, user }
    }
}

impl UserPort for DeskUser {
    fn ask(&mut self, prompt: Prompt<'_>) -> Reply {
        self.ask_and_keep(prompt).0
    }

    fn ask_and_keep(&mut self, prompt: Prompt<'_>) -> (Reply, Keep) {
        // Questions wait for one another, and an answer may have been forgotten meanwhile. Of
        // what cannot be read any more none is left.
        let recalled = if self.user.only_shows(prompt.question) {
            None
        } else {
            let mut desk = self.desk.borrow_mut();
            let _looked = desk.keeper.refresh();
            desk.recall(&prompt)
        };
        if let Some(said) = recalled {
            self.desk.borrow_mut().repeated.push(format!(
                "{} answered as the user wanted it repeated: {}",
                prompt.question.id(),
                said.as_str()
            ));
            let reply = match said {
                Said::Yes => Reply::Yes(Scope::Once),
                Said::No => {
                    self.user.refused_as_before();
                    Reply::No
                }
            };
            return (reply, Keep::Nothing);
        }
        let (reply, keep) = self.user.ask_and_keep(prompt);
        self.desk.borrow_mut().took(&prompt, &reply, &keep);
        // What is to be repeated is kept here; what is to be held is the session's.
        match keep {
            Keep::Hold(wider) => (reply, Keep::Hold(wider)),
            Keep::Nothing | Keep::Repeat => (reply, Keep::Nothing),
        }
    }

    fn only_shows(&self, question: &Question) -> bool {
        self.user.only_shows(question)
    }

    fn about(&mut self, call: usize) {
        self.user.about(call);
    }

    fn about_earlier(&mut self, command: Option<&str>) {
        self.user.about_earlier(command);
    }

    fn not_taken(&mut self, question: QuestionId) {
        let mut desk = self.desk.borrow_mut();
        desk.wishes.retain(|(asked, _)| *asked != question);
        self.user.not_taken(question);
    }

    fn refused_as_before(&mut self) {
        self.user.refused_as_before();
    }

    fn consider(&mut self, shown: &str) -> Verdict {
        self.user.consider(shown)
    }

    fn hears_words(&self) -> bool {
        self.user.hears_words()
    }

    fn clarify(&mut self, question: &str, choices: Option<&[String]>) -> Option<String> {
        self.user.clarify(question, choices)
    }
}
