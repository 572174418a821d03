//! Results in the user's order, which the device finds faster than the host: they are moved anywhere.

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;
use tiergraph_gpu::kernels::ValueKernels;
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::Graph;

/// Where each vertex stands in the user's order.
pub(super) struct Order {
    kernels: ValueKernels,
    positions: DeviceBuf<u32>,
}

impl Order {
    /// Bytes of device memory that `graph`'s order takes.
    pub fn bytes_of(graph: &Graph) -> u64 {
        graph.vertices() as u64 * 4
    }

    /// Of a graph; none if the user's order is its own, or does not fit kernels.
    pub fn load(graph: &Graph, stream: &Stream) -> Result<Option<Self>> {
        let _host = graph.reserve(Self::bytes_of(graph), "the order of vertices")?;
        let Some(positions) = graph.positions()? else { return Ok(None) };
        let kernels = ValueKernels::new(stream.device())?;
        Ok(Some(Self { kernels, positions: stream.uploaded(&positions)? }))
    }

    pub fn bytes(&self) -> u64 {
        self.positions.bytes() as u64
    }

    /// The first `count` values in the user's order, and `rest` of all other vertices.
    pub fn download<T: Pod + Zeroable>(
        &self,
        stream: &Stream,
        values: &DeviceBuf<T>,
        (count, rest): (usize, T),
    ) -> Result<Vec<T>> {
        let vertices = self.positions.len();
        let mut ordered = DeviceBuf::new(stream.device(), vertices)?;
        if count < vertices {
            self.kernels.fill(stream, &mut ordered, rest)?;
        }
        self.kernels.place(stream, &self.positions, (values, count), &mut ordered)?;
        stream.download(&ordered, vertices)
    }
}
