//! Feature rows of an opened graph: where each vertex's row lies, whether its pages are intact, and its
//! values as floats.
//!
//! A sampler asks [`Features::pages`] what to read of [`Features::file`], checks each page that it
//! read by [`Features::check_page`], and turns a row's bytes into floats by [`Features::decode`].
//! [`FeatureSet::read`] does all of that for a list of vertices, for users who look things up.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::features::{
    FeatureFiles, FeatureType, FeaturesEntry, PAGE_BYTES, RowMismatch, check_page,
};
use tiergraph_format::flat;
use tiergraph_io::{FileId, FileSet};
use tiergraph_mem::Reservation;

use crate::open::open_file;
use crate::{Graph, PageReader};

/// Pages that [`FeatureSet::read`] holds in memory at a time.
const PAGES_AT_ONCE: usize = 1 << 10;

/// An opened file of feature rows; the first `get` reads its checksums and row numbers.
#[derive(Debug)]
pub(crate) struct FeaturesFile {
    pub(crate) name: String,
    files: FeatureFiles,
    entry: FeaturesEntry,
    file: FileId,
    loaded: OnceLock<Features>,
}

impl FeaturesFile {
    /// Opens every file of vertices' features that the manifest names.
    pub(crate) fn open_all(dir: &GraphDir, files: &mut FileSet) -> Result<Vec<Self>> {
        let all = dir.manifest().features.iter();
        all.map(|(name, entry)| Self::open(dir, files, name, entry, FeatureFiles::of(name)))
            .collect()
    }

    /// Opens every file of edges' features that the manifest names.
    pub(crate) fn open_all_of_edges(dir: &GraphDir, files: &mut FileSet) -> Result<Vec<Self>> {
        let all = dir.manifest().edge_features.iter();
        let names = all.map(|(name, entry)| (name, entry, FeatureFiles::of_edges(name)));
        names.map(|(name, entry, of)| Self::open(dir, files, name, entry, of)).collect()
    }

    fn open(
        dir: &GraphDir,
        set: &mut FileSet,
        name: &str,
        entry: &FeaturesEntry,
        files: FeatureFiles,
    ) -> Result<Self> {
        let file = open_file(dir, set, &files.rows)?;
        Ok(Self { name: name.into(), files, entry: *entry, file, loaded: OnceLock::new() })
    }

    /// The features in this file; the first call reads their resident part and reserves its memory.
    pub(crate) fn get(&self, graph: &Graph) -> Result<&Features> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = Features::load(graph, self)?;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// Opened features of one name, of vertices or edges: the rows' layout and checksums, not the rows.
///
/// Resident: 4 bytes a page of the file, and 4 a vertex where rows are in an order of their own.
#[derive(Debug)]
pub struct Features {
    files: FeatureFiles,
    entry: FeaturesEntry,
    file: FileId,
    crcs: Vec<u32>,
    /// The row of each vertex, where rows have an order of their own.
    ids: Option<Vec<u32>>,
    _held: Reservation,
}

impl Features {
    /// The number of values in a row.
    pub fn dim(&self) -> usize {
        self.entry.layout.dim()
    }

    /// The type in which a value is stored.
    pub fn dtype(&self) -> FeatureType {
        self.entry.layout.dtype()
    }

    /// Bytes of the values of a row.
    pub fn row_bytes(&self) -> usize {
        self.entry.layout.row_bytes()
    }

    /// Bytes from a row's start to the next one's on the same page.
    pub fn stride(&self) -> usize {
        self.entry.layout.stride()
    }

    /// Rows that begin on each page, if none crosses pages; else 0: rows then lie at multiples of
    /// the stride.
    pub fn rows_per_page(&self) -> usize {
        self.entry.layout.rows_per_page()
    }

    /// The number of rows: one for each vertex or edge.
    pub fn rows(&self) -> u64 {
        self.entry.rows
    }

    /// The file of the rows, an index into [`EnginePool::files`](tiergraph_io::EnginePool::files). A
    /// read must stay inside one block (`block_bytes` of the manifest) where the graph is striped.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The number of 4 KiB pages in the file.
    pub fn page_count(&self) -> u64 {
        self.crcs.len() as u64
    }

    /// Whether rows are stored in an order of their own, not in that of the vertices.
    pub fn is_reordered(&self) -> bool {
        self.ids.is_some()
    }

    /// The number of each vertex's row, where rows have an order of their own.
    pub fn row_numbers(&self) -> Option<&[u32]> {
        self.ids.as_deref()
    }

    /// The number of the row of `vertex` (in the graph's order).
    ///
    /// # Panics
    /// If rows are re-ordered and the graph has no such vertex.
    #[inline]
    pub fn row(&self, vertex: u32) -> u64 {
        match &self.ids {
            Some(ids) => ids[vertex as usize].into(),
            None => vertex.into(),
        }
    }

    /// The byte offset in the file at which the row of `vertex` begins.
    #[inline]
    pub fn offset(&self, vertex: u32) -> u64 {
        self.entry.layout.offset(self.row(vertex))
    }

    /// The pages that the row of `vertex` lies on; page p is the 4 KiB at byte p × 4096.
    #[inline]
    pub fn page_span(&self, vertex: u32) -> Range<u64> {
        self.entry.layout.pages(self.row(vertex))
    }

    /// The number of 4 KiB pages in the file, as [`page_count`](Self::page_count) counts them.
    pub fn pages(&self) -> u64 {
        self.crcs.len() as u64
    }

    /// Compares a page that was just read with its checksum.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] that names the file, the page and its offset.
    pub fn check_page(&self, number: u64, page: &[u8]) -> Result<()> {
        check_page(page, &self.crcs, &self.files.rows, number)
    }

    /// Whether every row has a checksum of its own; graphs of older versions have none.
    pub fn has_row_crcs(&self, graph: &Graph) -> bool {
        graph.dir().manifest().files.contains_key(&self.files.row_crc)
    }

    /// Reads the checksum of every row, and reserves their memory in that of `graph`, from which these
    /// features are; `None` where rows have none. Nothing of it is kept here.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where they do not fit, [`ErrorKind::Format`] where they are damaged, I/O
    /// errors.
    pub fn row_crcs(&self, graph: &Graph) -> Result<Option<RowCrcs>> {
        let file = &self.files.row_crc;
        let Some(entry) = graph.dir().manifest().files.get(file) else { return Ok(None) };
        let held = graph.memory().reserve(entry.bytes, "the checksums of feature rows")?;
        let crcs = flat::read(&graph.dir().path().join(file), entry)?;
        Ok(Some(RowCrcs { crcs, _held: held }))
    }

    /// The error for a row that was found to differ from its checksum.
    pub fn row_error(&self, mismatch: &RowMismatch) -> Error {
        mismatch.error(&self.files.rows, &self.entry.layout)
    }

    /// Turns a row's bytes, [`Self::row_bytes`] of them, into its [`Self::dim`] values.
    ///
    /// # Panics
    /// If either slice has another length.
    #[inline]
    pub fn decode(&self, row: &[u8], values: &mut [f32]) {
        self.entry.layout.decode(row, values);
    }

    fn load(graph: &Graph, of: &FeaturesFile) -> Result<Self> {
        let (files, dir) = (&of.files, graph.dir());
        let ids = dir.manifest().files.get(&files.ids);
        let crc = dir.entry(&files.crc)?;
        let bytes = crc.bytes + ids.map_or(0, |entry| entry.bytes);
        let held = graph.memory().reserve(bytes, "the checksums of feature pages")?;
        let crcs = flat::read(&dir.path().join(&files.crc), crc)?;
        let ids = ids.map(|entry| flat::read(&dir.path().join(&files.ids), entry)).transpose()?;
        check_rows(ids.as_deref(), of.entry.rows, &files.ids)?;
        Ok(Self { files: files.clone(), entry: of.entry, file: of.file, crcs, ids, _held: held })
    }
}

/// The checksums of all rows of features, in memory that is reserved for them: 4 bytes a row.
#[derive(Debug)]
pub struct RowCrcs {
    crcs: Vec<u32>,
    _held: Reservation,
}

impl RowCrcs {
    /// The CRC-32C of each row's [`Features::row_bytes`] bytes, in the order of rows in their file.
    pub fn as_slice(&self) -> &[u32] {
        &self.crcs
    }
}

/// Refuses row numbers of vertices that lie past the file's last row.
fn check_rows(ids: Option<&[u32]>, rows: u64, file: &str) -> Result<()> {
    let outside = |&row: &u32| u64::from(row) >= rows;
    match ids.and_then(|ids| ids.iter().copied().find(outside)) {
        Some(row) => Err(Error::new(ErrorKind::Format, "use")
            .object(file)
            .expected(format!("rows below {rows}"))
            .got(row)),
        None => Ok(()),
    }
}

/// A view of all features of a graph's vertices, by name, made by [`Graph::features`].
#[derive(Clone, Copy)]
pub struct FeatureSet<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the features of the vertices; nothing is read yet.
    pub fn features(&self) -> FeatureSet<'_> {
        FeatureSet { graph: self }
    }
}

impl<'g> FeatureSet<'g> {
    /// The names of the vertices' features, ascending.
    pub fn names(self) -> impl Iterator<Item = &'g str> {
        self.graph.feature_files.iter().map(|of| of.name.as_str())
    }

    /// Opens the features `name`. The first call reads their resident part and reserves its memory.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where the graph has none of that name, [`ErrorKind::Budget`] where the
    /// resident part does not fit, [`ErrorKind::Format`] where it is damaged.
    pub fn get(self, name: &str) -> Result<&'g Features> {
        let Some(of) = self.graph.feature_files.iter().find(|of| of.name == name) else {
            return Err(self.no_features(name));
        };
        of.get(self.graph)
    }

    fn no_features(self, name: &str) -> Error {
        let names: Vec<&str> = self.names().collect();
        let error = Error::new(ErrorKind::Input, "use the features").object(name);
        match names.is_empty() {
            true => error
                .expected(format!("features in `{}`", self.graph.dir().path().display()))
                .got("none")
                .hint("`tiergraph build --features x.npy` stores them with a graph"),
            false => error.expected(format!("one of {}", names.join(", "))),
        }
    }

    /// Reads the feature rows of `vertices` (in the graph's order, in any sequence, repeated or not):
    /// one row of [`Features::dim`] floats after the other.
    ///
    /// Reads each page once for every 4 MiB of pages, checks it, and keeps nothing.
    ///
    /// # Errors
    /// As [`Self::get`]; [`ErrorKind::Input`] for a vertex that the graph does not have;
    /// [`ErrorKind::Io`] and [`ErrorKind::Format`] for pages that cannot be read or are damaged.
    pub fn read(self, name: &str, vertices: &[u32]) -> Result<Vec<f32>> {
        let features = self.get(name)?;
        if let Some(vertex) = vertices.iter().find(|&&v| v as usize >= self.graph.vertices()) {
            return Err(Error::new(ErrorKind::Input, "read the features of vertex")
                .object(vertex)
                .expected(format!("one of {} vertices", self.graph.vertices())));
        }
        let dim = features.dim();
        let mut values = vec![0.0; vertices.len() * dim];
        let pages_a_row = features.row_bytes().div_ceil(PAGE_BYTES) + 1;
        let rows = (PAGES_AT_ONCE / pages_a_row).max(1);
        let mut reader = PageReader::new(self.graph)?;
        let most = reader.resident_bytes() + (PAGES_AT_ONCE.max(pages_a_row) * PAGE_BYTES) as u64;
        let _held = self.graph.memory().reserve(most, "the pages of feature rows")?;
        let mut row = Vec::with_capacity(pages_a_row * PAGE_BYTES);
        for (vertices, values) in vertices.chunks(rows).zip(values.chunks_mut(rows * dim)) {
            let pages = Self::read_feature_pages(&mut reader, features, vertices)?;
            for (&vertex, values) in vertices.iter().zip(values.chunks_exact_mut(dim)) {
                row.clear();
                for (_, page) in pages.range(features.page_span(vertex)) {
                    row.extend_from_slice(page);
                }
                let at = (features.offset(vertex) % PAGE_BYTES as u64) as usize;
                features.decode(&row[at..at + features.row_bytes()], values);
            }
        }
        Ok(values)
    }

    /// Reads and checks every page that a row of `vertices` lies on, by page number.
    fn read_feature_pages(
        reader: &mut PageReader,
        features: &Features,
        vertices: &[u32],
    ) -> Result<BTreeMap<u64, Box<[u8]>>> {
        let numbers: BTreeSet<u64> = vertices.iter().flat_map(|&v| features.page_span(v)).collect();
        let numbers: Vec<u64> = numbers.into_iter().collect();
        let mut pages = BTreeMap::new();
        let visit = |number: u64, page: &[u8]| {
            features.check_page(number, page)?;
            pages.insert(number, page.into());
            Ok(())
        };
        reader.read(features.file(), &numbers, || Ok(false), visit)?;
        Ok(pages)
    }
}
