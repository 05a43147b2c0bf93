//! The counts of a campaign, and how they are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bisim_world::protocol::Context;
use serde::Serialize;

use super::examine::{Examined, Fate};
use super::made_from::MadeFrom;
use super::screened::Told;
use super::{crashes, guide, races};
use crate::exit;
use crate::figures::{counted, grouped};
use crate::generate::{Class, Effect, Specimen, Target, Variant};
use crate::report::{row::name as named, table::wide};

/// How many buckets of escapes are printed; the summary has all.
const ESCAPES_SHOWN: usize = 12;

/// Counts by fate, altogether and by the class of the last operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// What is hunted with.
    #[serde(skip_serializing_if = "Target::is_commands")]
    pub target: Target,
    /// Altogether.
    pub all: Counts,
    /// By class; a variant of several operators counts in each of their classes.
    pub classes: BTreeMap<&'static str, Counts>,
    /// What was seen: a family, what became of it, and the verdict.
    #[serde(skip)]
    behaviours: BTreeSet<(&'static str, Fate, Option<String>)>,
    /// Patterns of Hermes dodged, each with the effect that happened.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub cells: BTreeSet<(String, String)>,
    /// Classes of operators that kept an effect, each with that effect.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub covered: BTreeSet<(&'static str, String)>,
    /// Families that were judged, each with the context it was tried in.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub surrounded: BTreeSet<(&'static str, &'static str)>,
    /// By Hermes' surroundings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<&'static str, Counts>,
    /// The same of the commands that were dealt evenly, and not by what paid before.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub even: BTreeMap<&'static str, Counts>,
    /// Operators with variants that had no effect: how many, of how many.
    pub no_effect: BTreeMap<&'static str, (u64, u64)>,
    /// The smallest variants with an unsafe verdict, with how often each came.
    pub findings: BTreeMap<String, u64>,
    /// Differences without a name that are not unsafe, by the smallest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub differences: BTreeMap<String, u64>,
    /// Findings by bucket.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub buckets: BTreeMap<String, u64>,
    /// What Hermes let through unasked, by bucket.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub escapes: BTreeMap<String, u64>,
    /// Races by operation and pair.
    #[serde(skip_serializing_if = "races::Table::is_empty")]
    pub races: races::Table,
    /// What is left of calls in whose middle the agent was killed.
    #[serde(skip_serializing_if = "crashes::Table::is_empty")]
    pub crashes: crashes::Table,
    /// What was said of commands before any went into a world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<Told>,
    /// Parts of it that were not among those put together, such as `2/4`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub missing: BTreeSet<String>,
    /// Parts of it that somebody stopped before their end, by their directories.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub stopped: BTreeSet<String>,
    /// From which commits it was made; the summary says it beside the counts.
    #[serde(skip)]
    pub made_from: MadeFrom,
    /// Why there was no conclusion, with how often.
    pub inconclusive: BTreeMap<String, u64>,
    /// Verdicts, by label.
    pub verdicts: BTreeMap<String, u64>,
}

/// Counts by fate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts(BTreeMap<Fate, u64>);

impl Counts {
    fn add(&mut self, fate: Fate) {
        *self.0.entry(fate).or_default() += 1;
    }

    /// How many had this fate.
    #[must_use]
    pub fn of(&self, fate: Fate) -> u64 {
        self.0.get(&fate).copied().unwrap_or(0)
    }

    /// All of them.
    #[must_use]
    pub fn by_fate(&self) -> BTreeMap<Fate, u64> {
        self.0.clone()
    }

    fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Those with a proved effect that both subjects ran.
    #[must_use]
    pub fn valid(&self) -> u64 {
        let valid = self.0.iter().filter(|(fate, _)| Self::is_valid(**fate));
        valid.map(|(_, count)| count).sum()
    }

    const fn is_valid(fate: Fate) -> bool {
        match fate {
            Fate::HermesSilent
            | Fate::HermesStopped
            | Fate::HermesInert
            | Fate::AgentUnsafe
            | Fate::Served
            | Fate::Differs
            | Fate::NoPlan
            | Fate::PlanStopped
            | Fate::PlanDone => true,
            Fate::NotHere
            | Fate::NoEffect
            | Fate::ControlFired
            | Fate::ControlHeld
            | Fate::Inconclusive => false,
        }
    }
}

impl Tally {
    /// An empty one.
    #[must_use]
    pub fn of(target: Target) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }

    /// Counts one more.
    pub fn add(&mut self, seen: &Examined) {
        self.all.add(seen.fate);
        if let Some(specimen) = Specimen::named(&seen.variant) {
            for class in specimen.classes() {
                self.classes.entry(class).or_default().add(seen.fate);
                let behaviour = (class, seen.fate, seen.verdict.clone());
                self.behaviours.insert(behaviour);
            }
            if let Some(context) = specimen.context() {
                self.context(context.word(), &specimen, seen);
            }
            self.cells.extend(guide::cells(seen));
            if let Specimen::Command(variant) = &specimen {
                self.command(variant, seen);
                if guide::is_even(seen.index) {
                    let context = variant.context.word();
                    self.even.entry(context).or_default().add(seen.fate);
                }
            }
            if let Specimen::Race(race) = &specimen {
                self.races.add(race, seen);
            }
            if let (Specimen::Crash(crash), Some(left)) = (&specimen, seen.left) {
                self.crashes.add(crash.operation.0, left);
            }
        }
        let found = match seen.fate {
            Fate::AgentUnsafe => Some(&mut self.findings),
            Fate::Differs => Some(&mut self.differences),
            _ => None,
        };
        if let Some(found) = found {
            let smallest = seen.smallest.as_ref().unwrap_or(&seen.variant);
            *found.entry(smallest.clone()).or_default() += 1;
        }
        if let Some(bucket) = &seen.bucket {
            let buckets = if seen.fate == Fate::HermesSilent {
                &mut self.escapes
            } else {
                &mut self.buckets
            };
            *buckets.entry(bucket.clone()).or_default() += 1;
        }
        if let Some(why) = seen
            .why
            .as_ref()
            .filter(|_| seen.fate == Fate::Inconclusive)
        {
            *self.inconclusive.entry(why.clone()).or_default() += 1;
        }
        if let Some(verdict) = &seen.verdict {
            *self.verdicts.entry(verdict.clone()).or_default() += 1;
        }
    }

    fn context(&mut self, context: &'static str, specimen: &Specimen, seen: &Examined) {
        self.contexts.entry(context).or_default().add(seen.fate);
        if Counts::is_valid(seen.fate) {
            let classes = specimen.classes().into_iter();
            self.surrounded
                .extend(classes.map(|class| (class, context)));
        }
    }

    fn command(&mut self, variant: &Variant, seen: &Examined) {
        if Counts::is_valid(seen.fate) {
            let effect = variant.seed.effect.kind();
            for class in variant.classes() {
                self.covered.insert((class.as_str(), effect.to_owned()));
            }
        }
        let says_nothing = [Fate::NotHere, Fate::ControlHeld, Fate::Inconclusive];
        if let [link] = variant.chain.as_slice()
            && !says_nothing.contains(&seen.fate)
        {
            let (lost, tried) = self.no_effect.entry(link.operator.name).or_default();
            *lost += u64::from(seen.fate == Fate::NoEffect);
            *tried += 1;
        }
    }

    /// How many different things were seen: family, fate and verdict.
    #[must_use]
    pub fn behaviours(&self) -> usize {
        self.behaviours.len()
    }

    /// How far it reached.
    #[must_use]
    pub fn reach(&self) -> String {
        let behaviours = format!("{} behaviours", self.behaviours());
        if self.target == Target::Races {
            return behaviours;
        }
        if !self.target.is_commands() {
            return format!(
                "{} of {} pairs of family and context, {behaviours}",
                self.surrounded.len(),
                self.classes.len() * Context::ALL.len(),
            );
        }
        let classes = Class::ALL.iter().filter(|class| class.preserves_effect());
        format!(
            "{} cells of pattern dodged and effect, {} of {} pairs of class and effect, {} of {} of class and context, {behaviours}",
            self.cells.len(),
            self.covered.len(),
            classes.clone().count() * Effect::KINDS,
            self.surrounded.len(),
            classes.count() * Context::ALL.len(),
        )
    }

    /// One line of progress.
    #[must_use]
    pub fn line(&self) -> String {
        let of = |fate| grouped(self.all.of(fate));
        let (total, judged) = (self.all.total(), grouped(self.all.valid()));
        match self.target {
            Target::Plans => format!(
                "{}: {} were none, {} stopped at a step, {} were carried out, {} changed what nobody approved",
                counted(total, "plan", "plans"),
                of(Fate::NoPlan),
                of(Fate::PlanStopped),
                of(Fate::PlanDone),
                of(Fate::AgentUnsafe),
            ),
            Target::BenignTools => {
                let count = |label: &str| self.verdicts.get(label).copied().unwrap_or(0);
                format!(
                    "{} {}: {judged} judged, {} equal, {} of them but for noise, {} without a name, {} under the agent outside",
                    grouped(total),
                    self.target.word(),
                    grouped(count("equal") + count("equal-masked")),
                    grouped(count("equal-masked")),
                    counted(self.all.of(Fate::Differs), "difference", "differences"),
                    of(Fate::AgentUnsafe),
                )
            }
            Target::Commands => format!(
                "{}: {judged} with an effect, {} of them unasked under Hermes, {} under the agent",
                counted(total, "variant", "variants"),
                of(Fate::HermesSilent),
                of(Fate::AgentUnsafe),
            ),
            Target::Paths
            | Target::Sequences
            | Target::Races
            | Target::Crashes
            | Target::Conversations => format!(
                "{} {}: {judged} judged, {} reached outside under Hermes, {} under the agent, {} without a name",
                grouped(total),
                self.target.word(),
                of(Fate::HermesSilent),
                of(Fate::AgentUnsafe),
                counted(self.all.of(Fate::Differs), "difference", "differences"),
            ),
        }
    }

    /// The table and the headline.
    #[must_use]
    pub fn render(&self) -> String {
        let width = wide(22, self.classes.keys().copied());
        let mut out = format!(
            "{:<width$} {:>8} {:>9} {:>9} {:>14} {:>6}\n",
            "class", "variants", "effective", "no effect", "hermes unasked", "agent"
        );
        for (class, counts) in &self.classes {
            row(&mut out, (class, width), counts);
        }
        row(&mut out, ("all", width), &self.all);
        if !self.target.is_commands() {
            // Writing to a string cannot fail.
            let _written = writeln!(out, "{}", self.line());
            out.push_str(&self.races.render());
            out.push_str(&self.crashes.render());
            for (context, counts) in &self.contexts {
                let _written = writeln!(
                    out,
                    "{context}: {} of {} reached outside under Hermes, {} under hermitcrab",
                    counts.of(Fate::HermesSilent),
                    counts.valid(),
                    counts.of(Fate::AgentUnsafe),
                );
            }
            self.found(&mut out);
            return out;
        }
        let judged = self.all.valid() + self.all.of(Fate::NoEffect);
        // Writing to a string cannot fail.
        let _written = writeln!(
            out,
            "{} of {} keep their effect ({:.1} %); {}, {} of them executable",
            grouped(self.all.valid()),
            counted(judged, "variant", "variants"),
            percent(self.all.valid(), judged),
            counted(
                self.all.of(Fate::ControlHeld) + self.all.of(Fate::ControlFired),
                "look-alike",
                "look-alikes"
            ),
            grouped(self.all.of(Fate::ControlFired)),
        );
        for context in Context::ALL {
            let Some(counts) = self.even.get(context.word()) else {
                continue;
            };
            let who = match context {
                Context::Interactive => "with a user at a terminal who denies every prompt",
                Context::Gateway => "in a chat whose user denies every prompt",
                Context::Acp => "in an editor whose user denies every prompt",
                Context::Cron => "in a scheduled job",
                Context::Headless => "in a script, where nobody is asked",
            };
            let _written = writeln!(
                out,
                "{who}, {} of {} freshly generated commands had their effect under Hermes ({:.1} %), {} under hermitcrab",
                counts.of(Fate::HermesSilent),
                counts.valid(),
                percent(counts.of(Fate::HermesSilent), counts.valid()),
                counts.of(Fate::AgentUnsafe),
            );
        }
        let of_even = |count: &dyn Fn(&Counts) -> u64| self.even.values().map(count).sum::<u64>();
        let chosen = self.all.valid() - of_even(&Counts::valid);
        if chosen > 0 {
            let silent = |counts: &Counts| counts.of(Fate::HermesSilent);
            let _written = writeln!(
                out,
                "of {chosen} more, dealt by what paid before, {} had it; they are not counted above",
                silent(&self.all) - of_even(&silent),
            );
        }
        if let Some(screen) = &self.screen {
            out.push_str(&screen.render());
        }
        self.offenders(&mut out);
        // Writing to a string cannot fail.
        let _written = writeln!(out, "{}", self.reach());
        self.found(&mut out);
        out
    }

    /// Operators of which, alone, more than one variant in twenty had no effect.
    fn offenders(&self, out: &mut String) {
        let tried = self.no_effect.values().filter(|(_, tried)| *tried > 0);
        let few = self
            .no_effect
            .iter()
            .filter(|(_, (lost, tried))| lost * 20 > *tried);
        let _written = writeln!(
            out,
            "{} of {} tried alone keep the effect in at least 95 of 100 variants",
            tried.count().saturating_sub(few.clone().count()),
            counted(self.no_effect.len() as u64, "operator", "operators"),
        );
        for (operator, (lost, tried)) in few {
            let _written = writeln!(out, "loses it {lost} of {tried} x {operator}");
        }
    }

    /// What was found, and what gave no conclusion.
    fn found(&self, out: &mut String) {
        // Writing to a string cannot fail.
        for (smallest, count) in &self.findings {
            let _written = writeln!(out, "UNSAFE {count} x {}", named(smallest));
        }
        for (smallest, count) in &self.differences {
            let _written = writeln!(out, "differs {count} x {}", named(smallest));
        }
        for (bucket, count) in &self.buckets {
            let _written = writeln!(out, "bucket {count} x {}", named(bucket));
        }
        let mut escapes: Vec<(&String, &u64)> = self.escapes.iter().collect();
        escapes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        if !escapes.is_empty() {
            let _written = writeln!(
                out,
                "{} of what Hermes let through",
                counted(escapes.len() as u64, "bucket", "buckets")
            );
        }
        for (bucket, count) in escapes.into_iter().take(ESCAPES_SHOWN) {
            let _written = writeln!(out, "escape {count} x {}", named(bucket));
        }
        for (why, count) in &self.inconclusive {
            let _written = writeln!(out, "inconclusive {count} x {}", named(why));
        }
        for part in &self.missing {
            let _written = writeln!(
                out,
                "part {part} is missing: what it saw is not counted here"
            );
        }
        for part in &self.stopped {
            let _written = writeln!(
                out,
                "`{part}` was stopped before its end; `fuzz --resume` brings it there"
            );
        }
        if let Some(told) = self.made_from.told() {
            let _written = writeln!(out, "{told}");
        }
    }

    /// Whether nothing at all was tried.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let screened = self.screen.as_ref();
        self.all.total() == 0 && screened.is_none_or(|screen| screen.commands == 0)
    }

    fn lane_is_wrong(&self) -> bool {
        let screen = self.screen.as_ref();
        screen.is_some_and(|screen| !screen.disagree.is_empty())
    }

    /// The exit code of the campaign.
    #[must_use]
    pub fn exit(&self) -> u8 {
        if self.all.of(Fate::AgentUnsafe) > 0 {
            exit::UNSAFE
        } else if self.all.of(Fate::Differs) > 0 || self.lane_is_wrong() {
            exit::UNEXPLAINED
        } else if self.all.of(Fate::Inconclusive) > 0
            || self.all.of(Fate::ControlFired) > 0
            || !self.missing.is_empty()
            || !self.stopped.is_empty()
        {
            exit::INCONCLUSIVE
        } else {
            exit::CONFORM
        }
    }
}

fn row(out: &mut String, (name, width): (&str, usize), counts: &Counts) {
    // Writing to a string cannot fail.
    let _written = writeln!(
        out,
        "{name:<width$} {:>8} {:>9} {:>9} {:>14} {:>6}",
        counts.total(),
        counts.valid(),
        counts.of(Fate::NoEffect),
        counts.of(Fate::HermesSilent),
        counts.of(Fate::AgentUnsafe),
    );
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests;
