//! A direct-mapped cache of pages or blocks.

use tiergraph_core::Result;
use tiergraph_mem::Array;

/// The number in a slot that is empty.
const EMPTY: u64 = u64::MAX;

/// A direct-mapped cache of units (pages or blocks) of equal length: unit n is in slot n mod the slots.
pub(super) struct Slots {
    numbers: Vec<u64>,
    /// The bytes of all slots, as words: aligned for parsing in place.
    words: Array<u64>,
    unit: usize,
}

impl Slots {
    /// Bytes that a slot for a unit of `unit` bytes takes.
    pub(super) const fn slot_bytes(unit: usize) -> u64 {
        (unit + size_of::<u64>()) as u64
    }

    /// # Errors
    /// The system has no such amount of memory.
    pub(super) fn new(count: usize, unit: usize) -> Result<Self> {
        let words = Array::zeroed(count * unit / size_of::<u64>())?;
        Ok(Self { numbers: vec![EMPTY; count], words, unit })
    }

    fn slot(&self, number: u64) -> usize {
        (number % self.numbers.len() as u64) as usize
    }

    /// The bytes of unit `number`; `None` if it is not in its slot.
    pub(super) fn get(&self, number: u64) -> Option<&[u8]> {
        let slot = self.slot(number);
        let here = self.numbers[slot] == number;
        here.then(|| &bytemuck::cast_slice(&self.words)[slot * self.unit..][..self.unit])
    }

    /// The bytes of unit `number`, written by `fill` if not here. If that fails, the slot is empty.
    pub(super) fn get_or(
        &mut self,
        number: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<&[u8]> {
        let slot = self.slot(number);
        if self.numbers[slot] == number {
            return Ok(&bytemuck::cast_slice(&self.words)[slot * self.unit..][..self.unit]);
        }
        self.numbers[slot] = EMPTY;
        let words: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        let bytes = &mut words[slot * self.unit..][..self.unit];
        fill(bytes)?;
        self.numbers[slot] = number;
        Ok(bytes)
    }
}
