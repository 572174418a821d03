//! Weakly connected components: union-find over the arcs, less those whose ends are known to be in one tree.
//!
//! Labels each vertex with its component's first vertex in the user's order, so that results are
//! identical from run to run, whatever order arcs come in. Lock-free union-find: a root
//! is hooked to a smaller one, paths are halved (Anderson and Woll, STOC 1991). The arcs of the first
//! vertices, hubs in degree order, join most vertices to one tree; of the other arcs, those between two of its
//! vertices are left out (the idea of Afforest: Sutton, Ben-Nun and Barak, IPDPS 2018). The others come from the
//! lists of the vertices apart from it, each up to the first neighbour in it, or from the tiles that have such
//! vertices, whichever costs less. Bytes: about one pass at most, less what is resident. 8 bytes of state a vertex up
//! to the last that has an arc, half of them while arcs are read, and 4 a vertex of the result.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::{Progress, Result, ThreadPool};
use tiergraph_format::rows::damaged_list;
use tiergraph_format::tiles::TilesIndex;
use tiergraph_graph::{Direction, Graph, RowSelection};
use tiergraph_mem::{Array, MemoryPlan};

use crate::bfs::{PULL_COST, TILES_COST};
use crate::bits::Bits;
use crate::edge_map::{ActiveTiles, Program, chunk_log2, edge_map, stored_once};
use crate::labels::canonical_labels;
use crate::report::{Run, RunReport};

/// The first vertices are hubs: one in so many, or the columns of a tile where these are more.
const HUBS_SHARE: usize = 1 << 11;

/// How many vertices tell which tree is the largest.
const SAMPLED: usize = 1 << 10;

/// Labels every vertex, in the user's order, with the first position in its weakly connected component.
///
/// # Errors
/// State that does not fit the memory, any error of a pass.
pub fn wcc(graph: &Graph, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    let _state = graph.memory().reserve_all(&memory(graph))?;
    let threads = graph.thread_pool();
    let parents = Array::from_fn(threads, graph.tiles().vertices(), |v| AtomicU32::new(v as u32))?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "wcc", 1, progress);
    let how = join_all(graph, &parents)?;
    compress(&parents, threads)?;
    run.iteration(how, 0.0);
    let report = run.finish(true)?;
    Ok((canonical_labels(graph, |v| parent(&parents, v as u32))?, report))
}

/// The memory of a run and of its result: first the trees, then the least position of each tree and the
/// labels, then the labels as user ids.
pub(crate) fn memory(graph: &Graph) -> MemoryPlan {
    let trees = graph.tiles().vertices() as u64 * 8 + graph.vertices() as u64 * 4;
    MemoryPlan::default().and("the components", trees.max(graph.ids().of_positions_bytes()))
}

/// Joins the trees of the ends of all arcs; returns how, after those of hubs.
fn join_all(graph: &Graph, parents: &[AtomicU32]) -> Result<&'static str> {
    let (tiles, threads, program) = (graph.tiles(), graph.thread_pool(), Join { parents });
    if !tiles.is_stored() {
        edge_map(graph, &tiles.select(|_| true), program)?;
        return Ok("pass");
    }
    let log2 = chunk_log2(graph);
    let hubs = (parents.len() / HUBS_SHARE).div_ceil(1 << log2).max(1) as u32;
    // Of edges that are stored once, no column is a later vertex than the row.
    let has_hub_rows = !stored_once(graph);
    let of_hubs = |e: &TilesIndex| e.column_tile < hubs || (has_hub_rows && e.row_base == 0);
    edge_map(graph, &tiles.select(of_hubs), program)?;
    compress(parents, threads)?;
    let largest = largest_tree(parents);
    // No arc is left to join two vertices of the largest tree, and both ends of others look for it.
    let apart = Bits::of(threads, parents, |root| root != largest)?;
    let with_apart = ActiveTiles::of_bits(&apart, parents.len(), log2);
    let rest = tiles.select(|e| !of_hubs(e) && (with_apart.row(e) || with_apart.column(e)));
    if rest.is_empty() {
        return Ok("pass");
    }
    let by_tiles = tiles.missing_bytes_of(&rest) + rest.bytes() * TILES_COST;
    let work = apart.count() as u64 * PULL_COST;
    // Pages are looked through only where the work alone does not cost more.
    let lists = if work < by_tiles { lists_of(graph, &apart) } else { None };
    let cost = |(_, rows): &(Direction, RowSelection)| rows.missing_bytes() + work;
    match lists {
        Some(lists) if lists.iter().map(cost).sum::<u64>() < by_tiles => {
            for (direction, rows) in lists {
                join_lists(graph, direction, &rows, (parents, &apart, largest))?;
            }
            Ok("lists")
        }
        _ => {
            edge_map(graph, &rest, program)?;
            Ok("tiles")
        }
    }
}

/// The root of the tree of most vertices, as far as a thousand of them tell.
fn largest_tree(parents: &[AtomicU32]) -> u32 {
    let every = (parents.len() / SAMPLED).max(1);
    let mut roots: Vec<u32> =
        parents.iter().step_by(every).map(|root| root.load(Ordering::Relaxed)).collect();
    roots.sort_unstable();
    roots.chunk_by(u32::eq).max_by_key(|of_tree| of_tree.len()).map_or(0, |of_tree| of_tree[0])
}

/// Selects the whole neighbour lists of the vertices that are `apart`: of a directed graph, out and in. `None` where
/// the graph does not have them.
fn lists_of(graph: &Graph, apart: &Bits) -> Option<Vec<(Direction, RowSelection)>> {
    let both = [Direction::Out, Direction::In];
    let directions = if graph.manifest().directed { &both[..] } else { &both[..1] };
    let select = |&direction: &Direction| {
        let rows = graph.rows(direction).select_where(|v| apart.has(v))?;
        Some((direction, rows))
    };
    directions.iter().map(select).collect()
}

/// Joins every vertex that is `apart` with its neighbours, up to the first in the `largest` tree. A neighbour after
/// that, if it is apart, joins the vertex by its own list.
fn join_lists(
    graph: &Graph,
    direction: Direction,
    rows: &RowSelection,
    (parents, apart, largest): (&[AtomicU32], &Bits, u32),
) -> Result<()> {
    graph.rows(direction).pass(
        rows,
        |_| (),
        |(), page| {
            let Range { start, end } = page.vertices();
            for v in (start..end.min(parents.len() as u64)).filter(|&v| apart.has(v)) {
                let (vertex, mut is_sound) = (v as u32, true);
                page.walk(v, |u| {
                    is_sound = (u as usize) < parents.len();
                    let goes_on = is_sound && apart.has(u);
                    if is_sound {
                        join(parents, vertex, if goes_on { u as u32 } else { largest });
                    }
                    goes_on
                })?;
                if !is_sound {
                    return Err(damaged_list(vertex));
                }
            }
            Ok(())
        },
        |()| Ok(()),
    )
}

fn parent(parents: &[AtomicU32], v: u32) -> u32 {
    parents[v as usize].load(Ordering::Relaxed)
}

/// Joins the trees that the two ends of each arc are in.
#[derive(Clone, Copy)]
struct Join<'a> {
    parents: &'a [AtomicU32],
}

/// A row, and its parent when it was last looked at.
struct Row {
    vertex: u32,
    parent: u32,
}

impl Program for Join<'_> {
    type Worker = ();
    type Source = u32;
    type Row = Row;

    const SYMMETRIC: bool = true;

    #[inline(always)]
    fn load(&self, column: u32) -> u32 {
        column
    }

    #[inline(always)]
    fn empty(&self, vertex: u32) -> Row {
        Row { vertex, parent: parent(self.parents, vertex) }
    }

    #[inline(always)]
    fn take(&self, (): &mut (), row: &mut Row, other: u32, _weight: f64) {
        if parent(self.parents, other) != row.parent {
            join(self.parents, row.vertex, other);
            row.parent = parent(self.parents, row.vertex);
        }
    }
}

/// The root above `v`; every vertex on the way then skips its parent (path halving).
fn find(parents: &[AtomicU32], mut v: u32) -> u32 {
    loop {
        let above = parent(parents, v);
        let root = parent(parents, above);
        if above == root {
            return root;
        }
        // No root is lost to a race: `v` is none, and what is stored is above it.
        parents[v as usize].store(root, Ordering::Relaxed);
        v = root;
    }
}

/// Hooks the larger root to the smaller.
#[cold]
fn join(parents: &[AtomicU32], a: u32, b: u32) {
    loop {
        let (p, q) = (find(parents, a), find(parents, b));
        let (low, high) = (p.min(q), p.max(q));
        let root = &parents[high as usize];
        if low == high
            || root.compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return;
        }
    }
}

/// Points every vertex at its root.
fn compress(parents: &[AtomicU32], threads: &ThreadPool) -> Result<()> {
    threads.share(parents.chunks(1 << 16), |_, parts| {
        for v in parts.flatten() {
            let mut root = v.load(Ordering::Relaxed);
            while parent(parents, root) != root {
                root = parent(parents, root);
            }
            v.store(root, Ordering::Relaxed);
        }
    })?;
    Ok(())
}
