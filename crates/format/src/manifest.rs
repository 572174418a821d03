//! `manifest.json`: what a graph is and every file it has, readable by people and checksummed.
//!
//! The last line before the closing brace holds the CRC-32C of the file's own text (with the eight
//! digits taken as zeros), so a flipped bit anywhere in it is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

use crate::block::BLOCK_ALIGN;
use crate::edges;
use crate::features::{FOLDERS, FeatureFiles, FeaturesEntry, PAGE_BYTES};
use crate::hetero::HeteroManifest;

/// The file's name in a graph directory.
pub const MANIFEST: &str = "manifest.json";
/// The only version that this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// No file is longer, so that offsets never overflow.
const MOST_BYTES: u64 = 1 << 60;
const SEAL_BEFORE: &str = ",\n  \"manifest_crc32c\": \"";
const SEAL_AFTER: &str = "\"\n}\n";
const SEAL_DIGITS: usize = 8;

/// What a graph directory holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_VERSION`].
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
    /// The size of a block: a multiple of 4 KiB.
    pub block_bytes: u32,
    /// How adjacency is coded.
    pub codec: Codec,
    /// The forms in which adjacency is present.
    pub layouts: Vec<LayoutName>,
    /// Directories over which blocks are striped, in order; none means not striped.
    pub stripes: Vec<PathBuf>,
    /// The kind of all checksums.
    pub checksum: Checksum,
    /// How vertices were re-ordered.
    pub order: Order,
    /// The tiles' parameters, where there are tiles.
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
    /// Every other file of the graph, by name.
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

/// How adjacency is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Plain ids.
    Raw,
    /// Bit-packed gaps.
    Packed,
}

/// A form in which adjacency is present.
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

/// The kind of all checksums.
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

/// The tiles' parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TilesParameters {
    /// A tile has 2 to this power columns.
    pub columns_log2: u32,
    /// Strips were cut at this many arcs.
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
    /// The command and its options.
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
    /// An array with its chunks' checksums here ([`crate::flat`]).
    Flat,
}

/// A file's division, length and checksums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// How it is divided and checksummed.
    pub kind: FileKind,
    /// Its length, over all stripes.
    pub bytes: u64,
    /// Its blocks (or 1 MiB chunks, if flat); the last may be shorter.
    pub blocks: u64,
    /// CRC-32C of all its bytes in block order.
    pub crc32c: u32,
    /// CRC-32C of every chunk, if flat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<u32>,
}

impl Manifest {
    /// Puts `manifest.json` into `dir`, in place of any other in one step, and forces it to the
    /// device.
    pub fn write(&self, dir: &Path) -> Result<()> {
        self.validate().map_err(|got| {
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

    /// Checks and parses a manifest's text; `file` names it in errors.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self> {
        let manifest: Self = parse_sealed(bytes, file)?;
        manifest.validate().map_err(|got| damaged(file).got(got))?;
        Ok(manifest)
    }

    /// What no manifest of this version can say.
    fn validate(&self) -> Result<(), String> {
        let size = self.block_bytes;
        if size == 0 || !size.is_multiple_of(BLOCK_ALIGN) {
            return Err(format!("blocks of {size} bytes, not a multiple of {BLOCK_ALIGN}"));
        }
        if !matches!(self.id_width, 4 | 8) {
            return Err(format!("ids of {} bytes, neither 4 nor 8", self.id_width));
        }
        for (name, file) in &self.files {
            // Any other path could point outside the graph.
            let bare = FOLDERS
                .iter()
                .find_map(|folder| name.strip_prefix(folder)?.strip_prefix('/'))
                .unwrap_or(name);
            if Path::new(bare).file_name() != Some(bare.as_ref()) || name == MANIFEST {
                return Err(format!("a file named `{name}`"));
            }
            let unit = match file.kind {
                FileKind::Blocks | FileKind::Rows | FileKind::Features => u64::from(size),
                FileKind::Flat => crate::flat::CHUNK_BYTES as u64,
            };
            if file.bytes > MOST_BYTES {
                return Err(format!("`{name}` of {} bytes", file.bytes));
            }
            let chunks = if file.kind == FileKind::Flat { file.blocks } else { 0 };
            if file.blocks != file.bytes.div_ceil(unit) || file.chunks.len() as u64 != chunks {
                return Err(format!(
                    "`{name}` of {} bytes with {} blocks and {} chunk checksums",
                    file.bytes,
                    file.blocks,
                    file.chunks.len()
                ));
            }
        }
        for (name, entry) in &self.features {
            self.validate_features(name, entry, &FeatureFiles::of(name), Some(self.vertices))?;
        }
        self.files.keys().try_for_each(|name| self.validate_column(name))?;
        // Edges as they were given: more than the graph kept, perhaps.
        self.edge_features.iter().try_for_each(|(name, entry)| {
            self.validate_features(name, entry, &FeatureFiles::of_edges(name), None)
        })
    }

    /// A column of edges must have a value for each arc, and every page a checksum.
    fn validate_column(&self, name: &str) -> Result<(), String> {
        let Some(widths) = edges::column_widths(name) else { return Ok(()) };
        let file = &self.files[name];
        let pages = file.bytes / PAGE_BYTES as u64;
        let crc = self.files.get(&edges::crc_file(name));
        let lengths = || widths.iter().any(|&w| edges::column_bytes(self.arcs, w) == file.bytes);
        let has_crc = crc.is_some_and(|crc| {
            crc.kind == FileKind::Flat && crc.bytes == pages * size_of::<u32>() as u64
        });
        if file.kind == FileKind::Features && lengths() && has_crc {
            return Ok(());
        }
        Err(format!(
            "`{name}` of {} bytes, not pages of a value for each of {} arcs with checksums of their \
             own: store the values of edges again",
            file.bytes, self.arcs
        ))
    }

    /// The rows must fill their file, and every page must have a checksum.
    fn validate_features(
        &self,
        name: &str,
        entry: &FeaturesEntry,
        files: &FeatureFiles,
        rows: Option<u64>,
    ) -> Result<(), String> {
        if let Some(fault) = entry.layout.fault() {
            return Err(format!("features `{name}` of {fault}"));
        }
        if entry.rows > MOST_BYTES / (2 * entry.layout.stride() as u64) {
            return Err(format!("features `{name}` of {} rows", entry.rows));
        }
        let has = |name: &str, kind: FileKind, bytes: Option<u64>| {
            let file = self.files.get(name);
            file.is_some_and(|file| file.kind == kind && Some(file.bytes) == bytes)
        };
        let bytes = entry.layout.file_bytes(entry.rows);
        let crcs = (bytes / PAGE_BYTES as u64).checked_mul(size_of::<u32>() as u64);
        let ids = self.vertices.checked_mul(size_of::<u32>() as u64);
        let ordered = match self.files.contains_key(&files.ids) {
            true => has(&files.ids, FileKind::Flat, ids),
            false => rows.is_none_or(|rows| entry.rows == rows),
        };
        if has(&files.rows, FileKind::Features, Some(bytes))
            && has(&files.crc, FileKind::Flat, crcs)
            && ordered
        {
            return Ok(());
        }
        Err(format!(
            "features `{name}` of {} rows, whose files are missing or of other lengths",
            entry.rows
        ))
    }
}

/// Puts `content` into `dir/name` as sealed JSON, in place of any other in one step, and forces it
/// to the device.
pub(crate) fn write_sealed(content: &impl Serialize, dir: &Path, name: &str) -> Result<()> {
    let (path, new) = (dir.join(name), dir.join(format!(".{name}.new")));
    let text = seal(content)?;
    let io = |e| Error::io("write", path.display(), e);
    fs::write(&new, text).map_err(io)?;
    fs::File::open(&new).and_then(|f| f.sync_all()).map_err(io)?;
    fs::rename(&new, &path).and_then(|()| fs::File::open(dir)?.sync_all()).map_err(io)
}

/// Checks the version and the seal of JSON, and reads it; `file` names it in errors.
pub(crate) fn parse_sealed<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T> {
    let value: Option<serde_json::Value> = serde_json::from_slice(bytes).ok();
    let version = value.as_ref().and_then(|v| v.get("format_version"));
    if let Some(version) = version.filter(|v| **v != FORMAT_VERSION) {
        return Err(Error::new(ErrorKind::Format, "open")
            .object(file)
            .expected(format!("format version {FORMAT_VERSION}"))
            .got(format!("version {version}"))
            .hint("open the graph with the version of tiergraph that built it"));
    }
    check_seal(bytes).map_err(|(x, y)| damaged(file).expected(x).got(y))?;
    serde_json::from_slice(bytes).map_err(|e| damaged(file).source(e))
}

fn damaged(file: &str) -> Error {
    Error::new(ErrorKind::Format, "open")
        .object(file)
        .hint("rebuild the graph, or restore the file from a copy")
}

/// JSON whose last line is its checksum.
fn seal(content: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string_pretty(content)
        .map_err(|e| Error::new(ErrorKind::Input, "write the manifest").source(e))?;
    let body = json.strip_suffix("\n}").unwrap_or(&json);
    let crc = seal_of(body.as_bytes());
    Ok(format!("{body}{SEAL_BEFORE}{crc:08x}{SEAL_AFTER}"))
}

fn seal_of(body: &[u8]) -> u32 {
    let crc = crc32c::crc32c(body);
    let crc = crc32c::crc32c_append(crc, SEAL_BEFORE.as_bytes());
    let crc = crc32c::crc32c_append(crc, &[b'0'; SEAL_DIGITS]);
    crc32c::crc32c_append(crc, SEAL_AFTER.as_bytes())
}

/// `Err` holds what was expected and what was there.
fn check_seal(bytes: &[u8]) -> Result<(), (String, String)> {
    let unsealed = || {
        let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(40)..]).into_owned();
        ("an end with `manifest_crc32c`".to_owned(), format!("{end:?}"))
    };
    let rest = bytes.strip_suffix(SEAL_AFTER.as_bytes()).ok_or_else(unsealed)?;
    let (rest, digits) = rest.split_last_chunk::<SEAL_DIGITS>().ok_or_else(unsealed)?;
    let body = rest.strip_suffix(SEAL_BEFORE.as_bytes()).ok_or_else(unsealed)?;
    let computed = format!("{:08x}", seal_of(body));
    if computed.as_bytes() != digits {
        let stored = String::from_utf8_lossy(digits);
        return Err((format!("CRC-32C {stored}"), computed));
    }
    Ok(())
}

fn no_graph(dir: &Path, e: std::io::Error) -> Error {
    let missing = e.kind() == std::io::ErrorKind::NotFound;
    let got = match fs::metadata(dir) {
        Err(_) => "nothing there",
        Ok(m) if !m.is_dir() => "a file",
        Ok(_) if HeteroManifest::is_at(dir) => {
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
