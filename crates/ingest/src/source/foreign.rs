//! Files that are evidently no lists of edges: refused, with advice on how to convert them.
//!
//! Most of them have numbers in lines, and would give a wrong graph if they were read as text.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::Format;
use super::chunks::{ChunkSpec, starts_with};

const MATRIX_MARKET: (&str, &str) = (
    "Matrix Market",
    "in Python: `m = scipy.io.mmread(FILE).tocoo()`, and build from `(m.row, m.col)`",
);
const METIS: (&str, &str) =
    ("METIS, whose lines are the neighbours of vertex 1, 2, …", "write an edge a line, as two ids");
const DIMACS: (&str, &str) = (
    "DIMACS, whose lines begin with a letter",
    "keep its edges alone: `sed -n 's/^[ae] //p' FILE > FILE.wel`, or `.el` where they have no weights",
);

/// First bytes of formats that look like nothing else, their names, and what to do.
const MAGIC: [(&[u8], &str, &str); 10] = [
    (b"PAR1", "Parquet", "give it a name that ends in `.parquet`"),
    (b"ARROW1", "Arrow", "give it a name that ends in `.arrow`"),
    (b"FEA1", "Feather of version 1", "write it again by `pyarrow.feather.write_feather`"),
    (
        b"ORC",
        "ORC",
        "in Python: `pyarrow.parquet.write_table(pyarrow.orc.read_table(FILE), \
        'edges.parquet')`",
    ),
    (b"\x89HDF", "HDF5", "read its arrays in Python and build from `(src, dst)`"),
    (b"Obj\x01", "Avro", "write it as Parquet or CSV"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: `unzip`"),
    (b"\xfd7zXZ", "xz", "unpack it first: `xz --decompress --keep`"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "unpack it first: `zstd --decompress`"),
    (b"BZh", "bzip2", "unpack it first: `bzip2 --decompress --keep`"),
];

/// Fails for the extensions of formats that are not read.
pub(super) fn check_extension(path: &Path, extension: &str) -> Result<()> {
    let (name, hint) = match extension {
        "mtx" => MATRIX_MARKET,
        "graph" | "metis" => METIS,
        "gr" => DIMACS,
        _ => return Ok(()),
    };
    Err(unknown(path, name).hint(hint))
}

/// The first bytes of a file of text lines; an error if it is evidently something else.
pub(super) fn checked_head(path: &Path) -> Result<Vec<u8>> {
    for (magic, name, hint) in MAGIC {
        if starts_with(path, magic)? {
            return Err(unknown(path, name).hint(hint));
        }
    }
    let head = ChunkSpec::lines(path)?.head()?;
    let refuse = |(name, hint): (&str, &str)| Err(unknown(path, name).hint(hint));
    if head.starts_with(b"%%MatrixMarket") {
        return refuse(MATRIX_MARKET);
    }
    if head.contains(&0) {
        return refuse((
            "bytes that are not text",
            "`--format u32` or `--format u64` reads pairs of binary ids",
        ));
    }
    if is_dimacs(&head) {
        return refuse(DIMACS);
    }
    if is_metis(path, &head) {
        return refuse(METIS);
    }
    Ok(head)
}

/// Whether `head` has a line `p KIND VERTICES EDGES` before all data, as DIMACS files do.
fn is_dimacs(head: &[u8]) -> bool {
    let lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let first = lines
        .into_iter()
        .find(|line| !line.is_empty() && *line != b"c" && !line.starts_with(b"c "));
    let mut fields = first.unwrap_or_default().split(u8::is_ascii_whitespace);
    let number = |field: Option<&[u8]>| {
        field.is_some_and(|field| !field.is_empty() && field.iter().all(u8::is_ascii_digit))
    };
    fields.next() == Some(b"p")
        && fields.next().is_some()
        && number(fields.next())
        && number(fields.next())
}

/// Whether a file named like METIS's has as many lines as its first one has vertices.
fn is_metis(path: &Path, head: &[u8]) -> bool {
    let called = path.extension().is_some_and(|e| e == "graph" || e == "metis");
    let mut lines = head.split(|&b| b == b'\n').filter(|line| !line.starts_with(b"%"));
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let vertices = first.split_whitespace().next().and_then(|n| n.parse::<usize>().ok());
    let ends = usize::from(head.ends_with(b"\n"));
    called && vertices.is_some_and(|vertices| lines.count() == vertices + ends)
}

/// The error of a file whose format is none that is read.
pub(super) fn unknown(path: &Path, got: &str) -> Error {
    Error::new(ErrorKind::Input, "find the format of")
        .object(path.display())
        .expected(format!("one of {}", Format::list()))
        .got(got)
}
