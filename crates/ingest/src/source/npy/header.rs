//! The header of a `.npy` file (NumPy Enhancement Proposal 1, and `numpy.lib.format`).
//!
//! Six bytes of magic, two of version, the length of the header (2 bytes in version 1, 4 after),
//! then a Python dictionary `{'descr': '<i8', 'fortran_order': False, 'shape': (E, 2), }`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

/// A header longer than this is not that of an array of integers.
const HEADER_BYTES: u32 = 1 << 20;

/// An integer type of NumPy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IntType {
    /// 1, 2, 4 or 8.
    pub bytes: usize,
    pub signed: bool,
    pub big_endian: bool,
}

/// How the ends of the edges lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// One edge after the other: (E, 2) in C order or (2, E) in Fortran order.
    Pairs,
    /// All sources, then all targets: (2, E) in C order or (E, 2) in Fortran order.
    Columns,
}

/// A parsed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub dtype: IntType,
    pub layout: Layout,
    pub edges: u64,
    /// Where the data begin.
    pub offset: u64,
}

impl Header {
    /// Reads the header of a file and checks the file's length against it.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |e| Error::io("read the header of", path.display(), e);
        let mut file = File::open(path).map_err(failed)?;
        let mut fixed = [0; 8];
        file.read_exact(&mut fixed).map_err(failed)?;
        if fixed[..6] != *b"\x93NUMPY" || !(1..=3).contains(&fixed[6]) {
            return Err(refuse(path, "a NumPy array of version 1 to 3", "other bytes".into()));
        }
        let mut len = [0; 4];
        let len_bytes = if fixed[6] == 1 { 2 } else { 4 };
        file.read_exact(&mut len[..len_bytes]).map_err(failed)?;
        let len = u32::from_le_bytes(len);
        if len > HEADER_BYTES {
            return Err(refuse(path, "a header of at most 1 MiB", format!("{len} bytes")));
        }
        let mut text = vec![0; len as usize];
        file.read_exact(&mut text).map_err(failed)?;
        let offset = 8 + len_bytes as u64 + u64::from(len);
        let header = parse(&String::from_utf8_lossy(&text), offset)
            .map_err(|(expected, got)| refuse(path, expected, got))?;
        header.check_length(path, file.metadata().map_err(failed)?.len())?;
        Ok(header)
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

type Mismatch = (&'static str, String);

fn parse(text: &str, offset: u64) -> Result<Header, Mismatch> {
    let descr = value(text, "descr").unwrap_or_default();
    let dtype = int_type(descr.trim_matches(['\'', '"']))
        .ok_or_else(|| ("an array of integers", format!("the type {}", descr.trim())))?;
    let fortran = match value(text, "fortran_order") {
        Some("True") => true,
        Some("False") => false,
        other => return Err(("`fortran_order`", format!("`{}`", other.unwrap_or_default()))),
    };
    let shape = value(text, "shape").unwrap_or_default();
    let sizes: Option<Vec<u64>> = shape
        .trim_matches(['(', ')'])
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().ok())
        .collect();
    // A 2 × 2 array is read as (E, 2).
    let (edges, rows_are_edges) = match sizes.as_deref() {
        Some(&[edges, 2]) => (edges, true),
        Some(&[2, edges]) => (edges, false),
        _ => return Err(("the shape (E, 2) or (2, E)", shape.to_string())),
    };
    let layout = if rows_are_edges == fortran { Layout::Columns } else { Layout::Pairs };
    Ok(Header { dtype, layout, edges, offset })
}

/// The text of the dictionary's value for a key.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(&format!("'{key}'"))?.1.trim_start().strip_prefix(':')?.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim())
}

fn int_type(descr: &str) -> Option<IntType> {
    let (order, kind) = descr.split_at_checked(1)?;
    let (kind, bytes) = kind.split_at_checked(1)?;
    let signed = match kind {
        "i" => true,
        "u" => false,
        _ => return None,
    };
    let bytes = bytes.parse().ok().filter(|bytes| [1, 2, 4, 8].contains(bytes))?;
    let big_endian = match order {
        ">" => true,
        "<" | "|" => false,
        "=" => cfg!(target_endian = "big"),
        _ => return None,
    };
    Some(IntType { bytes, signed, big_endian })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
    }

    #[test]
    fn layouts_follow_shape_and_order() {
        for (fortran, shape, layout) in [
            ("False", "(5, 2)", Layout::Pairs),
            ("True", "(5, 2)", Layout::Columns),
            ("False", "(2, 5)", Layout::Columns),
            ("True", "(2, 5)", Layout::Pairs),
        ] {
            let header = parse(&text("<i8", fortran, shape), 128).unwrap();
            assert_eq!((header.layout, header.edges), (layout, 5), "{fortran} {shape}");
        }
    }

    #[test]
    fn other_arrays_are_refused() {
        let refused = |descr, shape| parse(&text(descr, "False", shape), 128).unwrap_err();
        assert_eq!(refused("<f8", "(5, 2)"), ("an array of integers", "the type '<f8'".into()));
        assert_eq!(refused("<i8", "(5, 3)").1, "(5, 3)");
        assert_eq!(refused("<i8", "(10,)").1, "(10,)");
        assert_eq!(parse("{}", 128).unwrap_err().0, "an array of integers");
    }
}
