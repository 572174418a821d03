//! Where a byte of a striped file lives: RAID-0 without a RAID.
//!
//! Unit i of a file lives on stripe i mod n, at (i / n) × unit of that stripe. The last unit may
//! be short, so the lengths of all stripes follow from the file's length, and are checked.

/// How a file is spread over its stripes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) stripes: u64,
    pub(crate) unit_bytes: u64,
}

impl Layout {
    /// The stripe that holds the byte at `offset`, and where in it.
    pub(crate) fn locate(&self, offset: u64) -> (u64, u64) {
        if self.stripes == 1 {
            return (0, offset);
        }
        let (unit, within) = (offset / self.unit_bytes, offset % self.unit_bytes);
        (unit % self.stripes, unit / self.stripes * self.unit_bytes + within)
    }

    /// How many bytes from `offset` on lie side by side.
    pub(crate) fn left(&self, offset: u64) -> u64 {
        if self.stripes == 1 { u64::MAX } else { self.unit_bytes - offset % self.unit_bytes }
    }

    /// Whether `offset..offset + len` lies in one unit, and so on one stripe in one piece.
    pub(crate) fn holds_in_one_piece(&self, offset: u64, len: u64) -> bool {
        let units = |offset: u64| offset / self.unit_bytes;
        self.stripes == 1 || len == 0 || units(offset) == units(offset.saturating_add(len - 1))
    }

    /// How long stripe `stripe` of a file of `len` bytes is.
    pub(crate) fn stripe_len(&self, stripe: u64, len: u64) -> u64 {
        let (units, rest) = (len / self.unit_bytes, len % self.unit_bytes);
        let whole = (units + self.stripes - 1 - stripe) / self.stripes * self.unit_bytes;
        whole + if units % self.stripes == stripe { rest } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_go_round_and_lengths_follow() {
        let layout = Layout { stripes: 3, unit_bytes: 10 };
        assert_eq!(layout.locate(0), (0, 0));
        assert_eq!(layout.locate(19), (1, 9));
        assert_eq!(layout.locate(34), (0, 14));
        assert!(layout.holds_in_one_piece(20, 10) && !layout.holds_in_one_piece(20, 11));
        for len in 0..100 {
            let mut lens = [0; 3];
            (0..len).for_each(|byte| lens[layout.locate(byte).0 as usize] += 1);
            assert_eq!([0, 1, 2].map(|stripe| layout.stripe_len(stripe, len)), lens);
        }
    }
}
