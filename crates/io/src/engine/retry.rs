//! Makes reads whole: continues short ones, repeats failed ones a few times, then gives up with
//! an error that names the file and the place.
//!
//! A read that goes well costs one look at its slot. A continuation reads on from the first page of
//! the destination that is not whole, because offsets must stay aligned.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::Status;

use crate::slots::Slots;
use crate::{Destination, Done, FileId, FileSet, Memory, Read, ReadEngine, Wait};

/// How often a [`Retry`] repeats a read, and how long it pauses before.
#[derive(Debug, Clone, Copy)]
pub struct RetrySettings {
    /// How many times in a row a read may fail or bring nothing new: at this count it is given up.
    pub attempts: u32,
    /// The pause after the first failure; it doubles each time.
    pub first_pause: Duration,
}

impl Default for RetrySettings {
    /// Five attempts within 15 ms: enough for a drive's hiccup, short enough for a broken one.
    fn default() -> Self {
        Self { attempts: 5, first_pause: Duration::from_millis(1) }
    }
}

impl RetrySettings {
    /// The pause before a read that failed so many times in a row is repeated.
    fn pause_after(&self, failures: u32) -> Duration {
        match failures {
            0 => Duration::ZERO,
            _ => self.first_pause * (1 << (failures - 1).min(16)),
        }
    }
}

/// An engine that continues or repeats reads of the one that it wraps, until each is whole or an error.
#[derive(Debug)]
pub struct Retry<E> {
    inner: E,
    files: Arc<FileSet>,
    settings: RetrySettings,
    slots: Slots<Pending>,
    /// Reads to be submitted again, and when.
    paused: Vec<(Instant, Read)>,
    /// Reads on their way to the engine below.
    below: VecDeque<Read>,
    scratch: Vec<Done>,
}

/// A read as its caller asked for it, and how far it is.
#[derive(Debug)]
struct Pending {
    tag: u64,
    file: FileId,
    offset: u64,
    at: usize,
    len: usize,
    /// Bytes that were read, from the first on.
    filled: usize,
    failures: u32,
}

/// What becomes of a completion.
enum Outcome {
    Finished(Destination, Result<usize>),
    Again(Read),
}

impl<E: ReadEngine> Retry<E> {
    /// Wraps an idle engine over `files`.
    pub fn new(inner: E, files: Arc<FileSet>, settings: RetrySettings) -> Self {
        let slots = Slots::new(inner.capacity());
        let (paused, below, scratch) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { inner, files, settings, slots, paused, below, scratch }
    }

    /// Submits what has paused long enough.
    fn resume(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        let now = Instant::now();
        let due = self.paused.extract_if(.., |(due, _)| *due <= now);
        self.below.extend(due.map(|(_, read)| read));
    }

    /// Ends a read or sends it down again.
    fn settle(&mut self, below: Done, done: &mut Vec<Done>) {
        let slot = below.tag;
        let Some(pending) = self.slots.get_mut(slot) else { return };
        match pending.advance(below, &self.files, self.settings.attempts) {
            Outcome::Again(read) => {
                let pause = self.settings.pause_after(pending.failures);
                self.paused.push((Instant::now() + pause, read));
            }
            Outcome::Finished(to, result) => {
                let tag = pending.tag;
                self.slots.remove(slot);
                done.push(Done { tag, to, result });
            }
        }
    }

    /// With nothing in flight below, waits until a paused read is due.
    fn sleep_until_due(&self) {
        if self.inner.in_flight() == 0
            && let Some(due) = self.paused.iter().map(|(due, _)| *due).min()
        {
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

impl Pending {
    /// Takes what a read below brought.
    fn advance(&mut self, below: Done, files: &FileSet, attempts: u32) -> Outcome {
        let expected = files.available(self.file, self.offset, self.len);
        let Done { tag: slot, mut to, result } = below;
        match result {
            Ok(count) => {
                let before = self.resume_at();
                // The read began at a whole page; what was read of that page before is there again.
                self.filled = before + count;
                if self.filled >= expected {
                    let end = self.at + self.len;
                    if let Some(rest) = to.bytes_mut().get_mut(self.at + expected..end) {
                        rest.fill(0);
                    }
                    return Outcome::Finished(to, Ok(expected));
                }
                self.failures = if self.resume_at() > before { 0 } else { self.failures + 1 };
                match self.failures >= attempts {
                    true => {
                        let error = self.cut_short(files, expected);
                        Outcome::Finished(to, Err(error))
                    }
                    false => self.rest(slot, to),
                }
            }
            Err(error) => {
                self.failures += 1;
                // Where the read failed, its part of the destination may hold anything.
                self.filled = self.resume_at();
                if is_passing(&error) && self.failures < attempts {
                    return self.rest(slot, to);
                }
                let error = if is_passing(&error) { self.lasting(error) } else { error };
                Outcome::Finished(to, Err(error))
            }
        }
    }

    /// Where the rest of the read starts: the first page that is not whole.
    fn resume_at(&self) -> usize {
        self.filled / PAGE_BYTES * PAGE_BYTES
    }

    /// The read that is still missing.
    fn rest(&self, slot: u64, to: Destination) -> Outcome {
        let start = self.resume_at();
        let (offset, len) = (self.offset + start as u64, self.len - start);
        Outcome::Again(Read { file: self.file, offset, len, to, at: self.at + start, tag: slot })
    }

    fn lasting(&self, error: Error) -> Error {
        error
            .got(format!("`{}` failed attempts", self.failures))
            .or_hint("look for the drive's errors with `dmesg`; other blocks may still be read")
    }

    fn cut_short(&self, files: &FileSet, expected: usize) -> Error {
        let end = io::Error::from(io::ErrorKind::UnexpectedEof);
        files
            .failure(files.stripe_of(self.file, self.offset), expected, end)
            .got(format!("`{}` after `{}` attempts", self.filled, self.failures))
            .hint("the file was cut short after it was opened: build or copy the graph again")
    }
}

/// Whether another attempt may go well.
fn is_passing(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|c| c.downcast_ref::<io::Error>());
    let passing = |cause: &io::Error| match cause.raw_os_error() {
        Some(code) => matches!(code, libc::EIO | libc::EAGAIN | libc::EINTR),
        None => {
            let of_drive = cause.get_ref().and_then(|inner| inner.downcast_ref::<Status>());
            of_drive.is_some_and(|status| status.may_be_repeated())
        }
    };
    error.kind() == ErrorKind::Io && cause.is_some_and(passing)
}

impl<E: ReadEngine> ReadEngine for Retry<E> {
    fn submit(&mut self, reads: &mut VecDeque<Read>) {
        let room = self.slots.capacity() - self.slots.used();
        for read in reads.drain(..room.min(reads.len())) {
            let Read { tag, file, offset, at, len, .. } = read;
            let pending = Pending { tag, file, offset, at, len, filled: 0, failures: 0 };
            // There is a slot for as many reads as there is room.
            let Ok(slot) = self.slots.insert(pending) else { continue };
            self.below.push_back(Read { tag: slot, ..read });
        }
        self.inner.submit(&mut self.below);
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        loop {
            self.resume();
            self.inner.submit(&mut self.below);
            let below = if wait == Wait::No { Wait::No } else { Wait::One };
            let mut completions = std::mem::take(&mut self.scratch);
            let polled = self.inner.poll(&mut completions, below);
            completions.drain(..).for_each(|completion| self.settle(completion, done));
            self.scratch = completions;
            polled?;
            if wait.is_over(done.len() > before, self.slots.used()) {
                return Ok(());
            }
            self.sleep_until_due();
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.used()
    }

    fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    fn writes_to(&self) -> Memory {
        self.inner.writes_to()
    }

    fn reads_when_polled(&self) -> bool {
        self.inner.reads_when_polled()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_failure_to_failure_up_to_a_bound() {
        let settings = RetrySettings::default();
        let pauses = [0, 1, 2, 3, 17, 18, 1000].map(|n| settings.pause_after(n).as_millis());
        assert_eq!(pauses, [0, 1, 2, 4, 1 << 16, 1 << 16, 1 << 16]);
    }
}
