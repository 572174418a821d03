//! A family of buckets: all arcs of a graph by one kind of row, each in the bucket of its row.

use std::sync::Arc;

use tiergraph_core::Result;
use tiergraph_format::manifest::Weights;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::records::{Record, Records};
use super::strips::Bucket;
use crate::build::ahead::{Ahead, Spares};
use tiergraph_io::temporary::TemporaryFile;

/// The end of an edge that is the row of its arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOf {
    /// The source.
    Source,
    /// The target.
    Target,
    /// The larger of both: each undirected edge once.
    Larger,
    /// Both, one after the other: each undirected edge twice, a self-loop once.
    Both,
}

/// A chunk of a bucket's records.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) place: Place,
    pub(crate) records: u32,
}

/// The place of a chunk: memory or the file.
#[derive(Debug)]
pub(crate) enum Place {
    /// In memory, where there was room for it.
    Kept(AlignedBuf),
    /// In the file, from this byte on.
    Written(u64),
}

/// A family of buckets: all arcs by one kind of row (their source, say), divided by ranges of rows. A
/// bucket is a list of chunks of records, some in memory and some in the temporary file.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) row_of: RowOf,
    pub(crate) column_bits: u32,
    pub(crate) weights: Weights,
    /// The first row of each strip, then the number of rows.
    pub(crate) strips: Vec<u32>,
    pub(crate) buckets: Vec<Bucket>,
    /// The layout of records in each bucket: one with fewer arcs a row has more rows, and wider records.
    pub(crate) records: Vec<Record>,
    pub(crate) chunk_bytes: usize,
    /// The build's temporary file.
    pub(crate) file: Arc<TemporaryFile>,
    /// The chunks of each bucket.
    pub(crate) chunks: Vec<Vec<Chunk>>,
}

impl Family {
    /// The most bytes that the records of `edges` edges take.
    pub(crate) fn most_bytes(&self, edges: u64) -> u64 {
        let widest = self.records.iter().map(Record::bytes).max().unwrap_or(0) as u64;
        let arcs = if self.row_of == RowOf::Both { 2 * edges } else { edges };
        widest * arcs
    }

    /// The number of arcs in a bucket.
    pub(crate) fn arcs(&self, bucket: usize) -> u64 {
        self.chunks[bucket].iter().map(|chunk| u64::from(chunk.records)).sum()
    }

    /// Starts to read the written chunks of a bucket, up to `ahead` chunks ahead, into buffers of `spares`
    /// while there are some.
    pub(crate) fn read(
        self: &Arc<Self>,
        bucket: usize,
        ahead: usize,
        spares: &Spares<AlignedBuf>,
    ) -> Result<ChunkReader> {
        let record = self.records[bucket];
        let place = |chunk: &Chunk| match chunk.place {
            Place::Kept(_) => None,
            Place::Written(offset) => Some((offset, chunk.records as usize * record.bytes())),
        };
        let places: Vec<(u64, usize)> = self.chunks[bucket].iter().filter_map(place).collect();
        let (family, buffers, count) = (Arc::clone(self), spares.clone(), places.len());
        let read = move |number: usize| {
            let (offset, bytes) = places[number];
            let mut buffer = buffers.buffer(family.chunk_bytes)?;
            family.file.read(&mut buffer[..bytes.next_multiple_of(PAGE_BYTES)], offset)?;
            Ok(buffer)
        };
        let written = Ahead::start("read-bucket", ahead, count, read)?;
        Ok(ChunkReader { family: Arc::clone(self), bucket, written, spares: spares.clone() })
    }
}

/// A reader of one bucket's chunks.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    family: Arc<Family>,
    bucket: usize,
    written: Ahead<AlignedBuf>,
    spares: Spares<AlignedBuf>,
}

impl ChunkReader {
    /// The layout of a record in this bucket: bytes of its key, and the type of its weight.
    pub(crate) fn record(&self) -> Record {
        self.family.records[self.bucket]
    }

    /// Calls `visit` with the records of each chunk, in order.
    pub(crate) fn for_each(self, mut visit: impl FnMut(&Records<'_>) -> Result<()>) -> Result<()> {
        let record = self.record();
        let Self { family, bucket, mut written, spares } = self;
        for chunk in &family.chunks[bucket] {
            let mut visit =
                |bytes| visit(&Records { bytes, count: chunk.records as usize, record });
            match &chunk.place {
                Place::Kept(buffer) => visit(buffer)?,
                Place::Written(_) => {
                    let Some(buffer) = written.next() else { break };
                    let buffer = buffer?;
                    visit(&buffer)?;
                    spares.give(buffer);
                }
            }
        }
        Ok(())
    }
}
