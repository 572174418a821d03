//! Panels: a few columns of all vertices' values, those of a vertex side by side for a single load.

use tiergraph_core::Result;
use tiergraph_gpu::kernels::{Columns, Fold, Operation, Panel, ValueKernels};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::Graph;

use super::rows::ColumnsOf;
use crate::edge_map::padded;
use crate::gpu::pass::zeroed;
use crate::gpu::vertices::Order;
use crate::propagate::{Reduce, Value};

/// Columns of all vertices' values on the device, in the graph's order of vertices.
pub(super) struct Panels<T> {
    panels: Vec<PanelBuffers<T>>,
    width: usize,
    vertices: usize,
    kernels: ValueKernels,
}

/// The values of a panel that are reduced (x), and the buffer that they are reduced to (y).
struct PanelBuffers<T> {
    x: DeviceBuf<T>,
    y: DeviceBuf<T>,
}

impl<T: Value> Panels<T> {
    /// Bytes of device memory that a panel takes.
    pub fn bytes(graph: &Graph, panel: Panel) -> usize {
        2 * padded(graph, graph.vertices()) * panel.width() * size_of::<T>()
    }

    /// Allocates `count` panels; x is zero.
    pub fn new(graph: &Graph, stream: &Stream, panel: Panel, count: usize) -> Result<Self> {
        let (device, width) = (stream.device(), panel.width());
        let len = padded(graph, graph.vertices()) * width;
        // What kernels see of padding is zero.
        let panel = |_| {
            Ok(PanelBuffers { x: zeroed(device, stream, len)?, y: DeviceBuf::new(device, len)? })
        };
        Ok(Self {
            panels: (0..count).map(panel).collect::<Result<_>>()?,
            width,
            vertices: graph.vertices(),
            kernels: ValueKernels::new(device)?,
        })
    }

    /// The number of columns that the panels hold together.
    pub fn columns(&self) -> usize {
        self.panels.len() * self.width
    }

    /// Fills x from the columns `from`, and y with the identity of the reduction.
    pub fn load(
        &mut self,
        stream: &Stream,
        order: &Order,
        from: ColumnsOf<T>,
        reduce: Reduce,
    ) -> Result<()> {
        for panel in 0..from.columns.len().div_ceil(self.width) {
            let columns = self.of_panel(order, panel, &from);
            let PanelBuffers { x, y } = &mut self.panels[panel];
            self.kernels.rows_to_panel(stream, &columns, from.rows, x)?;
            self.kernels.fill(stream, y, reduce.identity())?;
        }
        Ok(())
    }

    /// Writes y to the columns `to`.
    pub fn store(&self, stream: &Stream, order: &Order, to: ColumnsOf<T>) -> Result<()> {
        for panel in 0..to.columns.len().div_ceil(self.width) {
            let columns = self.of_panel(order, panel, &to);
            self.kernels.panel_to_rows(stream, &columns, &self.panels[panel].y, to.rows)?;
        }
        Ok(())
    }

    /// The part of the columns `of` that panel number `panel` holds.
    fn of_panel<'o>(&self, order: &'o Order, panel: usize, of: &ColumnsOf<T>) -> Columns<'o> {
        let first = of.columns.start + panel * self.width;
        Columns {
            positions: order.positions(),
            vertices: self.vertices,
            stride: of.stride,
            first,
            columns: self.width.min(of.columns.end - first),
            width: self.width,
        }
    }

    /// The programs that reduce so many columns, one for each panel.
    pub fn programs(&self, columns: usize, reduce: Reduce) -> Vec<Fold<T>> {
        let operation = match reduce {
            Reduce::Sum => Operation::Sum,
            Reduce::Min => Operation::Min,
            Reduce::Max => Operation::Max,
        };
        let program =
            |panel: &PanelBuffers<T>| Fold { x: panel.x.ptr(), y: panel.y.ptr(), operation };
        self.panels[..columns.div_ceil(self.width)].iter().map(program).collect()
    }
}
