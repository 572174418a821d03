//! Values of batches' edges: the user's edge numbers, weights, times and features.

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{ArcColumn, Features, PageReader, PagesRead};
use tiergraph_mem::Reservation;

use crate::gathering::gather::{GatherReads, gather};
use crate::gathering::matrix::{Delivery, Matrix};
use crate::options::Sharing;
use crate::residency::columns::{Column, Columns, number_at};
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
    }

    /// Bytes of the values of `edges` edges, requests for numbers included.
    pub(crate) fn bytes_of(edges: usize, columns: &Columns, features: Option<&Features>) -> u64 {
        // Numbers that are read are requested in the order of their pages.
        let requests = 2 * u64::from(columns.read_numbers().is_some());
        let numbers = 8 * (u64::from(columns.numbers.is_some()) + requests);
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

/// Reads the edge numbers of one edge type for all batches of a window: each page once.
pub(crate) fn read_numbers(
    column: &ArcColumn,
    reader: &mut PageReader,
    batches: &[&SampledEdges],
    all: &mut [&mut EdgeValues],
) -> Result<PagesRead> {
    let mut requests: Vec<(u64, u64)> = batches
        .iter()
        .zip(0u64..)
        .flat_map(|(batch, number)| {
            batch.e_id.iter().zip(0u64..).map(move |(&arc, i)| (arc, number << 32 | i))
        })
        .collect();
    requests.sort_unstable();
    let per_page = column.per_page();
    let mut pages: Vec<u64> = requests.iter().map(|&(arc, _)| arc / per_page).collect();
    pages.dedup();
    let mut numbers: Vec<Vec<u64>> =
        batches.iter().map(|batch| vec![0; batch.e_id.len()]).collect();
    let arrived = |number: u64, page: &[u8]| {
        column.check_page(number, page)?;
        let from = requests.partition_point(|&(arc, _)| arc < number * per_page);
        let here = requests[from..].iter().take_while(|&&(arc, _)| arc / per_page == number);
        for &(arc, target) in here {
            let at = (arc % per_page) as usize * column.width();
            let value = number_at(page, at, column.width());
            numbers[(target >> 32) as usize][target as u32 as usize] = value;
        }
        Ok(())
    };
    let reads = reader.read(column.file(), &pages, || Ok(false), arrived)?;
    for (one, numbers) in all.iter_mut().zip(numbers) {
        one.numbers = Some(numbers);
    }
    Ok(reads)
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
