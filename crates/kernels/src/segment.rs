//! The safe face of the inner loops: lengths checked, instruction set chosen, damage reported.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::tiles::{STRIP_ROWS, Segment, TileOptions, WeightKind, for_each_step};

use crate::{Isa, scalar};

/// Vertex state that a tile of edges stored once reads and adds to.
#[derive(Debug)]
pub struct SymmetricState<'a> {
    /// Values of the tile's columns, as many as a tile has.
    pub x_columns: &'a [f32],
    /// Values of the strip's rows, 65,536.
    pub x_rows: &'a [f32],
    /// Sums of the strip's rows, 65,536.
    pub y_rows: &'a mut [f32],
    /// Sums of the tile's columns, as many as a tile has.
    pub y_columns: &'a mut [f32],
}

/// The loops for one file's tiles.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    options: TileOptions,
    isa: Isa,
}

impl Kernel {
    /// Loops for tiles with these options.
    pub fn new(options: TileOptions, isa: Isa) -> Self {
        Self { options, isa }
    }

    /// What the tiles are like.
    pub fn options(&self) -> &TileOptions {
        &self.options
    }

    /// `y[row] += Σ x[column]` over the arcs of `segment`.
    ///
    /// `x` has a value for each column of the tile, `y` 65,536 rows of the strip. Additions of one
    /// row go from low to high columns, 32 partial sums at a time.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    pub fn sum_rows(&self, segment: &Segment<'_>, x: &[f32], y: &mut [f32]) -> Result<()> {
        let x = &x[..self.options.columns()];
        let y = &mut y[..STRIP_ROWS];
        let whole = match self.isa {
            Isa::Scalar => scalar::sum_rows(segment, &self.options, x, y),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::detect` saw the features; `x` and `y` have the lengths that masks keep
            // columns and rows below.
            Isa::Avx512 => unsafe {
                crate::avx512::walk(segment, &self.options, &mut crate::avx512::SumRows { x, y })
            },
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512 => scalar::sum_rows(segment, &self.options, x, y),
        };
        whole.then_some(()).ok_or_else(damaged)
    }

    /// Both directions of undirected edges that are stored once. A self-loop counts once.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    pub fn sum_both(&self, segment: &Segment<'_>, state: &mut SymmetricState<'_>) -> Result<()> {
        let state = &mut SymmetricState {
            x_columns: &state.x_columns[..self.options.columns()],
            x_rows: &state.x_rows[..STRIP_ROWS],
            y_rows: &mut state.y_rows[..STRIP_ROWS],
            y_columns: &mut state.y_columns[..self.options.columns()],
        };
        let diagonal = segment.row_base as i64 - segment.column_base as i64;
        let meets = diagonal < self.options.columns() as i64
            && diagonal + i64::from(segment.rows) > 0;
        let whole = match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as in `sum_rows`, for all four slices.
            Isa::Avx512 if !meets => unsafe {
                let mut visit = crate::avx512::SumBoth {
                    x_columns: state.x_columns,
                    x_rows: state.x_rows,
                    y_rows: state.y_rows,
                    y_columns: state.y_columns,
                };
                crate::avx512::walk(segment, &self.options, &mut visit)
            },
            _ => scalar::sum_both(segment, &self.options, state, diagonal),
        };
        whole.then_some(()).ok_or_else(damaged)
    }

    /// Calls `visit(rows, columns)` for every step of at most 32 arcs: rows in the strip, columns
    /// in the tile, of equal length.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    pub fn for_each(
        &self,
        segment: &Segment<'_>,
        mut visit: impl FnMut(&[u32], &[u32]),
    ) -> Result<()> {
        let whole = match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Isa::detect` saw the features.
            Isa::Avx512 => unsafe {
                crate::avx512::walk(segment, &self.options, &mut crate::avx512::Emit(visit))
            },
            _ => for_each_step(segment, &self.options, |s| visit(s.rows, s.columns)).is_some(),
        };
        whole.then_some(()).ok_or_else(damaged)
    }

    /// Calls `visit(rows, columns, weights)` for every step; weights are empty in a file without.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    pub fn for_each_weighted(
        &self,
        segment: &Segment<'_>,
        mut visit: impl FnMut(&[u32], &[u32], &[f64]),
    ) -> Result<()> {
        if self.options.weights == WeightKind::None {
            return self.for_each(segment, |rows, columns| visit(rows, columns, &[]));
        }
        for_each_step(segment, &self.options, |s| visit(s.rows, s.columns, s.weights))
            .ok_or_else(damaged)
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Format, "decode a tile")
        .expected("groups that fill their segment")
        .got("bytes that run out early")
        .hint("tiergraph verify GRAPH")
}
