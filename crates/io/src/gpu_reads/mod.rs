//! Reads that a GPU starts: its kernels ask NVMe drives for rows and take them, with no CPU in between
//! (Hyperion, ICDE 2025, §III-A).
//!
//! [`GpuReads`] does it in two kernels. `submit`, one thread block, writes a command for each row, and
//! then the GPU is free for other work. `complete`, a few blocks, waits for the completions and copies
//! the rows to where they are wanted. [`CoupledReads`] is the baseline, in which a warp waits for its
//! own row.
//!
//! The drives write rows to staging memory, which is the host's, pinned and mapped: a CPU's threads,
//! which are drives here, cannot write to a GPU's memory.

mod arrivals;
mod coupled;
mod failure;
mod in_order;
mod lists;
mod measure;
mod pages;
mod queues;
mod rounds;
mod rows;

use std::ops::RangeInclusive;
use std::time::Duration;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{
    Asking, BatchPairs, ReadFailure, ReadKernels, ReadWatch, RowRequests, RowTargets, Taking,
};
use tiergraph_gpu::{Event, Grid, Stream};

pub use coupled::{CoupledLists, CoupledReads};
pub use lists::RowLists;
pub use measure::{BenchTable, GpuReadLoad, GpuReadRate, Manner};
pub use pages::{PagedFile, PagesByGpu, WhoWaits};
pub use queues::{GpuDrive, StopReads};
pub use rounds::RoundReads;
pub use rows::RowsOnDrives;

use crate::drives::StripedFile;
use crate::{FileId, NvmeDrives};
use queues::{QueueOptions, Queues};

/// Entries of a queue: as many as give a drive enough to do, fewer where there is little memory.
const ENTRIES: RangeInclusive<u16> = 16..=1024;
/// Queue pairs of each drive that a round of reads has.
const PAIRS_PER_DRIVE: usize = 4;
/// Blocks that take rows, which lie in device memory by then: as many as are done in no time, because few
/// would keep some multiprocessors from the kernels of training for long.
/// Measured: bench/runs/2026-11-27-h200-16-core-128gib/gpu_beside_training.txt.
const TAKING_BLOCKS: u32 = 64;
/// The share of the host's memory that staging memory may take, one part in so many.
const STAGING_SHARE: u64 = 4;

/// How a GPU reads from drives.
#[derive(Debug, Clone, Copy)]
pub struct GpuReadOptions {
    /// Batches that may be in flight: each has queue pairs and staging memory of its own.
    pub batches: usize,
    /// Queue pairs of each drive that a batch has.
    pub pairs_per_drive: usize,
    /// Entries of a queue: a power of two.
    pub entries: u16,
    /// Threads of the one block that submits: whole warps, at most 1,024.
    pub submit_threads: u32,
    /// Blocks that take completions.
    pub complete_blocks: u32,
    /// Threads of each of those: whole warps, two at least and at most 512 threads.
    pub complete_threads: u32,
    /// The longest that a kernel waits for the next completions of a queue pair.
    pub timeout: Duration,
}

impl Default for GpuReadOptions {
    fn default() -> Self {
        Self {
            batches: 2,
            pairs_per_drive: 2,
            entries: 1024,
            submit_threads: 512,
            complete_blocks: 16,
            complete_threads: 512,
            timeout: Duration::from_secs(10),
        }
    }
}

impl GpuReadOptions {
    /// Reads of rows that take spans of `span_bytes`, in `rounds` at a time: with as many entries a queue as
    /// `left` bytes of host memory and `fits`, which is asked with the spans of a round, allow.
    pub fn within(
        left: u64,
        rounds: usize,
        span_bytes: usize,
        fits: impl Fn(usize) -> bool,
    ) -> Self {
        let (least, most) = (*ENTRIES.start(), *ENTRIES.end());
        let sizes = (least.ilog2()..=most.ilog2()).rev().map(|log2| 1u16 << log2);
        let is_possible = |entries: &u16| {
            let spans = PAIRS_PER_DRIVE * usize::from(*entries);
            (rounds * spans * span_bytes) as u64 <= left / STAGING_SHARE && fits(spans)
        };
        Self {
            batches: rounds,
            pairs_per_drive: PAIRS_PER_DRIVE,
            entries: sizes.into_iter().find(is_possible).unwrap_or(least),
            complete_blocks: TAKING_BLOCKS,
            ..Self::default()
        }
    }
}

/// Reads of rows, by batches that a GPU submits and completes.
#[derive(Debug)]
pub struct GpuReads {
    // Dropped first: it ends the kernels that use what is behind it.
    queues: Queues,
    options: GpuReadOptions,
    kernels: ReadKernels,
    watch: ReadWatch,
    batches: Vec<Batch>,
    /// How many batches were submitted, and completed, so far.
    submitted: usize,
    completed: usize,
    /// Why nothing can be read any more.
    broken: Option<String>,
}

/// The streams of reads by many batches.
#[derive(Debug)]
pub struct ReadStreams {
    /// The stream that batches are submitted on.
    pub submitting: Stream,
    /// The stream that batches are completed on.
    pub completing: Stream,
}

/// The queue pairs of a batch, and the ends of the kernels that used them last.
#[derive(Debug)]
struct Batch {
    pairs: BatchPairs,
    submitted: Event,
    completed: Event,
}

impl GpuReads {
    /// Reads of `rows` on `drives`, by the GPU of `stream`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for rows that no command reads, or more queue pairs than drives have; no
    /// compiler of kernels, not enough memory of either kind, any error of the driver or a drive.
    pub fn new(
        stream: &Stream,
        drives: Vec<GpuDrive>,
        rows: &RowsOnDrives,
        options: GpuReadOptions,
    ) -> Result<Self> {
        let device = stream.device();
        let GpuReadOptions { batches: sets, pairs_per_drive, entries, .. } = options;
        let of_pairs = QueueOptions { sets, pairs_per_drive, entries };
        let queues = Queues::new(device, drives, rows, of_pairs)?;
        let batch = |set: &queues::PairSet| {
            let (log2, places) = (queues.entries_log2, queues.places);
            let pairs = BatchPairs::new(stream, &set.addresses, log2, set.staging, places)?;
            Ok(Batch { pairs, submitted: Event::new(device)?, completed: Event::new(device)? })
        };
        Ok(Self {
            options,
            kernels: ReadKernels::new(device)?,
            watch: ReadWatch::new(stream, queues.stop_word(), options.timeout)?,
            batches: queues.sets.iter().map(batch).collect::<Result<_>>()?,
            submitted: 0,
            completed: 0,
            broken: None,
            queues,
        })
    }

    /// Reads of the rows of `file`, which lies on `drives`: `rows` says where in it each row begins, and its
    /// start and stripes are those of the drives.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`ErrorKind::Input`] for a file that lies in several pieces.
    pub fn of_file(
        stream: &Stream,
        drives: &NvmeDrives,
        file: FileId,
        rows: &RowsOnDrives,
        options: GpuReadOptions,
    ) -> Result<Self> {
        let (drives, rows) = of_file(drives, file, rows)?;
        Self::new(stream, drives, &rows, options)
    }

    /// Bytes of host memory that kernels and drives share: staging memory, queues and registers.
    pub fn host_bytes(&self) -> u64 {
        self.queues.host_bytes()
    }

    /// Bytes of blocks that drives were asked for so far.
    ///
    /// # Errors
    /// Any error of the driver. Waits for all work of `stream`, and for no other.
    pub fn bytes_asked(&self, stream: &Stream) -> Result<u64> {
        Ok(self.watch.blocks(stream)? << self.queues.places.block_log2)
    }

    /// The most rows of a batch.
    pub fn capacity(&self) -> usize {
        self.batches[0].pairs.capacity() as usize
    }

    /// Whether a further batch may be submitted before one is completed.
    pub fn has_room(&self) -> bool {
        self.submitted - self.completed < self.batches.len()
    }

    /// A handle that stops kernels which wait for drives.
    pub fn stop(&self) -> StopReads {
        self.queues.stop()
    }

    /// Submits a batch, in order with the stream: the requested rows from number `first` on, as many as
    /// [`capacity`](Self::capacity) and as there are. Rows are wanted once each, at targets of their
    /// own.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] without [`room`](Self::has_room); an earlier failure that broke queue pairs;
    /// any error of the driver.
    pub fn submit(&mut self, stream: &Stream, requests: RowRequests, first: u32) -> Result<()> {
        self.check_unbroken()?;
        if !self.has_room() {
            return Err(Error::new(ErrorKind::Input, "submit a batch of reads")
                .expected(format!("at most `{}` in flight", self.batches.len()))
                .got("one more"));
        }
        let set = self.submitted % self.batches.len();
        self.submit_by(set, stream, requests, first)?;
        self.submitted += 1;
        Ok(())
    }

    /// Submits a batch by the queue pairs number `set`, in which none is in flight.
    fn submit_by(
        &mut self,
        set: usize,
        stream: &Stream,
        requests: RowRequests,
        first: u32,
    ) -> Result<()> {
        let batch = &mut self.batches[set];
        stream.wait_for(&batch.completed)?;
        let (threads, watch) = (self.options.submit_threads, &self.watch);
        let asking = Asking { requests, first, told: self.queues.told_word(set) };
        self.kernels.submit(stream, threads, &mut batch.pairs, watch, asking)?;
        batch.submitted.record(stream)
    }

    /// Completes the batch that was submitted first of those in flight, in order with the stream: its
    /// rows go to `to`. Whether all of them came, [`check`](Self::check) says.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] without a batch in flight; any error of the driver.
    pub fn complete(&mut self, stream: &Stream, to: RowTargets) -> Result<()> {
        if self.submitted == self.completed {
            return Err(Error::new(ErrorKind::Input, "complete a batch of reads")
                .expected("one in flight")
                .got("none"));
        }
        let set = self.completed % self.batches.len();
        self.complete_by(set, stream, to, Taking::Waiting)?;
        self.completed += 1;
        Ok(())
    }

    /// Takes rows of the batch in flight by the queue pairs number `set`.
    fn complete_by(
        &self,
        set: usize,
        stream: &Stream,
        to: RowTargets,
        taking: Taking,
    ) -> Result<()> {
        let batch = &self.batches[set];
        stream.wait_for(&batch.submitted)?;
        let GpuReadOptions { complete_blocks: blocks, complete_threads: threads, .. } =
            self.options;
        let grid = Grid { blocks, threads };
        self.kernels.complete(stream, grid, &batch.pairs, &self.watch, to, taking)?;
        batch.completed.record(stream)
    }

    /// Waits for all work of the stream, and says whether every row of the batches completed there came.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for the first row that a drive refused, after which other rows can be read;
    /// [`ErrorKind::Io`] for a drive that answered not in time, or what was not asked, and
    /// [`ErrorKind::Interrupted`] after a [`stop`](Self::stop), after which none can; any error of the
    /// driver.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.check_unbroken()?;
        let failures = self.watch.failures(stream)?;
        if let Some(failure) = failures.broken {
            let error = self.explain(failure);
            self.broken = Some(format!("an earlier failure: {error}"));
            return Err(error);
        }
        if let Some(failure) = failures.refused {
            self.watch.forget_refused(stream)?;
            return Err(self.explain(failure));
        }
        Ok(())
    }

    fn explain(&self, failure: ReadFailure) -> Error {
        failure::error(failure, self.options.pairs_per_drive, self.options.timeout)
    }

    /// Reads all requested rows, of which there are at most `most`, to `to`, and waits for them. Batches
    /// are submitted on one stream while others are completed on the other.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`check`](Self::check).
    ///
    /// # Panics
    /// If a batch is in flight.
    pub fn read(
        &mut self,
        streams: &ReadStreams,
        requests: RowRequests,
        most: usize,
        to: RowTargets,
    ) -> Result<()> {
        self.start_read(streams, requests, most, to)?;
        self.check(&streams.completing)
    }

    /// As [`read`](Self::read), without waiting for the rows.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// If a batch is in flight.
    pub fn start_read(
        &mut self,
        streams: &ReadStreams,
        requests: RowRequests,
        most: usize,
        to: RowTargets,
    ) -> Result<()> {
        assert_eq!(self.submitted, self.completed, "no batch is in flight");
        for first in (0..most).step_by(self.capacity()) {
            if !self.has_room() {
                self.complete(&streams.completing, to)?;
            }
            self.submit(&streams.submitting, requests, first as u32)?;
        }
        while self.completed < self.submitted {
            self.complete(&streams.completing, to)?;
        }
        Ok(())
    }

    fn check_unbroken(&self) -> Result<()> {
        match &self.broken {
            Some(why) => Err(Error::new(ErrorKind::Io, "read rows by a GPU").got(why)),
            None => Ok(()),
        }
    }
}

/// The drives of a file, and where its rows lie on them.
fn of_file(
    drives: &NvmeDrives,
    file: FileId,
    rows: &RowsOnDrives,
) -> Result<(Vec<GpuDrive>, RowsOnDrives)> {
    let StripedFile { start, unit_bytes, base, drives } = drives.striped(file)?;
    let rows = RowsOnDrives { start, stripe_bytes: unit_bytes as u32, ..*rows };
    Ok((drives.into_iter().map(|drive| GpuDrive::new(drive, base)).collect(), rows))
}
