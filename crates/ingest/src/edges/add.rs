//! Adds values of edges to a graph: takes the edges once more, batch by batch, with their values.

use std::path::Path;

use tiergraph_core::{Cancel, Error, ErrorKind, Progress, Result};
use tiergraph_format::directory::Existing;
use tiergraph_format::edges::{Side, ValueType, column_file, numbers_file};
use tiergraph_format::features::{Addition, Growing, NewFiles, check_name};
use tiergraph_format::manifest::Manifest;
use tiergraph_mem::{Budget, Reservation};

use super::arcs::{Arcs, Rows};
use super::column::ColumnWriter;
use super::lookup::Lookup;
use super::times::{ByVertex, NodeTimes, write_node_times};
use crate::features::{NewFeatures, Target};
use crate::source::{EdgeBatch, Endpoints};

/// A column of edge values to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewColumn {
    /// The column's name.
    pub name: String,
    /// The type of its values.
    pub kind: ValueType,
}

/// The values of one column for a batch of edges.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Finite 32-bit floats: weights.
    F32(&'a [f32]),
    /// 64-bit integers: times.
    I64(&'a [i64]),
}

/// An addition of edge values to a graph. If dropped without [`Self::finish`], it leaves nothing behind.
pub struct EdgeAddition {
    addition: Box<dyn Growing>,
    budget: Budget,
    lookup: Lookup,
    columns: Vec<NewColumn>,
    /// The times of vertices, in the graph's order, with their names.
    node_times: ByVertex,
    /// Files that were written before the edges came.
    written: NewFiles,
    arcs: Vec<Arcs>,
    drops_loops: bool,
    /// The number of edges that were pushed.
    edges: u64,
    values: Vec<u8>,
    _held: [Reservation; 2],
}

impl EdgeAddition {
    /// Begins to add `columns` to the graph at `path`, in `memory` bytes (half of what is available
    /// by default).
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for names that no file can have or that the graph has, and for a graph
    /// without rows; a budget error where 12 bytes a vertex and a row do not fit.
    pub fn begin(
        path: &Path,
        columns: Vec<NewColumn>,
        existing: Existing,
        memory: Option<u64>,
    ) -> Result<Self> {
        let budget = Budget::of(memory)?;
        let addition = Box::new(Addition::begin(path, existing)?);
        Self::to(addition, columns, Vec::new(), &budget)
    }

    /// Begins an addition of `columns` and times of vertices to a graph that is being added to or built.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); [`ErrorKind::Input`] for times of more or fewer vertices.
    pub fn to(
        mut addition: Box<dyn Growing>,
        columns: Vec<NewColumn>,
        node_times: Vec<NodeTimes>,
        budget: &Budget,
    ) -> Result<Self> {
        let budget = budget.clone();
        let dir = addition.dir().clone();
        let sides = [Side::Out, Side::In];
        let has_rows = |side: &Side| dir.manifest().files.contains_key(&format!("{side}.rows"));
        let sides: Vec<Side> = sides.into_iter().filter(has_rows).collect();
        if sides.is_empty() {
            return Err(Error::new(ErrorKind::Input, "store values of edges in")
                .object(dir.path().display())
                .expected("a graph with rows")
                .got("none")
                .hint("`--for training` or `--for both` builds them"));
        }
        for &side in &sides {
            addition.refuse(&numbers_file(side))?;
        }
        let all = columns.iter().map(|column| &column.name);
        check_names(all.chain(node_times.iter().map(|times| &times.name)))?;
        let lookup = Lookup::of(&dir, &budget)?;
        let (node_times, written, times_held) =
            write_node_times(&mut *addition, node_times, &lookup, &budget)?;
        // Those of one rows file at a time.
        let writers = (1 + columns.len() + node_times.len()) as u64
            * ColumnWriter::bytes(dir.manifest().block_bytes);
        let held = budget.reserve(writers, "the columns of edges that are written")?;
        let value_bytes: usize = columns.iter().map(|column| column.kind.bytes()).sum();
        let record_bytes = value_bytes + node_times.len() * ValueType::I64.bytes();
        let rows = sides.into_iter().map(|side| Rows::new(side, record_bytes, &dir, &budget));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let (mut arcs, files) = (Vec::new(), rows.len() as u64);
        for (rows, done) in rows.into_iter().zip(0..) {
            // Each file gets its share.
            let left = budget.left();
            let others = budget.reserve(left - left / (files - done), "the other rows file")?;
            arcs.push(Arcs::new(rows, &addition.temporary(), &budget)?);
            drop(others);
        }
        let option = dir.manifest().provenance.options.get("self_loops");
        let drops_loops = option.is_some_and(|option| option == "remove");
        let values = vec![0; value_bytes];
        let (edges, _held) = (0, [held, times_held]);
        Ok(Self {
            addition,
            budget,
            lookup,
            columns,
            node_times,
            written,
            arcs,
            drops_loops,
            edges,
            values,
            _held,
        })
    }

    /// Takes the next edges, with a column of values for each that was announced.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a vertex that the graph does not have, more edges of a vertex than
    /// it has, columns of another number, length or type, and a float that is not finite.
    pub fn push(&mut self, batch: &EdgeBatch, columns: &[Column<'_>]) -> Result<()> {
        self.check(batch.len(), columns)?;
        let undirected = !self.addition.dir().manifest().directed;
        for i in 0..batch.len() {
            let (source, target) = match &batch.ends {
                Endpoints::U32 { src, dst } => (src[i].into(), dst[i].into()),
                Endpoints::U64 { src, dst } => (src[i], dst[i]),
            };
            let number = self.edges;
            self.edges += 1;
            let (source, target) = (self.lookup.vertex(source)?, self.lookup.vertex(target)?);
            if source == target && self.drops_loops {
                continue;
            }
            let mut rest = self.values.as_mut_slice();
            for column in columns {
                let (value, others) = rest.split_at_mut(column.kind().bytes());
                match column {
                    Column::F32(values) => value.copy_from_slice(&values[i].to_le_bytes()),
                    Column::I64(values) => value.copy_from_slice(&values[i].to_le_bytes()),
                }
                rest = others;
            }
            for arcs in &mut self.arcs {
                let of = (number, &self.values[..], &self.node_times[..]);
                arcs.push(source, target, undirected, of)?;
            }
        }
        Ok(())
    }

    fn check(&self, edges: usize, columns: &[Column<'_>]) -> Result<()> {
        let refuse = |name: &str, expected: String| {
            let error = Error::new(ErrorKind::Input, "store values of edges").object(name);
            error.expected(expected)
        };
        if columns.len() != self.columns.len() {
            let expected = format!("{} columns", self.columns.len());
            return Err(refuse("columns", expected).got(columns.len()));
        }
        for (column, new) in columns.iter().zip(&self.columns) {
            if column.kind() != new.kind || column.len() != edges {
                let expected = format!("{} for each of {edges} edges", new.kind);
                let got = format!("{} of {}", column.len(), column.kind());
                return Err(refuse(&new.name, expected).got(got));
            }
            let Column::F32(values) = column else { continue };
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let got = format!("{} of edge {}", values[at], self.edges + at as u64);
                return Err(refuse(&new.name, "finite numbers".into()).got(got));
            }
        }
        Ok(())
    }

    /// Stores all columns, the edges' numbers, and `features` of the edges (rows in the order in which
    /// the edges came).
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where edges or rows are missing; errors of writing.
    pub fn finish(
        mut self,
        features: Vec<NewFeatures>,
        progress: &dyn Progress,
        cancel: &Cancel,
    ) -> Result<Manifest> {
        let mut new = std::mem::take(&mut self.written);
        let wide = u32::try_from(self.edges).is_err();
        for arcs in std::mem::take(&mut self.arcs) {
            progress.update("edges", 0, 0, "arcs");
            self.write(arcs, wide, &mut new, cancel)?;
        }
        let block_bytes = self.addition.dir().manifest().block_bytes;
        for one in features {
            let (to, budget) = (&mut *self.addition, &self.budget);
            let target = &mut Target { to, vertices: self.edges, block_bytes, order: None, budget };
            let written = one.write_of_edges(target, progress, cancel)?;
            new.files.extend(written.files);
            new.edge_features.extend(written.edge_features);
            new.sources.extend(written.sources);
        }
        Ok(self.addition.commit(new)?.manifest().clone())
    }

    /// Writes the edge numbers and columns of one rows file.
    fn write(&mut self, arcs: Arcs, wide: bool, new: &mut NewFiles, cancel: &Cancel) -> Result<()> {
        let side = arcs.side();
        let mut ids = self.column(numbers_file(side), if wide { 8 } else { 4 })?;
        let names: Vec<(String, usize)> = self
            .columns
            .iter()
            .map(|column| (&column.name, column.kind))
            .chain(self.node_times.iter().map(|(name, _)| (name, ValueType::I64)))
            .map(|(name, kind)| (column_file(side, name, kind), kind.bytes()))
            .collect();
        let columns = names.into_iter().map(|(name, width)| self.column(name, width));
        let mut columns = columns.collect::<Result<Vec<ColumnWriter>>>()?;
        arcs.finish(cancel, |number, mut values| {
            ids.push(&number.to_le_bytes())?;
            for column in &mut columns {
                let (value, rest) = values.split_at(column.width());
                column.push(value)?;
                values = rest;
            }
            Ok(())
        })?;
        std::iter::once(ids).chain(columns).try_for_each(|column| column.finish(&mut new.files))
    }

    fn column(&mut self, name: String, width: usize) -> Result<ColumnWriter> {
        let block_bytes = self.addition.dir().manifest().block_bytes;
        ColumnWriter::create(&mut *self.addition, name, width, block_bytes)
    }
}

/// Fails for names that no file can have, or that occur twice.
fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = Vec::new();
    for name in names {
        check_name(name)?;
        if seen.contains(&name) {
            let error = Error::new(ErrorKind::Input, "store values of edges").object(name);
            return Err(error.expected("each name once").got("it twice"));
        }
        seen.push(name);
    }
    Ok(())
}

impl Column<'_> {
    fn kind(&self) -> ValueType {
        match self {
            Self::F32(_) => ValueType::F32,
            Self::I64(_) => ValueType::I64,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::I64(values) => values.len(),
        }
    }
}
