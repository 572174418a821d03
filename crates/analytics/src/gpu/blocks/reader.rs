//! How blocks reach the device: through pinned host memory, or without it.

use std::ops::RangeInclusive;

use tiergraph_core::Result;
use tiergraph_gpu::kernels::Program;
use tiergraph_gpu::{CuFile, Device, PinnedPool};
use tiergraph_graph::{Graph, StagedReader, Then};

use super::direct::Direct;
use super::slots::Computing;
use super::tables::Tables;
use crate::gpu::Transfers;

/// Bytes of the host buffers of all lanes: of more, less would still be in the processor's cache when
/// it is copied, and both reading and copying would wait for memory.
const BUFFERS_BYTES: usize = 96 << 20;
/// As many where blocks come only once: locking memory takes longer than reading it.
const BUFFERS_ONCE_BYTES: usize = 64 << 20;
/// Host buffers a lane: some are being read into, some copied from.
const BUFFERS: RangeInclusive<usize> = 2..=16;

/// What brings blocks to slots.
pub(in crate::gpu) enum Reader {
    /// Reads into pinned memory, and copies.
    Staged(StagedReader),
    /// Reads into device memory.
    Direct(Direct),
}

impl Reader {
    /// A reader of a graph's blocks for `lanes`; whether each comes `once`.
    pub fn new(
        graph: &Graph,
        device: &Device,
        tables: &Tables,
        (transfers, lanes, once): (Transfers, usize, bool),
    ) -> Result<Self> {
        if transfers == Transfers::Direct {
            return Direct::open(graph, device, tables, lanes).map(Self::Direct);
        }
        let bytes = if once { BUFFERS_ONCE_BYTES } else { BUFFERS_BYTES };
        let (least, most) = BUFFERS.into_inner();
        let share = (bytes / (lanes * tables.block_bytes)).clamp(least, most);
        let mut buffers = PinnedPool::buffers(device, lanes * share, tables.block_bytes)?;
        let shares = (0..lanes).map(|_| buffers.split_off(buffers.len() - share)).collect();
        graph.staged_reader(shares).map(Self::Staged)
    }

    /// Which way it reads, if without host memory.
    pub fn direct(&self) -> Option<String> {
        match self {
            Self::Staged(_) => None,
            Self::Direct(direct) => Some(direct.how()),
        }
    }

    /// What slots are registered with.
    pub fn cufile(&self) -> Option<&'static CuFile> {
        match self {
            Self::Staged(_) => None,
            Self::Direct(direct) => Some(direct.cufile()),
        }
    }

    /// Hands `blocks` to `slots`, one of them a lane.
    pub fn pass<'a, P: Program>(
        &'a mut self,
        graph: &'a Graph,
        (tables, blocks): (&Tables, &[u32]),
        then: Then,
        slots: impl Iterator<Item = Computing<'a, P>>,
    ) -> Result<()> {
        match self {
            Self::Staged(reader) => {
                let mut stages: Vec<_> = slots.collect();
                reader.pass(graph, (tables.file, blocks), then, &mut stages)
            }
            // Nothing is read ahead of a pass: a lane's read fills its slot before it returns.
            Self::Direct(direct) => direct.pass(graph, blocks, slots),
        }
    }
}
