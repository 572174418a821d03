//! Random walks: uniform ones, and node2vec's, which return or go on as two parameters say.
//!
//! A walk goes along an arc that is chosen evenly; node2vec's (Grover and Leskovec, KDD 2016) weighs the arc back by 1/p,
//! arcs to neighbours of the vertex before by 1, and all others by 1/q: a candidate is drawn evenly, and
//! taken with the probability that its weight says (Yang et al., KnightKing, SOSP 2019); after many that were not taken,
//! one is drawn by the weights of all arcs. A walk stays where no arc leaves.
//! What is drawn depends on the seed, the walk's number and the step alone. Where all lists fit the memory,
//! threads share the walks; where not, all walks take a step together, from the pages of the vertices
//! that they are at. 4 bytes a step of a walk, 16 a walk, and the degrees.

use tiergraph_core::{Error, ErrorKind, Progress, Result, mix, unit};
use tiergraph_graph::Graph;
use tiergraph_mem::zeroed_vec;

use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, Lists, RowMap, Side};
use crate::source::check_source;

/// Candidates that a step draws before it looks at the weights of all arcs.
const ATTEMPTS: u64 = 64;

/// How walks go.
#[derive(Debug, Clone, Copy)]
pub struct Walks {
    /// The number of steps.
    pub length: usize,
    /// Larger ones return less often to the vertex before.
    pub p: f64,
    /// Larger ones stay nearer to the vertex before.
    pub q: f64,
    /// The seed of all draws.
    pub seed: u64,
    /// The number of the first walk among all of a seed.
    pub first: u64,
}

impl Walks {
    fn is_uniform(&self) -> bool {
        self.p == 1.0 && self.q == 1.0
    }

    /// 64 random bits of a walk's step, or of one of its tries.
    fn draw(&self, walk: usize, step: usize, attempt: u64) -> u64 {
        let walk = mix(self.seed ^ mix(self.first + walk as u64));
        mix(walk ^ mix((step as u64) << 32 | attempt))
    }

    /// The vertex after `now` of a walk that came from `before`, of which `neighbors` are those of `now`.
    fn next(
        &self,
        walk: usize,
        step: usize,
        now: u32,
        neighbors: &[u32],
        of_before: Option<(u32, &[u32])>,
    ) -> u32 {
        if let &[] | &[_] = neighbors {
            return neighbors.first().copied().unwrap_or(now);
        }
        let pick = |random: u64| {
            neighbors[((u128::from(random) * neighbors.len() as u128) >> 64) as usize]
        };
        let Some((before, near)) = of_before.filter(|_| !self.is_uniform()) else {
            return pick(self.draw(walk, step, 0));
        };
        let weight = |candidate: u32| {
            if candidate == before {
                1.0 / self.p
            } else if near.binary_search(&candidate).is_ok() {
                1.0
            } else {
                1.0 / self.q
            }
        };
        let most = (1.0 / self.p).max(1.0).max(1.0 / self.q);
        for attempt in 0..ATTEMPTS {
            let candidate = pick(self.draw(walk, step, 2 * attempt));
            if unit(self.draw(walk, step, 2 * attempt + 1)) * most < weight(candidate) {
                return candidate;
            }
        }
        by_weight(neighbors, weight, unit(self.draw(walk, step, 2 * ATTEMPTS)))
    }
}

/// The first of `neighbors` up to which their weights add up to more than so large a `share` of all: each with a
/// probability in proportion to its weight, if shares are drawn evenly.
fn by_weight(neighbors: &[u32], weight: impl Fn(u32) -> f64, share: f64) -> u32 {
    let largest = neighbors.iter().map(|&v| weight(v)).fold(0.0, f64::max);
    // Of the largest, so that no sum overflows and not all vanish.
    let add = |sum: &mut f64, &v: &u32| {
        *sum += weight(v) / largest;
        Some(*sum)
    };
    let sums = || neighbors.iter().scan(0.0, add);
    let end = share * sums().last().unwrap_or(0.0);
    let chosen = sums().position(|sum| sum > end).unwrap_or(neighbors.len() - 1);
    neighbors[chosen]
}

/// Walks from each of `starts`, by internal ids: `length` + 1 vertices each, one walk after the other.
///
/// # Errors
/// Parameters that are not above 0 or whose inverse is infinite, a start that is no vertex, state that does not fit the
/// memory (node2vec's walks take all lists), any error of a pass.
pub fn walks(
    graph: &Graph,
    starts: &[u32],
    how: &Walks,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    for (name, value) in [("p", how.p), ("q", how.q)] {
        if !(value > 0.0 && value.is_finite() && (1.0 / value).is_finite()) {
            return Err(Error::new(ErrorKind::Input, format!("walk with `{name}`"))
                .expected(format!("a number above 0 of which 1/`{name}` is finite"))
                .got(format!("{value:?}")));
        }
    }
    starts.iter().try_for_each(|&start| check_source(graph, "walk from vertex", start))?;
    let width = how.length + 1;
    let bytes = (starts.len() * width) as u64 * 4 + starts.len() as u64 * 16;
    let mut plan = RowMap::memory(graph, Side::Out)?.and("the walks", bytes);
    let whole = RowMap::whole_bytes(graph, Side::Out);
    if !how.is_uniform() {
        plan = plan.and("all neighbours", whole);
    }
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Out)?;
    let mut steps: Vec<u32> = zeroed_vec(starts.len() * width);
    for (walk, &start) in steps.chunks_exact_mut(width).zip(starts) {
        walk[0] = start;
    }
    if !how.is_uniform() {
        let lists = Lists::whole(graph, &degrees)?;
        let mut run = Run::start(graph, "walks", 0, progress);
        in_memory(graph, &lists, how, &mut steps)?;
        run.iteration("lists", starts.len() as f64);
        return Ok((steps, run.finish(true)?));
    }
    let mut rows = RowMap::new(graph, &degrees)?.sorted();
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "walks", 0, progress).with_passes_of(rows.round_bytes());
    if let Some(lists) = rows.whole()? {
        in_memory(graph, lists, how, &mut steps)?;
        run.iteration("lists", starts.len() as f64);
    } else {
        let mut order: Vec<u32> = (0..starts.len() as u32).collect();
        let mut at: Vec<u32> = Vec::new();
        for step in 0..how.length {
            let now = |walk: u32| steps[walk as usize * width + step];
            order.sort_unstable_by_key(|&walk| now(walk));
            at.clear();
            at.extend(order.iter().map(|&walk| now(walk)));
            at.dedup();
            let mut walks = order.iter().peekable();
            let mut next = vec![0; starts.len()];
            rows.one_by_one(&at, &mut |v, neighbors| {
                while let Some(&walk) = walks.next_if(|&&walk| now(walk) == v) {
                    next[walk as usize] = how.next(walk as usize, step, v, neighbors, None);
                }
            })?;
            for (walk, next) in steps.chunks_exact_mut(width).zip(next) {
                walk[step + 1] = next;
            }
            run.iteration("pages", at.len() as f64);
        }
    }
    Ok((steps, run.finish(true)?))
}

/// Goes all walks to their ends.
fn in_memory(graph: &Graph, lists: &Lists, how: &Walks, steps: &mut [u32]) -> Result<()> {
    const PART: usize = 256;
    let width = how.length + 1;
    let parts = steps.chunks_mut(PART * width).enumerate();
    graph.thread_pool().share(parts, |_, parts| {
        for (part, walks) in parts {
            // Side by side, so that the lists of one come while others are looked at.
            for step in (0..how.length).take_while(|_| !graph.cancel().is_cancelled()) {
                for (i, walk) in walks.chunks_exact_mut(width).enumerate() {
                    let now = walk[step];
                    let before = step.checked_sub(1).map(|last| walk[last]);
                    let of_before = before.map(|before| (before, lists.of(before)));
                    walk[step + 1] = how.next(part * PART + i, step, now, lists.of(now), of_before);
                }
            }
        }
    })?;
    graph.cancel().check("walk")
}
