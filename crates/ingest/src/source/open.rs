//! Finding the format of an input, and opening it.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use super::adjacency::{AdjacencySource, LineVertex};
use super::bvgraph::{self, BvGraphSource};
use super::folder::graph_at;
use super::gap::GapSource;
use super::graphalytics::{self, GraphalyticsSource};
use super::headed::HeadedSource;
use super::integers::{IntegerSource, Width};
use super::packing::unpacked_name;
use super::raw::Raw;
use super::text::{TextSource, is_ragged};
use super::{EdgeSource, Format, OpenOptions, Weights, foreign};

/// Opens an input, finding its format from its name and content unless `options` say it. A directory
/// stands for the one BVGraph or LDBC data set in it, `-` for standard input.
///
/// # Errors
/// An I/O error; an input error where the format is not known or the file is not what it says.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn EdgeSource>> {
    let path = &graph_at(path)?;
    if let Some(format) = by_files(path, options.format) {
        check_columns(path, format, options)?;
        check_names(path, format, options)?;
        return Ok(match format {
            Format::BvGraph => Box::new(BvGraphSource::open(path)?),
            _ => Box::new(GraphalyticsSource::open(path, options)?),
        });
    }
    let raw = &Raw::open(path)?;
    let format = match options.format {
        Some(format) => format,
        None => detect(raw, options)?,
    };
    check_columns(raw.path(), format, options)?;
    check_names(raw.path(), format, options)?;
    if format == Format::Text {
        foreign::checked_head(raw, options.names.is_some())?;
    } else if !matches!(format, Format::MatrixMarket | Format::Metis | Format::Dimacs) {
        raw.only_file(format_args!("the format `{format}`"))?;
    }
    Ok(match format {
        Format::Text => Box::new(TextSource::open(raw, options)?),
        Format::U32 => Box::new(IntegerSource::pairs(path, Width::U32)?),
        Format::U64 => Box::new(IntegerSource::pairs(path, Width::U64)?),
        Format::Npy => Box::new(IntegerSource::npy(path)?),
        Format::Gap => Box::new(GapSource::open(path, false, &options.weights)?),
        Format::WeightedGap => Box::new(GapSource::open(path, true, &options.weights)?),
        Format::Adjacency => {
            Box::new(AdjacencySource::open(raw, LineVertex::Named, options.directed)?)
        }
        Format::AsciiGraph => {
            Box::new(AdjacencySource::open(raw, LineVertex::Counted, options.directed)?)
        }
        Format::Graphalytics | Format::BvGraph => unreachable!("opened above"),
        Format::MatrixMarket | Format::Metis | Format::Dimacs => {
            Box::new(HeadedSource::open(raw, format, options)?)
        }
    })
}

/// The format of a graph of several files, where `path` is one or `asked` says so.
fn by_files(path: &Path, asked: Option<Format>) -> Option<Format> {
    match asked {
        Some(format) => Some(format),
        None if graphalytics::is_data_set(path) => Some(Format::Graphalytics),
        None if bvgraph::has_properties(path) => Some(Format::BvGraph),
        None => None,
    }
    .filter(|format| matches!(format, Format::Graphalytics | Format::BvGraph))
}

fn check_columns(path: &Path, format: Format, options: &OpenOptions) -> Result<()> {
    if options.columns.is_none() || format == Format::Text {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "choose columns of")
        .object(path.display())
        .expected("a table or text, for `--columns`")
        .got(format!("the format `{format}`")))
}

fn check_names(path: &Path, format: Format, options: &OpenOptions) -> Result<()> {
    if options.names.is_none() || format == Format::Text {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "read names of vertices from")
        .object(path.display())
        .expected("a table or text, for `--ids names`")
        .got(format!("the format `{format}`, whose ids are numbers")))
}

/// The format of a file: by its extension, then by its first bytes.
fn detect(raw: &Raw, options: &OpenOptions) -> Result<Format> {
    let name = raw.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (name, unpacks) = unpacked_name(name);
    match (Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default(), unpacks) {
        ("u32" | "u64" | "npy" | "sg" | "wsg", Some(unpacks)) => {
            Err(foreign::unknown(raw.path(), "a packed binary file")
                .hint(format!("unpack it first: `{unpacks}`")))
        }
        ("u32", None) => Ok(Format::U32),
        ("u64", None) => Ok(Format::U64),
        ("npy", None) => Ok(Format::Npy),
        ("sg", None) => Ok(Format::Gap),
        ("wsg", None) => Ok(Format::WeightedGap),
        ("graph-txt", _) => Ok(Format::AsciiGraph),
        (extension, _) => detect_content(raw, extension, options),
    }
}

fn detect_content(raw: &Raw, extension: &str, options: &OpenOptions) -> Result<Format> {
    if raw.starts_with(b"\x93NUMPY") {
        return Ok(Format::Npy);
    }
    foreign::check_magic(raw)?;
    if let Some(format) = foreign::headed(raw, extension)? {
        return Ok(format);
    }
    let head = foreign::checked_head(raw, options.names.is_some())?;
    if options.weights != Weights::Ignore && options.names.is_none() && is_ragged(&head) {
        return Err(foreign::unknown(
            raw.path(),
            "lines of numbers of which some have more columns than others",
        )
        .hint(
            "`--format adjacency` if a line is a vertex and its neighbours, `--weights none` \
                if only the columns of ids are to be read",
        ));
    }
    Ok(Format::Text)
}
