//! NumPy's numbers as floats, and as integers.

use crate::npy::{Kind, Number};

impl Number {
    /// Appends the numbers in `bytes` as 32-bit floats, rounded where they have more digits.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut Vec<f32>) {
        match (self.kind, self.bytes) {
            (Kind::Bool, _) | (Kind::Unsigned, 1) => extend(bytes, out, |[b]: [u8; 1]| b.into()),
            (Kind::Signed, 1) => extend(bytes, out, |[b]: [u8; 1]| (b as i8).into()),
            (Kind::Signed, 2) => self.each(bytes, out, |b| i16::from_le_bytes(b).into()),
            (Kind::Unsigned, 2) => self.each(bytes, out, |b| u16::from_le_bytes(b).into()),
            (Kind::Signed, 4) => self.each(bytes, out, |b| i32::from_le_bytes(b) as f32),
            (Kind::Unsigned, 4) => self.each(bytes, out, |b| u32::from_le_bytes(b) as f32),
            (Kind::Signed, _) => self.each(bytes, out, |b| i64::from_le_bytes(b) as f32),
            (Kind::Unsigned, _) => self.each(bytes, out, |b| u64::from_le_bytes(b) as f32),
            (Kind::Float, 2) => {
                self.each(bytes, out, |b| half::f16::from_le_bytes(b).to_f32());
            }
            (Kind::Float, 4) => self.each(bytes, out, f32::from_le_bytes),
            (Kind::Float, _) => self.each(bytes, out, |b| f64::from_le_bytes(b) as f32),
        }
    }

    /// Appends the integers in `bytes`, whose 128 bits hold every type's values. Floats are none.
    pub(crate) fn integers(self, bytes: &[u8], out: &mut Vec<i128>) {
        match (self.kind, self.bytes) {
            (Kind::Float, _) => {}
            (Kind::Bool, _) | (Kind::Unsigned, 1) => extend(bytes, out, |[b]: [u8; 1]| b.into()),
            (Kind::Signed, 1) => extend(bytes, out, |[b]: [u8; 1]| (b as i8).into()),
            (Kind::Signed, 2) => self.each(bytes, out, |b| i16::from_le_bytes(b).into()),
            (Kind::Unsigned, 2) => self.each(bytes, out, |b| u16::from_le_bytes(b).into()),
            (Kind::Signed, 4) => self.each(bytes, out, |b| i32::from_le_bytes(b).into()),
            (Kind::Unsigned, 4) => self.each(bytes, out, |b| u32::from_le_bytes(b).into()),
            (Kind::Signed, _) => self.each(bytes, out, |b| i64::from_le_bytes(b).into()),
            (Kind::Unsigned, _) => self.each(bytes, out, |b| u64::from_le_bytes(b).into()),
        }
    }

    /// Appends the numbers of `N` bytes, whose bytes `read` gets in little-endian order.
    fn each<const N: usize, T>(self, bytes: &[u8], out: &mut Vec<T>, read: impl Fn([u8; N]) -> T) {
        if self.big_endian {
            let turned = |mut b: [u8; N]| {
                b.reverse();
                read(b)
            };
            extend(bytes, out, turned);
        } else {
            extend(bytes, out, read);
        }
    }
}

fn extend<const N: usize, T>(bytes: &[u8], out: &mut Vec<T>, read: impl Fn([u8; N]) -> T) {
    out.extend(bytes.as_chunks::<N>().0.iter().map(|&b| read(b)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_keeps_its_values() {
        let number = |kind, bytes, big_endian| Number { kind, bytes, big_endian };
        let floats = |n: Number, bytes: &[u8]| {
            let mut out = Vec::new();
            n.decode(bytes, &mut out);
            out
        };
        let integers = |n: Number, bytes: &[u8]| {
            let mut out = Vec::new();
            n.integers(bytes, &mut out);
            out
        };
        for big in [false, true] {
            let turn = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                if big {
                    bytes.reverse();
                }
                bytes
            };
            for (n, bytes, value) in [
                (number(Kind::Signed, 2, big), turn(&(-3i16).to_le_bytes()), -3),
                (number(Kind::Unsigned, 2, big), turn(&65_535u16.to_le_bytes()), 65_535),
                (number(Kind::Signed, 4, big), turn(&(-70_000i32).to_le_bytes()), -70_000),
                (number(Kind::Unsigned, 4, big), turn(&u32::MAX.to_le_bytes()), u32::MAX.into()),
                (number(Kind::Signed, 8, big), turn(&i64::MIN.to_le_bytes()), i64::MIN.into()),
                (number(Kind::Unsigned, 8, big), turn(&u64::MAX.to_le_bytes()), u64::MAX.into()),
                (number(Kind::Signed, 1, big), vec![255], -1),
                (number(Kind::Unsigned, 1, big), vec![255], 255),
                (number(Kind::Bool, 1, big), vec![1], 1),
            ] {
                assert_eq!(integers(n, &bytes), [value], "{n:?}");
                assert_eq!(floats(n, &bytes), [value as f32], "{n:?}");
            }
            let half = half::f16::from_f32(-1.5).to_le_bytes();
            assert_eq!(floats(number(Kind::Float, 2, big), &turn(&half)), [-1.5]);
            assert_eq!(floats(number(Kind::Float, 4, big), &turn(&0.1f32.to_le_bytes())), [0.1]);
            let wide = number(Kind::Float, 8, big);
            assert_eq!(floats(wide, &turn(&0.1f64.to_le_bytes())), [0.1]);
            assert_eq!(integers(wide, &turn(&0.1f64.to_le_bytes())), []);
        }
    }
}
