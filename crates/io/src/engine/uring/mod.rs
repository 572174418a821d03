//! io_uring: reads are written into a ring shared with the kernel and handed over by one system
//! call a poll, which brings completions back as well.
//!
//! Each engine has a ring of its own with `SINGLE_ISSUER | DEFER_TASKRUN | COOP_TASKRUN`
//! (io_uring_setup(2)): completions are processed when this thread asks, not by interrupting it.
//! Kernels before 6.1 refuse these flags and get a plain ring. The ring starts disabled and is
//! enabled by the first poll, because it belongs to the thread that enables it; an idle engine
//! that moves to another thread gets a new ring. Files are registered once, which saves a
//! reference count per read.
//!
//! Buffers are not registered: they move in and out of the engine, so the set of them is not known
//! in advance, and there is little to gain. On a virtual disk, registered buffers on huge pages
//! took 0.007 instead of 0.010 s of kernel time per GB at 1 MiB and a tenth less at 4 KiB; the
//! bandwidth was the same.
//!
//! # Memory safety
//! The kernel writes into a buffer from the poll that submits its read until the completion is
//! taken from the ring. All that time the buffer is owned by a slot and nothing refers to it. A
//! dropped engine waits for its reads; where it cannot (it was dropped on a thread that does not
//! own the ring), it leaks their buffers.
#![allow(unsafe_code)]

pub(crate) mod ring;

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use io_uring::{IoUring, opcode, squeue, types};
use tiergraph_core::{Error, ErrorKind, Result};

use self::ring::{Setup, best_setup, build, enable, enter, refusal, register};
use crate::file_set::Place;
use crate::slots::Slots;
use crate::{Destination, Done, FileSet, Memory, Read, ReadEngine, Wait};

pub use self::ring::probe;

/// The deepest ring that is asked for; kernels allow 32,768.
const MAX_DEPTH: usize = 4096;

/// A read's length is 32 bits in a ring, and Linux reads at most 2 GiB less a page at once. A
/// longer read ends short here and is continued above.
const MAX_READ_BYTES: usize = 1 << 30;

/// An engine that reads through an io_uring of its own.
pub struct Uring {
    ring: IoUring,
    setup: Setup,
    /// The thread that enabled a deferred ring.
    owner: Option<ThreadId>,
    files_registered: bool,
    files: Arc<FileSet>,
    slots: Slots<InFlight>,
    rejected: Vec<Done>,
}

/// A read that the kernel may be writing for.
struct InFlight {
    to: Destination,
    at: usize,
    tag: u64,
    place: Place,
    len: usize,
}

impl Uring {
    /// An engine over `files` with up to `depth` (at most 4096) reads in flight.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the reason where the system gives no io_uring.
    pub fn new(files: Arc<FileSet>, depth: usize) -> Result<Self> {
        let depth = depth.clamp(1, MAX_DEPTH);
        let unavailable = |why: String| Error::new(ErrorKind::Io, "set up an io_uring").got(why);
        let setup = best_setup().as_ref().map_err(|why| unavailable(why.clone()))?;
        let ring = build(*setup, depth as u32).map_err(|e| unavailable(refusal(&e)))?;
        Ok(Self {
            files_registered: register(&ring, &files),
            ring,
            setup: *setup,
            owner: None,
            files,
            slots: Slots::new(depth),
            rejected: Vec::new(),
        })
    }

    /// Makes this thread the ring's owner, with a new ring if another thread owned it.
    fn adopt(&mut self) -> Result<()> {
        let here = thread::current().id();
        if self.setup == Setup::Plain || self.owner == Some(here) {
            return Ok(());
        }
        let failed = |e| Error::io("set up an io_uring for", "another thread", e);
        if self.owner.is_some() {
            if self.slots.used() > 0 {
                return Err(Error::new(ErrorKind::Io, "poll an io_uring")
                    .expected("the thread that polled it first, while reads are in flight")
                    .got("another thread"));
            }
            self.ring = build(self.setup, self.slots.capacity() as u32).map_err(failed)?;
            self.files_registered = register(&self.ring, &self.files);
        }
        enable(&self.ring, self.setup).map_err(failed)?;
        self.owner = Some(here);
        Ok(())
    }

    /// Takes the completions that are in the ring.
    fn reap(&mut self, done: &mut Vec<Done>) {
        for entry in self.ring.completion() {
            let Some(read) = self.slots.remove(entry.user_data()) else { continue };
            let result = usize::try_from(entry.result()).map_err(|_| {
                let error = io::Error::from_raw_os_error(-entry.result());
                self.files.failure(read.place, read.len, error)
            });
            done.push(Done { tag: read.tag, to: read.to, result });
        }
    }

    /// Enters and reaps until `wanted` completions were added to `done`.
    fn complete(&mut self, done: &mut Vec<Done>, wanted: usize) -> Result<()> {
        let before = done.len();
        loop {
            let missing = wanted.saturating_sub(done.len() - before);
            enter(&mut self.ring, |ring| ring.submit_and_wait(missing))?;
            self.reap(done);
            if done.len() - before >= wanted {
                return Ok(());
            }
        }
    }

    /// The ring entry that reads into `slot`'s buffer.
    fn entry(&mut self, slot: u64) -> Option<squeue::Entry> {
        let read = self.slots.get_mut(slot)?;
        let start = read.to.bytes_mut()[read.at..].as_mut_ptr();
        let len = read.len.min(MAX_READ_BYTES) as u32;
        let entry = if self.files_registered {
            opcode::Read::new(types::Fixed(read.place.stripe as u32), start, len)
        } else {
            let descriptor = self.files.stripes()[read.place.stripe].file.as_raw_fd();
            opcode::Read::new(types::Fd(descriptor), start, len)
        };
        Some(entry.offset(read.place.offset).build().user_data(slot))
    }

    /// Puts a read that can be done into a slot and its entry into the ring.
    fn push(&mut self, read: Read, place: Place) -> std::result::Result<(), Read> {
        let Read { file, offset, len, to, at, tag } = read;
        let given_back = |r: InFlight| Read { file, offset, len, to: r.to, at, tag };
        let in_flight = InFlight { to, at, tag, place, len };
        let slot = self.slots.insert(in_flight).map_err(given_back)?;
        let pushed = self.entry(slot).is_some_and(|entry| {
            // SAFETY: the entry's buffer is owned by its slot, `len` bytes of it exist
            // (`FileSet::place`), and it leaves the slot by `reap` only, or is leaked.
            unsafe { self.ring.submission().push(&entry) }.is_ok()
        });
        match pushed {
            true => Ok(()),
            false => self.slots.remove(slot).map_or(Ok(()), |r| Err(given_back(r))),
        }
    }
}

impl ReadEngine for Uring {
    /// Fills the ring; the system call of the next poll hands all of it over.
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        while self.in_flight() < self.capacity()
            && let Some(read) = reads.pop_front()
        {
            // An idle ring of another thread is replaced here, before it holds an entry.
            let is_idle = self.owner.is_some() && self.slots.used() == 0;
            let adopted = if is_idle { self.adopt() } else { Ok(()) };
            match adopted.and_then(|()| self.files.place(&read, Memory::Host)) {
                Ok(place) => {
                    if let Err(refused) = self.push(read, place) {
                        reads.push_front(refused);
                        return;
                    }
                }
                Err(error) => {
                    self.rejected.push(Done { tag: read.tag, to: read.to, result: Err(error) });
                }
            }
        }
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let rejected = self.rejected.len();
        done.append(&mut self.rejected);
        let wanted = match wait {
            Wait::One if rejected == 0 => self.slots.used().min(1),
            Wait::One | Wait::No => 0,
            Wait::All => self.slots.used(),
        };
        if self.slots.used() == 0 {
            return Ok(());
        }
        self.adopt()?;
        self.complete(done, wanted)
    }

    fn in_flight(&self) -> usize {
        self.slots.used() + self.rejected.len()
    }

    fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    fn name(&self) -> &'static str {
        "uring"
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let in_flight = self.slots.used();
        if in_flight == 0 {
            return;
        }
        let waited = self.adopt().and_then(|()| self.complete(&mut Vec::new(), in_flight));
        if waited.is_err() {
            // The kernel may still write into these: they are never freed.
            self.slots.drain().for_each(|read| mem::forget(read.to));
        }
    }
}

#[cfg(test)]
mod tests {
    use tiergraph_mem::AlignedBuf;

    use super::*;

    #[test]
    fn plain_rings_and_unregistered_files_read_as_well() {
        if let Err(reason) = probe() {
            println!("skipped: {reason}");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.blocks");
        std::fs::write(&path, vec![7; 8192]).unwrap();
        let mut files = FileSet::new();
        let file = files.open(&path).unwrap();
        let mut engine = Uring::new(Arc::new(files), 2).unwrap();
        (engine.setup, engine.files_registered) = (Setup::Plain, false);
        engine.ring = build(Setup::Plain, 2).unwrap();
        for round in 1..4 {
            let to = AlignedBuf::zeroed(8192).unwrap().into();
            let read = Read { file, offset: 0, len: 8192, to, at: 0, tag: round };
            engine.submit(&mut VecDeque::from([read]));
            let mut done = Vec::new();
            engine.poll(&mut done, Wait::One).unwrap();
            assert_eq!(*done[0].result.as_ref().unwrap(), 8192);
            assert!(done[0].tag == round && done[0].to.bytes().iter().all(|&byte| byte == 7));
        }
    }
}
