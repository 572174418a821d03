//! The walk over a segment's groups: headers, widths, and the unpacking of steps.

use tiergraph_format::tiles::bits::{nibble_width, packed_bytes};
use tiergraph_format::tiles::{LANES, SLACK, STRIP_ROWS, Segment, TileOptions, UNIFORM_MAX};

use crate::lanes::Lanes;
use crate::take::{MAX_STEPS, Part, Take};

/// Hands the steps of every slice of `segment` to `take`; false when the bytes run out before they should.
///
/// # Safety
/// The CPU must have the features of `L`, and the caller must enable them.
#[inline(always)]
pub(crate) unsafe fn walk<L: Lanes>(
    segment: &Segment<'_>,
    options: &TileOptions,
    mut take: impl Take<L>,
) -> bool {
    if segment.bytes.len().checked_sub(SLACK).is_none_or(|end| end < segment.len) {
        return false;
    }
    let mut reader = Reader { bytes: segment.bytes, len: segment.len, at: 0 };
    while reader.at < reader.len {
        let (length, rows) = (reader.u16() as usize, reader.u16() as usize);
        // SAFETY: the caller's promise; `Reader` checks every place that is unpacked.
        let whole = unsafe {
            if length == 0 {
                jagged::<L>(&mut reader, options, rows, &mut take)
            } else if length <= UNIFORM_MAX {
                uniform::<L>(&mut reader, options, length, rows, &mut take)
            } else {
                None
            }
        };
        if whole.is_none() {
            return false;
        }
    }
    reader.at == reader.len
}

struct Reader<'a> {
    bytes: &'a [u8],
    len: usize,
    at: usize,
}

impl Reader<'_> {
    /// Whether `SLACK` bytes may be read from here. `walk` saw that this holds up to `len`.
    #[inline(always)]
    fn inside(&self) -> Option<()> {
        (self.at <= self.len).then_some(())
    }

    #[inline(always)]
    fn u8(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }

    #[inline(always)]
    fn u16(&mut self) -> u32 {
        u32::from(self.u8()) | u32::from(self.u8()) << 8
    }

    /// # Safety
    /// As [`walk`].
    #[inline(always)]
    unsafe fn fields<L: Lanes>(&mut self, lanes: usize, width: u32) -> Option<L> {
        self.inside()?;
        // SAFETY: `inside`, and `nibble_width` is at most 16.
        let fields = unsafe { L::unpack(self.bytes, self.at, width as usize) };
        self.at += packed_bytes(lanes, width);
        Some(fields)
    }
}

/// # Safety
/// As [`walk`].
#[inline(always)]
unsafe fn uniform<L: Lanes>(
    reader: &mut Reader<'_>,
    options: &TileOptions,
    length: usize,
    rows: usize,
    take: &mut impl Take<L>,
) -> Option<()> {
    let weight_bytes = options.weights.bytes();
    // SAFETY: the caller's promise.
    unsafe {
        let column_mask = L::splat(options.columns() as u32 - 1);
        let row_mask = L::splat(STRIP_ROWS as u32 - 1);
        let min_gap = L::splat(options.min_gap);
        let mut of_lanes = [0; LANES];
        let mut left = rows;
        while left > 0 {
            let lanes = left.min(LANES);
            left -= lanes;
            reader.inside()?;
            let base = reader.u16();
            let widths = reader.u8();
            let mut nibbles =
                u64::from_le_bytes(*reader.bytes.get(reader.at..)?.first_chunk::<8>()?);
            reader.at += (length - 1).div_ceil(2);
            let gaps: L = reader.fields(lanes, nibble_width(widths & 15))?;
            gaps.prefix_sum().add(L::splat(base)).and(row_mask).store(&mut of_lanes);
            let mut column: L = reader.fields(lanes, nibble_width(widths >> 4))?;
            column = column.and(column_mask);
            take.step(0, column, lanes);
            for k in 1..length {
                let gap: L = reader.fields(lanes, nibble_width((nibbles & 15) as u8))?;
                nibbles >>= 4;
                column = column.add(gap).add(min_gap).and(column_mask);
                take.step(k, column, lanes);
            }
            let weights = reader.at..reader.at + lanes * length * weight_bytes;
            reader.at = weights.end;
            take.end(&Part {
                rows: &of_lanes,
                lanes,
                steps: length,
                weights: reader.bytes.get(weights)?,
                weight_bytes,
            });
        }
    }
    Some(())
}

/// # Safety
/// As [`walk`].
#[inline(always)]
unsafe fn jagged<L: Lanes>(
    reader: &mut Reader<'_>,
    options: &TileOptions,
    lanes: usize,
    take: &mut impl Take<L>,
) -> Option<()> {
    if lanes == 0 || lanes > LANES {
        return None;
    }
    reader.inside()?;
    let longest = reader.u16();
    let base = reader.u16();
    let widths = reader.u8();
    let len_width = nibble_width(reader.u8() & 15);
    let nibbles = reader.at;
    reader.at += (longest as usize).checked_sub(1)?.div_ceil(2);
    // SAFETY: the caller's promise.
    unsafe {
        let row_mask = L::splat(STRIP_ROWS as u32 - 1);
        let offsets: L = reader.fields(lanes, nibble_width(widths & 15))?;
        let mut rows = [0; LANES];
        offsets.add(L::splat(base)).and(row_mask).store(&mut rows);
        let mut missing = [0; LANES];
        reader.fields::<L>(lanes, len_width)?.store(&mut missing);
        let mut steps = Steps { longest, missing, lanes, nibbles, first: widths >> 4, at: 0 };
        let mut weights = steps.weights_at(reader, options)?;
        let mut column = L::splat(0);
        while steps.at < longest {
            let Unpacked { lanes, steps, arcs } =
                steps.unpack(reader, options, &mut column, take)?;
            let begin = weights;
            weights += arcs * options.weights.bytes();
            take.end(&Part {
                rows: &rows,
                lanes,
                steps,
                weights: reader.bytes.get(begin..weights)?,
                weight_bytes: options.weights.bytes(),
            });
        }
        if options.weights.bytes() > 0 {
            reader.at = weights;
        }
    }
    Some(())
}

/// How much of a jagged slice was unpacked.
#[derive(Default)]
struct Unpacked {
    /// The lanes of the first step.
    lanes: usize,
    steps: usize,
    arcs: usize,
}

/// Where the steps of a jagged slice are.
#[derive(Clone, Copy)]
struct Steps {
    longest: u32,
    missing: [u32; LANES],
    lanes: usize,
    nibbles: usize,
    first: u8,
    at: u32,
}

impl Steps {
    /// Lanes and width of the next step.
    #[inline(always)]
    fn next(&mut self, bytes: &[u8]) -> Option<(usize, u32)> {
        // Lane i has `longest - missing[i]` arcs, never more than the lane before it.
        while self.at + *self.missing.get(self.lanes.checked_sub(1)?)? >= self.longest {
            self.lanes -= 1;
        }
        let nibble = match self.at.checked_sub(1) {
            None => self.first,
            Some(k) => bytes.get(self.nibbles + k as usize / 2)? >> (4 * (k % 2)) & 15,
        };
        self.at += 1;
        Some((self.lanes, nibble_width(nibble)))
    }

    /// Hands the next steps to `take`, at most [`MAX_STEPS`].
    ///
    /// # Safety
    /// As [`walk`].
    #[inline(always)]
    unsafe fn unpack<L: Lanes>(
        &mut self,
        reader: &mut Reader<'_>,
        options: &TileOptions,
        column: &mut L,
        take: &mut impl Take<L>,
    ) -> Option<Unpacked> {
        let steps = ((self.longest - self.at) as usize).min(MAX_STEPS);
        let mut unpacked = Unpacked { steps, ..Unpacked::default() };
        // SAFETY: the caller's promise.
        unsafe {
            let column_mask = L::splat(options.columns() as u32 - 1);
            let min_gap = L::splat(options.min_gap);
            for k in 0..steps {
                if self.at > 0 {
                    *column = column.add(min_gap);
                }
                let (lanes, width) = self.next(reader.bytes)?;
                let gap: L = reader.fields(lanes, width)?;
                *column = column.add(gap).and(column_mask);
                take.step(k, *column, lanes);
                unpacked.lanes = unpacked.lanes.max(lanes);
                unpacked.arcs += lanes;
            }
        }
        Some(unpacked)
    }

    /// Where the slice's weights begin: behind its last step.
    #[inline(always)]
    fn weights_at(mut self, reader: &Reader<'_>, options: &TileOptions) -> Option<usize> {
        let mut at = reader.at;
        if options.weights.bytes() > 0 {
            while self.at < self.longest {
                let (lanes, width) = self.next(reader.bytes)?;
                at += packed_bytes(lanes, width);
            }
        }
        Some(at)
    }
}
