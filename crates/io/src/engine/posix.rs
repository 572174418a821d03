//! Blocking `pread`, one read at a time, in the order of submission.
//!
//! This is the papers' synchronous, kernel-space baseline: a worker that polls waits for the
//! drive, and the drive then waits for the worker.

use std::collections::VecDeque;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tiergraph_core::Result;

use crate::{Done, FileSet, Memory, Read, ReadEngine, Wait};

/// An engine that reads by blocking `pread`, when it is polled and on the thread that polls.
#[derive(Debug)]
pub struct Posix {
    files: Arc<FileSet>,
    queue: VecDeque<Read>,
    depth: usize,
}

impl Posix {
    /// An engine over `files` that queues up to `depth` reads.
    pub fn new(files: Arc<FileSet>, depth: usize) -> Self {
        let depth = depth.max(1);
        Self { files, queue: VecDeque::with_capacity(depth), depth }
    }
}

impl ReadEngine for Posix {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let room = self.depth - self.queue.len();
        self.queue.extend(reads.drain(..room.min(reads.len())));
    }

    /// Reads one, or all for [`Wait::All`]. [`Wait::No`] reads one too: there is no other time at
    /// which a synchronous engine could.
    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let count = if wait == Wait::All { self.queue.len() } else { self.queue.len().min(1) };
        done.extend(self.queue.drain(..count).map(|read| read_now(&self.files, read)));
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queue.len()
    }

    fn capacity(&self) -> usize {
        self.depth
    }

    fn reads_when_polled(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "posix"
    }
}

/// Does one read with one `pread`.
pub(crate) fn read_now(files: &FileSet, mut read: Read) -> Done {
    let result = files.place(&read, Memory::Host).and_then(|place| {
        files.stripes()[place.stripe]
            .file
            .read_at(&mut read.to.bytes_mut()[read.at..read.at + read.len], place.offset)
            .map_err(|e| files.failure(place, read.len, e))
    });
    Done { tag: read.tag, to: read.to, result }
}
