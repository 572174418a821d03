//! Kernels that ask NVMe drives for rows, by queue pairs that they share with them.
//!
//! [`ReadKernels`] asks in one kernel and takes the rows in another; [`CoupledKernel`], the baseline,
//! does both in one. The addresses, layouts and failures that both have are here, and in
//! `queue_pairs.cuh`.

mod coupled_reads;
mod drive_reads;
mod page_cache;

use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;

pub use coupled_reads::{CoupledKernel, CoupledPairs};
pub use drive_reads::{Asking, BatchPairs, ReadKernels, Taking};
pub use page_cache::PageCache;

use super::Source;
use crate::shared::{Shared, shared};
use crate::{DeviceBuf, DevicePtr, DeviceView, Stream};

const PAGE_CACHE: &str = include_str!("page_cache.cuh");
const QUEUE_PAIRS: &str = include_str!("queue_pairs.cuh");
pub(super) const ROW_REQUESTS: &str = include_str!("row_requests.cuh");

pub(super) fn sources() -> [Source; 2] {
    [drive_reads::source(), coupled_reads::source()]
}

shared! {
    /// The addresses of one NVMe queue pair, as kernels reach it.
    #[derive(Debug, Pod)]
    pub struct QueuePairAddresses as "QueuePair" {
        /// The ring of 64-byte commands.
        pub submissions: DevicePtr<u8>,
        /// The ring of 16-byte completions.
        pub completions: DevicePtr<u8>,
        /// The doorbell of the submission queue.
        pub tail_doorbell: DevicePtr<u32>,
        /// The doorbell of the completion queue.
        pub head_doorbell: DevicePtr<u32>,
        /// The bus address of the staging memory, as the pair's drive has it.
        pub staging_bus: u64,
        /// The drive's block at which its rows begin.
        pub first_block: u64,
        /// The namespace that has them.
        pub namespace_id: u32,
        /// Nothing: 0.
        pub reserved: u32,
    }
}

shared! {
    /// Where rows lie on drives: in groups, whose bytes are in stripes, of which each drive has one in
    /// turn.
    #[derive(Debug, PartialEq, Eq)]
    pub struct RowPlaces as "RowPlaces" {
        /// The byte of the stripes at which the first group begins.
        pub start: u64,
        /// Bytes of a row.
        pub row_bytes: u32,
        /// Bytes from the start of a row to the start of the next in its group.
        pub stride: u32,
        /// How many rows a group has.
        pub rows_per_group: u32,
        /// Bytes from the start of a group to the start of the next.
        pub group_bytes: u32,
        /// The binary logarithm of a stripe's bytes.
        pub stripe_log2: u32,
        /// How many drives there are.
        pub drives: u32,
        /// The binary logarithm of a logical block's bytes.
        pub block_log2: u32,
        /// Bytes of staging memory that a read has: no more than two pages are touched by as many.
        pub span_bytes: u32,
    }
}

/// A row that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RowRequest {
    /// The number of the row.
    pub row: u32,
    /// The index of the row at its destination.
    pub target: u32,
}

impl Shared for RowRequest {
    const CUDA: &'static str = "RowRequest";
    const FIELDS: &'static [(&'static str, usize)] =
        &[("row", std::mem::offset_of!(Self, row)), ("target", std::mem::offset_of!(Self, target))];
}

/// Rows that are wanted, in device memory: whoever found out which never told the host.
#[derive(Debug, Clone, Copy)]
pub struct RowRequests {
    /// The requests, one behind the other.
    pub list: DevicePtr<RowRequest>,
    /// How many there are.
    pub count: DevicePtr<u32>,
}

/// The places in device memory that rows go to.
#[derive(Debug, Clone, Copy)]
pub struct RowTargets {
    /// The first byte of the row of index 0.
    pub start: DevicePtr<u8>,
    /// Bytes from the start of a row to the start of the next.
    pub stride: u64,
}

impl RowTargets {
    /// The rows of `matrix`, each of `dim` values.
    pub fn in_matrix(matrix: DeviceView<f32>, dim: usize) -> Self {
        Self { start: matrix.ptr().field(0), stride: (dim * size_of::<f32>()) as u64 }
    }

    /// Bytes of the widest words at which all rows begin, and all multiples of `lengths` end.
    pub(super) fn word_bytes(self, lengths: u64) -> u32 {
        match (lengths | self.stride | self.start.address()).trailing_zeros() {
            0 | 1 => 1,
            2 => 4,
            3 => 8,
            _ => 16,
        }
    }
}

/// Why reads failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// A drive ended a command with a status that is no success.
    Refused = 1,
    /// No completion came in time.
    Late = 2,
    /// The host stopped the kernels.
    Stopped = 3,
    /// There was a completion of no command that is in flight.
    Impossible = 4,
}

/// The first failure of its sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFailure {
    /// Why the read failed.
    pub kind: FailureKind,
    /// The index of its queue pair among those of the batch.
    pub pair: usize,
    /// The command's identifier, if there is one.
    pub cid: u16,
    /// The completion's status, if there is one.
    pub status: u16,
    /// The row, if it is known.
    pub row: u32,
}

shared! {
    #[derive(Debug, Pod)]
    struct Failure as "Failure" {
        kind: u32,
        pair: u32,
        cid: u32,
        status: u32,
        row: u32,
    }
}

impl Failure {
    fn get(&self) -> Option<ReadFailure> {
        let kinds = [
            FailureKind::Refused,
            FailureKind::Late,
            FailureKind::Stopped,
            FailureKind::Impossible,
        ];
        let kind = kinds.into_iter().find(|&kind| kind as u32 == self.kind)?;
        let Self { pair, cid, status, row, .. } = *self;
        let (pair, cid, status) = (pair as usize, cid as u16, status as u16);
        Some(ReadFailure { kind, pair, cid, status, row })
    }
}

shared! {
    struct Watched as "Watch" {
        refused: DevicePtr<Failure>,
        broken: DevicePtr<Failure>,
        blocks: DevicePtr<u64>,
        stop: DevicePtr<u32>,
        most_ns: u64,
    }
}

/// What a host sees of reads that kernels start: their failures. And what kernels see of it: whether
/// they shall stop, and how long they may wait.
#[derive(Debug)]
pub struct ReadWatch {
    /// The first read that a drive refused, and the first reason why queue pairs are broken.
    failures: DeviceBuf<Failure>,
    /// Blocks of drives that kernels asked for so far.
    blocks: DeviceBuf<u64>,
    stop: DevicePtr<u32>,
    most: Duration,
}

/// The failures of reads so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFailures {
    /// The first read that a drive refused; the others went on.
    pub refused: Option<ReadFailure>,
    /// Why queue pairs are of no use any more: commands may be in flight that nobody waits for.
    pub broken: Option<ReadFailure>,
}

impl ReadWatch {
    /// A watch over kernels that leave when the word at `stop`, in mapped memory, is not 0, or after
    /// they waited for a completion as long as `most`.
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    pub fn new(stream: &Stream, stop: DevicePtr<u32>, most: Duration) -> Result<Self> {
        let (failures, blocks) =
            (stream.uploaded(&[Failure::zeroed(); 2])?, stream.uploaded(&[0])?);
        Ok(Self { failures, blocks, stop, most })
    }

    /// The failures so far. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of that work.
    pub fn failures(&self, stream: &Stream) -> Result<ReadFailures> {
        let found = stream.download(&self.failures, 2)?;
        Ok(ReadFailures { refused: found[0].get(), broken: found[1].get() })
    }

    /// How many blocks of drives kernels asked for so far. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of that work.
    pub fn blocks(&self, stream: &Stream) -> Result<u64> {
        Ok(stream.download(&self.blocks, 1)?[0])
    }

    /// Forgets the read that was refused.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn forget_refused(&mut self, stream: &Stream) -> Result<()> {
        stream.upload(&mut self.failures, &[Failure::zeroed()])
    }

    fn watched(&self) -> Watched {
        Watched {
            refused: self.failures.ptr(),
            broken: self.failures.ptr().offset(1),
            blocks: self.blocks.ptr(),
            stop: self.stop,
            most_ns: u64::try_from(self.most.as_nanos()).unwrap_or(u64::MAX / 2),
        }
    }
}

impl RowPlaces {
    /// The most parts of a row that lie on different drives: 2 where groups cross stripes.
    pub fn parts(&self) -> u32 {
        let group = u64::from(self.group_bytes);
        let is_whole =
            (1_u64 << self.stripe_log2).is_multiple_of(group) && self.start.is_multiple_of(group);
        if self.drives == 1 || is_whole { 1 } else { 2 }
    }

    /// Bytes of the widest words that rows are copied by to `to`: all of them begin and end at such a
    /// word.
    fn word_bytes(&self, to: RowTargets) -> u32 {
        let between = if self.rows_per_group > 1 { self.stride } else { 0 };
        to.word_bytes(u64::from(self.row_bytes | between | self.group_bytes) | self.start)
    }
}
