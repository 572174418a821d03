//! A family of buckets: arcs that were given to the bucket of their row, in memory and on disk.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::load::bits_below;
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
    pub(super) key_bytes: usize,
    pub(super) weights: Weights,
}

/// Bytes that a record's reader and writer may touch from its first byte.
pub(super) const RECORD_SPAN: usize = 16;

impl Record {
    /// A record for rows below `rows` and columns below `columns`.
    pub(super) fn new(rows: u32, columns: u32, weights: Weights) -> Self {
        let bits = bits_below(rows.into()) + column_bits(columns);
        Self { key_bytes: (bits as usize).div_ceil(8).max(1), weights }
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

/// Bits of a column.
pub(super) fn column_bits(columns: u32) -> u32 {
    bits_below(columns.into())
}

/// Some records of a bucket.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) place: Place,
    pub(super) records: u32,
}

/// Where a chunk is.
#[derive(Debug)]
pub(super) enum Place {
    /// In memory, as there was room.
    Kept(AlignedBuf),
    /// In the family's file, from this byte on.
    Written(u64),
}

/// All buckets of one kind of row.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) row_of: RowOf,
    pub(super) column_bits: u32,
    pub(super) weights: Weights,
    /// First row of each strip, then the number of rows.
    pub(super) strips: Vec<u32>,
    pub(super) buckets: Vec<Bucket>,
    /// The records of each bucket: rows of few arcs are many, and take wider ones.
    pub(super) records: Vec<Record>,
    pub(super) chunk_bytes: usize,
    pub(super) file: TemporaryFile,
    /// The chunks of each bucket.
    pub(super) chunks: Vec<Vec<Chunk>>,
}

impl Family {
    /// The most bytes of all records of `edges` edges.
    pub(super) fn most_bytes(&self, edges: u64) -> u64 {
        let widest = self.records.iter().map(Record::bytes).max().unwrap_or(0) as u64;
        let arcs = if self.row_of == RowOf::Both { 2 * edges } else { edges };
        widest * arcs
    }

    /// Arcs of a bucket.
    pub(super) fn arcs(&self, bucket: usize) -> u64 {
        self.chunks[bucket].iter().map(|chunk| u64::from(chunk.records)).sum()
    }

    /// Starts to read a bucket, `ahead` chunks ahead of who takes them.
    pub(super) fn read(self: &Arc<Self>, bucket: usize, ahead: usize) -> Result<ChunkReader> {
        let (send, written) = bounded(ahead);
        let (spare, spares) = bounded(ahead + 2);
        let family = Arc::clone(self);
        let reader = ChunkReader { family: Arc::clone(self), bucket, written, spare };
        let body = move || {
            let (record, chunks) = (family.records[bucket], &family.chunks[bucket]);
            for chunk in chunks {
                let Place::Written(offset) = chunk.place else { continue };
                let buffer = match spares.try_recv() {
                    Ok(buffer) => Ok(buffer),
                    Err(_) => AlignedBuf::zeroed(family.chunk_bytes),
                };
                let bytes = chunk.records as usize * record.bytes();
                let pages = bytes.next_multiple_of(PAGE_BYTES);
                let read = buffer.and_then(|mut buffer: AlignedBuf| {
                    family.file.read(&mut buffer[..pages], offset)?;
                    Ok(buffer)
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
        Ok(reader)
    }
}

/// A bucket being read. Its thread ends when nobody takes the chunks any more.
#[derive(Debug)]
pub(super) struct ChunkReader {
    family: Arc<Family>,
    bucket: usize,
    written: Receiver<Result<AlignedBuf>>,
    spare: Sender<AlignedBuf>,
}

impl ChunkReader {
    /// How the records lie in the chunks.
    pub(super) fn record(&self) -> Record {
        self.family.records[self.bucket]
    }

    /// Calls `visit` with each chunk's bytes and number of records.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8], usize) -> Result<()>) -> Result<()> {
        for chunk in &self.family.chunks[self.bucket] {
            match &chunk.place {
                Place::Kept(buffer) => visit(buffer, chunk.records as usize)?,
                Place::Written(_) => {
                    let buffer = self.written.recv().map_err(|_| ended())??;
                    visit(&buffer, chunk.records as usize)?;
                    // A full channel means that there are spares enough.
                    let _ = self.spare.try_send(buffer);
                }
            }
        }
        Ok(())
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "read the buckets").got("the thread that reads them has ended")
}
