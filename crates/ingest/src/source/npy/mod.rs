//! NumPy arrays of edges, streamed: shape (E, 2) or (2, E), any integer type, C or Fortran order.
//!
//! An array of columns is read at two places of the file at once. Types of up to 32 bits are handed
//! out at 32 bits. Negative numbers are refused.

mod header;

use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use self::header::{Header, Layout};
use super::batch::VertexId;
use super::chunks::{ChunkSpec, Chunks, next_chunk};
use super::{EdgeBatch, EdgeSource, SizeHint};
use crate::npy::{Kind, Number};

/// One stretch of the file that is read in order.
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

/// Streams the edges of a `.npy` file.
pub struct NpySource {
    path: PathBuf,
    header: Header,
    streams: Vec<Stream>,
    /// Edges before the next batch.
    edge: u64,
}

impl NpySource {
    /// Opens an array and validates its header.
    ///
    /// # Errors
    /// An I/O error, or an input error where the array does not hold edges.
    pub fn open(path: &Path) -> Result<Self> {
        let header = Header::read(path)?;
        let column = header.edges * header.dtype.bytes as u64;
        let spec = |record, offset, len| Stream::new(ChunkSpec::records(path, record, offset, len));
        let streams = match header.layout {
            Layout::Pairs => vec![spec(2 * header.dtype.bytes, header.offset, 2 * column)],
            Layout::Columns => vec![
                spec(header.dtype.bytes, header.offset, column),
                spec(header.dtype.bytes, header.offset + column, column),
            ],
        };
        Ok(Self { path: path.into(), header, streams, edge: 0 })
    }

    fn fill<I: VertexId>(&mut self, batch: &mut EdgeBatch) -> Result<()> {
        let (src, dst) = I::columns(batch);
        let dtype = self.header.dtype;
        let step = match self.header.layout {
            Layout::Pairs => 2,
            Layout::Columns => 1,
        };
        let sources = &self.streams[0].chunk;
        let targets = match step {
            2 => sources.get(dtype.bytes..).unwrap_or_default(),
            _ => &self.streams[1].chunk,
        };
        let faults = [decode(sources, dtype, step, src), decode(targets, dtype, step, dst)];
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

/// Appends every `step`-th integer of `bytes`; returns the first negative one and its index.
fn decode<I: VertexId>(
    bytes: &[u8],
    dtype: Number,
    step: usize,
    ids: &mut Vec<I>,
) -> Option<(usize, i64)> {
    match (dtype.bytes, dtype.kind == Kind::Signed) {
        (1, true) => ints(bytes, step, ids, |b| i8::from_le_bytes(b).into()),
        (1, false) => ints(bytes, step, ids, |b: [u8; 1]| b[0].into()),
        (2, signed) => ints(bytes, step, ids, |b| {
            let word = if dtype.big_endian { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) };
            if signed { (word as i16).into() } else { word.into() }
        }),
        (4, signed) => ints(bytes, step, ids, |b| {
            let word = if dtype.big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
            if signed { (word as i32).into() } else { word.into() }
        }),
        (_, signed) => ints(bytes, step, ids, |b| {
            let word = if dtype.big_endian { u64::from_be_bytes(b) } else { u64::from_le_bytes(b) };
            if signed { (word as i64).into() } else { word.into() }
        }),
    }
}

/// Integers of `N` bytes through `read`, whose 128 bits hold every type's values.
fn ints<I: VertexId, const N: usize>(
    bytes: &[u8],
    step: usize,
    ids: &mut Vec<I>,
    read: impl Fn([u8; N]) -> i128,
) -> Option<(usize, i64)> {
    let values = bytes.as_chunks::<N>().0.iter().step_by(step).map(|&b| read(b));
    let mut negative = false;
    ids.extend(values.clone().map(|value| {
        negative |= value < 0;
        I::from_u64(value as u64)
    }));
    let found = || values.enumerate().find(|&(_, value)| value < 0);
    if negative { found().map(|(index, value)| (index, value as i64)) } else { None }
}

impl EdgeSource for NpySource {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn size_hint(&self) -> SizeHint {
        let bytes = self.header.offset + self.header.edges * 2 * self.header.dtype.bytes as u64;
        SizeHint { edges: Some(self.header.edges), vertices: None, bytes: Some(bytes) }
    }

    fn directed(&self) -> Option<bool> {
        None
    }

    fn weighted(&self) -> bool {
        false
    }

    fn can_restart(&self) -> bool {
        true
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

    fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
        Ok(None)
    }
}
