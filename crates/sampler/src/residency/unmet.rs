//! What is expected of items that no presampled batch met.
//!
//! Items that some batches did not meet are met by others: all these items together, by as many other
//! batches, as often as there are items that were met exactly once (I. J. Good, The population frequencies of species and
//! the estimation of population parameters, Biometrika 40, 1953, after A. M. Turing). That is shared out
//! among vertices of similar degrees, as those of many neighbours are met more often.

use std::cmp::Reverse;

use tiergraph_cache::placement::by_hotness;

/// The parts of a use, or of a transaction, that expected ones are counted in.
pub(crate) const PARTS: u64 = 1 << 20;
/// Where all of an epoch's batches were presampled, what none met counts as if one part in so many of them
/// had not been: of choices that are equal for that epoch, the better one for others is taken.
const OTHER_EPOCHS_SHARE: u64 = 1 << 12;
/// Classes of degrees: none, and each power of two.
pub(crate) const CLASSES: usize = u64::BITS as usize + 1;

/// The class of the vertices that have about so many neighbours.
pub(crate) fn class_of(degree: u64) -> u8 {
    (u64::BITS - degree.leading_zeros()) as u8
}

/// The parts of an epoch's `all` batches that are not among the `presampled` ones.
pub(crate) fn others(presampled: u64, all: u64) -> u64 {
    let others = (PARTS * all.saturating_sub(presampled)).checked_div(all);
    others.unwrap_or(0).max(PARTS / OTHER_EPOCHS_SHARE)
}

/// The items in order of hotness: those that were met, and then, while there are not `most`, others, by what
/// is `expected` of them.
pub(crate) fn hottest_first(uses: &[u32], most: usize, expected: impl Fn(u32) -> u64) -> Vec<u32> {
    let mut order = by_hotness(uses);
    let met = order.len();
    if met >= most {
        return order;
    }
    order.extend((0..uses.len() as u32).filter(|&item| uses[item as usize] == 0));
    order[met..].sort_by_key(|&item| Reverse(expected(item)));
    order.truncate(most);
    order
}

/// Counts of items by their class.
pub(crate) struct Classes {
    /// The number of items that were not met.
    unmet: [u64; CLASSES],
    /// The number of those that were met once.
    once: [u64; CLASSES],
    /// The uses of all.
    pub uses: [u64; CLASSES],
}

impl Classes {
    /// The counts of items of these classes that were used so often.
    pub fn counted(classes: impl Iterator<Item = u8>, uses: impl Iterator<Item = u64>) -> Self {
        let [unmet, once, all] = [[0; CLASSES]; 3];
        let mut counts = Self { unmet, once, uses: all };
        for (class, uses) in classes.zip(uses) {
            let class = usize::from(class);
            counts.unmet[class] += u64::from(uses == 0);
            counts.once[class] += u64::from(uses == 1);
            counts.uses[class] += uses;
        }
        counts
    }

    /// The parts of a use that are expected of an item of a class that was not met, one use at most, where
    /// `others` parts of all batches are not those that were presampled.
    pub fn expected(&self, class: usize, others: u64) -> u64 {
        (self.once[class] * others).checked_div(self.unmet[class]).unwrap_or(0).min(others)
    }
}
