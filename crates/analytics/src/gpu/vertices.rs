//! What the device has of a graph's vertices beside an algorithm's state.

use std::sync::{Arc, OnceLock};

use tiergraph_core::Result;
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph};

/// A value a vertex.
pub(super) type Values = Arc<DeviceBuf<u32>>;

/// Each is brought when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Vertices {
    positions: OnceLock<Values>,
    degrees: OnceLock<Values>,
}

/// How values get from the graph's order of vertices to the user's.
#[derive(Debug)]
pub(super) enum Order {
    /// They are in it.
    Same,
    /// The device moves them: each vertex has its position in the user's order.
    Here(Values),
    /// The host moves them.
    Elsewhere,
}

impl Order {
    /// What kernels that move values are told, where nothing is left to the host.
    pub fn positions(&self) -> Option<&DeviceBuf<u32>> {
        if let Self::Here(positions) = self { Some(positions) } else { None }
    }
}

impl Vertices {
    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let bytes = |values: &OnceLock<Values>| values.get().map_or(0, |v| v.bytes() as u64);
        bytes(&self.positions) + bytes(&self.degrees)
    }

    /// Where each vertex stands in the user's order, if that was brought.
    pub fn positions(&self) -> Option<Values> {
        self.positions.get().cloned()
    }

    /// Out-degrees.
    pub fn degrees(&self, graph: &Graph, stream: &Stream) -> Result<Values> {
        if let Some(degrees) = self.degrees.get() {
            return Ok(Arc::clone(degrees));
        }
        let _host = graph.reserve(graph.vertices() as u64 * 4, "the degrees")?;
        let degrees = Arc::new(stream.uploaded(&graph.degrees(Direction::Out)?)?);
        Ok(Arc::clone(self.degrees.get_or_init(|| degrees)))
    }

    /// The user's order; it is left to the host where `room` bytes or the graph's budget do not hold it,
    /// or kernels do not take its ids.
    pub fn order(&self, graph: &Graph, stream: &Stream, room: u64) -> Result<Order> {
        if let Some(positions) = self.positions.get() {
            return Ok(Order::Here(Arc::clone(positions)));
        }
        if graph.vertices() as u64 * 4 > room.min(graph.budget().left()) {
            return Ok(Order::Elsewhere);
        }
        self.upload_order(graph, stream)
    }

    /// The user's order on the device; it is left to the host only where kernels do not take its ids.
    pub fn upload_order(&self, graph: &Graph, stream: &Stream) -> Result<Order> {
        if let Some(positions) = self.positions.get() {
            return Ok(Order::Here(Arc::clone(positions)));
        }
        let _host = graph.reserve(graph.vertices() as u64 * 4, "the order of vertices")?;
        let Some(positions) = graph.positions()? else { return Ok(Order::Elsewhere) };
        let positions = Arc::new(stream.uploaded(&positions)?);
        Ok(Order::Here(Arc::clone(self.positions.get_or_init(|| positions))))
    }
}
