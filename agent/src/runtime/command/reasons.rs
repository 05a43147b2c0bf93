//! What a command may have failed for, as far as that can be told: programs say of it what
//! they say everywhere, and not that they ran in a sandbox.

use std::borrow::Cow;

use hermitcrab_core::grant::AgentId;
use hermitcrab_sandbox::spawn::{Ending, Finished};

use super::{reached, reached::Had, repository, seen, short};
use crate::runtime::{hands::Hands, seen::Seen};

/// What git says of a second name it has given to a file of a view, and why.
const ANOTHER_NUMBER: &str = "hardlink different from source";
const LINKED: &str = "A file that gets a second name in a copy-on-write view has another number from then on, which \
     `git clone` of a directory takes for somebody's doing: with `--no-hardlinks` it copies.";

const CROWDED: &str = "It had as many processes and threads as it may have at once, and wanted more, which programs wait for or \
     call a lack of resources: `config set limits.pids_max` lets it have more.";

/// What a shell, and what `gdb`, says of a program that the filter of system calls ended.
const ENDED_BY_FILTER: [&str; 2] = ["Bad system call", "signal SIGSYS"];
/// The status by which a shell tells of SIGSYS, 31 by its number.
const STATUS_OF_FILTER: i32 = 128 + 31;
const FORBIDDEN: &str = "A program was ended by the kernel for a system call that no command may make: to trace another program \
     (`strace`, `gdb`), to mount, or to change the root. No grant allows it; outside of the agent its user can run it.";

/// Why a command may have failed; nothing where it did not, or nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// What kept something from it.
    pub withheld: Option<String>,
    /// Why it had a stranger's rights to a directory.
    pub strange: Option<String>,
    /// It, or a part of it, needed more memory than there is, or room.
    pub ran_short: Option<&'static str>,
    /// It wanted more processes or threads than it may have at once.
    pub crowded: Option<&'static str>,
    /// Whom of the network it did not reach, and why.
    pub unreached: Option<String>,
    /// A second name of a file was not what a program expects of one.
    pub linked: Option<&'static str>,
    /// It asked the kernel for what no command may.
    pub forbidden: Option<&'static str>,
    /// Git found no repository, where outside there is one.
    pub unfound: Option<String>,
}

impl Reasons {
    /// Each as a sentence for a person.
    pub fn told(&self) -> impl Iterator<Item = &str> {
        [
            self.withheld.as_deref(),
            self.strange.as_deref(),
            self.ran_short,
            self.crowded,
            self.unreached.as_deref(),
            self.linked,
            self.forbidden,
            self.unfound.as_deref(),
        ]
        .into_iter()
        .flatten()
    }

    /// Each for a model, with the key it has in a tool's result.
    pub fn keyed(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let unreached = self
            .unreached
            .as_ref()
            .map(|why| Cow::Owned(format!("{why} Grants are the user's to give.")));
        [
            ("withheld", self.withheld.as_deref().map(Cow::Borrowed)),
            ("owners", self.strange.as_deref().map(Cow::Borrowed)),
            ("memory", self.ran_short.map(Cow::Borrowed)),
            ("processes", self.crowded.map(Cow::Borrowed)),
            ("network", unreached),
            ("links", self.linked.map(Cow::Borrowed)),
            ("system_call", self.forbidden.map(Cow::Borrowed)),
            ("repository", self.unfound.as_deref().map(Cow::Borrowed)),
        ]
        .into_iter()
        .filter_map(|(key, why)| Some((key, why?)))
    }
}

/// Whose command it was, and what of the network it had when it began: another agent may be
/// the one that learns of its end, and what is held may have changed by then.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct Whose {
    pub(super) by: AgentId,
    pub(super) had: Had,
}

impl Hands<'_> {
    /// A command that begins here and now.
    pub(in crate::runtime) fn whose(&self) -> Whose {
        Whose {
            by: self.by,
            had: self.had(),
        }
    }

    /// The reasons for what a command that saw this `said`.
    pub(in crate::runtime) fn reasons(
        &self,
        whose: &Whose,
        finished: &Finished,
        seen: &[Seen],
        said: [&str; 2],
    ) -> Reasons {
        let failed = finished.ending != Ending::Exited(0);
        let withheld = |said: &&str| self.withheld(whose.by, finished.ending, said, seen);
        Reasons {
            withheld: said.iter().find_map(withheld),
            strange: seen::strange(finished, &said),
            ran_short: short::ran_short(self.runtime, finished, &said),
            crowded: (failed && finished.confined.usage.refused_forks > 0).then_some(CROWDED),
            unreached: reached::unreached(&whose.had, finished.ending, &finished.attempts, &said),
            linked: (failed && said.iter().any(|said| said.contains(ANOTHER_NUMBER)))
                .then_some(LINKED),
            unfound: said
                .iter()
                .filter(|_| failed)
                .find_map(|said| repository::unfound(&self.runtime.config.workspace, said)),
            forbidden: (failed && is_ended_by_filter(finished.ending, &said)).then_some(FORBIDDEN),
        }
    }
}

/// Whether the filter ended it, or a program of it that somebody else reports on: a shell,
/// by its status or in words, or a debugger.
fn is_ended_by_filter(ending: Ending, said: &[&str]) -> bool {
    ending.is_refused_by_kernel()
        || ending == Ending::Exited(STATUS_OF_FILTER)
        || said
            .iter()
            .any(|said| ENDED_BY_FILTER.iter().any(|words| said.contains(words)))
}
