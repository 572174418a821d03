//! The pass that gives every arc to the bucket of its row.
//!
//! Threads append ([`super::append`]); one more takes their full chunks and keeps them in memory or
//! writes them. Cost an edge: two look-ups of new ids at random places, one append a family, and the
//! disk's time for 4 to 8 bytes a family that memory has no room for, hidden behind the rest unless
//! the disk is slower.

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Cancel, Result};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::append::{Appender, BLOCK, ChunkFlow, Full, bucket_table, gone};
use super::array::Array;
use super::family::{Chunk, Family, Place};
use super::input::Input;
use super::progress::Ticker;
use super::vertices::Vertices;
use crate::source::{EdgeBatch, Endpoints};

/// Batches below this are done by one thread.
const PARALLEL_EDGES: usize = 1 << 13;
/// Full chunks that may wait for the disk.
const WAITING: usize = 8;
/// Bytes of a chunk at most: a read or write of so many is as fast as a larger one.
const CHUNK_BYTES: u64 = 256 << 10;

/// The memory of chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkPlan {
    pub(super) chunk_bytes: usize,
    /// Chunks that are filled, or wait for the disk.
    open: usize,
    /// Chunks that stay in memory.
    kept: usize,
}

impl ChunkPlan {
    /// Chunks of `buckets` buckets in `memory` bytes, for at most `bytes` bytes of records.
    pub(super) fn new(buckets: usize, threads: usize, memory: u64, bytes: u64) -> Self {
        let open = buckets * threads + WAITING;
        let chunk = (memory / 2 / open as u64).next_power_of_two() / 2;
        let chunk = chunk.clamp(PAGE_BYTES as u64, CHUNK_BYTES);
        let kept = (memory / chunk).saturating_sub(open as u64).min(bytes / chunk + open as u64);
        Self { chunk_bytes: chunk as usize, open, kept: kept as usize }
    }

    /// Bytes of all chunks.
    pub(super) fn bytes(&self) -> u64 {
        ((self.open + self.kept) * self.chunk_bytes) as u64
    }
}

/// Reads all edges once and fills the families' buckets.
#[allow(clippy::too_many_arguments)]
pub(super) fn partition(
    input: &mut Input<'_>,
    vertices: &Vertices<'_>,
    ranks: Option<&Array<u32>>,
    families: &mut [Family],
    plan: ChunkPlan,
    threads: usize,
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<()> {
    let buffers = AlignedBuf::batch(plan.open + plan.kept, plan.chunk_bytes)?;
    let (give, empty) = bounded(buffers.len());
    buffers.into_iter().for_each(|buffer| give.try_send(buffer).unwrap_or(()));
    let (full, filled) = bounded(WAITING);
    let flow = ChunkFlow { full, empty };
    let tables: Vec<_> = families.iter().map(bucket_table).collect();
    let buckets = families.iter().map(|family| family.buckets.len()).sum();
    let chunks = std::thread::scope(|scope| {
        let families = &*families;
        let taker = scope.spawn(move || take_all(families, plan.kept, filled, give));
        let appenders = |_| -> Vec<Appender<'_>> {
            let each = families.iter().zip(&tables).enumerate();
            let new = each.map(|(number, (family, table))| {
                Appender::new(number, family, table, buckets, flow.clone())
            });
            new.collect()
        };
        let mut workers: Vec<_> = (0..threads).map(appenders).collect();
        drop(flow);
        let done =
            pass(input, vertices, ranks.map(|ranks| &ranks[..]), &mut workers, ticker, cancel);
        drop(workers);
        // The taker's error is the cause of the others'.
        let chunks = taker.join().unwrap_or_else(|_| Err(gone()));
        chunks.and_then(|chunks| done.map(|()| chunks))
    })?;
    for (family, chunks) in families.iter_mut().zip(chunks) {
        family.chunks = chunks;
    }
    Ok(())
}

fn pass(
    input: &mut Input<'_>,
    vertices: &Vertices<'_>,
    ranks: Option<&[u32]>,
    workers: &mut [Vec<Appender<'_>>],
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<()> {
    let prepared = input.is_spooled();
    input.pass(false, |batch| {
        cancel.check("build the graph")?;
        ticker.add(batch.len() as u64);
        if !prepared {
            vertices.prepare(batch, workers.len())?;
        }
        append_batch(workers, ranks, batch)
    })?;
    workers.iter_mut().flatten().try_for_each(Appender::finish)
}

/// Divides a batch among the threads.
fn append_batch(
    workers: &mut [Vec<Appender<'_>>],
    ranks: Option<&[u32]>,
    batch: &EdgeBatch,
) -> Result<()> {
    let Endpoints::U32 { src, dst } = &batch.ends else { return Ok(()) };
    let part = src.len().div_ceil(workers.len()).max(PARALLEL_EDGES);
    let ends = src.chunks(part).zip(dst.chunks(part));
    let weights = batch.weights.as_deref();
    std::thread::scope(|scope| {
        let jobs = workers.iter_mut().zip(ends).enumerate().map(|(i, (worker, (src, dst)))| {
            let weights = weights.map(|w| &w[i * part..i * part + src.len()]);
            scope.spawn(move || append_part(worker, ranks, (src, dst, weights)))
        });
        let jobs: Vec<_> = jobs.collect();
        jobs.into_iter().try_for_each(|job| job.join().unwrap_or_else(|_| Err(gone())))
    })
}

/// What a thread does with its part of a batch.
fn append_part(
    appenders: &mut [Appender<'_>],
    ranks: Option<&[u32]>,
    (src, dst, weights): (&[u32], &[u32], Option<&[f64]>),
) -> Result<()> {
    let (mut from, mut to) = ([0; BLOCK], [0; BLOCK]);
    for begin in (0..src.len()).step_by(BLOCK) {
        let range = begin..src.len().min(begin + BLOCK);
        let n = range.len();
        let map = |ids: &[u32], mapped: &mut [u32]| match ranks {
            None => mapped.copy_from_slice(ids),
            Some(ranks) => {
                mapped.iter_mut().zip(ids).for_each(|(new, &id)| *new = ranks[id as usize]);
            }
        };
        map(&src[range.clone()], &mut from[..n]);
        map(&dst[range.clone()], &mut to[..n]);
        let weights = weights.map(|w| &w[range]);
        for appender in &mut *appenders {
            appender.append(&from[..n], &to[..n], weights)?;
        }
    }
    Ok(())
}

/// Keeps the first `kept` chunks in memory and writes the others; the chunks of each family's
/// buckets.
fn take_all(
    families: &[Family],
    mut kept: usize,
    filled: Receiver<Full>,
    give: Sender<AlignedBuf>,
) -> Result<Vec<Vec<Vec<Chunk>>>> {
    let none = |family: &Family| family.buckets.iter().map(|_| Vec::new()).collect();
    let mut chunks: Vec<Vec<Vec<Chunk>>> = families.iter().map(none).collect();
    for full in filled {
        let records = full.records;
        let place = if kept > 0 {
            kept -= 1;
            Place::Kept(full.buffer)
        } else {
            let pages = full.bytes.next_multiple_of(PAGE_BYTES).min(full.buffer.len());
            let offset = families[full.family].file.append(&full.buffer[..pages])?;
            let _ = give.send(full.buffer);
            Place::Written(offset)
        };
        chunks[full.family][full.bucket].push(Chunk { place, records });
    }
    Ok(chunks)
}
