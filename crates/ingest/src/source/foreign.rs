//! Files that are evidently no lists of edges: refused, with advice on how to convert them.
//!
//! Most of them have numbers in lines, and would give a wrong graph if they were read as text.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::Format;
use super::chunks::ChunkSpec;
use super::headed::is_metis;
use super::raw::{Head, Raw};

/// First bytes of formats that look like nothing else, their names, and what to do.
const MAGIC: [(&[u8], &str, &str); 7] = [
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
];

/// First words of formats of text that are not lists of edges, their names, and what reads them.
const WORDS: [(&[u8], &str, &str); 6] = [
    (b"<", "XML, as GraphML and GEXF are", "networkx.read_graphml"),
    (b"graph [", "GML", "networkx.read_gml"),
    (b"*vertices", "Pajek's format", "networkx.read_pajek"),
    (b"digraph", "DOT", "networkx.nx_pydot.read_dot"),
    (b"graph {", "DOT", "networkx.nx_pydot.read_dot"),
    (b"{\"", "JSON", "polars.read_ndjson"),
];

/// The format of a file with a header, by its extension or its first bytes.
pub(super) fn headed(raw: &Raw, extension: &str) -> Result<Option<Format>> {
    Ok(match extension {
        "mtx" => Some(Format::MatrixMarket),
        "graph" | "metis" => Some(Format::Metis),
        "gr" => Some(Format::Dimacs),
        _ => headed_by(raw.path(), &ChunkSpec::lines(raw)?.head()?),
    })
}

fn headed_by(path: &Path, head: &[u8]) -> Option<Format> {
    if head.starts_with(b"%%MatrixMarket") {
        return Some(Format::MatrixMarket);
    }
    if is_dimacs(head) {
        return Some(Format::Dimacs);
    }
    is_metis(path, head).then_some(Format::Metis)
}

/// Fails for files whose first bytes are those of a format that is not read.
pub(super) fn check_magic(raw: &Raw) -> Result<()> {
    for (magic, name, hint) in MAGIC {
        if raw.starts_with(magic) {
            let hint =
                if raw.is_pipe() { "give it as a file, and not through a pipe" } else { hint };
            return Err(unknown(raw.path(), name).hint(hint));
        }
    }
    Ok(())
}

/// The first bytes of a file of text lines; an error if it is evidently something else.
pub(super) fn checked_head(raw: &Raw, is_named: bool) -> Result<Head> {
    check_magic(raw)?;
    let (path, head) = (raw.path(), ChunkSpec::lines(raw)?.head()?);
    if head.contains(&0) {
        return Err(unknown(path, "bytes that are not text")
            .hint("`--format u32` or `--format u64` reads pairs of binary ids"));
    }
    let begin = head[..head.len().min(64)].trim_ascii_start().to_ascii_lowercase();
    // Names may begin so.
    let foreign = WORDS.iter().find(|(word, ..)| begin.starts_with(word) && !is_named);
    if let Some((_, name, reader)) = foreign {
        let hint = format!("in Python: `tiergraph.build({reader}(FILE), …)`");
        return Err(unknown(path, name).hint(hint));
    }
    if let Some(format) = headed_by(path, &head) {
        let got = format!("lines of the format `{format}`");
        return Err(unknown(path, &got).hint(format!("`--format {format}` reads them")));
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

/// The error of a file whose format is none that is read.
pub(super) fn unknown(path: &Path, got: &str) -> Error {
    Error::new(ErrorKind::Input, "find the format of")
        .object(path.display())
        .expected(format!("one of {}", Format::list()))
        .got(got)
}
