//! Drives, and queue pairs of them whose memory a GPU writes and reads in place.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{QueuePairAddresses, RowPlaces};
use tiergraph_gpu::{Device, DeviceBuf, DevicePtr, RegisteredMemory, Stream};
use tiergraph_mem::PAGE_BYTES;
use tiergraph_nvme::command::COMMAND_BYTES;
use tiergraph_nvme::completion::COMPLETION_BYTES;
use tiergraph_nvme::controller::Mapped;
use tiergraph_nvme::{SharedMemory, SoftwareController, SoftwareOptions, Storage, Timing};

use super::RowsOnDrives;
use crate::RawDrive;
use crate::drives::StartedDrive;

const CACHE_LINE_BYTES: usize = 64;
/// The index of the staging memory among registered memories.
const STAGING: usize = 1;

/// A drive that a GPU reads from.
#[derive(Debug, Clone)]
pub struct GpuDrive {
    drive: Arc<StartedDrive>,
    first_byte: u64,
}

impl GpuDrive {
    /// A drive whose rows begin at byte `first_byte`.
    pub(super) fn new(drive: Arc<StartedDrive>, first_byte: u64) -> Self {
        Self { drive, first_byte }
    }

    /// A drive made of threads, whose rows are the bytes of `storage`.
    ///
    /// # Errors
    /// As [`SoftwareController::start`] and [`Controller::start`](tiergraph_nvme::Controller::start).
    pub fn software(
        storage: impl Storage + 'static,
        options: SoftwareOptions,
        timing: Timing,
    ) -> Result<Self> {
        let serial = options.serial.clone();
        let software = SoftwareController::start(storage, options)?;
        let drive = StartedDrive::start(RawDrive::software(serial, software), timing)?;
        Ok(Self::new(Arc::new(drive), 0))
    }
}

/// How queue pairs of drives are made for a GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueOptions {
    /// Sets of queue pairs, of which each has some of every drive.
    pub sets: usize,
    /// Queue pairs of a drive in a set.
    pub pairs_per_drive: usize,
    /// Entries of a ring: a power of two.
    pub entries: u16,
}

/// A set of queue pairs, those of a drive side by side, and its staging memory.
#[derive(Debug)]
pub(super) struct PairSet {
    pub addresses: Vec<QueuePairAddresses>,
    /// The rings of completions.
    pub completions: Vec<SharedMemory>,
    /// A span for each command that the pairs of one drive may have in flight.
    pub staging: DevicePtr<u8>,
}

/// Drives, the memory that they share with a GPU, and the word that stops the GPU's kernels.
#[derive(Debug)]
pub(super) struct Queues {
    device: Device,
    pub places: RowPlaces,
    pub entries_log2: u32,
    pub sets: Vec<PairSet>,
    /// Bytes of a set's staging memory.
    pub set_bytes: usize,
    /// A page of words: the first stops the GPU's kernels, and each set of queue pairs has one in which
    /// they say how many commands were submitted.
    words: SharedMemory,
    words_of: DevicePtr<u8>,
    drives: Vec<QueuesOfDrive>,
    /// Registers of drives, as kernels reach them.
    registers: Vec<Arc<RegisteredMemory>>,
    /// The page of words, the staging memory, and rings, as kernels reach them.
    registered: Vec<RegisteredMemory>,
}

/// What a GPU has of a drive. Dropping it deletes the queue pairs.
#[derive(Debug)]
struct QueuesOfDrive {
    drive: Arc<StartedDrive>,
    /// The numbers of its queue pairs.
    pairs: Vec<u16>,
    /// The staging memory, as the drive reaches it.
    staging: Option<Mapped>,
}

impl Drop for QueuesOfDrive {
    fn drop(&mut self) {
        let mut controller = self.drive.controller();
        if self.pairs.drain(..).any(|pair| controller.delete(pair).is_err()) {
            // The drive may write there still, so it stays mapped.
            std::mem::forget(self.staging.take());
        }
    }
}

impl Queues {
    pub fn new(
        device: &Device,
        drives: Vec<GpuDrive>,
        rows: &RowsOnDrives,
        options: QueueOptions,
    ) -> Result<Self> {
        let QueueOptions { sets, pairs_per_drive, entries } = options;
        check(&drives, options)?;
        let block_bytes = drives[0].drive.namespace().block_bytes;
        let places = rows.places(drives.len(), block_bytes)?;
        let register = |memory: &SharedMemory| RegisteredMemory::new(device, memory.clone());

        let words = SharedMemory::zeroed(PAGE_BYTES)?;
        let mut registered = vec![register(&words)?];
        let words_of = registered[0].ptr(0);
        let spans = pairs_per_drive * (usize::from(entries) - 1);
        let set_bytes = (spans * places.span_bytes as usize).next_multiple_of(PAGE_BYTES);
        let staging = SharedMemory::zeroed(sets * set_bytes)?;
        let spans_of = register(&staging)?;
        let made: Vec<PairSet> = (0..sets)
            .map(|set| PairSet {
                addresses: Vec::new(),
                completions: Vec::new(),
                staging: spans_of.ptr(set * set_bytes),
            })
            .collect();
        registered.push(spans_of);

        let ring =
            |entry_bytes: usize| (usize::from(entries) * entry_bytes).next_multiple_of(PAGE_BYTES);
        let (commands, pair_bytes) =
            (ring(COMMAND_BYTES), ring(COMMAND_BYTES) + ring(COMPLETION_BYTES));
        let mut queues = Self {
            device: device.clone(),
            places,
            entries_log2: entries.ilog2(),
            sets: made,
            set_bytes,
            words,
            words_of,
            drives: Vec::new(),
            registers: Vec::new(),
            registered,
        };
        for GpuDrive { drive, first_byte } in drives {
            let staging = Mapped::new(drive.controller().dma(), staging.clone())?;
            let registers = drive.registers_of_gpus(device)?;
            let rings = SharedMemory::zeroed(sets * pairs_per_drive * pair_bytes)?;
            let entries_of = register(&rings)?;
            let staging_bus = staging.bus();
            let staging = Some(staging);
            let mut of_drive = QueuesOfDrive { drive: Arc::clone(&drive), pairs: vec![], staging };
            for pair in 0..sets * pairs_per_drive {
                let (at, set) = (pair * pair_bytes, pair / pairs_per_drive);
                let submissions = rings.part(at..at + commands);
                let completions = rings.part(at + commands..at + pair_bytes);
                queues.sets[set].completions.push(completions.clone());
                let doorbells = drive.controller().rings(entries, submissions, completions)?;
                of_drive.pairs.push(doorbells.id);
                queues.sets[set].addresses.push(QueuePairAddresses {
                    submissions: entries_of.ptr(at),
                    completions: entries_of.ptr(at + commands),
                    tail_doorbell: registers.ptr(doorbells.tail_doorbell),
                    head_doorbell: registers.ptr(doorbells.head_doorbell),
                    staging_bus: staging_bus + (set * set_bytes) as u64,
                    first_block: first_byte / block_bytes,
                    namespace_id: drive.namespace().id,
                    reserved: 0,
                });
            }
            queues.drives.push(of_drive);
            queues.registers.push(registers);
            queues.registered.push(entries_of);
        }
        Ok(queues)
    }

    /// Bytes of host memory that kernels reach.
    pub fn host_bytes(&self) -> u64 {
        let registers = self.registers.iter().map(|memory| memory.bytes());
        let others = self.registered.iter().map(RegisteredMemory::bytes);
        registers.chain(others).sum::<usize>() as u64
    }

    /// The word that stops the GPU's kernels.
    pub fn stop_word(&self) -> DevicePtr<u32> {
        self.words_of.field(0)
    }

    /// The word in which kernels say how many commands of set number `set` they submitted.
    pub fn told_word(&self, set: usize) -> DevicePtr<u32> {
        self.words_of.field(told_at(set))
    }

    /// How many commands of set number `set` were submitted, as a kernel said last.
    pub fn told(&self, set: usize) -> u32 {
        self.words.load_acquire(told_at(set))
    }

    /// Copies the staging memory of the first `commands` commands of set number `set` to `to`, in order with
    /// the stream.
    pub fn copy_staging(
        &self,
        stream: &Stream,
        set: usize,
        commands: u32,
        to: &DeviceBuf<u8>,
    ) -> Result<()> {
        let bytes = commands as usize * self.places.span_bytes as usize;
        stream.copy_registered(&self.registered[STAGING], set * self.set_bytes, bytes, to)
    }

    /// A handle that stops the GPU's kernels.
    pub fn stop(&self) -> StopReads {
        StopReads(self.words.clone())
    }
}

impl Drop for Queues {
    /// Ends the kernels that use the queues: one that waits for a drive leaves.
    fn drop(&mut self) {
        self.words.store_release(0, 1);
        // After an error of the driver none of them runs any more.
        let _ = self.device.synchronize();
        self.drives.clear();
    }
}

/// Stops the kernels that wait for drives, from any thread.
#[derive(Debug, Clone)]
pub struct StopReads(SharedMemory);

impl StopReads {
    /// Has kernels leave soon: what they read is not there, and their queue pairs are of no use any
    /// more.
    pub fn stop(&self) {
        self.0.store_release(0, 1);
    }
}

/// The byte of the page of words at which a set's is.
fn told_at(set: usize) -> usize {
    (set + 1) * CACHE_LINE_BYTES
}

fn check(drives: &[GpuDrive], options: QueueOptions) -> Result<()> {
    let refused = |expected: String, got: String| {
        Err(Error::new(ErrorKind::Input, "read rows by a GPU").expected(expected).got(got))
    };
    let QueueOptions { sets, pairs_per_drive, entries } = options;
    let Some(first) = drives.first() else {
        return refused("at least one drive".into(), "none".into());
    };
    let block_bytes = first.drive.namespace().block_bytes;
    for GpuDrive { drive, first_byte } in drives {
        let namespace = drive.namespace();
        let controller = drive.controller();
        if namespace.block_bytes != block_bytes || !first_byte.is_multiple_of(block_bytes) {
            return refused(
                format!("drives of blocks of `{block_bytes}` bytes, and rows from a block on"),
                format!(
                    "blocks of `{}` bytes, rows from byte `{first_byte}` on",
                    namespace.block_bytes
                ),
            );
        }
        let (most, pairs) = (controller.most_entries(), controller.most_queue_pairs());
        let is_possible = entries.is_power_of_two() && (2..=most).contains(&entries);
        let wanted = sets * pairs_per_drive;
        if !is_possible || wanted == 0 || wanted > pairs.into() || told_at(sets) >= PAGE_BYTES {
            return refused(
                format!(
                    "`1` to `{pairs}` queue pairs of a power of two of entries, at most `{most}`"
                ),
                format!("`{wanted}` of `{entries}`"),
            );
        }
    }
    Ok(())
}
