//! The safe face of the inner loops: lengths checked, instruction set chosen, damage reported.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::tiles::{STRIP_ROWS, Segment, TileOptions};

use crate::lanes::Portable;
use crate::sum::{InOrder, OfRows, Place, SumBoth, SumRows, Sums, most_of_short};
use crate::take::{Unpack, Visit};
use crate::walk::walk;
use crate::{Isa, Slice, SymmetricState, SymmetricStrip};

/// The segments of sparse tiles have less than one byte for so many columns, about one arc for five.
const SPARSE: usize = 2;

/// The inner loops over the tiles of one file, on one instruction set.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    options: TileOptions,
    isa: Isa,
}

impl Kernel {
    /// The loops over tiles of these options, for an instruction set that this CPU has.
    ///
    /// # Panics
    /// If the CPU does not have `isa`.
    pub fn new(options: TileOptions, isa: Isa) -> Self {
        assert!(isa.is_available(), "this CPU has no {isa}");
        Self { options, isa }
    }

    /// The options that the tiles were encoded with.
    pub fn options(&self) -> &TileOptions {
        &self.options
    }

    /// Unpacks `segment` and hands each of its slices to `visit`.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    #[inline]
    pub fn for_each(&self, segment: &Segment<'_>, visit: impl FnMut(&Slice<'_>)) -> Result<()> {
        self.walk(segment, visit)
    }

    #[inline]
    fn walk(&self, segment: &Segment<'_>, visit: impl Visit) -> Result<()> {
        let whole = match self.isa {
            // SAFETY: portable code needs no features.
            Isa::Portable => unsafe {
                walk::<Portable>(segment, &self.options, Unpack::new(visit))
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` saw that the CPU has them.
            Isa::Avx2 => unsafe { x86::walk_avx2(segment, &self.options, visit) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `new` saw that the CPU has them.
            Isa::Avx512 | Isa::Avx512Gather => unsafe {
                x86::walk_avx512(segment, &self.options, visit)
            },
        };
        whole.then_some(()).ok_or_else(damaged)
    }

    /// Sums the rows of every slice; `sums` has a value for each column.
    fn sum(&self, segment: &Segment<'_>, sums: &mut SumRows<'_, impl Sums>) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if self.isa == Isa::Avx512Gather {
            // SAFETY: `new` saw that the CPU has them.
            let whole = unsafe { x86::gather_avx512(segment, &self.options, sums) };
            return whole.then_some(()).ok_or_else(damaged);
        }
        self.walk(segment, sums)
    }

    /// `y[row] += Σ x[column]` over the arcs of `segment`.
    ///
    /// `x` has a value for each column of the tile, `y` one for each of 65,536 rows. A row's values
    /// are added from its lowest column to its highest, in parts of a few thousand.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    ///
    /// # Panics
    /// If `x` or `y` is shorter.
    pub fn sum_rows(&self, segment: &Segment<'_>, x: &[f32], y: &mut [f64]) -> Result<()> {
        let x = &x[..self.options.columns()];
        let y = OfRows(&mut y[..STRIP_ROWS]);
        self.sum(segment, &mut SumRows { x, y })
    }

    /// Writes the sums that [`sum_rows`](Self::sum_rows) adds to rows to `sums` instead: one for each
    /// row of each [`Slice`], in the order in which [`for_each`](Self::for_each) hands slices on.
    ///
    /// # Errors
    /// A segment whose bytes do not add up, or that has not as many rows of slices as `sums` is long.
    ///
    /// # Panics
    /// If `x` is shorter than a tile's columns.
    pub fn sum_slice_rows(&self, segment: &Segment<'_>, x: &[f32], sums: &mut [f32]) -> Result<()> {
        let expected = sums.len();
        let x = &x[..self.options.columns()];
        let mut visit = SumRows { x, y: InOrder { sums, count: 0 } };
        self.sum(segment, &mut visit)?;
        (visit.y.count == expected).then_some(()).ok_or_else(damaged)
    }

    /// Adds values along both directions of undirected edges that are stored once:
    /// a column's value to the sum of its row, and a row's to that of its column. A self-loop counts
    /// once. The `segments` have the same columns, each with the index of its strip in `state`.
    ///
    /// # Errors
    /// A segment whose bytes do not add up.
    ///
    /// # Panics
    /// If `state` has too few columns, or a strip's index is not below their number.
    pub fn sum_both<'a, S: AsMut<SymmetricStrip>>(
        &self,
        segments: impl IntoIterator<Item = (&'a Segment<'a>, usize)>,
        state: SymmetricState<'_, S>,
    ) -> Result<()> {
        let columns = self.options.columns();
        let SymmetricState { x_columns, y_columns, strips } = state;
        let (x_columns, y_columns) = (&x_columns[..columns], &mut y_columns[..columns]);
        let state = SymmetricState { x_columns, y_columns, strips };
        let mut sums = SumBoth::new(state, most_of_short(&self.options));
        for (segment, strip) in segments {
            let diagonal = segment.row_base.wrapping_sub(segment.column_base) as i64;
            let meets = diagonal < columns as i64 && diagonal > -i64::from(segment.rows);
            let diagonal = meets.then_some(diagonal);
            let is_sparse = segment.len < columns / SPARSE;
            sums.move_to(Place { strip, diagonal, is_sparse });
            self.walk(segment, &mut sums)?;
        }
        sums.finish();
        Ok(())
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Segment, SumRows, Sums, TileOptions, Unpack, Visit, walk};
    use crate::lanes::{Avx2, Avx512};
    use crate::sum::GatherRows;

    /// # Safety
    /// The CPU must have AVX2.
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) unsafe fn walk_avx2(
        segment: &Segment<'_>,
        options: &TileOptions,
        visit: impl Visit,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { walk::<Avx2>(segment, options, Unpack::new(visit)) }
    }

    /// # Safety
    /// The CPU must have AVX-512 F and BW.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
    pub(super) unsafe fn walk_avx512(
        segment: &Segment<'_>,
        options: &TileOptions,
        visit: impl Visit,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { walk::<Avx512>(segment, options, Unpack::new(visit)) }
    }

    /// # Safety
    /// The CPU must have AVX-512 F and BW; `sums` has a value for each column.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
    pub(super) unsafe fn gather_avx512(
        segment: &Segment<'_>,
        options: &TileOptions,
        sums: &mut SumRows<'_, impl Sums>,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { walk::<Avx512>(segment, options, GatherRows::new(sums)) }
    }
}

fn damaged() -> Error {
    Error::new(ErrorKind::Format, "decode a tile")
        .expected("groups that fill their segment")
        .got("bytes that run out early")
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}
