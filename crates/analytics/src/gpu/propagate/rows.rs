//! Rows: the values of each vertex side by side, in the user's order, in host or in device memory.

use std::borrow::Cow;
use std::ops::Range;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::Fold;
use tiergraph_gpu::{DeviceBuf, DevicePtr, DeviceView};
use tiergraph_graph::Graph;
use tiergraph_mem::zeroed_vec;

use crate::gpu::pass::Passes;
use crate::gpu::staging::{BUFFER_BYTES, PerVertex};
use crate::gpu::vertices::Order;
use crate::propagate::Value;

/// A range of columns of rows in device memory.
pub(super) struct ColumnsOf<T> {
    pub rows: DeviceView<T>,
    /// The number of values in a row.
    pub stride: usize,
    pub columns: Range<usize>,
}

/// The rows x (values to reduce) and y (results) of a call, in host memory or in device memory.
pub(super) trait Rows<T: Value> {
    /// Bytes of device memory that `columns` columns take beside their panels.
    fn bytes(&self, graph: &Graph, columns: usize) -> usize;

    /// Bytes of device memory that the order of vertices takes, where it must be on the device.
    fn order_bytes(&self, graph: &Graph) -> u64;

    /// The most columns that can be taken at once.
    fn most_columns(&self) -> usize;

    /// Makes room on the device for `columns` columns at a time.
    fn prepare(&mut self, passes: &Passes<'_, Fold<T>>, columns: usize) -> Result<()>;

    /// How values get from the user's order of vertices to the graph's.
    fn order(&mut self, passes: &Passes<'_, Fold<T>>) -> Result<Order>;

    /// Brings `columns` of x to device memory, and returns where they are.
    fn begin(
        &mut self,
        passes: &Passes<'_, Fold<T>>,
        order: &Order,
        columns: Range<usize>,
    ) -> Result<ColumnsOf<T>>;

    /// Where in device memory `columns` of y are to be written.
    fn target(&mut self, columns: Range<usize>) -> ColumnsOf<T>;

    /// Brings `columns` of y from there to their rows, once they are written.
    fn end(&mut self, passes: &Passes<'_, Fold<T>>, columns: Range<usize>) -> Result<()>;
}

/// Rows in host memory: columns pass through pinned buffers to rows allocated on the device.
pub(super) struct HostRows<'x, T: Value> {
    x: Cow<'x, [T]>,
    y: Vec<T>,
    width: usize,
    on_device: Option<DeviceBuf<T>>,
    /// Whether y is in the graph's order, from which the host moves it.
    is_moved: bool,
}

impl<'x, T: Value> HostRows<'x, T> {
    /// Rows of `width` values each: `x`, and y of zeros.
    pub fn new(x: &'x [T], width: usize) -> Self {
        let (x, y) = (Cow::Borrowed(x), zeroed_vec(x.len()));
        Self { x, y, width, on_device: None, is_moved: false }
    }

    /// The rows y, in the user's order.
    pub fn into_result(self, graph: &Graph) -> Result<Vec<T>> {
        if self.is_moved { graph.order().to_user(self.y, self.width) } else { Ok(self.y) }
    }

    /// The rows on the device, which `prepare` made.
    fn rows(&mut self) -> DeviceView<T> {
        self.on_device.as_mut().map_or(DeviceView::at(DevicePtr::NULL, 0), DeviceView::from)
    }
}

impl<T: Value> Rows<T> for HostRows<'_, T> {
    fn bytes(&self, graph: &Graph, columns: usize) -> usize {
        graph.vertices() * columns * size_of::<T>()
    }

    fn order_bytes(&self, _graph: &Graph) -> u64 {
        0
    }

    fn most_columns(&self) -> usize {
        BUFFER_BYTES / size_of::<T>()
    }

    fn prepare(&mut self, passes: &Passes<'_, Fold<T>>, columns: usize) -> Result<()> {
        let len = passes.graph.vertices() * columns;
        self.on_device = Some(DeviceBuf::new(passes.stream.device(), len)?);
        Ok(())
    }

    fn order(&mut self, passes: &Passes<'_, Fold<T>>) -> Result<Order> {
        let order = passes.order(0)?;
        if let Order::ByHost = order {
            self.x = Cow::Owned(passes.graph.order().from_user(&self.x, self.width)?);
            self.is_moved = true;
        }
        Ok(order)
    }

    fn begin(
        &mut self,
        passes: &Passes<'_, Fold<T>>,
        _order: &Order,
        columns: Range<usize>,
    ) -> Result<ColumnsOf<T>> {
        let target = self.target(columns.clone());
        let from = PerVertex { values: &*self.x, width: self.width };
        let to = PerVertex { values: target.rows, width: target.stride };
        passes.staging.upload(passes.graph.thread_pool(), from, to, |rows, to| {
            let rows = rows.chunks_exact(self.width).zip(to.chunks_exact_mut(columns.len()));
            rows.for_each(|(row, to)| to.copy_from_slice(&row[columns.clone()]));
        })?;
        Ok(target)
    }

    fn target(&mut self, columns: Range<usize>) -> ColumnsOf<T> {
        ColumnsOf { rows: self.rows(), stride: columns.len(), columns: 0..columns.len() }
    }

    fn end(&mut self, passes: &Passes<'_, Fold<T>>, columns: Range<usize>) -> Result<()> {
        let (width, stride) = (self.width, columns.len());
        let Some(from) = &self.on_device else { return Ok(()) };
        let from = PerVertex { values: from, width: stride };
        let to = PerVertex { values: &mut *self.y, width };
        passes.staging.download(passes.graph.thread_pool(), from, to, |from, rows| {
            let rows = rows.chunks_exact_mut(width).zip(from.chunks_exact(stride));
            rows.for_each(|(row, from)| row[columns.clone()].copy_from_slice(from));
        })
    }
}

/// Rows in device memory that the caller owns.
pub(super) struct DeviceRows<T> {
    x: DeviceView<T>,
    y: DeviceView<T>,
    width: usize,
}

impl<T: Value> DeviceRows<T> {
    /// Rows of `width` values each.
    pub fn new(x: DeviceView<T>, y: DeviceView<T>, width: usize) -> Self {
        Self { x, y, width }
    }
}

impl<T: Value> Rows<T> for DeviceRows<T> {
    fn bytes(&self, _graph: &Graph, _columns: usize) -> usize {
        0
    }

    fn order_bytes(&self, graph: &Graph) -> u64 {
        if graph.order().is_reordered() { graph.vertices() as u64 * 4 } else { 0 }
    }

    fn most_columns(&self) -> usize {
        self.width.next_power_of_two()
    }

    fn prepare(&mut self, _passes: &Passes<'_, Fold<T>>, _columns: usize) -> Result<()> {
        Ok(())
    }

    fn order(&mut self, passes: &Passes<'_, Fold<T>>) -> Result<Order> {
        match passes.order_on_device()? {
            Order::ByHost => Err(Error::new(ErrorKind::Device, "propagate values on the GPU")
                .expected("an order of vertices in 32-bit numbers")
                .got("one in 64-bit numbers")
                .hint("pass values in host memory")),
            order => Ok(order),
        }
    }

    fn begin(
        &mut self,
        _passes: &Passes<'_, Fold<T>>,
        _order: &Order,
        columns: Range<usize>,
    ) -> Result<ColumnsOf<T>> {
        Ok(ColumnsOf { rows: self.x, stride: self.width, columns })
    }

    fn target(&mut self, columns: Range<usize>) -> ColumnsOf<T> {
        ColumnsOf { rows: self.y, stride: self.width, columns }
    }

    fn end(&mut self, _passes: &Passes<'_, Fold<T>>, _columns: Range<usize>) -> Result<()> {
        Ok(())
    }
}
