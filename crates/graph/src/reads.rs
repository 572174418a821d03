//! The pass loop: hands the bytes of blocks to a visitor, on the graph's threads.

use tiergraph_core::Result;
use tiergraph_io::pipeline::{Block, Bytes, Consumer, NextPass, Request, Surroundings};

use crate::Graph;

/// Which blocks a worker visits together.
pub(crate) struct Batches<'a> {
    /// The most blocks.
    pub(crate) blocks: usize,
    /// Whether a request's bytes may be visited together with those of others.
    pub(crate) may_join: &'a (dyn Fn(&[Block], usize) -> bool + Sync),
}

impl Batches<'_> {
    /// Every block is visited alone.
    pub(crate) const NONE: Self = Self { blocks: 1, may_join: &|_, _| false };
}

/// Whether a block was just read, and so must be checked.
pub(crate) fn is_fresh(block: &Block) -> bool {
    !matches!(block.bytes, Bytes::Resident(_))
}

/// The bytes of a block that were asked for.
pub(crate) fn bytes_of(block: &Block) -> &[u8] {
    &block.bytes.as_slice()[..block.len]
}

/// A worker's state, and the functions that visit blocks with it and end it.
struct Visitor<'a, W, V> {
    /// `None` once `end` has taken it.
    state: Option<W>,
    batches: &'a Batches<'a>,
    visit: &'a V,
    end: &'a dyn Fn(W) -> Result<()>,
    /// Blocks that are visited together, as soon as no other joins them.
    held: Vec<Block>,
    /// Blocks that are not needed any more.
    visited: Vec<Block>,
}

impl<W, V: Fn(&mut W, &[Block]) -> Result<()>> Visitor<'_, W, V> {
    fn visit_held(&mut self) -> Result<()> {
        let visited = match &mut self.state {
            Some(state) if !self.held.is_empty() => (self.visit)(state, &self.held),
            _ => Ok(()),
        };
        self.visited.append(&mut self.held);
        visited
    }
}

impl<W, V: Fn(&mut W, &[Block]) -> Result<()>> Consumer for Visitor<'_, W, V> {
    const ACTIVITY: &'static str = "compute";
    /// Resident blocks that the visitor has at a time: it visits a batch, or one, before it takes more.
    const RESIDENT_AT_ONCE: usize = usize::MAX;

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        let joins = self.held.is_empty() || (self.batches.may_join)(&self.held, block.number);
        let mut visited = if joins { Ok(()) } else { self.visit_held() };
        self.held.push(block);
        if self.held.len() >= self.batches.blocks {
            visited = visited.and(self.visit_held());
        }
        back.append(&mut self.visited);
        visited
    }

    fn give_back(&mut self, back: &mut Vec<Block>, wait: bool) -> Result<()> {
        let visited = if wait { self.visit_held() } else { Ok(()) };
        back.append(&mut self.visited);
        visited
    }

    fn finish(&mut self) -> Result<()> {
        let visited = self.visit_held();
        visited.and(self.state.take().map_or(Ok(()), self.end))
    }

    fn forget(&mut self, back: &mut Vec<Block>) -> Result<()> {
        back.append(&mut self.held);
        back.append(&mut self.visited);
        Ok(())
    }
}

impl Graph {
    /// Hands the bytes of every request to `visit`, once each, in `batches`; [`is_fresh`] ones must be checked.
    ///
    /// `begin` makes each worker's state, `end` takes it when the worker is done. Passes of one graph
    /// wait for each other.
    pub(crate) fn read_all<W>(
        &self,
        (requests, next): (&[Request], NextPass),
        batches: &Batches<'_>,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, &[Block]) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let consumer = |number| {
            let (state, held, visited) = (Some(begin(number)), Vec::new(), Vec::new());
            Box::new(Visitor { state, batches, visit: &visit, end: &end, held, visited })
        };
        let held = if batches.blocks > 1 { batches.blocks } else { 0 };
        let around = Surroundings { held, ..self.surroundings() };
        self.workers().pass(requests, next, around, consumer)
    }

    /// The flags, counters, trace and cache of a pass over this graph whose blocks may become resident.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            cancels: [self.cancel(); 2],
            totals: self.totals(),
            trace: self.trace(),
            residency: Some(self.cache()),
            held: 0,
            op: "finish the pass",
        }
    }
}
