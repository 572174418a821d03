//! Groups of up to 16 gaps, all in as many bits as the largest needs, least significant bit first.

use crate::le::u64_at;

/// Gaps in a group; only a list's last group has fewer.
pub(super) const GROUP: usize = 16;

/// Bytes that `n` gaps of `width` bits take.
#[inline]
pub(super) fn bytes_of(n: usize, width: usize) -> usize {
    (n * width).div_ceil(8)
}

/// Appends the width (a byte) and the packed gaps of one group.
pub(super) fn pack(gaps: &[u64], out: &mut Vec<u8>) {
    let width = width_of(gaps);
    out.push(width as u8);
    if width <= 32 {
        return pack_narrow(gaps, width, out);
    }
    let (mut bits, mut filled) = (0u128, 0);
    for &gap in gaps {
        bits |= u128::from(gap) << filled;
        filled += width;
        while filled >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(bits as u8);
    }
}

/// The width of the largest: of all their bits.
#[inline]
fn width_of(gaps: &[u64]) -> u32 {
    64 - gaps.iter().fold(0, |all, gap| all | gap).leading_zeros()
}

/// As [`pack`] for a full group: of at most 32 bits without a branch.
#[inline]
pub(super) fn pack_16(gaps: &[u64; GROUP], out: &mut Vec<u8>) {
    let width = width_of(gaps);
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                $($w => pack_const::<$w>(gaps),)*
                _ => return pack(gaps, out),
            }
        };
    }
    let bytes = by_width!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    let end = out.len() + 1 + bytes_of(GROUP, width as usize);
    // A copy of constant length is a few moves.
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// The width and the packed gaps.
#[inline(always)]
fn pack_const<const W: usize>(gaps: &[u64; GROUP]) -> [u8; 1 + GROUP * 4 + 4] {
    let mut bytes = [0; 1 + GROUP * 4 + 4];
    bytes[0] = W as u8;
    let (mut bits, mut filled, mut at) = (0u64, 0, 1);
    for gap in gaps {
        bits |= gap << filled;
        filled += W;
        if filled >= 32 {
            bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            filled -= 32;
            at += 4;
        }
    }
    bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
    bytes
}

/// Appends gaps of at most 32 bits, four bytes at a time.
#[inline]
fn pack_narrow(gaps: &[u64], width: u32, out: &mut Vec<u8>) {
    let mut bytes = [0; GROUP * 4 + 4];
    let (mut bits, mut filled, mut at) = (0u64, 0, 0);
    for &gap in gaps {
        bits |= gap << filled;
        filled += width;
        if filled >= 32 {
            bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            filled -= 32;
            at += 4;
        }
    }
    bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
    let end = out.len() + bytes_of(gaps.len(), width as usize);
    // A copy of constant length is a few moves.
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// Unpacks a full group of `width` bits from the start of `bytes`, adding up from `base`.
///
/// `bytes` must go on for 8 bytes after the group (their value does not matter), or
/// the missing ones read as zeros by the slower path.
#[inline]
pub(super) fn unpack_16(bytes: &[u8], width: usize, base: u64, out: &mut [u64; GROUP]) -> u64 {
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                $($w => match bytes.first_chunk::<{ 2 * $w + 8 }>() {
                    Some(bytes) => unpack_const::<$w, { 2 * $w + 8 }>(bytes, base, out),
                    None => unpack(bytes, width, base, out),
                },)*
                _ => unpack(bytes, width, base, out),
            }
        };
    }
    by_width!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
}

#[inline]
fn unpack_const<const W: usize, const N: usize>(
    bytes: &[u8; N],
    base: u64,
    out: &mut [u64; GROUP],
) -> u64 {
    let mask = (1u64 << W) - 1;
    let mut value = base;
    for (i, slot) in out.iter_mut().enumerate() {
        let bit = i * W;
        value = value.wrapping_add((u64_at(bytes, bit / 8) >> (bit % 8)) & mask);
        *slot = value;
    }
    value
}

/// Unpacks `out.len()` gaps of any width, adding up from `base`; returns the last sum.
#[inline]
pub(super) fn unpack(bytes: &[u8], width: usize, base: u64, out: &mut [u64]) -> u64 {
    let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
    let mut value = base;
    if width <= 56 && bytes_of(out.len(), width) + 8 <= bytes.len() {
        for (i, slot) in out.iter_mut().enumerate() {
            let bit = i * width;
            value = value.wrapping_add((u64_at(bytes, bit / 8) >> (bit % 8)) & mask);
            *slot = value;
        }
        return value;
    }
    for (i, slot) in out.iter_mut().enumerate() {
        let (byte, shift) = (i * width / 8, i * width % 8);
        value = value.wrapping_add((load(bytes, byte) >> shift) as u64 & mask);
        *slot = value;
    }
    value
}

/// One group's gaps, one by one.
#[derive(Clone, Copy)]
pub(super) struct Gaps<'a> {
    bytes: &'a [u8],
    width: usize,
    mask: u64,
}

impl<'a> Gaps<'a> {
    /// The gaps of `width` bits, at most 64, from the start of `bytes`.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], width: usize) -> Self {
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
        Self { bytes, width, mask }
    }

    /// Gap `i`; bytes that are missing read as zeros.
    #[inline(always)]
    pub(super) fn get(self, i: usize) -> u64 {
        let (byte, shift) = (i * self.width / 8, i * self.width % 8);
        if self.width <= 56 && byte + 8 <= self.bytes.len() {
            return (u64_at(self.bytes, byte) >> shift) & self.mask;
        }
        (load(self.bytes, byte) >> shift) as u64 & self.mask
    }
}

/// Nine bytes from `at`, zeros past the end: enough for 64 bits at any shift.
#[inline]
fn load(bytes: &[u8], at: usize) -> u128 {
    if at + 9 <= bytes.len() {
        return u128::from(u64_at(bytes, at)) | u128::from(bytes[at + 8]) << 64;
    }
    let rest = bytes.get(at..).unwrap_or(&[]);
    rest.iter().take(9).rev().fold(0, |bits, &byte| bits << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_length_round_trips() {
        for width in 0..=64u32 {
            for n in 1..=GROUP {
                let top = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let gaps: Vec<u64> = (0..n as u64).map(|i| top.saturating_sub(i * i)).collect();
                let mut packed = Vec::new();
                pack(&gaps, &mut packed);
                assert_eq!(packed.len(), 1 + bytes_of(n, width as usize));
                if let Ok(gaps) = <&[u64; GROUP]>::try_from(&gaps[..]) {
                    let mut unrolled = Vec::new();
                    pack_16(gaps, &mut unrolled);
                    assert_eq!(unrolled, packed, "width {width}");
                }
                let sums: Vec<u64> = gaps
                    .iter()
                    .scan(3u64, |sum, gap| {
                        *sum = sum.wrapping_add(*gap);
                        Some(*sum)
                    })
                    .collect();
                let mut out = vec![0; n];
                unpack(&packed[1..], width as usize, 3, &mut out);
                assert_eq!(out, sums, "width {width}, {n} gaps");
                if let Ok(out) = <&mut [u64; GROUP]>::try_from(&mut out[..]) {
                    packed.resize(packed.len() + 8, 0xff);
                    unpack_16(&packed[1..], width as usize, 3, out);
                    assert_eq!(&out[..], sums, "width {width}, full group");
                }
            }
        }
    }
}
