//! Reads by a GPU of the rows that lists name, several lists at a time: what loaders read by.

use std::fmt::Debug;
use std::ops::Range;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{RowRequests, RowTargets};
use tiergraph_gpu::{Event, Stream};

/// Reads by a GPU of the rows that lists name. Whoever waits for a list calls [`proceed`](Self::proceed) until
/// it [has ended](Self::has_ended).
pub trait RowLists: Debug + Send {
    /// The stream on which rows are taken: what is submitted to it after a list has ended finds them there.
    fn stream(&self) -> &Stream;

    /// Bytes of host memory that kernels and drives share.
    fn host_bytes(&self) -> u64;

    /// Bytes of device memory for rows on their way.
    fn device_bytes(&self) -> u64;

    /// Bytes of blocks that drives were asked for so far.
    ///
    /// # Errors
    /// Any error of the driver.
    fn bytes_asked(&self) -> Result<u64>;

    /// Begins to read those of the requested rows that are numbers `of` among them to `to`, when `ready` has
    /// happened; returns the list's ticket. The list and the rows' places stay until it
    /// [has ended](Self::has_ended).
    ///
    /// # Errors
    /// As [`proceed`](Self::proceed).
    fn begin(
        &mut self,
        ready: &Event,
        requests: RowRequests,
        of: Range<usize>,
        to: RowTargets,
    ) -> Result<u64>;

    /// Whether all rows of a list were taken, or never will be.
    fn has_ended(&self, ticket: u64) -> bool;

    /// Whether a list is being read.
    fn is_reading(&self) -> bool;

    /// Forgets a list that has ended, and says whether every row came, of it and of the lists before.
    ///
    /// # Errors
    /// As [`GpuReads::check`](super::GpuReads::check).
    fn end(&mut self, ticket: u64) -> Result<()>;

    /// Drops what has not begun of a list. It has ended when the rest has.
    fn give_up(&mut self, ticket: u64);

    /// Takes rows that have come, and submits others; waits for nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) for a drive that answered not in time, or what was
    /// not asked, after which nothing can be read; any error of the driver.
    fn proceed(&mut self) -> Result<()>;
}
