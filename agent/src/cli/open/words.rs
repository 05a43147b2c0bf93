//! How a command line names what a grant is on.

use std::path::Path;

use hermitcrab_core::{authority::Verb, outcome::DenialCode};

use crate::{
    cli::{Trouble, say},
    config::keys::nearest,
    exit,
    runtime::{GrantWords, Runtime, lexical, real, tilde_expanded},
    screen::visible,
};

/// The verbs somebody types.
const VERBS: [&str; 10] = [
    Verb::FILES_AS_STR,
    Verb::FsList.as_str(),
    Verb::FsRead.as_str(),
    Verb::FsCreate.as_str(),
    Verb::FsModify.as_str(),
    Verb::FsDelete.as_str(),
    Verb::ProcExec.as_str(),
    Verb::NetConnect.as_str(),
    Verb::NetListen.as_str(),
    Verb::SessionRead.as_str(),
];

/// `VERB=PATH`, the path from the current directory; `VERB=PEER` for the network.
pub fn words(text: &str, current: &Path) -> Result<GrantWords, Trouble> {
    let Some((verb, on)) = text.split_once('=') else {
        return Err((
            format!("`{text}` is not VERB=PATH, such as fs.create=./src"),
            exit::USAGE,
        ));
    };
    // A variable in a script that is not set must not be the widest grant there is.
    if on.is_empty() {
        return Err((
            format!(
                "`{}` names nothing that is granted; `{}=.` is the directory you are in, with all that is below it",
                visible(text),
                visible(verb)
            ),
            exit::USAGE,
        ));
    }
    // What no verb is like is told with all there are, by whoever grants it.
    let is_one = verb == Verb::FILES_AS_STR || Verb::parse(verb).is_some();
    if let (false, Some(meant)) = (is_one, by_another_name(verb)) {
        return Err((format!("there is no verb `{verb}`; {meant}"), exit::USAGE));
    }
    if let (false, Some(meant)) = (is_one, nearest(verb, VERBS)) {
        return Err((
            format!("there is no verb `{verb}`; did you mean `{meant}`?"),
            exit::USAGE,
        ));
    }
    Ok(GrantWords::new(verb, &object(verb, on, current)))
}

/// What others call it: nothing here is spelled like that, and what is spelled nearly like it is
/// something else.
fn by_another_name(verb: &str) -> Option<&'static str> {
    match verb {
        "fs.write" | "fs.edit" | "fs.change" => Some(
            "changing what a file holds is fs.modify, making a file fs.create, and fs.* is all five on files",
        ),
        "fs.remove" | "fs.rm" | "fs.unlink" => Some("removing a file is fs.delete"),
        "fs.move" | "fs.rename" => {
            Some("moving a file is fs.delete where it was and fs.create where it is to be")
        }
        _ => None,
    }
}

/// Says of a grant what it does not spare: a place that is asked about each time, and what a
/// rule refuses.
pub fn tell_what_is_asked(session: &mut Runtime, words: &GrantWords) {
    let agent = session.first_agent();
    if holds_the_home(session, words) {
        say(&format!(
            "`{}={}` holds your whole home, with your keys, for the tools that work on files; name what is needed in it",
            visible(&words.verb),
            visible(&words.on)
        ));
    }
    // Words that mean nothing are told by whoever grants them.
    for what in session.asked_all_the_same(agent, words).unwrap_or_default() {
        say(&format!(
            "`{}={}` is on {what}: that itself is asked about each time, whatever is granted, and refused where nobody can be asked; what lies below it goes by its own name",
            visible(&words.verb),
            visible(&words.on)
        ));
    }
    for explained in session.explain(agent, words).unwrap_or_default() {
        if let (true, Some(DenialCode::DeniedByRule)) =
            (explained.is_refused(), explained.explanation.code)
        {
            say(&format!(
                "{} stays refused, whatever is granted: by the rule {}",
                visible(&explained.what),
                explained.explanation.rule
            ));
        }
    }
}

/// Whether it is on all of the person's home, or on more.
fn holds_the_home(session: &Runtime, words: &GrantWords) -> bool {
    let home = real(session.home());
    let place = lexical(&tilde_expanded(&words.on, &home));
    words.verb.starts_with("fs.") && place.is_some_and(|place| home.starts_with(real(&place)))
}

/// What a verb is to act on, as a command line names it.
pub fn object(verb: &str, on: &str, current: &Path) -> String {
    // Only files are named from where one is.
    if verb.starts_with("fs.") {
        place(on, current)
    } else {
        on.to_owned()
    }
}

/// A place as a command line names it, from the current directory.
fn place(on: &str, current: &Path) -> String {
    if on == "*" || on.starts_with('~') {
        on.to_owned()
    } else {
        current.join(on).to_string_lossy().into_owned()
    }
}
