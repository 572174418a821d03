//! Levels over rows: pushed from the frontier, or pulled by the unvisited vertices.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use tiergraph_core::Result;
use tiergraph_format::rows::{RowsPage, damaged_list};
use tiergraph_graph::{Direction, RawSelection, RowSelection};

use super::residual::{Collector, Part};
use super::{Frontier, Search, Total, UNREACHED};
use crate::bits::Bits;

/// What a worker finds in a pulled level: how many vertices it claimed, and arcs for later levels.
#[derive(Default)]
struct Pulled {
    claimed: usize,
    part: Part,
}

impl Search<'_> {
    /// Claims the unvisited neighbours of the frontier, whose pages `rows` has.
    pub(super) fn push(&self, rows: &RowSelection) -> Result<Vec<u32>> {
        let all = Mutex::new(Vec::new());
        self.graph.rows(Direction::Out).pass(
            rows,
            |_| Vec::new(),
            |next, page| {
                for v in self.vertices(page).filter(|&v| self.depth(v) == self.level) {
                    let mut is_sound = true;
                    page.walk(u64::from(v), |u| {
                        let depth = self.depth.get(u as usize);
                        is_sound = depth.is_some();
                        if depth.is_some_and(|depth| depth.load(Ordering::Relaxed) == UNREACHED)
                            && self.claim(u as u32)
                        {
                            next.push(u as u32);
                        }
                        is_sound
                    })?;
                    if !is_sound {
                        return Err(damaged_list(v));
                    }
                }
                Ok(())
            },
            |mut next| {
                all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut next);
                Ok(())
            },
        )?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Claims the unvisited neighbours of the frontier, whose raw blocks `raw` has.
    pub(super) fn push_raw(&self, raw: &RawSelection, frontier: &[u32]) -> Result<Vec<u32>> {
        let all = Mutex::new(Vec::new());
        self.graph.raw(Direction::Out).selected_pass(
            raw,
            frontier,
            |_| Vec::new(),
            |next, row| {
                let unvisited = |&&u: &&u32| self.depth(u) == UNREACHED && self.claim(u);
                next.extend(row.neighbors.iter().filter(unvisited));
                Ok(())
            },
            |mut next| {
                all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut next);
                Ok(())
            },
        )?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Claims the unvisited vertices, whose pages `rows` has, that have a neighbour in the
    /// frontier. Arcs from unvisited vertices to the others are collected, if they are few enough.
    pub(super) fn pull(&mut self, rows: &RowSelection) -> Result<Frontier> {
        let (claimed, collector) = (Total::default(), Collector::new(self.residual_limit));
        let frontier = self.bits(|depth| depth == self.level)?;
        let unvisited = self.bits(|depth| depth == UNREACHED)?;
        let look = Look { search: self, frontier, unvisited, collector: &collector };
        self.graph.rows(Direction::In).pass(
            rows,
            |_| Pulled::default(),
            |pulled, page| look.page(pulled, page),
            |pulled| {
                collector.end(pulled.part);
                claimed.add(pulled.claimed)
            },
        )?;
        self.residual = collector.finish();
        Ok(claimed.frontier())
    }

    fn vertices(&self, page: &RowsPage<'_>) -> Range<u32> {
        let Range { start, end } = page.vertices();
        let end = end.min(self.depth.len() as u64);
        start.min(end) as u32..end as u32
    }
}

/// A level in which every unvisited vertex looks for the frontier.
struct Look<'a> {
    search: &'a Search<'a>,
    frontier: Bits,
    unvisited: Bits,
    collector: &'a Collector,
}

impl Look<'_> {
    fn page(&self, pulled: &mut Pulled, page: &RowsPage<'_>) -> Result<()> {
        let search = self.search;
        let vertices = search.vertices(page);
        for v in vertices.clone().filter(|&v| search.depth(v) == UNREACHED) {
            let mut reached = false;
            page.walk(u64::from(v), |u| {
                reached = self.frontier.has(u);
                !reached
            })?;
            if !reached {
                self.collect(pulled, page, v)?;
            } else if v > vertices.start && v + 1 < vertices.end {
                search.depth[v as usize].store(search.level + 1, Ordering::Relaxed);
                pulled.claimed += 1;
            } else if search.claim(v) {
                // The page's first and last lists may be on others' pages too.
                pulled.claimed += 1;
            }
        }
        Ok(())
    }

    /// Collects the arcs from unvisited vertices to `v`, which has no neighbour in the frontier.
    #[inline(never)]
    fn collect(&self, pulled: &mut Pulled, page: &RowsPage<'_>, v: u32) -> Result<()> {
        page.walk(u64::from(v), |u| {
            if self.unvisited.has(u) {
                self.collector.note(&mut pulled.part, u as u32, v);
            }
            true
        })
    }
}
