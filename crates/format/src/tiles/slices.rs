//! From a tile's rows to the bytes of its groups.
//!
//! A group is one jagged slice (rows of more than [`super::UNIFORM_MAX`] arcs, at most 32) or many
//! uniform ones (rows of one length). Per slice of 32 rows a uniform one costs 3 bytes, half a byte
//! a step and the rows' gaps, a jagged one 12 bytes, half a byte a step, the rows and the lengths.
//!
//! A slice is transposed once, from rows to steps of 32 lanes, which are then measured and packed.

use super::bits::{nibble_width, width, width_nibble};
use super::pack::pack_lanes;
use super::strip::EncodedStrip;
use super::{LANES, TileOptions};
use crate::manifest::Weights;

/// What the lanes store in one step; 0 in those whose row has ended.
type Step = [u32; LANES];

/// Steps that are filled at once: they stay in the first cache while lane after lane is.
const BLOCK_STEPS: usize = 64;

/// The arcs `start..start + len` of a tile, which are those of one row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowRun {
    pub(super) row: u32,
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Writes the groups of one tile.
pub(super) struct Slicer<'a> {
    pub(super) tile: u32,
    /// Sorted keys.
    pub(super) keys: &'a [u32],
    pub(super) weights: &'a [f64],
    pub(super) options: &'a TileOptions,
    /// Working memory.
    pub(super) steps: &'a mut Vec<Step>,
    pub(super) out: &'a mut EncodedStrip,
}

impl Slicer<'_> {
    fn group(&mut self, runs: &[RowRun]) {
        self.out.begin_group(self.tile, runs.iter().map(|run| run.len).sum());
    }

    /// Rows of one length: `length, rows`, then slices of 32 rows in ascending order.
    pub(super) fn uniform(&mut self, runs: &[RowRun]) {
        self.group(runs);
        let length = runs[0].len as usize;
        self.out.bytes.extend_from_slice(&(length as u16).to_le_bytes());
        self.out.bytes.extend_from_slice(&(runs.len() as u16).to_le_bytes());
        for slice in runs.chunks(LANES) {
            self.transpose(slice, length);
            let mut gaps = [0u32; LANES];
            for (gap, pair) in gaps[1..].iter_mut().zip(slice.windows(2)) {
                *gap = pair[1].row - pair[0].row;
            }
            let row_nibble = nibble(&gaps);
            self.out.bytes.extend_from_slice(&(slice[0].row as u16).to_le_bytes());
            self.out.bytes.push(row_nibble | nibble(&self.steps[0]) << 4);
            self.step_nibbles(length);
            pack_lanes(&mut self.out.bytes, &gaps, slice.len(), nibble_width(row_nibble));
            self.pack_steps(slice, length);
        }
    }

    /// At most 32 rows of any lengths, longest first: `0, rows`, then rows and lengths by a frame
    /// of reference, then steps of as many lanes as still have arcs.
    pub(super) fn jagged(&mut self, slice: &[RowRun]) {
        self.group(slice);
        let longest = slice[0].len;
        self.transpose(slice, longest as usize);
        let base = slice.iter().map(|r| r.row).min().unwrap_or(0);
        let (mut rows, mut missing) = ([0; LANES], [0; LANES]);
        for (i, run) in slice.iter().enumerate() {
            (rows[i], missing[i]) = (run.row - base, longest - run.len);
        }
        let (row_nibble, len_nibble) = (nibble(&rows), nibble(&missing));
        let first = nibble(&self.steps[0]);
        let out = &mut self.out.bytes;
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&(slice.len() as u16).to_le_bytes());
        out.extend_from_slice(&(longest as u16).to_le_bytes());
        out.extend_from_slice(&(base as u16).to_le_bytes());
        out.push(row_nibble | first << 4);
        out.push(len_nibble);
        self.step_nibbles(longest as usize);
        pack_lanes(&mut self.out.bytes, &rows, slice.len(), nibble_width(row_nibble));
        pack_lanes(&mut self.out.bytes, &missing, slice.len(), nibble_width(len_nibble));
        self.pack_steps(slice, longest as usize);
    }

    /// Fills the steps: lane `l` stores the first column of row `slice[l]`, then the gaps.
    fn transpose(&mut self, slice: &[RowRun], length: usize) {
        if self.steps.len() < length {
            self.steps.resize(length, [0; LANES]);
        }
        let steps = &mut self.steps[..length];
        if slice.len() < LANES || slice[slice.len() - 1].len < slice[0].len {
            steps.fill([0; LANES]);
        }
        let (column_mask, min_gap) = (self.options.columns() as u32 - 1, self.options.min_gap);
        for (i, block) in steps.chunks_mut(BLOCK_STEPS).enumerate() {
            let done = i * BLOCK_STEPS;
            for (lane, run) in slice.iter().enumerate() {
                let (from, end) = (run.start as usize + done, (run.start + run.len) as usize);
                let Some(keys) = self.keys.get(from..end.max(from)) else { continue };
                // Keys of one row differ in the column alone.
                let mut before = match done {
                    0 => keys[0] & !column_mask,
                    _ if keys.is_empty() => continue,
                    _ => self.keys[from - 1].wrapping_add(min_gap),
                };
                for (step, &key) in block.iter_mut().zip(keys) {
                    step[lane & (LANES - 1)] = key.wrapping_sub(before);
                    before = key.wrapping_add(min_gap);
                }
            }
        }
    }

    /// The widths of steps 1 and on, written as nibbles.
    fn step_nibbles(&mut self, length: usize) {
        for pair in self.steps[1..length].chunks(2) {
            let high = pair.get(1).map_or(0, nibble);
            self.out.bytes.push(nibble(&pair[0]) | high << 4);
        }
    }

    /// The fields of every step, then the weights.
    fn pack_steps(&mut self, slice: &[RowRun], length: usize) {
        let mut lanes = slice.len();
        for (k, step) in self.steps[..length].iter().enumerate() {
            while slice[lanes - 1].len as usize <= k {
                lanes -= 1;
            }
            pack_lanes(&mut self.out.bytes, step, lanes, nibble_width(nibble(step)));
        }
        self.step_weights(slice, length);
    }

    fn step_weights(&mut self, slice: &[RowRun], length: usize) {
        if self.options.weights == Weights::None {
            return;
        }
        for k in 0..length {
            for run in slice.iter().take_while(|r| r.len as usize > k) {
                let weight = self.weights[run.start as usize + k];
                match self.options.weights {
                    Weights::F32 => {
                        self.out.bytes.extend_from_slice(&(weight as f32).to_le_bytes());
                    }
                    _ => self.out.bytes.extend_from_slice(&weight.to_le_bytes()),
                }
            }
        }
    }
}

/// The nibble for the width of a step's widest field.
#[inline]
fn nibble(fields: &Step) -> u8 {
    // The width of the OR of all fields is that of the widest.
    let widest = width(fields.iter().fold(0, |all, field| all | field));
    assert!(widest <= 16, "an arc that is there twice in a file whose minimum gap is 1");
    width_nibble(widest)
}
