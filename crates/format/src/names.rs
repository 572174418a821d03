//! Names of vertices: the files that they are in, and how the number of a name is found.
//!
//! A table of 2^k places of 8 bytes is searched from place `hash mod 2^k` on, place after place, until one is
//! empty (D. Knuth, The Art of Computer Programming, 6.4, algorithm L). A place holds the upper half of
//! a name's hash, and one more than its number in the lower half.

use tiergraph_core::finalize;

/// The folder of the files of names.
pub const FOLDER: &str = "names";
/// The names, one after the other, in the order of their numbers: bytes of UTF-8.
pub const TEXT_FILE: &str = "names/text";
/// Where each name ends in [`TEXT_FILE`], 8 bytes each.
pub const ENDS_FILE: &str = "names/ends";
/// The table that finds names.
pub const PLACES_FILE: &str = "names/places";

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a name: from its length on, each word of 8 bytes (the last filled with zeros) is put in by
/// an exclusive or, a multiplication, a rotation and an addition; SplitMix64's finaliser ends it.
#[inline]
pub fn hash(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let mut hash = words.iter().fold((text.len() as u64).wrapping_mul(STEP), |hash, word| {
        next(hash, u64::from_le_bytes(*word))
    });
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = next(hash, u64::from_le_bytes(last));
    }
    finalize(hash)
}

/// A place of the table for the name with this hash and number.
#[inline]
pub fn place(hash: u64, number: u32) -> u64 {
    hash >> 32 << 32 | u64::from(number + 1)
}

/// The number in a place, if it may be that of the name with this hash.
#[inline]
pub fn number_in(place: u64, hash: u64) -> Option<u32> {
    if place >> 32 == hash >> 32 { (place as u32).checked_sub(1) } else { None }
}

#[inline]
fn next(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(STEP).rotate_left(29).wrapping_add(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_are_those_of_the_format() {
        assert_eq!(hash(b""), 0);
        // Worked out by docs/format.md, apart from this code.
        let known: [(&str, u64); 4] = [
            ("a", 0x5234402502b896b9),
            ("12345678", 0x3cbdbd003a0af897),
            ("123456789", 0x895c3097032a5ab0),
            ("Zürich", 0xb09dd7036c2110a9),
        ];
        known
            .iter()
            .for_each(|(text, of_text)| assert_eq!(hash(text.as_bytes()), *of_text, "{text}"));
        let texts = ["a", "b", "aa", "a\0", "12345678", "12345678\0", "123456789"];
        let all: HashSet<u64> = texts.iter().map(|text| hash(text.as_bytes())).collect();
        assert_eq!(all.len(), texts.len());
    }

    #[test]
    fn hashes_of_counted_names_spread_over_every_half() {
        let hashes: Vec<u64> = (0..1 << 16).map(|i| hash(format!("user-{i}").as_bytes())).collect();
        for bits in [|h: u64| h as u16, |h: u64| (h >> 32) as u16, |h: u64| (h >> 48) as u16] {
            let distinct: HashSet<u16> = hashes.iter().map(|&h| bits(h)).collect();
            // Of 2^16 throws into as many places, a share of 1 - 1/e has one.
            assert!((40_000..43_000).contains(&distinct.len()), "{}", distinct.len());
        }
    }

    #[test]
    fn a_place_gives_its_number_to_its_own_hash_alone() {
        let hash = hash(b"x");
        assert_eq!(number_in(place(hash, 7), hash), Some(7));
        assert_eq!(number_in(place(hash, 7), !hash), None);
        assert_eq!(number_in(0, 5), None);
    }
}
