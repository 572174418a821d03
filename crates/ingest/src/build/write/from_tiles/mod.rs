//! From tiles that are written to `*.rows`: each vertex with its neighbours.
//!
//! The tiles have every arc, sorted, in a byte or two. To read and decode them again takes less time than to sort
//! the arcs once more by their other end, and no temporary files. Threads take ranges of vertices whose lists fit
//! their memory, read the segments that meet them, and distribute the arcs ([`arcs`]).

mod arcs;
pub(crate) mod segments;

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Cancel, Result};
use tiergraph_format::rows::PackedRows;

use super::lists::{ListsSink, ReadyLists};
use super::load::changed;
use super::turns::{Prepare, Turns, in_turns};
use crate::build::partition::family::RowOf;
use arcs::{ArcLists, Ends};
use segments::Segments;

/// Arcs of lists that are packed before they may be written.
const PIECE_ARCS: usize = 1 << 18;
/// Pieces whose memory a thread keeps.
const SPARES: usize = 8;
/// Bytes of a vertex and of an arc while its list is in memory.
const VERTEX_BYTES: u64 = 8;
const ARC_BYTES: u64 = 4;

/// The lists of one file, made from tiles.
pub(crate) struct FromTiles<'a> {
    pub(crate) segments: &'a Arc<Segments>,
    /// Whose lists: rows of the tiles, columns, or both.
    pub(crate) row_of: RowOf,
    /// The number of arcs of each vertex, or more.
    pub(crate) arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
    /// Whether `arcs_of` is exact.
    pub(crate) exact: bool,
    pub(crate) cancel: &'a Cancel,
    /// A function called with the number of arcs of each range.
    pub(crate) done: &'a (dyn Fn(u64) + Sync),
}

/// How many threads share how much memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) threads: usize,
    /// Bytes of all threads.
    pub(crate) bytes: u64,
    /// Bytes of the lists of a range.
    lists: u64,
    /// Bytes of packed lists that wait for their turn.
    ready: u64,
}

/// A thread that makes lists.
struct Maker<'a> {
    job: &'a FromTiles<'a>,
    lists: ArcLists,
    /// Packed lists that wait may take so many bytes.
    ready_bytes: u64,
    /// Memory of lists that were written, to be used again.
    spare: Vec<PackedRows>,
}

impl FromTiles<'_> {
    /// Divides `left` bytes among at most `threads` threads; more than that where one thread needs more.
    pub(crate) fn shares(&self, vertices: usize, left: u64, threads: usize) -> Shares {
        let largest = (0..vertices).map(self.arcs_of).max().unwrap_or(0);
        let least = VERTEX_BYTES + ARC_BYTES * largest;
        // Half is for lists and an eighth for what is being packed, twice a quarter for what waits.
        let of_one = |threads: u64| {
            (left / threads).saturating_sub(self.segments.reader_bytes()) / 2
        };
        let threads = (1..=threads as u64).rev().find(|&n| of_one(n) >= least).unwrap_or(1);
        let lists = of_one(threads).max(least).min(ARC_BYTES * u64::from(u32::MAX));
        let bytes = threads * (2 * lists + self.segments.reader_bytes());
        Shares { threads: threads as usize, bytes, lists, ready: lists / 3 }
    }

    /// Makes all lists of `vertices` vertices, into `sink`.
    pub(crate) fn run(
        &self,
        vertices: usize,
        shares: Shares,
        sink: ListsSink,
    ) -> Result<ListsSink> {
        let ranges = self.ranges(vertices, shares);
        let maker = |_| Maker {
            job: self,
            lists: ArcLists::new(),
            ready_bytes: shares.ready,
            spare: Vec::new(),
        };
        let makers = (0..shares.threads).map(maker).collect();
        in_turns(makers, sink, |thread, maker: &mut Maker<'_>, turns| {
            for range in (thread..ranges.len()).step_by(shares.threads) {
                maker.fill(&ranges[range])?;
                if !maker.pack(range, turns)? {
                    break;
                }
                let arcs = ranges[range].clone().map(|vertex| (self.arcs_of)(vertex as usize));
                (self.done)(arcs.sum());
            }
            Ok(())
        })
    }

    /// Ranges of vertices whose lists take about as much memory each, as many as threads share evenly.
    fn ranges(&self, vertices: usize, shares: Shares) -> Vec<Range<u32>> {
        let bytes = |vertex: u32| VERTEX_BYTES + ARC_BYTES * (self.arcs_of)(vertex as usize);
        let all: u64 = (0..vertices as u32).map(bytes).sum();
        let count = all.div_ceil(shares.lists.max(1)).next_multiple_of(shares.threads as u64);
        let most = all.div_ceil(count.max(1)).max(PIECE_ARCS as u64).min(shares.lists);
        let (mut ranges, mut begin, mut sum) = (Vec::new(), 0, 0);
        for vertex in 0..vertices as u32 {
            let more = bytes(vertex);
            if sum + more > most && vertex > begin {
                ranges.push(begin..vertex);
                (begin, sum) = (vertex, 0);
            }
            sum += more;
        }
        ranges.push(begin..vertices as u32);
        ranges
    }

    fn ends(&self) -> Ends {
        let both = self.row_of == RowOf::Both;
        Ends { rows: both || self.row_of == RowOf::Target, columns: both || self.row_of == RowOf::Source }
    }
}

impl Maker<'_> {
    /// Fills the lists of a range of vertices.
    fn fill(&mut self, range: &Range<u32>) -> Result<()> {
        let FromTiles { segments, arcs_of, cancel, .. } = *self.job;
        self.lists.begin(range.clone(), arcs_of)?;
        let (ends, log2) = (self.job.ends(), segments.kernel.options().columns_log2);
        let vertices = u64::from(range.start)..u64::from(range.end);
        let tiles = range.start >> log2..(range.end.max(1) - 1 >> log2) + 1;
        let reader = segments.read(move |row_base, rows| {
            let has_rows = row_base < vertices.end && row_base + u64::from(rows) > vertices.start;
            match (ends.rows && has_rows, ends.columns) {
                (true, _) => 0..u32::MAX,
                (false, true) => tiles.clone(),
                (false, false) => 0..0,
            }
        })?;
        reader.for_each(segments, |segment| {
            self.lists.add(&segments.kernel, segment, ends)?;
            cancel.check("build the graph")
        })?;
        self.lists.finish();
        Ok(())
    }

    /// Packs the lists and leaves them to be written, or writes them in their turn if they are too large to be
    /// left; false when a thread has failed.
    fn pack(&mut self, range: usize, turns: &Turns<Self>) -> Result<bool> {
        let FromTiles { row_of, arcs_of, exact, .. } = *self.job;
        let (mut ready, mut waiting, mut sink) = (Vec::new(), 0, None);
        let mut lists = std::mem::replace(&mut self.lists, ArcLists::new());
        let counts_repeats = exact && row_of == RowOf::Both;
        let mut piece = self.piece();
        piece.counts.loops = if row_of == RowOf::Both { lists.loops } else { 0 };
        let (mut failed, mut arcs) = (false, 0);
        let matches = lists.for_each(arcs_of, exact, |vertex, neighbors| {
            piece.push(vertex, neighbors, counts_repeats)?;
            arcs += neighbors.len();
            if arcs < PIECE_ARCS {
                return Ok(true);
            }
            arcs = 0;
            waiting += piece.resident_bytes();
            ready.push(std::mem::replace(&mut piece, self.piece()));
            if waiting > self.ready_bytes || sink.is_some() {
                if sink.is_none() {
                    sink = turns.take(range);
                }
                let Some(sink) = &mut sink else {
                    failed = true;
                    return Ok(false);
                };
                self.write(sink, std::mem::take(&mut ready))?;
            }
            Ok(true)
        })?;
        self.lists = lists;
        if failed {
            return Ok(false);
        }
        if !matches {
            return Err(changed());
        }
        ready.push(piece);
        match sink {
            None => turns.leave(range, ready, self),
            Some(mut sink) => {
                self.write(&mut sink, ready)?;
                turns.give_back(sink, self).map(|()| true)
            }
        }
    }

    fn piece(&mut self) -> ReadyLists {
        ReadyLists::of(self.spare.pop().unwrap_or_default())
    }
}

impl Prepare for Maker<'_> {
    type Ready = Vec<ReadyLists>;
    type Sink = ListsSink;

    fn write(&mut self, sink: &mut ListsSink, ready: Vec<ReadyLists>) -> Result<()> {
        for piece in ready {
            let spare = sink.put(piece)?;
            self.spare.extend(spare.filter(|_| self.spare.len() < SPARES));
        }
        Ok(())
    }
}
