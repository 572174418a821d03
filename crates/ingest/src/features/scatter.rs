//! Scatter: rows that come in one order are handed on in another, within a memory budget.
//!
//! Where they do not fit in memory they are dealt to buckets of consecutive places in one temporary
//! file, and each bucket is put in order in memory: the external distribution of A. Aggarwal and
//! J. Vitter, "The input/output complexity of sorting" (1988), in one pass because the places are
//! known. Every row is then written once and read once more than it must be, in long sequential
//! pieces.

use std::path::Path;

use tiergraph_core::{Cancel, Result};
use tiergraph_mem::{AlignedBuf, Budget, PAGE_BYTES, Reservation};

use tiergraph_io::temporary::TemporaryFile;

/// Bytes of a record before its row: the row's place in its bucket.
const PLACE_BYTES: usize = 4;
/// The most bytes that a bucket writes at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// A permutation of rows: takes them in any order, and gives them back in the order of their places.
pub(crate) struct Scatter {
    row_bytes: usize,
    rows: u64,
    bucket_rows: u64,
    /// The rows of one bucket in their places, or the chunks of all buckets while rows are dealt.
    image: AlignedBuf,
    dealt: Option<Dealt>,
    _held: Reservation,
}

/// The temporary file that records are dealt to, and its buckets.
struct Dealt {
    file: TemporaryFile,
    chunk_bytes: usize,
    buckets: Vec<Bucket>,
}

/// A bucket: its chunks on disk, and the one that is being filled.
struct Bucket {
    open: AlignedBuf,
    used: usize,
    chunks: Vec<(u64, usize)>,
}

impl Scatter {
    /// A scatter of `rows` rows of `row_bytes` bytes, in three quarters of the budget left, at most.
    pub(crate) fn new(rows: u64, row_bytes: usize, budget: &Budget, path: &Path) -> Result<Self> {
        let record = PLACE_BYTES + row_bytes;
        let least_chunk = record.next_multiple_of(PAGE_BYTES);
        let most = (budget.left() / 4 * 3).max(4 * least_chunk as u64);
        let all = rows * row_bytes as u64;
        let in_bucket = (most / 2 / row_bytes as u64).clamp(1, u32::MAX.into());
        let bucket_rows = if all <= most { rows } else { in_bucket };
        let buckets = rows.div_ceil(bucket_rows.max(1));
        let image_bytes = bucket_rows.min(rows) * row_bytes as u64;
        let (mut dealt, mut bytes) = (None, image_bytes);
        if buckets > 1 {
            let each = (most / 2 / (buckets + 1)) as usize / PAGE_BYTES * PAGE_BYTES;
            let chunk_bytes = each.min(CHUNK_BYTES).max(least_chunk);
            bytes += (buckets + 1) * chunk_bytes as u64;
            dealt = Some((chunk_bytes, buckets));
        }
        let held = budget.reserve(bytes, "the feature rows being put in order")?;
        let dealt = dealt.map(|(bytes, buckets)| Dealt::new(path, bytes, buckets)).transpose()?;
        let image = AlignedBuf::zeroed(image_bytes as usize)?;
        Ok(Self { row_bytes, rows, bucket_rows, image, dealt, _held: held })
    }

    /// Takes the row that belongs at `place`.
    pub(crate) fn push(&mut self, place: u64, row: &[u8]) -> Result<()> {
        match &mut self.dealt {
            None => put(&mut self.image, place as usize, row),
            Some(dealt) => {
                let (bucket, place) = (place / self.bucket_rows, place % self.bucket_rows);
                dealt.push(bucket as usize, place as u32, row)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with every row, in the order of their places.
    pub(crate) fn finish(
        mut self,
        cancel: &Cancel,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(dealt) = &mut self.dealt else {
            let image = &self.image[..self.rows as usize * self.row_bytes];
            return image.chunks_exact(self.row_bytes).try_for_each(each);
        };
        let mut chunk = AlignedBuf::zeroed(dealt.chunk_bytes)?;
        for bucket in 0..dealt.buckets.len() {
            cancel.check("store features")?;
            dealt.load(bucket, self.row_bytes, &mut chunk, &mut self.image)?;
            let rows = (self.rows - bucket as u64 * self.bucket_rows).min(self.bucket_rows);
            let image = &self.image[..rows as usize * self.row_bytes];
            image.chunks_exact(self.row_bytes).try_for_each(&mut each)?;
        }
        Ok(())
    }
}

impl Dealt {
    fn new(path: &Path, chunk_bytes: usize, buckets: u64) -> Result<Self> {
        let open = AlignedBuf::batch(buckets as usize, chunk_bytes)?;
        let bucket = |open| Bucket { open, used: 0, chunks: Vec::new() };
        let file = TemporaryFile::create(path)?;
        Ok(Self { file, chunk_bytes, buckets: open.into_iter().map(bucket).collect() })
    }

    fn push(&mut self, bucket: usize, place: u32, row: &[u8]) -> Result<()> {
        let bucket = &mut self.buckets[bucket];
        if bucket.used + PLACE_BYTES + row.len() > bucket.open.len() {
            bucket.flush(&self.file)?;
        }
        let (head, body) = bucket.open[bucket.used..].split_at_mut(PLACE_BYTES);
        head.copy_from_slice(&place.to_le_bytes());
        body[..row.len()].copy_from_slice(row);
        bucket.used += PLACE_BYTES + row.len();
        Ok(())
    }

    /// Reads a bucket's rows and copies them to their places in `image`.
    fn load(
        &mut self,
        bucket: usize,
        row_bytes: usize,
        chunk: &mut AlignedBuf,
        image: &mut [u8],
    ) -> Result<()> {
        let bucket = &self.buckets[bucket];
        let mut put_all = |records: &[u8]| {
            for record in records.chunks_exact(PLACE_BYTES + row_bytes) {
                if let Some((place, row)) = record.split_first_chunk() {
                    put(image, u32::from_le_bytes(*place) as usize, row);
                }
            }
        };
        for &(offset, used) in &bucket.chunks {
            self.file.read(&mut chunk[..used.next_multiple_of(PAGE_BYTES)], offset)?;
            put_all(&chunk[..used]);
        }
        put_all(&bucket.open[..bucket.used]);
        Ok(())
    }
}

impl Bucket {
    fn flush(&mut self, file: &TemporaryFile) -> Result<()> {
        let pages = self.used.next_multiple_of(PAGE_BYTES);
        self.chunks.push((file.append(&self.open[..pages])?, self.used));
        self.used = 0;
        Ok(())
    }
}

fn put(image: &mut [u8], place: usize, row: &[u8]) {
    let at = place * row.len();
    image[at..at + row.len()].copy_from_slice(row);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generate::hash::mix;

    proptest! {
        #[test]
        fn rows_come_out_in_the_order_of_their_places(
            rows in 0u32..3000,
            row_bytes in 1usize..100,
            budget in prop::sample::select(vec![1u64 << 17, 1 << 19, 1 << 24]),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let budget = Budget::new(budget);
            let (n, path) = (u64::from(rows), dir.path().join("t"));
            let mut scatter = Scatter::new(n, row_bytes, &budget, &path).unwrap();
            let row = |place: u32| -> Vec<u8> {
                (0..row_bytes).map(|i| mix(u64::from(place) << 20 | i as u64) as u8).collect()
            };
            let mut places: Vec<u32> = (0..rows).collect();
            places.sort_unstable_by_key(|&place| mix(u64::from(place)));
            for place in places {
                scatter.push(place.into(), &row(place)).unwrap();
            }
            let mut next = 0;
            scatter.finish(&Cancel::default(), |got| {
                assert_eq!(got, row(next), "place {next}");
                next += 1;
                Ok(())
            }).unwrap();
            prop_assert_eq!(next, rows);
            prop_assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn what_is_larger_than_memory_goes_through_buckets() {
        let dir = tempfile::tempdir().unwrap();
        let budget = Budget::new(1 << 18);
        let scatter = Scatter::new(10_000, 64, &budget, &dir.path().join("t")).unwrap();
        assert!(scatter.dealt.as_ref().is_some_and(|dealt| dealt.buckets.len() > 5));
        assert!(budget.used() <= 1 << 18);
    }
}
