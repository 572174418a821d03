//! Launches of `checksum.cu`: blocks in device memory are compared with their CRC-32C.

use tiergraph_core::Result;

use super::{Blocks, Source, TYPES};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;
const PIECE: usize = 128;
/// Bytes of the checksum itself, which are left out.
const CRC_BYTES: usize = 4;
/// Castagnoli's polynomial, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// x^0.
const ONE: u32 = 1 << 31;

shared! {
    struct Arguments as "Arguments" {
        blocks: Blocks,
        tables: DevicePtr<u32>,
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
    tables: DeviceBuf<u32>,
    powers: DeviceBuf<u32>,
    whole: u32,
}

pub(super) fn source() -> Source {
    Source::new("checksum", &[TYPES, include_str!("checksum.cu")])
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
            tables: stream.uploaded(&tables())?,
            powers: stream.uploaded(&powers(block_bytes / PIECE))?,
            whole: multiply(!0, power(8 * (block_bytes - CRC_BYTES) as u64)) ^ !0 ^ salt,
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
            tables: self.tables.ptr(),
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

/// CRCs of each byte with 0 to 3 zero bytes behind it.
fn tables() -> Vec<u32> {
    let step = |crc: u32| (crc >> 1) ^ ((crc & 1) * POLYNOMIAL);
    let mut tables: Vec<u32> = (0..256).map(|byte| (0..8).fold(byte, |crc, _| step(crc))).collect();
    for i in 256..1024 {
        let before = tables[i - 256];
        tables.push((before >> 8) ^ tables[(before & 255) as usize]);
    }
    tables
}

/// a × b modulo the polynomial; bit 31 is the coefficient of x^0.
fn multiply(mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for _ in 0..32 {
        product ^= (a >> 31) * b;
        a <<= 1;
        b = (b >> 1) ^ ((b & 1) * POLYNOMIAL);
    }
    product
}

/// x^`exponent` modulo the polynomial.
fn power(mut exponent: u64) -> u32 {
    let (mut square, mut power) = (ONE >> 1, ONE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    power
}

/// What the CRC of each of `pieces` pieces is multiplied by: x to the power of the bits behind it.
fn powers(pieces: usize) -> Vec<u32> {
    let piece = power(8 * PIECE as u64);
    let mut powers = vec![ONE; pieces];
    for i in (0..pieces.saturating_sub(1)).rev() {
        powers[i] = multiply(powers[i + 1], piece);
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's arithmetic on the CPU.
    fn twin(block: &[u8]) -> u32 {
        let (tables, powers) = (tables(), powers(block.len() / PIECE));
        let mut sum = 0;
        for (i, piece) in block.chunks_exact(PIECE).enumerate() {
            let mut crc = 0u32;
            for (w, word) in piece.chunks_exact(4).enumerate() {
                if i == 0 && w == 15 {
                    continue;
                }
                crc ^= u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                crc = tables[768 + (crc & 255) as usize]
                    ^ tables[512 + (crc >> 8 & 255) as usize]
                    ^ tables[256 + (crc >> 16 & 255) as usize]
                    ^ tables[(crc >> 24) as usize];
            }
            sum ^= multiply(crc, powers[i]);
        }
        sum ^ multiply(!0, power(8 * (block.len() - CRC_BYTES) as u64)) ^ !0
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
