//! The neighbour lists that a sampler draws from, the requests that it takes, and the batches that come.

use crate::{DeviceBuf, DevicePtr, DeviceView, MappedMemory};

/// The neighbours of all vertices, list after list, in memory that kernels read.
#[derive(Debug)]
pub enum Neighbors {
    /// Lists in device memory.
    Device(DeviceBuf<u32>),
    /// Lists in pinned host memory, which kernels read over the link.
    Host(MappedMemory),
}

impl Neighbors {
    pub(super) fn ptr(&self) -> DevicePtr<u32> {
        match self {
            Self::Device(neighbors) => neighbors.ptr(),
            Self::Host(neighbors) => neighbors.ptr(),
        }
    }
}

/// A graph's neighbour lists: the neighbours of vertex v are `neighbors[offsets[v]..offsets[v + 1]]`.
#[derive(Debug)]
pub struct Lists {
    /// |V| + 1 offsets: the index in `neighbors` at which each vertex's list begins, then the number of
    /// all neighbours.
    pub offsets: DeviceBuf<u64>,
    /// The lists of all vertices, one after the other.
    pub neighbors: Neighbors,
}

/// A batch to be sampled.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The seeds, as the graph numbers them.
    pub seeds: &'a [u32],
    /// For each hop, the most neighbours that a node takes; `u32::MAX` for all.
    pub fanouts: &'a [u32],
    /// The key of the epoch's random draws.
    pub key: [u32; 2],
    /// The batch's number in its epoch.
    pub batch: u32,
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
    /// Becomes the sources of all edges and then their destinations, as indices among the nodes.
    pub edge_index: DeviceView<i64>,
    /// Becomes the number of each edge's arc.
    pub e_id: DeviceView<i64>,
}
