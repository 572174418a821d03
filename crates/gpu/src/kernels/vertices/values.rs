//! Launches of `values.cu`: values of vertices are set, moved between orders of vertices, and found.

use bytemuck::{Pod, bytes_of};
use tiergraph_core::Result;

use crate::kernels::{Source, TYPES};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, DeviceView, Grid, Kernel, Stream};

const THREADS: u32 = 256;

shared! {
    struct FillArguments as "Fill" {
        to: DevicePtr<u8>,
        value: u64,
        count: u64,
        value_bytes: u32,
    }
}

shared! {
    struct MoveArguments as "Move" {
        rows: DevicePtr<u8>,
        panel: DevicePtr<u8>,
        positions: DevicePtr<u32>,
        stride: u64,
        first: u32,
        columns: u32,
        vertices: u32,
        row_count: u32,
        width_log2: u32,
        value_bytes: u32,
    }
}

shared! {
    struct SearchArguments as "Search" {
        values: DevicePtr<u32>,
        found: DevicePtr<u32>,
        count: u32,
        value: u32,
    }
}

/// The columns of rows that a panel holds: rows are in the user's order of vertices, the panel in the
/// graph's.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// The row of each vertex; `None` if that is the vertex's number.
    pub positions: Option<&'a DeviceBuf<u32>>,
    /// How many vertices are moved, from the first on.
    pub vertices: usize,
    /// How many values a row has.
    pub stride: usize,
    /// The first column that the panel holds.
    pub first: usize,
    /// How many columns the panel holds.
    pub columns: usize,
    /// How many values the panel has room for at each vertex, a power of two: at least `columns`.
    pub width: usize,
}

impl Columns<'_> {
    /// The only column of rows of one value each.
    pub fn single(positions: Option<&DeviceBuf<u32>>, vertices: usize) -> Columns<'_> {
        Columns { positions, vertices, stride: 1, first: 0, columns: 1, width: 1 }
    }

    fn arguments<T: Pod>(&self, rows: DeviceView<T>, panel: &DeviceBuf<T>) -> MoveArguments {
        let Columns { positions, vertices, stride, first, columns, width } = *self;
        assert!(first + columns <= stride && columns <= width && width.is_power_of_two());
        assert!(panel.len() >= vertices * width, "{} values of {vertices} vertices", panel.len());
        assert!(positions.is_none_or(|positions| positions.len() >= vertices));
        MoveArguments {
            rows: rows.ptr().field(0),
            panel: panel.ptr().field(0),
            positions: positions.map_or(DevicePtr::NULL, DeviceBuf::ptr),
            stride: stride as u64,
            first: first as u32,
            columns: columns as u32,
            vertices: vertices as u32,
            row_count: (rows.len() / stride) as u32,
            width_log2: width.ilog2(),
            value_bytes: value_bytes::<T>() as u32,
        }
    }

    fn grid(&self) -> Grid {
        Grid::over(self.vertices * self.width, THREADS)
    }
}

/// The compiled kernels that set, move and find values of vertices.
#[derive(Debug, Clone)]
pub struct ValueKernels {
    fill: Kernel,
    panel_to_rows: Kernel,
    rows_to_panel: Kernel,
    find: Kernel,
}

pub(super) fn source() -> Source {
    Source::new("values", &[TYPES, include_str!("values.cu")])
        .sharing::<FillArguments>()
        .sharing::<MoveArguments>()
        .sharing::<SearchArguments>()
}

impl ValueKernels {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(device: &Device) -> Result<Self> {
        let module = source().compile(device)?;
        let kernel = |name| module.kernel(name);
        Ok(Self {
            fill: kernel("fill")?,
            panel_to_rows: kernel("panel_to_rows")?,
            rows_to_panel: kernel("rows_to_panel")?,
            find: kernel("find")?,
        })
    }

    /// Sets all values of `to` to `value`, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If values do not have 4 or 8 bytes.
    pub fn fill<T: Pod>(&self, stream: &Stream, to: &mut DeviceBuf<T>, value: T) -> Result<()> {
        let mut bits = [0; 8];
        bits[..value_bytes::<T>()].copy_from_slice(bytes_of(&value));
        let arguments = FillArguments {
            to: to.ptr().field(0),
            value: u64::from_le_bytes(bits),
            count: to.len() as u64,
            value_bytes: value_bytes::<T>() as u32,
        };
        let grid = Grid::over(to.len(), THREADS);
        // SAFETY: `Fill` of the source, inside the buffer; every bit pattern that `value` has is a `T`.
        unsafe { self.fill.launch(stream, grid, &[&arguments]) }
    }

    /// Writes a panel's values to their columns of `rows`, in order with the stream; vertices that have
    /// no row there are left out.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If values do not have 4 or 8 bytes, the panel or the positions are too short, or there are no
    /// such columns.
    pub fn panel_to_rows<T: Pod>(
        &self,
        stream: &Stream,
        columns: &Columns<'_>,
        panel: &DeviceBuf<T>,
        rows: DeviceView<T>,
    ) -> Result<()> {
        let arguments = columns.arguments(rows, panel);
        // SAFETY: `Move` of the source; lengths were checked; dropping a buffer waits.
        unsafe { self.panel_to_rows.launch(stream, columns.grid(), &[&arguments]) }
    }

    /// Fills a panel from its columns of `rows`, in order with the stream, and with zeros where `rows`
    /// has nothing.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// As [`panel_to_rows`](Self::panel_to_rows).
    pub fn rows_to_panel<T: Pod>(
        &self,
        stream: &Stream,
        columns: &Columns<'_>,
        rows: DeviceView<T>,
        panel: &mut DeviceBuf<T>,
    ) -> Result<()> {
        let arguments = columns.arguments(rows, panel);
        // SAFETY: as `panel_to_rows`.
        unsafe { self.rows_to_panel.launch(stream, columns.grid(), &[&arguments]) }
    }

    /// The index of `value` in `values`, which must all be different; `None` if it is not there. Waits
    /// for all work that was submitted to `stream`, the search included.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn find(
        &self,
        stream: &Stream,
        values: &DeviceBuf<u32>,
        value: u32,
    ) -> Result<Option<u32>> {
        let found = stream.uploaded(&[u32::MAX])?;
        let (values, count) = (values.ptr(), values.len() as u32);
        let arguments = SearchArguments { values, found: found.ptr(), count, value };
        let grid = Grid::over(count as usize, THREADS);
        // SAFETY: `Search` of the source, with the buffers' own lengths; `download` waits.
        unsafe { self.find.launch(stream, grid, &[&arguments])? };
        let found = stream.download(&found, 1)?[0];
        Ok((found != u32::MAX).then_some(found))
    }
}

fn value_bytes<T>() -> usize {
    assert!(matches!(size_of::<T>(), 4 | 8), "values of {} bytes", size_of::<T>());
    size_of::<T>()
}
