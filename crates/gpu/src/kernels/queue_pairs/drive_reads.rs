//! Launches of `drive_reads.cu`: rows that a GPU asks drives for in one kernel, and takes in another.

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;

use super::{
    Failure, QUEUE_PAIRS, QueuePairAddresses, ROW_REQUESTS, ReadWatch, RowPlaces, RowRequest,
    RowRequests, RowTargets, Watched,
};
use crate::kernels::{COPY_ROWS, LANES, Source, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Grid, Kernel, Stream};

/// Threads of a block, at most.
const SUBMITTERS: u32 = 1024;
const TAKERS: u32 = 512;
const MOST_PAIRS: usize = 1024;
/// The bits of a command's identifier.
const CID_BITS: u32 = u16::BITS;

shared! {
    #[derive(Debug, Pod)]
    struct Slot as "Slot" {
        span: u32,
        skip: u32,
        target: u32,
        row: u32,
        begin: u32,
        bytes: u32,
    }
}

shared! {
    #[derive(Debug, Pod)]
    struct PairState as "PairState" {
        position: u32,
        count: u32,
    }
}

shared! {
    struct Batch as "Batch" {
        pairs: DevicePtr<QueuePairAddresses>,
        states: DevicePtr<PairState>,
        slots: DevicePtr<Slot>,
        words: DevicePtr<u32>,
        staging: DevicePtr<u8>,
        watch: Watched,
        rows: RowPlaces,
        pairs_per_drive: u32,
        entries_log2: u32,
        round: u32,
        parts: u32,
    }
}

shared! {
    struct Submission as "Submission" {
        batch: Batch,
        requests: DevicePtr<RowRequest>,
        count: DevicePtr<u32>,
        told: DevicePtr<u32>,
        first: u32,
        most: u32,
    }
}

shared! {
    struct Completing as "Completing" {
        batch: Batch,
        to: DevicePtr<u8>,
        to_stride: u64,
        word_bytes: u32,
        reserved: u32,
    }
}

/// The queue pairs of a batch of reads, of each drive as many, and where they are: device memory.
/// Nothing else is in flight in them.
#[derive(Debug)]
pub struct BatchPairs {
    pairs: DeviceBuf<QueuePairAddresses>,
    states: DeviceBuf<PairState>,
    slots: DeviceBuf<Slot>,
    words: DeviceBuf<u32>,
    staging: DevicePtr<u8>,
    rows: RowPlaces,
    pairs_per_drive: u32,
    entries_log2: u32,
    /// How many batches were submitted by them.
    batches: u32,
}

impl BatchPairs {
    /// Queue pairs that were just created, with rings of `2^entries_log2` entries: those of a drive side
    /// by side, as many of each. The staging memory from `staging` on has a span for each read of a
    /// batch.
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    ///
    /// # Panics
    /// If drives have no queue pairs, more than 1,024 in all, or rings of more than 4,096 entries.
    pub fn new(
        stream: &Stream,
        pairs: &[QueuePairAddresses],
        entries_log2: u32,
        staging: DevicePtr<u8>,
        rows: RowPlaces,
    ) -> Result<Self> {
        let (count, drives) = (pairs.len(), rows.drives as usize);
        assert!(count >= drives && count.is_multiple_of(drives) && count <= MOST_PAIRS);
        assert!((1..=CID_BITS - 4).contains(&entries_log2), "identifiers have room for a count");
        let device = stream.device();
        Ok(Self {
            pairs: stream.uploaded(pairs)?,
            states: stream.uploaded(&vec![PairState::zeroed(); count])?,
            slots: DeviceBuf::new(device, count << entries_log2)?,
            words: DeviceBuf::new(device, count << entries_log2)?,
            staging,
            rows,
            pairs_per_drive: (count / drives) as u32,
            entries_log2,
            batches: 0,
        })
    }

    /// The most rows of a batch: as many as fit the queue pairs of one drive, which may have all rows, or
    /// half of that where rows may lie on two.
    pub fn capacity(&self) -> u32 {
        self.pairs_per_drive * ((1 << self.entries_log2) - 1) / self.rows.parts()
    }

    /// How many queue pairs there are, of all drives.
    pub fn pairs(&self) -> u32 {
        self.pairs.len() as u32
    }

    fn batch(&self, watch: &ReadWatch) -> Batch {
        Batch {
            pairs: self.pairs.ptr(),
            states: self.states.ptr(),
            slots: self.slots.ptr(),
            words: self.words.ptr(),
            staging: self.staging,
            watch: watch.watched(),
            rows: self.rows,
            pairs_per_drive: self.pairs_per_drive,
            entries_log2: self.entries_log2,
            round: self.batches << self.entries_log2 & ((1 << CID_BITS) - 1),
            parts: self.rows.parts(),
        }
    }
}

/// What a kernel asks drives for.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// The requests, of more batches than this.
    pub requests: RowRequests,
    /// The number of the batch's first request.
    pub first: u32,
    /// The word in mapped host memory that is told the number of commands, or null.
    pub told: DevicePtr<u32>,
}

/// How a kernel takes the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Taking {
    /// It waits for completions as long as its watch allows.
    Waiting,
    /// Completions that have not come by now are late.
    Now,
    /// All completions have come, and the staging memory was copied to device memory that begins here.
    Copied(DevicePtr<u8>),
}

/// The compiled kernels that read rows in two steps: `submit` and `complete`.
#[derive(Debug, Clone)]
pub struct ReadKernels {
    submit: Kernel,
    complete: Kernel,
}

pub(super) fn source() -> Source {
    Source::new(
        "drive_reads",
        &[TYPES, COPY_ROWS, ROW_REQUESTS, QUEUE_PAIRS, include_str!("drive_reads.cu")],
    )
    .sharing::<QueuePairAddresses>()
    .sharing::<RowPlaces>()
    .sharing::<RowRequest>()
    .sharing::<Failure>()
    .sharing::<Watched>()
    .sharing::<Slot>()
    .sharing::<PairState>()
    .sharing::<Batch>()
    .sharing::<Submission>()
    .sharing::<Completing>()
}

impl ReadKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        Ok(Self { submit: module.kernel("submit")?, complete: module.kernel("complete")? })
    }

    /// Asks drives for the rows of `asking`, as many as `pairs` have room for, by one block of `threads` threads, in order with the stream. The batch before by `pairs` is
    /// complete. The number of commands, 0 after a failure that broke queue pairs, is written to the word
    /// `told`, in mapped host memory, unless that is null.
    ///
    /// # Errors
    /// Any error of the driver. What drives and kernels find wrong is for `watch`.
    ///
    /// # Panics
    /// If `threads` are not whole warps, or more than 1,024.
    pub fn submit(
        &self,
        stream: &Stream,
        threads: u32,
        pairs: &mut BatchPairs,
        watch: &ReadWatch,
        asking: Asking,
    ) -> Result<()> {
        let Asking { requests, first, told } = asking;
        pairs.batches = pairs.batches.wrapping_add(1);
        let submission = Submission {
            batch: pairs.batch(watch),
            requests: requests.list,
            count: requests.count,
            told,
            first,
            most: pairs.capacity(),
        };
        let grid = Grid { blocks: 1, threads };
        check(grid, SUBMITTERS);
        // SAFETY: `Submission` of the source; slots and entries are as many as `batch` says, the batch
        // has no more reads than the staging memory has spans, and one block writes all of it.
        unsafe { self.submit.launch(stream, grid, &[&submission]) }
    }

    /// Takes the rows of the last batch of `pairs` to `to`, by the blocks of `grid`, in order with the stream:
    /// when the kernel ends, they are there, or `watch` knows why not. `from` says what it does about
    /// completions, and where rows come to.
    ///
    /// # Errors
    /// Any error of the driver. What drives and kernels find wrong is for `watch`.
    ///
    /// # Panics
    /// If `threads` are not whole warps, fewer than two of them (one only watches), or more than 512.
    pub fn complete(
        &self,
        stream: &Stream,
        grid: Grid,
        pairs: &BatchPairs,
        watch: &ReadWatch,
        to: RowTargets,
        from: Taking,
    ) -> Result<()> {
        let mut batch = pairs.batch(watch);
        match from {
            Taking::Waiting => {}
            Taking::Now => batch.watch.most_ns = 0,
            Taking::Copied(staging) => batch.staging = staging,
        }
        let completing = Completing {
            batch,
            to: to.start,
            to_stride: to.stride,
            word_bytes: pairs.rows.word_bytes(to),
            reserved: 0,
        };
        assert!(grid.threads > LANES as u32, "one warp watches, and others copy");
        check(grid, TAKERS);
        // SAFETY: `Completing` of the source; `to` has room for the rows that were asked for, as whoever
        // made the requests says.
        unsafe { self.complete.launch(stream, grid, &[&completing]) }
    }
}

/// Checks that a block has whole warps, and at most `most` threads.
fn check(grid: Grid, most: u32) {
    let Grid { threads, .. } = grid;
    let is_possible = (1..=most).contains(&threads) && threads.is_multiple_of(LANES as u32);
    assert!(is_possible, "`{threads}` threads are whole warps, and at most `{most}`");
}
