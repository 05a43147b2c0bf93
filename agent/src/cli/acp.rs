//! `acp`: the agent behind an editor.

use std::{
    io::IsTerminal as _,
    path::PathBuf,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hermitcrab_core::approval::Asking;

use super::{Setting, Where, choice, cron, open, say, span, undo};
use crate::{
    acp::{self, Furnish, Opened, Opener, Service},
    exit,
    model::Backend,
    runtime::GrantWords,
};

/// What `acp` takes besides the setting.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How long a question waits for its answer before it is refused
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = ask_time)]
    ask_timeout: Duration,
    /// How long a question for free words waits, which your next message answers
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = answer_time)]
    answer_timeout: Duration,
}

fn ask_time(text: &str) -> Result<Duration, String> {
    within(text, 600)
}

fn answer_time(text: &str) -> Result<Duration, String> {
    within(text, 86_400)
}

/// A time as `exec --timeout` takes it, and no more than so many seconds.
fn within(text: &str, seconds_max: u64) -> Result<Duration, String> {
    let time = span::read(text)?;
    match time <= Duration::from_secs(seconds_max) {
        true => Ok(time),
        false => Err(format!("the longest is {}", span::words(seconds_max))),
    }
}

pub fn acp(setting: Setting, choice: choice::Choice, options: &Options) -> u8 {
    match service(setting, choice, options) {
        Ok(service) => {
            // A person who tries it out by hand would otherwise sit before nothing.
            if std::io::stdin().is_terminal() {
                say(
                    "this speaks the Agent Client Protocol with an editor, on standard input and output; nothing is said until it speaks (^C ends). In an editor's settings name the command `hermitcrab acp`; to talk here, run `hermitcrab`",
                );
            }
            match acp::serve(service, std::io::stdin(), std::io::stdout()) {
                Ok(()) => exit::OK,
                Err(message) => {
                    say(&message);
                    exit::ENVIRONMENT
                }
            }
        }
        Err((message, code)) => {
            say(&message);
            code
        }
    }
}

fn service(
    setting: Setting,
    choice: choice::Choice,
    options: &Options,
) -> Result<Service, super::Trouble> {
    let usage = |message: &str| Err((message.to_owned(), exit::USAGE));
    if setting.place.workspace.is_some() {
        return usage("the editor says where a session works; `--workspace` is not for `acp`");
    }
    if setting.object.is_some() {
        return usage("`--object` is not for `acp`; take the reference in with `hermitcrab caps`");
    }
    let state_dir = super::state_dir(setting.place.state_dir.as_deref())?;
    let isolation = crate::ambient::probe(&hermitcrab_sandbox::SpawnerProgram::Own)
        .map(|profile| profile.isolation)
        .map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    let setting = Arc::new(setting);
    // What is kept together is made by one at a time.
    let one_at_a_time = Mutex::new(());
    let opener: Opener = Arc::new(move |ground, user| {
        let _alone = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let words = |trouble: super::Trouble| trouble.0;
        let place = Where {
            workspace: Some(ground.cwd.clone()),
            state_dir: setting.place.state_dir.clone(),
            job: None,
        };
        let home = Rc::new(open::ground(&place).map_err(words)?);
        // The modes of a session are its user's to choose, except past what an
        // administrator wants, and past a user who wants nothing asked for.
        let floor = match setting.mode.or(home.config.mode()) {
            Some(Asking::Refuse) => Asking::Refuse,
            _ => home.admin.mode().unwrap_or(Asking::ApproveAll),
        };
        let backend = choice::backend(&home, &choice, &ground.cancel)
            .map_err(words)?
            .ok_or_else(|| choice::NO_MODEL.to_owned())?;
        let picker = home.config.models().quarantined();
        let picker = picker
            .map(|named| home.model(named, &ground.cancel))
            .transpose()
            .map_err(words)?;
        let runner = cron::Runner::new(&place, &choice).ended_by(ground.cancel.clone());
        let asking = floor.max(Asking::Prompt);
        let runtime = home.open_apart(&setting, &ground.dir, user, isolation, asking);
        let runtime = runtime.and_then(|runtime| {
            open::ready_or_ended(runtime, |runtime| {
                runtime.run_jobs_through(Box::new(runner));
                let mut models = models_of(picker.as_ref(), &backend);
                models.try_for_each(|model| choice::let_talk(runtime, model))
            })
        });
        let runtime = runtime.map_err(words)?;
        let talks: Vec<GrantWords> = models_of(picker.as_ref(), &backend)
            .map(|model| GrantWords::new("model.send", &model.model))
            .collect();
        let undo = undo::undoing(Rc::clone(&home));
        let again = Arc::clone(&setting);
        let furnish: Furnish = Box::new(move |runtime| {
            home.furnish(runtime, &again).map_err(|trouble| trouble.0)?;
            let agent = runtime.first_agent();
            for talk in &talks {
                let granted = runtime.grant(agent, talk);
                granted.map_err(|error| error.to_string())?;
            }
            Ok(())
        });
        Ok(Opened {
            undo,
            runtime,
            backend,
            furnish,
            picker,
            proved: isolation,
            floor,
        })
    });
    Ok(Service {
        opener,
        ask_within: options.ask_timeout,
        words_within: options.answer_timeout,
        state_dir: absolute(state_dir)?,
    })
}

/// The models that are sent something, each once: what reads what nobody vouches for is the
/// one that works for the user, unless another is configured.
fn models_of<'b>(
    picker: Option<&'b Backend>,
    backend: &'b Backend,
) -> impl Iterator<Item = &'b Backend> {
    let other = picker.filter(|picker| picker.model != backend.model);
    other.into_iter().chain([backend])
}

fn absolute(dir: PathBuf) -> Result<PathBuf, super::Trouble> {
    let places =
        crate::ambient::places().map_err(|error| (error.to_string(), exit::ENVIRONMENT))?;
    Ok(places.current.join(dir))
}
