//! Reads whose warps submit and poll by themselves: what [`GpuReads`](super::GpuReads) is compared with.

use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{
    CoupledKernel, CoupledPairs, PageCache, ReadWatch, RowRequests, RowTargets,
};
use tiergraph_gpu::{Event, Stream};

use super::in_order::{ListsInOrder, ReadsInOrder};
use super::queues::{QueueOptions, Queues};
use super::{GpuDrive, GpuReadOptions, RowsOnDrives, StopReads, failure};
use crate::{FileId, NvmeDrives};

/// Reads of rows by one kernel, each warp of which asks for a row and waits for it (as BaM and GIDS do), unless
/// it [finds](Self::keep_in) the row in a page cache.
#[derive(Debug)]
pub struct CoupledReads {
    // Dropped first: it ends the kernels that use what is behind it.
    queues: Queues,
    options: GpuReadOptions,
    kernel: CoupledKernel,
    watch: ReadWatch,
    pairs: CoupledPairs,
    cache: Option<PageCache>,
    broken: bool,
}

/// Rows of many lists, a list by one kernel whose warps wait for their own rows, one list after the other.
pub type CoupledLists = ListsInOrder<CoupledReads>;

impl CoupledReads {
    /// Reads of `rows` on `drives`, by the GPU of `stream`. Of `options`, those of batches and threads
    /// say nothing here.
    ///
    /// # Errors
    /// As [`GpuReads::new`](super::GpuReads::new).
    pub fn new(
        stream: &Stream,
        drives: Vec<GpuDrive>,
        rows: &RowsOnDrives,
        options: GpuReadOptions,
    ) -> Result<Self> {
        let GpuReadOptions { pairs_per_drive, entries, .. } = options;
        let of_pairs = QueueOptions { sets: 1, pairs_per_drive, entries };
        let queues = Queues::new(stream.device(), drives, rows, of_pairs)?;
        if queues.places.parts() > 1 {
            return Err(Error::new(ErrorKind::Input, "read rows by warps that wait for them")
                .expected("groups that cross no stripe")
                .got(format!("{rows:?}")));
        }
        let (set, log2) = (&queues.sets[0], queues.entries_log2);
        Ok(Self {
            kernel: CoupledKernel::new(stream.device())?,
            watch: ReadWatch::new(stream, queues.stop_word(), options.timeout)?,
            pairs: CoupledPairs::new(stream, &set.addresses, log2, set.staging, queues.places)?,
            cache: None,
            options,
            broken: false,
            queues,
        })
    }

    /// Has warps look rows up in `cache` before they ask for them, and put them there.
    pub fn keep_in(&mut self, cache: PageCache) {
        self.cache = Some(cache);
    }

    /// Bytes of blocks that drives were asked for so far.
    ///
    /// # Errors
    /// Any error of the driver. Waits for all work of `stream`, and for no other.
    pub fn bytes_asked(&self, stream: &Stream) -> Result<u64> {
        Ok(self.watch.blocks(stream)? << self.queues.places.block_log2)
    }

    /// How many rows were found in the cache so far. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn found(&self, stream: &Stream) -> Result<u64> {
        self.cache.as_ref().map_or(Ok(0), |cache| cache.found(stream))
    }

    /// As [`new`](Self::new), of the rows of `file`, which lies on `drives`: `rows` says where in it each row
    /// begins, and its start and stripes are those of the drives.
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
        let (drives, rows) = super::of_file(drives, file, rows)?;
        Self::new(stream, drives, &rows, options)
    }

    /// A handle that stops a kernel which waits for drives.
    pub fn stop(&self) -> StopReads {
        self.queues.stop()
    }

    /// Reads all requested rows to `to` by at most `blocks` blocks, and waits for them.
    ///
    /// # Errors
    /// As [`GpuReads::check`](super::GpuReads::check).
    pub fn read(
        &mut self,
        stream: &Stream,
        blocks: u32,
        requests: RowRequests,
        to: RowTargets,
    ) -> Result<()> {
        self.submit(stream, blocks, requests, to)?;
        self.check(stream)
    }

    /// As [`read`](Self::read), without waiting for the rows.
    fn submit(
        &mut self,
        stream: &Stream,
        blocks: u32,
        requests: RowRequests,
        to: RowTargets,
    ) -> Result<()> {
        if self.broken {
            return Err(Error::new(ErrorKind::Io, "read rows by a GPU").got("an earlier failure"));
        }
        let seen = (&self.watch, self.cache.as_ref());
        self.kernel.read(stream, blocks, &mut self.pairs, seen, requests, to)
    }
}

impl CoupledLists {
    /// Has warps look rows up in `cache` before they ask for them, and put them there.
    pub fn keep_in(&mut self, cache: PageCache) {
        self.reads.keep_in(cache);
    }

    /// How many rows were found in the cache so far, by kernels that have ended.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn found(&self) -> Result<u64> {
        self.reads.found(&self.checking)
    }
}

impl ReadsInOrder for CoupledReads {
    /// Starts to read a list, all of it, by as many blocks as the device runs at once.
    ///
    /// # Panics
    /// If `of` does not begin with the list.
    fn start(
        &mut self,
        stream: &Stream,
        _ready: &Event,
        requests: RowRequests,
        of: Range<usize>,
        to: RowTargets,
    ) -> Result<()> {
        assert_eq!(of.start, 0, "a list is read as a whole");
        self.submit(stream, u32::MAX, requests, to)
    }

    /// Waits for all work of the stream, and says whether every row came of kernels that have ended.
    fn check(&mut self, stream: &Stream) -> Result<()> {
        let failures = self.watch.failures(stream)?;
        self.broken = failures.broken.is_some();
        let GpuReadOptions { pairs_per_drive, timeout, .. } = self.options;
        if let Some(failure) = failures.broken.or(failures.refused) {
            self.watch.forget_refused(stream)?;
            return Err(failure::error(failure, pairs_per_drive, timeout));
        }
        Ok(())
    }

    fn stop(&self) -> StopReads {
        self.queues.stop()
    }

    fn host_bytes(&self) -> u64 {
        self.queues.host_bytes()
    }

    fn bytes_asked(&self, stream: &Stream) -> Result<u64> {
        self.bytes_asked(stream)
    }
}
