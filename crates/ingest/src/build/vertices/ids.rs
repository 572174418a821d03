//! A map from the user's ids to vertices: a vertex is the rank of its id.
//!
//! All distinct ids are in memory, 8 bytes each, sorted a run at a time. A look-up is one look into
//! a table of the ids' leading bits and a bisection of what remains, a few steps where ids are
//! spread evenly.

use std::ops::Deref;
use std::sync::Arc;

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_format::tiles::radix_sort;
use tiergraph_mem::{Budget, Reservation};

use super::gaps::Gaps;
use crate::build::input::Input;
use crate::build::needs::{SOURCE, Seen, Watch};
use crate::build::plan;
use crate::build::progress::Ticker;
use crate::source::{EdgeBatch, Endpoints};

/// A map from ids to their ranks: the distinct ids, ascending, and a look-up table.
#[derive(Debug)]
pub(crate) struct IdMap {
    ids: Arc<Vec<u64>>,
    /// For each value of the ids' leading bits, the index of its first id.
    starts: Vec<u32>,
    shift: u32,
    _held: Vec<Reservation>,
}

/// The distinct ids, shared with the thread that writes them.
pub(crate) struct SharedIds(Arc<Vec<u64>>);

impl Deref for SharedIds {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

/// A collector of distinct ids.
struct Collected<'b> {
    distinct: Vec<u64>,
    run: Vec<u64>,
    scratch: Vec<u64>,
    run_ids: usize,
    budget: &'b Budget,
    held: Reservation,
}

impl Collected<'_> {
    fn push(&mut self, id: u64) -> Result<()> {
        // Edge lists are sorted by source more often than not.
        if self.run.last() == Some(&id) {
            return Ok(());
        }
        self.run.push(id);
        if self.run.len() == self.run_ids { self.merge() } else { Ok(()) }
    }

    /// Adds the ids collected so far to `seen`.
    fn tell(&self, seen: &mut Seen) {
        self.distinct.iter().chain(&self.run).for_each(|&id| seen.see(SOURCE, id, 0));
    }

    /// Sorts the run and merges it with the distinct ids.
    fn merge(&mut self) -> Result<()> {
        let bits = 64 - self.run.iter().fold(0, |all, id| all | id).leading_zeros();
        radix_sort(&mut self.run, &mut self.scratch, bits, |id| *id);
        self.run.dedup();
        let most = self.distinct.len() + self.run.len();
        let held = self.budget.reserve(8 * most as u64, "the distinct ids")?;
        let mut merged = Vec::with_capacity(most);
        let (mut a, mut b) = (self.distinct.iter().peekable(), self.run.iter().peekable());
        while let Some(&&least) = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => Some(std::cmp::min(*x, *y)),
            (x, y) => x.or(y).copied(),
        }
        .as_ref()
        {
            a.next_if(|id| **id == least);
            b.next_if(|id| **id == least);
            merged.push(least);
        }
        self.distinct = merged;
        self.held = held;
        self.run.clear();
        Ok(())
    }
}

/// Reads all edges once and makes the map of their distinct ids, and of those of `more`.
pub(crate) fn collect(
    input: &mut Input<'_>,
    more: &[u64],
    run_ids: usize,
    budget: &Budget,
    mut watch: Watch<'_>,
    ticker: &mut Ticker<'_>,
    cancel: &Cancel,
) -> Result<IdMap> {
    let held = budget.reserve(0, "the distinct ids")?;
    let _run = budget.count(16 * run_ids as u64);
    let (distinct, run, scratch) = (Vec::new(), Vec::new(), Vec::new());
    let mut collected = Collected { distinct, run, scratch, run_ids, budget, held };
    let listed = input.source().vertices()?.unwrap_or_default();
    let pushed = listed.iter().chain(more).try_for_each(|&id| collected.push(id));
    watch.end(pushed, &mut EdgeBatch::default())?;
    let mut edges = 0;
    input.pass(true, |batch| {
        cancel.check("build the graph")?;
        ticker.add(batch.len() as u64);
        edges += batch.len() as u64;
        if watch.looked_at(batch) {
            return Ok(());
        }
        watch.count(batch);
        let pushed = match &batch.ends {
            Endpoints::U32 { src, dst } => {
                src.iter().chain(dst).try_for_each(|&id| collected.push(id.into()))
            }
            Endpoints::U64 { src, dst } => {
                src.iter().chain(dst).try_for_each(|&id| collected.push(id))
            }
        };
        watch.end(pushed, batch)
    })?;
    let merged = collected.merge();
    watch.end(merged, &mut EdgeBatch::default())?;
    let table = plan::id_table_bytes(collected.distinct.len() as u64);
    let mut held = Vec::new();
    let reserved = budget.reserve(table, "the table of ids").map(|table| held.push(table));
    watch.end(reserved, &mut EdgeBatch::default())?;
    watch.finish(|seen| {
        collected.tell(seen);
        listed.iter().chain(more).for_each(|&id| seen.see(SOURCE, id, 0));
        seen.edges = edges;
    })?;
    held.push(collected.held);
    IdMap::new(collected.distinct, held)
}

impl IdMap {
    fn new(ids: Vec<u64>, held: Vec<Reservation>) -> Result<Self> {
        if ids.len() > u32::MAX as usize {
            return Err(Error::new(ErrorKind::Input, "map the ids")
                .expected("at most 4294967295 vertices")
                .got(ids.len()));
        }
        let bits = 64 - ids.last().map_or(0, |id| id.leading_zeros());
        let table_bits = plan::id_table_bits(ids.len() as u64);
        let shift = bits.saturating_sub(table_bits);
        let mut starts = Vec::with_capacity((1 << table_bits) + 1);
        for (i, id) in ids.iter().enumerate() {
            while starts.len() as u64 <= id >> shift {
                starts.push(i as u32);
            }
        }
        starts.push(ids.len() as u32);
        Ok(Self { ids: Arc::new(ids), starts, shift, _held: held })
    }

    /// The number of ids up to the largest, and how many of them do not occur.
    pub(crate) fn gaps(&self) -> Gaps {
        let ids = self.ids.last().map_or(0, |last| last.saturating_add(1));
        Gaps { ids, unused: ids - self.ids.len() as u64 }
    }

    /// The distinct ids, ascending.
    pub(crate) fn ids(&self) -> SharedIds {
        SharedIds(Arc::clone(&self.ids))
    }

    /// The vertex of an id; `None` if the first pass did not see the id.
    #[inline]
    pub(crate) fn vertex(&self, id: u64) -> Option<u32> {
        let part = usize::try_from(id >> self.shift).ok()?;
        let begin = *self.starts.get(part)? as usize;
        let end = *self.starts.get(part + 1)? as usize;
        let at = self.ids[begin..end].binary_search(&id).ok()?;
        Some((begin + at) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_maps_to_its_rank() {
        let budget = Budget::new(1 << 20);
        for ids in [vec![], vec![0], vec![7], vec![u64::MAX], vec![0, 1, 5, 1 << 40, u64::MAX]] {
            let held = budget.reserve(0, "ids").unwrap();
            let map = IdMap::new(ids.clone(), vec![held]).unwrap();
            for (rank, id) in ids.iter().enumerate() {
                assert_eq!(map.vertex(*id), Some(rank as u32));
            }
            for missing in [2, 6, 8, 1 << 39, u64::MAX - 1] {
                assert_eq!(map.vertex(missing), None, "{ids:?}");
            }
        }
    }
}
