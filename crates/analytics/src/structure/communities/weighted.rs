//! Lists of a graph with weights, of its edges both ways: in memory, or where they do not fit it in a temporary file.
//!
//! Arcs come in any order, by tile or by row. Each list is sorted, so that nothing depends on it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, Reservation, as_atomic};

use super::lists::{self, ARC_BYTES, WeightedArc};
use super::scattered::{Scattered, Writer, chunk_bytes, temporary_file};
use super::segments::Segments;
use crate::edge_map::{for_each_arc, stored_once};
use crate::row_map::{ListDegrees, cut};

/// The least memory in which arcs are brought to lists, if there are as many.
const LEAST_BYTES: u64 = 4 << 20;

/// The lists of a graph with weights. The caller has reserved [`least_room`], a list's bytes and 8 bytes a vertex.
///
/// # Errors
/// Any error of a pass or of a temporary file.
pub(super) fn lists(graph: &Graph, degrees: &ListDegrees) -> Result<Segments> {
    let vertices = graph.tiles().vertices() as u32;
    let arcs: u64 = (0..vertices).map(|v| degrees.all(v)).sum();
    let memory = graph.memory();
    if arcs < u64::from(u32::MAX) {
        let bytes = Segments::bytes(vertices as usize, arcs);
        if let Some(held) = memory.reserve_if_left(bytes, "all neighbours and weights")? {
            return whole(graph, degrees, arcs as usize, held);
        }
    }
    let least = least_room(arcs);
    let more = (memory.budget().left() / 4).saturating_sub(least);
    let held = memory.reserve_if_left(more, "neighbours and weights")?;
    let room = least + if held.is_some() { more } else { 0 };
    in_parts(graph, degrees, room)
}

/// The least memory for arcs while they are brought to lists.
pub(super) fn least_room(arcs: u64) -> u64 {
    (arcs * ARC_BYTES).clamp(LEAST_BYTES >> 6, LEAST_BYTES)
}

/// All lists in the memory that is `held`.
fn whole(graph: &Graph, degrees: &ListDegrees, arcs: usize, held: Reservation) -> Result<Segments> {
    let vertices = graph.tiles().vertices() as u32;
    let mut starts = Vec::with_capacity(vertices as usize + 1);
    starts.push(0u32);
    starts.extend((0..vertices).scan(0, |end, v| {
        *end += degrees.all(v) as u32;
        Some(*end)
    }));
    let mut arcs = Array::<WeightedArc>::zeroed(arcs)?;
    let next: Vec<AtomicU32> = starts.iter().map(|&start| AtomicU32::new(start)).collect();
    let slots = as_atomic(bytemuck::cast_slice_mut(&mut arcs)).as_chunks::<3>().0;
    let put = |(): &mut (), v: u32, arc: WeightedArc| {
        let at = next[v as usize].fetch_add(1, Ordering::Relaxed) as usize;
        if let Some(slot) = slots.get(at) {
            let words: [u32; 3] = bytemuck::cast(arc);
            slot.iter().zip(words).for_each(|(slot, word)| slot.store(word, Ordering::Relaxed));
        }
    };
    each_arc(graph, |_| (), put, |()| Ok(()))?;
    drop(next);
    Segments::whole(graph, starts, arcs, held)
}

/// Lists in parts, whose arcs are written to a bucket each, as many at a time as `room` has buffers for, and then read and
/// sorted.
fn in_parts(graph: &Graph, degrees: &ListDegrees, room: u64) -> Result<Segments> {
    let vertices = graph.tiles().vertices() as u32;
    let threads = graph.thread_pool().size();
    let mut made = Segments::that_leave(graph.memory().budget().left() / 3);
    let lengths = || (0..vertices).map(|v| degrees.all(v));
    let parts = cut(lengths(), 0, room / 2 / ARC_BYTES * 4);
    let chunk = chunk_bytes(room / threads as u64, parts.len());
    let at_once = (room / chunk) as usize / threads;
    for parts in parts.chunks(at_once.max(1)) {
        let file = Arc::new(temporary_file(graph)?);
        let own = parts[0].start..parts[parts.len() - 1].end;
        let written = Mutex::new(Vec::new());
        each_arc(
            graph,
            |_| Writer::new(Arc::clone(&file), parts, chunk),
            |writer, v, arc| {
                if let (Ok(writer), true) = (writer, own.contains(&v)) {
                    writer.put(v, arc);
                }
            },
            |writer| {
                let buckets = writer?.finish()?;
                written.lock().unwrap_or_else(PoisonError::into_inner).push(buckets);
                Ok(())
            },
        )?;
        let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut scattered = Scattered::of(file, written)?;
        for (bucket, part) in parts.iter().enumerate() {
            let lengths: Vec<u32> = part.clone().map(|v| degrees.all(v) as u32).collect();
            made.push(graph, &lengths, |starts, arcs| {
                let mut next = starts.to_vec();
                scattered.empty(bucket, |v, own| {
                    let next = &mut next[(v - part.start) as usize];
                    let end = *next as usize + own.len();
                    if let Some(slots) = arcs.get_mut(*next as usize..end) {
                        slots.copy_from_slice(own);
                        *next = end as u32;
                    }
                })?;
                lists::sort(graph, starts, arcs)
            })?;
        }
    }
    Ok(made)
}

/// Calls `put` with each edge, both ways. Each worker has a state, which `begin` makes of its number and `end` takes.
fn each_arc<W>(
    graph: &Graph,
    begin: impl Fn(usize) -> W + Sync,
    put: impl Fn(&mut W, u32, WeightedArc) + Sync,
    end: impl Fn(W) -> Result<()> + Sync,
) -> Result<()> {
    let (directed, once) = (graph.manifest().directed, stored_once(graph));
    // Of an undirected graph's raw blocks, a row is a whole list.
    let both = !graph.tiles().is_stored() && !directed;
    for_each_arc(
        graph,
        &graph.tiles().select(|_| true),
        begin,
        |state, arcs| {
            arcs.rows(|row, arcs| {
                arcs.weighted(|column, weight| {
                    put(state, row, WeightedArc::new(column, weight));
                    if !both && (directed || (once && row != column)) {
                        put(state, column, WeightedArc::new(row, weight));
                    }
                });
            });
        },
        end,
    )
}
