//! Rows of many lists, one list after the other, by kernels that wait for them: no step of the host is between
//! a read and what comes after it.

use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{RowRequests, RowTargets};
use tiergraph_gpu::{Event, Stream};

use super::{GpuReads, RowLists, StopReads};

/// Reads whose kernels wait for the rows.
pub trait ReadsInOrder: Debug + Send {
    /// Starts to read a list, as [`RowLists::begin`] does, when `ready` has happened; its rows are taken in order
    /// with `stream`.
    ///
    /// # Errors
    /// Any error of the driver.
    fn start(
        &mut self,
        stream: &Stream,
        ready: &Event,
        requests: RowRequests,
        of: Range<usize>,
        to: RowTargets,
    ) -> Result<()>;

    /// Says whether every row came of the lists that have ended; `stream` has other work than theirs.
    ///
    /// # Errors
    /// As [`GpuReads::check`].
    fn check(&mut self, stream: &Stream) -> Result<()>;

    /// A handle that stops kernels which wait for drives.
    fn stop(&self) -> StopReads;

    /// Bytes of host memory that kernels and drives share.
    fn host_bytes(&self) -> u64;

    /// Bytes of blocks that drives were asked for so far.
    ///
    /// # Errors
    /// Any error of the driver. Waits for the work of `stream`.
    fn bytes_asked(&self, stream: &Stream) -> Result<u64>;
}

/// Rows of many lists, a list by kernels that wait for its rows, one list after the other.
#[derive(Debug)]
pub struct ListsInOrder<R: ReadsInOrder> {
    // Dropped first: it ends the kernels that use what is behind it.
    pub(super) reads: R,
    stream: Stream,
    /// The stream by which the host asks how reads ended, which waits for nothing else.
    pub(super) checking: Stream,
    /// By ticket, what happens when the list was taken.
    open: HashMap<u64, Event>,
    tickets: u64,
}

impl<R: ReadsInOrder> ListsInOrder<R> {
    /// Reads by `reads`, whose rows are taken on `stream`.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn new(reads: R, stream: Stream) -> Result<Self> {
        let checking = Stream::new(stream.device())?;
        Ok(Self { reads, stream, checking, open: HashMap::new(), tickets: 0 })
    }
}

impl<R: ReadsInOrder> RowLists for ListsInOrder<R> {
    fn stream(&self) -> &Stream {
        &self.stream
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
        self.stream.wait_for(ready)?;
        self.reads.start(&self.stream, ready, requests, of, to)?;
        self.tickets += 1;
        self.open.insert(self.tickets, Event::behind(&self.stream)?);
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

impl<R: ReadsInOrder> Drop for ListsInOrder<R> {
    /// Ends the kernels before what they use.
    fn drop(&mut self) {
        self.reads.stop().stop();
        // After an error of the driver none of them runs any more.
        let _ = self.stream.synchronize();
    }
}

/// Reads in batches, each by a kernel that submits on a stream of its own and one that waits.
#[derive(Debug)]
pub(super) struct WaitingReads {
    // Dropped first: it ends the kernels that use what is behind it.
    pub reads: GpuReads,
    pub submitting: Stream,
}

impl ReadsInOrder for WaitingReads {
    fn start(
        &mut self,
        stream: &Stream,
        ready: &Event,
        requests: RowRequests,
        of: Range<usize>,
        to: RowTargets,
    ) -> Result<()> {
        self.submitting.wait_for(ready)?;
        for first in of.step_by(self.reads.capacity()) {
            self.reads.submit(&self.submitting, requests, first as u32)?;
            self.reads.complete(stream, to)?;
        }
        Ok(())
    }

    fn check(&mut self, stream: &Stream) -> Result<()> {
        self.reads.check(stream)
    }

    fn stop(&self) -> StopReads {
        self.reads.stop()
    }

    fn host_bytes(&self) -> u64 {
        self.reads.host_bytes()
    }

    fn bytes_asked(&self, stream: &Stream) -> Result<u64> {
        self.reads.bytes_asked(stream)
    }
}
