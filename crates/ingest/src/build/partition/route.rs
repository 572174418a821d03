//! A table from rows to buckets.
//!
//! Buckets are cut at multiples of 32 rows, but a table of all those does not fit the first cache.
//! So the table has an entry for each 4096 rows, and 128 more for those that several buckets share:
//! few, as a bucket with few rows has long ones.

use super::strips::Bucket;

/// Rows that share a fine entry, as a power of two: buckets are cut at multiples of it.
const FINE_LOG2: u32 = 5;
/// Rows that share a coarse entry, as a power of two.
const COARSE_LOG2: u32 = 12;

/// A table of the bucket of every row.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    coarse: Vec<Coarse>,
    fine: Vec<u16>,
}

/// An entry for 4096 rows: its first fine entry, and the shift from a row among these to its own.
#[derive(Debug, Clone, Copy)]
struct Coarse {
    first: u32,
    shift: u32,
}

impl Routes {
    /// The table for buckets that follow each other from row 0 on.
    pub(crate) fn new(buckets: &[Bucket]) -> Self {
        let rows = buckets.last().map_or(0, |bucket| bucket.rows.end);
        let (mut routes, mut bucket) = (Self::default(), 0);
        for begin in (0..rows).step_by(1 << COARSE_LOG2) {
            let end = rows.min(begin.saturating_add(1 << COARSE_LOG2));
            while buckets[bucket].rows.end <= begin {
                bucket += 1;
            }
            let shift = if buckets[bucket].rows.end >= end { COARSE_LOG2 } else { FINE_LOG2 };
            routes.coarse.push(Coarse { first: routes.fine.len() as u32, shift });
            for row in (begin..end).step_by(1 << shift) {
                while buckets[bucket].rows.end <= row {
                    bucket += 1;
                }
                routes.fine.push(bucket as u16);
            }
        }
        routes
    }

    /// The bucket of a row.
    #[inline(always)]
    pub(crate) fn bucket(&self, row: u32) -> u16 {
        let Coarse { first, shift } = self.coarse[(row >> COARSE_LOG2) as usize];
        self.fine[(first + ((row & ((1 << COARSE_LOG2) - 1)) >> shift)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_finds_its_bucket() {
        let ends = [32, 64, 4096, 4128, 9000 / 32 * 32, 40_000 / 32 * 32, 40_960, 50_001];
        let mut first = 0;
        let buckets = ends.map(|end| {
            let rows = first..end;
            first = end;
            Bucket { rows, strips: 0..0 }
        });
        let routes = Routes::new(&buckets);
        for (number, bucket) in buckets.iter().enumerate() {
            for row in bucket.rows.clone() {
                assert_eq!(usize::from(routes.bucket(row)), number, "row {row}");
            }
        }
        assert!(Routes::new(&[]).coarse.is_empty());
    }
}
