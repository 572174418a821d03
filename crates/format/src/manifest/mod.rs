//! `manifest.json`: what a graph is and every file it has, readable by people and sealed.

mod check;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

use crate::features::FeaturesEntry;
use crate::place::HETERO;
use crate::salt::Salt;
use crate::seal::{SALTED_VERSION, damaged, parse_sealed, write_sealed};

pub use crate::place::MANIFEST;
pub use crate::seal::FORMAT_VERSION;

/// The manifest of a graph: its size, how its files are coded, where it came from, and an entry a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_VERSION`], or an older one that is still read.
    pub format_version: u32,
    /// Vertices, isolated ones included; ids are `0..vertices`.
    pub vertices: u64,
    /// Edges as the user counts them: an undirected edge is one.
    pub edges: u64,
    /// Arcs that a pass visits: an undirected edge is two, a self-loop one.
    pub arcs: u64,
    /// Whether an edge has a direction.
    pub directed: bool,
    /// The type of the edges' weights.
    pub weighted: Weights,
    /// Bytes of a vertex id where ids are stored plainly: 4 or 8.
    pub id_width: u8,
    /// Bytes of a block: a multiple of 4 KiB.
    pub block_bytes: u32,
    /// How lists of neighbours are coded.
    pub codec: Codec,
    /// The forms in which the adjacency is stored.
    pub layouts: Vec<LayoutName>,
    /// Directories over which blocks are striped, in order; empty if they are not.
    pub stripes: Vec<PathBuf>,
    /// The algorithm of all checksums.
    pub checksum: Checksum,
    /// How vertices were re-ordered.
    pub order: Order,
    /// The parameters of the tiles; `None` if there are no tiles.
    pub tiles: Option<TilesParameters>,
    /// Distinguishes this build from any other; each stripe holds it too.
    pub build_id: String,
    /// Where the graph came from.
    pub provenance: Provenance,
    /// The vertices' features, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, FeaturesEntry>,
    /// The edges' features, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub edge_features: BTreeMap<String, FeaturesEntry>,
    /// The entry of every file but the manifest, by name.
    pub files: BTreeMap<String, FileEntry>,
}

/// The type of the edges' weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Edges have no weights.
    #[default]
    None,
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
}

/// How lists of neighbours are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Plain ids.
    Raw,
    /// Bit-packed gaps.
    Packed,
}

/// A form in which a graph stores its adjacency, by the files that hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayoutName {
    /// `tiles.blocks`.
    Tiles,
    /// `*.rows`.
    Rows,
    /// `out.blocks` and `in.blocks`.
    Raw,
}

/// The algorithm of all checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checksum {
    /// CRC-32C (Castagnoli).
    #[default]
    Crc32c,
}

/// How vertices were re-ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The user's order.
    #[default]
    None,
    /// Descending total degree.
    Degree,
}

/// The parameters of a graph's tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TilesParameters {
    /// A tile has 2 to this power columns.
    pub columns_log2: u32,
    /// The number of arcs at which strips were cut.
    pub strip_arcs: u64,
    /// Whether an undirected edge is stored once (row ≥ column).
    pub stored_once: bool,
    /// The least difference of two neighbours of one row: 1 where no edge is double, else 0.
    pub min_gap: u32,
}

/// Where a graph came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The input, as a person would name it.
    pub source: String,
    /// The options of the build, and the sources of files that were added to it.
    pub options: BTreeMap<String, String>,
    /// The version of tiergraph that built it.
    pub tiergraph: String,
}

/// How a file is divided and checksummed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Blocks with headers ([`crate::block`]); striped.
    Blocks,
    /// Pages of 4 KiB with headers ([`crate::rows`]); striped by blocks.
    Rows,
    /// Pages of 4 KiB whose checksums are in a file of their own ([`crate::pages`]: features, columns
    /// of edges); striped by blocks.
    Features,
    /// A flat array, whose chunks' checksums are in the manifest ([`crate::flat`]).
    Flat,
}

/// The manifest's entry of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// How the file is divided and checksummed.
    pub kind: FileKind,
    /// Bytes of the file, over all stripes.
    pub bytes: u64,
    /// The number of the file's blocks (or 1 MiB chunks, if flat); the last may be shorter.
    pub blocks: u64,
    /// CRC-32C of all bytes of the file, in block order.
    pub crc32c: u32,
    /// CRC-32C of every chunk of a flat file; empty for other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<u32>,
}

impl Manifest {
    /// Writes `dir/manifest.json`, in place of any other in one step, and forces it to the device.
    pub fn write(&self, dir: &Path) -> Result<()> {
        self.check().map_err(|got| {
            Error::new(ErrorKind::Input, "write the manifest of").object(dir.display()).got(got)
        })?;
        write_sealed(self, dir, MANIFEST)
    }

    /// Reads and checks `dir/manifest.json`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if `dir` is no graph directory; [`ErrorKind::Format`] if the manifest
    /// is damaged or its format version unknown.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        let bytes = fs::read(&path).map_err(|e| no_graph(dir, e))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// Whether the build saw to it that every vertex has each neighbour once, and never itself.
    pub fn is_simple(&self) -> bool {
        let removed =
            |what: &str| self.provenance.options.get(what).is_some_and(|how| how == "remove");
        !self.directed && removed("duplicates") && removed("self_loops")
    }

    /// The salt of the checksums of the blocks and pages of `file`.
    pub fn salt(&self, file: &str) -> Salt {
        if self.format_version < SALTED_VERSION {
            Salt::NONE
        } else {
            Salt::of(&self.build_id, file)
        }
    }

    /// Checks and parses a manifest's text; `file` names it in errors.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self> {
        let manifest: Self = parse_sealed(bytes, file)?;
        manifest.check().map_err(|got| damaged(file).got(got))?;
        Ok(manifest)
    }
}

fn no_graph(dir: &Path, e: std::io::Error) -> Error {
    let missing = e.kind() == std::io::ErrorKind::NotFound;
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".tg");
    let suffixed = dir.with_file_name(name);
    let got = match fs::metadata(dir) {
        Err(_) if suffixed.join(MANIFEST).exists() => {
            return Error::new(ErrorKind::Input, "open")
                .object(dir.display())
                .expected("a graph directory")
                .got("nothing there")
                .hint(format!("did you mean `{}`?", suffixed.display()));
        }
        Err(_) => "nothing there",
        Ok(m) if !m.is_dir() => "a file",
        Ok(_) if dir.join(HETERO).is_file() => {
            return Error::new(ErrorKind::Input, "open")
                .object(dir.display())
                .expected("a graph of one type of nodes and edges")
                .got("a heterogeneous one")
                .hint("`tiergraph.open_hetero` opens it, `tiergraph.NeighborLoader` takes it");
        }
        Ok(_) if missing => "a directory without `manifest.json`",
        Ok(_) => return Error::io("read", dir.join(MANIFEST).display(), e),
    };
    Error::new(ErrorKind::Input, "open")
        .object(dir.display())
        .expected("a graph directory")
        .got(got)
        .hint("`tiergraph build` or `tiergraph generate` makes one")
}
