//! Reads of the feature rows that are on storage: the host's threads start them, or the GPU's kernels.

use std::time::Duration;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Gather, MissingRows, Sampler};
use tiergraph_gpu::{DeviceView, Stream};

use super::drive_rows::DriveRows;
use super::storage::{Storage, StorageReads};

/// Who reads rows that are on storage.
pub(super) enum RowReads {
    /// The host's threads.
    Host(Storage),
    /// The GPU's kernels.
    Gpu(DriveRows),
}

impl RowReads {
    /// Who starts reads, and the way rows come.
    pub fn way(&self) -> &'static str {
        match self {
            Self::Host(_) => "the host, through pinned memory",
            Self::Gpu(drives) => drives.way(),
        }
    }

    /// Counts of reads so far.
    pub fn reads(&self) -> StorageReads {
        match self {
            Self::Host(storage) => storage.reads(),
            Self::Gpu(drives) => drives.reads(),
        }
    }

    /// Drops a batch that is not waited for any more, and whose memory may be gone afterwards.
    pub fn give_up(&mut self, ticket: u64) {
        match self {
            Self::Host(storage) => storage.give_up(ticket),
            Self::Gpu(drives) => drives.give_up(ticket),
        }
    }

    /// Begins to read the rows that were found missing to rows at `x`; returns their ticket.
    pub fn begin(&mut self, stream: &Stream, sampler: &Sampler, x: DeviceView<f32>) -> Result<u64> {
        match self {
            Self::Host(storage) => storage.begin(stream, x),
            Self::Gpu(drives) => drives.begin(stream, sampler, x),
        }
    }

    /// Copies rows that were read to where they are wanted; true once those of `ticket` are all there, in
    /// order with the stream. Waits for `patience` at most.
    pub fn finish(
        &mut self,
        stream: &Stream,
        ticket: u64,
        patience: Duration,
        gather: &Gather,
        dim: usize,
    ) -> Result<bool> {
        match self {
            Self::Host(storage) => storage.finish(stream, ticket, patience, |piece, to, event| {
                gather.spread(stream, piece, to, dim, event)
            }),
            Self::Gpu(drives) => drives.finish(stream, ticket, patience, gather),
        }
    }

    /// The list of the rows that are missing.
    pub fn missing(&mut self) -> &mut MissingRows {
        match self {
            Self::Host(storage) => &mut storage.missing,
            Self::Gpu(drives) => &mut drives.missing,
        }
    }
}
