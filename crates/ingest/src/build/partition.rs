//! The pass that gives every arc to the bucket of its row.
//!
//! Each thread has a write buffer for every bucket; full ones go to a thread that writes them.
//! Cost an edge: two look-ups of new ids at random places, one append a family, and the disk's time
//! for 5 to 8 bytes a family, hidden behind the rest unless the disk is slower.

use std::sync::Mutex;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::array::Array;
use super::family::{Chunk, Family, RECORD_SPAN, RowOf};
use super::input::Input;
use super::progress::Ticker;
use super::vertices::Vertices;
use crate::source::{EdgeBatch, Endpoints};

/// Rows that share an entry of the table from rows to buckets: buckets are cut at multiples of it.
const ROWS_LOG2: u32 = 5;
/// Edges that are mapped together before they are appended.
const BLOCK: usize = 256;
/// Batches below this are done by one thread.
const PARALLEL_EDGES: usize = 1 << 13;
/// Full buffers that may wait for the disk.
pub(super) const WAITING: usize = 8;

/// A buffer's way to the disk.
struct Full {
    family: usize,
    bucket: usize,
    buffer: AlignedBuf,
    records: u32,
    bytes: usize,
}

/// One thread's buffers of one family.
struct Appender<'f> {
    number: usize,
    family: &'f Family,
    bucket_of: &'f [u16],
    open: Vec<Open>,
    full: Sender<Full>,
    empty: Receiver<AlignedBuf>,
}

#[derive(Default)]
struct Open {
    first_row: u32,
    at: usize,
    buffer: AlignedBuf,
}

impl Appender<'_> {
    /// Appends one arc an edge: rows and columns are the columns of a block of edges.
    fn push_all<const WEIGHTED: bool>(
        &mut self,
        rows: &[u32],
        columns: &[u32],
        weights: &[f64],
        skip_loops: bool,
    ) -> Result<()> {
        let (record, size) = (self.family.record, self.family.record.bytes());
        let mut buckets = [0; BLOCK];
        for (bucket, &row) in buckets.iter_mut().zip(rows) {
            *bucket = self.bucket_of[(row >> ROWS_LOG2) as usize];
        }
        for (i, ((&row, &column), bucket)) in rows.iter().zip(columns).zip(buckets).enumerate() {
            if skip_loops && row == column {
                continue;
            }
            let bucket = usize::from(bucket);
            let mut open = &mut self.open[bucket];
            if open.at + RECORD_SPAN > open.buffer.len() {
                self.renew(bucket)?;
                open = &mut self.open[bucket];
            }
            let key = u64::from(row - open.first_row) << record.column_bits | u64::from(column);
            let bytes = &mut open.buffer[open.at..open.at + RECORD_SPAN];
            bytes[..8].copy_from_slice(&key.to_le_bytes());
            if WEIGHTED {
                record.write_weight(bytes, weights[i]);
            }
            open.at += size;
        }
        Ok(())
    }

    /// Gives `bucket` an empty buffer.
    #[cold]
    fn renew(&mut self, bucket: usize) -> Result<()> {
        self.flush(bucket)?;
        self.open[bucket].buffer = self.empty.recv().map_err(|_| gone())?;
        Ok(())
    }

    fn flush(&mut self, bucket: usize) -> Result<()> {
        let open = &mut self.open[bucket];
        if open.at == 0 {
            return Ok(());
        }
        let buffer = std::mem::take(&mut open.buffer);
        let bytes = std::mem::take(&mut open.at);
        let records = (bytes / self.family.record.bytes()) as u32;
        let full = Full { family: self.number, bucket, buffer, records, bytes };
        self.full.send(full).map_err(|_| gone())
    }

    /// Appends a block of edges.
    fn append(&mut self, src: &[u32], dst: &[u32], weights: Option<&[f64]>) -> Result<()> {
        let weights = weights.filter(|_| self.family.record.weights != Weights::None);
        let row_of = self.family.row_of;
        let mut push = |rows: &[u32], columns: &[u32], skip_loops| match weights {
            Some(weights) => self.push_all::<true>(rows, columns, weights, skip_loops),
            None => self.push_all::<false>(rows, columns, &[], skip_loops),
        };
        match row_of {
            RowOf::Source => push(src, dst, false),
            RowOf::Target => push(dst, src, false),
            RowOf::Both => push(src, dst, false).and_then(|()| push(dst, src, true)),
            RowOf::Larger => {
                let (mut rows, mut columns) = ([0; BLOCK], [0; BLOCK]);
                for (i, (&s, &d)) in src.iter().zip(dst).enumerate() {
                    (rows[i], columns[i]) = (s.max(d), s.min(d));
                }
                push(&rows[..src.len()], &columns[..src.len()], false)
            }
        }
    }
}

/// The error of a thread whose buffers nobody writes any more; the writing thread's own says why.
fn gone() -> Error {
    Error::new(ErrorKind::Io, "write the buckets").got("the thread that writes them has ended")
}

/// What a thread does with its part of a batch.
fn append_part(
    appenders: &mut [Appender<'_>],
    ranks: Option<&Array<u32>>,
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

/// Memory of the write buffers: `(bytes of one, how many)`.
pub(super) fn buffers(buckets: usize, threads: usize, memory: u64) -> (usize, usize) {
    let count = buckets * threads + WAITING;
    let bytes = (memory / count as u64).next_power_of_two() / 2;
    (bytes.clamp(PAGE_BYTES as u64, 256 << 10) as usize, count)
}

/// Reads all edges once and fills the families' buckets.
#[allow(clippy::too_many_arguments)]
pub(super) fn partition(
    input: &mut Input<'_>,
    vertices: &Vertices<'_>,
    ranks: Option<&Array<u32>>,
    families: &mut [Family],
    threads: usize,
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<()> {
    let Some(first) = families.first() else { return Ok(()) };
    let count: usize = families.iter().map(|family| family.buckets.len()).sum();
    let buffers = AlignedBuf::batch(count * threads + WAITING, first.chunk_bytes)?;
    let (give, empty) = bounded(buffers.len());
    buffers.into_iter().for_each(|buffer| give.try_send(buffer).unwrap_or(()));
    let (full, filled) = bounded(WAITING);
    let chunks: Vec<Mutex<Vec<Vec<Chunk>>>> =
        families.iter().map(|f| Mutex::new(vec![Vec::new(); f.buckets.len()])).collect();
    let tables: Vec<_> = families.iter().map(bucket_table).collect();
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_all(families, filled, give, &chunks));
        let mut workers: Vec<Vec<Appender<'_>>> = (0..threads)
            .map(|_| {
                let each = families.iter().zip(&tables).enumerate();
                each.map(|(number, (family, table))| Appender {
                    number,
                    family,
                    bucket_of: table,
                    open: family.buckets.iter().map(Open::of).collect(),
                    full: full.clone(),
                    empty: empty.clone(),
                })
                .collect()
            })
            .collect();
        drop((full, empty));
        let done = pass(input, vertices, ranks, &mut workers, ticker, cancel);
        drop(workers);
        // The writer's error is the cause of the others'.
        writer.join().unwrap_or_else(|_| Err(gone())).and(done)
    });
    written?;
    for (family, chunks) in families.iter_mut().zip(chunks) {
        family.chunks = chunks.into_inner().unwrap_or_default();
    }
    Ok(())
}

impl Open {
    fn of(bucket: &super::strips::Bucket) -> Self {
        Self { first_row: bucket.rows.start, ..Self::default() }
    }
}

fn bucket_table(family: &Family) -> Vec<u16> {
    let mut table = Vec::new();
    for (number, bucket) in family.buckets.iter().enumerate() {
        table.resize((bucket.rows.end as usize).div_ceil(1 << ROWS_LOG2), number as u16);
    }
    table
}

fn pass(
    input: &mut Input<'_>,
    vertices: &Vertices<'_>,
    ranks: Option<&Array<u32>>,
    workers: &mut [Vec<Appender<'_>>],
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<()> {
    let prepared = input.is_spooled();
    let mut batch = EdgeBatch::default();
    let mut pass = input.pass(false)?;
    while pass.next(&mut batch)? {
        cancel.check("build the graph")?;
        ticker.add(batch.len() as u64);
        if !prepared {
            vertices.prepare(&mut batch, workers.len())?;
        }
        let Endpoints::U32 { src, dst } = &batch.ends else { continue };
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
        })?;
    }
    for appender in workers.iter_mut().flatten() {
        (0..appender.open.len()).try_for_each(|bucket| appender.flush(bucket))?;
    }
    Ok(())
}

fn write_all(
    families: &[Family],
    filled: Receiver<Full>,
    give: Sender<AlignedBuf>,
    chunks: &[Mutex<Vec<Vec<Chunk>>>],
) -> Result<()> {
    for full in filled {
        let pages = full.bytes.next_multiple_of(PAGE_BYTES).min(full.buffer.len());
        let offset = families[full.family].file.append(&full.buffer[..pages])?;
        if let Ok(mut chunks) = chunks[full.family].lock() {
            chunks[full.bucket].push(Chunk { offset, records: full.records });
        }
        let _ = give.send(full.buffer);
    }
    Ok(())
}
