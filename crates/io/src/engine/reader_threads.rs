//! Blocking calls on a few threads: deep queues for interfaces that have none.
//!
//! `pread`, where a system forbids io_uring: each read costs two hand-overs between threads and a
//! blocked thread; eight readers keep an NVMe drive busy with blocks of 1 MiB, not with pages of
//! 4 KiB. `cuFileRead` (RealGraphGPU++, "direct storage-to-DM IO"): of cuFile's ways the simplest
//! that keeps a drive busy. A read by `cuFileReadAsync` waits for what its stream was given before,
//! so that it would take a stream a read; the batch interface, which `cufile.h` calls experimental,
//! takes a loop over its completions, and saves calls that are nothing beside a read of 1 MiB.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tiergraph_core::{Error, ErrorKind, Result, threads};

use super::posix::read_now;
use crate::cufile::CuFiles;
use crate::{Done, FileSet, Memory, Read, ReadEngine, Wait};

/// Threads that are enough for one engine over files.
const POSIX_THREADS: usize = 8;

/// Does one read, and waits for it.
type ReadNow = Arc<dyn Fn(Read) -> Done + Send + Sync>;

/// An engine that makes blocking calls, one a read, on a small pool of threads of its own. (The workers
/// that submit reads to engines are [`ReadWorkers`](crate::pipeline::ReadWorkers).)
pub struct ReaderThreads {
    name: &'static str,
    memory: Memory,
    /// None once the threads are to end.
    jobs: Option<Sender<Read>>,
    completions: Receiver<Done>,
    stop: Arc<AtomicBool>,
    readers: Vec<JoinHandle<()>>,
    in_flight: usize,
    depth: usize,
}

impl ReaderThreads {
    /// `pread` from `files`, with up to `depth` reads in flight, on min(`depth`, 8) threads.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a thread cannot be started.
    pub fn posix(files: &Arc<FileSet>, depth: usize) -> Result<Self> {
        let (files, depth) = (Arc::clone(files), depth.max(1));
        let read = Arc::new(move |read| read_now(&files, read));
        Self::start("posix-pool", Memory::Host, depth, depth.min(POSIX_THREADS), read)
    }

    /// `cuFileRead` from `files` to device memory, on `depth` threads.
    ///
    /// # Errors
    /// As [`posix`](Self::posix).
    pub fn cufile(files: &Arc<CuFiles>, depth: usize) -> Result<Self> {
        let (files, depth) = (Arc::clone(files), depth.max(1));
        let read = Arc::new(move |read| files.read_now(read));
        Self::start("cufile", Memory::Device, depth, depth, read)
    }

    fn start(
        name: &'static str,
        memory: Memory,
        depth: usize,
        count: usize,
        read_now: ReadNow,
    ) -> Result<Self> {
        let (jobs, queue) = unbounded::<Read>();
        let (finished, completions) = unbounded();
        let stop = Arc::new(AtomicBool::new(false));
        let mut engine = Self {
            name,
            memory,
            jobs: Some(jobs),
            completions,
            stop: Arc::clone(&stop),
            readers: Vec::new(),
            in_flight: 0,
            depth,
        };
        for number in 0..count {
            let (read_now, queue) = (Arc::clone(&read_now), queue.clone());
            let (finished, stop) = (finished.clone(), Arc::clone(&stop));
            let read = move || read_until_closed(&*read_now, &queue, &finished, &stop);
            engine.readers.push(threads::start(&format!("read-{number}"), read)?);
        }
        Ok(engine)
    }

    fn receive(&mut self, done: &mut Vec<Done>) -> Result<()> {
        let completion = self.completions.recv().map_err(|_| {
            Error::new(ErrorKind::Io, "read").got("every reader thread of the engine has ended")
        })?;
        self.in_flight -= 1;
        done.push(completion);
        Ok(())
    }
}

fn read_until_closed(
    read_now: &dyn Fn(Read) -> Done,
    queue: &Receiver<Read>,
    finished: &Sender<Done>,
    stop: &AtomicBool,
) {
    for read in queue {
        // The flag orders nothing: a reader that sees it late does one read more.
        if stop.load(Ordering::Relaxed) || finished.send(read_now(read)).is_err() {
            return;
        }
    }
}

impl ReadEngine for ReaderThreads {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let Some(jobs) = &self.jobs else { return };
        while self.in_flight < self.depth
            && let Some(read) = reads.pop_front()
        {
            if let Err(refused) = jobs.send(read) {
                reads.push_front(refused.0);
                return;
            }
            self.in_flight += 1;
        }
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

    fn writes_to(&self) -> Memory {
        self.memory
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for ReaderThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReaderThreads({}, {} in flight)", self.name, self.in_flight)
    }
}

impl Drop for ReaderThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        for reader in self.readers.drain(..) {
            // A reader that panicked has nothing left to give back.
            let _ = reader.join();
        }
    }
}
