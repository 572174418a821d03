//! A queue pair, as a software controller serves it.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use super::Drive;
use super::faults::FaultDraws;
use super::file_reads::FileReads;
use crate::SharedMemory;
use crate::command::{COMMAND_BYTES, Command, io};
use crate::completion::{COMPLETION_BYTES, Status};
use crate::dma::Translation;
use crate::prp::{self, Piece, Prps};
use crate::queue::{next, ring_distance};

/// Commands that are taken from a queue before others have their turn.
const AT_ONCE: usize = 256;

/// Commands from one that is done to the one whose blocks are fetched into the caches meanwhile.
const AHEAD: u16 = 4;

/// A submission queue, its completion queue, and what is between them.
#[derive(Debug)]
pub(super) struct Served {
    id: u16,
    submissions: Ring,
    completions: Ring,
    /// The next command's entry.
    head: u16,
    /// The next completion's entry, and its phase tag.
    tail: u16,
    phase: bool,
    /// By identifier, whether a command has it that is not completed: a bit each.
    taken: Vec<u64>,
    /// Completions that are held back, the first that is due on top.
    held: BinaryHeap<Held>,
    /// Completions for which there was no entry yet.
    ready: VecDeque<Finished>,
    faults: FaultDraws,
    translation: Translation,
    pieces: Vec<Piece>,
    /// Commands of a batch whose bytes are read from files when all of it were taken.
    reading: Vec<Reading>,
}

/// A command whose bytes come with its batch's.
#[derive(Debug)]
struct Reading {
    finished: Finished,
    completions: usize,
    due: Option<Instant>,
}

/// A ring in shared memory.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    pub memory: SharedMemory,
    pub entries: u16,
}

/// A command that was done, or failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finished {
    pub cid: u16,
    pub status: Status,
    pub result: u32,
}

/// A completion that is held back until it is due.
#[derive(Debug, Clone, Copy)]
struct Held {
    due: Instant,
    finished: Finished,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    /// The one that is due first is the greatest: a heap's top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl Served {
    pub fn new(id: u16, submissions: Ring, completions: Ring, drive: &Drive) -> Self {
        Self {
            id,
            submissions,
            completions,
            head: 0,
            tail: 0,
            phase: true,
            taken: vec![0; (1 << 16) / 64],
            held: BinaryHeap::new(),
            ready: VecDeque::new(),
            faults: FaultDraws::new(drive.options.faults, id),
            translation: Translation::new(drive.map.clone()),
            pieces: Vec::new(),
            reading: Vec::new(),
        }
    }

    /// Takes commands and writes completions, as far as there are commands and entries; whether there was
    /// anything to do.
    pub fn serve(
        &mut self,
        drive: &Drive,
        reads: &mut FileReads,
        mut execute: impl FnMut(&mut Self, &Command, &mut FileReads) -> Finished,
    ) -> bool {
        let told = drive.registers.load_acquire(drive.capabilities.tail_doorbell(self.id));
        if told >= self.submissions.entries.into() {
            // Base 3.3.1.2.1: an invalid doorbell. A drive may also go on.
            drive.fail();
            return false;
        }
        let mut count = 0;
        // A command waits in its queue while completions wait for entries: memory is bounded.
        while u32::from(self.head) != told && count < AT_ONCE && self.ready.is_empty() {
            self.prefetch(drive, told);
            let command = self.command(self.head);
            self.head = next(self.head, self.submissions.entries);
            self.take(drive, &command, reads, &mut execute);
            count += 1;
        }
        if !reads.is_empty() {
            self.read(reads);
        }
        let completed = self.complete(drive);
        count > 0 || completed || !self.held.is_empty()
    }

    /// The command in an entry, which the host has told of.
    fn command(&self, entry: u16) -> Command {
        let mut command = Command::default();
        let at = usize::from(entry) * COMMAND_BYTES;
        self.submissions.memory.read_bytes(at, bytemuck::bytes_of_mut(&mut command));
        command
    }

    /// Begins to fetch what a command further on reads, if the host has told of it.
    fn prefetch(&self, drive: &Drive, told: u32) {
        let size = self.submissions.entries;
        let left = ring_distance(self.head, told as u16, size);
        if self.id == 0 || left <= AHEAD {
            return;
        }
        let command =
            self.command(((u32::from(self.head) + u32::from(AHEAD)) % u32::from(size)) as u16);
        let (first, blocks) = (command.first_block(), u64::from(command.blocks()));
        let block_bytes = drive.options.block_bytes;
        let is_there =
            first.checked_add(blocks).is_some_and(|end| end <= drive.storage.bytes() / block_bytes);
        if command.opcode == io::READ && is_there {
            drive.storage.prefetch(first * block_bytes, (blocks * block_bytes) as usize);
        }
    }

    /// Does a command and decides when and how often it is completed.
    fn take(
        &mut self,
        drive: &Drive,
        command: &Command,
        reads: &mut FileReads,
        execute: &mut impl FnMut(&mut Self, &Command, &mut FileReads) -> Finished,
    ) {
        let cid = command.cid;
        let (word, bit) = (usize::from(cid / 64), 1 << (cid % 64));
        if self.taken[word] & bit != 0 {
            self.ready.push_back(Finished { cid, status: Status::ID_CONFLICT, result: 0 });
            return;
        }
        let (fate, before) = (self.faults.next(), reads.len());
        let finished = match fate.failed {
            Some(status) => Finished { cid, status, result: 0 },
            None => execute(self, command, reads),
        };
        self.taken[word] |= bit;
        let (completions, due) = (fate.completions, fate.due.max(self.answered(drive, command)));
        match reads.len() > before {
            true => self.reading.push(Reading { finished, completions, due }),
            false => self.end(finished, completions, due),
        }
    }

    /// Completes a command that was done so many times, when it is due.
    fn end(&mut self, finished: Finished, completions: usize, due: Option<Instant>) {
        for _ in 0..completions {
            match due {
                Some(due) => self.held.push(Held { due, finished }),
                None => self.ready.push_back(finished),
            }
        }
    }

    /// Reads the files' bytes of all commands of a batch, and completes them.
    fn read(&mut self, reads: &mut FileReads) {
        let mut reading = std::mem::take(&mut self.reading);
        reads.read(|number, status| reading[number].finished.status = status);
        for Reading { finished, completions, due } in reading.drain(..) {
            self.end(finished, completions, due);
        }
        self.reading = reading;
    }

    /// When the drive that is imitated answers a command; `None` without one, and of the admin queue.
    fn answered(&self, drive: &Drive, command: &Command) -> Option<Instant> {
        let model = drive.options.drive.as_ref().filter(|_| self.id != 0)?;
        let bytes = u64::from(command.blocks()) * drive.options.block_bytes;
        Some(model.answer_at(bytes as usize, Instant::now()))
    }

    /// Writes completions that are ready and due, as far as there are entries.
    fn complete(&mut self, drive: &Drive) -> bool {
        if !self.held.is_empty() {
            let now = Instant::now();
            while let Some(first) = self.held.peek()
                && first.due <= now
            {
                self.ready.extend(self.held.pop().map(|held| held.finished));
            }
        }
        if self.ready.is_empty() {
            return false;
        }
        self.faults.shuffle(self.ready.make_contiguous());
        let doorbell = drive.capabilities.head_doorbell(self.id);
        let freed = drive.registers.load_acquire(doorbell);
        let mut any = false;
        // Full (Base 3.3.1.4): the next entry is one that the host has not given back.
        while u32::from(next(self.tail, self.completions.entries)) != freed
            && let Some(finished) = self.ready.pop_front()
        {
            self.post(finished);
            any = true;
        }
        any
    }

    fn post(&mut self, finished: Finished) {
        let Finished { cid, status, result } = finished;
        let (at, memory) = (usize::from(self.tail) * COMPLETION_BYTES, &self.completions.memory);
        let phase = u32::from(self.phase);
        memory.store(at, result);
        memory.store(at + 4, 0);
        memory.store(at + 8, u32::from(self.id) << 16 | u32::from(self.head));
        let last = (u32::from(status.0) << 1 | phase) << 16 | u32::from(cid);
        memory.store_release(at + 12, last);
        self.taken[usize::from(cid / 64)] &= !(1 << (cid % 64));
        self.tail = next(self.tail, self.completions.entries);
        self.phase ^= self.tail == 0;
    }

    /// The memory behind `len` bytes at a bus address, and the byte of it where they begin.
    pub fn find(&mut self, bus: u64, len: usize) -> Option<(&SharedMemory, usize)> {
        self.translation.find(bus, len)
    }

    /// Does a command of an I/O queue (NVM Command Set 3.2).
    pub fn move_blocks(
        &mut self,
        drive: &Drive,
        command: &Command,
        reads: &mut FileReads,
    ) -> Status {
        match self.try_move(drive, command, reads) {
            Ok(()) => Status::SUCCESS,
            Err(status) => status,
        }
    }

    fn try_move(
        &mut self,
        drive: &Drive,
        command: &Command,
        reads: &mut FileReads,
    ) -> Result<(), Status> {
        if command.flags != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if command.nsid != super::NAMESPACE {
            return Err(Status::INVALID_NAMESPACE);
        }
        match command.opcode {
            io::FLUSH => return Ok(()),
            io::READ | io::WRITE => {}
            _ => return Err(Status::INVALID_OPCODE),
        }
        let (block_bytes, blocks) = (drive.options.block_bytes, u64::from(command.blocks()));
        let len = blocks * block_bytes;
        if len > drive.options.most_bytes {
            return Err(Status::INVALID_FIELD);
        }
        let end = command.first_block().checked_add(blocks);
        if end.is_none_or(|end| end > drive.storage.bytes() / block_bytes) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let Self { pieces, translation, reading, .. } = self;
        let number = reading.len();
        pieces.clear();
        let prps = Prps { prp1: command.prp1, prp2: command.prp2 };
        let mut entry = |at: u64| translation.find(at, 8).map(|(memory, at)| memory.load64(at));
        prp::walk(prps, len as usize, &mut entry, pieces)?;
        let mut offset = command.first_block() * block_bytes;
        for &Piece { bus, len } in &*pieces {
            let (memory, at) = translation.find(bus, len).ok_or(Status::DATA_TRANSFER_ERROR)?;
            match command.opcode {
                io::READ => {
                    let mut read = |read| reads.push(number, read);
                    if !drive.storage.plan(offset, memory, at, len, &mut read) {
                        drive.storage.read(offset, memory, at, len)?;
                    }
                }
                _ => drive.storage.write(offset, memory, at, len)?,
            }
            offset += len as u64;
        }
        Ok(())
    }
}
