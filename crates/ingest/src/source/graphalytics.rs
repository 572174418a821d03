//! LDBC Graphalytics' data sets: `NAME.v`, one id a line, `NAME.e`, `src dst [weight]`, and
//! `NAME.properties` (Graphalytics specification, "Graph data format").
//!
//! Isolated vertices are in `.v` alone. The properties beside the data say whether it is directed;
//! each undirected edge is written once.

use std::fs;
use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use super::adjacency::first_ids;
use super::chunks::ChunkSpec;
use super::raw::Raw;
use super::text::TextSource;
use super::{EdgeBatch, EdgeSource, OpenOptions, SizeHint};

/// A source of the edges of a Graphalytics data set.
pub struct GraphalyticsSource {
    edges: TextSource,
    vertices: PathBuf,
    directed: Option<bool>,
    size: SizeHint,
}

impl GraphalyticsSource {
    /// Opens a data set by the path of its `.v`, `.e` or `.properties`, or by what they share.
    ///
    /// # Errors
    /// An I/O error, or an input error where the columns or the properties cannot be used.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let (vertices, edges) = (part(path, "v"), part(path, "e"));
        let edges = TextSource::open(&Raw::open(&edges)?, options)?;
        let properties = part(path, "properties");
        let text = if properties.is_file() {
            fs::read_to_string(&properties)
                .map_err(|e| Error::io("read", properties.display(), e))?
        } else {
            String::new()
        };
        let directed = property(&text, ".directed")
            .map(|value| {
                value.parse().map_err(|_| {
                    Error::new(ErrorKind::Input, "read `directed` in")
                        .object(properties.display())
                        .expected("`true` or `false`")
                        .got(format!("`{value}`"))
                })
            })
            .transpose()?
            .or(options.directed);
        let number = |key| property(&text, key).and_then(|value| value.parse().ok());
        let size = SizeHint {
            edges: number(".meta.edges"),
            vertices: number(".meta.vertices"),
            ..edges.size_hint()
        };
        Ok(Self { edges, vertices, directed, size })
    }
}

/// Whether `path` is one of the files of a data set whose `.v` and `.e` exist.
pub(super) fn is_data_set(path: &Path) -> bool {
    part(path, "v").is_file() && part(path, "e").is_file()
}

/// The path of the data set's file with this extension.
fn part(path: &Path, extension: &str) -> PathBuf {
    let known = ["v", "e", "properties"];
    let stem = if path.extension().is_some_and(|e| known.iter().any(|k| e == *k)) {
        path.with_extension("")
    } else {
        path.into()
    };
    let mut name = stem.into_os_string();
    name.push(format!(".{extension}"));
    name.into()
}

/// The value of the first property whose name ends in `suffix`; `None` without one.
fn property<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim_end().ends_with(suffix))
        .map(|(_, value)| value.trim())
}

impl EdgeSource for GraphalyticsSource {
    fn describe(&self) -> String {
        self.edges.describe()
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }

    fn directed(&self) -> Option<bool> {
        self.directed
    }

    fn weighted(&self) -> bool {
        self.edges.weighted()
    }

    fn can_restart(&self) -> bool {
        self.edges.can_restart()
    }

    fn keep_within(&mut self, memory: u64) {
        self.edges.keep_within(memory);
    }

    fn held_bytes(&self) -> u64 {
        self.edges.held_bytes()
    }

    fn held_bytes_at_most(&self) -> u64 {
        self.edges.held_bytes_at_most()
    }

    fn restart(&mut self) -> Result<()> {
        self.edges.restart()
    }

    fn next_batch(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        self.edges.next_batch(batch)
    }

    fn notes(&self) -> Vec<String> {
        self.edges.notes()
    }

    fn vertices(&mut self) -> Result<Option<Vec<u64>>> {
        first_ids(&ChunkSpec::lines(&Raw::open(&self.vertices)?)?).map(Some)
    }
}
