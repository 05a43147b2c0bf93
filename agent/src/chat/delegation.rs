//! Work handed to other agents.
//!
//! A child is an agent of the same session that holds what is forwarded to it
//! and nothing else: what lets it look, read, run on a copy, talk to its model and
//! ask the user goes along by itself; whatever changes something unasked goes along
//! only if the call names the grant. When its work is over its grants end. What it
//! reports is no cleaner than what it has read.

use hermitcrab_core::{
    grant::{AgentId, GrantId},
    time::Instant,
};
use serde_json::{Value, json};

use super::{
    Chat, ChatError, ChatTurn, Ports, TurnEnd, offered,
    proof::Unproved,
    room::Room,
    slips::cut_short,
    told::{self, Handed, Report},
    unwritten::Unwritten,
};
use crate::{
    ambient,
    model::Message,
    runtime::{Fate, Runtime, ToolResult},
    tools::delegate::{self, HandOut, Role, Task},
};

/// Work handed out by one call.
#[derive(Debug)]
pub(super) struct Batch {
    id: String,
    jobs: Vec<(Task, AgentId)>,
    context: Option<String>,
    role: Role,
    started: Instant,
    /// The same moment by the user's clock.
    moment: String,
}

impl Chat {
    /// Whether it may hand out work at all.
    pub(super) fn may_delegate(&self) -> bool {
        self.role == Role::Orchestrator && self.depth < self.limits.depth_max
    }

    pub(super) fn take_delegated(&mut self) -> Option<Batch> {
        (!self.delegated.is_empty()).then(|| self.delegated.remove(0))
    }

    /// Work that is not begun any more.
    pub(super) fn drop_delegated(&mut self, runtime: &mut Runtime) {
        for (_, child) in self.delegated.drain(..).flat_map(|batch| batch.jobs) {
            end(runtime, child);
        }
    }

    /// Starts the children of a call. The first agent's children work when it
    /// has nothing more to call, unless as much as may be is handed out already or the
    /// session ends with its turn, as a job's does; a child's own at once.
    pub(super) fn delegate(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        arguments: &Value,
        turn: &mut ChatTurn,
    ) -> Result<ToolResult, ChatError> {
        let HandOut {
            tasks,
            context,
            role,
        } = match delegate::read(arguments, self.depth, self.limits) {
            Ok(handed) => handed,
            Err(result) => return Ok(result),
        };
        let mut jobs = Vec::new();
        for task in tasks {
            let spawned = self.forwarded(runtime, &task).and_then(|forward| {
                runtime.spawn(self.agent, &forward).map_err(|denial| {
                    let code = denial.code();
                    ToolResult {
                        fate: Fate::Refused(code),
                        ..ToolResult::error(&format!(
                            "Denied ({code}): {denial}. Next step: {}.",
                            code.next_step()
                        ))
                    }
                })
            });
            match spawned {
                Ok(child) => jobs.push((task, child)),
                Err(result) => {
                    for (_, child) in jobs {
                        end(runtime, child);
                    }
                    return Ok(result);
                }
            }
        }
        self.batches += 1;
        let batch = Batch {
            id: format!("deleg_{:04x}{:04x}", self.agent.get(), self.batches),
            jobs,
            context,
            role,
            started: runtime.now(),
            moment: ambient::local_time(ambient::wall_time()).replace('T', " "),
        };
        let is_told_later = !runtime.ends_with_its_turn();
        if self.depth == 0 && is_told_later && self.delegated.len() < self.limits.tasks_max {
            let goals: Vec<&str> = batch
                .jobs
                .iter()
                .map(|(task, _)| task.goal.as_str())
                .collect();
            let result = ToolResult::ran(&told::handed_out(&batch.id, &goals));
            self.delegated.push(batch);
            return Ok(result);
        }
        let started = batch.started;
        let reports = self.run_all(runtime, port, batch.jobs, turn)?;
        let results: Vec<Value> = reports
            .iter()
            .enumerate()
            .map(|(place, report)| report.shown(place, &self.model))
            .collect();
        let mut result = json!({
            "results": results,
            "total_duration_seconds": seconds_since(runtime, started),
        });
        if self.depth == 0
            && let Some(fields) = result.as_object_mut()
        {
            let note = if is_told_later {
                told::WAITED
            } else {
                told::NOT_LATER
            };
            fields.insert("note".to_owned(), note.into());
        }
        Ok(ToolResult::ran(&result))
    }

    /// What goes along with a task.
    fn forwarded(&self, runtime: &Runtime, task: &Task) -> Result<Vec<GrantId>, ToolResult> {
        let mut forward = runtime.harmless_grants(self.agent);
        if task.role == Role::Orchestrator && self.depth + 1 < self.limits.depth_max {
            forward.extend(runtime.spawning_grants(self.agent));
        }
        let held = runtime.grants_in_words(self.agent);
        for name in &task.grants {
            let named = runtime.cap_named(self.agent, name).ok();
            let is_meant = |id: &GrantId| named == Some(*id) || id.to_string() == *name;
            match held.iter().find(|(id, _)| is_meant(id)) {
                Some((id, _)) => forward.push(*id),
                None => {
                    return Err(ToolResult::error(&format!(
                        "no grant named `{name}` is held; name one of: {}",
                        held.iter()
                            .map(|(id, words)| {
                                format!("{} ({words})", runtime.cap_of(self.agent, *id))
                            })
                            .collect::<Vec<_>>()
                            .join("; ")
                    )));
                }
            }
        }
        let asking = runtime.asking_grants(self.agent);
        // A right to ask that is named goes along alone, and may be one that ends.
        if !asking.iter().any(|right| forward.contains(right)) {
            forward.extend(asking);
        }
        Ok(forward)
    }

    /// Does the work and words what came of it for the one who handed it out.
    pub(super) fn finish(
        &mut self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        batch: Batch,
        turn: &mut ChatTurn,
    ) -> Result<String, ChatError> {
        let Batch {
            id,
            jobs,
            context,
            role,
            started,
            moment,
        } = batch;
        let goals: Vec<String> = jobs.iter().map(|(task, _)| task.goal.clone()).collect();
        let reports = self.run_all(runtime, port, jobs, turn)?;
        let seconds = seconds_since(runtime, started);
        let handed = Handed {
            id: &id,
            moment: &moment,
            age_seconds: millis_since(runtime, started) / 1000,
            context: context.as_deref(),
            role,
            goals: goals.iter().map(String::as_str).collect(),
            seconds,
        };
        Ok(told::completed(&handed, &reports))
    }

    fn run_all(
        &self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        jobs: Vec<(Task, AgentId)>,
        turn: &mut ChatTurn,
    ) -> Result<Vec<Report>, ChatError> {
        let mut all = Vec::new();
        for (task, child) in jobs {
            let began = runtime.moment();
            let mut report = self.run_one(runtime, port, &task, child, turn);
            report.overwrites(&runtime.rewritten_since(began, self.agent));
            runtime.hear_from(self.agent, child)?;
            end(runtime, child);
            all.push(report.fitted());
        }
        Ok(all)
    }

    fn run_one(
        &self,
        runtime: &mut Runtime,
        port: &mut Ports<'_>,
        task: &Task,
        child: AgentId,
        turn: &mut ChatTurn,
    ) -> Report {
        let started = runtime.now();
        let mut place = offered::place_in_words(runtime, child);
        place.push_str(&offered::task_in_words(task));
        let mut chat = Chat {
            agent: child,
            model: self.model.clone(),
            messages: vec![Message::System(place)],
            depth: self.depth + 1,
            rounds_max: self.limits.rounds_max,
            role: task.role,
            limits: self.limits,
            delegated: Vec::new(),
            batches: 0,
            judge: self.judge.clone(),
            loops: self.loops.anew(),
            names_unwritten: self.names_unwritten,
            unwritten: Unwritten::default(),
            reminder: self.reminder,
            unproved: Unproved::default(),
            room: Room::default(),
            withheld: self.withheld,
        };
        let came = chat.run(runtime, port, &task.goal);
        let seconds = seconds_since(runtime, started);
        let trace = told::trace(&chat.messages);
        let report = |status, summary: String, error, rounds, reason, tokens| Report {
            status,
            summary,
            error,
            rounds,
            seconds,
            reason,
            tokens,
            trace,
            is_cut: false,
            stale: Vec::new(),
        };
        match came {
            Ok(done) => {
                let (reason, summary) = match done.end {
                    TurnEnd::Answered | TurnEnd::CutOff | TurnEnd::Halted | TurnEnd::Silent => {
                        ("completed", done.text)
                    }
                    TurnEnd::RoundsSpent => ("max_iterations", cut_short(&done.text)),
                    TurnEnd::HeldBack | TurnEnd::GaveUp => ("max_iterations", done.text),
                    TurnEnd::Stopped => ("interrupted", done.text),
                };
                let status = match done.end {
                    TurnEnd::Stopped => "interrupted",
                    TurnEnd::Answered
                    | TurnEnd::CutOff
                    | TurnEnd::RoundsSpent
                    | TurnEnd::HeldBack
                    | TurnEnd::Halted
                    | TurnEnd::GaveUp
                    | TurnEnd::Silent => "completed",
                };
                turn.made.extend(done.made);
                turn.left_out = turn.left_out.saturating_add(done.left_out);
                report(status, summary, None, done.rounds, reason, done.tokens)
            }
            Err(error) => {
                let error = Some(error.to_string());
                report("error", String::new(), error, 0, "error", (0, 0))
            }
        }
    }
}

/// Ends a child, everything it holds and every agent it started. One that
/// ended with its parent stays ended; a ledger that cannot be written refuses
/// the next call with the reason.
fn end(runtime: &mut Runtime, child: AgentId) {
    let _ended = runtime.end_agent(child);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a duration in hundredths of a second is small"
)]
fn seconds_since(runtime: &Runtime, started: Instant) -> f64 {
    (millis_since(runtime, started) / 10) as f64 / 100.0
}

fn millis_since(runtime: &Runtime, started: Instant) -> u64 {
    runtime
        .now()
        .as_millis()
        .saturating_sub(started.as_millis())
}
