//! From tiles that are written to `*.rows`: each vertex with its neighbours.
//!
//! The tiles have every arc, sorted, in a byte or two. To read and decode them again takes less time than to sort
//! the arcs once more by their other end, and no temporary files. Threads take ranges of vertices whose
//! lists fit their memory ([`shares`]), read the segments that have arcs of theirs ([`segments`]), and distribute
//! the arcs to lists ([`arcs`]).

mod arcs;
pub(crate) mod segments;
pub(crate) mod shares;

use std::ops::Range;
use std::sync::Arc;

use tiergraph_core::{Cancel, Result};
use tiergraph_format::rows::PackedRows;

use super::lists::{ListsSink, ReadyLists};
use super::load::changed;
use super::turns::{Prepare, Turns, in_turns};
use crate::build::partition::family::RowOf;
use arcs::{ArcLists, Ends};
use segments::{Segments, SpanReader, Wanted};
use shares::Shares;

/// Arcs of lists that are packed together.
const PIECE_ARCS: usize = 1 << 16;
/// Pieces whose memory a thread keeps.
const SPARES: usize = 8;

/// The lists of one file, made from tiles.
pub(crate) struct FromTiles<'a> {
    pub(crate) segments: &'a Arc<Segments>,
    pub(crate) vertices: usize,
    /// Whose lists: rows of the tiles, columns, or both.
    pub(crate) row_of: RowOf,
    /// The number of arcs of each vertex, or more.
    pub(crate) arcs_of: &'a (dyn Fn(usize) -> u64 + Sync),
    /// Whether `arcs_of` gives the exact number of arcs of each vertex.
    pub(crate) exact: bool,
    pub(crate) cancel: &'a Cancel,
    /// A function called with the number of arcs of each range.
    pub(crate) done: &'a (dyn Fn(u64) + Sync),
}

impl FromTiles<'_> {
    /// How at most `threads` threads share `left` bytes; more than that where one thread needs more.
    pub(crate) fn shares(&self, left: u64, threads: usize) -> Shares {
        Shares::new(self, left, threads)
    }

    /// Makes all lists, into `sink`.
    pub(crate) fn run(&self, shares: Shares, sink: ListsSink) -> Result<ListsSink> {
        let ranges = shares.ranges(self);
        let packers = (0..shares.threads).map(|_| Packer::new(self, shares.waiting)).collect();
        in_turns(packers, sink, |thread, packer: &mut Packer<'_>, turns| {
            let mut lists = ArcLists::new(self.segments.most_rows());
            let read = |range: usize| ranges.get(range).map(|r| self.read(r)).transpose();
            let mut reader = read(thread)?;
            for range in (thread..ranges.len()).step_by(shares.threads) {
                let Some(spans) = reader.take() else { break };
                self.fill(&mut lists, &ranges[range], spans)?;
                // The next range's first spans come while lists are packed.
                reader = read(range + shares.threads)?;
                if !packer.pack(&lists, range, turns)? {
                    break;
                }
                let vertices = ranges[range].clone();
                (self.done)(vertices.map(|vertex| (self.arcs_of)(vertex as usize)).sum());
            }
            Ok(())
        })
    }

    /// Starts to read the segments that have arcs of some vertices.
    fn read(&self, vertices: &Range<u32>) -> Result<SpanReader> {
        self.segments.read(&Wanted { vertices: vertices.clone(), ends: self.ends() })
    }

    /// Fills the lists of some vertices, whose arcs are in `spans`.
    fn fill(&self, lists: &mut ArcLists, vertices: &Range<u32>, spans: SpanReader) -> Result<()> {
        let FromTiles { segments, arcs_of, cancel, .. } = *self;
        lists.begin(vertices.clone(), arcs_of)?;
        let ends = self.ends();
        spans.for_each(segments, |segment| {
            lists.add(&segments.kernel, segment, ends)?;
            cancel.check("build the graph")
        })?;
        lists.finish();
        Ok(())
    }

    fn ends(&self) -> Ends {
        let both = self.row_of == RowOf::Both;
        Ends {
            rows: both || self.row_of == RowOf::Target,
            columns: both || self.row_of == RowOf::Source,
        }
    }
}

/// Packs lists for a thread, which may wait until those of other threads are written.
struct Packer<'a> {
    job: &'a FromTiles<'a>,
    /// Packed lists that wait may take so many bytes.
    most_waiting: u64,
    waiting: u64,
    ready: Vec<ReadyLists>,
    open: ReadyLists,
    /// Arcs in `open`.
    arcs: usize,
    /// The file, once the range's turn has come while it was packed.
    sink: Option<ListsSink>,
    /// Memory of lists that were written, to be used again.
    spare: Vec<PackedRows>,
}

impl<'a> Packer<'a> {
    fn new(job: &'a FromTiles<'a>, most_waiting: u64) -> Self {
        Self {
            job,
            most_waiting,
            waiting: 0,
            ready: Vec::new(),
            open: ReadyLists::of(PackedRows::default()),
            arcs: 0,
            sink: None,
            spare: Vec::new(),
        }
    }

    /// Packs the lists of a range. Leaves them to be written, or if they are too many for that waits until they
    /// may be; false when a thread has failed.
    fn pack(&mut self, lists: &ArcLists, range: usize, turns: &Turns<Self>) -> Result<bool> {
        let FromTiles { row_of, arcs_of, exact, .. } = *self.job;
        let counts_repeats = exact && row_of == RowOf::Both;
        if row_of == RowOf::Both {
            self.open.counts.loops += lists.loops;
        }
        let mut goes_on = true;
        let matches = lists.for_each(arcs_of, exact, |vertex, neighbors| {
            self.open.push(vertex, neighbors, counts_repeats)?;
            self.arcs += neighbors.len();
            if self.arcs >= PIECE_ARCS {
                self.close();
                goes_on = self.waiting <= self.most_waiting || self.write_waiting(range, turns)?;
            }
            Ok(goes_on)
        })?;
        if !matches {
            return Err(changed());
        }
        if !goes_on {
            return Ok(false);
        }
        self.close();
        self.waiting = 0;
        let ready = std::mem::take(&mut self.ready);
        match self.sink.take() {
            None => turns.leave(range, ready, self),
            Some(mut sink) => {
                self.write(&mut sink, ready)?;
                turns.give_back(sink, self).map(|()| true)
            }
        }
    }

    /// Adds the open lists to those that are ready.
    fn close(&mut self) {
        self.waiting += self.open.resident_bytes();
        let next = ReadyLists::of(self.spare.pop().unwrap_or_default());
        self.ready.push(std::mem::replace(&mut self.open, next));
        self.arcs = 0;
    }

    fn write_waiting(&mut self, range: usize, turns: &Turns<Self>) -> Result<bool> {
        let Some(mut sink) = self.sink.take().or_else(|| turns.take(range)) else {
            return Ok(false);
        };
        self.waiting = 0;
        let ready = std::mem::take(&mut self.ready);
        self.write(&mut sink, ready)?;
        self.sink = Some(sink);
        Ok(true)
    }
}

impl Prepare for Packer<'_> {
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
