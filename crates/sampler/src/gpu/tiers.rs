//! Placement of neighbours and rows in device memory and in pinned host memory.

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::features::FeatureType;
use tiergraph_gpu::kernels::{Lists, NOT_RESIDENT, Neighbors, RowType, Rows};
use tiergraph_gpu::{DeviceBuf, MappedMemory, Stream};
use tiergraph_graph::{Direction, Features, Graph};
use tiergraph_mem::Reservation;

use crate::residency::neighbors::Residency;
use crate::residency::offsets::Offsets;
use crate::residency::rows::RowStore;
use crate::residency::topology::Topology;

/// Bytes of rows that are read together before they are placed, if there is memory for them.
const PIECE_BYTES: u64 = 256 << 20;
/// The share of host memory, one part in so many, that is left for rows being read.
const PIECE_SHARE: u64 = 16;

/// The number of rows that fit host memory, beside those being read.
pub(super) fn host_rows(graph: &Graph, features: &Features) -> u64 {
    let (left, stride) = (graph.memory().budget().left(), features.row_bytes());
    let on_the_way = RowStore::bytes_of(1, graph.manifest().vertices, stride) + left / PIECE_SHARE;
    left.saturating_sub(on_the_way) / stride as u64
}

pub(super) fn too_small(needed: u64, memory: u64) -> Error {
    Error::new(ErrorKind::Budget, "load batches on the GPU")
        .expected(format!("{} of device memory for the sampler", ByteSize(needed)))
        .got(ByteSize(memory))
        .hint("use a larger `--device-memory`, smaller batches or fanouts, or `--device cpu`")
}

/// Places the neighbours in device memory if they take at most half of `left` bytes, else in host
/// memory; returns the reservation of the latter.
pub(super) fn lists(
    graph: &Graph,
    stream: &Stream,
    direction: Direction,
    left: u64,
) -> Result<(Lists, Option<Reservation>)> {
    let topology = Topology::open(graph, direction, &Residency::Decoded)?;
    let decoded = topology.decoded().unwrap_or(&[]);
    let offsets = match topology.offsets() {
        Offsets::Narrow(sums) => sums.iter().map(|&sum| u64::from(sum)).collect::<Vec<u64>>(),
        Offsets::Wide(sums) => sums.to_vec(),
    };
    let offsets = stream.uploaded(&offsets)?;
    let bytes = size_of_val(decoded);
    if bytes as u64 <= left / 2 {
        let neighbors = Neighbors::Device(stream.uploaded(decoded)?);
        return Ok((Lists { offsets, neighbors }, None));
    }
    let held = graph.memory().reserve(bytes as u64, "the neighbours in pinned memory")?;
    let mut mapped = MappedMemory::zeroed(stream.device(), bytes)?;
    mapped.bytes_mut()[..bytes].copy_from_slice(bytemuck::cast_slice(decoded));
    Ok((Lists { offsets, neighbors: Neighbors::Host(mapped) }, Some(held)))
}

pub(super) fn row_type(dtype: FeatureType) -> RowType {
    match dtype {
        FeatureType::F32 => RowType::F32,
        FeatureType::F16 => RowType::F16,
        FeatureType::Int8 => RowType::Int8,
    }
}

/// Places the rows of the vertices `hot` in device memory, and those of `warm` in host memory; the
/// others stay on storage.
pub(super) fn rows(
    graph: &Graph,
    stream: &Stream,
    features: &Features,
    hot: &[u32],
    warm: &[u32],
) -> Result<(Rows, Reservation)> {
    let stride = features.row_bytes();
    let mut location = vec![NOT_RESIDENT; graph.vertices()];
    let mut device = DeviceBuf::new(stream.device(), hot.len() * stride)?;
    each_piece(graph, features, hot, |first, vertices, bytes| {
        vertices.iter().zip(first as u32..).for_each(|(&v, at)| location[v as usize] = at);
        stream.upload_at(&mut device, first * stride, bytes)
    })?;
    let bytes = (warm.len() * stride) as u64;
    let held = graph.memory().reserve(bytes, "feature rows in pinned memory")?;
    let mut host = MappedMemory::zeroed(stream.device(), bytes as usize)?;
    each_piece(graph, features, warm, |first, vertices, bytes| {
        let begin = (hot.len() + first) as u32;
        vertices.iter().zip(begin..).for_each(|(&v, at)| location[v as usize] = at);
        host.bytes_mut()[first * stride..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    })?;
    let rows = Rows {
        device,
        host: (!warm.is_empty()).then_some(host),
        location: Some(stream.uploaded(&location)?),
        device_count: hot.len() as u32,
        dim: features.dim() as u32,
        stride: stride as u32,
    };
    Ok((rows, held))
}

/// Reads the rows of `vertices` piece by piece: `visit(place of the first, vertices, bytes)`, in
/// ascending order of vertices inside a piece.
fn each_piece(
    graph: &Graph,
    features: &Features,
    vertices: &[u32],
    mut visit: impl FnMut(usize, &[u32], &[u8]) -> Result<()>,
) -> Result<()> {
    let set = RowStore::bytes_of(0, graph.manifest().vertices, features.row_bytes());
    let room = graph.memory().budget().left().saturating_sub(set).min(PIECE_BYTES);
    let per_piece = (room as usize / features.row_bytes()).max(1);
    for (number, piece) in vertices.chunks(per_piece).enumerate() {
        let mut sorted = piece.to_vec();
        sorted.sort_unstable();
        let store = RowStore::load(graph, features, sorted.iter().copied())?;
        visit(number * per_piece, &sorted, store.bytes())?;
    }
    Ok(())
}
