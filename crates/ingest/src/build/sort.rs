//! Buckets one after the other through the threads: load, sort, encode, and write in their order.
//!
//! Thread t takes the buckets t, t + n, …: it loads and prepares one while another thread prepares
//! or writes the one before. Only writing waits for its turn. A bucket that does not fit is
//! prepared in its turn, cell by cell, reading it as often as that takes.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_mem::Budget;

use super::family::{ChunkReader, Family};
use super::load::{Loader, Sorted, Split, count};

/// What turns a bucket's arcs into something to write, and writes it. One a thread.
pub(super) trait Encode: Send {
    /// How the keys of a bucket are divided.
    type Split: Split;
    /// Cells, ready to be written.
    type Ready: Send;
    /// Where all cells are written.
    type Sink: Send;

    /// How `bucket` is divided.
    fn split(&self, bucket: usize) -> Self::Split;

    /// Encodes the cells `wanted` of a bucket, whose arcs are `sorted`.
    fn prepare(
        &mut self,
        bucket: usize,
        split: &Self::Split,
        wanted: &Range<usize>,
        sorted: &Sorted,
    ) -> Result<Self::Ready>;

    /// Writes cells; they come in order.
    fn write(&mut self, sink: &mut Self::Sink, ready: Self::Ready) -> Result<()>;
}

/// Whose turn it is.
struct Turns<S> {
    state: Mutex<Turn<S>>,
    changed: Condvar,
}

struct Turn<S> {
    next: usize,
    failed: Option<Error>,
    over: bool,
    sink: S,
}

impl<S> Turns<S> {
    /// Waits until the buckets before `bucket` are written; `None` when a thread has failed.
    fn wait(&self, bucket: usize) -> Option<MutexGuard<'_, Turn<S>>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self
            .changed
            .wait_while(state, |turn| turn.next != bucket && !turn.over)
            .unwrap_or_else(PoisonError::into_inner);
        (!state.over).then_some(state)
    }

    fn fail(&self, error: Error) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.over = true;
        state.failed.get_or_insert(error);
        self.changed.notify_all();
    }
}

/// What all threads of a stage share.
pub(super) struct Stage<'a> {
    pub(super) family: &'a Arc<Family>,
    /// The most records that are loaded at once.
    pub(super) capacity: u64,
    /// Whether equal arcs are kept.
    pub(super) duplicates: bool,
    /// Whether the records' weights are wanted.
    pub(super) weighted: bool,
    /// Chunks that are read ahead.
    pub(super) ahead: usize,
    pub(super) budget: &'a Budget,
    pub(super) cancel: &'a Cancel,
    /// Bytes that an arc takes while it is sorted.
    pub(super) arc_bytes: u64,
    /// Called with the number of records of each finished bucket.
    pub(super) done: &'a (dyn Fn(u64) + Sync),
}

impl Stage<'_> {
    /// Runs all buckets through one thread for each of `encoders`, into `sink`.
    pub(super) fn run<E: Encode>(&self, encoders: Vec<E>, sink: E::Sink) -> Result<E::Sink> {
        let state = Mutex::new(Turn { next: 0, failed: None, over: false, sink });
        let turns = Turns { state, changed: Condvar::new() };
        let threads = encoders.len();
        std::thread::scope(|scope| {
            for (thread, mut encoder) in encoders.into_iter().enumerate() {
                let turns = &turns;
                scope.spawn(move || {
                    // A panic must not leave the others waiting.
                    let guard = Unfinished(turns);
                    if let Err(error) = self.work(thread, threads, &mut encoder, turns) {
                        turns.fail(error);
                    }
                    std::mem::forget(guard);
                });
            }
        });
        let turn = turns.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match turn.failed {
            Some(error) => Err(error),
            None => Ok(turn.sink),
        }
    }

    fn work<E: Encode>(
        &self,
        thread: usize,
        threads: usize,
        encoder: &mut E,
        turns: &Turns<E::Sink>,
    ) -> Result<()> {
        let buckets = self.family.buckets.len();
        let read = |bucket: usize| -> Result<Option<ChunkReader>> {
            let fits = bucket < buckets && self.family.arcs(bucket) <= self.capacity;
            fits.then(|| self.family.read(bucket, self.ahead)).transpose()
        };
        let mut loader = Loader::new(self.weighted);
        let mut reader = read(thread)?;
        for bucket in (thread..buckets).step_by(threads) {
            let split = encoder.split(bucket);
            let next = read(bucket + threads)?;
            let mut turn = match std::mem::replace(&mut reader, next) {
                Some(reader) => {
                    let all = 0..split.cells().len();
                    let wanted = (&all, self.family.arcs(bucket));
                    let sorted =
                        loader.load(&reader, &split, wanted, self.duplicates, self.cancel)?;
                    let ready = encoder.prepare(bucket, &split, &all, sorted)?;
                    let Some(mut turn) = turns.wait(bucket) else { return Ok(()) };
                    encoder.write(&mut turn.sink, ready)?;
                    turn
                }
                None => {
                    let Some(mut turn) = turns.wait(bucket) else { return Ok(()) };
                    self.in_parts(encoder, &mut loader, bucket, &split, &mut turn.sink)?;
                    turn
                }
            };
            turn.next += 1;
            drop(turn);
            turns.changed.notify_all();
            (self.done)(self.family.arcs(bucket));
        }
        Ok(())
    }

    /// A bucket that is larger than planned, a few cells at a time.
    fn in_parts<E: Encode>(
        &self,
        encoder: &mut E,
        loader: &mut Loader,
        bucket: usize,
        split: &E::Split,
        sink: &mut E::Sink,
    ) -> Result<()> {
        let read = || self.family.read(bucket, self.ahead);
        let counts = count(&read()?, split, self.cancel)?;
        let mut begin = 0;
        while begin < counts.len() {
            let (mut end, mut sum) = (begin + 1, counts[begin]);
            while end < counts.len() && sum + counts[end] <= self.capacity {
                sum += counts[end];
                end += 1;
            }
            // A cell is not divided, so a larger one needs more.
            let more = sum.saturating_sub(self.capacity) * self.arc_bytes;
            let _held = self.budget.reserve(more, "the largest part of a strip")?;
            let wanted = begin..end;
            let arcs = (&wanted, sum);
            let sorted = loader.load(&read()?, split, arcs, self.duplicates, self.cancel)?;
            let ready = encoder.prepare(bucket, split, &wanted, sorted)?;
            encoder.write(sink, ready)?;
            begin = end;
        }
        Ok(())
    }
}

/// Ends the stage if its thread unwinds.
struct Unfinished<'t, S>(&'t Turns<S>);

impl<S> Drop for Unfinished<'_, S> {
    fn drop(&mut self) {
        let failed = Error::new(ErrorKind::Io, "write the graph").got("a thread that sorts ended");
        self.0.fail(failed);
    }
}
