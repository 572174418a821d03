//! Placement of rows in device memory and in pinned host memory.

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};
use tiergraph_format::features::FeatureType;
use tiergraph_gpu::kernels::{HostRows, NOT_RESIDENT, RowType, Rows};
use tiergraph_gpu::{DeviceBuf, MappedMemory, Stream};
use tiergraph_graph::{Features, Graph};
use tiergraph_mem::Reservation;

use crate::residency::rows::RowStore;

/// Bytes of rows that are read together before they are placed, if there is memory for them.
const PIECE_BYTES: u64 = 256 << 20;
/// The share of host memory, one part in so many, that is left for rows being read.
const PIECE_SHARE: u64 = 16;

/// The number of rows of `stride` bytes, of so many vertices, that fit `left` bytes of host memory beside
/// those being read.
pub(super) fn host_rows(vertices: u64, stride: u64, left: u64) -> u64 {
    let on_the_way = RowStore::bytes_of(1, vertices, stride as usize) + left / PIECE_SHARE;
    left.saturating_sub(on_the_way) / stride
}

pub(super) fn too_small(needed: u64, memory: u64) -> Error {
    Error::new(ErrorKind::Budget, "load batches on the GPU")
        .expected(format!("{} of device memory for the sampler", ByteSize(needed)))
        .got(ByteSize(memory))
        .hint("use a larger `--device-memory`, smaller batches or fanouts, or `--device cpu`")
}

/// The error of lists that fit neither memory.
pub(super) fn lists_too_large(lists: u64, device: u64, host: u64) -> Error {
    Error::new(ErrorKind::Budget, "load batches on the GPU")
        .expected(format!("{} of device and host memory for the neighbours", ByteSize(lists)))
        .got(format!("{} and {}", ByteSize(device), ByteSize(host)))
        .hint("use a larger `--device-memory` or `--memory`, or `--device cpu`")
}

pub(super) fn row_type(dtype: FeatureType) -> RowType {
    match dtype {
        FeatureType::F32 => RowType::F32,
        FeatureType::F16 => RowType::F16,
        FeatureType::Int8 => RowType::Int8,
    }
}

/// Places the rows of the vertices `hot` in device memory, and those of `warm` in host memory; the
/// others stay on storage. Batches have at most so many `nodes`.
pub(super) fn rows(
    graph: &Graph,
    stream: &Stream,
    features: &Features,
    (hot, warm): (&[u32], &[u32]),
    nodes: usize,
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
    let host = match warm.is_empty() {
        true => None,
        false => Some(HostRows::new(stream.device(), host, nodes)?),
    };
    let rows = Rows {
        device,
        host,
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
