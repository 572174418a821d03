//! A graph's edges, read back batch by batch, and the neighbours of one vertex.
//!
//! A batch is what lies together in the file that is read: segments of tiles, which have weights, or a block of
//! rows or of raw lists. Edges come in the file's order, whatever threads and engine; an edge without a direction
//! comes once.

use std::sync::{Mutex, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::manifest::Weights;
use tiergraph_format::rows::damaged_list;
use tiergraph_graph::{Direction, Graph, RawRow};

use crate::edge_map::{Arcs, for_each_arc};

/// The arcs of a batch, about; a segment has at most some millions.
const BATCH_ARCS: u64 = 1 << 18;

/// Edges of a batch, by the graph's own numbers of vertices.
#[derive(Debug, Default)]
pub struct Edges {
    /// Sources; of an edge without a direction, one of its ends.
    pub src: Vec<u32>,
    /// Destinations.
    pub dst: Vec<u32>,
    /// Weights; empty in a graph without.
    pub weights: Vec<f64>,
}

impl Edges {
    fn push(&mut self, src: u32, dst: u32) {
        self.src.push(src);
        self.dst.push(dst);
    }

    fn append(&mut self, mut other: Self) {
        self.src.append(&mut other.src);
        self.dst.append(&mut other.dst);
        self.weights.append(&mut other.weights);
    }
}

/// Parts of a batch, by where they are in the file.
type Parts = Mutex<Vec<((u64, u64), Edges)>>;

/// Bytes that a batch takes, at most, while it is read and handed over by ids.
pub fn edges_bytes(graph: &Graph) -> u64 {
    const ARC_BYTES: u64 = 48;
    let largest = match graph.tiles().segments().iter().map(|entry| u64::from(entry.arcs)).max() {
        Some(segment) => segment + BATCH_ARCS,
        // Neighbours that follow each other take less than a byte.
        None => graph.block_bytes() as u64 * 2,
    };
    largest.min(graph.manifest().arcs) * ARC_BYTES
}

/// The batch of edges that begins at `at`: 0 for the first. Returns it, and where the next one begins; `None`
/// after the last.
///
/// # Errors
/// Any error of a pass; weights that no stored layout has.
pub fn edges_from(graph: &Graph, at: u64) -> Result<(Edges, Option<u64>)> {
    let weighted = graph.manifest().weighted != Weights::None;
    let direction =
        if graph.rows(Direction::Out).is_stored() || graph.raw(Direction::Out).is_stored() {
            Direction::Out
        } else {
            Direction::In
        };
    let parts = Parts::default();
    let next = if graph.tiles().is_stored() {
        tiles(graph, at as usize, weighted, &parts)?
    } else if graph.raw(direction).is_stored() {
        raw(graph, direction, at, weighted, &parts)?
    } else if weighted {
        return Err(graph.missing_layout("read the weighted edges of", "tiles"));
    } else {
        rows(graph, direction, at, &parts)?
    };
    let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_unstable_by_key(|(place, _)| *place);
    let mut all = Edges::default();
    parts.into_iter().for_each(|(_, edges)| all.append(edges));
    Ok((all, next))
}

fn add(parts: &Parts, place: (u64, u64), edges: Edges) {
    parts.lock().unwrap_or_else(PoisonError::into_inner).push((place, edges));
}

fn tiles(graph: &Graph, at: usize, weighted: bool, parts: &Parts) -> Result<Option<u64>> {
    let segments = graph.tiles().segments();
    let (mut end, mut arcs) = (at, 0);
    while end < segments.len() && (end == at || arcs < BATCH_ARCS) {
        arcs += u64::from(segments[end].arcs);
        end += 1;
    }
    let place = |i: usize| segments.get(i).map_or((u32::MAX, u32::MAX), |e| (e.block, e.offset));
    let (first, last) = (place(at), place(end));
    let wanted = graph.tiles().select(|e| (first..last).contains(&(e.block, e.offset)));
    for_each_arc(
        graph,
        &wanted,
        |_| Vec::<((u64, u64), Edges)>::new(),
        |of_segments, arcs: &Arcs<'_>| {
            let &Arcs::Tile { place: (block, offset), .. } = arcs else { return };
            let place = (u64::from(block), u64::from(offset));
            if of_segments.last().is_none_or(|(last, _)| *last != place) {
                of_segments.push((place, Edges::default()));
            }
            let Some((_, edges)) = of_segments.last_mut() else { return };
            arcs.rows(|row, arcs| {
                arcs.weighted(|column, weight| {
                    if is_edge(graph, column, row) {
                        edges.push(column, row);
                        edges.weights.extend(weighted.then_some(weight));
                    }
                });
            });
        },
        |mut of_segments| {
            parts.lock().unwrap_or_else(PoisonError::into_inner).append(&mut of_segments);
            Ok(())
        },
    )?;
    Ok((end < segments.len()).then_some(end as u64))
}

/// Whether an arc of a list is its edge, which an undirected graph has in the lists of both ends.
fn is_edge(graph: &Graph, v: u32, neighbor: u32) -> bool {
    graph.manifest().directed || v <= neighbor
}

fn put(edges: &mut Edges, direction: Direction, v: u32, neighbor: u32) {
    match direction {
        Direction::Out => edges.push(v, neighbor),
        Direction::In => edges.push(neighbor, v),
    }
}

fn raw(
    graph: &Graph,
    direction: Direction,
    block: u64,
    weighted: bool,
    parts: &Parts,
) -> Result<Option<u64>> {
    let is_more = graph.raw(direction).block_pass(
        block,
        |_| Edges::default(),
        |edges, row: &RawRow<'_>| {
            let v = row.vertex as u32;
            for (i, &neighbor) in row.neighbors.iter().enumerate() {
                if is_edge(graph, v, neighbor) {
                    put(edges, direction, v, neighbor);
                    if weighted {
                        edges.weights.push(row.weights.get(i));
                    }
                }
            }
            Ok(())
        },
        // One block is one worker's.
        |edges| {
            add(parts, (block, 0), edges);
            Ok(())
        },
    )?;
    Ok(is_more.then_some(block + 1))
}

fn rows(graph: &Graph, direction: Direction, block: u64, parts: &Parts) -> Result<Option<u64>> {
    let rows = graph.rows(direction);
    let Some(selection) = rows.select_block(block) else { return Ok(None) };
    rows.pass(
        &selection,
        |_| (),
        |(), page| {
            let mut edges = Edges::default();
            let vertices = graph.vertices() as u64;
            for v in page.vertices().start..page.vertices().end.min(vertices) {
                let v = v as u32;
                let mut is_sound = true;
                page.walk(v.into(), |neighbor| {
                    is_sound = neighbor < vertices;
                    if is_sound && is_edge(graph, v, neighbor as u32) {
                        put(&mut edges, direction, v, neighbor as u32);
                    }
                    is_sound
                })?;
                if !is_sound {
                    return Err(damaged_list(v));
                }
            }
            add(parts, (page.first_arc(), 0), edges);
            Ok(())
        },
        |()| Ok(()),
    )?;
    Ok(rows.select_block(block + 1).map(|_| block + 1))
}

/// The neighbours of vertex `v` in `direction`, by the graph's own numbers: once for each arc, ascending.
///
/// # Errors
/// Any error of a read; a graph without a layout that has them.
pub fn neighbors(graph: &Graph, v: u32, direction: Direction) -> Result<Vec<u32>> {
    let found = Mutex::new(Vec::new());
    let keep = |mut some: Vec<u32>| {
        found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut some);
        Ok(())
    };
    if let Some(selection) = graph.rows(direction).select(&[v]) {
        let below = graph.vertices() as u64;
        graph.rows(direction).pass(
            &selection,
            |_| Vec::new(),
            |some, page| {
                let mut is_sound = true;
                page.walk(v.into(), |neighbor| {
                    is_sound &= neighbor < below;
                    some.push(neighbor as u32);
                    is_sound
                })?;
                is_sound.then_some(()).ok_or_else(|| damaged_list(v))
            },
            keep,
        )?;
    } else if let Some(selection) = graph.raw(direction).select(&[v]) {
        graph.raw(direction).selected_pass(
            &selection,
            &[v],
            |_| Vec::new(),
            |some, row| {
                some.extend_from_slice(row.neighbors);
                Ok(())
            },
            keep,
        )?;
    } else if direction == Direction::In && graph.tiles().is_stored() {
        let strip = graph.tiles().select(|entry| {
            (entry.row_base..entry.row_base + u64::from(entry.rows)).contains(&v.into())
        });
        let visit = |some: &mut Vec<u32>, arcs: &Arcs<'_>| {
            arcs.rows(|row, arcs| {
                arcs.columns(|column| {
                    some.extend((row == v).then_some(column));
                    row == v
                });
            });
        };
        for_each_arc(graph, &strip, |_| Vec::new(), visit, keep)?;
    } else {
        let needs = format!("the {direction}-neighbours of vertices");
        return Err(graph.missing_layout("read neighbours in", &needs));
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable();
    Ok(found)
}

/// The user's id of every vertex, by the graph's own numbers; `None` where they are the same.
///
/// # Errors
/// Files that cannot be read, or are damaged.
pub fn names(graph: &Graph) -> Result<Option<Vec<u64>>> {
    let (positions, ids) = (graph.order().positions()?, graph.ids().all()?);
    Ok(match (positions, ids) {
        (None, ids) => ids,
        (Some(positions), None) => Some(positions.into_iter().map(u64::from).collect()),
        (Some(positions), Some(ids)) => {
            let id = |position: u32| ids.get(position as usize).copied();
            let named: Option<Vec<u64>> = positions.into_iter().map(id).collect();
            Some(named.ok_or_else(|| Error::new(ErrorKind::Format, "name vertices"))?)
        }
    })
}
