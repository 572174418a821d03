//! The header of a file of integers: its type, shape and layout, or what its length says.

use std::fs::File;
use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::Width;
use crate::npy::{Kind, NpyHeader, Number};
use crate::source::chunks::file_bytes;

/// The layout of the ends of edges in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// One edge after the other: (E, 2) in C order or (2, E) in Fortran order.
    Pairs,
    /// All sources, then all targets: (2, E) in C order or (E, 2) in Fortran order.
    Columns,
}

/// The header of an array of edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The type of the integers.
    pub dtype: Number,
    pub layout: Layout,
    pub edges: u64,
    /// The byte offset of the data.
    pub offset: u64,
}

impl Header {
    /// Reads the header of a `.npy` file and compares it with the file's length.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |e| Error::io("read the header of", path.display(), e);
        let mut file = File::open(path).map_err(failed)?;
        let header = NpyHeader::read_any(&mut file, &path.display().to_string())?;
        let header = Self::of(&header).map_err(|(expected, got)| refuse(path, expected, got))?;
        header.check_length(path, file.metadata().map_err(failed)?.len())?;
        Ok(header)
    }

    /// The header that stands for a file of pairs, which has none.
    pub fn of_pairs(path: &Path, width: Width) -> Result<Self> {
        let bytes = match width {
            Width::U32 => 4,
            Width::U64 => 8,
        };
        let (pair, found) = (2 * bytes as u64, file_bytes(path)?);
        if !found.is_multiple_of(pair) {
            let expected = format!("pairs of {pair} bytes");
            return Err(refuse(path, &expected, format!("{found} bytes")));
        }
        let dtype = Number { kind: Kind::Unsigned, bytes, big_endian: false };
        Ok(Self { dtype, layout: Layout::Pairs, edges: found / pair, offset: 0 })
    }

    /// Interprets the header of an array; the error is what was expected, and what was found.
    fn of(header: &NpyHeader) -> Result<Self, (&'static str, String)> {
        let dtype = header.number;
        if !matches!(dtype.kind, Kind::Signed | Kind::Unsigned) {
            return Err(("an array of integers", format!("the type {dtype}")));
        }
        // A 2 × 2 array is read as (E, 2).
        let (edges, rows_are_edges) = match header.shape[..] {
            [edges, 2] => (edges, true),
            [2, edges] => (edges, false),
            _ => return Err(("the shape (E, 2) or (2, E)", header.shape_text())),
        };
        let layout = if rows_are_edges == header.fortran { Layout::Columns } else { Layout::Pairs };
        Ok(Self { dtype, layout, edges, offset: header.raw.len() as u64 })
    }

    fn check_length(&self, path: &Path, bytes: u64) -> Result<()> {
        let pair = 2 * self.dtype.bytes as u64;
        let want = self.edges.checked_mul(pair).and_then(|data| data.checked_add(self.offset));
        if want != Some(bytes) {
            let expected = format!("{} edges of {pair} bytes after the header", self.edges);
            let got = format!("{} bytes", bytes.saturating_sub(self.offset));
            return Err(refuse(path, &expected, got));
        }
        Ok(())
    }
}

fn refuse(path: &Path, expected: &str, got: String) -> Error {
    Error::new(ErrorKind::Input, "read").object(path.display()).expected(expected).got(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, fortran: bool, shape: &[u64]) -> NpyHeader {
        let number = Number { kind, bytes: 8, big_endian: false };
        NpyHeader { number, shape: shape.to_vec(), fortran, raw: vec![0; 128] }
    }

    #[test]
    fn layouts_follow_shape_and_order() {
        for (fortran, shape, layout) in [
            (false, [5, 2], Layout::Pairs),
            (true, [5, 2], Layout::Columns),
            (false, [2, 5], Layout::Columns),
            (true, [2, 5], Layout::Pairs),
        ] {
            let found = Header::of(&header(Kind::Signed, fortran, &shape)).unwrap();
            assert_eq!((found.layout, found.edges, found.offset), (layout, 5, 128), "{shape:?}");
        }
    }

    #[test]
    fn other_arrays_are_refused() {
        let refused = |kind, shape: &[u64]| Header::of(&header(kind, false, shape)).unwrap_err();
        let float = refused(Kind::Float, &[5, 2]);
        assert_eq!(float, ("an array of integers", "the type '<f8'".into()));
        assert_eq!(refused(Kind::Signed, &[5, 3]).1, "(5, 3)");
        assert_eq!(refused(Kind::Signed, &[10]).1, "(10,)");
    }
}
