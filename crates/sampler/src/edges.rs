//! What batches come with about their edges: the user's numbers, values, features.

use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Features, Graph, PageReader};
use tiergraph_mem::Reservation;

use crate::batch::MiniBatch;
use crate::columns::Columns;
use crate::gather::{GatherReads, Wanted, gather};
use crate::matrix::{Delivery, Matrix};
use crate::options::Sharing;
use crate::store::RowStore;

/// What a batch knows about its edges, in their order.
#[derive(Debug, Default)]
pub struct EdgeValues {
    /// The user's edges, where the graph knows them.
    pub numbers: Option<Vec<u64>>,
    /// The weights that edges were chosen by.
    pub weights: Option<Vec<f32>>,
    /// The times that they were chosen by.
    pub times: Option<Vec<i64>>,
    /// Their features.
    pub features: Option<Matrix>,
}

/// Rows and what of the graph's memory they count for.
#[derive(Debug)]
pub struct Held {
    /// The rows.
    pub matrix: Matrix,
    pub(crate) _held: Arc<Reservation>,
}

impl Held {
    /// Rows of a batch that holds this much.
    pub(crate) fn new(matrix: Matrix, held: &Arc<Reservation>) -> Self {
        Self { matrix, _held: Arc::clone(held) }
    }
}

impl EdgeValues {
    /// Looks up what is in memory.
    pub(crate) fn of(batch: &MiniBatch, columns: &Columns) -> Self {
        let arcs = || batch.e_id.iter().map(|&arc| arc as usize);
        Self {
            numbers: columns
                .numbers
                .as_ref()
                .map(|all| batch.e_id.iter().map(|&arc| all.get(arc)).collect()),
            weights: columns.weights.as_ref().map(|all| arcs().map(|arc| all[arc]).collect()),
            times: columns.times.as_ref().map(|all| arcs().map(|arc| all[arc]).collect()),
            features: None,
        }
    }

    /// Bytes for so many edges.
    pub(crate) fn bytes_of(edges: usize, columns: &Columns, features: Option<&Features>) -> u64 {
        let numbers = 8 * u64::from(columns.numbers.is_some());
        let times = 8 * u64::from(columns.times.is_some());
        let weights = 4 * u64::from(columns.weights.is_some());
        // The numbers once more, as rows are asked for.
        let rows =
            features.map_or(0, |f| Matrix::bytes_of(f, edges, Delivery::Floats) + 4 * edges as u64);
        (numbers + times + weights) * edges as u64 + rows
    }
}

/// Refuses features of edges that cannot be looked up.
pub(crate) fn check(graph: &Graph, name: &str, columns: &Columns) -> Result<()> {
    let rows = graph.edge_features(name)?.rows();
    let error = || Error::new(ErrorKind::Input, "load the edges' features").object(name);
    if columns.numbers.is_none() {
        return Err(error()
            .expected("the edges' numbers in the direction that is sampled")
            .got("none")
            .hint("`--for training` builds rows in both directions"));
    }
    if rows > 1 << 32 {
        return Err(error().expected("at most 2^32 edges").got(rows));
    }
    Ok(())
}

/// Reads the features of the edges of all batches of a window.
pub(crate) fn gather_features(
    features: &Features,
    store: &RowStore,
    reader: &mut PageReader,
    all: &mut [EdgeValues],
) -> Result<GatherReads> {
    let narrow = |one: &EdgeValues| -> Vec<u32> {
        one.numbers.iter().flatten().map(|&number| number as u32).collect()
    };
    let edges: Vec<Vec<u32>> = all.iter().map(narrow).collect();
    let matrices = edges.iter().map(|edges| Matrix::stored(features, edges.len()));
    let mut matrices = matrices.collect::<Result<Vec<Matrix>>>()?;
    let mut wanted: Vec<Wanted<'_>> = edges
        .iter()
        .zip(&mut matrices)
        .map(|(vertices, matrix)| {
            let bytes = vertices.len() * features.row_bytes();
            Wanted { vertices, rows: &mut matrix.bytes[..bytes] }
        })
        .collect();
    let reads = gather(store, features, reader, &mut wanted, Sharing::Pages)?;
    for (one, matrix) in all.iter_mut().zip(matrices) {
        one.features = Some(matrix.into_floats(features)?);
    }
    Ok(reads)
}
