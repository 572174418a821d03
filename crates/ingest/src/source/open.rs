//! Finding the format of an input, and opening it.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::adjacency::{AdjacencySource, LineVertex};
use super::bvgraph::{self, BvGraphSource};
use super::chunks::{file_bytes, starts_with};
use super::folder::graph_at;
use super::graphalytics::{self, GraphalyticsSource};
use super::headed::HeadedSource;
use super::integers::{IntegerSource, Width};
use super::text::{TextSource, is_ragged};
use super::{EdgeSource, Format, OpenOptions, Weights, foreign};

/// Opens an input, finding its format from its name and content unless `options` say it. A directory
/// stands for the one BVGraph or LDBC data set in it.
///
/// # Errors
/// An I/O error; an input error where the format is not known or the file is not what it says.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn EdgeSource>> {
    let path = &graph_at(path)?;
    let format = match options.format {
        Some(format) => format,
        None => detect(path, options)?,
    };
    if options.columns.is_some() && format != Format::Text {
        return Err(Error::new(ErrorKind::Input, "choose columns of")
            .object(path.display())
            .expected("a table or text, for `--columns`")
            .got(format!("the format `{format}`")));
    }
    if format == Format::Text {
        foreign::checked_head(path)?;
    }
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
        Format::MatrixMarket | Format::Metis | Format::Dimacs => {
            Box::new(HeadedSource::open(path, format, options)?)
        }
    })
}

/// The format of an input: by its extension and the files beside it, then by its first bytes.
fn detect(path: &Path, options: &OpenOptions) -> Result<Format> {
    if graphalytics::is_data_set(path) {
        return Ok(Format::Graphalytics);
    }
    if bvgraph::has_properties(path) {
        return Ok(Format::BvGraph);
    }
    let (name, zipped) = unzipped_name(path);
    match Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "u32" | "u64" | "npy" if zipped => {
            Err(foreign::unknown(path, "a zipped binary file")
                .hint("unpack it first: `gunzip --keep`"))
        }
        "u32" => Ok(Format::U32),
        "u64" => Ok(Format::U64),
        "npy" => Ok(Format::Npy),
        "graph-txt" => Ok(Format::AsciiGraph),
        extension => detect_content(path, extension, options),
    }
}

/// The name of a file without `.gz`, and whether it ended in that.
fn unzipped_name(path: &Path) -> (&str, bool) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.strip_suffix(".gz") {
        Some(name) => (name, true),
        None => (name, false),
    }
}

fn detect_content(path: &Path, extension: &str, options: &OpenOptions) -> Result<Format> {
    file_bytes(path)?;
    if starts_with(path, b"\x93NUMPY")? {
        return Ok(Format::Npy);
    }
    foreign::check_magic(path)?;
    if let Some(format) = foreign::headed(path, extension)? {
        return Ok(format);
    }
    let head = foreign::checked_head(path)?;
    if options.weights != Weights::Ignore && is_ragged(&head) {
        return Err(foreign::unknown(
            path,
            "lines of numbers of which some have more columns than others",
        )
        .hint(
            "`--format adjacency` if a line is a vertex and its neighbours, `--weights none` \
                if only the columns of ids are to be read",
        ));
    }
    Ok(Format::Text)
}
