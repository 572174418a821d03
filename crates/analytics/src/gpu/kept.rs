//! A graph whose blocks all fit stays on the device from run to run, so that storage is read once.
//!
//! Only whole graphs stay: of another, most is read in every pass anyway, and the device's memory is
//! wanted by whoever comes next.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_graph::{BlockFile, Graph};

use super::residency::Resident;
use super::tables::Tables;

/// What of a graph is on the device.
#[derive(Clone)]
pub(super) struct OnDevice {
    pub tables: Arc<Tables>,
    pub resident: Arc<Resident>,
    /// Which way cuFile read the blocks, where it did.
    pub direct: Option<String>,
}

impl OnDevice {
    /// Bytes of device memory.
    fn bytes(&self) -> u64 {
        self.resident.bytes() + self.tables.bytes()
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
