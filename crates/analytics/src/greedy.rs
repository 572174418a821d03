//! A maximal independent set, and a colouring: what a greedy pass finds, in an order that a seed chooses.
//!
//! A vertex is decided by those of its neighbours that come before it, as soon as these are; vertices far apart
//! in the order are decided in the same round (Jones and Plassmann, SIAM J. Sci. Comput. 14, 1993; Blelloch, Fineman and
//! Shun, SPAA 2012: a random order needs few rounds). So results are those of the order alone: identical for any number
//! of threads, memory, and layout. Sets come in random order; colours by the logarithm of the degree, and
//! randomly among equals, which takes few colours (Hasenplaugh et al., SPAA 2014). Directions, loops and
//! repeated edges do not matter. 12 bytes a vertex, and the degrees.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Progress, Result, mix};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, vec_from_fn};

use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};
use crate::state::PerWorker;

/// A vertex that is not decided.
const OPEN: u32 = u32::MAX;

const OUT: u32 = 0;
const IN: u32 = 1;

/// For every vertex, in the user's order, 1 if it is in a maximal independent set, else 0: no two of the set are
/// neighbours, and every other vertex has a neighbour in it.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn independent_set(
    graph: &Graph,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    decide(
        graph,
        "independent_set",
        progress,
        |_, random| random,
        seed,
        |_, before| {
            let mut is_open = false;
            for state in before {
                match state {
                    IN => return Some(OUT),
                    OPEN => is_open = true,
                    _ => (),
                }
            }
            (!is_open).then_some(IN)
        },
    )
}

/// The colour of every vertex, in the user's order, from 0 on: no two neighbours have the same.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn coloring(
    graph: &Graph,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    let by_degree = |degree: u64, random| {
        let digits = u64::from(u64::BITS - degree.leading_zeros());
        digits << 56 | random >> 8
    };
    decide(graph, "coloring", progress, by_degree, seed, |used: &mut Vec<u32>, before| {
        used.clear();
        for state in before {
            if state == OPEN {
                return None;
            }
            used.push(state);
        }
        used.sort_unstable();
        used.dedup();
        // The first colour that is not its own place in the list.
        Some(used.iter().zip(0..).position(|(&color, place)| color != place).unwrap_or(used.len())
            as u32)
    })
}

/// Decides every vertex by what was decided of its neighbours of greater `priority`, which is made of its degree
/// and a random number.
fn decide(
    graph: &Graph,
    name: &'static str,
    progress: &dyn Progress,
    priority: impl Fn(u64, u64) -> u64 + Sync,
    seed: u64,
    rule: impl Fn(&mut Vec<u32>, &mut dyn Iterator<Item = u32>) -> Option<u32> + Sync,
) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    let workers = graph.thread_pool().size() as u64;
    let plan = RowMap::memory(graph, Side::Both)?
        .and("the vertices' states", n as u64 * 12)
        .and("the workers' lists", workers * RowMap::longest(graph, Side::Both)? * 8);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let states = Array::from_fn(n, |_| AtomicU32::new(OPEN))?;
    let priorities = Array::from_fn(n, |_| AtomicU64::new(0))?;
    // By the user's order, so that a graph's layout does not matter.
    graph.order().for_each_position(n, |v, position| {
        if let Some(own) = priorities.get(v) {
            let random = mix(seed ^ mix(position as u64 + 1));
            own.store(priority(degrees.all(v as u32), random), Ordering::Relaxed);
        }
    })?;
    let rank = |v: u32| (priorities[v as usize].load(Ordering::Relaxed), v);
    let scratch = PerWorker::new((0..workers).map(|_| Vec::new()));
    let mut rows = RowMap::new(graph, &degrees)?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, name, 0, progress);
    let state = |v: u32| states[v as usize].load(Ordering::Relaxed);
    let mut open = n;
    while open > 0 {
        let decided = AtomicU64::new(0);
        rows.for_each_of(
            &|v| state(v) == OPEN,
            |worker| scratch.of(worker),
            |scratch, v, arcs| {
                let own = rank(v);
                let mut before =
                    arcs.iter().filter(|&&u| u != v && rank(u) > own).map(|&u| state(u));
                if let Some(decision) = rule(scratch, &mut before) {
                    states[v as usize].store(decision, Ordering::Relaxed);
                    decided.fetch_add(1, Ordering::Relaxed);
                }
            },
        )?;
        let decided = decided.into_inner();
        run.iteration("pass", decided as f64);
        open -= decided as usize;
    }
    let report = run.finish(true)?;
    drop(rows);
    let decided = vec_from_fn(n, |v| state(v as u32));
    Ok((graph.order().to_user(decided, 1)?, report))
}
