//! Makes reads whole: continues short ones, repeats failed ones a few times, then gives up with
//! an error that names the file and the place.
//!
//! A read that goes well costs one look at its slot. A continuation reads into a buffer of its own
//! and copies: offsets must stay aligned, and it is rare.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::slots::Slots;
use crate::{Done, FileId, FileSet, Read, ReadEngine, Wait};

/// How stubborn [`Retry`] is.
#[derive(Debug, Clone, Copy)]
pub struct RetrySettings {
    /// How many times in a row a read may fail or bring nothing new.
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

/// An engine whose reads are whole, or errors.
#[derive(Debug)]
pub struct Retry<E> {
    inner: E,
    files: Arc<FileSet>,
    settings: RetrySettings,
    slots: Slots<Pending>,
    /// Reads to be submitted again, and when.
    paused: Vec<(Instant, Read)>,
    scratch: Vec<Done>,
}

/// A read as its caller asked for it, and how far it is.
#[derive(Debug)]
struct Pending {
    tag: u64,
    file: FileId,
    offset: u64,
    len: usize,
    /// The caller's buffer with its first `filled` bytes read; empty while it is below, whole.
    head: AlignedBuf,
    filled: usize,
    failures: u32,
}

/// What becomes of a completion.
enum Outcome {
    Finished(AlignedBuf, Result<usize>),
    Again(Read),
}

impl<E: ReadEngine> Retry<E> {
    /// Wraps an idle engine over `files`.
    pub fn new(inner: E, files: Arc<FileSet>, settings: RetrySettings) -> Self {
        let slots = Slots::new(inner.capacity());
        Self { inner, files, settings, slots, paused: Vec::new(), scratch: Vec::new() }
    }

    /// Submits what has paused long enough.
    fn resume(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        let now = Instant::now();
        for (due, read) in std::mem::take(&mut self.paused) {
            let refused = if due <= now { self.inner.submit(read).err() } else { Some(read) };
            self.paused.extend(refused.map(|read| (due, read)));
        }
    }

    /// Ends a read or sends it down again.
    fn settle(&mut self, below: Done, done: &mut Vec<Done>) {
        let slot = below.tag;
        let Some(pending) = self.slots.get_mut(slot) else { return };
        match pending.advance(slot, below, &self.files, self.settings.attempts) {
            Outcome::Again(read) => {
                let doublings = pending.failures.saturating_sub(1).min(16);
                let pause = match pending.failures {
                    0 => Duration::ZERO,
                    _ => self.settings.first_pause * (1 << doublings),
                };
                self.paused.push((Instant::now() + pause, read));
            }
            Outcome::Finished(buffer, result) => {
                let tag = pending.tag;
                self.slots.remove(slot);
                done.push(Done { tag, buffer, result });
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
    fn advance(&mut self, slot: u64, below: Done, files: &FileSet, attempts: u32) -> Outcome {
        let expected = files.available(self.file, self.offset, self.len);
        match below.result {
            Ok(count) => {
                let before = self.resume_at();
                let spare = self.keep(below.buffer, count);
                if self.filled >= expected {
                    let mut buffer = std::mem::take(&mut self.head);
                    buffer[expected..self.len].fill(0);
                    return Outcome::Finished(buffer, Ok(expected));
                }
                self.failures = if self.resume_at() > before { 0 } else { self.failures + 1 };
                if self.failures >= attempts {
                    let error = self.cut_short(files, expected);
                    return Outcome::Finished(std::mem::take(&mut self.head), Err(error));
                }
                self.rest(slot, spare)
            }
            Err(error) => {
                self.failures += 1;
                if is_passing(&error) && self.failures < attempts {
                    return self.rest(slot, Some(below.buffer));
                }
                let error = if is_passing(&error) { self.lasting(error) } else { error };
                Outcome::Finished(self.whole(below.buffer), Err(error))
            }
        }
    }

    /// Where the rest of the read starts: the first page that is not whole.
    fn resume_at(&self) -> usize {
        self.filled / PAGE_BYTES * PAGE_BYTES
    }

    /// Takes `count` bytes that were read from [`resume_at`](Self::resume_at) on; returns the
    /// buffer that they came in, if it was not the caller's.
    fn keep(&mut self, buffer: AlignedBuf, count: usize) -> Option<AlignedBuf> {
        if self.head.is_empty() {
            (self.head, self.filled) = (buffer, count);
            return None;
        }
        let start = self.resume_at();
        self.head[start..start + count].copy_from_slice(&buffer[..count]);
        self.filled = self.filled.max(start + count);
        Some(buffer)
    }

    /// The caller's buffer.
    fn whole(&mut self, below: AlignedBuf) -> AlignedBuf {
        if self.head.is_empty() { below } else { std::mem::take(&mut self.head) }
    }

    /// The read that is still missing, into `spare` or a new buffer.
    fn rest(&mut self, slot: u64, spare: Option<AlignedBuf>) -> Outcome {
        let start = self.resume_at();
        let len = self.len - start;
        let buffer = match spare {
            Some(spare) if spare.len() >= len => spare,
            _ => match AlignedBuf::zeroed(len) {
                Ok(buffer) => buffer,
                Err(e) => return Outcome::Finished(std::mem::take(&mut self.head), Err(e)),
            },
        };
        let offset = self.offset + start as u64;
        Outcome::Again(Read { file: self.file, offset, len, buffer, tag: slot })
    }

    fn lasting(&self, error: Error) -> Error {
        error
            .got(format!("`{}` failed attempts", self.failures))
            .hint("look for the drive's errors with `dmesg`; other blocks may still be read")
    }

    fn cut_short(&self, files: &FileSet, expected: usize) -> Error {
        let end = io::Error::from(io::ErrorKind::UnexpectedEof);
        let read = Read {
            file: self.file,
            offset: self.offset,
            len: 0,
            buffer: AlignedBuf::default(),
            tag: self.tag,
        };
        files
            .place(&read)
            .map_or_else(|e| e, |place| files.failure(place, expected, end))
            .got(format!("`{}` after `{}` attempts", self.filled, self.failures))
            .hint("the file was cut short after it was opened: build or copy the graph again")
    }
}

/// Whether another attempt may go well.
fn is_passing(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|c| c.downcast_ref::<io::Error>());
    let passing = |code| matches!(code, libc::EIO | libc::EAGAIN | libc::EINTR);
    error.kind() == ErrorKind::Io && cause.and_then(io::Error::raw_os_error).is_some_and(passing)
}

impl<E: ReadEngine> ReadEngine for Retry<E> {
    fn submit(&mut self, read: Read) -> std::result::Result<(), Read> {
        let (tag, file, offset, len) = (read.tag, read.file, read.offset, read.len);
        let head = AlignedBuf::default();
        let pending = Pending { tag, file, offset, len, head, filled: 0, failures: 0 };
        let Ok(slot) = self.slots.insert(pending) else { return Err(read) };
        self.inner.submit(Read { tag: slot, ..read }).map_err(|refused| {
            self.slots.remove(slot);
            Read { tag, ..refused }
        })
    }

    fn poll(&mut self, done: &mut Vec<Done>, wait: Wait) -> Result<()> {
        let before = done.len();
        loop {
            self.resume();
            let below = if wait == Wait::No { Wait::No } else { Wait::One };
            let mut completions = std::mem::take(&mut self.scratch);
            let polled = self.inner.poll(&mut completions, below);
            completions.drain(..).for_each(|completion| self.settle(completion, done));
            self.scratch = completions;
            polled?;
            let enough = match wait {
                Wait::No => true,
                Wait::One => done.len() > before || self.slots.used() == 0,
                Wait::All => self.slots.used() == 0,
            };
            if enough {
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

    fn reads_when_polled(&self) -> bool {
        self.inner.reads_when_polled()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}
