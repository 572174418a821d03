//! A cell's arcs without weights, in order.
//!
//! Keys are dealt to parts by their leading bits and become 32-bit words of the rest, then each
//! part is sorted in a core's first caches: half the bytes of the keys, and fewer passes over them.

use tiergraph_format::tiles::sort_words;

use super::cell::bits_below;
use super::load::Page;

/// Words of a part, about: they and the sort's scratch fit a first-level cache.
const PART_WORDS: usize = 1 << 12;

/// Sorts cells and keeps its working memory between them. One a thread.
#[derive(Debug, Default)]
pub(super) struct PartSorter {
    /// Part after part, each in ascending order.
    pub(super) words: Vec<u32>,
    /// Where each part ends.
    pub(super) ends: Vec<u32>,
    scratch: Vec<u32>,
}

/// Leading bits by which `keys` keys are best dealt to parts.
pub(super) fn part_bits(keys: usize) -> u32 {
    bits_below((keys / PART_WORDS) as u64)
}

/// The keys of some pages.
pub(super) fn keys_of(pages: &[Page]) -> usize {
    pages.iter().map(|page| page.keys.len()).sum()
}

impl PartSorter {
    /// Sorts the keys of `pages`: `split` gives the part, below `parts`, and the word of each; words
    /// of a part differ in their `bits` lowest bits. Fewer than 2³² keys.
    pub(super) fn sort(
        &mut self,
        pages: &[Page],
        parts: usize,
        bits: u32,
        split: impl Fn(u64) -> (usize, u32),
    ) {
        self.ends.clear();
        self.ends.resize(parts, 0);
        for page in pages {
            page.keys.iter().for_each(|&key| self.ends[split(key).0] += 1);
        }
        let (mut sum, mut most) = (0, 0);
        for end in &mut self.ends {
            most = most.max(*end);
            (*end, sum) = (sum, sum + *end);
        }
        // What was there before is overwritten.
        self.words.resize(sum as usize, 0);
        for page in pages {
            for &key in &page.keys {
                let (part, word) = split(key);
                let place = &mut self.ends[part];
                self.words[*place as usize] = word;
                *place += 1;
            }
        }
        if self.scratch.len() < most as usize {
            self.scratch.resize(most as usize, 0);
        }
        let mut rest = &mut self.words[..];
        let mut begin = 0;
        for &end in &self.ends {
            let (part, behind) = rest.split_at_mut((end - begin) as usize);
            sort_words(part, &mut self.scratch, bits);
            (rest, begin) = (behind, end);
        }
    }

    /// Removes all but the first of equal words of each part.
    pub(super) fn dedup(&mut self) {
        let (mut begin, mut kept) = (0, 0);
        for end in &mut self.ends {
            let part = begin..*end as usize;
            begin = part.end;
            let first = kept;
            for i in part {
                let word = self.words[i];
                // Written in any case: no branch that depends on the arcs.
                self.words[kept] = word;
                kept += usize::from(kept == first || self.words[kept - 1] != word);
            }
            *end = kept as u32;
        }
        self.words.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_sorted_and_lose_duplicates() {
        let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        let keys: Vec<u64> = (0..9000).map(mix).collect();
        let pages: Vec<Page> = keys
            .chunks(1000)
            .map(|part| Page { keys: part.to_vec(), weights: Vec::new() })
            .collect();
        assert_eq!(keys_of(&pages), 9000);
        let mut expected = keys;
        expected.sort_unstable();
        for bits in [9, 12, 14] {
            let mut sorter = PartSorter::default();
            let mask = (1u64 << bits) - 1;
            let split = |key: u64| ((key >> bits) as usize, (key & mask) as u32);
            let joined = |sorter: &PartSorter| {
                let (mut all, mut begin) = (Vec::new(), 0);
                for (part, &end) in sorter.ends.iter().enumerate() {
                    let words = &sorter.words[begin as usize..end as usize];
                    all.extend(words.iter().map(|&w| (part as u64) << bits | u64::from(w)));
                    begin = end;
                }
                all
            };
            sorter.sort(&pages, 1 << (14 - bits), bits, split);
            assert_eq!(joined(&sorter), expected);
            sorter.dedup();
            let mut distinct = expected.clone();
            distinct.dedup();
            assert_eq!(joined(&sorter), distinct);
        }
    }
}
