//! A disk in memory whose plug can be pulled at any point of any operation.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hermitcrab::audit::disk::Disk;

/// What the unwinding carries when the plug is pulled.
pub struct Pulled;

#[derive(Debug, Default)]
pub struct Inner {
    /// What the system has, and has not lost while it runs.
    pub written: Vec<u8>,
    /// How much of it is on the disk for certain.
    pub durable: usize,
    /// How often it was waited for.
    pub syncs: usize,
    /// Points passed so far.
    pub points: usize,
    /// The point at which the plug is pulled.
    pub pull_at: Option<usize>,
    /// Between two points of an append lie so many bytes.
    pub stride: usize,
}

/// The disk; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct Plug(Arc<Mutex<Inner>>);

impl Plug {
    /// What it holds; a pulled plug is no reason not to look.
    pub fn borrow(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn holding(bytes: &[u8], stride: usize, pull_at: Option<usize>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            written: bytes.to_vec(),
            durable: bytes.len(),
            syncs: 0,
            points: 0,
            pull_at,
            stride,
        })))
    }

    /// What is left on the disk: after the end of the process, everything
    /// written; after a loss of power, what was waited for and perhaps some or
    /// all of the length, but not the content, of what was not.
    pub fn left(&self) -> Vec<Vec<u8>> {
        let inner = self.borrow();
        let pending = inner.written.len() - inner.durable;
        let sure = &inner.written[..inner.durable];
        let mut all = vec![inner.written.clone(), sure.to_vec()];
        if pending > 1 {
            let half = inner.durable + pending / 2;
            all.push(inner.written[..half].to_vec());
            let mut holes = sure.to_vec();
            holes.resize(inner.written.len(), 0);
            all.push(holes.clone());
            holes.truncate(half);
            holes.extend_from_slice(&inner.written[half..]);
            all.push(holes);
        }
        all.sort();
        all.dedup();
        all
    }

    /// What a loss of power cannot take.
    pub fn durable(&self) -> Vec<u8> {
        let inner = self.borrow();
        inner.written[..inner.durable].to_vec()
    }
}

impl Inner {
    fn point(&mut self) {
        self.points += 1;
        if self.pull_at == Some(self.points) {
            // No message: this is not a failure but the end of the process.
            std::panic::resume_unwind(Box::new(Pulled));
        }
    }
}

impl Disk for Plug {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let inner = self.borrow();
        let from = usize::try_from(offset).unwrap().min(inner.written.len());
        let got = into.len().min(inner.written.len() - from);
        into[..got].copy_from_slice(&inner.written[from..from + got]);
        Ok(got)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.borrow();
        inner.point();
        let stride = inner.stride.max(1);
        for piece in bytes.chunks(stride) {
            inner.written.extend_from_slice(piece);
            inner.point();
        }
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.borrow();
        inner.point();
        inner.durable = inner.written.len();
        inner.syncs += 1;
        inner.point();
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let mut inner = self.borrow();
        inner.point();
        let bytes = usize::try_from(bytes).unwrap();
        inner.written.truncate(bytes);
        inner.durable = inner.durable.min(bytes);
        inner.point();
        inner.durable = inner.written.len();
        inner.point();
        Ok(())
    }
}

/// Runs until it ends or the plug is pulled; says whether it came to its end.
pub fn until_pulled(run: impl FnOnce()) -> bool {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(()) => true,
        Err(why) if why.is::<Pulled>() => false,
        Err(why) => std::panic::resume_unwind(why),
    }
}
