//! The sort stage: threads load, sort and encode buckets, and write them in their order.
//!
//! Thread t takes the buckets t, t + n, …: it loads and prepares one while other threads prepare or
//! write others. Only writing is in order, and no thread waits for it: a thread leaves the bucket that
//! it has prepared, and the thread that finds the file free writes all whose turn it is. A bucket that
//! does not fit is prepared in its turn, cell by cell, reading it as often as that takes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Cancel, Error, ErrorKind, Result, threads};
use tiergraph_mem::Budget;

use super::load::{Loader, Split, count};
use super::sorted::Sorted;
use crate::build::partition::family::{ChunkReader, Family, Spares};

/// An encoder, one for each thread: turns a bucket's sorted arcs into cells of a file, and writes them.
pub(crate) trait Encode: Send {
    /// The type of the division of a bucket's keys.
    type Split: Split;
    /// Encoded cells, ready to be written.
    type Ready: Send;
    /// The file that all cells are written to.
    type Sink: Send;

    /// The division of `bucket` into parts and cells.
    fn split(&self, bucket: usize) -> Self::Split;

    /// Encodes the cells `wanted` of a bucket, whose arcs are `sorted`.
    fn prepare(
        &mut self,
        bucket: usize,
        split: &Self::Split,
        wanted: &Range<usize>,
        sorted: &Sorted,
    ) -> Result<Self::Ready>;

    /// Writes encoded cells, which come in order.
    fn write(&mut self, sink: &mut Self::Sink, ready: Self::Ready) -> Result<()>;
}

/// The order in which threads write buckets.
struct Turns<E: Encode> {
    state: Mutex<Turn<E>>,
    changed: Condvar,
    /// The number of buckets that may be ready before their turn.
    ahead: usize,
}

struct Turn<E: Encode> {
    /// The bucket to be written next.
    next: usize,
    ready: BTreeMap<usize, E::Ready>,
    /// The file; `None` while a thread is writing.
    sink: Option<E::Sink>,
    failed: Option<Error>,
    over: bool,
}

impl<E: Encode> Turns<E> {
    fn lock(&self) -> MutexGuard<'_, Turn<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `holds` is true; `None` when a thread has failed.
    fn wait(&self, holds: impl Fn(&Turn<E>) -> bool) -> Option<MutexGuard<'_, Turn<E>>> {
        let turn = self
            .changed
            .wait_while(self.lock(), |turn| !turn.over && !holds(turn))
            .unwrap_or_else(PoisonError::into_inner);
        (!turn.over).then_some(turn)
    }

    fn fail(&self, error: Error) {
        let mut turn = self.lock();
        turn.over = true;
        turn.failed.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Leaves a bucket that is ready, and writes if no thread does; false when a thread has failed.
    fn leave(&self, bucket: usize, ready: E::Ready, encoder: &mut E) -> Result<bool> {
        let room = |turn: &Turn<E>| turn.next == bucket || turn.ready.len() < self.ahead;
        let Some(mut turn) = self.wait(room) else { return Ok(false) };
        turn.ready.insert(bucket, ready);
        self.write(turn, encoder).map(|()| true)
    }

    /// Writes the buckets whose turn it is, unless another thread is writing.
    fn write<'t>(&'t self, mut turn: MutexGuard<'t, Turn<E>>, encoder: &mut E) -> Result<()> {
        loop {
            let next = turn.next;
            let Some(mut sink) = turn.sink.take() else { return Ok(()) };
            let Some(ready) = turn.ready.remove(&next) else {
                turn.sink = Some(sink);
                return Ok(());
            };
            drop(turn);
            encoder.write(&mut sink, ready)?;
            turn = self.written(sink);
        }
    }

    /// Gives the file back after a bucket was written.
    fn written(&self, sink: E::Sink) -> MutexGuard<'_, Turn<E>> {
        let mut turn = self.lock();
        turn.sink = Some(sink);
        turn.next += 1;
        self.changed.notify_all();
        turn
    }
}

/// The settings of a sort stage, which its threads share.
pub(crate) struct Stage<'a> {
    pub(crate) family: &'a Arc<Family>,
    /// The most records that a thread loads at once.
    pub(crate) capacity: u64,
    /// Whether equal arcs are kept.
    pub(crate) duplicates: bool,
    /// Whether the records' weights are loaded.
    pub(crate) weighted: bool,
    /// The number of chunks that are read ahead.
    pub(crate) ahead: usize,
    pub(crate) budget: &'a Budget,
    pub(crate) cancel: &'a Cancel,
    /// Bytes that an arc takes while it is sorted.
    pub(crate) arc_bytes: u64,
    /// A function called with the number of records of each finished bucket.
    pub(crate) done: &'a (dyn Fn(u64) + Sync),
}

impl Stage<'_> {
    /// Runs all buckets through one thread for each of `encoders`, into `sink`.
    pub(crate) fn run<E: Encode>(&self, encoders: Vec<E>, sink: E::Sink) -> Result<E::Sink> {
        let (ready, sink) = (BTreeMap::new(), Some(sink));
        let state = Mutex::new(Turn { next: 0, ready, sink, failed: None, over: false });
        let threads = encoders.len();
        let turns = Turns::<E> { state, changed: Condvar::new(), ahead: threads };
        std::thread::scope(|scope| {
            for (thread, mut encoder) in encoders.into_iter().enumerate() {
                let turns = &turns;
                let body = move || {
                    // A panic must not leave the others waiting.
                    let guard = Unfinished(turns);
                    if let Err(error) = self.work(thread, threads, &mut encoder, turns) {
                        turns.fail(error);
                    }
                    std::mem::forget(guard);
                };
                if let Err(error) = threads::start_in(scope, "encode", body) {
                    turns.fail(error);
                    break;
                }
            }
        });
        let turn = turns.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match turn.failed {
            Some(error) => Err(error),
            None => turn.sink.ok_or_else(ended),
        }
    }

    fn work<E: Encode>(
        &self,
        thread: usize,
        threads: usize,
        encoder: &mut E,
        turns: &Turns<E>,
    ) -> Result<()> {
        let buckets = self.family.buckets.len();
        let spares = Spares::new(2 * self.ahead);
        let read = |bucket: usize| -> Result<Option<ChunkReader>> {
            let fits = bucket < buckets && self.family.arcs(bucket) <= self.capacity;
            fits.then(|| self.family.read(bucket, self.ahead, &spares)).transpose()
        };
        let arcs = (0..buckets).map(|bucket| self.family.arcs(bucket));
        let most = arcs.filter(|arcs| *arcs <= self.capacity).max().unwrap_or(0);
        let mut loader = Loader::new(self.weighted, most);
        let mut reader = read(thread)?;
        for bucket in (thread..buckets).step_by(threads) {
            let split = encoder.split(bucket);
            let next = read(bucket + threads)?;
            let go_on = match std::mem::replace(&mut reader, next) {
                Some(reader) => {
                    let all = 0..split.cells().len();
                    let arcs = self.family.arcs(bucket);
                    let sorted =
                        loader.load(&reader, &split, &all, arcs, self.duplicates, self.cancel)?;
                    let ready = encoder.prepare(bucket, &split, &all, sorted)?;
                    turns.leave(bucket, ready, encoder)?
                }
                None => self.in_turn(encoder, &mut loader, bucket, &split, turns)?,
            };
            if !go_on {
                return Ok(());
            }
            (self.done)(self.family.arcs(bucket));
        }
        Ok(())
    }

    /// Writes, in its turn, a bucket that is larger than planned; false when a thread has failed.
    fn in_turn<E: Encode>(
        &self,
        encoder: &mut E,
        loader: &mut Loader,
        bucket: usize,
        split: &E::Split,
        turns: &Turns<E>,
    ) -> Result<bool> {
        let its_turn = |turn: &Turn<E>| turn.next == bucket && turn.sink.is_some();
        let Some(mut turn) = turns.wait(its_turn) else { return Ok(false) };
        let Some(mut sink) = turn.sink.take() else { return Ok(false) };
        drop(turn);
        self.in_parts(encoder, loader, bucket, split, &mut sink)?;
        turns.write(turns.written(sink), encoder).map(|()| true)
    }

    /// Prepares and writes a large bucket a few cells at a time.
    fn in_parts<E: Encode>(
        &self,
        encoder: &mut E,
        loader: &mut Loader,
        bucket: usize,
        split: &E::Split,
        sink: &mut E::Sink,
    ) -> Result<()> {
        let spares = Spares::new(self.ahead);
        let read = || self.family.read(bucket, self.ahead, &spares);
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
            let sorted =
                loader.load(&read()?, split, &wanted, sum, self.duplicates, self.cancel)?;
            let ready = encoder.prepare(bucket, split, &wanted, sorted)?;
            encoder.write(sink, ready)?;
            begin = end;
        }
        Ok(())
    }
}

/// A guard that ends the stage if its thread unwinds.
struct Unfinished<'t, E: Encode>(&'t Turns<E>);

impl<E: Encode> Drop for Unfinished<'_, E> {
    fn drop(&mut self) {
        self.0.fail(ended());
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "write the graph").got("a thread that sorts ended")
}
