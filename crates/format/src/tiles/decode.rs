//! The scalar decoder: what the bytes of a segment mean. Slow, safe, and the reference.

use super::bits::{nibble_width, packed_bytes, unpack_one};
use super::{LANES, Segment, TileOptions, UNIFORM_MAX};
use crate::manifest::Weights;

/// Up to 32 arcs that are decoded together, of as many different rows.
#[derive(Debug)]
pub struct StepView<'a> {
    /// The row of each arc, counted from the strip's first.
    pub rows: &'a [u32],
    /// The column of each arc, counted from the tile's first.
    pub columns: &'a [u32],
    /// The weight of each arc; empty in a file without weights.
    pub weights: &'a [f64],
}

/// Calls `visit` for every step of `segment`; `None` when the bytes run out before they should.
pub fn for_each_step(
    segment: &Segment<'_>,
    options: &TileOptions,
    mut visit: impl FnMut(StepView<'_>),
) -> Option<()> {
    let mut reader = Reader { bytes: segment.bytes, at: 0 };
    while reader.at < segment.len {
        let length = reader.u16()? as usize;
        let lanes = reader.u16()? as usize;
        if length == 0 {
            jagged(&mut reader, lanes, options, &mut visit)?;
            continue;
        }
        if length > UNIFORM_MAX {
            return None;
        }
        for first_lane in (0..lanes).step_by(LANES) {
            uniform(&mut reader, length, LANES.min(lanes - first_lane), options, &mut visit)?;
        }
    }
    (reader.at == segment.len).then_some(())
}

fn uniform(
    reader: &mut Reader<'_>,
    length: usize,
    lanes: usize,
    options: &TileOptions,
    visit: &mut impl FnMut(StepView<'_>),
) -> Option<()> {
    let base = reader.u16()?;
    let widths = reader.u8()?;
    let nibbles = reader.skip((length - 1).div_ceil(2))?;
    let mut rows = [0; LANES];
    reader.fields(&mut rows[..lanes], nibble_width(widths & 15))?;
    let mut row = base;
    for r in &mut rows[..lanes] {
        row = (row + *r) & 0xFFFF;
        *r = row;
    }
    let lengths = [length as u32; LANES];
    steps(reader, &rows[..lanes], &lengths[..lanes], widths >> 4, nibbles, options, visit)
}

fn jagged(
    reader: &mut Reader<'_>,
    lanes: usize,
    options: &TileOptions,
    visit: &mut impl FnMut(StepView<'_>),
) -> Option<()> {
    if lanes == 0 || lanes > LANES {
        return None;
    }
    let longest = reader.u16()?;
    let base = reader.u16()?;
    let widths = reader.u8()?;
    let len_nibble = reader.u8()? & 15;
    let nibbles = reader.skip((longest as usize).checked_sub(1)?.div_ceil(2))?;
    let mut rows = [0; LANES];
    reader.fields(&mut rows[..lanes], nibble_width(widths & 15))?;
    rows[..lanes].iter_mut().for_each(|r| *r = (*r + base) & 0xFFFF);
    let mut lengths = [0; LANES];
    reader.fields(&mut lengths[..lanes], nibble_width(len_nibble))?;
    // Damaged lengths may grow from lane to lane: then the lanes before count.
    let mut least = 0;
    for l in lengths[..lanes].iter_mut().rev() {
        least = longest.saturating_sub(*l).max(least);
        *l = least;
    }
    if lengths[0] != longest {
        return None;
    }
    steps(reader, &rows[..lanes], &lengths[..lanes], widths >> 4, nibbles, options, visit)
}

fn steps(
    reader: &mut Reader<'_>,
    rows: &[u32],
    lengths: &[u32],
    first: u8,
    nibbles: usize,
    options: &TileOptions,
    visit: &mut impl FnMut(StepView<'_>),
) -> Option<()> {
    let longest = *lengths.first()?;
    let arcs: usize = lengths.iter().map(|&l| l as usize).sum();
    let mut weights = StepWeights::behind(reader, rows.len(), lengths, first, nibbles, options)?;
    let column_mask = (1u32 << options.columns_log2) - 1;
    let (mut columns, mut fields) = ([0u32; LANES], [0u32; LANES]);
    let mut lanes = rows.len();
    for k in 0..longest {
        while lengths[lanes - 1] <= k {
            lanes -= 1;
        }
        let nibble = if k == 0 { first } else { reader.nibble(nibbles, k as usize - 1)? };
        reader.fields(&mut fields[..lanes], nibble_width(nibble))?;
        let gap = if k == 0 { 0 } else { options.min_gap };
        for (column, field) in columns[..lanes].iter_mut().zip(&fields) {
            *column = column.wrapping_add(*field).wrapping_add(gap) & column_mask;
        }
        visit(StepView {
            rows: &rows[..lanes],
            columns: &columns[..lanes],
            weights: weights.take(reader, lanes)?,
        });
    }
    reader.skip(arcs * options.weights.bytes())?;
    Some(())
}

/// The weights of a slice, which stand behind its last step.
struct StepWeights {
    kind: Weights,
    at: usize,
    values: [f64; LANES],
}

impl StepWeights {
    fn behind(
        reader: &Reader<'_>,
        lanes: usize,
        lengths: &[u32],
        first: u8,
        nibbles: usize,
        options: &TileOptions,
    ) -> Option<Self> {
        let mut at = reader.at;
        if options.weights != Weights::None {
            let mut active = lanes;
            for k in 0..*lengths.first()? {
                while lengths[active - 1] <= k {
                    active -= 1;
                }
                let nibble = if k == 0 { first } else { reader.nibble(nibbles, k as usize - 1)? };
                at += packed_bytes(active, nibble_width(nibble));
            }
        }
        Some(Self { kind: options.weights, at, values: [0.0; LANES] })
    }

    fn take(&mut self, reader: &Reader<'_>, lanes: usize) -> Option<&[f64]> {
        let size = self.kind.bytes();
        if size == 0 {
            return Some(&[]);
        }
        let bytes = reader.bytes.get(self.at..self.at + lanes * size)?;
        for (value, b) in self.values.iter_mut().zip(bytes.chunks_exact(size)) {
            *value = match *b {
                [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
                [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
                _ => return None,
            };
        }
        self.at += lanes * size;
        Some(&self.values[..lanes])
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn u8(&mut self) -> Option<u8> {
        let value = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(value)
    }

    fn u16(&mut self) -> Option<u32> {
        let bytes = self.bytes.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    /// Moves on by `bytes` and tells where they began.
    fn skip(&mut self, bytes: usize) -> Option<usize> {
        let begin = self.at;
        self.at = begin.checked_add(bytes).filter(|&end| end <= self.bytes.len())?;
        Some(begin)
    }

    fn nibble(&self, nibbles: usize, k: usize) -> Option<u8> {
        let byte = *self.bytes.get(nibbles + k / 2)?;
        Some(if k.is_multiple_of(2) { byte & 15 } else { byte >> 4 })
    }

    fn fields(&mut self, values: &mut [u32], width: u32) -> Option<()> {
        let begin = self.skip(packed_bytes(values.len(), width))?;
        for (lane, value) in values.iter_mut().enumerate() {
            *value = unpack_one(self.bytes, begin, lane, width)?;
        }
        Some(())
    }
}
