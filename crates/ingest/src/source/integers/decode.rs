//! Decoding integers of any type to columns of ids.

use crate::npy::{Kind, Number};
use crate::source::batch::VertexId;

/// A choice of integers that make up a column: all, or every other one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Every {
    One,
    FirstOfPair,
    SecondOfPair,
}

/// Appends integers of type `dtype` to `ids`; returns the first negative one and its index, if any is.
pub(super) fn decode<I: VertexId>(
    bytes: &[u8],
    dtype: Number,
    every: Every,
    ids: &mut Vec<I>,
) -> Option<(usize, i64)> {
    let signed = dtype.kind == Kind::Signed;
    let from = From { bytes, every, signed, big_endian: dtype.big_endian };
    match (dtype.bytes, signed) {
        (1, true) => from.append(ids, |b| i64::from(i8::from_le_bytes(b)) as u64),
        (1, false) => from.append(ids, |b| u8::from_le_bytes(b).into()),
        (2, true) => from.append(ids, |b| i64::from(i16::from_le_bytes(b)) as u64),
        (2, false) => from.append(ids, |b| u16::from_le_bytes(b).into()),
        (4, true) => from.append(ids, |b| i64::from(i32::from_le_bytes(b)) as u64),
        (4, false) => from.append(ids, |b| u32::from_le_bytes(b).into()),
        _ => from.append(ids, u64::from_le_bytes),
    }
}

struct From<'a> {
    bytes: &'a [u8],
    every: Every,
    signed: bool,
    big_endian: bool,
}

impl From<'_> {
    /// Appends integers by `read`, which takes little-endian bytes and gives 64 bits, sign highest.
    fn append<I: VertexId, const N: usize>(
        &self,
        ids: &mut Vec<I>,
        read: impl Fn([u8; N]) -> u64 + Copy,
    ) -> Option<(usize, i64)> {
        if !self.big_endian {
            return self.append_words(ids, read);
        }
        self.append_words(ids, move |mut bytes: [u8; N]| {
            bytes.reverse();
            read(bytes)
        })
    }

    fn append_words<I: VertexId, const N: usize>(
        &self,
        ids: &mut Vec<I>,
        read: impl Fn([u8; N]) -> u64 + Copy,
    ) -> Option<(usize, i64)> {
        let (words, _) = self.bytes.as_chunks::<N>();
        let (pairs, _) = words.as_chunks::<2>();
        match self.every {
            Every::One => self.append_all(ids, words.iter().map(|&word| read(word))),
            Every::FirstOfPair => self.append_all(ids, pairs.iter().map(|pair| read(pair[0]))),
            Every::SecondOfPair => self.append_all(ids, pairs.iter().map(|pair| read(pair[1]))),
        }
    }

    /// Appends values by two loops without branches, which the compiler vectorises.
    fn append_all<I: VertexId>(
        &self,
        ids: &mut Vec<I>,
        values: impl Iterator<Item = u64> + Clone,
    ) -> Option<(usize, i64)> {
        ids.extend(values.clone().map(I::from_u64));
        let negative = |value: u64| (value as i64) < 0;
        if !self.signed || !negative(values.clone().fold(0, |bits, value| bits | value)) {
            return None;
        }
        let found = values.enumerate().find(|&(_, value)| negative(value));
        found.map(|(index, value)| (index, value as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_type_and_order_are_told_from_negative_ones() {
        let values = [1i64, 0, 7, 3, 100, 2];
        for (bytes, kind) in [1, 2, 4, 8]
            .into_iter()
            .flat_map(|bytes| [Kind::Signed, Kind::Unsigned].map(|kind| (bytes, kind)))
        {
            for big_endian in [false, true] {
                let dtype = Number { kind, bytes, big_endian };
                let of = |values: &[i64]| -> Vec<u8> {
                    let bytes_of = |value: &i64| match big_endian {
                        false => value.to_le_bytes()[..bytes].to_vec(),
                        true => value.to_be_bytes()[8 - bytes..].to_vec(),
                    };
                    values.iter().flat_map(bytes_of).collect()
                };
                let decoded = |values: &[i64], every| {
                    let mut ids: Vec<u64> = Vec::new();
                    let fault = decode(&of(values), dtype, every, &mut ids);
                    (ids, fault)
                };
                assert_eq!(decoded(&values, Every::One), (vec![1, 0, 7, 3, 100, 2], None));
                assert_eq!(decoded(&values, Every::FirstOfPair), (vec![1, 7, 100], None));
                assert_eq!(decoded(&values, Every::SecondOfPair), (vec![0, 3, 2], None));
                let (ids, fault) = decoded(&[4, 5, 6, -3, -1, 2], Every::SecondOfPair);
                match kind {
                    Kind::Signed => assert_eq!(fault, Some((1, -3))),
                    _ => assert_eq!((ids[1], fault), (u64::MAX >> (64 - 8 * bytes) & !2, None)),
                }
            }
        }
    }
}
