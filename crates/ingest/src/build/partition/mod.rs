//! The partition pass, which appends every arc to the bucket of its row.
//!
//! Threads take a batch each and append it ([`append`]), none waiting for another; a few more take
//! their full chunks and keep them in memory or write them. Cost an edge: two look-ups of new ids
//! at random places, one append a family, and the disk's time for 4 to 8 bytes a family that memory
//! has no room for, hidden behind the rest unless the disk is slower.

pub(crate) mod append;
pub(crate) mod family;
pub(crate) mod records;
pub(crate) mod route;
pub(crate) mod strips;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Cancel, Result, threads};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES, prefetch};

use crate::build::array::Array;
use crate::build::input::Input;
use crate::build::progress::Ticker;
use crate::build::vertices::Vertices;
use crate::source::{EdgeBatch, Endpoints};
use append::{Appender, BLOCK, ChunkFlow, Full, gone};
use family::{Chunk, Family, Place};
use route::Routes;

/// Full chunks that may wait to be written, or are being written.
const WAITING: usize = 8;
/// Threads that write full chunks: one write at a time would be slower than those that fill them.
const WRITERS: usize = 3;
/// The most bytes of a chunk: a larger read or write is no faster.
pub(crate) const CHUNK_BYTES: u64 = 256 << 10;

/// Edges between the look-ups that are prefetched and those that are done: while some cache lines are on
/// their way, other edges are worked on.
const AHEAD: usize = 2 * BLOCK;

/// A plan of how many chunks there are, and how many stay in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkPlan {
    pub(crate) chunk_bytes: usize,
    /// Chunks in memory that are being filled, or wait to be written.
    open: usize,
    /// Full chunks that stay in memory.
    kept: usize,
    /// The most chunks that there may be.
    all: usize,
}

impl ChunkPlan {
    /// Plans the chunks of `buckets` buckets in `memory` bytes, of which `kept` may stay when all are full, for at
    /// most `bytes` bytes of records.
    pub(crate) fn new(buckets: usize, threads: usize, memory: u64, kept: u64, bytes: u64) -> Self {
        let open = buckets * threads + WAITING;
        let chunk = (memory / 2 / open as u64).next_power_of_two() / 2;
        let chunk = chunk.clamp(PAGE_BYTES as u64, CHUNK_BYTES);
        let all = bytes / chunk + open as u64;
        let kept = (memory / chunk).saturating_sub(open as u64).min(kept / chunk).min(all);
        Self { chunk_bytes: chunk as usize, open, kept: kept as usize, all: all as usize }
    }

    /// Bytes that chunks take in memory.
    pub(crate) fn bytes(&self) -> u64 {
        ((self.open + self.kept) * self.chunk_bytes) as u64
    }

    /// Bytes of the chunks that stay in memory.
    pub(crate) fn kept_bytes(&self) -> u64 {
        (self.kept * self.chunk_bytes) as u64
    }
}

/// Reads all edges once and appends their arcs to buckets. A family has all arcs by one kind of row
/// (source, target …), each in the bucket of its row; a bucket is a list of chunks, of which `plan`
/// keeps some in memory, and the temporary file holds the others.
///
/// `ranks` maps vertices of batches to rows, their places in the stored order; `None` if both agree.
#[allow(clippy::too_many_arguments)]
pub(crate) fn partition(
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
    let (give, again) = bounded(buffers.len());
    let (add, fresh) = bounded(buffers.len());
    buffers.into_iter().for_each(|buffer| add.try_send(buffer).unwrap_or(()));
    let (full, filled) = bounded(WAITING - WRITERS);
    let flow = ChunkFlow { full, again, fresh };
    let routes: Vec<_> = families.iter().map(|family| Routes::new(&family.buckets)).collect();
    let buckets = families.iter().map(|family| family.buckets.len()).sum();
    let taken = Taken::default();
    let chunks = std::thread::scope(|scope| {
        let (families, taken) = (&*families, &taken);
        let takers = (0..WRITERS).map(|_| {
            let (filled, give) = (filled.clone(), give.clone());
            threads::start_in(scope, "take", move || {
                let chunks = take_all(families, plan, taken, filled, give);
                taken.has_failed.fetch_or(chunks.is_err(), Ordering::Relaxed);
                chunks
            })
        });
        let takers = takers.collect::<Result<Vec<_>>>()?;
        drop((filled, give));
        let appenders = |_| -> Vec<Appender<'_>> {
            let each = families.iter().zip(&routes).enumerate();
            let new = each.map(|(number, (family, routes))| {
                Appender::new(number, family, routes, buckets, flow.clone())
            });
            new.collect()
        };
        let mut workers: Vec<_> = (0..threads).map(appenders).collect();
        drop(flow);
        let done =
            pass(input, vertices, ranks.map(|ranks| &ranks[..]), &mut workers, ticker, cancel);
        drop(workers);
        // The takers' error is the cause of the others'.
        let join = |taker: ScopedJoinHandle<'_, _>| {
            taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let chunks: Result<Vec<_>> = takers.into_iter().map(join).collect();
        chunks.and_then(|chunks| done.map(|()| chunks))
    })?;
    for family in families.iter_mut() {
        family.chunks.resize_with(family.buckets.len(), Vec::new);
    }
    for of_taker in chunks {
        for (family, chunks) in families.iter_mut().zip(of_taker) {
            family.chunks.iter_mut().zip(chunks).for_each(|(all, more)| all.extend(more));
        }
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
    let (prepared, threads) = (input.is_spooled(), workers.len());
    // No batch waits: each thread has one, and the source is at the next.
    let (send, batches) = bounded(0);
    let (give, spares) = bounded(threads);
    std::thread::scope(|scope| {
        let jobs = workers.iter_mut().map(|worker| {
            let (batches, give) = (batches.clone(), give.clone());
            threads::start_in(scope, "append", move || append_all(worker, ranks, &batches, &give))
        });
        let jobs = jobs.collect::<Result<Vec<_>>>();
        drop((batches, give));
        let jobs = jobs?;
        let read = input.pass(false, |batch| {
            cancel.check("build the graph")?;
            ticker.add(batch.len() as u64);
            if !prepared {
                vertices.prepare(batch, threads)?;
            }
            let spare = spares.try_recv().unwrap_or_default();
            send.send(std::mem::replace(batch, spare)).map_err(|_| gone())
        });
        drop(send);
        let appended: Result<()> = jobs
            .into_iter()
            .map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .fold(Ok(()), Result::and);
        // What was wrong with the edges is the cause of what is wrong with the buckets.
        read.and(appended)
    })
}

/// Runs one thread: appends batch after batch, and at the end what is left in its stages.
fn append_all(
    appenders: &mut [Appender<'_>],
    ranks: Option<&[u32]>,
    batches: &Receiver<EdgeBatch>,
    give: &Sender<EdgeBatch>,
) -> Result<()> {
    for batch in batches {
        append_batch(appenders, ranks, &batch)?;
        // A full channel means that there are spares enough.
        let _ = give.try_send(batch);
    }
    appenders.iter_mut().try_for_each(Appender::finish)
}

/// Appends all edges of a batch.
fn append_batch(
    appenders: &mut [Appender<'_>],
    ranks: Option<&[u32]>,
    batch: &EdgeBatch,
) -> Result<()> {
    let Endpoints::U32 { src, dst } = &batch.ends else { return Ok(()) };
    let weights = batch.weights.as_deref();
    let (mut from, mut to) = ([0; BLOCK], [0; BLOCK]);
    for begin in (0..src.len()).step_by(BLOCK) {
        let block = |begin: usize| src.len().min(begin)..src.len().min(begin + BLOCK);
        let (range, ahead) = (block(begin), block(begin + AHEAD));
        let n = range.len();
        match ranks {
            Some(ranks) => {
                ask(ranks, &src[ahead.clone()]);
                ask(ranks, &dst[ahead]);
                map(ranks, &src[range.clone()], &mut from);
                map(ranks, &dst[range.clone()], &mut to);
            }
            None => {
                from[..n].copy_from_slice(&src[range.clone()]);
                to[..n].copy_from_slice(&dst[range.clone()]);
            }
        }
        let weights = weights.map(|w| &w[range]);
        for appender in &mut *appenders {
            appender.append(&from[..n], &to[..n], weights)?;
        }
    }
    Ok(())
}

/// Prefetches the rows of `ids` into the cache, while other edges are worked on.
#[inline(always)]
fn ask(ranks: &[u32], ids: &[u32]) {
    ids.iter().for_each(|&id| prefetch(ranks, id as usize));
}

#[inline(always)]
fn map(ranks: &[u32], ids: &[u32], new: &mut [u32; BLOCK]) {
    new.iter_mut().zip(ids).for_each(|(new, &id)| *new = ranks[id as usize]);
}

/// What the threads that take chunks know of each other.
#[derive(Debug, Default)]
struct Taken {
    /// How many chunks were taken.
    count: AtomicUsize,
    /// Whether a thread has failed: the others end, too, and then those that fill chunks.
    has_failed: AtomicBool,
}

/// Takes full chunks: keeps as many in memory as planned and writes the others, spread over the pass so that the
/// disk has all of it. Returns the chunks of each family's buckets that this thread took.
fn take_all(
    families: &[Family],
    plan: ChunkPlan,
    taken: &Taken,
    filled: Receiver<Full>,
    give: Sender<AlignedBuf>,
) -> Result<Vec<Vec<Vec<Chunk>>>> {
    let none = |family: &Family| family.buckets.iter().map(|_| Vec::new()).collect();
    let mut chunks: Vec<Vec<Vec<Chunk>>> = families.iter().map(none).collect();
    for full in filled {
        if taken.has_failed.load(Ordering::Relaxed) {
            break;
        }
        let (number, records) = (taken.count.fetch_add(1, Ordering::Relaxed), full.records);
        let kept_before = |chunks: usize| chunks.min(plan.all) * plan.kept / plan.all.max(1);
        let place = if kept_before(number + 1) > kept_before(number) {
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
