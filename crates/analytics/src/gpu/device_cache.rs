//! The device cache: a graph whose blocks all fit stays on the device from run to run, so that storage
//! is read once.
//!
//! Only whole graphs stay: most of any other is read in every pass anyway, and the device's memory is
//! better left to the next run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_graph::{BlockFile, Graph};

use super::blocks::{BlockIndex, ResidentBlocks};
use super::vertices::{Values, Vertices};

/// The parts of a graph that are on the device.
#[derive(Clone)]
pub(super) struct ResidentGraph {
    pub index: Arc<BlockIndex>,
    pub resident: Arc<ResidentBlocks>,
    /// How cuFile read the blocks, in words; `None` if they passed through host memory.
    pub direct: Option<String>,
    pub vertices: Arc<Vertices>,
}

impl ResidentGraph {
    /// Bytes of device memory that all parts take.
    fn bytes(&self) -> u64 {
        self.bytes_beside_index() + self.index.bytes()
    }

    /// Bytes of device memory that blocks and values of vertices take.
    pub fn bytes_beside_index(&self) -> u64 {
        self.resident.bytes() + self.vertices.bytes()
    }

    /// Whether all of the file's blocks are on the device.
    pub fn is_whole(&self) -> bool {
        self.resident.blocks() == self.index.blocks
    }
}

/// The cache of the one graph, by its number, that stays on a device between runs; clones share it.
#[derive(Clone, Default)]
pub(super) struct DeviceCache(Arc<Mutex<Option<(u64, ResidentGraph)>>>);

impl DeviceCache {
    /// The cached `file` of `graph` if it fits `room` bytes, without vertices' values if it does not
    /// with them; `None` if it does not fit or is not cached. Anything else is evicted.
    pub fn get(&self, graph: &Graph, file: BlockFile, room: u64) -> Option<ResidentGraph> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *cached = cached.take().filter(|(number, on_device)| {
            *number == graph.number() && on_device.index.file == file
        });
        if let Some((_, on_device)) = cached.as_mut().filter(|(_, on)| on.bytes() > room) {
            on_device.vertices = Arc::default();
        }
        *cached = cached.take().filter(|(_, on_device)| on_device.bytes() <= room);
        cached.as_ref().map(|(_, on_device)| on_device.clone())
    }

    /// The user's position of every vertex of `graph`; `None` if the device does not hold them.
    pub fn positions(&self, graph: &Graph) -> Option<Values> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, on_device) = cached.as_ref().filter(|(number, _)| *number == graph.number())?;
        on_device.vertices.positions()
    }

    /// Caches `graph`, all of whose blocks are on the device.
    pub fn insert(&self, graph: &Graph, on_device: &ResidentGraph) {
        debug_assert!(on_device.is_whole());
        let cached = Some((graph.number(), on_device.clone()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cached;
    }
}

impl fmt::Debug for DeviceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = cached.as_ref().map_or(0, |(_, on_device)| on_device.bytes());
        write!(f, "DeviceCache({bytes} bytes)")
    }
}
