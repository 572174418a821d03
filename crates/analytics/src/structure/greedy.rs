//! A maximal independent set, and a colouring: what a greedy pass finds, in an order that a seed chooses.
//!
//! A vertex is decided by those of its neighbours that come before it, as soon as these are; vertices far apart
//! in the order are decided in the same round (Jones and Plassmann, SIAM J. Sci. Comput. 14, 1993; Blelloch,
//! Fineman and Shun, SPAA 2012: a random order needs few rounds). So results are those of the order alone:
//! identical for any number of threads, memory, engine and codec. Sets come in random order; colours in the
//! order on disk, in one pass: by descending degree, if the graph was built so, which takes few colours (Welsh
//! and Powell, Comput. J. 10, 1967). Directions, loops and repeated edges do not matter. 12 bytes a vertex, and the degrees.

use std::hint;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::{Progress, Result, mix};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, vec_from_fn};

use crate::per_worker::PerWorker;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};

/// A vertex that is not decided.
const OPEN: u32 = u32::MAX;

/// A vertex that could not be decided in an even round, or in an odd one.
const PUT_OFF: [u32; 2] = [u32::MAX - 1, u32::MAX - 2];

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
        ("independent_set", Some(seed)),
        progress,
        set_priority(seed),
        false,
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
pub fn coloring(graph: &Graph, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    decide(
        graph,
        ("coloring", None),
        progress,
        color_priority,
        true,
        |used: &mut Vec<u32>, before| {
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
            Some(
                used.iter()
                    .zip(0..)
                    .position(|(&color, place)| color != place)
                    .unwrap_or(used.len()) as u32,
            )
        },
    )
}

/// The priorities of vertices for the set that `seed` chooses.
pub(crate) fn set_priority(seed: u64) -> impl Fn(u32, u64) -> u64 + Sync {
    move |_, position| mix(seed ^ mix(position + 1))
}

/// The priority of a vertex for colours: those before it on disk come first.
pub(crate) fn color_priority(v: u32, _position: u64) -> u64 {
    u64::from(u32::MAX - v)
}

/// The priority of every vertex, by its number and its position in the user's order, so that a graph's layout does not matter.
///
/// # Errors
/// An order that cannot be read, no memory.
pub(crate) fn priorities(
    graph: &Graph,
    priority: impl Fn(u32, u64) -> u64 + Sync,
) -> Result<Array<AtomicU64>> {
    let n = graph.vertices();
    let priorities = Array::<AtomicU64>::zeroed(n)?;
    graph.order().for_each_position(n, |v, position| {
        if let Some(own) = priorities.get(v) {
            own.store(priority(v as u32, position as u64), Ordering::Relaxed);
        }
    })?;
    Ok(priorities)
}

/// Decides every vertex by what was decided of its neighbours of greater `priority`, which is made of its
/// number and its position in the user's order. If it `waits`, a vertex waits for those before it on other threads:
/// for priorities that fall along the order on disk, which would be put off one after the other.
fn decide(
    graph: &Graph,
    (name, seed): (&'static str, Option<u64>),
    progress: &dyn Progress,
    priority: impl Fn(u32, u64) -> u64 + Sync,
    waits: bool,
    rule: impl Fn(&mut Vec<u32>, &mut dyn Iterator<Item = u32>) -> Option<u32> + Sync,
) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    let workers = graph.thread_pool().size() as u64;
    let plan = RowMap::memory(graph, Side::Both)?
        .and("the vertices' states", n as u64 * 12)
        .and("the workers' lists", workers * RowMap::longest(graph, Side::Both)? * 8);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::Both)?;
    let mut states = Array::from_fn(graph.thread_pool(), n, |_| AtomicU32::new(OPEN))?;
    let priorities = priorities(graph, priority)?;
    let rank = |v: u32| (priorities[v as usize].load(Ordering::Relaxed), v);
    let scratch = PerWorker::new((0..workers).map(|_| Vec::new()));
    let mut rows = RowMap::new(graph, &degrees)?.simple().forward();
    graph.memory().plan_residency();
    let mut run = Run::start(graph, name, 0, progress).with_passes_of(rows.round_bytes());
    let mut round = [0u64];
    run.resume(&seed, |from| {
        from.array(&mut round)?;
        from.array(&mut states)
    })?;
    let state = |v: u32| states[v as usize].load(Ordering::Relaxed);
    let is_open = |state: u32| state >= PUT_OFF[1];
    let mut open = (0..n as u32).filter(|&v| is_open(state(v))).count();
    while open > 0 {
        let put_off = PUT_OFF[(round[0] % 2) as usize];
        round[0] += 1;
        // What comes before in the round was decided in it or put off, or is about to be, on another thread.
        let settled = |v: u32, u: u32| loop {
            let state = state(u);
            if !is_open(state) {
                break state;
            }
            if !waits || state == put_off || u > v || graph.cancel().is_cancelled() {
                break OPEN;
            }
            hint::spin_loop();
        };
        let decided = AtomicU64::new(0);
        rows.for_each_of(
            &|v| is_open(state(v)),
            |worker| scratch.of(worker),
            |scratch, v, neighbors| {
                let own = rank(v);
                let before = neighbors.iter().filter(|&&u| rank(u) > own);
                let decision = rule(scratch, &mut before.map(|&u| settled(v, u)));
                states[v as usize].store(decision.unwrap_or(put_off), Ordering::Relaxed);
                decided.fetch_add(decision.is_some().into(), Ordering::Relaxed);
            },
        )?;
        let decided = decided.into_inner();
        run.iteration("pass", decided as f64);
        open -= decided as usize;
        run.keep(|to| {
            to.array(&round);
            to.array(&states);
            Ok(())
        })?;
    }
    let report = run.finish(true)?;
    // What results need is less than what is done with.
    drop((rows, priorities));
    let decided = vec_from_fn(graph.thread_pool(), n, |v| state(v as u32))?;
    drop(states);
    Ok((graph.order().to_user(decided, 1)?, report))
}
