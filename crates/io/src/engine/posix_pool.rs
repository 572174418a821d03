//! `pread` on a few reader threads: deep queues for systems that forbid io_uring.
//!
//! Each read costs two hand-overs between threads and a blocked thread; eight readers keep an
//! NVMe drive busy with blocks of 1 MiB, not with pages of 4 KiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tiergraph_core::{Error, ErrorKind, Result, threads};

use super::posix::read_now;
use crate::{Done, FileSet, Read, ReadEngine, Wait};

/// As many reader threads as this are enough for one engine.
const MAX_THREADS: usize = 8;

/// Reads on threads of its own.
#[derive(Debug)]
pub struct PosixPool {
    /// None once the pool is being dropped.
    jobs: Option<Sender<Read>>,
    completions: Receiver<Done>,
    stop: Arc<AtomicBool>,
    readers: Vec<JoinHandle<()>>,
    in_flight: usize,
    depth: usize,
}

impl PosixPool {
    /// An engine over `files` with up to `depth` reads in flight, on min(`depth`, 8) threads.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a thread cannot be started.
    pub fn new(files: &Arc<FileSet>, depth: usize) -> Result<Self> {
        let depth = depth.max(1);
        let (jobs, queue) = unbounded::<Read>();
        let (finished, completions) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let mut pool = Self {
            jobs: Some(jobs),
            completions,
            stop: Arc::clone(&stop),
            readers: Vec::new(),
            in_flight: 0,
            depth,
        };
        for number in 0..depth.min(MAX_THREADS) {
            let (files, queue) = (Arc::clone(files), queue.clone());
            let (finished, stop) = (finished.clone(), Arc::clone(&stop));
            let read = move || read_until_closed(&files, &queue, &finished, &stop);
            let reader = threads::start(&format!("read-{number}"), read)?;
            pool.readers.push(reader);
        }
        Ok(pool)
    }

    fn receive(&mut self, done: &mut Vec<Done>) -> Result<()> {
        let completion = self.completions.recv().map_err(|_| {
            Error::new(ErrorKind::Io, "read").got("every reader thread of the pool has ended")
        })?;
        self.in_flight -= 1;
        done.push(completion);
        Ok(())
    }
}

fn read_until_closed(
    files: &FileSet,
    queue: &Receiver<Read>,
    finished: &Sender<Done>,
    stop: &AtomicBool,
) {
    for read in queue {
        // The flag orders nothing: a reader that sees it late does one read more.
        if stop.load(Ordering::Relaxed) || finished.send(read_now(files, read)).is_err() {
            return;
        }
    }
}

impl ReadEngine for PosixPool {
    fn submit(&mut self, read: Read) -> std::result::Result<(), Read> {
        let Some(jobs) = self.jobs.as_ref().filter(|_| self.in_flight < self.depth) else {
            return Err(read);
        };
        jobs.send(read).map_err(|refused| refused.0)?;
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        done.extend(self.completions.try_iter());
        self.in_flight -= done.len() - before;
        match wait {
            Wait::One if done.len() == before && self.in_flight > 0 => self.receive(done)?,
            Wait::All => {
                while self.in_flight > 0 {
                    self.receive(done)?;
                }
            }
            Wait::No | Wait::One => {}
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn capacity(&self) -> usize {
        self.depth
    }

    fn name(&self) -> &'static str {
        "posix-pool"
    }
}

impl Drop for PosixPool {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        for reader in self.readers.drain(..) {
            // A reader that panicked has nothing left to give back.
            let _ = reader.join();
        }
    }
}
