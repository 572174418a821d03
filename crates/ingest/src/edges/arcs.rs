//! Records of edges in the order of the arcs of one rows file.
//!
//! Arcs are numbered by row, and in a row by column; equal ones in the order of the edges. Degrees
//! say where each row begins, so an edge's record goes to the next free place of its row
//! ([`Scatter`]: a counting sort that may be larger than memory), and each row is sorted by column
//! when it comes out.

use std::path::Path;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::edges::Side;
use tiergraph_format::flat;
use tiergraph_mem::{Budget, Reservation};

use crate::features::Scatter;

/// Bytes of a record before the values: the column, and the edge's number.
pub(super) const HEAD_BYTES: usize = 12;

/// An edge: its number, the bytes of its values, and the times of all vertices, by name.
pub(super) type Edge<'a> = (u64, &'a [u8], &'a [(String, Vec<i64>)]);

/// The rows of one `*.rows` file, and how many of their edges have come.
pub(super) struct Rows {
    side: Side,
    /// Where each row's arcs begin, then the number of all arcs.
    begins: Vec<u64>,
    /// The number of edges that each row has got.
    filled: Vec<u32>,
    record_bytes: usize,
    _held: Reservation,
}

/// The arcs of one `*.rows` file, being put in order with their values.
pub(super) struct Arcs {
    rows: Rows,
    scatter: Scatter,
    record: Vec<u8>,
}

impl Rows {
    /// The rows of the file `side`, for records with `value_bytes` bytes of values.
    pub(super) fn new(
        side: Side,
        value_bytes: usize,
        dir: &GraphDir,
        budget: &Budget,
    ) -> Result<Self> {
        let name = format!("{side}.degrees");
        let degrees: Vec<u32> = flat::read(&dir.path().join(&name), dir.entry(&name)?)?;
        let record_bytes = HEAD_BYTES + value_bytes;
        let longest = degrees.iter().copied().max().unwrap_or(0) as usize;
        // A row is put in order in memory, with an index.
        let bytes = 16 * degrees.len() + longest * (record_bytes + size_of::<u64>());
        let held = budget.reserve(bytes as u64, "the rows that values of edges go to")?;
        let mut begins = Vec::with_capacity(degrees.len() + 1);
        let mut sum = 0;
        begins.push(0);
        begins.extend(degrees.iter().map(|&degree| {
            sum += u64::from(degree);
            sum
        }));
        Ok(Self { side, filled: vec![0; degrees.len()], begins, record_bytes, _held: held })
    }

    /// The number of the next free arc of a row; an error if the row is full.
    fn place(&mut self, row: u32) -> Result<u64> {
        let at = row as usize;
        let place = self.begins[at] + u64::from(self.filled[at]);
        if place == self.begins[at + 1] {
            return Err(self.misfit(row, "more").hint(
                "give the edges that the graph was built from; a graph that removed duplicates \
                 takes values only of edges without them",
            ));
        }
        self.filled[at] += 1;
        Ok(place)
    }

    /// Fails if a row has fewer edges than its degree.
    fn check_full(&self) -> Result<()> {
        let wants =
            |&row: &usize| u64::from(self.filled[row]) < self.begins[row + 1] - self.begins[row];
        match (0..self.filled.len()).find(wants) {
            Some(row) => Err(self
                .misfit(row as u32, &self.filled[row].to_string())
                .hint("give all edges that the graph was built from")),
            None => Ok(()),
        }
    }

    fn misfit(&self, row: u32, got: &str) -> Error {
        let at = row as usize;
        let degree = self.begins[at + 1] - self.begins[at];
        Error::new(ErrorKind::Input, "store values of edges for")
            .object(format!("{}.rows", self.side))
            .expected(format!("{degree} edges of vertex {row} (as the graph numbers it)"))
            .got(got)
    }
}

impl Arcs {
    /// Begins with empty rows, in at most three quarters of what is left of the budget.
    pub(super) fn new(rows: Rows, temporary: &Path, budget: &Budget) -> Result<Self> {
        let arcs = rows.begins.last().copied().unwrap_or(0);
        let scatter = Scatter::new(arcs, rows.record_bytes, budget, temporary)?;
        Ok(Self { record: vec![0; rows.record_bytes], rows, scatter })
    }

    /// The side of the rows file: out or in.
    pub(super) fn side(&self) -> Side {
        self.rows.side
    }

    /// Takes an edge from `source` to `target`, with its values.
    pub(super) fn push(
        &mut self,
        source: u32,
        target: u32,
        undirected: bool,
        of: Edge<'_>,
    ) -> Result<()> {
        let (row, column) = match self.rows.side {
            Side::Out => (source, target),
            Side::In => (target, source),
        };
        self.put(row, column, of)?;
        // An undirected edge is in the rows of both ends, a self-loop once.
        if undirected && row != column { self.put(column, row, of) } else { Ok(()) }
    }

    fn put(&mut self, row: u32, column: u32, (number, values, times): Edge<'_>) -> Result<()> {
        let place = self.rows.place(row)?;
        self.record[..4].copy_from_slice(&column.to_le_bytes());
        self.record[4..HEAD_BYTES].copy_from_slice(&number.to_le_bytes());
        let (own, of_neighbors) = self.record[HEAD_BYTES..].split_at_mut(values.len());
        own.copy_from_slice(values);
        for (slot, (_, times)) in of_neighbors.as_chunks_mut().0.iter_mut().zip(times) {
            *slot = times[column as usize].to_le_bytes();
        }
        self.scatter.push(place, &self.record)
    }

    /// Calls `each(edge number, values)` for every arc, in their order.
    pub(super) fn finish(
        self,
        cancel: &Cancel,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.rows.check_full()?;
        let Self { rows: Rows { begins, .. }, scatter, record } = self;
        let (mut row, mut arc) = (Row::new(record.len()), 0);
        let mut ends = begins.into_iter().peekable();
        scatter.finish(cancel, |record| {
            while ends.next_if(|&end| end <= arc).is_some() {}
            row.push(record);
            arc += 1;
            if ends.peek() == Some(&arc) { row.drain(&mut each) } else { Ok(()) }
        })
    }
}

/// The records of one row, collected.
struct Row {
    record_bytes: usize,
    records: Vec<u8>,
    order: Vec<(u32, u32)>,
}

impl Row {
    fn new(record_bytes: usize) -> Self {
        Self { record_bytes, records: Vec::new(), order: Vec::new() }
    }

    fn push(&mut self, record: &[u8]) {
        let column = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
        self.order.push((column, self.order.len() as u32));
        self.records.extend_from_slice(record);
    }

    /// Calls `each` with the records by column, equal ones in the edges' order, and empties the row.
    fn drain(&mut self, each: &mut impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.order.sort_unstable();
        for &(_, at) in &self.order {
            let record = &self.records[at as usize * self.record_bytes..][..self.record_bytes];
            let (head, values) = record.split_at(HEAD_BYTES);
            let number = head[4..].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
            each(number, values)?;
        }
        self.records.clear();
        self.order.clear();
        Ok(())
    }
}
