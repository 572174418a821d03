//! CRC-32C (Castagnoli; reflected, initial and final value inverted), the checksum of everything in a graph.
//!
//! Whole-graph passes compute it of every byte that they read. CPUs with carry-less products of 512 bits take about half
//! the time by those, the others are faster by the instruction for CRC-32C itself: hence two libraries. Measured:
//! bench/runs/2026-11-28-2-core-epyc-24gib/crc32c.txt.

use crc_fast::{CrcAlgorithm, Digest, checksum};

/// The checksum of `bytes`.
///
/// ```
/// use tiergraph_core::crc32c::crc32c;
/// assert_eq!(crc32c(b"123456789"), 0xE306_9283);
/// ```
pub fn crc32c(bytes: &[u8]) -> u32 {
    if is_by_products() { by_products(bytes) } else { ::crc32c::crc32c(bytes) }
}

/// The checksum of the bytes whose checksum is `crc` and `bytes` behind them.
///
/// ```
/// use tiergraph_core::crc32c::{crc32c, crc32c_append};
/// assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), crc32c(b"123456789"));
/// ```
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    match is_by_products() {
        true => append_by_products(crc, bytes),
        false => ::crc32c::crc32c_append(crc, bytes),
    }
}

/// Whether `crc_fast` computes checksums: on x86-64 where its products are of 512 bits, with narrower ones it takes
/// longer than the instruction. On other CPUs it does, too, which is not measured.
fn is_by_products() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("vpclmulqdq");
    #[cfg(not(target_arch = "x86_64"))]
    true
}

fn by_products(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn append_by_products(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draws;

    /// Bit by bit, by the definition.
    fn defined(bytes: &[u8]) -> u32 {
        let shifted = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 };
        let step = |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| shifted(crc));
        !bytes.iter().fold(!0, step)
    }

    #[test]
    fn checksums_are_those_of_the_definition_whichever_library_computes_them() {
        let mut draws = Draws::new(1);
        let bytes: Vec<u8> = (0..70_000).map(|_| draws.below(256) as u8).collect();
        for _ in 0..1000 {
            let begin = draws.below(600) as usize;
            let most = if draws.happens(0.05) { 69_000 } else { 700 };
            let part = &bytes[begin..begin + draws.below(most) as usize];
            let (a, b) = part.split_at(draws.below(part.len() as u64 + 1) as usize);
            let expected = defined(part);
            assert_eq!([crc32c(part), by_products(part)], [expected; 2]);
            let appended = [crc32c_append, append_by_products, ::crc32c::crc32c_append];
            assert_eq!(appended.map(|append| append(defined(a), b)), [expected; 3]);
            assert_eq!(appended.map(|append| append(0, part)), [expected; 3]);
        }
    }
}
