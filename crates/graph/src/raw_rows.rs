//! Neighbours of selected vertices, from passes over the raw blocks that hold them.
//!
//! Which blocks those are is not stored. Passes note the first vertex of each block that they have
//! checked; until every block was seen once, a selection is of all blocks.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tiergraph_core::Result;
use tiergraph_io::FileId;

use crate::Direction;
use crate::raw::{RawBlocks, RawRow};
use tiergraph_io::pipeline::Request;

/// The first vertex of a block that no pass has seen.
const UNSEEN: u64 = u64::MAX;

/// An opened `*.blocks` file of codec `raw`.
#[derive(Debug)]
pub(crate) struct RawFile {
    pub(crate) file: FileId,
    /// The first vertex of each block, or [`UNSEEN`].
    firsts: Vec<AtomicU64>,
    /// The number of blocks that were seen.
    seen: AtomicUsize,
}

impl RawFile {
    /// A file of `blocks` blocks, none of which was seen.
    pub(crate) fn new(file: FileId, blocks: u64) -> Self {
        let firsts = (0..blocks).map(|_| AtomicU64::new(UNSEEN)).collect();
        Self { file, firsts, seen: AtomicUsize::new(0) }
    }

    /// Bytes that the first vertices take in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        (self.firsts.len() * size_of::<AtomicU64>()) as u64
    }

    /// The number of blocks in the file.
    pub(crate) fn blocks(&self) -> u64 {
        self.firsts.len() as u64
    }

    /// Notes the first vertex of a block that was checked.
    #[inline]
    pub(crate) fn see(&self, block: u64, first_vertex: u64) {
        let first = &self.firsts[block as usize];
        if first.load(Ordering::Relaxed) == UNSEEN
            && first.swap(first_vertex, Ordering::Relaxed) == UNSEEN
        {
            self.seen.fetch_add(1, Ordering::Release);
        }
    }

    /// The blocks that hold the neighbours of `vertices`, which ascend; all, until each was seen once.
    pub(crate) fn blocks_of(&self, vertices: &[u32]) -> Vec<u64> {
        let all = self.firsts.len() as u64;
        if self.seen.load(Ordering::Acquire) < self.firsts.len() {
            return (0..all).collect();
        }
        let first = |block: u64| self.firsts[block as usize].load(Ordering::Relaxed);
        let mut blocks: Vec<u64> = Vec::new();
        for &v in vertices {
            let v = u64::from(v);
            let from = blocks.last().copied().unwrap_or(0);
            // A list may begin in the block before the first that begins with its vertex.
            let begin = from + partition(from..all, |block| first(block) < v).saturating_sub(1);
            let end = begin + partition(begin..all, |block| first(block) <= v);
            let next = blocks.last().map_or(0, |last| last + 1);
            blocks.extend(begin.max(next)..end);
        }
        blocks
    }
}

/// The number of `blocks`, from the first on, for which `holds` is true (partition point).
fn partition(blocks: std::ops::Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    let (first, mut below, mut above) = (blocks.start, blocks.start, blocks.end);
    while below < above {
        let middle = below + (above - below) / 2;
        if holds(middle) { below = middle + 1 } else { above = middle }
    }
    below - first
}

/// A selection: the raw blocks that hold the neighbours of some vertices, as read requests.
#[derive(Debug)]
pub struct RawSelection {
    requests: Vec<Request>,
    missing_bytes: u64,
}

impl RawSelection {
    /// Bytes of the selected blocks, resident or not.
    pub fn bytes(&self) -> u64 {
        self.requests.iter().map(|want| want.len as u64).sum()
    }

    /// Bytes of the selected blocks that were not resident.
    pub fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }
}

impl RawBlocks<'_> {
    /// Selects the raw blocks that hold the neighbours of `vertices`, which ascend; `None` without raw
    /// blocks.
    ///
    /// What is read stays only if there is room for the files of both directions: whole passes are over
    /// the other one.
    pub fn select(self, vertices: &[u32]) -> Option<RawSelection> {
        let (raw, graph) = (self.file()?, self.graph);
        let bytes: u64 = [Direction::Out, Direction::In].map(|d| graph.raw(d).bytes()).iter().sum();
        let is_kept = !graph.manifest().directed || graph.cache().capacity() >= bytes;
        let mut selection = RawSelection { requests: Vec::new(), missing_bytes: 0 };
        for block in raw.blocks_of(vertices) {
            let want = self.request(raw, block);
            let resident = want.key.is_some_and(|key| graph.cache().contains(key));
            let key = want.key.filter(|_| is_kept || resident);
            selection.missing_bytes += if resident { 0 } else { want.len as u64 };
            selection.requests.push(Request { key, ..want });
        }
        Some(selection)
    }

    /// Hands the neighbour lists of `vertices`, for which `selection` was made, to `visit`: once for
    /// each block with a part of the list.
    ///
    /// # Errors
    /// The errors of [`Self::lists_pass`].
    pub fn selected_pass<W>(
        self,
        selection: &RawSelection,
        vertices: &[u32],
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &RawRow<'_>) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        self.requests_pass(
            &selection.requests,
            crate::NextPass::Unknown,
            begin,
            |state, lists| {
                let range = lists.vertices();
                let from = vertices.partition_point(|&v| u64::from(v) < range.start);
                let own = vertices[from..].iter().take_while(|&&v| u64::from(v) < range.end);
                own.filter_map(|&v| lists.row(v.into())).try_for_each(|row| visit(state, &row))
            },
            end,
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn blocks_are_those_whose_range_has_the_vertex() {
        let mut files = tiergraph_io::FileSet::new();
        let file = tempfile::NamedTempFile::new().unwrap();
        let id = files.open(file.path()).unwrap();
        let raw = RawFile::new(id, 6);
        assert_eq!(raw.blocks_of(&[3]), [0, 1, 2, 3, 4, 5], "nothing is known");
        // Vertex 20's list begins in block 1 and goes on to block 4.
        for (block, first) in [0, 10, 20, 20, 20, 31].into_iter().enumerate() {
            raw.see(block as u64, first);
        }
        assert_eq!(raw.blocks_of(&[3]), [0]);
        assert_eq!(raw.blocks_of(&[15]), [1]);
        assert_eq!(raw.blocks_of(&[20]), [1, 2, 3, 4]);
        assert_eq!(raw.blocks_of(&[3, 4, 15, 20, 25, 31, 99]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(raw.blocks_of(&[25, 40]), [4, 5]);
        assert_eq!(raw.blocks_of(&[31]), [4, 5]);
        assert!(raw.blocks_of(&[]).is_empty());
    }
}
