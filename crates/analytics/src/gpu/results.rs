//! Results of passes, brought from the graph's order of vertices to the user's.

use bytemuck::Pod;
use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Columns, Program, ValueKernels};
use tiergraph_gpu::{DeviceBuf, DeviceView};
use tiergraph_mem::zeroed_vec;

use super::pass::Passes;
use super::staging::PerVertex;
use super::vertices::{Order, Values};

impl<P: Program> Passes<'_, P> {
    /// The out-degree of each vertex, on the device.
    pub fn degrees(&self) -> Result<Values> {
        self.on_device.vertices.degrees(self.graph, &self.stream)
    }

    /// How values get to the user's order, if that takes `value_bytes` of device memory a vertex beside
    /// the order. The device has the order only of graphs that are there whole.
    pub fn order(&self, value_bytes: usize) -> Result<Order> {
        if !self.graph.order().is_reordered() {
            return Ok(Order::Same);
        }
        if !self.on_device.is_whole() {
            return Ok(Order::ByHost);
        }
        let left = self.left.saturating_sub(self.on_device.bytes_beside_index());
        let room = left.min(self.stream.device().memory()?.free);
        match room.checked_sub((self.graph.vertices() * value_bytes) as u64) {
            Some(room) => self.on_device.vertices.order(self.graph, &self.stream, room),
            None => Ok(Order::ByHost),
        }
    }

    /// How values that stay on the device get to the user's order: the device moves them, whether it
    /// holds the graph whole or in part, unless kernels do not take the ids of its order.
    pub fn order_on_device(&self) -> Result<Order> {
        if !self.graph.order().is_reordered() {
            return Ok(Order::Same);
        }
        self.on_device.vertices.upload_order(self.graph, &self.stream)
    }

    /// The values of all vertices in the user's order: the first `count` have `values`, others `rest`.
    pub fn to_user_order<T: Pod + Send + Sync>(
        &self,
        values: &DeviceBuf<T>,
        count: usize,
        rest: T,
    ) -> Result<Vec<T>> {
        let (graph, stream, vertices) = (self.graph, &self.stream, self.graph.vertices());
        let mut out = zeroed_vec(vertices);
        let Order::ByDevice(positions) = self.order(size_of::<T>())? else {
            self.download_to(values, &mut out[..count])?;
            out[count..].fill(rest);
            return graph.order().to_user(out, 1);
        };
        let (kernels, mut ordered) =
            (ValueKernels::new(stream.device())?, DeviceBuf::new(stream.device(), vertices)?);
        if count < vertices {
            kernels.fill(stream, &mut ordered, rest)?;
        }
        let columns = Columns::single(Some(&positions), count);
        kernels.panel_to_rows(stream, &columns, values, DeviceView::from(&mut ordered))?;
        self.download_to(&ordered, &mut out)?;
        Ok(out)
    }

    /// Downloads the first `count` of `values`.
    pub fn download<T: Pod + Send + Sync>(
        &self,
        values: &DeviceBuf<T>,
        count: usize,
    ) -> Result<Vec<T>> {
        let mut out = zeroed_vec(count);
        self.download_to(values, &mut out)?;
        Ok(out)
    }

    fn download_to<T: Pod + Send + Sync>(&self, from: &DeviceBuf<T>, to: &mut [T]) -> Result<()> {
        self.stream.synchronize()?;
        let from = PerVertex { values: from, width: 1 };
        let to = PerVertex { values: to, width: 1 };
        self.staging.download(self.graph.thread_pool(), from, to, |from, to: &mut [T]| {
            to.copy_from_slice(from);
        })
    }
}
