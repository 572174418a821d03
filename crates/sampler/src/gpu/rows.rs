//! Feature rows by tier: in device memory, in pinned host memory, or on storage.

use std::sync::Arc;
use std::time::Duration;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Gather, MissingRow, Rows, Sampler};
use tiergraph_gpu::{DeviceBuf, DeviceView, Stream};
use tiergraph_graph::Graph;
use tiergraph_mem::Reservation;

use super::storage::Storage;
use super::tiers;

/// The tiers of feature rows, and the kernels that gather rows from them.
pub(super) struct RowTiers {
    gather: Gather,
    /// The rows in device memory and in pinned host memory.
    pub rows: Rows,
    /// The number of rows in pinned host memory.
    pub host_rows: u64,
    /// The reader of rows that are on storage; `None` if all are in memory.
    pub storage: Option<Storage>,
    _held: Reservation,
}

impl RowTiers {
    /// Places the first rows of `order` in `left` bytes of device memory and the next ones in the host
    /// memory that the graph has left; the others stay on storage, and `threads` threads read them.
    pub fn new(
        graph: &Arc<Graph>,
        name: &str,
        stream: &Stream,
        sampler: &Sampler,
        order: &[u32],
        left: u64,
        threads: usize,
    ) -> Result<Self> {
        let features = graph.features().get(name)?;
        let (all, stride) = (order.len() as u64, features.row_bytes() as u64);
        let counts = |left: u64| {
            let device = (left / stride).min(all);
            (device, tiers::host_rows(graph, features).min(all - device))
        };
        let (mut device_rows, mut host_rows) = counts(left);
        let mut storage = None;
        if device_rows + host_rows < all {
            storage = Some(Storage::new(graph, name, stream, sampler, threads)?);
            let finding = sampler.n_id().len() * size_of::<MissingRow>();
            (device_rows, host_rows) = counts(left.saturating_sub(finding as u64));
        }
        let (hot, others) = order.split_at(device_rows as usize);
        let warm = &others[..host_rows as usize];
        let (rows, held) = tiers::rows(graph, stream, features, hot, warm)?;
        let gather = Gather::new(stream.device(), tiers::row_type(features.dtype()))?;
        Ok(Self { gather, rows, host_rows, storage, _held: held })
    }

    /// Starts finding the rows of a sampler's last batch that are on storage.
    pub fn start_finding(&mut self, stream: &Stream, sampler: &Sampler) -> Result<()> {
        match &mut self.storage {
            Some(storage) => {
                self.gather.start_finding(stream, &self.rows, sampler, &mut storage.missing)
            }
            None => Ok(()),
        }
    }

    /// Gathers the rows that are in memory, of the first `nodes` of `n_id`.
    pub fn gather(
        &self,
        stream: &Stream,
        n_id: &DeviceBuf<u32>,
        nodes: usize,
        x: DeviceView<f32>,
    ) -> Result<()> {
        self.gather.gather(stream, &self.rows, n_id, nodes, x)
    }

    /// Copies rows that were read to their batches; true once the batch of `ticket` has all its rows.
    pub fn finish(&mut self, stream: &Stream, ticket: u64, patience: Duration) -> Result<bool> {
        let (gather, dim) = (&self.gather, self.rows.dim as usize);
        let Some(storage) = &mut self.storage else { return Ok(true) };
        storage.finish(stream, ticket, patience, |piece, to, event| {
            gather.spread(stream, piece, to, dim, event)
        })
    }
}
