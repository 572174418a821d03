//! Vertices: which ids they are, how many edges each has, and the order they are stored in.
//!
//! This file turns the ids of a batch into vertices, in the user's order.

pub(crate) mod counts;
pub(crate) mod ends;
pub(crate) mod gaps;
pub(crate) mod identify;
pub(crate) mod ids;
pub(crate) mod order;
pub(crate) mod sample;
pub(crate) mod scan;

use std::panic::resume_unwind;

use tiergraph_core::{Error, ErrorKind, Result, threads};
use tiergraph_kernels::widest;

use crate::source::{EdgeBatch, Endpoints};
use ids::IdMap;
use scan::too_many;

/// The steps that prepare every batch for a pass: mapping ids, dropping self-loops.
pub(crate) struct Vertices<'a> {
    pub(crate) ids: Option<&'a IdMap>,
    pub(crate) drop_loops: bool,
}

impl Vertices<'_> {
    /// Replaces the batch's ids by vertices, 32 bits wide, and removes self-loops if that is asked for.
    pub(crate) fn prepare(&self, batch: &mut EdgeBatch, threads: usize) -> Result<()> {
        match (self.ids, &batch.ends) {
            (None, Endpoints::U32 { .. }) => {}
            (None, Endpoints::U64 { src, dst }) => {
                let ends = Endpoints::U32 { src: narrow(src)?, dst: narrow(dst)? };
                batch.ends = ends;
            }
            (Some(ids), Endpoints::U32 { src, dst }) => {
                let ends =
                    Endpoints::U32 { src: map(src, ids, threads)?, dst: map(dst, ids, threads)? };
                batch.ends = ends;
            }
            (Some(ids), Endpoints::U64 { src, dst }) => {
                let ends =
                    Endpoints::U32 { src: map(src, ids, threads)?, dst: map(dst, ids, threads)? };
                batch.ends = ends;
            }
        }
        if self.drop_loops {
            drop_loops(batch);
        }
        Ok(())
    }
}

/// The largest id of a batch; `None` if it is empty.
pub(crate) fn largest(batch: &EdgeBatch) -> Option<u64> {
    widest(|| match &batch.ends {
        Endpoints::U32 { src, dst } => {
            let most = src.iter().chain(dst).fold(0, |most, id| most.max(*id));
            (!src.is_empty()).then(|| u64::from(most))
        }
        Endpoints::U64 { src, dst } => src.iter().chain(dst).copied().max(),
    })
}

/// A collector of the vertices with self-loops, which are going to be dropped.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    vertices: Vec<u64>,
    distinct: usize,
}

impl Loops {
    /// Adds the vertices with self-loops in a batch.
    pub(crate) fn extend(&mut self, batch: &EdgeBatch) {
        match &batch.ends {
            Endpoints::U32 { src, dst } => self.add(src, dst),
            Endpoints::U64 { src, dst } => self.add(src, dst),
        }
        if self.vertices.len() > 2 * self.distinct + (1 << 16) {
            self.sort();
        }
    }

    fn add<I: Copy + Into<u64> + PartialEq>(&mut self, src: &[I], dst: &[I]) {
        let loops = src.iter().zip(dst).filter(|(src, dst)| src == dst);
        self.vertices.extend(loops.map(|(src, _)| -> u64 { (*src).into() }));
    }

    fn sort(&mut self) {
        self.vertices.sort_unstable();
        self.vertices.dedup();
        self.distinct = self.vertices.len();
    }

    /// The vertices, each once, ascending.
    pub(crate) fn finish(mut self) -> Vec<u64> {
        self.sort();
        self.vertices
    }
}

fn narrow(ids: &[u64]) -> Result<Vec<u32>> {
    let largest = ids.iter().fold(0, |most, id| most.max(*id));
    if largest >= u64::from(u32::MAX) {
        return Err(too_many(largest));
    }
    Ok(ids.iter().map(|&id| id as u32).collect())
}

fn map<I: Copy + Into<u64> + Sync>(column: &[I], ids: &IdMap, threads: usize) -> Result<Vec<u32>> {
    let part = column.len().div_ceil(threads).max(1 << 12);
    let mut mapped = vec![0; column.len()];
    let map_part = |from: &[I], to: &mut [u32]| -> Result<()> {
        for (from, to) in from.iter().zip(to) {
            let id = (*from).into();
            *to = ids.vertex(id).ok_or_else(|| changed(id))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let parts = column.chunks(part).zip(mapped.chunks_mut(part));
        let start = |(from, to)| threads::start_in(scope, "map", move || map_part(from, to));
        let jobs = parts.map(start).collect::<Result<Vec<_>>>()?;
        jobs.into_iter().try_for_each(|job| job.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;
    Ok(mapped)
}

/// The error of an id that the first pass did not see.
fn changed(id: u64) -> Error {
    Error::new(ErrorKind::Input, "find the id")
        .object(id)
        .expected("an id that the first pass over the input saw")
        .hint("do not write to the input while a graph is built from it")
}

fn drop_loops(batch: &mut EdgeBatch) {
    let Endpoints::U32 { src, dst } = &mut batch.ends else { return };
    let mut kept = 0;
    for i in 0..src.len() {
        let is_loop = src[i] == dst[i];
        src[kept] = src[i];
        dst[kept] = dst[i];
        if let Some(weights) = &mut batch.weights {
            weights[kept] = weights[i];
        }
        kept += usize::from(!is_loop);
    }
    src.truncate(kept);
    dst.truncate(kept);
    if let Some(weights) = &mut batch.weights {
        weights.truncate(kept);
    }
}
