//! One thread's appends to the buckets of one family.
//!
//! Each bucket has a stage of a few KiB, and all stages fit a core's cache. A full stage is copied
//! to the bucket's chunk, so that memory is written in runs: the software write combining of radix
//! joins (C. Balkesen et al., "Main-memory hash joins on multi-core CPUs", ICDE 2013, section IV).
//! A full chunk is handed on.

use crossbeam_channel::{Receiver, Sender};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_mem::AlignedBuf;

use super::family::{Family, RowOf};
use super::records::RECORD_SPAN;
use super::route::Routes;

/// Edges that are appended together at most: the look-ups of so many fit a core's load buffer.
pub(crate) const BLOCK: usize = 32;
/// Bytes of all stages of a thread: half of a usual second-level cache.
const STAGES_BYTES: usize = 512 << 10;

/// A full chunk of records, on its way to the thread that keeps or writes chunks.
pub(crate) struct Full {
    pub(crate) family: usize,
    pub(crate) bucket: usize,
    pub(crate) buffer: AlignedBuf,
    pub(crate) records: u32,
    pub(crate) bytes: usize,
}

/// The channels between appending threads and the one that takes full chunks, and buffers back.
#[derive(Clone)]
pub(crate) struct ChunkFlow {
    pub(crate) full: Sender<Full>,
    /// Buffers of chunks that were written.
    pub(crate) again: Receiver<AlignedBuf>,
    /// Buffers that were never used: the system has yet to find memory for them.
    pub(crate) fresh: Receiver<AlignedBuf>,
}

impl ChunkFlow {
    /// An empty buffer, a used one if there is some.
    fn empty(&self) -> Result<AlignedBuf> {
        let ready = self.again.try_recv().or_else(|_| self.fresh.try_recv());
        ready.or_else(|_| self.again.recv()).map_err(|_| gone())
    }
}

/// One thread's stages and chunks for one family.
pub(crate) struct Appender<'f> {
    number: usize,
    family: &'f Family,
    routes: &'f Routes,
    stages: Vec<u8>,
    open: Vec<Open>,
    chunks: Vec<OpenChunk>,
    flow: ChunkFlow,
}

/// The stage of a bucket, as byte offsets into all stages.
struct Open {
    first_row: u32,
    record_bytes: u32,
    /// The offset of the next record.
    at: u32,
    /// The last offset at which a record may begin: behind it, the stage is full.
    last: u32,
    begin: u32,
}

#[derive(Default)]
struct OpenChunk {
    buffer: AlignedBuf,
    used: usize,
}

/// Bytes of a stage: at least 32 records of the widest, so that a copy is worth its call, little of a
/// chunk, whose end stays empty, and with a cache line more than a power of two, so that stages do
/// not share the cache's sets.
fn stage_bytes(stages: usize, chunk_bytes: usize) -> usize {
    let bytes = (STAGES_BYTES / stages.max(1)).next_power_of_two() / 2;
    bytes.clamp(512, 8 << 10).min(chunk_bytes / 8) + 64
}

impl<'f> Appender<'f> {
    /// An appender for family number `number`; all families together have `buckets` buckets.
    pub(crate) fn new(
        number: usize,
        family: &'f Family,
        routes: &'f Routes,
        buckets: usize,
        flow: ChunkFlow,
    ) -> Self {
        let bytes = stage_bytes(buckets, family.chunk_bytes);
        let open = family.buckets.iter().zip(&family.records).enumerate();
        let open = open.map(|(i, (bucket, record))| Open {
            first_row: bucket.rows.start,
            record_bytes: record.bytes() as u32,
            at: (i * bytes) as u32,
            last: ((i + 1) * bytes - RECORD_SPAN) as u32,
            begin: (i * bytes) as u32,
        });
        let open: Vec<Open> = open.collect();
        let stages = vec![0; bytes * open.len()];
        let chunks = open.iter().map(|_| OpenChunk::default()).collect();
        Self { number, family, routes, stages, open, chunks, flow }
    }

    /// Appends the arcs of a block of edges to the buckets of their rows.
    pub(crate) fn append(
        &mut self,
        src: &[u32],
        dst: &[u32],
        weights: Option<&[f64]>,
    ) -> Result<()> {
        let weights = weights.filter(|_| self.family.weights != Weights::None);
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

    /// Appends an arc from each edge of a block: `rows` and `columns` are its ends.
    fn push_all<const WEIGHTED: bool>(
        &mut self,
        rows: &[u32],
        columns: &[u32],
        weights: &[f64],
        skip_loops: bool,
    ) -> Result<()> {
        let column_bits = self.family.column_bits;
        let mut buckets = [0; BLOCK];
        for (bucket, &row) in buckets.iter_mut().zip(rows) {
            *bucket = self.routes.bucket(row);
        }
        for (i, ((&row, &column), bucket)) in rows.iter().zip(columns).zip(buckets).enumerate() {
            if skip_loops && row == column {
                continue;
            }
            let bucket = usize::from(bucket);
            if self.open[bucket].at > self.open[bucket].last {
                self.spill(bucket)?;
            }
            let open = &mut self.open[bucket];
            let key = u64::from(row - open.first_row) << column_bits | u64::from(column);
            let bytes = &mut self.stages[open.at as usize..][..RECORD_SPAN];
            bytes[..8].copy_from_slice(&key.to_le_bytes());
            if WEIGHTED {
                self.family.records[bucket].write_weight(bytes, weights[i]);
            }
            open.at += open.record_bytes;
        }
        Ok(())
    }

    /// Copies a bucket's stage to its chunk.
    #[cold]
    fn spill(&mut self, bucket: usize) -> Result<()> {
        let open = &self.open[bucket];
        let (begin, end) = (open.begin as usize, open.at as usize);
        let bytes = end - begin;
        if self.chunks[bucket].used + bytes + RECORD_SPAN > self.chunks[bucket].buffer.len() {
            self.hand_on(bucket)?;
            self.chunks[bucket].buffer = self.flow.empty()?;
        }
        let chunk = &mut self.chunks[bucket];
        chunk.buffer[chunk.used..chunk.used + bytes].copy_from_slice(&self.stages[begin..end]);
        chunk.used += bytes;
        self.open[bucket].at = begin as u32;
        Ok(())
    }

    fn hand_on(&mut self, bucket: usize) -> Result<()> {
        let OpenChunk { buffer, used } = std::mem::take(&mut self.chunks[bucket]);
        if used == 0 {
            return Ok(());
        }
        let records = (used / self.family.records[bucket].bytes()) as u32;
        let full = Full { family: self.number, bucket, buffer, records, bytes: used };
        self.flow.full.send(full).map_err(|_| gone())
    }

    /// Sends on the records that are left in stages and chunks.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for bucket in 0..self.open.len() {
            if self.open[bucket].at > self.open[bucket].begin {
                self.spill(bucket)?;
            }
            self.hand_on(bucket)?;
        }
        Ok(())
    }
}

/// The error of a thread whose chunks are no longer taken; the taking thread's own error says why.
pub(crate) fn gone() -> Error {
    Error::new(ErrorKind::Io, "write the buckets").got("the thread that writes them has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::partition::CHUNK_BYTES;

    #[test]
    fn every_chunk_has_room_for_stages() {
        let chunks = (0..).map(|i| tiergraph_mem::PAGE_BYTES << i);
        for chunk in chunks.take_while(|&bytes| bytes as u64 <= CHUNK_BYTES) {
            for stages in [1, 2, 10, 100, 1000] {
                let stage = stage_bytes(stages, chunk);
                assert!(stage >= 32 * RECORD_SPAN, "{stages} stages, chunks of {chunk}");
                assert!(7 * stage + RECORD_SPAN <= chunk, "{stages} stages, chunks of {chunk}");
            }
        }
    }
}
