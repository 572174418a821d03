//! A graph whose blocks all fit stays on the device from run to run, so that storage is read once.
//!
//! Only whole graphs stay: of another, most is read in every pass anyway, and the device's memory is
//! wanted by whoever comes next.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_graph::{BlockFile, Graph};

use super::blocks::{Resident, Tables};
use super::vertices::{Values, Vertices};

/// What of a graph is on the device.
#[derive(Clone)]
pub(super) struct OnDevice {
    pub tables: Arc<Tables>,
    pub resident: Arc<Resident>,
    /// Which way cuFile read the blocks, where it did.
    pub direct: Option<String>,
    pub vertices: Arc<Vertices>,
}

impl OnDevice {
    /// Bytes of device memory.
    fn bytes(&self) -> u64 {
        self.bytes_beside_tables() + self.tables.bytes()
    }

    /// Bytes of device memory of blocks and of what is known of vertices.
    pub fn bytes_beside_tables(&self) -> u64 {
        self.resident.bytes() + self.vertices.bytes()
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
    /// A file of `graph`, if it is here and fits into `room` bytes, in need without what is not blocks.
    /// Anything else is let go.
    pub fn get(&self, graph: &Graph, file: BlockFile, room: u64) -> Option<OnDevice> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept.take().filter(|(number, on_device)| {
            *number == graph.number() && on_device.tables.file == file
        });
        if let Some((_, on_device)) = kept.as_mut().filter(|(_, kept)| kept.bytes() > room) {
            on_device.vertices = Arc::default();
        }
        *kept = kept.take().filter(|(_, on_device)| on_device.bytes() <= room);
        kept.as_ref().map(|(_, on_device)| on_device.clone())
    }

    /// Where the vertices of `graph` stand in the user's order, if that is here.
    pub fn positions(&self, graph: &Graph) -> Option<Values> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, on_device) = kept.as_ref().filter(|(number, _)| *number == graph.number())?;
        on_device.vertices.positions()
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
