//! The pass loop: hands the bytes of blocks to a visitor, on the graph's threads.

use tiergraph_core::Result;
use tiergraph_io::pipeline::{Block, Bytes, Consumer, NextPass, Request, Surroundings};

use crate::Graph;

/// A worker's state, and the functions that visit blocks with it and end it.
struct Visitor<'a, W, V> {
    /// `None` once `end` has taken it.
    state: Option<W>,
    visit: &'a V,
    end: &'a dyn Fn(W) -> Result<()>,
}

impl<W, V: Fn(&mut W, usize, &[u8], bool) -> Result<()>> Consumer for Visitor<'_, W, V> {
    const ACTIVITY: &'static str = "compute";

    fn take(&mut self, block: Block, back: &mut Vec<Block>) -> Result<()> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let must_check = !matches!(block.bytes, Bytes::Resident(_));
        let bytes = &block.bytes.as_slice()[..block.len];
        let visited = (self.visit)(state, block.number, bytes, must_check);
        back.push(block);
        visited
    }

    fn finish(&mut self) -> Result<()> {
        self.state.take().map_or(Ok(()), self.end)
    }
}

impl Graph {
    /// Hands the bytes of every request to `visit`, once each: `visit(state, number of the request,
    /// bytes, whether they were just read and so must be checked)`.
    ///
    /// `begin` makes each worker's state, `end` takes it when the worker is done. Passes of one graph
    /// wait for each other.
    pub(crate) fn read_all<W>(
        &self,
        requests: &[Request],
        next: NextPass,
        begin: impl Fn(usize) -> W + Sync,
        visit: impl Fn(&mut W, usize, &[u8], bool) -> Result<()> + Sync,
        end: impl Fn(W) -> Result<()> + Sync,
    ) -> Result<()> {
        let consumer =
            |number| Box::new(Visitor { state: Some(begin(number)), visit: &visit, end: &end });
        self.workers().pass(requests, next, self.surroundings(), consumer)
    }

    /// The flags, counters, trace and cache of a pass over this graph whose blocks may become resident.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            cancels: [self.cancel(); 2],
            totals: self.totals(),
            trace: self.trace(),
            residency: Some(self.cache()),
            op: "finish the pass",
        }
    }
}
