//! Columns of arcs: weights, times, other values, and the numbers of the edges that arcs come from.
//!
//! A column is in memory whole, or its pages are read when they are wanted: for the arcs of the
//! vertices that are expanded where arcs are chosen by it (module `paged`), else for
//! those that were chosen ([`edges`](crate::gathering::edges)).

use bytemuck::Pod;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::edges::ValueType;
use tiergraph_graph::{ArcColumn, Direction, Graph};
use tiergraph_mem::{Array, PAGE_BYTES, Reservation};

use crate::options::{Resident, SampleOptions};
use crate::sampling::weighted::Strategy;

/// A value for each arc, in memory or on storage.
#[derive(Debug)]
pub struct Column<T> {
    stored: ArcColumn,
    values: Option<(Array<T>, Reservation)>,
}

impl<T: Pod> Column<T> {
    fn open(graph: &Graph, stored: ArcColumn, resident: bool, what: &str) -> Result<Self> {
        let mut column = Self { values: None, stored };
        if resident {
            let bytes = column.stored.bytes();
            let held = graph.memory().reserve(bytes, what)?;
            let mut values = Array::zeroed(bytes as usize / size_of::<T>())?;
            graph
                .edge_values()
                .read_column(&column.stored, bytemuck::cast_slice_mut(&mut values))?;
            column.values = Some((values, held));
        }
        Ok(column)
    }

    /// The values by arc number; `None` if they are on storage.
    #[inline]
    pub fn resident(&self) -> Option<&[T]> {
        self.values.as_ref().map(|(values, _)| &values[..])
    }

    /// The column's file on storage.
    pub fn stored(&self) -> &ArcColumn {
        &self.stored
    }

    /// The column to read; `None` where it is in memory.
    fn read(&self) -> Option<&ArcColumn> {
        self.values.is_none().then_some(&self.stored)
    }
}

/// A word of 4 or 8 bytes for each arc: the user's edge number, or the bits of a value.
#[derive(Debug)]
pub struct Words(Column<u8>);

impl Words {
    /// The words of `arcs`; `None` if they are on storage.
    pub(crate) fn resident(&self, arcs: &[u64]) -> Option<Vec<u64>> {
        let (all, width) = (self.0.resident()?, self.0.stored.width());
        let number = |&arc: &u64| number_at(all, arc as usize * width, width);
        Some(arcs.iter().map(number).collect())
    }

    /// The column to read; `None` where it is in memory.
    pub(crate) fn read(&self) -> Option<&ArcColumn> {
        self.0.read()
    }
}

/// Values that batches come with and are not sampled by.
#[derive(Debug)]
pub struct NamedColumn {
    /// The name that they are stored under.
    pub name: String,
    /// The type of the values: floats or integers.
    pub kind: ValueType,
    /// Their bits.
    pub words: Words,
}

/// Decodes the number in the `width` (4 or 8) bytes from `at` on.
#[inline]
pub(crate) fn number_at(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; 8];
    match width {
        4 => word[..4].copy_from_slice(&bytes[at..at + 4]),
        _ => word.copy_from_slice(&bytes[at..at + 8]),
    }
    u64::from_le_bytes(word)
}

/// The columns of one edge type, by arc number.
#[derive(Debug, Default)]
pub struct Columns {
    /// Weights by which arcs are chosen; `None` to choose evenly.
    pub weights: Option<Column<f32>>,
    /// Times that bound the arcs that may be chosen; `None` without bounds.
    pub times: Option<Column<i64>>,
    /// The rule by which arcs are chosen of those that may be.
    pub strategy: Strategy,
    /// The user's edge numbers, 8 bytes where there are 2³² edges; `None` where they are not stored.
    pub numbers: Option<Words>,
    /// Other values that batches come with.
    pub values: Vec<NamedColumn>,
}

impl Columns {
    /// Opens the columns that `options` name, and the numbers of the edges where they are stored;
    /// reads those that should be in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a column that the graph does not have, or a weight below 0 in memory;
    /// [`ErrorKind::Budget`] where they do not fit; what reading gives.
    pub fn load(
        graph: &Graph,
        direction: Direction,
        options: &SampleOptions,
        resident: Resident,
    ) -> Result<Self> {
        let mut columns = Self::default();
        if let Some(stored) = graph.edge_values().number_column(direction)? {
            let what = "the numbers of the edges";
            columns.numbers = Some(Words(Column::open(graph, stored, resident.numbers, what)?));
        }
        if let Some(name) = &options.weights {
            let stored = graph.edge_values().column(direction, name, ValueType::F32)?;
            let weights =
                Column::open(graph, stored, resident.weights, "the weights of the edges")?;
            if let Some(all) = weights.resident()
                && let Some(arc) = all.iter().position(|&weight| weight < 0.0)
            {
                let edge = columns.numbers.as_ref().and_then(|n| n.resident(&[arc as u64]));
                let of = edge.map_or(format!("arc {arc}"), |edge| format!("edge {}", edge[0]));
                return Err(negative(name, all[arc]).got(format!("{} of {of}", all[arc])));
            }
            columns.weights = Some(weights);
        }
        if let Some(times) = &options.times {
            let stored = graph.edge_values().column(direction, &times.name, ValueType::I64)?;
            let what = "the times of the edges";
            columns.times = Some(Column::open(graph, stored, resident.times, what)?);
            columns.strategy = times.strategy;
        }
        for name in &options.values {
            let (stored, kind) = graph.edge_values().any_column(direction, name)?;
            let words =
                Words(Column::open(graph, stored, resident.values, "the values of the edges")?);
            columns.values.push(NamedColumn { name: name.clone(), kind, words });
        }
        Ok(columns)
    }

    /// Whether arcs are not chosen evenly among all.
    pub(crate) fn are_weighted_or_timed(&self) -> bool {
        self.weights.is_some() || self.times.is_some()
    }

    /// The columns by which arcs are chosen: weights, times.
    pub(crate) fn chosen_by(&self) -> [Option<&ArcColumn>; 2] {
        [self.weights.as_ref().map(Column::stored), self.times.as_ref().map(Column::stored)]
    }

    /// The columns that must be read to choose arcs: weights, times.
    pub(crate) fn read_to_choose(&self) -> [Option<&ArcColumn>; 2] {
        let weights = self.weights.as_ref().and_then(Column::read);
        let times = self.times.as_ref().and_then(Column::read);
        [weights, times]
    }

    /// Whether arcs are chosen without a read.
    pub(crate) fn choose_in_memory(&self) -> bool {
        self.read_to_choose().iter().all(Option::is_none)
    }

    /// Whether numbers or values must be read for chosen arcs.
    pub(crate) fn reads_for_chosen(&self) -> bool {
        let values = self.values.iter().map(|values| &values.words);
        self.numbers.iter().chain(values).any(|words| words.read().is_some())
    }

    /// Bytes of the columns that there are: weights, times, numbers, other values.
    pub(crate) fn bytes(&self) -> [u64; 4] {
        let [weights, times] = self.chosen_by();
        let numbers = self.numbers.as_ref().map(|numbers| &numbers.0.stored);
        let [weights, times, numbers] =
            [weights, times, numbers].map(|column| column.map_or(0, ArcColumn::bytes));
        let values = self.values.iter().map(|values| values.words.0.stored.bytes()).sum();
        [weights, times, numbers, values]
    }
}

/// The error of weights below 0, which nothing can be drawn by.
pub(crate) fn negative(name: &str, weight: f32) -> Error {
    Error::new(ErrorKind::Input, "sample by the weights")
        .object(name)
        .expected("weights of 0 or more")
        .got(weight)
}

/// The most pages of a column that a step has.
pub(crate) const STEP_PAGES: u64 = 256;

/// Bytes of the steps that are in memory at once where these columns are read and no vertex has
/// more than `longest` arcs.
pub(crate) fn step_bytes(columns: [Option<&ArcColumn>; 2], longest: u64) -> u64 {
    let pages = |column: &ArcColumn| STEP_PAGES.max(longest / column.per_page() + 2);
    2 * columns.into_iter().flatten().map(pages).sum::<u64>() * PAGE_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_4_or_8_little_endian_bytes() {
        let bytes: Vec<u8> = (0..24).collect();
        assert_eq!([0, 4].map(|at| number_at(&bytes, at, 4)), [0x0302_0100, 0x0706_0504]);
        assert_eq!(number_at(&bytes, 8, 8), 0x0F0E_0D0C_0B0A_0908);
        assert_eq!(number_at(&bytes, 16, 8), 0x1716_1514_1312_1110);
    }
}
