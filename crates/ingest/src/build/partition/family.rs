//! A family of buckets: all arcs of a graph by one kind of row, each in the bucket of its row.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result, panics, threads};
use tiergraph_format::manifest::Weights;
use tiergraph_mem::{AlignedBuf, PAGE_BYTES};

use super::records::{Record, Records};
use super::strips::Bucket;
use crate::build::temporary::TemporaryFile;

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

    /// Starts a thread that reads the written chunks of a bucket, up to `ahead` chunks ahead, into
    /// buffers of `spares` while there are some.
    pub(crate) fn read(
        self: &Arc<Self>,
        bucket: usize,
        ahead: usize,
        spares: &Spares,
    ) -> Result<ChunkReader> {
        let (send, written) = bounded(ahead);
        let (family, buffers) = (Arc::clone(self), spares.buffers.clone());
        let reader =
            ChunkReader { family: Arc::clone(self), bucket, written, spare: spares.give.clone() };
        let read = move |to: &Sender<Result<AlignedBuf>>| {
            let (record, chunks) = (family.records[bucket], &family.chunks[bucket]);
            for chunk in chunks {
                let Place::Written(offset) = chunk.place else { continue };
                let buffer = match buffers.try_recv() {
                    Ok(buffer) => Ok(buffer),
                    Err(_) => AlignedBuf::zeroed(family.chunk_bytes),
                };
                let bytes = chunk.records as usize * record.bytes();
                let pages = bytes.next_multiple_of(PAGE_BYTES);
                let mut buffer = buffer?;
                family.file.read(&mut buffer[..pages], offset)?;
                if to.send(Ok(buffer)).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let body = move || {
            if let Err(error) = panics::caught(|| read(&send)) {
                let _ = send.send(Err(error));
            }
        };
        threads::start("read-bucket", body)?;
        Ok(reader)
    }
}

/// A pool of buffers that chunks are read into.
#[derive(Debug)]
pub(crate) struct Spares {
    give: Sender<AlignedBuf>,
    buffers: Receiver<AlignedBuf>,
}

impl Spares {
    /// A pool of at most `most` buffers.
    pub(crate) fn new(most: usize) -> Self {
        let (give, buffers) = bounded(most);
        Self { give, buffers }
    }
}

/// A reader of one bucket's chunks. Its thread ends when the reader is dropped.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    family: Arc<Family>,
    bucket: usize,
    written: Receiver<Result<AlignedBuf>>,
    spare: Sender<AlignedBuf>,
}

impl ChunkReader {
    /// The layout of a record in this bucket: bytes of its key, and the type of its weight.
    pub(crate) fn record(&self) -> Record {
        self.family.records[self.bucket]
    }

    /// Calls `visit` with the records of each chunk, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Records<'_>) -> Result<()>) -> Result<()> {
        for chunk in &self.family.chunks[self.bucket] {
            match &chunk.place {
                Place::Kept(buffer) => visit(&self.records(chunk, buffer))?,
                Place::Written(_) => {
                    let buffer = self.next()?;
                    visit(&self.records(chunk, &buffer))?;
                    self.spare(buffer);
                }
            }
        }
        Ok(())
    }

    fn records<'b>(&self, chunk: &Chunk, bytes: &'b [u8]) -> Records<'b> {
        Records { bytes, count: chunk.records as usize, record: self.record() }
    }

    /// The next chunk that was read from the file.
    fn next(&self) -> Result<AlignedBuf> {
        self.written.recv().map_err(|_| ended())?
    }

    fn spare(&self, buffer: AlignedBuf) {
        // A full channel means that there are spares enough.
        let _ = self.spare.try_send(buffer);
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "read the buckets").got("the thread that reads them has ended")
}
