//! Values of a graph's vertices that the device has beside an algorithm's state: degrees and positions.

use std::sync::{Arc, OnceLock};

use tiergraph_core::Result;
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph};

/// A value for each vertex, in device memory.
pub(super) type Values = Arc<DeviceBuf<u32>>;

/// Degrees and positions of a graph's vertices; each is copied to the device when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Vertices {
    positions: OnceLock<Values>,
    degrees: OnceLock<Values>,
}

/// How values get from the graph's order of vertices to the user's.
#[derive(Debug)]
pub(super) enum Order {
    /// Both orders are the same.
    Same,
    /// The device moves values by each vertex's position in the user's order.
    ByDevice(Values),
    /// The host moves values.
    ByHost,
}

impl Order {
    /// The position of each vertex in the user's order; `None` unless the device moves values.
    pub fn positions(&self) -> Option<&DeviceBuf<u32>> {
        if let Self::ByDevice(positions) = self { Some(positions) } else { None }
    }
}

impl Vertices {
    /// Bytes of device memory that the values take now.
    pub fn bytes(&self) -> u64 {
        let bytes = |values: &OnceLock<Values>| values.get().map_or(0, |v| v.bytes() as u64);
        bytes(&self.positions) + bytes(&self.degrees)
    }

    /// The position of each vertex in the user's order; `None` if it is not on the device.
    pub fn positions(&self) -> Option<Values> {
        self.positions.get().cloned()
    }

    /// The out-degree of each vertex.
    pub fn degrees(&self, graph: &Graph, stream: &Stream) -> Result<Values> {
        if let Some(degrees) = self.degrees.get() {
            return Ok(Arc::clone(degrees));
        }
        let _host = graph.memory().reserve(graph.vertices() as u64 * 4, "the degrees")?;
        let degrees = Arc::new(stream.uploaded(&graph.degrees().of(Direction::Out)?)?);
        Ok(Arc::clone(self.degrees.get_or_init(|| degrees)))
    }

    /// How values get to the user's order. The host moves them where `room` bytes or the graph's budget
    /// do not hold the order, or kernels do not take its ids.
    pub fn order(&self, graph: &Graph, stream: &Stream, room: u64) -> Result<Order> {
        if let Some(positions) = self.positions.get() {
            return Ok(Order::ByDevice(Arc::clone(positions)));
        }
        if graph.vertices() as u64 * 4 > room.min(graph.memory().budget().left()) {
            return Ok(Order::ByHost);
        }
        self.upload_order(graph, stream)
    }

    /// How values get to the user's order. The host moves them only where kernels do not take the
    /// order's ids.
    pub fn upload_order(&self, graph: &Graph, stream: &Stream) -> Result<Order> {
        if let Some(positions) = self.positions.get() {
            return Ok(Order::ByDevice(Arc::clone(positions)));
        }
        let _host = graph.memory().reserve(graph.vertices() as u64 * 4, "the order of vertices")?;
        let Some(positions) = graph.order().positions()? else { return Ok(Order::ByHost) };
        let positions = Arc::new(stream.uploaded(&positions)?);
        Ok(Order::ByDevice(Arc::clone(self.positions.get_or_init(|| positions))))
    }
}
