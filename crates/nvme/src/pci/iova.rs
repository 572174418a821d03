//! Which bus addresses are free: an IOMMU has ranges that may be used, and this process what it mapped.

use std::ops::Range;

/// The free bus addresses, in ranges that are sorted, not empty and not side by side.
#[derive(Debug)]
pub(super) struct FreeAddresses(Vec<Range<u64>>);

impl FreeAddresses {
    /// Free addresses in `ranges`, of which the first page, address 0, is never given.
    pub(super) fn new(ranges: impl IntoIterator<Item = Range<u64>>, page: u64) -> Self {
        let mut free = Self(Vec::new());
        for range in ranges {
            let start = range.start.max(page).next_multiple_of(page);
            let end = range.end - range.end % page;
            if start < end {
                free.give(start..end);
            }
        }
        free
    }

    /// Takes `len` addresses side by side, whose first is a multiple of `align`; `None` if there are none.
    pub(super) fn take(&mut self, len: u64, align: u64) -> Option<Range<u64>> {
        let fits = |range: &Range<u64>| {
            let start = range.start.checked_next_multiple_of(align)?;
            let end = start.checked_add(len)?;
            (end <= range.end).then_some(start..end)
        };
        let (number, taken) =
            self.0.iter().enumerate().find_map(|(number, range)| Some((number, fits(range)?)))?;
        let whole = self.0[number].clone();
        let left = [whole.start..taken.start, taken.end..whole.end];
        self.0.splice(number..=number, left.into_iter().filter(|range| !range.is_empty()));
        Some(taken)
    }

    /// Makes addresses free that were not.
    pub(super) fn give(&mut self, range: Range<u64>) {
        let at = self.0.partition_point(|free| free.start < range.start);
        self.0.insert(at, range);
        self.0.dedup_by(|next, free| {
            let touch = free.end >= next.start;
            if touch {
                free.end = free.end.max(next.end);
            }
            touch
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_once_and_again_when_they_are_free() {
        // The window of interrupts of a PC, and an IOMMU of 39 bits.
        let ranges = [0..0xfee0_0000, 0xfef0_0000..1 << 39];
        let mut free = FreeAddresses::new(ranges.clone(), 4096);
        let small = free.take(8192, 4096).unwrap();
        assert_eq!(small, 4096..12288, "never address 0");
        let huge = free.take(1 << 30, 2 << 20).unwrap();
        assert_eq!(huge.start, 2 << 20);
        let across = free.take(4 << 30, 2 << 20).unwrap();
        assert!(across.start >= 0xfef0_0000, "not across the window");
        assert_eq!(free.take(1 << 39, 4096), None);
        for range in [huge, across, small] {
            free.give(range);
        }
        assert_eq!(free.0, FreeAddresses::new(ranges, 4096).0);
    }
}
