//! The model's own process: closed in first, then a model, then answers.
//!
//! Orders come on the standard input, words go to the standard output. The end
//! of the input ends the process, whatever it is doing: nobody listens any more.
//! It must never open the model before the walls stand.

use std::{
    fs::File,
    io::{self, BufReader},
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
};

use hermitcrab_sandbox::{
    seclusion::{Seclusion, bound_process},
    sys::exit_immediately,
};

use super::{
    engine,
    talk::{self, Ask, Failed, Load, Order, Said, say},
};
use crate::exit;

/// Serves until nobody listens; how to exit.
pub fn run() -> i32 {
    let mut orders = BufReader::new(io::stdin());
    let Ok(Some(Order::Load(load))) = talk::next(&mut orders) else {
        eprintln!("this is started by hermitcrab only");
        return i32::from(exit::USAGE);
    };
    if let Err(error) = close_in(&load) {
        say(&Said::Failed(Failed::NotClosedIn(error.to_string())));
        return i32::from(exit::ENVIRONMENT);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let is_stopped = stop.clone();
    let (ask, asks) = channel::<Ask>();
    let listening = std::thread::Builder::new().spawn(move || {
        while let Ok(Some(order)) = talk::next(&mut orders) {
            match order {
                Order::Ask(asked) => {
                    stop.store(false, Ordering::SeqCst);
                    if ask.send(asked).is_err() {
                        break;
                    }
                }
                Order::Stop => stop.store(true, Ordering::SeqCst),
                Order::Load(_) => break,
            }
        }
        // Other threads may be in the middle of something; no destructor of
        // theirs may run now.
        exit_immediately(i32::from(exit::OK));
    });
    if let Err(error) = listening {
        say(&Said::Failed(Failed::NotClosedIn(error.to_string())));
        return i32::from(exit::ENVIRONMENT);
    }
    let served = engine::serve(&load, || asks.recv().ok(), &is_stopped);
    let code = match served {
        Ok(()) => exit::OK,
        Err(failed) => {
            say(&Said::Failed(failed));
            exit::ENVIRONMENT
        }
    };
    exit_immediately(i32::from(code))
}

/// Everything is given up but what is needed.
fn close_in(load: &Load) -> io::Result<()> {
    bound_process(load.memory_bytes_max)?;
    let files = load
        .files
        .iter()
        .map(File::open)
        .collect::<io::Result<Vec<File>>>()?;
    let walls = Seclusion::build(files.iter().map(|file| file.as_fd()))?;
    drop(files);
    walls.close()
}
