//! NumPy arrays: rows of features, streamed from a file of any type of numbers.

mod decode;

use std::fs::File;
use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use super::rows::{RowSource, Shape};
use crate::npy::{NpyHeader, Number};
use crate::source::chunks::{ChunkSpec, Chunks, next_chunk};

/// Bytes that are read at a time, if a row is not longer.
const CHUNK_BYTES: usize = 1 << 20;

/// A source of rows from a `.npy` file of shape (N, D), or (N,) for one value a row, in C order.
///
/// 64-bit numbers are rounded to 32-bit floats.
pub struct NpyRows {
    path: PathBuf,
    number: Number,
    shape: Shape,
    spec: ChunkSpec,
    chunks: Option<Chunks>,
    chunk: Vec<u8>,
}

impl NpyRows {
    /// Opens an array and compares the file's length with its header.
    ///
    /// # Errors
    /// An I/O error, or an input error for another shape, order or type, or a cut file.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |e| Error::io("open", path.display(), e);
        let mut file = File::open(path).map_err(failed)?;
        let header = NpyHeader::read(&mut file, &path.display().to_string())?;
        let refuse = |expected: String, got: String| {
            Err(Error::new(ErrorKind::Input, "read")
                .object(path.display())
                .expected(expected)
                .got(got))
        };
        let (rows, dim) = match header.shape[..] {
            [rows] => (rows, 1),
            [rows, dim] if dim > 0 && dim <= u64::from(u32::MAX) => (rows, dim as usize),
            _ => return refuse("the shape (N, D)".into(), header.shape_text()),
        };
        let (offset, bytes) = (header.raw.len() as u64, header.data_bytes());
        let got = file.metadata().map_err(failed)?.len().saturating_sub(offset);
        let Some(bytes) = bytes.filter(|bytes| *bytes == got) else {
            let expected = format!("{rows} rows of {dim} numbers after the header");
            return refuse(expected, format!("{got} bytes"));
        };
        let record = dim * header.number.bytes;
        let mut spec = ChunkSpec::records(path, record, offset, bytes);
        spec.chunk_bytes = (CHUNK_BYTES / record).max(1) * record;
        Ok(Self {
            path: path.into(),
            number: header.number,
            shape: Shape { rows: Some(rows), dim },
            spec,
            chunks: None,
            chunk: Vec::new(),
        })
    }
}

impl RowSource for NpyRows {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn shape(&mut self) -> Result<Shape> {
        Ok(self.shape)
    }

    fn next_rows(&mut self, values: &mut Vec<f32>) -> Result<bool> {
        values.clear();
        if self.spec.len == 0 || !next_chunk(&mut self.chunks, &self.spec, &mut self.chunk)? {
            return Ok(false);
        }
        self.number.decode(&self.chunk, values);
        Ok(true)
    }
}
