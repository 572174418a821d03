//! Neighbour lists in device memory, in pinned host memory, or each in one of them.

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Neighbors, SplitLists};
use tiergraph_gpu::{DeviceBuf, MappedMemory, Stream};
use tiergraph_graph::{Direction, Graph};
use tiergraph_mem::Reservation;

use crate::residency::neighbors::Residency;
use crate::residency::offsets::Offsets;
use crate::residency::topology::Topology;

/// Neighbours that are copied to device memory together.
const PIECE: usize = 1 << 20;

/// All neighbour lists of a graph in the host's memory, from which they are placed.
pub(super) struct DecodedLists {
    topology: Topology,
    /// The index of each vertex's first neighbour, and the number of all neighbours.
    offsets: Vec<u64>,
}

impl DecodedLists {
    /// Reads the lists of `graph` in one direction.
    pub fn open(graph: &Graph, direction: Direction) -> Result<Self> {
        let topology = Topology::open(graph, direction, &Residency::Decoded)?;
        let offsets = match topology.offsets() {
            Offsets::Narrow(sums) => sums.iter().map(|&sum| u64::from(sum)).collect(),
            Offsets::Wide(sums) => sums.to_vec(),
        };
        Ok(Self { topology, offsets })
    }

    /// The index of each vertex's first neighbour, and the number of all neighbours.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Bytes of all lists.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.neighbors()) as u64
    }

    /// The number of neighbours of `vertex`.
    pub fn degree(&self, vertex: u32) -> u64 {
        self.offsets[vertex as usize + 1] - self.offsets[vertex as usize]
    }

    fn neighbors(&self) -> &[u32] {
        self.topology.decoded().unwrap_or(&[])
    }

    fn list(&self, vertex: u32) -> &[u32] {
        let [begin, end] = [vertex as usize, vertex as usize + 1].map(|v| self.offsets[v] as usize);
        &self.neighbors()[begin..end]
    }

    /// Copies all lists to device memory.
    pub fn on_device(&self, stream: &Stream) -> Result<Neighbors> {
        Ok(Neighbors::Device(stream.uploaded(self.neighbors())?))
    }

    /// Copies all lists to pinned host memory, which is reserved.
    pub fn on_host(&self, graph: &Graph, stream: &Stream) -> Result<(Neighbors, Reservation)> {
        let (mut mapped, held) = pinned(graph, stream, self.bytes())?;
        let bytes: &[u8] = bytemuck::cast_slice(self.neighbors());
        mapped.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok((Neighbors::Host(mapped), held))
    }

    /// Copies the lists of the vertices for which `is_on_device` is set to device memory, and the others
    /// to pinned host memory, which is reserved.
    pub fn split(
        &self,
        graph: &Graph,
        stream: &Stream,
        is_on_device: &[bool],
    ) -> Result<(Neighbors, Reservation)> {
        let vertices = || (0..is_on_device.len() as u32).zip(is_on_device);
        let on_device: u64 =
            vertices().filter(|&(_, &here)| here).map(|(v, _)| self.degree(v)).sum();
        let mut location = vec![0u64; is_on_device.len()];
        let mut device = DeviceBuf::new(stream.device(), on_device as usize)?;
        let (mut mapped, held) =
            pinned(graph, stream, self.bytes() - on_device * size_of::<u32>() as u64)?;
        let (mut piece, mut copied, mut host) = (Vec::new(), 0, 0);
        for (vertex, &here) in vertices() {
            let list = self.list(vertex);
            if here {
                location[vertex as usize] = (copied + piece.len()) as u64;
                piece.extend_from_slice(list);
            } else {
                location[vertex as usize] = on_device + host as u64;
                let bytes: &[u8] = bytemuck::cast_slice(list);
                mapped.bytes_mut()[host * size_of::<u32>()..][..bytes.len()].copy_from_slice(bytes);
                host += list.len();
            }
            if piece.len() >= PIECE {
                stream.upload_at(&mut device, copied, &piece)?;
                copied += piece.len();
                piece.clear();
            }
        }
        stream.upload_at(&mut device, copied, &piece)?;
        let location = stream.uploaded(&location)?;
        Ok((Neighbors::Split(SplitLists { device, host: mapped, location }), held))
    }
}

/// Pinned host memory of `bytes` for lists, and its reservation.
fn pinned(graph: &Graph, stream: &Stream, bytes: u64) -> Result<(MappedMemory, Reservation)> {
    let held = graph.memory().reserve(bytes, "the neighbours in pinned memory")?;
    Ok((MappedMemory::zeroed(stream.device(), bytes as usize)?, held))
}
