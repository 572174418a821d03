//! Launches of `coupled_reads.cu`: rows that warps ask drives for and wait for, each its own.

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;

use super::page_cache::PageCacheOfKernels;
use super::{
    Failure, PAGE_CACHE, PageCache, QUEUE_PAIRS, QueuePairAddresses, ROW_REQUESTS, ReadWatch,
    RowPlaces, RowRequest, RowRequests, RowTargets, Watched,
};
use crate::kernels::{COPY_ROWS, LANES, Source, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

/// Threads of a block.
const THREADS: u32 = 256;

shared! {
    #[derive(Debug, Pod)]
    struct CoupledState as "CoupledState" {
        tickets: u32,
        told: u32,
        taken: u32,
        unused: [u32; 29],
    }
}

shared! {
    struct Coupled as "Coupled" {
        pairs: DevicePtr<QueuePairAddresses>,
        states: DevicePtr<CoupledState>,
        marks: DevicePtr<u64>,
        answers: DevicePtr<u32>,
        staging: DevicePtr<u8>,
        watch: Watched,
        rows: RowPlaces,
        pairs_per_drive: u32,
        entries_log2: u32,
        requests: DevicePtr<RowRequest>,
        count: DevicePtr<u32>,
        to: DevicePtr<u8>,
        to_stride: u64,
        word_bytes: u32,
        most_warps: u32,
        cache: PageCacheOfKernels,
    }
}

/// Queue pairs that warps share, and where they are: device memory.
#[derive(Debug)]
pub struct CoupledPairs {
    pairs: DeviceBuf<QueuePairAddresses>,
    states: DeviceBuf<CoupledState>,
    marks: DeviceBuf<u64>,
    answers: DeviceBuf<u32>,
    staging: DevicePtr<u8>,
    rows: RowPlaces,
    pairs_per_drive: u32,
    entries_log2: u32,
}

impl CoupledPairs {
    /// Queue pairs that were just created, with rings of `2^entries_log2` entries: those of a drive side
    /// by side, as many of each. The staging memory from `staging` on has a span for each of
    /// [`warps`](Self::warps).
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    ///
    /// # Panics
    /// If drives have no queue pairs, or rings of more than 4,096 entries.
    pub fn new(
        stream: &Stream,
        pairs: &[QueuePairAddresses],
        entries_log2: u32,
        staging: DevicePtr<u8>,
        rows: RowPlaces,
    ) -> Result<Self> {
        let (count, drives) = (pairs.len(), rows.drives as usize);
        assert!(count >= drives && count.is_multiple_of(drives) && entries_log2 <= 12);
        Ok(Self {
            pairs: stream.uploaded(pairs)?,
            states: stream.uploaded(&vec![CoupledState::zeroed(); count])?,
            marks: stream.uploaded(&vec![0; count << entries_log2])?,
            answers: stream.uploaded(&vec![0; count << entries_log2])?,
            staging,
            rows,
            pairs_per_drive: (count / drives) as u32,
            entries_log2,
        })
    }

    /// The most warps that may ask by the queue pairs. Each has one command in flight, and a drive is told of
    /// completions that were taken when they are a quarter of a ring.
    pub fn warps(&self) -> u32 {
        let entries = 1 << self.entries_log2;
        self.pairs_per_drive * (entries - (entries / 4).max(1))
    }
}

/// The compiled kernel whose warps submit and poll, each for its own row.
#[derive(Debug, Clone)]
pub struct CoupledKernel {
    coupled: Kernel,
    resident: u32,
}

pub(super) fn source() -> Source {
    Source::new(
        "coupled_reads",
        &[
            TYPES,
            COPY_ROWS,
            ROW_REQUESTS,
            QUEUE_PAIRS,
            PAGE_CACHE,
            include_str!("coupled_reads.cu"),
        ],
    )
    .sharing::<QueuePairAddresses>()
    .sharing::<RowPlaces>()
    .sharing::<RowRequest>()
    .sharing::<Failure>()
    .sharing::<Watched>()
    .sharing::<CoupledState>()
    .sharing::<PageCacheOfKernels>()
    .sharing::<Coupled>()
}

impl CoupledKernel {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let coupled = source().compile(device)?.kernel("coupled")?;
        let resident = coupled.resident_blocks(THREADS)?;
        Ok(Self { coupled, resident })
    }

    /// Reads all requested rows to `to`, by at most `blocks` blocks, one at least, and as many as run at once, in
    /// order with the stream: when the kernel ends, they are there, or `watch` knows why not. Rows that are in
    /// the `cache` of an earlier call come from there, and those that are read go there.
    ///
    /// # Errors
    /// Any error of the driver. What drives and kernels find wrong is for `watch`.
    pub fn read(
        &self,
        stream: &Stream,
        blocks: u32,
        pairs: &mut CoupledPairs,
        (watch, cache): (&ReadWatch, Option<&PageCache>),
        requests: RowRequests,
        to: RowTargets,
    ) -> Result<()> {
        let coupled = Coupled {
            pairs: pairs.pairs.ptr(),
            states: pairs.states.ptr(),
            marks: pairs.marks.ptr(),
            answers: pairs.answers.ptr(),
            staging: pairs.staging,
            watch: watch.watched(),
            rows: pairs.rows,
            pairs_per_drive: pairs.pairs_per_drive,
            entries_log2: pairs.entries_log2,
            requests: requests.list,
            count: requests.count,
            to: to.start,
            to_stride: to.stride,
            word_bytes: pairs.rows.word_bytes(to),
            most_warps: pairs.warps(),
            cache: PageCacheOfKernels::of(cache),
        };
        let most = pairs.warps().div_ceil(THREADS / LANES as u32);
        let blocks = blocks.min(self.resident).min(most).max(1);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Coupled` of the source; no more warps read than there are slots and spans. `to` has
        // room for the rows that were asked for, as whoever made the requests says.
        unsafe { self.coupled.launch(stream, grid, &[&coupled]) }
    }
}
