//! Rows of many lists, which a kernel waits for: where nothing else needs the multiprocessors that wait, no
//! step of the host is between a read and what comes after it.

use std::collections::HashMap;
use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{RowRequests, RowTargets};
use tiergraph_gpu::{Event, Stream};

use super::{GpuReads, ReadStreams, RowLists};

/// Reads by a GPU of the rows that lists name, each list in batches that kernels submit and wait for.
#[derive(Debug)]
pub(super) struct WaitingLists {
    // Dropped first: it ends the kernels that use what is behind it.
    reads: GpuReads,
    streams: ReadStreams,
    /// The stream by which the host asks how reads ended, which waits for nothing else.
    checking: Stream,
    /// By ticket, what happens when the list was taken.
    open: HashMap<u64, Event>,
    tickets: u64,
}

impl WaitingLists {
    /// Reads by `reads`, of which no batch is in flight, whose kernels run on `streams`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn new(reads: GpuReads, streams: ReadStreams) -> Result<Self> {
        let checking = Stream::new(streams.completing.device())?;
        Ok(Self { reads, streams, checking, open: HashMap::new(), tickets: 0 })
    }
}

impl RowLists for WaitingLists {
    fn stream(&self) -> &Stream {
        &self.streams.completing
    }

    fn host_bytes(&self) -> u64 {
        self.reads.host_bytes()
    }

    fn device_bytes(&self) -> u64 {
        0
    }

    fn bytes_asked(&self) -> Result<u64> {
        self.reads.bytes_asked(&self.checking)
    }

    fn begin(
        &mut self,
        ready: &Event,
        requests: RowRequests,
        of: Range<usize>,
        to: RowTargets,
    ) -> Result<u64> {
        let Self { reads, streams, .. } = self;
        streams.submitting.wait_for(ready)?;
        streams.completing.wait_for(ready)?;
        for first in of.step_by(reads.capacity()) {
            reads.submit(&streams.submitting, requests, first as u32)?;
            reads.complete(&streams.completing, to)?;
        }
        self.tickets += 1;
        self.open.insert(self.tickets, Event::behind(&streams.completing)?);
        Ok(self.tickets)
    }

    fn has_ended(&self, ticket: u64) -> bool {
        // After an error of the driver no kernel runs any more.
        self.open.get(&ticket).is_none_or(|ended| !matches!(ended.happened(), Ok(false)))
    }

    fn is_reading(&self) -> bool {
        // The GPU does everything by itself.
        false
    }

    fn end(&mut self, ticket: u64) -> Result<()> {
        self.open.remove(&ticket);
        self.reads.check(&self.checking)
    }

    fn give_up(&mut self, _ticket: u64) {}

    fn proceed(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Drop for WaitingLists {
    /// Ends the kernels before what they use.
    fn drop(&mut self) {
        self.reads.stop().stop();
        // After an error of the driver none of them runs any more.
        let _ = self.streams.completing.synchronize();
    }
}
