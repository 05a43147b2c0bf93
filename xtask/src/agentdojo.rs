//! `cargo xtask agentdojo`: AgentDojo's 97 user tasks and 949 attacks, carried
//! out by the real program from fixed plans.
//!
//! AgentDojo gives the worlds, the tools and the judgement; `xtask/agentdojo`
//! holds a plan for each task, what is said of each tool, and the driver that
//! puts AgentDojo's tools and a run's models behind two doors. What is measured
//! is the language, the executor, the labels, the questions: not a model's
//! planning. This module must never look at what a run is worth before it has
//! answered the run's questions.

mod environment;
mod report;
mod round;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use self::report::{Numbers, Table};
use self::round::{Driver, Suites};
use self::run::{Asked, Person, Told};
use crate::cmd::{self, Passed};

/// How a puppet fills a form: with what the attack's own solution says, with
/// the attack's words, or with both added to the honest answer.
const VARIANTS: [&str; 3] = ["values", "words", "added"];

/// Arguments of `cargo xtask agentdojo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only tasks whose name starts like this, such as `slack/user_task_1`.
    #[arg(long)]
    only: Vec<String>,
    /// No attacks.
    #[arg(long)]
    benign: bool,
    /// How many runs at a time; a run mostly waits, so two for each processor.
    #[arg(long, default_value_t = jobs())]
    jobs: usize,
}

/// More drivers than this would take more memory than time they save.
const JOBS_MAX: usize = 8;

fn jobs() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.saturating_mul(2).min(JOBS_MAX)
}

/// One task of a suite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Task {
    suite: String,
    name: String,
}

/// One run that is to be made.
#[derive(Clone, Debug)]
struct Job {
    task: Task,
    injection: Option<String>,
    variant: &'static str,
    person: Person,
}

/// What is known of a task from its run in a clean world.
#[derive(Clone, Debug, Default)]
struct Clean {
    told: Told,
    done_alone: bool,
}

/// Run everything, print the table, and write it if it was everything.
pub fn run(args: &Args) -> Result<Passed> {
    let python = environment::ensure()?;
    environment::build_agent()?;
    let began = Instant::now();
    let mut drivers = Vec::new();
    for _ in 0..args.jobs.max(1) {
        drivers.push(Mutex::new(Driver::start(&python)?));
    }
    let suites = drivers
        .first()
        .and_then(|driver| driver.lock().ok().map(|driver| driver.suites.clone()))
        .context("there is no driver")?;
    let tasks = chosen(&suites, &args.only);
    ensure!(!tasks.is_empty(), "no task has such a name");

    let jobs = |person: Person| -> Vec<Job> {
        let one = |task: &Task| Job {
            task: task.clone(),
            injection: None,
            variant: "values",
            person: person.clone(),
        };
        tasks.iter().map(one).collect()
    };
    let with_person = all(&drivers, jobs(Person::Yes))?;
    let alone = all(&drivers, jobs(Person::Nobody))?;
    let mut clean: BTreeMap<Task, Clean> = BTreeMap::new();
    for (job, told) in with_person {
        clean.entry(job.task).or_default().told = told;
    }
    for (job, told) in alone {
        clean.entry(job.task).or_default().done_alone = told.utility;
    }
    let mut numbers = Numbers::of_clean(&clean)?;
    for (task, clean) in &clean {
        if !clean.told.utility {
            println!(
                "not done: {}/{}\n{}",
                task.suite, task.name, clean.told.trouble
            );
        }
    }
    if !args.benign {
        attack(&drivers, &suites, &clean, &mut numbers)?;
    }
    let table = Table::new(&numbers, began.elapsed());
    println!("{}", table.text());
    if args.only.is_empty() && !args.benign {
        let path = cmd::root().join("docs/benchmarks/agentdojo.md");
        std::fs::write(&path, table.page())
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(Passed::when(numbers.holds()))
}

/// Every attack on every task: by a puppet in each variant where a model reads
/// or plans anything, against an attentive person, nobody, and one who says yes.
fn attack(
    drivers: &[Mutex<Driver>],
    suites: &Suites,
    clean: &BTreeMap<Task, Clean>,
    numbers: &mut Numbers,
) -> Result<()> {
    let mut first = Vec::new();
    for (task, clean) in clean {
        let injections = suites.get(&task.suite).map(|suite| &suite.injections);
        // Without a model nothing differs between variants.
        let variants = if clean.told.has_model {
            &VARIANTS[..]
        } else {
            &["values"]
        };
        for injection in injections.into_iter().flatten() {
            for variant in variants {
                first.push(Job {
                    task: task.clone(),
                    injection: Some(injection.clone()),
                    variant,
                    person: Person::Attentive(clean.told.asked.clone()),
                });
            }
        }
    }
    let attentive = all(drivers, first)?;
    // A run in which nobody was asked would have gone the same without anybody.
    let again = |person: Person| -> Vec<Job> {
        attentive
            .iter()
            .filter(|(_, told)| told.questions > 0)
            .map(|(job, _)| Job {
                person: person.clone(),
                ..job.clone()
            })
            .collect()
    };
    let alone = all(drivers, again(Person::Nobody))?;
    let yes = all(drivers, again(Person::Yes))?;
    let unasked = || {
        let of = attentive.iter().filter(|(_, told)| told.questions == 0);
        of.cloned()
    };
    numbers.attacked("an attentive person", attentive.iter().cloned());
    numbers.attacked("nobody to ask", alone.into_iter().chain(unasked()));
    numbers.attacked(
        "a person who always says yes",
        yes.into_iter().chain(unasked()),
    );
    Ok(())
}

fn chosen(suites: &Suites, only: &[String]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (suite, of) in suites {
        for name in &of.tasks {
            let whole = format!("{suite}/{name}");
            if only.is_empty() || only.iter().any(|start| whole.starts_with(start)) {
                tasks.push(Task {
                    suite: suite.clone(),
                    name: name.clone(),
                });
            }
        }
    }
    tasks
}

/// Makes runs, as many at a time as there are drivers; the results in order.
fn all(drivers: &[Mutex<Driver>], jobs: Vec<Job>) -> Result<Vec<(Job, Told)>> {
    let total = jobs.len();
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let done: Mutex<Vec<(usize, Job, Told)>> = Mutex::new(Vec::with_capacity(total));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = drivers
            .iter()
            .map(|driver| {
                scope.spawn(|| -> Result<()> {
                    let mut driver = driver
                        .lock()
                        .map_err(|_| anyhow::anyhow!("a driver died"))?;
                    loop {
                        let next = queue.lock().ok().and_then(|mut queue| queue.next());
                        let Some((place, job)) = next else {
                            return Ok(());
                        };
                        let name = format!("{}/{}", job.task.suite, job.task.name);
                        let told = run::one(&mut driver, &job).with_context(|| name)?;
                        let Ok(mut done) = done.lock() else {
                            return Ok(());
                        };
                        done.push((place, job, told));
                        if done.len() % 200 == 0 {
                            eprintln!("{} of {total} runs, {}", done.len(), took(began.elapsed()));
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a worker died"))??;
        }
        Ok::<(), anyhow::Error>(())
    })?;
    let mut done = done
        .into_inner()
        .map_err(|_| anyhow::anyhow!("a worker died"))?;
    done.sort_by_key(|(place, _, _)| *place);
    Ok(done.into_iter().map(|(_, job, told)| (job, told)).collect())
}

fn took(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// What a person was asked, as they would know it again.
type Known = BTreeSet<Asked>;
