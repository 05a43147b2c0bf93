//! `plan` and `run`: a plan is read or made, checked, shown, approved, carried out.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use hermitcrab_core::plan::{
    Failure, FlowRules, Machine, Plan, PlanError, Step, What, check,
    interp::{Status, ToolCall},
};
use serde_json::{Value, json};

use super::{Setting, Trouble, chat, open, say};
use crate::{
    actions::{self, Did, Risk, risk},
    ambient::TerminalUser,
    executor::{self, Go, NoPicker, Onlooker},
    exit,
    model::{Backend, Cancel},
    planner::{
        ask::{NoPlan, Planner},
        draft,
        pick::ModelPicker,
        show,
    },
    runtime::{GrantWords, Runtime},
};

/// Where the plan comes from.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// What is to be done, in plain words; a model makes the plan
    #[arg(required_unless_present = "plan", conflicts_with = "plan")]
    request: Option<String>,
    /// A plan as JSON, `-` for the standard input; no model is needed then
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    choice: chat::Choice,
}

/// A plan, and the session in which it was made if a model made it.
type Planned = (Plan, Option<Runtime>);

/// The plan of a file, or one a model makes of the request.
fn planned(setting: &Setting, source: &Source) -> Result<Planned, Trouble> {
    let request = match (&source.plan, &source.request) {
        (Some(file), _) => return Ok((read_plan(file)?, None)),
        (None, Some(request)) => request,
        (None, None) => return Err(("there is nothing to do".to_owned(), exit::USAGE)),
    };
    let ground = open::ground(&setting.place)?;
    let Some(mut backend) = chat::backend(&ground, &source.choice, &Cancel::default())? else {
        return Err((
            format!(
                "{}; a plan of your own runs without one: `--plan FILE`",
                chat::NO_MODEL
            ),
            exit::USAGE,
        ));
    };
    let mut runtime = open::open(setting)?;
    chat::let_talk(&mut runtime, &backend)?;
    let by = runtime.first_agent();
    let mut planner = Planner {
        model: &backend.model,
        port: &mut *backend.port,
        toolbox: Arc::new(actions::toolbox()),
    };
    let made = planner.plan(&mut runtime, by, request);
    match made {
        Ok(plan) => Ok((plan, Some(runtime))),
        Err(why) => {
            let code = match &why {
                NoPlan::Refused(_) => exit::REFUSED,
                NoPlan::Request => exit::USAGE,
                NoPlan::Model(_) => exit::ENVIRONMENT,
                NoPlan::Unfinished | NoPlan::Wrong(_) => exit::TOOL_FAILED,
            };
            close(runtime)?;
            Err((
                format!("there is no plan, and nothing was done: {why}"),
                code,
            ))
        }
    }
}

fn close(mut runtime: Runtime) -> Result<(), Trouble> {
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))
}

/// The model that reads what nobody vouches for, if one is configured.
fn quarantined(setting: &Setting, source: &Source) -> Result<Option<Backend>, Trouble> {
    let ground = open::ground(&setting.place)?;
    let cancel = Cancel::default();
    match ground.config.models().quarantined() {
        Some(words) => ground.model(words, &cancel).map(Some),
        None => chat::backend(&ground, &source.choice, &cancel),
    }
}

/// How `run` goes about it.
#[derive(Debug, clap::Args)]
pub struct How {
    /// Do not ask about a plan that only looks, nor before its looking steps
    #[arg(long)]
    yes_low: bool,
    /// One JSON object a line, for programs
    #[arg(long)]
    json: bool,
    /// Ask before each step
    #[arg(long)]
    step: bool,
}

/// Shows the plan and what it needs.
pub fn plan(setting: &Setting, source: &Source, as_json: bool) -> u8 {
    told(only_plan(setting, source, as_json))
}

/// Carries it out.
pub fn run(setting: &Setting, source: &Source, how: &How) -> u8 {
    told(carried_out(setting, source, how))
}

fn told(result: Result<u8, Trouble>) -> u8 {
    result.unwrap_or_else(|(message, code)| {
        say(&message);
        code
    })
}

/// Reads and checks a plan; nothing of one that is wrong is ever run.
fn read_plan(file: &Path) -> Result<Plan, Trouble> {
    let failed = |error: std::io::Error| {
        (
            format!("cannot read the plan `{}`: {error}", file.display()),
            exit::USAGE,
        )
    };
    let limit = u64::try_from(draft::DRAFT_BYTES_MAX + 1).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut text))
    }
    .map_err(failed)?;
    draft::read(&text)
        .and_then(|draft| check(draft, Arc::new(actions::toolbox()), FlowRules::STRICT))
        .map_err(|errors| (wrong(&errors), exit::USAGE))
}

fn wrong(errors: &[PlanError]) -> String {
    let lines: Vec<String> = errors.iter().map(|error| format!("  {error}")).collect();
    format!("this is no plan; nothing was done:\n{}", lines.join("\n"))
}

fn only_plan(setting: &Setting, source: &Source, as_json: bool) -> Result<u8, Trouble> {
    let (plan, runtime) = planned(setting, source)?;
    if let Some(runtime) = runtime {
        close(runtime)?;
    }
    let ground = open::ground(&setting.place)?;
    print(&if as_json {
        described(&plan, &ground.workspace).to_string()
    } else {
        show::plan(&plan, &ground.workspace)
    });
    Ok(exit::OK)
}

/// A plan for programs.
fn described(plan: &Plan, workspace: &Path) -> Value {
    let wants: Vec<Value> = plan
        .wants()
        .iter()
        .map(|want| json!({"step": want.step, "verb": want.verb.as_str(), "on": want.on}))
        .collect();
    let notices: Vec<Value> = plan
        .notices()
        .iter()
        .map(|notice| {
            json!({"step": notice.step, "argument": notice.argument, "level": notice.level.as_str(), "from": notice.from})
        })
        .collect();
    let steps: Vec<Value> = plan
        .steps()
        .iter()
        .map(|step| {
            json!({"id": step.id, "does": show::what(step), "after": show::uses(step), "risk": risk::of(step, workspace).as_str()})
        })
        .collect();
    json!({
        "v": 1, "type": "plan", "summary": plan.summary(), "steps": steps,
        "wants": wants, "notices": notices, "calls_at_most": plan.calls_at_most(),
        "risk": risk::worst(plan.steps(), workspace).as_str(),
    })
}

/// What would become of what the plan wants, where the plan itself says on what.
fn dry_run(setting: &Setting, plan: &Plan, how: &How) -> Result<u8, Trouble> {
    let ground = open::ground(&setting.place)?;
    let mut runtime = open::imagine(setting)?;
    let agent = runtime.first_agent();
    if how.json {
        print(&described(plan, &ground.workspace).to_string());
    } else {
        print(&show::plan(plan, &ground.workspace));
    }
    for want in plan.wants() {
        let on = match (&want.on, want.verb) {
            (Some(on), _) => ground.workspace.join(on).to_string_lossy().into_owned(),
            (None, hermitcrab_core::authority::Verb::ProcExec) => "*".to_owned(),
            (None, _) => continue,
        };
        let words = GrantWords::new(want.verb.as_str(), &on);
        let lines = match runtime.explain(agent, &words) {
            Ok(lines) => lines.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        for line in lines {
            if how.json {
                print(
                    &json!({"v": 1, "type": "would", "step": want.step, "what": line}).to_string(),
                );
            } else {
                print(&format!("{}: {line}", want.step));
            }
        }
    }
    Ok(exit::OK)
}

fn carried_out(setting: &Setting, source: &Source, how: &How) -> Result<u8, Trouble> {
    let (plan, session) = planned(setting, source)?;
    if setting.dry_run {
        if let Some(session) = session {
            close(session)?;
        }
        return dry_run(setting, &plan, how);
    }
    let workspace = open::ground(&setting.place)?.workspace;
    let highest = risk::worst(plan.steps(), &workspace);
    if highest == Risk::Blocked {
        print(&show::plan(&plan, &workspace));
        return Err((
            "the plan names a place outside the workspace, or would delete the workspace itself; nothing was done".to_owned(),
            exit::REFUSED,
        ));
    }
    if how.json {
        print(&described(&plan, &workspace).to_string());
    } else {
        print(&show::plan(&plan, &workspace));
    }
    let approved = match approve(&plan, highest, how) {
        Ok(approved) => approved,
        Err(trouble) => {
            if let Some(session) = session {
                close(session)?;
            }
            return Err(trouble);
        }
    };
    let mut runtime = match session {
        Some(session) => session,
        None => open::open(setting)?,
    };
    if approved.by_user {
        grant_written(&mut runtime, &plan)?;
    }
    let mut risks = BTreeMap::new();
    each_risk(plan.steps(), &workspace, &mut risks);
    let mut shown = Shown {
        risks,
        json: how.json,
        each: approved.each,
    };
    let machine = match picks(plan.steps()).then(|| quarantined(setting, source)) {
        None | Some(Ok(None)) => executor::run(&mut runtime, plan, &mut shown, &mut NoPicker),
        Some(Ok(Some(mut backend))) => {
            chat::let_talk(&mut runtime, &backend)?;
            let mut picker = ModelPicker {
                model: &backend.model,
                port: &mut *backend.port,
            };
            executor::run(&mut runtime, plan, &mut shown, &mut picker)
        }
        Some(Err(trouble)) => {
            close(runtime)?;
            return Err(trouble);
        }
    };
    for line in runtime.take_told() {
        say(&line);
    }
    close(runtime)?;
    Ok(summed_up(&machine, how.json))
}

/// Does a step have a model pick data?
fn picks(steps: &[Step]) -> bool {
    steps
        .iter()
        .any(|step| matches!(step.what, What::Extract { .. }) || step.what.blocks().any(picks))
}

fn each_risk(steps: &[Step], workspace: &Path, risks: &mut BTreeMap<String, Risk>) {
    for step in steps {
        risks.insert(step.id.clone(), risk::of(step, workspace));
        for block in step.what.blocks() {
            each_risk(block, workspace, risks);
        }
    }
}

struct Approved {
    /// A person said yes to the plan as shown.
    by_user: bool,
    /// A person is asked before each step of this risk or more.
    each: Option<Risk>,
}

/// Asks about the plan as a whole. Whatever is said here, every effect still
/// passes the monitor.
fn approve(plan: &Plan, highest: Risk, how: &How) -> Result<Approved, Trouble> {
    let cancelled = || ("nothing was done".to_owned(), exit::REFUSED);
    if how.yes_low && highest == Risk::Low && !how.step {
        return Ok(Approved {
            by_user: false,
            each: None,
        });
    }
    let Some(mut terminal) = TerminalUser::open() else {
        if how.yes_low && !how.step {
            // Nobody is there: what is not granted will be refused.
            return Ok(Approved {
                by_user: false,
                each: None,
            });
        }
        return Err((
            "there is nobody to approve the plan; nothing was done. With --yes-low what is granted is done all the same"
                .to_owned(),
            exit::REFUSED,
        ));
    };
    if how.yes_low {
        return Ok(Approved {
            by_user: false,
            each: Some(if how.step { Risk::Low } else { Risk::Medium }),
        });
    }
    let steps = plan.steps().len();
    let question = if highest == Risk::High {
        format!("run these {steps} steps? `yes` for all, s for step by step, n [n]: ")
    } else {
        format!("run these {steps} steps? y, s for step by step, n [n]: ")
    };
    match terminal.line(&question).as_deref() {
        Some("yes") => {}
        Some("y") if highest < Risk::High => {}
        Some("s" | "step") => {
            return Ok(Approved {
                by_user: false,
                each: Some(Risk::Low),
            });
        }
        _ => return Err(cancelled()),
    }
    Ok(Approved {
        by_user: true,
        each: how.step.then_some(Risk::Low),
    })
}

/// New names that the plan itself writes were approved with it. What replaces
/// or removes something is asked about when it is known what.
fn grant_written(runtime: &mut Runtime, plan: &Plan) -> Result<(), Trouble> {
    let agent = runtime.first_agent();
    let workspace = runtime.workspace().to_owned();
    for want in plan.wants() {
        let Some(on) = &want.on else { continue };
        if want.verb != hermitcrab_core::authority::Verb::FsCreate {
            continue;
        }
        let on = workspace.join(on).to_string_lossy().into_owned();
        runtime
            .grant(agent, &GrantWords::new(want.verb.as_str(), &on))
            .map_err(|error| (error.to_string(), exit::USAGE))?;
    }
    Ok(())
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that went away is no failure of the plan.
    let _ = writeln!(out, "{}", text.trim_end_matches('\n'));
}

/// Shows each step as it happens.
struct Shown {
    risks: BTreeMap<String, Risk>,
    json: bool,
    /// Ask before each step of this risk or more.
    each: Option<Risk>,
}

impl Onlooker for Shown {
    fn before(&mut self, call: &ToolCall) -> Go {
        let risk = self.risks.get(&call.step).copied().unwrap_or(Risk::High);
        if self.each.is_none_or(|from| risk < from) {
            return Go::On;
        }
        let Some(mut terminal) = TerminalUser::open() else {
            return Go::Stop;
        };
        let mut question = format!("{}: {}\n", call.step, executor::call_line(call));
        for concern in &call.concerns {
            question.push_str(&executor::concern(concern));
            question.push('\n');
        }
        question.push_str("do this? y, n, q to end here [n]: ");
        match terminal.line(&question).as_deref() {
            Some("y" | "yes") => Go::On,
            Some("q" | "quit") | None => Go::Stop,
            Some(_) => Go::Over,
        }
    }

    fn after(&mut self, call: &ToolCall, result: Result<&Did, &actions::Trouble>) {
        if self.json {
            let told = match result {
                Ok(did) => {
                    json!({"told": did.told, "undo": did.undo, "already": did.already})
                }
                Err(trouble) => {
                    json!({"failure": trouble.failure.as_str(), "told": trouble.words})
                }
            };
            let (step, at, tool) = (&call.step, &call.at, &call.tool);
            print(&json!({"v": 1, "type": "call", "step": step, "at": at, "tool": tool, "came": told}).to_string());
            return;
        }
        match result {
            Ok(did) => {
                let mark = if did.already { "=" } else { "+" };
                let undo = match &did.undo {
                    Some(undo) => format!("; to undo: {}", undo.escape_debug()),
                    None => String::new(),
                };
                print(&format!(
                    "{mark} {}: {}{undo}",
                    call.step,
                    did.told.escape_debug()
                ));
            }
            Err(trouble) => {
                print(&format!(
                    "! {}: {}",
                    call.step,
                    trouble.words.escape_debug()
                ));
            }
        }
    }

    fn say(&mut self, text: &str) {
        if self.json {
            print(&json!({"v": 1, "type": "say", "text": text}).to_string());
        } else {
            // Text of others must not draw on the terminal.
            let lines: Vec<String> = text
                .split('\n')
                .map(|line| {
                    line.escape_debug()
                        .to_string()
                        .replace("\\\"", "\"")
                        .replace("\\'", "'")
                })
                .collect();
            print(&lines.join("\n"));
        }
    }

    fn delegate(&mut self, _text: &str, _tools: &[String]) -> Option<Plan> {
        None
    }
}

/// What became of every step, and the exit code for it.
fn summed_up(machine: &Machine, as_json: bool) -> u8 {
    let (mut done, mut failed, mut skipped, mut refused) = (0, 0, 0, 0);
    for report in machine.reports() {
        match &report.status {
            Status::Done | Status::Already => done += 1,
            Status::Failed(Failure::Refused | Failure::Cancelled) => refused += 1,
            Status::Failed(_) => failed += 1,
            Status::Skipped(_) => skipped += 1,
        }
        if as_json {
            let failure = match &report.status {
                Status::Failed(failure) => Some(failure.as_str()),
                _ => None,
            };
            let because = match &report.status {
                Status::Skipped(because) => Some(because),
                _ => None,
            };
            print(
                &json!({"v": 1, "type": "step", "step": report.step, "at": report.at,
                    "status": report.status.as_str(), "failure": failure, "because": because})
                .to_string(),
            );
        } else if let Status::Skipped(because) = &report.status {
            print(&format!(
                "- {}: skipped, because {because} came to nothing",
                report.step
            ));
        } else if let Status::Failed(failure) = &report.status {
            print(&format!(
                "- {}: {} ({failure})",
                report.step,
                report.status.as_str()
            ));
        }
    }
    if as_json {
        print(&json!({"v": 1, "type": "end", "done": done, "failed": failed, "refused": refused, "skipped": skipped}).to_string());
    } else {
        print(&format!(
            "{done} done, {failed} failed, {refused} refused, {skipped} skipped"
        ));
    }
    if refused > 0 {
        exit::REFUSED
    } else if failed + skipped > 0 {
        exit::TOOL_FAILED
    } else {
        exit::OK
    }
}
