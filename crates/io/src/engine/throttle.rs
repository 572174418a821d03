//! Imitates a drive: completions are held back until a [`ModelledDrive`] would have had them. It only ever
//! slows down what is below. Figures made with it are a model's: the engine is named `modelled`.

use std::collections::VecDeque;
use std::thread;
use std::time::Instant;

use tiergraph_core::Result;
use tiergraph_nvme::ModelledDrive;

use crate::slots::{Slots, submit_numbered};
use crate::{Done, Memory, Read, ReadEngine, Wait};

/// An engine that holds back completions of the one that it wraps to a modelled drive's speed.
#[derive(Debug)]
pub struct Throttle<E> {
    inner: E,
    drive: ModelledDrive,
    slots: Slots<(u64, Instant)>,
    held: Vec<(Instant, Done)>,
}

impl<E: ReadEngine> Throttle<E> {
    /// Wraps an idle engine. One that reads when it is polled has one read in flight: the drive learns of
    /// the next when its thread has the last.
    pub fn new(inner: E, drive: ModelledDrive) -> Self {
        let most = if inner.reads_when_polled() { 1 } else { inner.capacity() };
        Self { inner, drive, slots: Slots::new(most), held: Vec::new() }
    }

    /// Brings completions up from below.
    fn collect(&mut self, wait: Wait) -> Result<()> {
        let mut completions = Vec::new();
        let polled = self.inner.poll(&mut completions, wait);
        for below in completions {
            if let Some((tag, due)) = self.slots.remove(below.tag) {
                self.held.push((due, Done { tag, ..below }));
            }
        }
        polled
    }

    fn release(&mut self, done: &mut Vec<Done>) {
        let now = Instant::now();
        let due = self.held.extract_if(.., |(due, _)| *due <= now);
        done.extend(due.map(|(_, completion)| completion));
    }
}

impl<E: ReadEngine> ReadEngine for Throttle<E> {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let room = self.capacity() - self.in_flight();
        let drive = &self.drive;
        let entry = |read: &Read| (read.tag, drive.answer_at(read.len, Instant::now()));
        submit_numbered(&mut self.inner, &mut self.slots, reads, room, entry);
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        loop {
            let idle = wait != Wait::No && self.held.is_empty();
            self.collect(if idle { Wait::One } else { Wait::No })?;
            self.release(done);
            if wait.is_over(done.len() > before, self.in_flight()) {
                return Ok(());
            }
            if let Some(due) = self.held.iter().map(|(due, _)| *due).min() {
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.used() + self.held.len()
    }

    fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    fn writes_to(&self) -> Memory {
        self.inner.writes_to()
    }

    fn name(&self) -> &'static str {
        "modelled"
    }
}
