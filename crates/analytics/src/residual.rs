//! The arcs that a breadth-first search can still use, once they are few.
//!
//! While a dense level passes over the tiles, arcs whose ends are both unvisited are noted. When
//! they fit, every later level runs in memory: an arc to a visited vertex never matters again.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Collects arcs up to a limit; past it, nothing is kept.
#[derive(Debug)]
pub(crate) struct Collector {
    limit: u64,
    seen: AtomicU64,
    arcs: Mutex<Vec<(u32, u32)>>,
}

/// One worker's arcs.
#[derive(Debug, Default)]
pub(crate) struct Part {
    arcs: Vec<(u32, u32)>,
    full: bool,
}

/// A worker tells the others of its arcs this many at a time.
const REPORT: usize = 1 << 14;

impl Collector {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, seen: AtomicU64::new(0), arcs: Mutex::new(Vec::new()) }
    }

    /// Notes the arc `source → target`.
    #[inline]
    pub(crate) fn note(&self, part: &mut Part, source: u32, target: u32) {
        if part.full {
            return;
        }
        part.arcs.push((source, target));
        if part.arcs.len().is_multiple_of(REPORT) {
            let seen = self.seen.fetch_add(REPORT as u64, Ordering::Relaxed) + REPORT as u64;
            if seen > self.limit {
                *part = Part { arcs: Vec::new(), full: true };
            }
        }
    }

    /// Adds a worker's arcs.
    pub(crate) fn end(&self, part: Part) {
        if part.full {
            self.seen.fetch_add(self.limit + 1, Ordering::Relaxed);
            return;
        }
        let rest = (part.arcs.len() % REPORT) as u64;
        if self.seen.fetch_add(rest, Ordering::Relaxed) + rest <= self.limit {
            self.arcs.lock().unwrap_or_else(PoisonError::into_inner).extend(part.arcs);
        }
    }

    /// All arcs, if they were within the limit, ready to be followed.
    pub(crate) fn finish(self) -> Option<Residual> {
        if self.seen.into_inner() > self.limit {
            return None;
        }
        let mut arcs = self.arcs.into_inner().unwrap_or_else(PoisonError::into_inner);
        arcs.sort_unstable();
        Some(Residual { arcs })
    }
}

/// Arcs sorted by source.
#[derive(Debug)]
pub(crate) struct Residual {
    arcs: Vec<(u32, u32)>,
}

impl Residual {
    /// Calls `visit` for each target of each vertex of `frontier`.
    pub(crate) fn targets(&self, frontier: &[u32], mut visit: impl FnMut(u32)) {
        for &source in frontier {
            let from = self.arcs.partition_point(|a| a.0 < source);
            self.arcs[from..].iter().take_while(|a| a.0 == source).for_each(|a| visit(a.1));
        }
    }
}
