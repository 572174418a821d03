//! The first pass that sees vertices: how many there are, their degrees, and a sample.
//!
//! Cost: two increments at random places an edge. With two threads one counts sources and the
//! other targets, so no counter is shared. A vertex has a byte that is counted in, and a word that
//! takes what overflows it: the bytes of four times as many vertices fit a cache.

use tiergraph_core::{Cancel, Error, ErrorKind, Result, threads};
use tiergraph_format::manifest::Weights;
use tiergraph_kernels::widest;
use tiergraph_mem::Budget;

use super::array::Array;
use super::ends::{AtSources, End};
use super::ids::IdMap;
use super::input::Input;
use super::needs::{Needs, SOURCE, TARGET, Watch};
use super::options::{BuildOptions, OrderChoice, SelfLoops, WeightChoice};
use super::progress::Ticker;
use super::sample::Sample;
use super::vertices::Vertices;
use crate::source::EdgeBatch;

/// Fewer vertices than this are never too many for their edges.
const FEW_VERTICES: u64 = 1 << 16;
/// More vertices than this an edge are taken for ids that should be mapped.
const VERTICES_AN_EDGE: u64 = 64;

/// What the scan found.
pub(super) struct Scanned {
    pub(super) vertices: usize,
    /// Vertices, where their number was known before.
    pub(super) claimed: Option<u64>,
    /// Edges that each vertex is the source of.
    pub(super) sources: Array<u32>,
    /// Edges that each vertex is the target of; undirected, without its self-loops.
    pub(super) targets: Array<u32>,
    pub(super) edges_read: u64,
    /// Edges that were kept.
    pub(super) edges: u64,
    pub(super) weights: Weights,
    pub(super) sample: Sample,
}

/// Reads all edges once.
#[allow(clippy::too_many_arguments)]
pub(super) fn scan(
    input: &mut Input<'_>,
    ids: Option<&IdMap>,
    undirected: bool,
    options: &BuildOptions,
    budget: &Budget,
    sample_arcs: usize,
    (needs, refused): (Needs<'_>, Option<Error>),
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<Scanned> {
    let claimed = claimed_vertices(input, ids)?;
    let end = |vertices| End::new(vertices, budget);
    let (made, refused) = match (refused, claimed.unwrap_or(0)) {
        (None, claimed) => match end(claimed).and_then(|sources| Ok((sources, end(claimed)?))) {
            Err(refused) if refused.kind() == ErrorKind::Budget => (None, Some(refused)),
            made => (Some(made?), None),
        },
        (refused, _) => (None, refused),
    };
    let (mut sources, mut targets) = match made {
        Some(made) => made,
        None => (end(0)?, end(0)?),
    };
    let mut watch = Watch::new(Needs { claimed, ..needs }, budget.limit(), refused);
    let mut weights = Kind { choice: options.weights, exact: true };
    let mut sample = (options.order == OrderChoice::Auto).then(|| Sample::new(sample_arcs));
    let vertices = Vertices { ids, drop_loops: options.self_loops == SelfLoops::Remove };
    let (mut edges_read, mut edges) = (0, 0);
    std::thread::scope(|scope| {
        let mut at_sources = AtSources::Here(&mut sources);
        if options.threads > 1 {
            at_sources =
                at_sources.apart(|body| threads::start_in(scope, "count", body).map(drop))?;
        }
        input.pass(true, |batch| {
            cancel.check("build the graph")?;
            edges_read += batch.len() as u64;
            ticker.add(batch.len() as u64);
            vertices.prepare(batch, options.threads)?;
            edges += batch.len() as u64;
            weights.check(batch)?;
            if watch.looked_at(batch) {
                return Ok(());
            }
            let counted = at_sources.count(batch, |src, dst| {
                if let Some(sample) = &mut sample {
                    widest(|| sample.extend(src, dst));
                }
                match undirected {
                    false => targets.count(dst, |_| true),
                    true => targets.count(dst, |edge| src[edge] != dst[edge]),
                }
            });
            watch.end(counted, batch)
        })
    })?;
    let n = sources.vertices.max(targets.vertices).max(watch.vertices());
    if claimed.is_none() && n > FEW_VERTICES.max(VERTICES_AN_EDGE * edges_read) {
        return Err(too_sparse(n, edges_read));
    }
    watch.finish(|seen| {
        sources.tell(seen, SOURCE);
        targets.tell(seen, TARGET);
        seen.edges = edges;
    })?;
    Ok(Scanned {
        vertices: n as usize,
        claimed,
        sources: sources.finish(n)?,
        targets: targets.finish(n)?,
        edges_read,
        edges,
        weights: if input.weighted { weights.found() } else { Weights::None },
        sample: sample.unwrap_or_else(|| Sample::new(0)),
    })
}

/// The number of vertices, where it is known before.
fn claimed_vertices(input: &mut Input<'_>, ids: Option<&IdMap>) -> Result<Option<u64>> {
    if let Some(ids) = ids {
        return Ok(Some(ids.ids().len() as u64));
    }
    let listed = input.source().vertices()?;
    let claimed = match (listed, input.source().size_hint().vertices) {
        (Some(listed), _) => listed.iter().max().map(|id| id.saturating_add(1)),
        (None, claimed) => claimed,
    };
    match claimed {
        Some(n) if n > u64::from(u32::MAX) => Err(too_many(n - 1)),
        claimed => Ok(claimed),
    }
}

/// The error of an id that no array in memory has a place for.
pub(super) fn too_many(id: u64) -> Error {
    Error::new(ErrorKind::Input, "use the id")
        .object(id)
        .expected("ids up to 4294967294, as a build keeps 4-byte ids in memory")
        .hint("`--ids map` gives large ids to few vertices; split larger graphs")
}

/// The error of a vertex whose edges are more than a counter holds.
pub(super) fn too_many_edges() -> Error {
    Error::new(ErrorKind::Input, "count the edges of a vertex")
        .expected("at most 4294967295")
        .hint("remove duplicate edges before building")
}

fn too_sparse(vertices: u64, edges: u64) -> Error {
    Error::new(ErrorKind::Input, "use ids up to")
        .object(vertices - 1)
        .expected(format!("at most {VERTICES_AN_EDGE} vertices an edge"))
        .got(format!("{vertices} vertices, {edges} edges"))
        .hint("`--ids map` makes only ids that occur vertices")
}

/// How weights are stored, as far as is known.
struct Kind {
    choice: WeightChoice,
    /// Whether all weights so far are 32-bit floats.
    exact: bool,
}

impl Kind {
    fn check(&mut self, batch: &EdgeBatch) -> Result<()> {
        let Some(weights) = &batch.weights else { return Ok(()) };
        let rounded = self.choice == WeightChoice::F32;
        let bad =
            |w: &&f64| !(**w >= 0.0 && w.is_finite() && (!rounded || (**w as f32).is_finite()));
        if let Some(weight) = weights.iter().find(bad) {
            let expected =
                if rounded { "weights from 0 to 3.4e38" } else { "weights of 0 or more" };
            return Err(Error::new(ErrorKind::Input, "use the weight")
                .object(weight)
                .expected(expected));
        }
        self.exact &= weights.iter().all(|&w| f64::from(w as f32) == w);
        Ok(())
    }

    fn found(&self) -> Weights {
        match self.choice {
            WeightChoice::None => Weights::None,
            WeightChoice::F32 => Weights::F32,
            WeightChoice::F64 => Weights::F64,
            WeightChoice::Auto if self.exact => Weights::F32,
            WeightChoice::Auto => Weights::F64,
        }
    }
}
