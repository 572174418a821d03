//! What brings the blocks that are not on the device.

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{EdgeMap, Program};
use tiergraph_gpu::{Device, DeviceBuf};
use tiergraph_graph::{Graph, Then};

use super::host::HostBlocks;
use super::reader::Reader;
use super::shape::Shape;
use super::slots::Slots;
use super::tables::Tables;
use crate::gpu::Transfers;
use crate::gpu::timeline::{Origin, Timeline};

/// A reader, the slots that it fills, and the blocks that it has in host memory.
pub(in crate::gpu) struct Bringing {
    reader: Reader,
    slots: Vec<Slots>,
    pub host: HostBlocks,
    is_ahead: bool,
}

impl Bringing {
    /// Bytes of device memory that it takes.
    pub fn device_bytes(shape: Shape, tables: &Tables) -> u64 {
        (shape.lanes * shape.slots * shape.batch) as u64 * tables.slot_bytes()
    }

    /// By `reader`, of a graph's blocks but those that `host` says.
    pub fn new(
        graph: &Graph,
        device: &Device,
        (transfers, shape, tables): (Transfers, Shape, &Tables),
        (reader, host): (Reader, HostBlocks),
    ) -> Result<Self> {
        // One block after the other means that nothing is read ahead.
        let is_ahead = transfers != Transfers::Synchronous;
        let how = (reader.cufile(), !is_ahead);
        let slots =
            |lane| Slots::new(device, shape, tables, how, Timeline::new(graph.trace(), lane));
        let slots = (0..shape.lanes).map(slots).collect::<Result<_>>()?;
        Ok(Self { reader, slots, host, is_ahead })
    }

    /// Which way direct reads go.
    pub fn direct(&self) -> Option<String> {
        let unregistered = self.slots.iter().find_map(Slots::unregistered);
        let slots = unregistered.map_or_else(String::new, |why| format!("; {why}"));
        self.reader.direct().map(|how| format!("{how}{slots}"))
    }

    /// Runs `programs` over `blocks`, and waits.
    pub fn run<P: Program>(
        &mut self,
        graph: &Graph,
        (tables, blocks): (&Tables, &[u32]),
        (kernel, programs, active): (&EdgeMap<P>, &[P], Option<&DeviceBuf<u8>>),
        then: Then,
    ) -> Result<()> {
        let then = if self.is_ahead { then } else { Then::Stop };
        let slots = self.slots.iter_mut().map(|s| s.stage(tables, kernel, programs, active));
        self.reader.pass(graph, (tables, blocks), then, slots)?;
        self.slots.iter().try_for_each(Slots::synchronize)
    }

    /// Tells a run's trace when the slots did what.
    pub fn tell(&mut self, origin: Option<&Origin>) -> Result<()> {
        self.slots.iter_mut().try_for_each(|slots| slots.timeline().tell(origin))
    }
}
