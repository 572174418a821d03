//! What arcs have beside whom they lead to: weights, times, and the edges that they are of.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_graph::{Direction, EdgeNumbers, Graph};
use tiergraph_mem::Reservation;

use crate::biased::Strategy;
use crate::sample::SampleOptions;

/// Columns of values by the arcs' numbers, in memory.
#[derive(Debug, Default)]
pub struct Columns {
    /// Weights that arcs are chosen by.
    pub weights: Option<Vec<f32>>,
    /// Times that bound which arcs may be chosen.
    pub times: Option<Vec<i64>>,
    /// Which of the arcs that may be chosen are.
    pub strategy: Strategy,
    /// The user's edges.
    pub numbers: Option<EdgeNumbers>,
    _held: Vec<Reservation>,
}

impl Columns {
    /// Reads the columns that `options` name, and the numbers of the edges where they are stored.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a column that the graph does not have, or a weight below 0;
    /// [`ErrorKind::Budget`] where they do not fit; what reading gives.
    pub fn load(graph: &Graph, direction: Direction, options: &SampleOptions) -> Result<Self> {
        let arcs = graph.manifest().arcs;
        let mut columns = Self::default();
        let mut hold = |bytes: u64, what: &str| -> Result<()> {
            if bytes > 0 {
                columns._held.push(graph.reserve(bytes, what)?);
            }
            Ok(())
        };
        hold(graph.edge_numbers_bytes(direction), "the numbers of the edges")?;
        columns.numbers = graph.edge_numbers(direction)?;
        if let Some(name) = &options.weights {
            hold(4 * arcs, "the weights of the edges")?;
            let weights = graph.edge_floats(direction, name)?;
            if let Some(arc) = weights.iter().position(|&weight| weight < 0.0) {
                return Err(Error::new(ErrorKind::Input, "sample by the weights")
                    .object(name)
                    .expected("weights of 0 or more")
                    .got(format!("{} of edge {}", weights[arc], columns.number(arc as u64))));
            }
            columns.weights = Some(weights);
        }
        if let Some(times) = &options.times {
            hold(8 * arcs, "the times of the edges")?;
            columns.times = Some(graph.edge_integers(direction, &times.name)?);
            columns.strategy = times.strategy;
        }
        Ok(columns)
    }

    /// Whether arcs are not chosen evenly among all.
    pub(crate) fn are_biased(&self) -> bool {
        self.weights.is_some() || self.times.is_some()
    }

    /// The edge that an arc is of; the arc's own number where edges have none.
    pub(crate) fn number(&self, arc: u64) -> u64 {
        self.numbers.as_ref().map_or(arc, |numbers| numbers.get(arc))
    }
}
