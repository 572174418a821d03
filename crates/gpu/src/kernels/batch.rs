//! What is sampled from, what is asked for, and what comes of it.

use crate::{DeviceBuf, DevicePtr, Mapped, Span};

/// The neighbours of all vertices.
#[derive(Debug)]
pub enum Neighbors {
    /// Neighbours in device memory.
    Device(DeviceBuf<u32>),
    /// Neighbours in host memory that kernels read.
    Host(Mapped),
}

impl Neighbors {
    pub(super) fn ptr(&self) -> DevicePtr<u32> {
        match self {
            Self::Device(neighbors) => neighbors.ptr(),
            Self::Host(neighbors) => neighbors.ptr(),
        }
    }
}

/// A graph's lists: those of vertex v at `offsets[v]..offsets[v + 1]`.
#[derive(Debug)]
pub struct Lists {
    /// Where each vertex's list begins in `neighbors`, and behind the last one where it ends: |V| + 1.
    pub offsets: DeviceBuf<u64>,
    /// The lists of all vertices, one after the other.
    pub neighbors: Neighbors,
}

/// What to sample.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The seeds, as the graph numbers them.
    pub seeds: &'a [u32],
    /// The most neighbours of each hop; `u32::MAX` for all.
    pub fanouts: &'a [u32],
    /// The epoch's key.
    pub key: [u32; 2],
    /// The batch's number in its epoch.
    pub batch: u32,
}

/// A sampled batch's sizes; its arrays are in the [`Sampler`] until the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Seeds, then the new nodes of each hop.
    pub num_sampled_nodes: Vec<usize>,
    /// Edges of each hop.
    pub num_sampled_edges: Vec<usize>,
}

impl Sampled {
    /// The batch's nodes.
    pub fn nodes(&self) -> usize {
        self.num_sampled_nodes.iter().sum()
    }

    /// The batch's edges.
    pub fn edges(&self) -> usize {
        self.num_sampled_edges.iter().sum()
    }
}

/// Where a batch is written to, as PyG takes it.
#[derive(Debug)]
pub struct BatchOutputs<'a> {
    /// Each vertex's position in the user's order; without, it is the vertex's number.
    pub positions: Option<&'a DeviceBuf<u32>>,
    /// Room for each node's position in the user's order.
    pub nodes: Span<i64>,
    /// Room for the edges' sources and then their destinations, as places among the nodes.
    pub edge_index: Span<i64>,
    /// Room for the number of each edge's arc.
    pub e_id: Span<i64>,
}
