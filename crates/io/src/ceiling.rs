//! The ceiling: real data read by the real engines and nothing done with it.
//!
//! Thread-per-core workers, each with an engine of its own, take block numbers from a shared
//! cursor, as a pass does. A run's bandwidth is only comparable with a ceiling measured next to it,
//! on the same files: drives and hosts drift.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Result, mix, threads};
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use crate::{Destination, Done, EnginePool, FileId, FileSet, Lease, Read, ReadEngine, Wait};

/// The order in which blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One after the other, from the start again when all were read.
    Sequential,
    /// In random order, with repetitions.
    Random,
}

/// The load of a measurement: what its reads are like.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Bytes of one read: a multiple of 4 KiB.
    pub block_bytes: usize,
    /// The number of reads that each thread keeps in flight, or as many as its engine does.
    pub depth: usize,
    /// Worker threads, each with an engine of the pool.
    pub threads: usize,
    /// The order of blocks.
    pub pattern: Pattern,
    /// No read is started after this time.
    pub duration: Duration,
    /// No read is started after this many bytes; `u64::MAX` for no limit.
    pub bytes: u64,
}

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// The engine's name.
    pub engine: &'static str,
    /// Bytes of one read.
    pub block_bytes: usize,
    /// The number of reads that each thread keeps in flight.
    pub depth: usize,
    /// Worker threads.
    pub threads: usize,
    /// The order of blocks.
    pub pattern: Pattern,
    /// Bytes that were read.
    pub bytes: u64,
    /// Time from the first read's start to the last one's end.
    pub seconds: f64,
    /// Bandwidth: bytes read a second.
    pub bandwidth: f64,
    /// Reads a second.
    pub iops: f64,
}

/// The blocks of all files in one row, and which is next.
struct Blocks {
    /// Each file and the number of its first block.
    files: Vec<(FileId, u64)>,
    count: u64,
    block_bytes: u64,
    pattern: Pattern,
    cursor: AtomicU64,
    /// How many may be read.
    limit: u64,
}

/// What one worker did.
struct Share {
    engine: &'static str,
    bytes: u64,
    reads: u64,
    ended: Instant,
}

/// Measures the ceiling: reads blocks of `files` by the engines of the pool, as `workload` says.
///
/// Holds `threads × depth` blocks in memory.
///
/// # Errors
/// [`ErrorKind::Input`] for a workload that cannot be done or files without a byte; errors of engines.
pub fn measure(
    engines: &Arc<EnginePool>,
    files: &[FileId],
    workload: &Workload,
) -> Result<Ceiling> {
    let blocks = Blocks::new(engines.files(), files, workload)?;
    let (ready, prepared) = channel();
    let go = OnceLock::new();
    let (began, shares) = thread::scope(|scope| {
        let start = |ready: Sender<()>| {
            threads::start_in(scope, "ceiling", || work(engines, workload, &blocks, ready, &go))
        };
        let workers: Result<Vec<_>> = (0..workload.threads).map(|_| start(ready.clone())).collect();
        drop(ready);
        if workers.is_ok() {
            // Ends when every worker has let go of its sender: it is prepared, or failed.
            let _ = prepared.recv();
        }
        let began = Instant::now();
        let _ = go.set(workers.is_ok());
        let shares = workers.and_then(|all| all.into_iter().map(join).collect::<Result<Vec<_>>>());
        (began, shares)
    });
    let shares = shares?;
    let bytes = shares.iter().map(|share| share.bytes).sum::<u64>();
    let reads = shares.iter().map(|share| share.reads).sum::<u64>();
    let ended = shares.iter().map(|share| share.ended).max().unwrap_or(began);
    let seconds = ended.saturating_duration_since(began).as_secs_f64().max(1e-9);
    Ok(Ceiling {
        engine: shares.first().map_or("none", |share| share.engine),
        block_bytes: workload.block_bytes,
        depth: workload.depth,
        threads: workload.threads,
        pattern: workload.pattern,
        bytes,
        seconds,
        bandwidth: bytes as f64 / seconds,
        iops: reads as f64 / seconds,
    })
}

fn join<T>(worker: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Blocks {
    fn new(set: &FileSet, files: &[FileId], workload: &Workload) -> Result<Self> {
        let refused = |what: &str, got: String| {
            Err(Error::new(ErrorKind::Input, "measure the ceiling").expected(what).got(got))
        };
        let block_bytes = workload.block_bytes as u64;
        if block_bytes == 0 || !workload.block_bytes.is_multiple_of(PAGE_BYTES) {
            return refused("blocks of whole pages of `4.0 KiB`", format!("`{block_bytes}` bytes"));
        }
        if workload.depth == 0 || workload.threads == 0 {
            let got = format!("depth `{}`, threads `{}`", workload.depth, workload.threads);
            return refused("a depth and a number of threads above 0", got);
        }
        let mut count = 0;
        let firsts = files.iter().map(|&file| {
            let first = count;
            count += set.len(file).div_ceil(block_bytes);
            (file, first)
        });
        let firsts = firsts.collect();
        if count == 0 {
            return refused("a file that is not empty", "none".to_owned());
        }
        Ok(Self {
            files: firsts,
            count,
            block_bytes,
            pattern: workload.pattern,
            cursor: AtomicU64::new(0),
            limit: workload.bytes.div_ceil(block_bytes),
        })
    }

    /// The next block to read: its file and offset.
    fn next(&self) -> Option<(FileId, u64)> {
        let turn = self.cursor.fetch_add(1, Ordering::Relaxed);
        if turn >= self.limit {
            return None;
        }
        let block = match self.pattern {
            Pattern::Sequential => turn % self.count,
            Pattern::Random => mix(turn) % self.count,
        };
        let after = self.files.partition_point(|(_, first)| *first <= block);
        let (file, first) = self.files[after - 1];
        Some((file, (block - first) * self.block_bytes))
    }
}

/// One worker: fill, poll, count, until time or bytes are up. Lets go of `ready` when it is prepared,
/// and begins, or gives up, when `go` says so.
fn work(
    engines: &Arc<EnginePool>,
    workload: &Workload,
    blocks: &Blocks,
    ready: Sender<()>,
    go: &OnceLock<bool>,
) -> Result<Share> {
    let (mut engine, mut spare) = prepare(engines, workload)?;
    drop(ready);
    let duration = if *go.wait() { workload.duration } else { Duration::ZERO };
    let until = Instant::now() + duration;
    let mut share = Share { engine: engine.name(), bytes: 0, reads: 0, ended: Instant::now() };
    let (mut reads, mut done) = (VecDeque::new(), Vec::new());
    loop {
        while Instant::now() < until
            && let Some(to) = spare.pop()
        {
            let Some((file, offset)) = blocks.next() else { break };
            reads.push_back(Read { file, offset, len: workload.block_bytes, to, at: 0, tag: 0 });
        }
        engine.submit(&mut reads);
        if engine.in_flight() == 0 {
            return Ok(share);
        }
        engine.poll(&mut done, Wait::One)?;
        share.ended = Instant::now();
        for Done { to, result, .. } in done.drain(..) {
            share.bytes += result? as u64;
            share.reads += 1;
            spare.push(to);
        }
    }
}

fn prepare(engines: &Arc<EnginePool>, workload: &Workload) -> Result<(Lease, Vec<Destination>)> {
    let engine = engines.lease()?;
    let depth = engine.capacity().min(workload.depth);
    let mut spare = AlignedBuf::batch(depth, workload.block_bytes)?;
    // Faults every page in before the clock starts.
    spare.iter_mut().for_each(|buffer| buffer.fill(1));
    Ok((engine, spare.into_iter().map(Destination::from).collect()))
}
