//! From a tile's rows to the bytes of its groups.
//!
//! A group is one jagged slice (rows of more than [`super::UNIFORM_MAX`] arcs, at most 32) or many
//! uniform ones (rows of one length). Per slice of 32 rows a uniform one costs 3 bytes, half a byte
//! a step and the rows' gaps, a jagged one 12 bytes, half a byte a step, the rows and the lengths.

use super::bits::{nibble_width, pack, width, width_nibble};
use super::encode::{EncodedStrip, RowRun, Tile};
use super::{LANES, TileOptions};
use crate::manifest::Weights;

/// Writes the groups of one tile.
pub(super) struct Slicer<'a> {
    pub(super) tile: &'a Tile,
    /// Sorted keys.
    pub(super) arcs: &'a [u64],
    pub(super) weights: &'a [f64],
    pub(super) options: &'a TileOptions,
    pub(super) out: &'a mut EncodedStrip,
}

impl Slicer<'_> {
    /// Notes that a group starts here: a block may end before it.
    fn group(&mut self, runs: &[RowRun]) {
        let arcs = runs.iter().map(|r| r.len).sum();
        let begin = self.out.bytes.len();
        assert!(u32::try_from(begin).is_ok(), "a strip of 4 GiB");
        self.out.groups.push((begin as u32, self.tile.number, arcs));
    }

    /// Rows of one length: `length, rows`, then slices of 32 rows in ascending order.
    pub(super) fn uniform(&mut self, runs: &[RowRun]) {
        self.group(runs);
        let length = runs[0].len as usize;
        self.out.bytes.extend_from_slice(&(length as u16).to_le_bytes());
        self.out.bytes.extend_from_slice(&(runs.len() as u16).to_le_bytes());
        for slice in runs.chunks(LANES) {
            let mut gaps = [0u32; LANES];
            for (i, pair) in slice.windows(2).enumerate() {
                gaps[i + 1] = pair[1].row - pair[0].row;
            }
            let row_nibble = width_nibble(gaps.iter().map(|&g| width(g)).max().unwrap_or(0));
            let first = self.step_width(slice, 0);
            self.out.bytes.extend_from_slice(&(slice[0].row as u16).to_le_bytes());
            self.out.bytes.push(row_nibble | first << 4);
            let nibbles = self.step_nibbles(slice, length);
            pack(&mut self.out.bytes, &gaps[..slice.len()], nibble_width(row_nibble));
            self.steps(slice, first, &nibbles, length);
        }
    }

    /// At most 32 rows of any lengths, longest first: `0, rows`, then rows and lengths by a frame
    /// of reference, then steps of as many lanes as still have arcs.
    pub(super) fn jagged(&mut self, slice: &[RowRun]) {
        self.group(slice);
        let longest = slice[0].len;
        let base = slice.iter().map(|r| r.row).min().unwrap_or(0);
        let rows: Vec<u32> = slice.iter().map(|r| r.row - base).collect();
        let missing: Vec<u32> = slice.iter().map(|r| longest - r.len).collect();
        let nibble = |v: &[u32]| width_nibble(v.iter().map(|&x| width(x)).max().unwrap_or(0));
        let (row_nibble, len_nibble) = (nibble(&rows), nibble(&missing));
        let first = self.step_width(slice, 0);
        let out = &mut self.out.bytes;
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&(slice.len() as u16).to_le_bytes());
        out.extend_from_slice(&(longest as u16).to_le_bytes());
        out.extend_from_slice(&(base as u16).to_le_bytes());
        out.push(row_nibble | first << 4);
        out.push(len_nibble);
        let nibbles = self.step_nibbles(slice, longest as usize);
        pack(&mut self.out.bytes, &rows, nibble_width(row_nibble));
        pack(&mut self.out.bytes, &missing, nibble_width(len_nibble));
        self.steps(slice, first, &nibbles, longest as usize);
    }

    /// What lane `run` stores in step `k`: its first column, then the gaps.
    #[inline(always)]
    fn field(&self, run: &RowRun, k: usize) -> u32 {
        let at = run.start as usize + k;
        let column = self.tile.column(self.arcs[at]);
        if k == 0 {
            return column;
        }
        let before = self.tile.column(self.arcs[at - 1]);
        column.wrapping_sub(before).wrapping_sub(self.options.min_gap)
    }

    /// The nibble for the width of step `k`.
    fn step_width(&self, slice: &[RowRun], k: usize) -> u8 {
        let lanes = slice.iter().take_while(|r| r.len as usize > k);
        // The width of the OR of all fields is that of the widest.
        let widest = width(lanes.fold(0, |all, r| all | self.field(r, k)));
        assert!(widest <= 16, "an arc that is there twice in a file whose minimum gap is 1");
        width_nibble(widest)
    }

    /// The widths of steps 1 and on, written as nibbles.
    fn step_nibbles(&mut self, slice: &[RowRun], length: usize) -> Vec<u8> {
        let nibbles: Vec<u8> = (1..length).map(|k| self.step_width(slice, k)).collect();
        for pair in nibbles.chunks(2) {
            self.out.bytes.push(pair[0] | pair.get(1).unwrap_or(&0) << 4);
        }
        nibbles
    }

    /// The fields of every step, then the weights.
    fn steps(&mut self, slice: &[RowRun], first: u8, nibbles: &[u8], length: usize) {
        let mut fields = [0u32; LANES];
        let mut lanes = slice.len();
        for k in 0..length {
            while slice[lanes - 1].len as usize <= k {
                lanes -= 1;
            }
            for (field, run) in fields.iter_mut().zip(&slice[..lanes]) {
                *field = self.field(run, k);
            }
            let nibble = if k == 0 { first } else { nibbles[k - 1] };
            pack(&mut self.out.bytes, &fields[..lanes], nibble_width(nibble));
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
