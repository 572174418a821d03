//! Programs that change vertices in place, and the pass that runs one.

use tiergraph_core::Result;
use tiergraph_graph::{Graph, TileSelection};

use super::arcs::{Arcs, VisitArc, for_each_arc, stored_once};

/// A program: what a pass over arcs does with vertices. Every row takes from the sources of its arcs; a row of edges that are stored once
/// also gives to its columns. The verbs are those of a GPU's programs, and all are compiled into one loop: they are
/// to be `inline(always)`. A program is a few references.
pub(crate) trait Program: Copy + Sync {
    /// What a worker counts or collects in its part of the pass.
    type Worker: Default;
    /// What an arc brings of the vertex that is its column.
    type Source: Copy;
    /// What a row of arcs has taken from their sources so far.
    type Row;

    /// Whether the program sees weights; all are 1 otherwise.
    const WEIGHTED: bool = false;
    /// Whether the program looks at both ends of an arc itself, and rows need not give.
    const SYMMETRIC: bool = false;

    /// Whether a row takes from its sources.
    #[inline(always)]
    fn takes(&self, _row: u32) -> bool {
        true
    }

    /// Whether a row gives to its columns.
    #[inline(always)]
    fn gives(&self, _row: u32) -> bool {
        true
    }

    /// Reads what an arc brings of `column`.
    fn load(&self, column: u32) -> Self::Source;

    /// What a row has before its first source.
    fn empty(&self, row: u32) -> Self::Row;

    /// Takes what an arc brings.
    fn take(
        &self,
        worker: &mut Self::Worker,
        row: &mut Self::Row,
        source: Self::Source,
        weight: f64,
    );

    /// Whether a row wants no more sources.
    #[inline(always)]
    fn is_done(&self, _row: &Self::Row) -> bool {
        false
    }

    /// Gives to a column what goes along the same edge the other way; `source` is what `load` found there.
    #[inline(always)]
    fn scatter(
        &self,
        _worker: &mut Self::Worker,
        _row: &Self::Row,
        _source: Self::Source,
        _weight: f64,
    ) {
    }

    /// Ends a row that took.
    #[inline(always)]
    fn apply(&self, _worker: &mut Self::Worker, _row: Self::Row) {}

    /// Ends a worker's part of the pass.
    fn end(&self, _worker: Self::Worker) -> Result<()> {
        Ok(())
    }
}

/// Runs `program` over the arcs of the selected tiles, or of all raw blocks.
pub(crate) fn edge_map<P: Program>(
    graph: &Graph,
    selection: &TileSelection,
    program: P,
) -> Result<()> {
    let begin = |_| P::Worker::default();
    let end = |worker| program.end(worker);
    // Compiled for either, so that no arc asks.
    if !P::SYMMETRIC && stored_once(graph) {
        for_each_arc(graph, selection, begin, |w, arcs| over::<P, true>(program, w, arcs), end)
    } else {
        for_each_arc(graph, selection, begin, |w, arcs| over::<P, false>(program, w, arcs), end)
    }
}

/// Runs `program` over a group of arcs; `BOTH` says whether rows give, too.
#[inline(always)]
fn over<P: Program, const BOTH: bool>(program: P, worker: &mut P::Worker, arcs: &Arcs<'_>) {
    arcs.rows(|vertex, arcs| {
        let (takes, gives) = (program.takes(vertex), BOTH && program.gives(vertex));
        if !takes && !gives {
            return;
        }
        let own = program.empty(vertex);
        let wants = takes && !program.is_done(&own);
        if !wants && !gives {
            return;
        }
        let mut row = OverRow { program, worker, vertex, own, wants, gives };
        if P::WEIGHTED {
            arcs.each::<true>(&mut row);
        } else {
            arcs.each::<false>(&mut row);
        }
        if takes {
            program.apply(row.worker, row.own);
        }
    });
}

/// A program on its way over the arcs of a row.
struct OverRow<'a, P: Program> {
    program: P,
    worker: &'a mut P::Worker,
    vertex: u32,
    own: P::Row,
    /// Whether the row still takes.
    wants: bool,
    gives: bool,
}

impl<P: Program> VisitArc for OverRow<'_, P> {
    #[inline(always)]
    fn arc(&mut self, column: u32, weight: f64) -> bool {
        let source = self.program.load(column);
        if self.wants {
            self.program.take(self.worker, &mut self.own, source, weight);
        }
        // A self-loop counts once.
        if self.gives && column != self.vertex {
            self.program.scatter(self.worker, &self.own, source, weight);
        }
        self.wants = self.wants && !self.program.is_done(&self.own);
        self.wants || self.gives
    }
}
