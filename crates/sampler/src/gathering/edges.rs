//! Values of batches' edges: the user's edge numbers, weights, times, other values and features.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{ArcColumn, Features, PageReader, PagesRead};
use tiergraph_mem::Reservation;

use crate::gathering::gather::{GatherReads, gather};
use crate::gathering::matrix::{Delivery, Matrix};
use crate::options::Sharing;
use crate::residency::columns::{Column, Columns, Words, number_at};
use crate::residency::rows::RowStore;
use crate::sampling::batch::SampledEdges;

/// The values of one batch's edges of one type, in the order of the edges.
#[derive(Debug, Default)]
pub struct EdgeValues {
    /// The user's edge numbers; `None` where the graph does not store them.
    pub numbers: Option<Vec<u64>>,
    /// The weights that edges were chosen by; `None` if they were not.
    pub weights: Option<Vec<f32>>,
    /// The times that edges were chosen by; `None` if they were not.
    pub times: Option<Vec<i64>>,
    /// The bits of other values, in the order in which the loader's options name them.
    pub others: Vec<Vec<u64>>,
    /// The features of the edges; `None` if the loader does not ask for any.
    pub features: Option<Matrix>,
}

/// A matrix of rows, and the batch's share of the graph's memory budget.
#[derive(Debug)]
pub struct Held {
    /// The rows of features.
    pub matrix: Matrix,
    pub(crate) _held: Arc<Reservation>,
}

impl Held {
    /// The rows of a batch whose reserved memory is `held`.
    pub(crate) fn new(matrix: Matrix, held: &Arc<Reservation>) -> Self {
        Self { matrix, _held: Arc::clone(held) }
    }
}

impl EdgeValues {
    /// Empty lists of weights and times, if some of them are read to choose edges: then all are kept.
    pub(crate) fn to_choose(columns: &Columns) -> Self {
        let read = !columns.choose_in_memory();
        Self {
            weights: (read && columns.weights.is_some()).then(Vec::new),
            times: (read && columns.times.is_some()).then(Vec::new),
            ..Self::default()
        }
    }

    /// Appends the weights and times that `from` has at `places`.
    pub(crate) fn extend(&mut self, from: &Self, places: &Range<usize>) {
        if let (Some(to), Some(from)) = (&mut self.weights, &from.weights) {
            to.extend_from_slice(&from[places.clone()]);
        }
        if let (Some(to), Some(from)) = (&mut self.times, &from.times) {
            to.extend_from_slice(&from[places.clone()]);
        }
    }

    /// Looks up the values of `edges` that are in memory; those that were read to choose edges stay.
    pub(crate) fn look_up(&mut self, edges: &SampledEdges, columns: &Columns) {
        let arcs = || edges.e_id.iter().map(|&arc| arc as usize);
        self.numbers = columns.numbers.as_ref().and_then(|all| all.resident(&edges.e_id));
        if self.weights.is_none() {
            let all = columns.weights.as_ref().and_then(Column::resident);
            self.weights = all.map(|all| arcs().map(|arc| all[arc]).collect());
        }
        if self.times.is_none() {
            let all = columns.times.as_ref().and_then(Column::resident);
            self.times = all.map(|all| arcs().map(|arc| all[arc]).collect());
        }
        let others = columns.values.iter().map(|values| values.words.resident(&edges.e_id));
        self.others = others.map(Option::unwrap_or_default).collect();
    }

    /// Bytes of the values of `edges` edges, requests for them included.
    pub(crate) fn bytes_of(edges: usize, columns: &Columns, features: Option<&Features>) -> u64 {
        // What is read is requested in the order of its pages.
        let requests = 2 * u64::from(columns.reads_for_chosen());
        let words = u64::from(columns.numbers.is_some()) + columns.values.len() as u64;
        let numbers = 8 * (words + requests);
        let times = 8 * u64::from(columns.times.is_some());
        let weights = 4 * u64::from(columns.weights.is_some());
        // The numbers once more, as rows are requested.
        let rows =
            features.map_or(0, |f| Matrix::bytes_of(f, edges, Delivery::Floats) + 4 * edges as u64);
        (numbers + times + weights) * edges as u64 + rows
    }
}

/// Refuses features of edges without edge numbers, by which they are looked up.
pub(crate) fn check(name: &str, features: &Features, columns: &Columns) -> Result<()> {
    let error = || Error::new(ErrorKind::Input, "load the edges' features").object(name);
    if columns.numbers.is_none() {
        return Err(error()
            .expected("the edges' numbers in the direction that is sampled")
            .got("none")
            .hint("`--for training` builds rows in both directions"));
    }
    if features.rows() > 1 << 32 {
        return Err(error().expected("at most 2^32 edges").got(features.rows()));
    }
    Ok(())
}

/// Reads the numbers and values of one edge type that are not in memory, for all batches of a window.
pub(crate) fn read_columns(
    columns: &Columns,
    reader: &mut PageReader,
    batches: &[&SampledEdges],
    all: &mut [&mut EdgeValues],
) -> Result<PagesRead> {
    let mut reads = PagesRead::default();
    if !columns.reads_for_chosen() {
        return Ok(reads);
    }
    let arcs = WantedArcs::of(batches);
    if let Some(column) = columns.numbers.as_ref().and_then(Words::read) {
        let (numbers, read) = arcs.read(column, reader)?;
        all.iter_mut().zip(numbers).for_each(|(one, numbers)| one.numbers = Some(numbers));
        reads += read;
    }
    for (place, values) in columns.values.iter().enumerate() {
        let Some(column) = values.words.read() else { continue };
        let (words, read) = arcs.read(column, reader)?;
        all.iter_mut().zip(words).for_each(|(one, words)| one.others[place] = words);
        reads += read;
    }
    Ok(reads)
}

/// The arcs of all batches of a window, by which words of columns are requested.
struct WantedArcs {
    /// Each arc with its batch (upper half) and its place there (lower half); ascending.
    sorted: Vec<(u64, u64)>,
    /// The number of arcs of each batch.
    counts: Vec<usize>,
}

impl WantedArcs {
    fn of(batches: &[&SampledEdges]) -> Self {
        let with_places = batches.iter().zip(0u64..).flat_map(|(batch, number)| {
            batch.e_id.iter().zip(0u64..).map(move |(&arc, i)| (arc, number << 32 | i))
        });
        let mut sorted: Vec<(u64, u64)> = with_places.collect();
        sorted.sort_unstable();
        Self { sorted, counts: batches.iter().map(|batch| batch.e_id.len()).collect() }
    }

    /// Reads the words of `column` for each batch: each page once.
    fn read(
        &self,
        column: &ArcColumn,
        reader: &mut PageReader,
    ) -> Result<(Vec<Vec<u64>>, PagesRead)> {
        let per_page = column.per_page();
        let mut pages: Vec<u64> = self.sorted.iter().map(|&(arc, _)| arc / per_page).collect();
        pages.dedup();
        let mut words: Vec<Vec<u64>> = self.counts.iter().map(|&count| vec![0; count]).collect();
        let arrived = |number: u64, page: &[u8]| {
            column.check_page(number, page)?;
            let from = self.sorted.partition_point(|&(arc, _)| arc < number * per_page);
            let here = self.sorted[from..].iter().take_while(|&&(arc, _)| arc / per_page == number);
            for &(arc, target) in here {
                let at = (arc % per_page) as usize * column.width();
                let word = number_at(page, at, column.width());
                words[(target >> 32) as usize][target as u32 as usize] = word;
            }
            Ok(())
        };
        let reads = reader.read(column.file(), &pages, || Ok(false), arrived)?;
        Ok((words, reads))
    }
}

/// Reads the features of the edges of all batches of a window.
pub(crate) fn gather_features(
    features: &Features,
    store: &RowStore,
    reader: &mut PageReader,
    all: &mut [&mut EdgeValues],
) -> Result<GatherReads> {
    let narrow = |one: &&mut EdgeValues| -> Vec<u32> {
        one.numbers.iter().flatten().map(|&number| number as u32).collect()
    };
    let edges: Vec<Vec<u32>> = all.iter().map(narrow).collect();
    let edges: Vec<&[u32]> = edges.iter().map(Vec::as_slice).collect();
    let (sharing, delivery) = (Sharing::Pages, Delivery::Floats);
    let (matrices, reads) = gather(store, features, reader, &edges, sharing, delivery)?;
    all.iter_mut().zip(matrices).for_each(|(one, matrix)| one.features = Some(matrix));
    Ok(reads)
}
