//! CRC-32C (Castagnoli; reflected, initial and final value inverted), the checksum of everything in a graph.
//!
//! Whole-graph passes compute it of every byte that they read, so it is by the widest carry-less products that the
//! CPU has: of 4 MiB from memory half the time that CRC instructions take
//! (`bench/runs/2026-11-28-2-core-epyc-24gib/crc32c.txt`).

use crc_fast::{CrcAlgorithm, Digest, checksum};

/// The checksum of `bytes`.
///
/// ```
/// use tiergraph_core::crc32c::crc32c;
/// assert_eq!(crc32c(b"123456789"), 0xE306_9283);
/// ```
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The checksum of the bytes whose checksum is `crc` and `bytes` behind them.
///
/// ```
/// use tiergraph_core::crc32c::{crc32c, crc32c_append};
/// assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), crc32c(b"123456789"));
/// ```
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draws;

    #[test]
    fn checksums_are_those_of_another_library() {
        let mut draws = Draws::new(1);
        let bytes: Vec<u8> = (0..70_000).map(|_| draws.below(256) as u8).collect();
        for _ in 0..2000 {
            let begin = draws.below(600) as usize;
            let most = if draws.happens(0.1) { 69_000 } else { 700 };
            let part = &bytes[begin..begin + draws.below(most) as usize];
            let (a, b) = part.split_at(draws.below(part.len() as u64 + 1) as usize);
            assert_eq!(crc32c(part), ::crc32c::crc32c(part));
            assert_eq!(crc32c_append(crc32c(a), b), crc32c(part));
            assert_eq!(crc32c_append(0, part), crc32c(part));
        }
    }
}
