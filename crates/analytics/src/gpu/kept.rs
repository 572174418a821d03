//! A graph whose blocks all fit stays on the device from run to run, so that storage is read once.
//!
//! Only whole graphs stay: of another, most is read in every pass anyway, and the device's memory is
//! wanted by whoever comes next.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tiergraph_core::Result;
use tiergraph_gpu::Stream;
use tiergraph_graph::{BlockFile, Graph};

use super::order::Order;
use super::residency::Resident;
use super::tables::Tables;

/// What of a graph is on the device.
#[derive(Clone)]
pub(super) struct OnDevice {
    pub tables: Arc<Tables>,
    pub resident: Arc<Resident>,
    /// Which way cuFile read the blocks, where it did.
    pub direct: Option<String>,
    /// Once results were asked for.
    pub order: Arc<OnceLock<Order>>,
}

impl OnDevice {
    /// Bytes of device memory.
    fn bytes(&self) -> u64 {
        let order = self.order.get().map_or(0, Order::bytes);
        self.resident.bytes() + self.tables.bytes() + order
    }

    /// The user's order on the device, brought there once; none if the orders agree, and where
    /// `left` bytes for blocks and it have no room for it and for values of so many bytes.
    pub fn order(
        &self,
        graph: &Graph,
        stream: &Stream,
        (left, value_bytes): (u64, usize),
    ) -> Result<Option<&Order>> {
        if !self.is_whole() || !graph.is_reordered() {
            return Ok(None);
        }
        let missing = if self.order.get().is_none() { Order::bytes_of(graph) } else { 0 };
        let left = left.saturating_sub(self.bytes() - self.tables.bytes());
        let room = left.min(stream.device().memory()?.0);
        if missing + (graph.vertices() * value_bytes) as u64 > room
            || missing > graph.budget().left()
        {
            return Ok(None);
        }
        if missing > 0 {
            let loaded = Order::load(graph, stream)?;
            return Ok(loaded.map(|loaded| self.order.get_or_init(|| loaded)));
        }
        Ok(self.order.get())
    }

    /// Whether all of the file's blocks are there.
    pub fn is_whole(&self) -> bool {
        self.resident.blocks() == self.tables.blocks
    }
}

/// The one graph that a device keeps between runs; all clones keep the same.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Option<(u64, OnDevice)>>>);

impl Kept {
    /// A file of `graph`, if it is here and fits into `room` bytes. Anything else is let go.
    pub fn get(&self, graph: &Graph, file: BlockFile, room: u64) -> Option<OnDevice> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept.take().filter(|(number, on_device)| {
            *number == graph.number() && on_device.tables.file == file && on_device.bytes() <= room
        });
        kept.as_ref().map(|(_, on_device)| on_device.clone())
    }

    /// Keeps the blocks of `graph`, all of which are there.
    pub fn keep(&self, graph: &Graph, on_device: &OnDevice) {
        debug_assert!(on_device.is_whole());
        let kept = Some((graph.number(), on_device.clone()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Kept({} bytes)", kept.as_ref().map_or(0, |(_, on_device)| on_device.bytes()))
    }
}
