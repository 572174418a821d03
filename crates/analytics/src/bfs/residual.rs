//! The arcs that a breadth-first search can still use, once they are few.
//!
//! While a level passes over most arcs, those between unvisited ends are noted. When they fit,
//! every later level runs in memory: an arc to a visited vertex never matters again.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tiergraph_core::Result;
use tiergraph_core::ThreadPool;

use super::UNREACHED;

/// Bytes of one arc.
pub(super) const ARC_BYTES: u64 = size_of::<Arc>() as u64;

/// An arc between vertices that no level reached; arcs are ordered by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arc {
    source: u32,
    target: u32,
}

/// A worker collects arcs in lists of this length; each full list counts towards the limit.
const LIST: usize = 1 << 14;

/// How many levels look at all arcs; then the rest are sorted, so that a level costs what it reaches.
const SCANS: usize = 3;

/// Collects the arcs of all workers up to a limit, and none at all past it.
#[derive(Debug)]
pub(super) struct Collector {
    limit: u64,
    seen: AtomicU64,
    lists: Mutex<Vec<Vec<Arc>>>,
}

/// The arcs that one worker collected.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Lists that are full.
    lists: Vec<Vec<Arc>>,
    /// The list that grows.
    last: Vec<Arc>,
    /// Whether the residual arcs that all workers have found are more than the limit.
    full: bool,
}

impl Collector {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, seen: AtomicU64::new(0), lists: Mutex::new(Vec::new()) }
    }

    /// Notes the arc `source → target`.
    #[inline]
    pub(super) fn note(&self, part: &mut Part, source: u32, target: u32) {
        if part.full {
            return;
        }
        part.last.push(Arc { source, target });
        if part.last.len() == LIST {
            part.lists.push(std::mem::take(&mut part.last));
            let seen = self.seen.fetch_add(LIST as u64, Ordering::Relaxed) + LIST as u64;
            if seen > self.limit {
                *part = Part { full: true, ..Part::default() };
            }
        }
    }

    /// Adds a worker's arcs.
    pub(super) fn end(&self, mut part: Part) {
        if part.full {
            self.seen.fetch_add(self.limit + 1, Ordering::Relaxed);
            return;
        }
        let rest = part.last.len() as u64;
        if self.seen.fetch_add(rest, Ordering::Relaxed) + rest <= self.limit {
            part.lists.push(part.last);
            self.lists.lock().unwrap_or_else(PoisonError::into_inner).append(&mut part.lists);
        }
    }

    /// All arcs, if they were within the limit, ready to be followed.
    pub(super) fn finish(self) -> Option<Residual> {
        if self.seen.into_inner() > self.limit {
            return None;
        }
        let lists = self.lists.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some(Residual { lists, scans: 0 })
    }
}

/// The arcs between vertices that no level reached.
#[derive(Debug)]
pub(super) struct Residual {
    /// Lists in any order while they are scanned, then one list sorted by source.
    lists: Vec<Vec<Arc>>,
    scans: usize,
}

impl Residual {
    /// Sets the depth of unvisited targets of the vertices at `level` to the next level, and lists them.
    /// `frontier` has the vertices at `level`, if they are listed.
    pub(super) fn level(
        &mut self,
        depth: &[AtomicU32],
        level: u32,
        frontier: Option<Vec<u32>>,
        threads: &ThreadPool,
    ) -> Result<Vec<u32>> {
        match frontier {
            Some(frontier) if self.scans >= SCANS => Ok(self.follow(depth, level, &frontier)),
            _ => self.scan(depth, level, threads),
        }
    }

    /// Looks at all arcs, and drops those that do not matter any more.
    fn scan(&mut self, depth: &[AtomicU32], level: u32, threads: &ThreadPool) -> Result<Vec<u32>> {
        self.scans += 1;
        let at = |v: u32| depth[v as usize].load(Ordering::Relaxed);
        let scan = |list: &mut Vec<Arc>, next: &mut Vec<u32>| {
            list.retain(|&Arc { source, target }| {
                if at(target) != UNREACHED {
                    return false;
                }
                let reached = at(source) == level;
                if reached && claim(depth, target, level + 1) {
                    next.push(target);
                }
                !reached
            });
        };
        let found = threads.share(self.lists.iter_mut(), |_, lists| {
            let mut next = Vec::new();
            lists.for_each(|list| scan(list, &mut next));
            next
        })?;
        if self.scans == SCANS {
            let mut all = self.lists.concat();
            all.sort_unstable();
            self.lists = vec![all];
        }
        Ok(found.concat())
    }

    fn follow(&self, depth: &[AtomicU32], level: u32, frontier: &[u32]) -> Vec<u32> {
        let mut next = Vec::new();
        for &source in frontier {
            for list in &self.lists {
                let from = list.partition_point(|arc| arc.source < source);
                let arcs = list[from..].iter().take_while(|arc| arc.source == source);
                next.extend(arcs.map(|arc| arc.target).filter(|&v| claim(depth, v, level + 1)));
            }
        }
        next
    }
}

/// Sets the depth of `v`, unless it has one; returns whether it was set.
fn claim(depth: &[AtomicU32], v: u32, to: u32) -> bool {
    let depth = &depth[v as usize];
    depth.compare_exchange(UNREACHED, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path 0 → 1 → 2 …, noted by two workers, from a visited vertex.
    fn path(len: u32, limit: u64) -> (Vec<AtomicU32>, Option<Residual>) {
        let collector = Collector::new(limit);
        let mut parts = [Part::default(), Part::default()];
        for v in 0..len - 1 {
            collector.note(&mut parts[v as usize % 2], v, v + 1);
        }
        parts.into_iter().for_each(|part| collector.end(part));
        let depth = (0..len).map(|v| AtomicU32::new(if v == 0 { 0 } else { UNREACHED }));
        (depth.collect(), collector.finish())
    }

    #[test]
    fn scans_and_then_follows_to_the_end() {
        for threads in [1, 3] {
            let (threads, (depth, residual)) = (ThreadPool::new(threads), path(40_000, 40_000));
            let mut residual = residual.expect("all arcs fit");
            let (mut level, mut frontier) = (0, None);
            loop {
                let next =
                    residual.level(&depth, level, frontier, &threads).expect("threads start");
                if next.is_empty() {
                    break;
                }
                level += 1;
                assert_eq!(next, [level]);
                frontier = Some(next);
            }
            assert_eq!(level, 39_999);
            assert!(depth.iter().enumerate().all(|(v, d)| d.load(Ordering::Relaxed) == v as u32));
        }
    }

    #[test]
    fn more_arcs_than_the_limit_are_not_kept() {
        assert!(path(40_000, 39_998).1.is_none());
        assert!(path(40_000, 39_999).1.is_some());
        assert!(path(10, 9).1.is_some());
    }
}
