//! Data of edges: columns with a value for each arc, and feature rows by edge number.

use std::collections::BTreeMap;
use std::ops::Range;

use bytemuck::Pod;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::edges::{
    Side, ValueType, column_bytes, column_file, column_widths, columns, crc_file, numbers_file,
};
use tiergraph_format::flat;
use tiergraph_format::pages::{PAGE_BYTES, check_page};
use tiergraph_io::{FileId, FileSet};
use tiergraph_mem::Reservation;

use crate::open::open_file;
use crate::{Direction, Features, Graph, PageReader};

/// Pages requested at a time while a whole column is read.
const PAGES_AT_ONCE: u64 = 1 << 16;

/// An opened column: a value for each arc, in the order of arcs in a `*.rows` file, in pages.
///
/// Resident: 4 bytes a page.
#[derive(Debug)]
pub struct ArcColumn {
    path: String,
    file: FileId,
    width: usize,
    arcs: u64,
    crcs: Vec<u32>,
    _held: Reservation,
}

impl ArcColumn {
    /// The column's file name, relative to the graph's directory.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file, for a [`PageReader`](crate::PageReader).
    pub fn file(&self) -> FileId {
        self.file
    }

    /// Bytes of a value: 4 or 8, so none crosses pages.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of the values of all arcs.
    pub fn bytes(&self) -> u64 {
        self.arcs * self.width as u64
    }

    /// The number of values on a page.
    pub fn per_page(&self) -> u64 {
        (PAGE_BYTES / self.width) as u64
    }

    /// The range of pages that hold the values of the arcs numbered `arcs`.
    pub fn pages(&self, arcs: Range<u64>) -> Range<u64> {
        let begin = arcs.start / self.per_page();
        begin..if arcs.is_empty() { begin } else { (arcs.end - 1) / self.per_page() + 1 }
    }

    /// Compares a page that was just read with its checksum.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] that names the file, the page and its offset.
    pub fn check_page(&self, number: u64, page: &[u8]) -> Result<()> {
        check_page(page, &self.crcs, &self.path, number)
    }
}

/// Opens the file of every column, and of edge numbers, that the manifest names; by file name.
pub(crate) fn open_columns(
    dir: &GraphDir,
    files: &mut FileSet,
) -> Result<BTreeMap<String, FileId>> {
    let names = dir.manifest().files.keys().filter(|name| column_widths(name).is_some());
    names.map(|name| Ok((name.clone(), open_file(dir, files, name)?))).collect()
}

/// The number of the edge that each arc of a `*.rows` file comes from, held in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeNumbers {
    /// Numbers of 32 bits: the graph has fewer than 2³² edges.
    Narrow(Vec<u32>),
    /// Numbers of 64 bits.
    Wide(Vec<u64>),
}

impl EdgeNumbers {
    /// The number of the edge that arc number `arc` comes from.
    ///
    /// # Panics
    /// When there is no such arc.
    #[inline]
    pub fn get(&self, arc: u64) -> u64 {
        match self {
            Self::Narrow(numbers) => numbers[arc as usize].into(),
            Self::Wide(numbers) => numbers[arc as usize],
        }
    }
}

/// A view of the data stored for a graph's edges, made by [`Graph::edge_values`]: *columns* (a weight or
/// time for each arc), edge numbers, and *features* (a row of floats for each edge).
///
/// It holds nothing: methods open files or read them when called. Edges are numbered from 0 in the order
/// in which the user gave them with their values; both arcs of an undirected edge have its number.
#[derive(Clone, Copy)]
pub struct EdgeValues<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// A view of the stored columns, edge numbers and features of edges; nothing is read yet.
    pub fn edge_values(&self) -> EdgeValues<'_> {
        EdgeValues { graph: self }
    }
}

impl<'g> EdgeValues<'g> {
    /// The name and type of each stored column.
    pub fn columns(self) -> Vec<(&'g str, ValueType)> {
        columns(self.graph.manifest().files.keys().map(String::as_str))
    }

    /// The names of the stored edge features, ascending.
    pub fn feature_names(self) -> impl Iterator<Item = &'g str> {
        self.graph.manifest().edge_features.keys().map(String::as_str)
    }

    /// Whether the edge number of each arc of the rows in this direction is stored.
    pub fn has_numbers(self, direction: Direction) -> bool {
        self.graph.manifest().files.contains_key(&numbers_file(self.side(direction)))
    }

    /// Opens the column of edge numbers of the arcs of rows in this direction, and reserves its
    /// checksums; `None` where no numbers are stored.
    ///
    /// # Errors
    /// Errors of reading; [`ErrorKind::Format`] for damage.
    pub fn number_column(self, direction: Direction) -> Result<Option<ArcColumn>> {
        if !self.has_numbers(direction) {
            return Ok(None);
        }
        let file = numbers_file(self.side(direction));
        let bytes = self.graph.dir().entry(&file)?.bytes;
        let wide = bytes > column_bytes(self.graph.manifest().arcs, 4);
        self.open_column(&file, if wide { 8 } else { 4 }).map(Some)
    }

    /// Opens the column `name` of the arcs of rows in this direction, and reserves its checksums.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where the graph has no such column; errors of reading.
    pub fn column(self, direction: Direction, name: &str, kind: ValueType) -> Result<ArcColumn> {
        let file = column_file(self.side(direction), name, kind);
        if self.graph.manifest().files.contains_key(&file) {
            return self.open_column(&file, kind.bytes());
        }
        let columns = self.columns().into_iter().filter(|&(_, of)| of == kind);
        let names = columns.map(|(name, _)| name).collect();
        Err(self.no_values(&format!("{kind} column"), name, names))
    }

    /// Opens the column `name`, of whatever type, as [`column`](Self::column) does; its type.
    ///
    /// # Errors
    /// A name that no column has, and what [`column`](Self::column) fails for.
    pub fn any_column(self, direction: Direction, name: &str) -> Result<(ArcColumn, ValueType)> {
        let columns = self.columns();
        match columns.iter().find(|(known, _)| *known == name) {
            Some(&(_, kind)) => Ok((self.column(direction, name, kind)?, kind)),
            None => {
                let names = columns.into_iter().map(|(name, _)| name).collect();
                Err(self.no_values("column", name, names))
            }
        }
    }

    /// Reads a whole column into `values`, in the bytes of the file. The caller reserves their memory.
    ///
    /// # Errors
    /// Errors of reading; [`ErrorKind::Format`] for damage.
    ///
    /// # Panics
    /// When `values` has not [`ArcColumn::bytes`].
    pub fn read_column(self, column: &ArcColumn, values: &mut [u8]) -> Result<()> {
        assert_eq!(values.len() as u64, column.bytes(), "room for the column");
        let mut reader = PageReader::new(self.graph)?;
        let _held = self
            .graph
            .memory()
            .reserve(reader.resident_bytes(), "buffers for a column of edges")?;
        let all = column.pages(0..column.arcs).end;
        for first in (0..all).step_by(PAGES_AT_ONCE as usize) {
            let pages: Vec<u64> = (first..all.min(first + PAGES_AT_ONCE)).collect();
            let visit = |number: u64, page: &[u8]| {
                column.check_page(number, page)?;
                let to = &mut values[number as usize * PAGE_BYTES..];
                let count = to.len().min(PAGE_BYTES);
                to[..count].copy_from_slice(&page[..count]);
                Ok(())
            };
            reader.read(column.file, &pages, || Ok(false), visit)?;
        }
        Ok(())
    }

    /// Reads the edge numbers of all arcs of rows in this direction, 4 or 8 bytes an arc; `None` where
    /// none are stored. The caller reserves their memory.
    ///
    /// # Errors
    /// Those of [`number_column`](Self::number_column).
    pub fn numbers(self, direction: Direction) -> Result<Option<EdgeNumbers>> {
        let Some(column) = self.number_column(direction)? else { return Ok(None) };
        Ok(Some(match column.width {
            4 => EdgeNumbers::Narrow(self.values(&column)?),
            _ => EdgeNumbers::Wide(self.values(&column)?),
        }))
    }

    /// The column `name` of 32-bit floats, in the order of the arcs of rows in this direction. The
    /// caller reserves its memory: 4 bytes an arc.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where the graph has no such column; errors of reading.
    pub fn floats(self, direction: Direction, name: &str) -> Result<Vec<f32>> {
        self.values(&self.column(direction, name, ValueType::F32)?)
    }

    /// Reads the column `name` of 64-bit integers, in the order of the arcs of rows in this direction.
    ///
    /// # Errors
    /// The errors of [`floats`](Self::floats).
    pub fn integers(self, direction: Direction, name: &str) -> Result<Vec<i64>> {
        self.values(&self.column(direction, name, ValueType::I64)?)
    }

    /// The edge features `name`: row e is edge number e's. The first call reads their resident part.
    ///
    /// # Errors
    /// As [`crate::FeatureSet::get`].
    pub fn features(self, name: &str) -> Result<&'g Features> {
        match self.graph.edge_feature_files.iter().find(|of| of.name == name) {
            Some(of) => of.get(self.graph),
            None => Err(self.no_values("features", name, self.feature_names().collect())),
        }
    }

    fn open_column(self, path: &str, width: usize) -> Result<ArcColumn> {
        let file = *self.graph.columns.get(path).ok_or_else(|| {
            Error::new(ErrorKind::Format, "use").object(path).expected("a column of edges")
        })?;
        let crc = crc_file(path);
        let entry = self.graph.dir().entry(&crc)?;
        let held = self.graph.memory().reserve(entry.bytes, "the checksums of values of edges")?;
        let crcs = flat::read(&self.graph.dir().path().join(&crc), entry)?;
        let arcs = self.graph.manifest().arcs;
        Ok(ArcColumn { path: path.to_owned(), file, width, arcs, crcs, _held: held })
    }

    fn values<T: Pod>(self, column: &ArcColumn) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); column.arcs as usize];
        self.read_column(column, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// Which of the graph's `*.rows` files holds the arcs of `direction`.
    fn side(self, direction: Direction) -> Side {
        match direction {
            Direction::In if self.graph.manifest().directed => Side::In,
            _ => Side::Out,
        }
    }

    fn no_values(self, what: &str, name: &str, names: Vec<&str>) -> Error {
        let error = Error::new(ErrorKind::Input, format!("use the edges' {what}")).object(name);
        match names.is_empty() {
            true => error
                .expected(format!("one in `{}`", self.graph.dir().path().display()))
                .got("none")
                .hint("`tiergraph edges add` stores them with a graph"),
            false => error.expected(format!("one of {}", names.join(", "))),
        }
    }
}
