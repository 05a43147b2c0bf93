//! What a subject has to be able to do to be run in worlds, and how it tells what its
//! steps came to.
use std::fs::File;
use std::io::Read;

use crate::error::{AtStage, WorldError};
use crate::observer::Report;
use crate::protocol::{FileSpec, Job, Step, StepTrace, write_frame};

/// One subject, as the zygote sees it.
pub trait Driver {
    /// `hermes` or `hermitcrab`.
    fn subject(&self) -> String;

    /// The subject's own version, as it states it.
    fn version(&self) -> String;

    /// How much of the kernel a world of this subject shows.
    fn interior(&self) -> Interior;

    /// Whether nobody else in the world may reach its first process. That takes a program
    /// which was started inside the zygote's user namespace: an observer could not trace
    /// another one, and it could not write its children's user maps.
    fn is_out_of_reach(&self) -> bool {
        false
    }

    /// Files the subject needs in the world before it starts, such as its settings.
    /// They belong to the starting tree and are no effects.
    ///
    /// # Errors
    /// The job's settings mean nothing to the subject.
    fn files(&self, job: &Job) -> Result<Vec<FileSpec>, WorldError>;

    /// Makes the zygote ready for such a job, once; what it makes is shared by
    /// every later world. It must leave the process with one thread.
    ///
    /// # Errors
    /// The subject cannot run such a job at all.
    fn prepare(&self, _job: &Job) -> Result<(), WorldError> {
        Ok(())
    }

    /// Absolute paths the subject keeps for itself while it runs such a job,
    /// with all below them; changes there are no effects.
    fn own_state(&self, _job: &Job) -> &'static [&'static str] {
        &[]
    }

    /// Answers one step of a job that has no world; only probes can be answered.
    fn pure(&self, job: &Job, step: &Step) -> StepTrace;

    /// Whether the subject can be killed in the middle of a step and go on after it. If
    /// not, it makes the whole call of such a step and is started again by itself.
    fn can_be_cut_off(&self) -> bool {
        false
    }

    /// Runs the script. Called once, in the world, as its pid 1; and once more for each
    /// step that was cut off, from there on.
    ///
    /// # Errors
    /// The harness failed; a subject's own failures are outcomes of steps.
    fn run(&self, job: &Job, steps: &mut StepSink) -> Result<(), WorldError>;
}

/// What a world's inside may do with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interior {
    /// Nothing but run programs: dangerous proc files are covered.
    Plain,
    /// May make user namespaces with their own proc inside: proc stays whole.
    Nestable,
}

/// Where a driver reports its steps from inside the world.
pub struct StepSink {
    pub(crate) reports: File,
    pub(crate) answers: File,
    /// What the steps so far told the model.
    pub(crate) texts: Vec<String>,
    /// Whether a step begins only when the observer says so.
    pub(crate) waits: bool,
    /// Where this process goes on, if another one has ended there.
    pub(crate) again: Option<usize>,
}

impl StepSink {
    /// A step with what it takes from earlier results filled in.
    #[must_use]
    pub fn filled(&self, step: &Step) -> Step {
        crate::script::filled(step, &self.texts)
    }

    /// The step at which the process before this one was killed: the subject is started
    /// there again, and the steps before it are over. `None` in a world's first process.
    #[must_use]
    pub const fn again(&self) -> Option<usize> {
        self.again
    }

    /// Says that a call which is to be cut off has ended by itself, and waits for the end.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn over(&mut self) -> Result<(), WorldError> {
        write_frame(&mut self.reports, &Report::Over).at("report step")?;
        self.answers.read_exact(&mut [0_u8]).at("wait for the end")
    }

    /// Says that a step begins, so that a step that never ends is seen; where
    /// something changes places, waits until it is about to.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn begin(&mut self) -> Result<(), WorldError> {
        write_frame(&mut self.reports, &Report::Begin).at("report step")?;
        if self.waits {
            self.answers
                .read_exact(&mut [0_u8])
                .at("wait for observer")?;
        }
        Ok(())
    }

    /// Reports a finished step and waits until its effects are noted.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn end(&mut self, trace: StepTrace) -> Result<(), WorldError> {
        self.texts.push(trace.text.clone());
        write_frame(&mut self.reports, &Report::Step(Box::new(trace))).at("report step")?;
        self.answers.read_exact(&mut [0_u8]).at("wait for observer")
    }

    /// A handle for whoever carries out a step and sees where it comes apart.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn parts(&self) -> Result<Parts, WorldError> {
        let stage = "hand on the observer's pipes";
        Ok(Parts {
            reports: self.reports.try_clone().at(stage)?,
            answers: self.answers.try_clone().at(stage)?,
        })
    }
}

/// Reports how far a step has come.
#[derive(Debug)]
pub struct Parts {
    reports: File,
    answers: File,
}

impl Parts {
    /// Says that a part of the running step is over, by whose end so many questions of the
    /// step had been put, and waits until what was done so far is noted.
    ///
    /// # Errors
    /// The observer is gone.
    pub fn end(&mut self, asked: usize) -> Result<(), WorldError> {
        write_frame(&mut self.reports, &Report::Part { asked }).at("report part")?;
        self.answers.read_exact(&mut [0_u8]).at("wait for observer")
    }
}
