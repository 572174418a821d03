//! A queue pair, as a CPU thread asks by it (Base 3.3.1, 3.3.2).
//!
//! Nothing here waits or calls the system: commands are written into the submission queue, one doorbell
//! tells the controller of all of them, and completions are found by looking at memory.
//!
//! A command in flight has a *slot*, which callers number their buffers by. Its identifier is the slot and,
//! in the bits above it, how often the slot was used (16 uses apart or more, by the queue's size). So a
//! completion that a controller gives twice is not taken for that of the next command in the slot. It is an
//! error, as is one of a command that never was, and ends the queue pair's use: memory that such a command
//! names may be written at any time.

use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};

use crate::command::{COMMAND_BYTES, Command};
use crate::completion::{COMPLETION_BYTES, Completion};
use crate::registers::Capabilities;
use crate::{SharedMemory, Status};

/// A submission queue and its completion queue, of as many entries each.
#[derive(Debug)]
pub struct QueuePair {
    id: u16,
    size: u16,
    submissions: SharedMemory,
    completions: SharedMemory,
    doorbells: Doorbells,
    /// The next free entry of the submission queue, and up to where the controller was told of commands.
    tail: u16,
    told: u16,
    /// Up to where the controller has said that it has taken commands.
    taken: u16,
    /// The next completion's entry, the phase tag that it will have, and up to where the controller was
    /// told that completions were taken.
    head: u16,
    phase: bool,
    freed: u16,
    /// By slot, the identifier of the last command in it, and whether that is in flight.
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Bits of an identifier that are the slot.
    slot_bits: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    cid: u16,
    in_flight: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The slot that the command had.
    pub slot: u16,
    /// Whether it was done, or why not.
    pub status: Status,
    /// Its result, of admin commands that have one.
    pub result: u32,
}

/// The two registers of a queue pair.
#[derive(Debug, Clone)]
pub struct Doorbells {
    registers: SharedMemory,
    tail: usize,
    head: usize,
}

impl Doorbells {
    /// The doorbells of queue pair `id` in a controller's `registers`.
    pub fn new(registers: &SharedMemory, capabilities: &Capabilities, id: u16) -> Self {
        let (tail, head) = (capabilities.tail_doorbell(id), capabilities.head_doorbell(id));
        Self { registers: registers.clone(), tail, head }
    }
}

impl QueuePair {
    /// Queue pair `id` of `size` entries (2 to 4096): `submissions` and `completions` hold as many commands
    /// and completions, and both are zero.
    ///
    /// # Panics
    /// If they do not.
    pub fn new(
        id: u16,
        size: u16,
        submissions: SharedMemory,
        completions: SharedMemory,
        doorbells: Doorbells,
    ) -> Self {
        let entries = usize::from(size);
        assert!((2..=4096).contains(&size), "a queue has 2 to 4096 entries");
        assert!(
            submissions.len() >= entries * COMMAND_BYTES,
            "the submission queue has its memory"
        );
        assert!(
            completions.len() >= entries * COMPLETION_BYTES,
            "the completion queue has its memory"
        );
        Self {
            id,
            size,
            submissions,
            completions,
            doorbells,
            tail: 0,
            told: 0,
            taken: 0,
            head: 0,
            phase: true,
            freed: 0,
            slots: (0..size - 1).map(|cid| Slot { cid, in_flight: false }).collect(),
            free: (0..size - 1).rev().collect(),
            slot_bits: u16::BITS - (size - 1).leading_zeros(),
        }
    }

    /// The number of the queue pair at its controller; 0 is the admin queue.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The most commands that may be in flight: one less than there are entries, so that neither queue is
    /// ever full. Slots are below it.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Commands that were pushed and are not completed.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many commands there is room for now.
    pub fn room(&self) -> usize {
        let waiting = usize::from(ring_distance(self.taken, self.tail, self.size));
        self.free.len().min(usize::from(self.size) - 1 - waiting)
    }

    /// The slot that the next command gets; `None` without room.
    pub fn next_slot(&self) -> Option<u16> {
        (self.room() > 0).then(|| self.free.last().copied()).flatten()
    }

    /// Writes a command into the queue and gives its slot; `None` without room. The controller learns of it
    /// when [`ring`](Self::ring) is called.
    #[inline]
    pub fn push(&mut self, command: Command) -> Option<u16> {
        let number = self.next_slot()?;
        self.free.pop();
        let slot = &mut self.slots[usize::from(number)];
        let cid = slot.cid.wrapping_add(1 << self.slot_bits);
        *slot = Slot { cid, in_flight: true };
        let at = usize::from(self.tail) * COMMAND_BYTES;
        self.submissions.write_bytes(at, bytemuck::bytes_of(&Command { cid, ..command }));
        self.tail = next(self.tail, self.size);
        Some(number)
    }

    /// Tells the controller of all commands that were pushed since, by one doorbell.
    #[inline]
    pub fn ring(&mut self) {
        if self.told != self.tail {
            self.doorbells.registers.store_release(self.doorbells.tail, self.tail.into());
            self.told = self.tail;
        }
    }

    /// The next command that has ended, if there is one. The entry of its completion is the controller's
    /// again after [`free_entries`](Self::free_entries).
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a completion that cannot be: of another queue, of no command in flight, or
    /// that says that commands were taken which were never there.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Ended>> {
        let at = usize::from(self.head) * COMPLETION_BYTES;
        let last = self.completions.load_acquire(at + 12);
        let is_new = (last >> 16 & 1 == 1) == self.phase;
        if !is_new {
            return Ok(None);
        }
        let words = [0, 4, 8].map(|word| self.completions.load(at + word));
        let completion: Completion = bytemuck::cast([words[0], words[1], words[2], last]);
        self.head = next(self.head, self.size);
        self.phase ^= self.head == 0;
        self.accept(&completion).map(Some)
    }

    /// Whether `count` completions are there, at least one and no more than are in flight. Looking only for
    /// many at a time leaves the memory of those that are being written to the controller.
    #[inline]
    pub fn has_ended(&self, count: u16) -> bool {
        let at = u32::from(self.head) + u32::from(count.max(1)) - 1;
        let (entry, wraps) = (at % u32::from(self.size), at >= u32::from(self.size));
        let last = self.completions.load_acquire(entry as usize * COMPLETION_BYTES + 12);
        (last >> 16 & 1 == 1) == (self.phase ^ wraps)
    }

    /// Gives the entries of completions that were polled back to the controller, by one doorbell.
    #[inline]
    pub fn free_entries(&mut self) {
        if self.freed != self.head {
            self.doorbells.registers.store_release(self.doorbells.head, self.head.into());
            self.freed = self.head;
        }
    }

    /// Waits until a command ends, for as long as `most`.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`ErrorKind::Io`] if none comes.
    pub fn wait(&mut self, most: Duration) -> Result<Ended> {
        let since = Instant::now();
        loop {
            if let Some(ended) = self.poll()? {
                self.free_entries();
                return Ok(ended);
            }
            if since.elapsed() > most {
                return Err(Error::new(ErrorKind::Io, "wait for an NVMe controller")
                    .object(format!("queue {}", self.id))
                    .expected(format!("a completion within `{} ms`", most.as_millis()))
                    .got(format!("none, with {} commands in flight", self.in_flight())));
            }
            std::thread::yield_now();
        }
    }

    /// Takes note of a completion.
    #[inline]
    fn accept(&mut self, completion: &Completion) -> Result<Ended> {
        let &Completion { sq_head, sq_id, cid, result, .. } = completion;
        let taken = ring_distance(self.taken, sq_head, self.size);
        let could_take = ring_distance(self.taken, self.told, self.size);
        let number = cid & ((1 << self.slot_bits) - 1);
        let slot = self.slots.get_mut(usize::from(number));
        match slot.filter(|slot| slot.in_flight && slot.cid == cid) {
            Some(slot) if sq_id == self.id && sq_head < self.size && taken <= could_take => {
                slot.in_flight = false;
            }
            _ => return Err(self.impossible(completion)),
        }
        self.taken = sq_head;
        self.free.push(number);
        Ok(Ended { slot: number, status: completion.status(), result })
    }

    #[cold]
    fn impossible(&self, completion: &Completion) -> Error {
        let &Completion { sq_head, sq_id, cid, .. } = completion;
        Error::new(ErrorKind::Io, "take a completion of")
            .object(format!("NVMe queue {}", self.id))
            .expected("a command in flight")
            .got(format!("command {cid} of queue {sq_id}, with commands taken up to {sq_head}"))
    }
}

/// The entry behind `entry` of a ring of `size`.
pub(crate) fn next(entry: u16, size: u16) -> u16 {
    if entry + 1 == size { 0 } else { entry + 1 }
}

/// Entries from `from` up to `to` in a ring of `size`.
pub(crate) fn ring_distance(from: u16, to: u16, size: u16) -> u16 {
    if to >= from { to - from } else { size - from + to }
}

/// An error of a command that did not succeed.
pub(crate) fn failure(op: &str, status: Status) -> Error {
    Error::new(ErrorKind::Io, op).got(format!("{status} of the NVMe controller"))
}
