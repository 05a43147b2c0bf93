//! What a model is told: the tools it may propose, and where it is.

mod forms;

use hermitcrab_core::grant::AgentId;

pub use self::forms::offers;
use crate::{model::Offer, runtime::Runtime, screen::on_one_line, tools::delegate::Task};

/// What no child is offered: nobody talks to it, it keeps nothing beyond its work and
/// writes no programs that call tools.
const NOT_FOR_CHILDREN: [&str; 4] = ["clarify", "memory", "execute_code", "cronjob"];

/// The tools on offer for an agent so far below the first, those of servers
/// outside last.
pub(super) fn offers_at(
    runtime: &Runtime,
    agent: AgentId,
    depth: u32,
    may_delegate: bool,
) -> Vec<Offer> {
    let mut offers = offers(may_delegate);
    if depth > 0 {
        offers.retain(|offer| !NOT_FOR_CHILDREN.contains(&offer.name.as_ref()));
    }
    let outside = runtime.tools_outside(agent).into_iter();
    offers.extend(outside.map(|tool| Offer {
        name: tool.name.into(),
        description: tool.description.into(),
        parameters: tool.parameters,
    }));
    offers
}

/// What a model is told about its place: what it holds, and what a refusal means.
pub(super) fn place_in_words(runtime: &Runtime, agent: AgentId) -> String {
    let held = runtime
        .grants_in_words(agent)
        .into_iter()
        .map(|(id, words)| format!("- {}: {words}\n", runtime.cap_of(agent, id)))
        .collect::<String>();
    format!(
        "You work in `{}` by calling tools. Commands run on a copy of it; what they change is kept only if it is \
         granted or the user says so. They reach no network but what you hold: `net.connect` a peer, `net.listen` on \
         localhost each other's servers. Only the user can grant that. A result with `Denied (code)` is final for that call: do not try \
         another way to the same effect, but say what is missing or ask the user.\n\nYou hold:\n{held}",
        // Whoever gave it its name has nothing to say here.
        on_one_line(&runtime.workspace().display().to_string())
    )
}

/// What a child is told about its task.
pub(super) fn task_in_words(task: &Task) -> String {
    let mut words = format!(
        "\nYou work on one task for another agent and report to it in a few words: what you did, what you found, which \
         files changed, what went wrong.\n\nYour task:\n{}\n",
        task.goal
    );
    if let Some(context) = &task.context {
        words.push_str("\nContext:\n");
        words.push_str(context);
        words.push('\n');
    }
    words
}
