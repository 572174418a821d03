//! The sort stage: threads load, sort and encode buckets, and write them in their order.
//!
//! Thread t takes the buckets t, t + n, …: it loads and prepares one while other threads prepare or
//! write others ([`super::turns`]). A bucket that does not fit is prepared in its turn, cell by cell, reading
//! it as often as that takes.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Cancel, Result};
use tiergraph_mem::Budget;

use super::load::{Loader, Split, count};
use super::sorted::Sorted;
use super::turns::{Prepare, Turns, in_turns};
use crate::build::ahead::Spares;
use crate::build::partition::family::{ChunkReader, Family};

/// An encoder, one for each thread: turns a bucket's sorted arcs into cells of a file, and writes them.
pub(crate) trait Encode: Prepare {
    /// The type of the division of a bucket's keys.
    type Split: Split;

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
        let threads = encoders.len();
        in_turns(encoders, sink, |thread, encoder, turns| {
            self.work(thread, threads, encoder, turns)
        })
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
                        loader.load(reader, &split, &all, arcs, self.duplicates, self.cancel)?;
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
        let Some(mut sink) = turns.take(bucket) else { return Ok(false) };
        self.in_parts(encoder, loader, bucket, split, &mut sink)?;
        turns.give_back(sink, encoder).map(|()| true)
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
        let counts = count(read()?, split, self.cancel)?;
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
            let sorted = loader.load(read()?, split, &wanted, sum, self.duplicates, self.cancel)?;
            let ready = encoder.prepare(bucket, split, &wanted, sorted)?;
            encoder.write(sink, ready)?;
            begin = end;
        }
        Ok(())
    }
}
