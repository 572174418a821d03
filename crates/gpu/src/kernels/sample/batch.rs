//! The neighbour lists that a sampler draws from, the requests that it takes, and the batches that come.

use bytemuck::Pod;

use crate::kernels::StoredLists;
use crate::shared::shared;
use crate::{DeviceBuf, DeviceView, MappedMemory};

/// The neighbours of all vertices, list after list, in memory that kernels read.
#[derive(Debug)]
pub enum Neighbors {
    /// Lists in device memory.
    Device(DeviceBuf<u32>),
    /// Lists in pinned host memory, which kernels read over the link.
    Host(MappedMemory),
    /// Each list in device memory, in pinned host memory, or on storage, whole.
    Split(SplitLists),
}

/// Neighbour lists of which each lies in device memory, in pinned host memory, or on storage.
#[derive(Debug)]
pub struct SplitLists {
    /// The lists in device memory, one after the other.
    pub device: DeviceBuf<u32>,
    /// The lists in pinned host memory, one after the other.
    pub host: MappedMemory,
    /// The location of each vertex's list: the index of its first neighbour in `device`; or the length
    /// of `device` plus that index in `host`; or [`LIST_NOT_RESIDENT`].
    pub location: DeviceBuf<u64>,
}

/// The location of a list that is in neither memory, but on storage.
pub const LIST_NOT_RESIDENT: u64 = u64::MAX;

/// A graph's neighbour lists: the neighbours of vertex v are `neighbors[offsets[v]..offsets[v + 1]]`.
#[derive(Debug)]
pub struct Lists {
    /// |V| + 1 offsets: the index in `neighbors` at which each vertex's list begins, then the number of
    /// all neighbours.
    pub offsets: DeviceBuf<u64>,
    /// The lists of all vertices; one after the other, where all are in one memory.
    pub neighbors: Neighbors,
    /// The lists on storage; `None` where none may be there.
    pub stored: Option<StoredLists<'static>>,
}

shared! {
    /// How often a list was drawn from, and what that costs wherever it is not in device memory.
    #[derive(Debug, Default, PartialEq, Eq, Pod)]
    pub struct ListUse as "ListUse" {
        /// Transactions over PCIe, were the list in host memory.
        pub lines: u64,
        /// Reads of pages, were the list on storage; 0 in a graph that has none there.
        pub pages: u64,
        /// How often it was drawn from.
        pub draws: u64,
    }
}

/// A batch to be sampled.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The seeds, as the graph numbers them.
    pub seeds: &'a [u32],
    /// The place of each seed in the caller's list, to be exported with the batch; empty for none.
    pub places: &'a [u32],
    /// For each hop, the most neighbours that a node takes; `u32::MAX` for all.
    pub fanouts: &'a [u32],
    /// The key of the epoch's random draws.
    pub key: [u32; 2],
    /// The batch's number in its epoch.
    pub batch: u32,
    /// One count per vertex, to which is added whenever its list is drawn from, wherever the list is;
    /// `None` to count nothing. Pages are counted where lists may be on storage.
    pub by_list: Option<&'a DeviceBuf<ListUse>>,
    /// Two counts, its first values: to one [`list_transactions`] is added for each list that is drawn
    /// from in host memory, to the other the pages of each on storage, as if no two lists shared one;
    /// `None` to count nothing.
    pub from_host: Option<&'a DeviceBuf<u64>>,
}

/// Bytes that one transaction over the link to the host brings: a line of the GPU's caches, which is what
/// a warp's loads side by side are joined to (CUDA C++ Programming Guide, on global memory).
pub const LINE_BYTES: u64 = 128;

/// The transactions of drawing up to `fanout` of the `degree` neighbours of a list in host memory.
///
/// A thread loads single neighbours at drawn positions: one transaction each, and no more than the list
/// has lines, because a list is expanded by one thread whose lines stay in its cache meanwhile. The
/// paper's ⌈H × N / CLS⌉ (Hyperion, §III-B2) counts all lines of the list, whatever is drawn.
pub fn list_transactions(degree: u64, fanout: u32) -> u64 {
    (degree * size_of::<u32>() as u64).div_ceil(LINE_BYTES).min(degree.min(fanout.into()))
}

/// The sizes of a sampled batch. Its arrays stay in the [`Sampler`](super::Sampler) until the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampled {
    /// How many seeds there are, then how many new nodes each hop found.
    pub num_sampled_nodes: Vec<usize>,
    /// How many edges each hop sampled.
    pub num_sampled_edges: Vec<usize>,
}

impl Sampled {
    /// How many nodes the batch has.
    pub fn nodes(&self) -> usize {
        self.num_sampled_nodes.iter().sum()
    }

    /// How many edges the batch has.
    pub fn edges(&self) -> usize {
        self.num_sampled_edges.iter().sum()
    }
}

/// The device arrays that a batch is exported to, in the types that PyG takes.
#[derive(Debug)]
pub struct BatchOutputs<'a> {
    /// Each vertex's position in the user's order; `None` if that is the vertex's number.
    pub positions: Option<&'a DeviceBuf<u32>>,
    /// Becomes each node's position in the user's order.
    pub nodes: DeviceView<i64>,
    /// Where each vertex's list begins, and what becomes each node's number of neighbours; `None` if that is
    /// not wanted.
    pub degree: Option<(&'a DeviceBuf<u64>, DeviceView<i64>)>,
    /// Becomes the sources of all edges and then their destinations, as indices among the nodes.
    pub edge_index: DeviceView<i64>,
    /// Becomes the number of each edge's arc.
    pub e_id: DeviceView<i64>,
    /// Becomes the place of each seed in the caller's list; empty if those were not given.
    pub input_id: DeviceView<i64>,
}
