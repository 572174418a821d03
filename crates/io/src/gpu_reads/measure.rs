//! How many rows a second a GPU reads: from drives made of threads, over a table in host memory.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tiergraph_core::{Draws, Error, ErrorKind, Result};
use tiergraph_gpu::kernels::{RowRequest, RowRequests, RowTargets};
use tiergraph_gpu::{Device, DeviceBuf, Event, Stream};
use tiergraph_nvme::{ModelledDrive, SharedMemory, SoftwareOptions, Status, Storage, Timing};

use super::{CoupledReads, GpuDrive, GpuReadOptions, GpuReads, ReadStreams, RowsOnDrives};

/// Bytes of a stripe of the table.
const STRIPE_BYTES: u64 = 1 << 20;
/// Rows that are compared with the table before a measurement.
const COMPARED: usize = 2048;
/// What modelled drives take to answer, as NVMe drives do.
const LATENCY: Duration = Duration::from_micros(80);
/// Long enough for drives that move nothing to answer a batch.
const ANSWERED: Duration = Duration::from_millis(20);
/// The longest wait for a completion.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Threads that fill the table.
const FILLERS: u64 = 8;

/// How rows are asked for and taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manner {
    /// By [`GpuReads`]: batches are submitted while others are completed.
    Split,
    /// By [`CoupledReads`]: every warp waits for its own row.
    Coupled,
    /// By [`GpuReads`], a batch at a time: each kernel is timed alone, and all completions are there
    /// before they are taken.
    Alone,
}

/// What is measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct GpuReadLoad {
    /// How rows are asked for and taken.
    pub manner: Manner,
    /// Bytes of a row: whole blocks of 512 bytes, and a part of 1 MiB.
    pub row_bytes: u32,
    /// Rows that are asked for at a time.
    pub rows: usize,
    /// The number of drives.
    pub drives: usize,
    /// Threads that are drives, all together; each drive has one at least.
    pub threads: usize,
    /// Queue pairs of each drive that a batch has.
    pub pairs_per_drive: usize,
    /// Entries of a queue: a power of two.
    pub entries: u16,
    /// Batches that may be in flight.
    pub batches: usize,
    /// Threads of the block that submits.
    pub submit_threads: u32,
    /// Blocks that take completions, or, coupled, that read.
    pub blocks: u32,
    /// Threads of a block that takes completions.
    pub threads_per_block: u32,
    /// Reads a second of each modelled drive; `None`: as fast as threads are.
    pub iops: Option<f64>,
    /// Whether drives copy rows; otherwise they only answer: the control path alone.
    pub copies: bool,
    /// How long is measured, in seconds.
    pub seconds: f64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct GpuReadRate {
    /// The GPU's name.
    pub device: String,
    /// Rows that were read in the measured time.
    pub reads: u64,
    /// The measured time.
    pub seconds: f64,
    /// Rows read a second.
    pub reads_per_second: f64,
    /// Bytes of rows read a second.
    pub bytes_per_second: f64,
    /// Rows of a batch, at most.
    pub batch_rows: usize,
    /// Of kernels that were timed alone: nanoseconds of submission a row, the median batch's.
    pub submit_ns: Option<f64>,
    /// Of kernels that were timed alone: nanoseconds of completion a row, the median batch's.
    pub complete_ns: Option<f64>,
}

/// A table in host memory that drives made of threads hold, each a share. Each 8-byte word of it is the
/// byte of the table at which it lies.
#[derive(Debug)]
pub struct BenchTable {
    memory: SharedMemory,
}

impl BenchTable {
    /// A table of `bytes`, rounded up to MiB.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub fn new(bytes: u64) -> Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(STRIPE_BYTES);
        let memory = SharedMemory::zeroed(bytes as usize)?;
        let stripes = bytes / STRIPE_BYTES;
        thread::scope(|scope| {
            for filler in 0..FILLERS {
                let memory = &memory;
                scope.spawn(move || {
                    for stripe in (filler..stripes).step_by(FILLERS as usize) {
                        let begin = stripe * STRIPE_BYTES;
                        for at in (begin..begin + STRIPE_BYTES).step_by(8) {
                            memory.store64(at as usize, at);
                        }
                    }
                });
            }
        });
        Ok(Self { memory })
    }

    /// Measures how many rows a second GPU `ordinal` reads from the table. A first round is not counted,
    /// and a part of its rows is compared with the table.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a load that the table, drives or kernels cannot have;
    /// [`ErrorKind::Internal`] for rows that are not the table's; no GPU, any error of the driver or a
    /// drive.
    pub fn measure(&self, ordinal: usize, load: &GpuReadLoad) -> Result<GpuReadRate> {
        let share = self.share(load)?;
        let device = Device::open(ordinal)?;
        let stream = || Stream::new(&device);
        let streams = ReadStreams { submitting: stream()?, completing: stream()? };
        let rows = share * load.drives as u64 / u64::from(load.row_bytes);
        let wanted = Wanted::random(&streams.completing, load, rows)?;
        let setup = Setup { load, streams: &streams, wanted: &wanted };
        match load.manner {
            Manner::Coupled => setup.coupled(self, share),
            Manner::Split => setup.split(self, share),
            Manner::Alone => setup.alone(self, share),
        }
    }

    /// Bytes of the table that each drive holds.
    fn share(&self, load: &GpuReadLoad) -> Result<u64> {
        let table = self.memory.len() as u64;
        let share = table / load.drives.max(1) as u64 / STRIPE_BYTES * STRIPE_BYTES;
        let rows = share * load.drives as u64 / u64::from(load.row_bytes.max(1));
        let is_whole = load.row_bytes > 0
            && load.row_bytes.is_multiple_of(512)
            && STRIPE_BYTES.is_multiple_of(load.row_bytes.into());
        if !is_whole || rows == 0 || rows > u32::MAX.into() || load.rows == 0 {
            return Err(Error::new(ErrorKind::Input, "measure reads of a GPU")
                .expected("whole blocks a row, and at least one stripe a drive")
                .got(format!("{load:?} from a table of `{table}` bytes")));
        }
        Ok(share)
    }

    fn drives(&self, load: &GpuReadLoad, share: u64) -> Result<Vec<GpuDrive>> {
        let model = load.iops.map(|iops| ModelledDrive::new(f64::INFINITY, iops, LATENCY));
        let model = model.transpose()?;
        let sets = if load.manner == Manner::Coupled { 1 } else { load.batches };
        let drive = |number: usize| {
            let begin = number * share as usize;
            let memory = self.memory.part(begin..begin + share as usize);
            let options = SoftwareOptions {
                block_bytes: 512,
                queue_pairs: (sets * load.pairs_per_drive).clamp(1, 4096) as u16,
                queue_entries: load.entries.into(),
                threads: (load.threads / load.drives).max(1),
                drive: model.as_ref().map(ModelledDrive::another),
                ..SoftwareOptions::default()
            };
            let storage = Share { memory, copies: load.copies };
            GpuDrive::software(storage, options, Timing::default())
        };
        (0..load.drives).map(drive).collect()
    }

    /// Compares the first targets with the rows that were asked for.
    fn compare(&self, setup: &Setup<'_>, share: u64) -> Result<()> {
        let (load, wanted) = (setup.load, setup.wanted);
        if !load.copies {
            return Ok(());
        }
        let (row_bytes, compared) = (load.row_bytes as usize, load.rows.min(COMPARED));
        let got = setup.streams.completing.download(&wanted.to, compared * row_bytes)?;
        for (request, got) in wanted.requests.iter().zip(got.chunks_exact(row_bytes)) {
            let byte = u64::from(request.row) * u64::from(load.row_bytes);
            let (stripe, within) = (byte / STRIPE_BYTES, byte % STRIPE_BYTES);
            let (drive, number) = (stripe % load.drives as u64, stripe / load.drives as u64);
            let at = drive * share + number * STRIPE_BYTES + within;
            let words = (at..).step_by(8).zip(got.chunks_exact(8));
            if let Some((at, word)) =
                words.into_iter().find(|(at, word)| **word != at.to_le_bytes())
            {
                return Err(Error::new(ErrorKind::Internal, "read by a GPU")
                    .object(format!("row {}", request.row))
                    .expected(format!("the word `{:?}` at byte `{at}`", at.to_le_bytes()))
                    .got(format!("`{word:?}`")));
            }
        }
        Ok(())
    }
}

/// A drive's share of the table.
#[derive(Debug)]
struct Share {
    memory: SharedMemory,
    copies: bool,
}

impl Storage for Share {
    fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn prefetch(&self, offset: u64, len: usize) {
        if self.copies {
            self.memory.prefetch(offset as usize, len);
        }
    }

    fn read(&self, offset: u64, to: &SharedMemory, at: usize, len: usize) -> Result<(), Status> {
        if self.copies {
            self.memory.copy_to(offset as usize, to, at, len);
        }
        Ok(())
    }
}

/// Random rows, and their destination on the device: target i has the i-th.
struct Wanted {
    requests: Vec<RowRequest>,
    list: DeviceBuf<RowRequest>,
    count: DeviceBuf<u32>,
    to: DeviceBuf<u8>,
}

impl Wanted {
    fn random(stream: &Stream, load: &GpuReadLoad, rows: u64) -> Result<Self> {
        let mut draws = Draws::new(1);
        let request = |target| RowRequest { row: draws.below(rows) as u32, target };
        let requests: Vec<_> = (0..load.rows as u32).map(request).collect();
        let list = stream.uploaded(&requests)?;
        let count = stream.uploaded(&[load.rows as u32])?;
        let to = DeviceBuf::new(stream.device(), load.rows * load.row_bytes as usize)?;
        Ok(Self { requests, list, count, to })
    }
}

/// What every manner of reading has.
struct Setup<'a> {
    load: &'a GpuReadLoad,
    streams: &'a ReadStreams,
    wanted: &'a Wanted,
}

impl Setup<'_> {
    fn rows(&self) -> RowsOnDrives {
        RowsOnDrives {
            stripe_bytes: STRIPE_BYTES as u32,
            ..RowsOnDrives::packed(self.load.row_bytes)
        }
    }

    fn options(&self) -> GpuReadOptions {
        GpuReadOptions {
            batches: self.load.batches,
            pairs_per_drive: self.load.pairs_per_drive,
            entries: self.load.entries,
            submit_threads: self.load.submit_threads,
            complete_blocks: self.load.blocks,
            complete_threads: self.load.threads_per_block,
            timeout: TIMEOUT,
        }
    }

    fn requests(&self) -> RowRequests {
        RowRequests { list: self.wanted.list.ptr(), count: self.wanted.count.ptr() }
    }

    fn to(&self) -> RowTargets {
        RowTargets { start: self.wanted.to.ptr(), stride: self.load.row_bytes.into() }
    }

    fn duration(&self) -> Duration {
        Duration::try_from_secs_f64(self.load.seconds).unwrap_or(Duration::MAX)
    }

    fn rate(&self, reads: u64, time: Duration, batch_rows: usize) -> GpuReadRate {
        let seconds = time.as_secs_f64();
        let reads_per_second = reads as f64 / seconds;
        GpuReadRate {
            device: self.streams.completing.device().name().to_owned(),
            reads,
            seconds,
            reads_per_second,
            bytes_per_second: reads_per_second * f64::from(self.load.row_bytes),
            batch_rows,
            submit_ns: None,
            complete_ns: None,
        }
    }

    fn reads(&self, table: &BenchTable, share: u64) -> Result<GpuReads> {
        let drives = table.drives(self.load, share)?;
        let stream = &self.streams.completing;
        let mut reads = GpuReads::new(stream, drives, &self.rows(), self.options())?;
        reads.read(self.streams, self.requests(), self.load.rows, self.to())?;
        table.compare(self, share)?;
        Ok(reads)
    }

    fn split(&self, table: &BenchTable, share: u64) -> Result<GpuReadRate> {
        let mut reads = self.reads(table, share)?;
        let completing = &self.streams.completing;
        // A round is given to the GPU while the one before is under way.
        let ends = [Event::new(completing.device())?, Event::new(completing.device())?];
        let (begin, mut rounds) = (Instant::now(), 0);
        while begin.elapsed() < self.duration() {
            let end = &ends[rounds % ends.len()];
            end.synchronize()?;
            reads.start_read(self.streams, self.requests(), self.load.rows, self.to())?;
            end.record(completing)?;
            rounds += 1;
        }
        reads.check(completing)?;
        Ok(self.rate((rounds * self.load.rows) as u64, begin.elapsed(), reads.capacity()))
    }

    fn alone(&self, table: &BenchTable, share: u64) -> Result<GpuReadRate> {
        let mut reads = self.reads(table, share)?;
        let stream = &self.streams.completing;
        let timed = || Event::timed(stream.device());
        let [begin, submitted, answered, completed] = [timed()?, timed()?, timed()?, timed()?];
        let batch_rows = reads.capacity().min(self.load.rows);
        let (mut submitting, mut completing) = (Vec::new(), Vec::new());
        let since = Instant::now();
        while since.elapsed() < self.duration() {
            begin.record(stream)?;
            reads.submit(stream, self.requests(), 0)?;
            submitted.record(stream)?;
            submitted.synchronize()?;
            thread::sleep(ANSWERED);
            answered.record(stream)?;
            reads.complete(stream, self.to())?;
            completed.record(stream)?;
            reads.check(stream)?;
            submitting.push(submitted.since(&begin)?);
            completing.push(completed.since(&answered)?);
        }
        let (submit, complete) = (median(submitting), median(completing));
        let a_row = |time: Duration| Some(time.as_secs_f64() * 1e9 / batch_rows as f64);
        let rate = self.rate(batch_rows as u64, submit + complete, reads.capacity());
        Ok(GpuReadRate { submit_ns: a_row(submit), complete_ns: a_row(complete), ..rate })
    }

    fn coupled(&self, table: &BenchTable, share: u64) -> Result<GpuReadRate> {
        let drives = table.drives(self.load, share)?;
        let stream = &self.streams.completing;
        let mut reads = CoupledReads::new(stream, drives, &self.rows(), self.options())?;
        let mut round = || reads.read(stream, self.load.blocks, self.requests(), self.to());
        round()?;
        table.compare(self, share)?;
        let (begin, mut rounds) = (Instant::now(), 0);
        while begin.elapsed() < self.duration() {
            round()?;
            rounds += 1;
        }
        Ok(self.rate((rounds * self.load.rows) as u64, begin.elapsed(), self.load.rows))
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
