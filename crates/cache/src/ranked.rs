//! A fixed set of numbers below a bound, each with its rank among the members.
//!
//! A cache looks up in it where a page or a row lies. Two bits for each number of the range (a word of
//! 64 bits and the count before it, side by side), so a look-up is one cache line, and two million rows
//! are half a megabyte, where a map of 4-byte slots would be eight.

/// A set of numbers; its members are ranked in ascending order.
///
/// ```
/// use tiergraph_cache::RankedSet;
/// let set = RankedSet::new(100, [7, 3, 99]);
/// assert_eq!((set.rank(3), set.rank(7), set.rank(99)), (Some(0), Some(1), Some(2)));
/// assert_eq!((set.rank(4), set.rank(500), set.len()), (None, None, 3));
/// assert_eq!(set.iter().collect::<Vec<_>>(), [3, 7, 99]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RankedSet {
    words: Vec<Word>,
    len: u64,
}

/// Membership of 64 numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    bits: u64,
    /// Members below.
    before: u64,
}

impl RankedSet {
    /// The set of `members`, in any order, repeated or not; those from `bound` on are left out.
    pub fn new(bound: u64, members: impl IntoIterator<Item = u64>) -> Self {
        let mut words = vec![Word::default(); bound.div_ceil(64) as usize];
        for member in members.into_iter().filter(|&member| member < bound) {
            words[(member / 64) as usize].bits |= 1 << (member % 64);
        }
        let mut len = 0;
        for word in &mut words {
            word.before = len;
            len += u64::from(word.bits.count_ones());
        }
        Self { words, len }
    }

    /// How many members are smaller than `number`; `None` if `number` is no member itself.
    #[inline]
    pub fn rank(&self, number: u64) -> Option<u64> {
        let word = self.words.get((number / 64) as usize)?;
        let bit = 1 << (number % 64);
        (word.bits & bit != 0)
            .then(|| word.before + u64::from((word.bits & (bit - 1)).count_ones()))
    }

    /// Whether `number` is a member.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        let word = self.words.get((number / 64) as usize);
        word.is_some_and(|word| word.bits >> (number % 64) & 1 != 0)
    }

    /// The number of members.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).step_by(64).zip(&self.words).flat_map(|(first, word)| {
            (0..64).filter(|bit| word.bits >> bit & 1 != 0).map(move |bit| first + bit)
        })
    }

    /// Bytes that the set takes in memory.
    pub fn resident_bytes(&self) -> u64 {
        size_of_val(&self.words[..]) as u64
    }

    /// Bytes that any set of numbers below `bound` takes in memory.
    pub fn bytes_below(bound: u64) -> u64 {
        bound.div_ceil(64) * size_of::<Word>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_the_smaller_members() {
        for bound in [0, 1, 63, 64, 65, 1000] {
            let members: Vec<u64> = (0..bound).filter(|n| n % 7 == 0 || n % 64 == 63).collect();
            let set = RankedSet::new(bound, members.iter().rev().copied().chain([bound]));
            assert_eq!((set.len(), set.is_empty()), (members.len() as u64, bound == 0));
            assert_eq!(set.resident_bytes(), RankedSet::bytes_below(bound));
            for number in 0..bound + 70 {
                let rank = members.binary_search(&number).ok().map(|rank| rank as u64);
                assert_eq!((set.rank(number), set.contains(number)), (rank, rank.is_some()));
            }
            assert_eq!(set.iter().collect::<Vec<_>>(), members);
        }
    }
}
