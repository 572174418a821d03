//! Edges as integers of one type, streamed: `.npy` arrays of shape (E, 2) or (2, E) in C or Fortran
//! order, and pairs without a header, `.u32` and `.u64`.
//!
//! An array of columns is read at two places of the file at once. Types of up to 32 bits are handed
//! out at 32 bits. Negative numbers are refused.

mod decode;
mod header;

use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use self::decode::{Every, decode};
use self::header::{Header, Layout};
use super::batch::VertexId;
use super::chunks::{ChunkSpec, Chunks, next_chunk};
use super::{EdgeBatch, EdgeSource, SizeHint};

/// The width of the ids of a file of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 4 bytes an id.
    U32,
    /// 8 bytes an id.
    U64,
}

/// A reader of one stretch of the file.
struct Stream {
    spec: ChunkSpec,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
}

impl Stream {
    fn new(spec: ChunkSpec) -> Self {
        Self { spec, chunks: None, chunk: Vec::new() }
    }

    fn next(&mut self) -> Result<bool> {
        next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)
    }
}

/// A source of the edges of a file of integers.
pub struct IntegerSource {
    path: PathBuf,
    header: Header,
    streams: Vec<Stream>,
    /// The number of edges before the next batch.
    edge: u64,
}

impl IntegerSource {
    /// Opens a `.npy` array and validates its header.
    ///
    /// # Errors
    /// An I/O error, or an input error where the array does not hold edges.
    pub fn npy(path: &Path) -> Result<Self> {
        Ok(Self::new(path, Header::read(path)?))
    }

    /// Opens a file of little-endian pairs without a header.
    ///
    /// # Errors
    /// An I/O error, or an input error where the length is not a whole number of pairs.
    pub fn pairs(path: &Path, width: Width) -> Result<Self> {
        Ok(Self::new(path, Header::of_pairs(path, width)?))
    }

    fn new(path: &Path, header: Header) -> Self {
        let column = header.edges * header.dtype.bytes as u64;
        let spec = |record, offset, len| Stream::new(ChunkSpec::records(path, record, offset, len));
        let streams = match header.layout {
            Layout::Pairs => vec![spec(2 * header.dtype.bytes, header.offset, 2 * column)],
            Layout::Columns => vec![
                spec(header.dtype.bytes, header.offset, column),
                spec(header.dtype.bytes, header.offset + column, column),
            ],
        };
        Self { path: path.into(), header, streams, edge: 0 }
    }

    fn fill<I: VertexId>(&mut self, batch: &mut EdgeBatch) -> Result<()> {
        let (src, dst) = I::columns(batch);
        let dtype = self.header.dtype;
        let first = &self.streams[0].chunk[..];
        let faults = match self.header.layout {
            Layout::Pairs => [
                decode(first, dtype, Every::FirstOfPair, src),
                decode(first, dtype, Every::SecondOfPair, dst),
            ],
            Layout::Columns => [
                decode(first, dtype, Every::One, src),
                decode(&self.streams[1].chunk, dtype, Every::One, dst),
            ],
        };
        match faults.into_iter().flatten().min_by_key(|&(index, _)| index) {
            Some((index, value)) => {
                let edge = self.edge + index as u64;
                Err(Error::new(ErrorKind::Input, format!("read edge {edge} of"))
                    .object(self.path.display())
                    .expected("ids of 0 or more")
                    .got(format!("`{value}`")))
            }
            None => Ok(()),
        }
    }
}

impl EdgeSource for IntegerSource {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.header.offset + self.header.edges * 2 * self.header.dtype.bytes as u64;
        SizeHint { edges: Some(self.header.edges), vertices: None, bytes: Some(bytes) }
    }

    fn reads_again(&self) -> bool {
        true
    }

    fn restart(&mut self) -> Result<()> {
        self.edge = 0;
        self.streams.iter_mut().for_each(|stream| stream.chunks = None);
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        batch.weights = None;
        for stream in &mut self.streams {
            if !stream.next()? {
                return Ok(false);
            }
        }
        if self.header.dtype.bytes <= 4 {
            self.fill::<u32>(batch)?;
        } else {
            self.fill::<u64>(batch)?;
        }
        self.edge += batch.len() as u64;
        Ok(true)
    }
}
