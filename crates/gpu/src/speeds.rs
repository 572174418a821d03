//! What a GPU and its link give bare: copies, rows that kernels gather, and fills of a few bytes.

use std::time::Duration;

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_mem::AlignedBuf;

use crate::kernels::{Gather, HostRows, RowType, Rows};
use crate::{Device, DeviceBuf, DeviceView, Event, MappedMemory, PinnedPool, Stream};

/// A batch of rows is this share of the table that they are from.
const BATCH_SHARE: usize = 8;
/// Bytes of a row, from the fewest on.
const ROW_BYTES: [usize; 4] = [512, 1024, 2048, 4096];
/// A table is a multiple of so many bytes, of which rows of all sizes are parts.
const UNIT_BYTES: usize = 1 << 20;
/// Fills of a few bytes that are submitted one behind the other to see what one takes.
const SUBMISSIONS: u32 = 1024;

/// Bytes a second of rows that kernels gather, by where they are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RowSpeeds {
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Bytes a second of rows at random places in pinned host memory: what a link gives to preparing batches.
    pub from_host: f64,
    /// Bytes a second of rows at random places in device memory.
    pub from_device: f64,
}

/// Speeds of a GPU and of the link to it, with no other work going on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speeds {
    /// The GPU's name.
    pub device: String,
    /// Bytes a second of copies from pinned host memory.
    pub copy_to_device: f64,
    /// Bytes a second that are written when device memory is filled.
    pub fill_device: f64,
    /// Rows that kernels gather, by their size.
    pub rows: Vec<RowSpeeds>,
    /// Seconds from one fill of a few bytes to the next, where many are submitted one behind the other.
    pub submission_seconds: f64,
}

/// Measures a GPU, each speed for about `duration`, with about `table_bytes` of either memory: more than its
/// caches hold, for figures that mean something.
///
/// # Errors
/// Too little memory of either kind, no compiler, any error of the driver.
///
/// # Panics
/// If a table has less than 1 MiB.
pub fn measure(device: &Device, table_bytes: usize, duration: Duration) -> Result<Speeds> {
    let bytes = table_bytes / UNIT_BYTES * UNIT_BYTES;
    assert!(bytes > 0, "a table of {table_bytes} bytes");
    let stream = Stream::new(device)?;
    let timed = Timed { stream: &stream, duration };
    let mut table = DeviceBuf::<u8>::new(device, bytes)?;
    let fill_device = timed.per_second(bytes, || stream.fill_bytes(&mut table, 1))?;
    let copy_to_device = copies(&timed, &table)?;
    let mut word = DeviceBuf::<u8>::new(device, 4)?;
    let submit = || (0..SUBMISSIONS).try_for_each(|_| stream.fill_bytes(&mut word, 0));
    let submission_seconds = 1.0 / timed.per_second(SUBMISSIONS as usize, submit)?;
    let host = MappedMemory::zeroed(device, bytes)?;
    let host = Some(HostRows::new(device, host, bytes / BATCH_SHARE / ROW_BYTES[0])?);
    let mut tables =
        Rows { device: table, host, location: None, device_count: 0, dim: 0, stride: 0 };
    let gather = Gather::new(device, RowType::F32)?;
    let rows = ROW_BYTES
        .into_iter()
        .map(|row_bytes| row_speeds(&timed, &gather, &mut tables, bytes, row_bytes))
        .collect::<Result<_>>()?;
    let device = device.name().to_owned();
    Ok(Speeds { device, copy_to_device, fill_device, rows, submission_seconds })
}

/// Bytes a second of copies of `bytes` from pinned host memory: what no way of reading exceeds.
///
/// # Errors
/// Too little memory of either kind, any error of the driver.
pub fn copy_to_device(device: &Device, bytes: usize, duration: Duration) -> Result<f64> {
    let stream = Stream::new(device)?;
    copies(&Timed { stream: &stream, duration }, &DeviceBuf::new(device, bytes)?)
}

/// Bytes a second of copies from pinned host memory over all of `to`.
fn copies(timed: &Timed, to: &DeviceBuf<u8>) -> Result<f64> {
    let (stream, bytes) = (timed.stream, to.len());
    let mut from: Vec<Pinned> =
        PinnedPool::buffers(stream.device(), 1, bytes)?.into_iter().map(Pinned).collect();
    timed.per_second(bytes, || {
        let event = Event::new(stream.device())?;
        let copying = stream.start_upload(std::mem::take(&mut from), bytes, to, 0, event)?;
        (from, _) = copying.finish()?;
        Ok(())
    })
}

/// A buffer that the GPU copies from.
struct Pinned(AlignedBuf);

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Rows of `row_bytes` at random places of both tables that `rows` has, each of `bytes`.
fn row_speeds(
    timed: &Timed,
    gather: &Gather,
    rows: &mut Rows,
    bytes: usize,
    row_bytes: usize,
) -> Result<RowSpeeds> {
    let stream = timed.stream;
    let (count, batch_bytes) = (bytes / row_bytes, bytes / BATCH_SHARE);
    let batch = batch_bytes / row_bytes;
    rows.device_count = count as u32;
    rows.dim = (row_bytes / size_of::<f32>()) as u32;
    rows.stride = row_bytes as u32;
    let to = DeviceBuf::<f32>::new(stream.device(), batch_bytes / size_of::<f32>())?;
    let view = DeviceView::at(to.ptr(), to.len());
    // Locations below `count` are rows in device memory, those from there on in host memory.
    let mut speed = |first: usize| {
        let nodes: Vec<u32> =
            scattered(batch).map(|place| (first + place % count) as u32).collect();
        let n_id = stream.uploaded(&nodes)?;
        timed.per_second(batch_bytes, || gather.gather(stream, rows, &n_id, batch, view))
    };
    Ok(RowSpeeds { row_bytes, from_device: speed(0)?, from_host: speed(count)? })
}

/// Work that is repeated, and timed by the GPU's clock.
struct Timed<'a> {
    stream: &'a Stream,
    duration: Duration,
}

impl Timed<'_> {
    /// How much a second of work that does `amount`, after one time that warms up and says how often.
    fn per_second(&self, amount: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
        work()?;
        let once = self.seconds(1, &mut work)?;
        let times = (self.duration.as_secs_f64() / once).clamp(1.0, 10_000.0) as u32;
        let seconds = self.seconds(times, &mut work)?;
        Ok(amount as f64 * f64::from(times) / seconds)
    }

    fn seconds(&self, times: u32, work: &mut impl FnMut() -> Result<()>) -> Result<f64> {
        let device = self.stream.device();
        let (begin, end) = (Event::timed(device)?, Event::timed(device)?);
        begin.record(self.stream)?;
        (0..times).try_for_each(|_| work())?;
        end.record(self.stream)?;
        end.synchronize()?;
        Ok(end.since(&begin)?.as_secs_f64().max(1e-9))
    }
}

/// Numbers that are far from each other, the same each time: Weyl's sequence.
fn scattered(count: usize) -> impl Iterator<Item = usize> {
    (1..=count as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24) as usize)
}
