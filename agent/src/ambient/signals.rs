//! What signals do to this program: ^C, a file that may not grow, being asked to end.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::cancel::Cancel;

/// From now on, ^C throws the switch and does not end the program.
///
/// # Errors
/// The system does not let go of the signal.
pub fn on_interrupt(cancel: &Cancel) -> io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGINT, cancel.flag()).map(drop)
}

/// From now on, a file that may grow no further (`ulimit -f`) is an error of the write that
/// would have it grow, which says so, and does not end the program. What it starts begins
/// with the system's own action.
///
/// # Errors
/// The system does not let go of the signal.
pub fn on_full_file() -> io::Result<()> {
    let nobody_looks = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, nobody_looks).map(drop)
}

/// From now on the program ends when it is asked to, as the first process of a container too,
/// for which the kernel has no action of its own (pid_namespaces(7)): `docker stop` would wait
/// and then kill it. All else in the container ends with it.
///
/// # Errors
/// The system does not let go of the signals.
pub fn on_termination_as_first() -> io::Result<()> {
    /// What shells say of a program that a signal ended begins here.
    const ENDED_BY: i32 = 128;
    if std::process::id() != 1 {
        return Ok(());
    }
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(signal, ENDED_BY + signal, always)?;
    }
    Ok(())
}

/// ^C throws a switch and does not end the program, as long as this lives.
#[derive(Debug)]
pub struct Interruptible {
    cancel: Cancel,
    is_over: Arc<AtomicBool>,
}

impl Interruptible {
    /// From now on.
    ///
    /// # Errors
    /// The system does not let go of the signal.
    pub fn begin() -> io::Result<Self> {
        // Of a signal that was taken in hand the system's own action does not come
        // back, so it is taken once, and asked for where nothing is to be stopped.
        static TAKEN: Mutex<Option<(Cancel, Arc<AtomicBool>)>> = Mutex::new(None);
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (cancel, is_over) = match taken.clone() {
            Some(taken) => taken,
            None => {
                let new = (Cancel::default(), Arc::new(AtomicBool::new(true)));
                let signal = signal_hook::consts::SIGINT;
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&new.1))?;
                on_interrupt(&new.0)?;
                taken.insert(new).clone()
            }
        };
        let _before = cancel.take();
        is_over.store(false, Ordering::SeqCst);
        Ok(Self { cancel, is_over })
    }

    /// The switch.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Being asked to end (SIGTERM, SIGHUP) waits as long as this lives: for a terminal to be given
/// back, and never longer.
#[derive(Debug)]
pub struct Postponed {
    taken: Taken,
}

/// What is there of it once for the program.
#[derive(Clone, Debug)]
struct Taken {
    asked: [(i32, Cancel); 2],
    is_over: Arc<AtomicBool>,
}

impl Postponed {
    /// From now on.
    ///
    /// # Errors
    /// The system does not let go of the signals.
    pub fn begin() -> io::Result<Self> {
        // As for ^C: taken once, and the system's own action asked for at all other times.
        static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = match &*taken {
            Some(taken) => taken.clone(),
            None => {
                use signal_hook::consts::{SIGHUP, SIGTERM};
                let new = Taken {
                    asked: [SIGTERM, SIGHUP].map(|signal| (signal, Cancel::default())),
                    is_over: Arc::new(AtomicBool::new(true)),
                };
                for (signal, asked) in &new.asked {
                    let is_over = Arc::clone(&new.is_over);
                    signal_hook::flag::register_conditional_default(*signal, is_over)?;
                    signal_hook::flag::register(*signal, asked.flag())?;
                }
                taken.insert(new).clone()
            }
        };
        taken.is_over.store(false, Ordering::SeqCst);
        Ok(Self { taken })
    }

    /// Whether it was asked for meanwhile.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.taken.asked.iter().any(|(_, asked)| asked.is_thrown())
    }
}

impl Drop for Postponed {
    /// Ends the program by the signal that came, if one did.
    fn drop(&mut self) {
        self.taken.is_over.store(true, Ordering::SeqCst);
        for (signal, asked) in &self.taken.asked {
            if asked.take() {
                // It does not come back from there.
                let _ended = signal_hook::low_level::emulate_default_handler(*signal);
            }
        }
    }
}
