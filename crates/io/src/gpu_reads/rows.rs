//! Where rows lie on drives, and how much staging memory a read of one needs.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::kernels::RowPlaces;
use tiergraph_mem::PAGE_BYTES;

/// Where the rows of a file lie: in groups side by side, such as pages, whose bytes are striped over
/// drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsOnDrives {
    /// The byte of the stripes at which the first group begins.
    pub start: u64,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Bytes from the start of a row to the start of the next in its group.
    pub stride: u32,
    /// How many rows a group has.
    pub rows_per_group: u32,
    /// Bytes from the start of a group to the start of the next.
    pub group_bytes: u32,
    /// Bytes of a stripe, a power of two: stripe i is on drive i mod the number of drives.
    pub stripe_bytes: u32,
}

impl RowsOnDrives {
    /// Rows of `row_bytes` side by side, in stripes of 1 MiB.
    pub fn packed(row_bytes: u32) -> Self {
        let (stride, group_bytes) = (row_bytes, row_bytes);
        Self { start: 0, row_bytes, stride, rows_per_group: 1, group_bytes, stripe_bytes: 1 << 20 }
    }

    /// The places as kernels compute them, on `drives` drives of blocks of `block_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for rows that are not inside their groups, rows that are longer than
    /// a stripe, and rows whose blocks are more than two pages.
    pub(super) fn places(&self, drives: usize, block_bytes: u64) -> Result<RowPlaces> {
        let Self { start, row_bytes, stride, rows_per_group, group_bytes, stripe_bytes } = *self;
        let refused = |expected: &str| {
            Err(Error::new(ErrorKind::Input, "read rows by a GPU")
                .expected(expected)
                .got(format!("{self:?} on `{drives}` drives of blocks of `{block_bytes}` bytes")))
        };
        let last = rows_per_group.checked_sub(1).and_then(|rows| rows.checked_mul(stride));
        let end = last.and_then(|last| last.checked_add(row_bytes));
        let is_inside = end.is_some_and(|end| end <= group_bytes);
        if row_bytes == 0 || stride < row_bytes || !is_inside {
            return refused("rows that lie side by side in their groups");
        }
        if !stripe_bytes.is_power_of_two() || !u64::from(stripe_bytes).is_multiple_of(block_bytes) {
            return refused("stripes of a power of two of bytes, in whole blocks");
        }
        if !start.is_multiple_of(block_bytes) {
            return refused("groups from a block on");
        }
        if drives > 1 && row_bytes > stripe_bytes {
            return refused("rows that are no longer than a stripe");
        }
        let most = (self.most_blocks(block_bytes) * block_bytes) as usize;
        let span_bytes = match most {
            // A command names two pages, and such a span touches no more wherever it begins.
            0..=PAGE_BYTES => most,
            _ if most <= 2 * PAGE_BYTES => 2 * PAGE_BYTES,
            _ => return refused("rows whose blocks are at most `8192` bytes"),
        };
        Ok(RowPlaces {
            start,
            row_bytes,
            stride,
            rows_per_group,
            group_bytes,
            stripe_log2: stripe_bytes.ilog2(),
            drives: drives as u32,
            block_log2: block_bytes.ilog2(),
            span_bytes: span_bytes as u32,
        })
    }

    /// The most blocks that a row has bytes in.
    fn most_blocks(&self, block_bytes: u64) -> u64 {
        let [row, stride, group] = [self.row_bytes, self.stride, self.group_bytes].map(u64::from);
        let blocks = |skip: u64| (skip + row).div_ceil(block_bytes);
        let starts = u64::from(self.rows_per_group).min(block_bytes);
        if group.is_multiple_of(block_bytes) {
            let in_group = (0..starts).map(|number| blocks(number * stride % block_bytes));
            return in_group.max().unwrap_or(0);
        }
        // Both are multiples of this, and so is every row's start.
        let step = [stride, group].map(u64::trailing_zeros).into_iter().min();
        let step = step.map_or(1, |log2| block_bytes.min(1 << log2.min(63)));
        blocks(block_bytes - step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(rows: RowsOnDrives, drives: usize, block_bytes: u64) -> Result<u32> {
        rows.places(drives, block_bytes).map(|places| places.span_bytes)
    }

    fn paged(row_bytes: u32, stride: u32) -> RowsOnDrives {
        let rows = RowsOnDrives::packed(row_bytes);
        RowsOnDrives { stride, rows_per_group: 4096 / stride, group_bytes: 4096, ..rows }
    }

    #[test]
    fn a_span_holds_the_blocks_of_any_row() {
        assert_eq!(span(RowsOnDrives::packed(512), 3, 512).unwrap(), 512);
        assert_eq!(span(RowsOnDrives::packed(512), 3, 4096).unwrap(), 4096);
        assert_eq!(span(RowsOnDrives::packed(1000), 1, 512).unwrap(), 1536);
        assert_eq!(span(RowsOnDrives::packed(4096), 2, 512).unwrap(), 4096);
        // A row that crosses a page needs both.
        assert_eq!(span(RowsOnDrives::packed(1000), 1, 4096).unwrap(), 8192);
        // Rows of the format's pages never do.
        assert_eq!(span(paged(1000, 1024), 2, 4096).unwrap(), 4096);
        assert_eq!(span(paged(400, 408), 2, 4096).unwrap(), 4096);
        assert_eq!(span(paged(400, 408), 2, 512).unwrap(), 1024);
    }

    #[test]
    fn rows_that_no_command_reads_are_refused() {
        let refused = |rows, drives, what: &str| {
            let message = span(rows, drives, 512).unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        };
        let long = RowsOnDrives { stripe_bytes: 512, ..RowsOnDrives::packed(1000) };
        refused(long, 2, "no longer than a stripe");
        refused(RowsOnDrives::packed(0), 1, "in their groups");
        refused(RowsOnDrives::packed(8192 + 4), 1, "at most `8192`");
        refused(paged(1000, 999), 1, "in their groups");
        let odd = RowsOnDrives { stripe_bytes: 3 << 20, ..RowsOnDrives::packed(512) };
        refused(odd, 1, "a power of two");
    }
}
