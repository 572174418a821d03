//! A family of buckets: arcs that were given to the bucket of their row, on disk.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::strips::Bucket;
use super::temporary::TemporaryFile;

/// Which end of an edge is the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOf {
    /// The source.
    Source,
    /// The target.
    Target,
    /// The larger of both: each undirected edge once.
    Larger,
    /// Both, one after the other: each undirected edge twice, a self-loop once.
    Both,
}

/// How an arc lies in a bucket: row in the bucket and column in as few bytes as hold both, then
/// the weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) column_bits: u32,
    pub(super) key_bytes: usize,
    pub(super) weights: Weights,
}

/// Bytes that a record's reader and writer may touch from its first byte.
pub(super) const RECORD_SPAN: usize = 16;

impl Record {
    /// A record for rows below `rows` and columns below `columns`.
    pub(super) fn new(rows: u32, columns: u32, weights: Weights) -> Self {
        let bits = |n: u32| u32::BITS - n.saturating_sub(1).leading_zeros();
        let column_bits = bits(columns);
        let key_bytes = ((bits(rows) + column_bits) as usize).div_ceil(8).max(1);
        Self { column_bits, key_bytes, weights }
    }

    pub(super) fn bytes(&self) -> usize {
        self.key_bytes + self.weights.bytes()
    }

    /// Writes the weight of the record at the start of `bytes`, which has [`RECORD_SPAN`] bytes.
    #[inline]
    pub(super) fn write_weight(&self, bytes: &mut [u8], weight: f64) {
        let at = self.key_bytes;
        match self.weights {
            Weights::None => {}
            Weights::F32 => bytes[at..at + 4].copy_from_slice(&(weight as f32).to_le_bytes()),
            Weights::F64 => bytes[at..at + 8].copy_from_slice(&weight.to_le_bytes()),
        }
    }

    /// The weight of the record at the start of `bytes`.
    #[inline]
    pub(super) fn weight(&self, bytes: &[u8]) -> f64 {
        let rest = &bytes[self.key_bytes..];
        match self.weights {
            Weights::None => 0.0,
            Weights::F32 => rest.first_chunk().map_or(0.0, |b| f32::from_le_bytes(*b).into()),
            Weights::F64 => rest.first_chunk().map_or(0.0, |b| f64::from_le_bytes(*b)),
        }
    }

    /// The key's bits in the word at a record's start.
    pub(super) fn mask(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.key_bytes)
    }
}

/// Where some records of a bucket are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) records: u32,
}

/// All buckets of one kind of row.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) row_of: RowOf,
    pub(super) record: Record,
    /// First row of each strip, then the number of rows.
    pub(super) strips: Vec<u32>,
    pub(super) buckets: Vec<Bucket>,
    pub(super) chunk_bytes: usize,
    pub(super) file: TemporaryFile,
    /// The chunks of each bucket.
    pub(super) chunks: Vec<Vec<Chunk>>,
}

impl Family {
    /// Records of a bucket.
    pub(super) fn records(&self, bucket: usize) -> u64 {
        self.chunks[bucket].iter().map(|chunk| u64::from(chunk.records)).sum()
    }

    /// Starts to read a bucket, `ahead` chunks ahead of who takes them.
    pub(super) fn read(self: &Arc<Self>, bucket: usize, ahead: usize) -> Result<ChunkReader> {
        let (send, chunks) = bounded(ahead);
        let (spare, spares) = bounded(ahead + 2);
        let family = Arc::clone(self);
        let body = move || {
            for chunk in &family.chunks[bucket] {
                let buffer = match spares.try_recv() {
                    Ok(buffer) => Ok(buffer),
                    Err(_) => AlignedBuf::zeroed(family.chunk_bytes),
                };
                let bytes = chunk.records as usize * family.record.bytes();
                let pages = bytes.next_multiple_of(PAGE_BYTES);
                let read = buffer.and_then(|mut buffer: AlignedBuf| {
                    family.file.read(&mut buffer[..pages], chunk.offset)?;
                    Ok((buffer, chunk.records as usize))
                });
                let failed = read.is_err();
                if send.send(read).is_err() || failed {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("read-bucket".into())
            .spawn(body)
            .map_err(|e| Error::io("start the thread", "read-bucket", e))?;
        Ok(ChunkReader { chunks, spare })
    }
}

/// A bucket being read. Its thread ends when nobody takes the chunks any more.
#[derive(Debug)]
pub(super) struct ChunkReader {
    chunks: Receiver<Result<(AlignedBuf, usize)>>,
    spare: Sender<AlignedBuf>,
}

impl ChunkReader {
    /// Calls `visit` with each chunk's bytes and number of records.
    pub(super) fn for_each(self, mut visit: impl FnMut(&[u8], usize) -> Result<()>) -> Result<()> {
        for chunk in &self.chunks {
            let (buffer, records) = chunk?;
            visit(&buffer, records)?;
            // A full channel means that there are spares enough.
            let _ = self.spare.try_send(buffer);
        }
        Ok(())
    }
}
