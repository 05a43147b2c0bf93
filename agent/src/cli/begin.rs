//! Sessions of a person, in which a model may have a job run at once.
//!
//! A job runs in a session of its own: what opens sessions (`open`) lies below what runs
//! jobs (`cron`), and this above both.

use super::{
    Setting, Trouble, choice, cron,
    open::{self, Past},
};
use crate::{
    person::TerminalUser,
    ports::UserPort,
    runtime::{JobPort, Runtime},
};

/// Opens a session for the person at this terminal, or nobody.
pub fn session(setting: &Setting) -> Result<Runtime, Trouble> {
    session_for(setting, TerminalUser::open())
}

/// The same, for somebody found at a terminal or nobody.
pub fn session_for(setting: &Setting, user: Option<TerminalUser>) -> Result<Runtime, Trouble> {
    session_after(setting, user, Past::Unread)
}

/// The same, with what there was before.
pub fn session_after(
    setting: &Setting,
    user: Option<TerminalUser>,
    past: Past,
) -> Result<Runtime, Trouble> {
    let user = user.map(|user| Box::new(user) as Box<dyn UserPort>);
    opened(setting, user, past)
}

/// The same, for somebody who is asked another way than at the terminal.
pub fn session_asking(setting: &Setting, user: Box<dyn UserPort>) -> Result<Runtime, Trouble> {
    opened(setting, Some(user), Past::Unread)
}

fn opened(
    setting: &Setting,
    user: Option<Box<dyn UserPort>>,
    past: Past,
) -> Result<Runtime, Trouble> {
    // A job makes no jobs run.
    let jobs = setting.place.job.is_none().then(|| {
        let runner = cron::Runner::new(&setting.place, &choice::Choice::default());
        Box::new(runner) as Box<dyn JobPort>
    });
    open::open(setting, user, past, jobs)
}
