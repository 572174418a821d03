//! Fields of one width for a whole slice, written eight lanes at a time.
//!
//! Eight fields of `W` bits are `W` bytes, so every eight lanes start on a byte and no field needs
//! a branch: 3 instructions a field. The bytes are those of [`super::bits::pack`].

use super::LANES;
use super::bits::{pack, packed_bytes};

/// Bytes of a slice's fields at the most.
const BYTES: usize = LANES * 2;
/// Fewer lanes are packed one by one.
const FEW_LANES: usize = 8;

/// Appends the first `lanes` fields, of `width` bits (at most 16). The other fields are zero.
#[inline]
pub(super) fn pack_lanes(out: &mut Vec<u8>, fields: &[u32; LANES], lanes: usize, width: u32) {
    if lanes < FEW_LANES {
        return pack(out, &fields[..lanes], width);
    }
    if width == 0 {
        return;
    }
    macro_rules! by_width {
        ($($w:literal)*) => {
            match width {
                $($w => packed::<$w>(fields),)*
                _ => packed::<16>(fields),
            }
        };
    }
    let bytes = by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let end = out.len() + packed_bytes(lanes, width);
    // A copy of constant length is a few moves.
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

#[inline(always)]
fn packed<const W: usize>(fields: &[u32; LANES]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (groups, _) = fields.as_chunks::<8>();
    for (i, &[a, b, c, d, e, f, g, h]) in groups.iter().enumerate() {
        let four = |[a, b, c, d]: [u32; 4]| {
            u64::from(a) | u64::from(b) << W | u64::from(c) << (2 * W) | u64::from(d) << (3 * W)
        };
        let (low, high) = (four([a, b, c, d]), four([e, f, g, h]));
        let bits = u128::from(low) | u128::from(high) << (4 * W);
        // Reaches into the next eight lanes' bytes, which are written next.
        bytes[i * W..i * W + 16].copy_from_slice(&bits.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_one_field_after_the_other() {
        for width in 0..=16u32 {
            for lanes in 1..=LANES {
                let mut fields = [0u32; LANES];
                for (lane, field) in fields.iter_mut().enumerate().take(lanes) {
                    let mixed = (lane as u32 + 1).wrapping_mul(0x9E37_79B1) >> 7;
                    *field = mixed & ((1 << width) - 1);
                }
                let (mut one_by_one, mut together) = (vec![7], vec![7]);
                pack(&mut one_by_one, &fields[..lanes], width);
                pack_lanes(&mut together, &fields, lanes, width);
                assert_eq!(together, one_by_one, "{lanes} lanes of {width} bits");
            }
        }
    }
}
