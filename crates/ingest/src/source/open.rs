//! Finds out what format a path is and opens it.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::adjacency::{AdjacencySource, LineVertex};
use super::bvgraph::{self, BvGraphSource};
use super::chunks::{file_bytes, starts_with};
use super::graphalytics::{self, GraphalyticsSource};
use super::integers::{IntegerSource, Width};
use super::text::{Dialect, TextSource, head};
use super::{EdgeSource, Format, OpenOptions, Weights};

/// Opens an input, finding its format from its name and content unless `options` say it.
///
/// # Errors
/// An I/O error; an input error where the format is not known or the file is not what it says.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn EdgeSource>> {
    let format = match options.format {
        Some(format) => format,
        None => detect(path)?,
    };
    Ok(match format {
        Format::Text => Box::new(TextSource::open(path, options)?),
        Format::U32 => Box::new(IntegerSource::pairs(path, Width::U32)?),
        Format::U64 => Box::new(IntegerSource::pairs(path, Width::U64)?),
        Format::Npy => Box::new(IntegerSource::npy(path)?),
        Format::Graphalytics => Box::new(GraphalyticsSource::open(path, options)?),
        Format::Adjacency => {
            Box::new(AdjacencySource::open(path, LineVertex::Named, options.directed)?)
        }
        Format::AsciiGraph => {
            Box::new(AdjacencySource::open(path, LineVertex::Counted, options.directed)?)
        }
        Format::BvGraph => Box::new(BvGraphSource::open(path)?),
    })
}

/// The format of a path: by its extension and its neighbours, then by its first bytes.
fn detect(path: &Path) -> Result<Format> {
    if graphalytics::is_data_set(path) {
        return Ok(Format::Graphalytics);
    }
    if bvgraph::has_properties(path) {
        return Ok(Format::BvGraph);
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (name, zipped) = match name.strip_suffix(".gz") {
        Some(name) => (name, true),
        None => (name, false),
    };
    match Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "u32" | "u64" | "npy" if zipped => {
            Err(unknown(path, "a zipped binary file").hint("unpack it first: `gunzip --keep`"))
        }
        "u32" => Ok(Format::U32),
        "u64" => Ok(Format::U64),
        "npy" => Ok(Format::Npy),
        "graph-txt" => Ok(Format::AsciiGraph),
        "graph" | "mtx" | "gr" | "metis" => Err(unknown(path, "a format that is not supported")),
        _ => detect_content(path),
    }
}

/// First bytes of formats that look like nothing else.
const MAGIC: [(&[u8], &str, &str); 6] = [
    (b"PAR1", "Parquet", "read it in Python with pyarrow and pass its columns to the build"),
    (b"ARROW1", "Arrow", "read it in Python with pyarrow and pass its columns to the build"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: `unzip`"),
    (b"\xfd7zXZ", "xz", "unpack it first: `xz --decompress --keep`"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "unpack it first: `zstd --decompress`"),
    (b"BZh", "bzip2", "unpack it first: `bzip2 --decompress --keep`"),
];

fn detect_content(path: &Path) -> Result<Format> {
    file_bytes(path)?;
    if starts_with(path, b"\x93NUMPY")? {
        return Ok(Format::Npy);
    }
    for (magic, name, hint) in MAGIC {
        if starts_with(path, magic)? {
            return Err(unknown(path, name).hint(hint));
        }
    }
    let head = head(path, starts_with(path, &[0x1f, 0x8b])?)?;
    if head.starts_with(b"%%MatrixMarket") {
        return Err(unknown(path, "Matrix Market"));
    }
    if head.contains(&0) {
        return Err(unknown(path, "bytes that are not text"));
    }
    if Dialect::detect(path, &head, &Weights::Ignore)?.is_ragged(&head) {
        return Err(unknown(path, "lines of numbers of which some have more columns than others")
            .hint("say it with `--format`: `adjacency` if a line lists one vertex's neighbours, `text` \
                if columns after the second are to be ignored"));
    }
    Ok(Format::Text)
}

fn unknown(path: &Path, got: &str) -> Error {
    Error::new(ErrorKind::Input, "find the format of")
        .object(path.display())
        .expected(format!("one of {}", Format::list()))
        .got(got)
        .hint("say it with `--format`, for example `--format text`")
}
