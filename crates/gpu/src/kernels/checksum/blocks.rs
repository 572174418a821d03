//! Launches of `blocks.cu`: blocks in device memory are compared with their CRC-32C.

use tiergraph_core::Result;

use super::{CRC32C, ONE, byte_products, inverted, multiply, power};
use crate::kernels::{Blocks, Source, TYPES};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;
const PIECE: usize = 128;
/// Bytes of the checksum itself, which are left out.
const CRC_BYTES: usize = 4;

shared! {
    struct Arguments as "Arguments" {
        blocks: Blocks,
        word: DevicePtr<u32>,
        powers: DevicePtr<u32>,
        sums: DevicePtr<u32>,
        first_damaged: DevicePtr<u32>,
        pieces: u32,
        whole: u32,
    }
}

/// The compiled kernels that compare blocks of one size with their checksums.
#[derive(Debug)]
pub struct Checksum {
    sum: Kernel,
    verify: Kernel,
    /// Products with x^32.
    word: DeviceBuf<u32>,
    powers: DeviceBuf<u32>,
    whole: u32,
}

pub(super) fn source() -> Source {
    Source::new("checksum", &[TYPES, CRC32C, include_str!("blocks.cu")])
        .sharing::<Blocks>()
        .sharing::<Arguments>()
}

impl Checksum {
    /// Compiles the kernels for blocks of `block_bytes`, a multiple of 128, whose stored checksums are
    /// their CRC-32C exclusive-or `salt`.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn new(stream: &Stream, block_bytes: usize, salt: u32) -> Result<Self> {
        let module = source().compile(stream.device())?;
        Ok(Self {
            sum: module.kernel("sum")?,
            verify: module.kernel("verify")?,
            word: stream.uploaded(&byte_products(power(32)))?,
            powers: stream.uploaded(&powers(block_bytes / PIECE))?,
            whole: inverted(block_bytes - CRC_BYTES) ^ salt,
        })
    }

    /// Compares the first `count` of `blocks` with their checksums, in order with the stream. Where
    /// block i differs, `damaged[i]`, 0 before, becomes 1, and `first_damaged` falls to the block's
    /// number if it is greater.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If `damaged` is shorter than `count`, or `first_damaged` is empty.
    pub fn check(
        &self,
        stream: &Stream,
        blocks: Blocks,
        count: u32,
        damaged: &mut DeviceBuf<u32>,
        first_damaged: &DeviceBuf<u32>,
    ) -> Result<()> {
        assert!(damaged.len() >= count as usize && !first_damaged.is_empty());
        let arguments = Arguments {
            blocks,
            word: self.word.ptr(),
            powers: self.powers.ptr(),
            sums: damaged.ptr(),
            first_damaged: first_damaged.ptr(),
            pieces: self.powers.len() as u32,
            whole: self.whole,
        };
        let groups = Grid::over(self.powers.len(), THREADS).blocks;
        let grid = Grid { blocks: groups * count, threads: THREADS };
        // SAFETY: `Arguments` of the source, a sum a block.
        unsafe { self.sum.launch(stream, grid, &[&arguments])? };
        let each = Grid::over(count as usize, THREADS);
        // SAFETY: as above.
        unsafe { self.verify.launch(stream, each, &[&arguments, &count]) }
    }
}

/// What the CRC of each of `pieces` pieces is multiplied by: x to the power of the bits behind it.
fn powers(pieces: usize) -> Vec<u32> {
    let piece = power(8 * PIECE as i64);
    let mut powers = vec![ONE; pieces];
    for i in (0..pieces.saturating_sub(1)).rev() {
        powers[i] = multiply(powers[i + 1], piece);
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::super::multiplied;
    use super::*;

    /// The kernel's arithmetic on the CPU.
    fn twin(block: &[u8]) -> u32 {
        let (word, powers) = (byte_products(power(32)), powers(block.len() / PIECE));
        let mut sum = 0;
        for (i, piece) in block.chunks_exact(PIECE).enumerate() {
            let mut crc = 0u32;
            for (w, bytes) in piece.as_chunks::<4>().0.iter().enumerate() {
                if i == 0 && w == 15 {
                    continue;
                }
                crc = multiplied(&word, crc ^ u32::from_le_bytes(*bytes));
            }
            sum ^= multiply(crc, powers[i]);
        }
        sum ^ inverted(block.len() - CRC_BYTES)
    }

    #[test]
    fn pieces_add_up_to_the_crc_of_the_block() {
        for len in [4096usize, 65536] {
            let block: Vec<u8> = (0..len).map(|i| (i * i / 7 % 251) as u8).collect();
            let whole = crc32c::crc32c_append(crc32c::crc32c(&block[..60]), &block[64..]);
            assert_eq!(twin(&block), whole);
        }
    }
}
