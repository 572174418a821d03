//! The device cache: a graph whose blocks all fit stays on the device from run to run, so that storage
//! is read once; so do the neighbour lists that were made of it.
//!
//! Only whole graphs stay: most of any other is read in every pass anyway, and the device's memory is
//! better left to the next run.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_gpu::kernels::DeviceLists;
use tiergraph_graph::{BlockFile, Graph};

use super::blocks::{BlockIndex, ResidentBlocks};
use super::vertices::{Values, Vertices};
use crate::row_map::Side;

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

/// What neighbour lists on the device contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// A neighbour for each arc, in any order.
    EveryArc,
    /// Each neighbour once, ascending.
    Distinct,
    /// Each neighbour once, ascending, and not the vertex itself.
    Simple,
    /// The same for each direction of arcs: neighbours doubled, and one more where arcs enter.
    Sides,
    /// Each neighbour once, ascending, with its highest bit set where arcs lead to it and from it.
    Joined,
}

impl Listed {
    /// Whether arcs that leave a vertex are told from those that enter it.
    pub(super) fn has_sides(self) -> bool {
        matches!(self, Self::Sides | Self::Joined)
    }
}

/// Neighbour lists that are on the device.
#[derive(Clone)]
pub(super) struct ResidentLists {
    pub side: Side,
    pub listed: Listed,
    /// Whether every arc has a target in its vertex's list.
    pub has_all: bool,
    pub lists: DeviceLists,
}

impl ResidentLists {
    /// Whether these lists contain the neighbours that `listed` says, and no others.
    fn are(&self, listed: Listed) -> bool {
        let are_all_alike = match self.listed {
            Listed::Simple => matches!(listed, Listed::EveryArc | Listed::Distinct),
            Listed::Distinct => listed == Listed::EveryArc,
            Listed::EveryArc | Listed::Sides | Listed::Joined => false,
        };
        self.listed == listed || (self.has_all && are_all_alike)
    }
}

/// What stays on a device between runs of one graph.
#[derive(Default)]
struct Cached {
    /// The graph's number.
    graph: u64,
    blocks: Option<ResidentGraph>,
    lists: Option<ResidentLists>,
}

impl Cached {
    fn of(&mut self, graph: &Graph) -> &mut Self {
        if self.graph != graph.number() {
            *self = Self { graph: graph.number(), ..Self::default() };
        }
        self
    }

    fn blocks_bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, ResidentGraph::bytes)
    }

    fn lists_bytes(&self) -> u64 {
        self.lists.as_ref().map_or(0, |resident| resident.lists.bytes())
    }
}

/// The cache of the one graph, by its number, that stays on a device between runs; clones share it.
#[derive(Clone, Default)]
pub(super) struct DeviceCache(Arc<Mutex<Cached>>);

impl DeviceCache {
    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached `file` of `graph` if it fits `room` bytes, without vertices' values if it does not
    /// with them; `None` if it does not fit or is not cached. Any other file is evicted.
    pub fn get(&self, graph: &Graph, file: BlockFile, room: u64) -> Option<ResidentGraph> {
        let mut cached = self.cached();
        let blocks = &mut cached.of(graph).blocks;
        *blocks = blocks.take().filter(|on_device| on_device.index.file == file);
        if let Some(on_device) = blocks.as_mut().filter(|on_device| on_device.bytes() > room) {
            on_device.vertices = Arc::default();
        }
        *blocks = blocks.take().filter(|on_device| on_device.bytes() <= room);
        blocks.clone()
    }

    /// The user's position of every vertex of `graph`; `None` if the device does not hold them.
    pub fn positions(&self, graph: &Graph) -> Option<Values> {
        let cached = self.cached();
        let blocks = cached.blocks.as_ref().filter(|_| cached.graph == graph.number());
        blocks?.vertices.positions()
    }

    /// Caches `graph`, all of whose blocks are on the device.
    pub fn insert(&self, graph: &Graph, on_device: &ResidentGraph) {
        debug_assert!(on_device.is_whole());
        self.cached().of(graph).blocks = Some(on_device.clone());
    }

    /// Bytes of the lists that stay beside a run over `graph`, which takes `needed` of `memory`. Lists that do
    /// not fit beside it are evicted.
    pub fn lists_beside(&self, graph: &Graph, needed: u64, memory: u64) -> u64 {
        let mut cached = self.cached();
        let cached = cached.of(graph);
        if cached.lists_bytes().saturating_add(needed) > memory {
            cached.lists = None;
        }
        cached.lists_bytes()
    }

    /// The cached lists of `graph` for `side` that have what is `listed`, if they fit `room` bytes; blocks that do not
    /// fit beside them are evicted.
    pub fn lists(
        &self,
        graph: &Graph,
        side: Side,
        listed: Listed,
        room: u64,
    ) -> Option<DeviceLists> {
        let mut cached = self.cached();
        let cached = cached.of(graph);
        let fits = cached.lists_bytes() <= room;
        let resident = cached
            .lists
            .as_ref()
            .filter(|resident| fits && resident.side == side && resident.are(listed))?;
        let lists = resident.lists.clone();
        if cached.blocks_bytes() > room - lists.bytes() {
            cached.blocks = None;
        }
        Some(lists)
    }

    /// Caches lists of `graph` in place of any others.
    pub fn insert_lists(&self, graph: &Graph, lists: ResidentLists) {
        self.cached().of(graph).lists = Some(lists);
    }

    /// Evicts the lists.
    pub fn evict_lists(&self) {
        self.cached().lists = None;
    }
}

impl fmt::Debug for DeviceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cached = self.cached();
        let (blocks, lists) = (cached.blocks_bytes(), cached.lists_bytes());
        write!(f, "DeviceCache({blocks} bytes of blocks, {lists} of lists)")
    }
}
