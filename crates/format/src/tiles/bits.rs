//! Bit fields of 0 to 16 bits, little-endian, each run of fields starting on a byte.

/// Bits that `value` needs: 0 for 0.
#[inline]
pub fn width(value: u32) -> u32 {
    32 - value.leading_zeros()
}

/// The nibble that stores a width of 0 to 16, and the width that it then means: there is no 15.
#[inline]
pub fn width_nibble(width: u32) -> u8 {
    if width >= 15 { 15 } else { width as u8 }
}

/// The width that a nibble means.
#[inline]
pub fn nibble_width(nibble: u8) -> u32 {
    if nibble == 15 { 16 } else { u32::from(nibble) }
}

/// Bytes of `lanes` fields of `width` bits.
#[inline]
pub fn packed_bytes(lanes: usize, width: u32) -> usize {
    (lanes * width as usize).div_ceil(8)
}

/// Appends `values` as fields of `width` bits.
#[inline]
pub fn pack(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let (mut word, mut filled) = (0u64, 0u32);
    for &value in values {
        debug_assert!(width == 32 || u64::from(value) < 1u64 << width);
        word |= u64::from(value) << filled;
        filled += width;
        if filled >= 32 {
            out.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= 32;
            filled -= 32;
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Field `lane` of a run that starts at byte `at`. Reads 4 bytes from the field's first byte; `None` if
/// `bytes` has fewer there.
#[inline]
pub fn unpack_one(bytes: &[u8], at: usize, lane: usize, width: u32) -> Option<u32> {
    let bit = lane * width as usize;
    let start = at + bit / 8;
    let window = bytes.get(start..start + 4)?;
    let word = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
    Some((word >> (bit % 8)) & ((1u32 << width) - 1))
}
