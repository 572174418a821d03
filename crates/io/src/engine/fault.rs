//! Breaks reads on purpose, the same way for the same seed: what a drive, a cable or a kernel may
//! do to them. For tests of everything above.
//!
//! A page of a file with a lasting fault fails every read of it; every other fault depends on how
//! many reads came before. A buffer whose read was broken is overwritten, so that bytes nobody
//! may look at are wrong and not merely old.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tiergraph_core::{Draws, Result, mix, unit};
use tiergraph_mem::PAGE_BYTES;

use crate::file_set::Place;
use crate::slots::{Slots, submit_numbered};
use crate::{Destination, Done, FileSet, Memory, Read, ReadEngine, Wait};

/// What a broken read's buffer holds.
const GARBAGE: u8 = 0xEE;

/// The faults that a [`Fault`] makes, and how often; probabilities from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultSettings {
    /// The seed of all random choices.
    pub seed: u64,
    /// How likely a read is to fail with `EIO` this time.
    pub transient: f64,
    /// How likely a page is to be one that always fails with `EIO`.
    pub lasting: f64,
    /// How likely a read is to bring fewer bytes than there are.
    pub short: f64,
    /// Whether completions are shuffled.
    pub reorder: bool,
    /// The most polls that a completion is held back for.
    pub delay_polls: u32,
}

/// An engine that breaks some reads of the engine that it wraps: for tests.
#[derive(Debug)]
pub struct Fault<E> {
    inner: E,
    files: Arc<FileSet>,
    settings: FaultSettings,
    slots: Slots<Asked>,
    /// Completions held back, and for how many polls more.
    held: Vec<(u32, Done)>,
    draws: Draws,
}

/// What was asked for.
#[derive(Debug)]
struct Asked {
    tag: u64,
    /// The part of the destination that the read is to fill.
    at: usize,
    len: usize,
    /// None for a read that the engine below refuses.
    place: Option<Place>,
}

impl<E: ReadEngine> Fault<E> {
    /// Wraps an idle engine over `files`.
    pub fn new(inner: E, files: Arc<FileSet>, settings: FaultSettings) -> Self {
        let (slots, draws) = (Slots::new(inner.capacity()), Draws::new(settings.seed));
        Self { inner, files, settings, slots, held: Vec::new(), draws }
    }

    /// Whether any page of a read is one that always fails.
    fn is_lost(&self, place: Place, len: usize) -> bool {
        let first = place.offset / PAGE_BYTES as u64;
        (first..first + (len / PAGE_BYTES) as u64).any(|page| {
            let key = mix(self.settings.seed ^ mix(page ^ (place.stripe as u64) << 48));
            unit(key) < self.settings.lasting
        })
    }

    /// Decides what becomes of a completion from below, and for how long it is held.
    fn break_or_pass(&mut self, below: Done) {
        let Some(asked) = self.slots.remove(below.tag) else { return };
        let mut done = Done { tag: asked.tag, ..below };
        if let (Some(place), Ok(count)) = (asked.place, &done.result) {
            let count = *count;
            if self.is_lost(place, asked.len) || self.draws.happens(self.settings.transient) {
                let eio = io::Error::from_raw_os_error(libc::EIO);
                done.result = Err(self.files.failure(place, asked.len, eio));
                spoil(&mut done.to, asked.at, asked.at + asked.len);
            } else if count > 0 && self.draws.happens(self.settings.short) {
                let fewer = self.draws.below(count as u64) as usize;
                done.result = Ok(fewer);
                spoil(&mut done.to, asked.at + fewer, asked.at + asked.len);
            }
        }
        let polls = match self.settings.delay_polls {
            0 => 0,
            most => self.draws.below(u64::from(most) + 1) as u32,
        };
        self.held.push((polls, done));
    }

    /// Hands out what was held long enough, shuffled if told so.
    fn release(&mut self, done: &mut Vec<Done>) {
        let first = done.len();
        for (polls, completion) in std::mem::take(&mut self.held) {
            match polls.checked_sub(1) {
                None => done.push(completion),
                Some(left) => self.held.push((left, completion)),
            }
        }
        if self.settings.reorder {
            for last in (first + 1..done.len()).rev() {
                let other = first + self.draws.below((last - first + 1) as u64) as usize;
                done.swap(last, other);
            }
        }
    }
}

/// Overwrites bytes that nobody may look at, where this process can.
fn spoil(to: &mut Destination, from: usize, end: usize) {
    if let Some(bytes) = to.bytes_mut().get_mut(from..end) {
        bytes.fill(GARBAGE);
    }
}

impl<E: ReadEngine> ReadEngine for Fault<E> {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let room = self.capacity() - self.in_flight();
        let (files, memory) = (&self.files, self.inner.writes_to());
        let entry = |read: &Read| {
            let place = files.place(read, memory).ok();
            Asked { tag: read.tag, at: read.at, len: read.len, place }
        };
        submit_numbered(&mut self.inner, &mut self.slots, reads, room, entry);
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        loop {
            let below = if wait == Wait::No || !self.held.is_empty() { Wait::No } else { wait };
            let mut completions = Vec::new();
            let polled = self.inner.poll(&mut completions, below);
            completions.into_iter().for_each(|completion| self.break_or_pass(completion));
            polled?;
            self.release(done);
            if wait.is_over(done.len() > before, self.in_flight()) {
                return Ok(());
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
        "fault"
    }
}
