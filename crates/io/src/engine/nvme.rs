//! NVMe drives, asked by commands: through queue pairs, polled without a system call (user-space I/O), or,
//! where the drives stay with the kernel, through a ring that passes them on.
//!
//! A read is cut into commands of at most 128 KiB. Those of a block read into its destination, which the
//! drives reach from its first read on. Those of less, where reaching a destination costs more than a copy,
//! read to a span of staging memory each, and are copied from there.
//!
//! A drive that fails may write to destinations at any later time, so that they are given up, never freed.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::drives::{Completed, DriveQueues, LOOKS, NvmeDrives, Piece, late};
use crate::file_set::Place;
use crate::slots::Slots;
use crate::{Destination, Done, Memory, Read, ReadEngine, Wait};

/// Reads by commands for the drives that hold the files.
pub struct Nvme {
    drives: Arc<NvmeDrives>,
    /// None only while it is dropped.
    queues: Option<Box<dyn DriveQueues>>,
    reads: Slots<Reading>,
    /// Parts of reads that there was no room for, in order.
    waiting: VecDeque<Part>,
    /// By drive and slot: the part of a read that a command is for.
    parts: Vec<Vec<Option<(Part, Instant)>>>,
    rejected: Vec<Done>,
    /// Why no command can be given to the drives any more.
    broken: Option<String>,
    /// When the commands in flight were looked through last for late ones.
    looked: Instant,
}

/// A read in flight.
struct Reading {
    to: Destination,
    at: usize,
    tag: u64,
    place: Place,
    /// Bytes that are there before the file's end.
    available: usize,
    /// Whether drives read to the destination, not to staging memory.
    is_direct: bool,
    /// Parts that have not ended.
    left: usize,
    failed: Option<Error>,
}

impl Reading {
    /// The address of the read's first byte for a drive, if it reads there.
    fn direct(&mut self, queues: &mut dyn DriveQueues, drive: usize) -> Result<Option<u64>> {
        match &mut self.to {
            Destination::Host(buffer) if self.is_direct => {
                // SAFETY: the buffer belongs to this engine until all commands of the read have ended. If they
                // do not, it is never freed (`drop`).
                let start = unsafe { queues.reach(drive, buffer) }?;
                Ok(Some(start + self.at as u64))
            }
            _ => Ok(None),
        }
    }
}

/// A piece of a read.
#[derive(Debug, Clone, Copy)]
struct Part {
    read: u64,
    piece: Piece,
}

impl Nvme {
    /// An engine over `drives` with up to `depth` reads in flight.
    ///
    /// # Errors
    /// A drive or the system has no queue left.
    pub fn new(drives: &Arc<NvmeDrives>, depth: usize) -> Result<Self> {
        let queues = drives.take()?;
        let parts = (0..drives.count()).map(|drive| vec![None; queues.slots(drive)]).collect();
        Ok(Self {
            drives: Arc::clone(drives),
            queues: Some(queues),
            reads: Slots::new(depth.max(1)),
            waiting: VecDeque::new(),
            parts,
            rejected: Vec::new(),
            broken: None,
            looked: Instant::now(),
        })
    }

    /// Takes a read, in parts.
    fn begin(&mut self, read: Read) -> std::result::Result<(), Done> {
        let Read { file, offset, len, at, tag, .. } = read;
        let available = self.drives.files().available(file, offset, len);
        let located = self
            .drives
            .files()
            .place(&read, Memory::Host)
            .and_then(|place| Ok((place, self.drives.pieces(&read, available)?)));
        let (place, pieces) = match located {
            Ok(located) => located,
            Err(error) => return Err(Done { tag, to: read.to, result: Err(error) }),
        };
        if available == 0 {
            return Err(Done { tag, to: read.to, result: Ok(0) });
        }
        let left = pieces.len();
        let is_direct = self.queues.as_ref().is_some_and(|q| available >= q.direct_bytes());
        let reading =
            Reading { to: read.to, at, tag, place, available, is_direct, left, failed: None };
        let full = |Reading { to, .. }| {
            let error = Error::new(ErrorKind::Internal, "read").got("more reads than have room");
            Done { tag, to, result: Err(error) }
        };
        let read = self.reads.insert(reading).map_err(full)?;
        self.waiting.extend(pieces.into_iter().map(|piece| Part { read, piece }));
        Ok(())
    }

    /// Gives waiting parts to the drives, as far as there is room; whether there were any.
    fn push(&mut self) -> Result<bool> {
        let Some(queues) = &mut self.queues else { return Ok(false) };
        if self.waiting.is_empty() {
            return Ok(false);
        }
        let now = Instant::now();
        let mut full = 0;
        while full < self.waiting.len()
            && let Some(part) = self.waiting.pop_front()
        {
            let Some(reading) = self.reads.get_mut(part.read) else { continue };
            let Piece { drive, offset, begin, len } = part.piece;
            let to = reading.direct(&mut **queues, drive)?.map(|start| start + begin as u64);
            match queues.read(drive, offset, len, to)? {
                Some(slot) => {
                    self.parts[drive][usize::from(slot)] = Some((part, now));
                    full = 0;
                }
                None => {
                    // Parts for other drives may find room.
                    self.waiting.push_back(part);
                    full += 1;
                }
            }
        }
        queues.ring_doorbells();
        Ok(true)
    }

    /// Takes what the drives have read.
    fn reap(&mut self, done: &mut Vec<Done>) -> Result<()> {
        let Some(queues) = &mut self.queues else { return Ok(()) };
        queues.exchange()?;
        while let Some(Completed { drive, slot, result }) = queues.poll()? {
            let Some((part, _)) = self.parts[drive][usize::from(slot)].take() else { continue };
            let Some(reading) = self.reads.get_mut(part.read) else { continue };
            if let Err(error) = result {
                let error = failure(&self.drives, reading.place, part.piece, error);
                reading.failed.get_or_insert(error);
            } else if !reading.is_direct {
                let Piece { begin, len, .. } = part.piece;
                let begin = reading.at + begin;
                queues.copy(drive, slot, &mut reading.to.bytes_mut()[begin..begin + len]);
            }
            reading.left -= 1;
            if reading.left == 0
                && let Some(Reading { to, tag, available, failed, .. }) =
                    self.reads.remove(part.read)
            {
                let result = failed.map_or(Ok(available), Err);
                done.push(Done { tag, to, result });
            }
        }
        Ok(())
    }

    /// Has the drives begin with what found room now.
    fn refill(&mut self) -> Result<()> {
        match (self.push()?, &mut self.queues) {
            (true, Some(queues)) => queues.exchange(),
            _ => Ok(()),
        }
    }

    /// Refuses commands that have been in flight for longer than drives may take.
    fn check_late(&mut self) -> Result<()> {
        let (most, now) = (self.drives.timing().command, Instant::now());
        // Looking through all is not for every poll.
        if now.duration_since(self.looked) < most / LOOKS {
            return Ok(());
        }
        self.looked = now;
        let is_late = |flight: &(Part, Instant)| now.duration_since(flight.1) > most;
        let late = self.parts.iter().position(|parts| parts.iter().flatten().any(is_late));
        late.map_or(Ok(()), |drive| {
            Err(self::late("read from the NVMe drive", self.drives.name(drive), most))
        })
    }

    /// Gives parts to the drives and takes what they have read. Where a drive does not complete a command in
    /// its time, all that is in flight has failed.
    fn step(&mut self, done: &mut Vec<Done>) -> Result<()> {
        if let Some(why) = &self.broken {
            return Err(Error::new(ErrorKind::Io, "read from NVMe drives").got(why));
        }
        let worked = self.push().and_then(|_| self.reap(done)).and_then(|()| self.refill());
        let worked = worked.and_then(|()| self.check_late());
        if let Err(error) = worked {
            self.broken = Some(format!("an earlier failure: {error}"));
            return Err(error);
        }
        Ok(())
    }
}

impl ReadEngine for Nvme {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        while self.in_flight() < self.capacity()
            && let Some(read) = reads.pop_front()
        {
            if let Err(done) = self.begin(read) {
                self.rejected.push(done);
            }
        }
        // What fails is told by the next poll.
        if self.broken.is_none()
            && let Err(error) = self.push()
        {
            self.broken = Some(error.to_string());
        }
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        done.append(&mut self.rejected);
        loop {
            self.step(done)?;
            if wait.is_over(done.len() > before, self.in_flight()) {
                return Ok(());
            }
            if let Some(queues) = &mut self.queues {
                queues.rest(self.drives.timing().command / LOOKS)?;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.reads.used() + self.rejected.len()
    }

    fn capacity(&self) -> usize {
        self.reads.capacity()
    }

    fn name(&self) -> &'static str {
        self.drives.engine()
    }
}

impl Drop for Nvme {
    /// Waits for the commands in flight, which read to memory that the next engine uses. What they do not
    /// end in their time is given up.
    fn drop(&mut self) {
        let waited = self.poll(&mut Vec::new(), Wait::All);
        self.reads.drain().for_each(|reading| std::mem::forget(reading.to));
        if let Some(queues) = self.queues.take() {
            self.drives.give_back(queues, waited.is_ok());
        }
    }
}

fn failure(drives: &NvmeDrives, place: Place, piece: Piece, error: io::Error) -> Error {
    let Piece { drive, offset, begin, len } = piece;
    let at = Place { offset: place.offset + begin as u64, ..place };
    let name = drives.name(drive);
    drives.files().failure(at, len, error).expected(format!(
        "`{len}` bytes at offset `{}`, from byte `{offset}` of NVMe drive {name} on",
        at.offset
    ))
}
