//! Strips of rows, and buckets of strips: what is stored together and what is sorted together.

use std::ops::Range;

use tiergraph_format::tiles::{LANES, STRIP_ROWS};

/// Cuts rows into strips: at most 65,536 rows, at a multiple of 32, and at most `strip_arcs` arcs
/// unless 32 rows have more.
///
/// The result has each strip's first row, and then the number of rows.
pub(crate) fn cut(rows: usize, strip_arcs: u64, arcs_of: impl Fn(usize) -> u64) -> Vec<u32> {
    let mut starts = vec![0];
    let (mut begin, mut arcs) = (0, 0);
    for slice in (0..rows).step_by(LANES) {
        let more: u64 = (slice..rows.min(slice + LANES)).map(&arcs_of).sum();
        if slice > begin && (arcs + more > strip_arcs || slice - begin == STRIP_ROWS) {
            starts.push(slice as u32);
            (begin, arcs) = (slice, 0);
        }
        arcs += more;
    }
    if rows > 0 {
        starts.push(rows as u32);
    }
    starts
}

/// A bucket: consecutive strips whose arcs are sorted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// The rows of the bucket.
    pub(crate) rows: Range<u32>,
    /// The indices of the bucket's strips.
    pub(crate) strips: Range<usize>,
}

/// Joins strips into buckets of at most `bucket_arcs` arcs, unless one strip has more.
pub(crate) fn join(
    starts: &[u32],
    bucket_arcs: u64,
    arcs_of: impl Fn(usize) -> u64,
) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut arcs = 0;
    for (strip, bounds) in starts.windows(2).enumerate() {
        let more: u64 = (bounds[0]..bounds[1]).map(|row| arcs_of(row as usize)).sum();
        match buckets.last_mut() {
            Some(bucket) if arcs + more <= bucket_arcs => {
                bucket.rows.end = bounds[1];
                bucket.strips.end = strip + 1;
                arcs += more;
            }
            _ => {
                buckets.push(Bucket { rows: bounds[0]..bounds[1], strips: strip..strip + 1 });
                arcs = more;
            }
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_end_at_slices_and_hubs_stand_alone() {
        assert_eq!(cut(0, 10, |_| 0), [0]);
        assert_eq!(cut(5, 10, |_| 1), [0, 5]);
        assert_eq!(cut(100, 40, |_| 1), [0, 32, 64, 100]);
        assert_eq!(cut(100, 35, |_| 1), [0, 32, 64, 96, 100]);
        assert_eq!(cut(100, 64, |_| 1), [0, 64, 100]);
        let hub = |row| if row == 40 { 1000 } else { 1 };
        assert_eq!(cut(100, 64, hub), [0, 32, 64, 100]);
        assert_eq!(cut(140_000, 1 << 40, |_| 1), [0, 65_536, 131_072, 140_000]);
    }

    #[test]
    fn buckets_join_strips_up_to_their_size() {
        let buckets = join(&[0, 32, 64, 96, 100], 64, |_| 1);
        let rows: Vec<_> = buckets.iter().map(|b| b.rows.clone()).collect();
        assert_eq!(rows, [0..64, 64..100]);
        assert_eq!(buckets[1].strips, 2..4);
        assert!(join(&[0], 64, |_| 1).is_empty());
    }
}
