//! `plan` and `run`: a plan is read or made, checked, shown, approved, carried out.

mod approve;
mod edit;
mod further;
mod person;
mod rehearsed;
mod shown;
mod wrong;

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use hermitcrab_core::{
    authority::Name,
    plan::{FlowRules, Plan, Seer, Step, Toolbox, What, check},
};
use serde_json::{Value, json};

use self::{
    approve::{Approved, approve, give_back, lend},
    further::Further,
    person::PipeUser,
    rehearsed::dry_run,
    shown::{Shown, summed_up},
    wrong::wrong,
};
use super::{Setting, Trouble, as_json::print_json, begin, choice, open, say};
use crate::{
    actions::{self, Risk, risk},
    ambient,
    cancel::Cancel,
    executor::{self, NoPicker, pick::ModelPicker},
    exit,
    given_file::{self, Pipes},
    model::Backend,
    planner::{
        ask::{NoPlan, Planner},
        draft,
        outside::{self, Outside},
        show, vocabulary,
    },
    runtime::Runtime,
    screen::visible,
    text::rows,
};

/// Where the plan comes from.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// What is to be done, in plain words; a model makes the plan
    #[arg(conflicts_with = "plan")]
    request: Option<String>,
    /// A plan as JSON, `-` for the standard input; no model is needed then
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// What may be called of a server outside, as JSON; may be given several times
    #[arg(long, value_name = "FILE")]
    tools: Vec<PathBuf>,
    #[command(flatten)]
    choice: choice::Choice,
}

impl Source {
    /// The servers outside that are named.
    fn outside(&self) -> Result<Vec<Outside>, Trouble> {
        let wrong = |file: &Path, why: String| {
            let why = format!("cannot use the tools of `{}`: {why}", file.display());
            (why, exit::USAGE)
        };
        let read = |file: &PathBuf| {
            let text = given_file::bytes(file, outside::FILE_BYTES_MAX, Pipes::Read)
                .map_err(|error| wrong(file, error.to_string()))?;
            outside::read(&text).map_err(|why| wrong(file, why))
        };
        self.tools.iter().map(read).collect()
    }

    /// What a plan may call.
    fn toolbox(&self) -> Result<Arc<Toolbox>, Trouble> {
        let mut tools = actions::toolbox().all().to_vec();
        for outside in self.outside()? {
            tools.extend(outside.tools);
        }
        Ok(Arc::new(Toolbox::new(tools)))
    }
}

/// A plan, and the session in which it was made if a model made it.
type Planned = (Plan, Option<Runtime>);

/// The plan of a file, or one a model makes of the request.
fn planned(setting: &Setting, source: &Source, how: &How) -> Result<Planned, Trouble> {
    let request = match (&source.plan, &source.request) {
        (Some(file), _) => return Ok((read_plan(file, source.toolbox()?)?, None)),
        (None, Some(request)) => request,
        (None, None) => {
            let why = "there is nothing to do: say in words what is to be done, which a model plans, or name a plan of yours with `--plan FILE`";
            return Err((why.to_owned(), exit::USAGE));
        }
    };
    let toolbox = source.toolbox()?;
    let mut backend = planner(setting, source, &how.cancel)?;
    let mut runtime = begun(setting, how.pipe.as_ref())?;
    match made(&mut runtime, &mut backend, toolbox, request) {
        Ok(plan) => Ok((plan, Some(runtime))),
        Err(trouble) => {
            close(runtime)?;
            Err(trouble)
        }
    }
}

/// The model that plans.
fn planner(setting: &Setting, source: &Source, cancel: &Cancel) -> Result<Backend, Trouble> {
    let ground = open::ground(&setting.place)?;
    choice::backend(&ground, &source.choice, cancel)?.ok_or_else(|| {
        let why = format!(
            "{}; a plan of your own runs without one: `--plan FILE`",
            choice::NO_MODEL
        );
        (why, exit::USAGE)
    })
}

/// What the model makes of a request.
fn made(
    runtime: &mut Runtime,
    backend: &mut Backend,
    toolbox: Arc<Toolbox>,
    request: &str,
) -> Result<Plan, Trouble> {
    choice::let_talk(runtime, backend)?;
    let by = runtime.first_agent();
    let mut planner = Planner {
        model: &backend.model,
        port: &mut *backend.port,
        toolbox,
    };
    planner.plan(runtime, by, request).map_err(|why| {
        let code = match &why {
            NoPlan::Refused(_) => exit::REFUSED,
            NoPlan::Request => exit::USAGE,
            NoPlan::Model(_) => exit::ENVIRONMENT,
            NoPlan::Unfinished | NoPlan::Wrong(_) => exit::TOOL_FAILED,
        };
        (
            format!("there is no plan, and nothing was done: {why}"),
            code,
        )
    })
}

/// A session in which whoever there is is asked.
fn begun(setting: &Setting, pipe: Option<&PipeUser>) -> Result<Runtime, Trouble> {
    match pipe {
        Some(pipe) => begin::session_asking(setting, Box::new(pipe.clone())),
        None => begin::session(setting),
    }
}

fn close(mut runtime: Runtime) -> Result<(), Trouble> {
    runtime
        .end_session()
        .map_err(|error| (error.to_string(), exit::LEDGER))
}

/// The model that reads what nobody vouches for, if one is configured.
fn quarantined(
    setting: &Setting,
    source: &Source,
    cancel: &Cancel,
) -> Result<Option<Backend>, Trouble> {
    let ground = open::ground(&setting.place)?;
    match ground.config.models().quarantined() {
        Some(words) => ground.model(words, cancel).map(Some),
        None => choice::backend(&ground, &source.choice, cancel),
    }
}

/// How `run` goes about it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct How {
    /// Do not ask about a plan that only looks, nor before its looking steps; where nobody can be asked, carry out any plan as far as it is granted
    #[arg(long)]
    yes_low: bool,
    /// One JSON object a line, for programs
    #[arg(long)]
    json: bool,
    /// Ask before each step
    #[arg(long)]
    step: bool,
    /// Ask the program that started this one: each question is a line on the
    /// standard output, its answer a line on the standard input
    #[arg(long, requires = "json")]
    replies: bool,
    /// The way to it.
    #[arg(skip)]
    pipe: Option<PipeUser>,
    /// Thrown when the rest of it is not wanted.
    #[arg(skip)]
    cancel: Cancel,
}

/// Shows the plan and what it needs.
pub fn plan(setting: &Setting, source: &Source, as_json: bool) -> u8 {
    told(only_plan(setting, source, as_json))
}

/// Shows what a plan can be written with.
pub fn actions(source: &Source) -> u8 {
    told(source.toolbox().map(|toolbox| {
        print(&visible(&vocabulary::listed(&toolbox)));
        exit::OK
    }))
}

/// Carries it out.
pub fn run(setting: &Setting, source: &Source, how: &How) -> u8 {
    if how.replies && source.plan.as_deref() == Some(Path::new("-")) {
        say("the standard input is for the answers; name a file with the plan");
        return exit::USAGE;
    }
    let mut how = how.clone();
    how.pipe = how.replies.then(PipeUser::default);
    told(carried_out(setting, source, &how))
}

fn told(result: Result<u8, Trouble>) -> u8 {
    result.unwrap_or_else(|(message, code)| {
        say(&message);
        code
    })
}

/// Reads and checks a plan; nothing of one that is wrong is ever run.
fn read_plan(file: &Path, toolbox: Arc<Toolbox>) -> Result<Plan, Trouble> {
    let failed = |error: std::io::Error| {
        (
            format!("cannot read the plan `{}`: {error}", file.display()),
            exit::USAGE,
        )
    };
    let limit = u64::try_from(draft::DRAFT_BYTES_MAX + 1).unwrap_or(u64::MAX);
    let text = if file == Path::new("-") {
        let mut text = Vec::new();
        let read = std::io::stdin().lock().take(limit).read_to_end(&mut text);
        read.map(|_| text)
    } else {
        given_file::beginning(file, limit, Pipes::Read)
    }
    .map_err(failed)?;
    draft::read(&text)
        .and_then(|draft| check(draft, Arc::clone(&toolbox), FlowRules::STRICT))
        .map_err(|errors| (wrong(&errors, &text, &toolbox), exit::USAGE))
}

fn only_plan(setting: &Setting, source: &Source, as_json: bool) -> Result<u8, Trouble> {
    let (plan, runtime) = planned(setting, source, &How::default())?;
    if let Some(runtime) = runtime {
        close(runtime)?;
    }
    let ground = open::ground(&setting.place)?;
    print_plan(&plan, &ground.workspace, as_json);
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
            let unseen = notice.unseen.as_ref().map(|unseen| {
                let only_for: Vec<&str> = unseen.only_for.iter().map(Name::as_str).collect();
                let (by, named_by) = match &unseen.seer {
                    Seer::Reader(name) => (Some(name), None),
                    Seer::NamedBy(argument) => (None, Some(argument)),
                };
                json!({"for": only_for, "by": by, "named_by": named_by})
            });
            json!({"step": notice.step, "argument": notice.argument, "level": notice.level.as_str(), "from": notice.from, "unseen": unseen})
        })
        .collect();
    let takes: Vec<Value> = plan
        .fed()
        .iter()
        .map(|fed| {
            json!({"step": fed.step, "argument": fed.argument, "level": fed.level.as_str(), "from": fed.from})
        })
        .collect();
    json!({
        "v": 1, "type": "plan", "summary": plan.summary(), "steps": steps(plan, plan.steps(), workspace),
        "wants": wants, "takes": takes, "notices": notices, "calls_at_most": plan.calls_at_most(),
        "risk": risk::worst(plan.steps(), workspace, plan.toolbox()).as_str(),
    })
}

/// Steps for programs, and the steps within them: whoever is to approve a plan is shown all of it.
fn steps(plan: &Plan, of: &[Step], workspace: &Path) -> Vec<Value> {
    let told = |step: &Step| {
        let mut told = json!({"id": step.id, "does": show::what(step), "texts": show::long_texts(step), "after": show::uses(step), "risk": risk::of(step, workspace, plan.toolbox()).as_str()});
        let within = |of: &[Step]| Value::Array(steps(plan, of, workspace));
        let blocks = match &step.what {
            What::ForEach { steps, .. } => vec![("do", within(steps))],
            What::If { then, or_else, .. } => {
                vec![("then", within(then)), ("else", within(or_else))]
            }
            What::Call { .. }
            | What::Let(_)
            | What::Extract { .. }
            | What::AskUser { .. }
            | What::Confirm(_)
            | What::Delegate { .. }
            | What::Answer(_)
            | What::Fail(_) => Vec::new(),
        };
        if let Value::Object(told) = &mut told {
            told.extend(
                blocks
                    .into_iter()
                    .map(|(key, block)| (key.to_owned(), block)),
            );
        }
        told
    };
    of.iter().map(told).collect()
}

fn carried_out(setting: &Setting, source: &Source, how: &How) -> Result<u8, Trouble> {
    let (plan, session) = planned(setting, source, how)?;
    if setting.dry_run {
        if let Some(session) = session {
            close(session)?;
        }
        let ground = open::ground(&setting.place)?;
        print_plan(&plan, &ground.workspace, how.json);
        return dry_run(setting, &plan, how).map(|()| exit::OK);
    }
    let approved = match approve(plan, setting, how) {
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
        None => begun(setting, how.pipe.as_ref())?,
    };
    let code = go(&mut runtime, setting, source, how, approved);
    for line in runtime.take_told() {
        say(&visible(&line));
    }
    close(runtime)?;
    code
}

/// Carries out a plan in a session; the exit code for what became of it.
fn go(
    runtime: &mut Runtime,
    setting: &Setting,
    source: &Source,
    how: &How,
    approved: Approved,
) -> Result<u8, Trouble> {
    for outside in source.outside()? {
        runtime
            .declare_external(outside.server)
            .map_err(|denial| (denial.to_string(), exit::USAGE))?;
    }
    let lent = match approved.by_user {
        true => lend(&approved.plan, runtime)?,
        false => Vec::new(),
    };
    let code = steps_done(runtime, setting, source, how, approved);
    // The yes was to this plan: nothing of it is anybody's afterwards, whatever came of it.
    let given_back = give_back(runtime, &lent);
    code.and_then(|code| given_back.map(|()| code))
}

/// Carries out its steps, with what was lent for them.
fn steps_done(
    runtime: &mut Runtime,
    setting: &Setting,
    source: &Source,
    how: &How,
    approved: Approved,
) -> Result<u8, Trouble> {
    let plan = approved.plan;
    let workspace = open::ground(&setting.place)?.workspace;
    let mut risks = BTreeMap::new();
    each_risk(&plan, plan.steps(), &workspace, &mut risks);
    let mut shown = Shown {
        risks,
        json: how.json,
        each: approved.each,
        further: Further {
            setting,
            source,
            how,
        },
    };
    let picked_by = || quarantined(setting, source, &how.cancel);
    let machine = match picks(plan.steps()).then(picked_by) {
        None | Some(Ok(None)) => executor::run(runtime, plan, &mut shown, &mut NoPicker),
        Some(Ok(Some(mut backend))) => {
            choice::let_talk(runtime, &backend)?;
            let mut picker = ModelPicker {
                model: &backend.model,
                port: &mut *backend.port,
            };
            executor::run(runtime, plan, &mut shown, &mut picker)
        }
        Some(Err(trouble)) => return Err(trouble),
    };
    Ok(summed_up(&machine, how.json))
}

/// `plan` at the prompt: in the session that is open, a file's plan (`--plan FILE`)
/// or one the model makes of the words; shown, asked about, carried out. What it asks of models
/// ends with `cancel`, and so does what is left of its steps.
pub(super) fn at_prompt(
    runtime: &mut Runtime,
    setting: &Setting,
    (choice, cancel): (&choice::Choice, &Cancel),
    words: &str,
) -> Result<u8, Trouble> {
    let file = words.strip_prefix("--plan ").map(str::trim);
    let source = Source {
        request: None,
        plan: file.map(|file| runtime.workspace().join(file)),
        tools: Vec::new(),
        choice: choice.clone(),
    };
    let plan = match &source.plan {
        Some(file) => read_plan(file, source.toolbox()?)?,
        None => {
            let mut backend = planner(setting, &source, cancel)?;
            made(runtime, &mut backend, source.toolbox()?, words)?
        }
    };
    let how = How {
        cancel: cancel.clone(),
        ..How::default()
    };
    let approved = approve(plan, setting, &how)?;
    go(runtime, setting, &source, &how, approved)
}

/// Does a step have a model pick data?
fn picks(steps: &[Step]) -> bool {
    steps.iter().any(|step| {
        // What is planned further may.
        matches!(step.what, What::Extract { .. } | What::Delegate { .. })
            || step.what.blocks().any(picks)
    })
}

fn each_risk(plan: &Plan, steps: &[Step], workspace: &Path, risks: &mut BTreeMap<String, Risk>) {
    for step in steps {
        let risk = risk::of(step, workspace, plan.toolbox());
        risks.insert(step.id.clone(), risk);
        for block in step.what.blocks() {
            each_risk(plan, block, workspace, risks);
        }
    }
}

/// A plan, for programs or for a person: on a terminal no row of a long text of it looks like
/// a step.
fn print_plan(plan: &Plan, workspace: &Path, as_json: bool) {
    if as_json {
        print_json(&described(plan, workspace));
        return;
    }
    let columns = ambient::screen().columns_of(&std::io::stdout());
    let row =
        |line: &str| columns.map_or_else(|| String::from(line), |most| rows::broken(line, most));
    let shown = show::plan(plan, workspace);
    print(&shown.lines().map(row).collect::<Vec<_>>().join("\n"));
}

fn print(text: &str) {
    // A reader that went away is no failure of the plan.
    println!("{}", text.trim_end_matches('\n'));
}
