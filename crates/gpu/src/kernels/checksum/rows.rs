//! Launches of `rows.cu`: feature rows in device memory, and pages of neighbour lists, are compared with
//! their CRC-32C.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use tiergraph_core::Result;

use super::{CRC32C, byte_products, inverted, power};
use crate::kernels::queue_pairs::ROW_REQUESTS;
use crate::kernels::{LANES, LIST_PAGE_BYTES, RowRequest, RowRequests, RowTargets, Source, TYPES};
use crate::shared::shared;
use crate::{DeviceBuf, DevicePtr, Grid, Kernel, Stream};

const THREADS: u32 = 256;
/// Bytes of a stripe, of which each lane has a piece.
const STRIPE: i64 = 512;
const PIECE: i64 = STRIPE / LANES as i64;
/// Bytes of the checksum at the start of a page of neighbour lists.
const PAGE_CRC_BYTES: usize = size_of::<u32>();
/// Bits of a word.
const WORD_BITS: i64 = 32;

shared! {
    #[derive(Debug, Pod)]
    struct Damage as "Damage" {
        count: u32,
        row: u32,
        target: u32,
        stored: u32,
        computed: u32,
    }
}

shared! {
    struct Arguments as "Arguments" {
        requests: DevicePtr<RowRequest>,
        count: DevicePtr<u32>,
        rows: DevicePtr<u8>,
        row_stride: u64,
        stored: DevicePtr<u32>,
        word: DevicePtr<u32>,
        stripe: DevicePtr<u32>,
        powers: DevicePtr<u32>,
        damage: DevicePtr<Damage>,
        row_bytes: u32,
        word_bytes: u32,
        whole: u32,
        behind: u32,
        first: u32,
        end: u32,
    }
}

/// The rows that were found to differ from their checksums, in device memory: how many, and one of them.
#[derive(Debug)]
pub struct DamagedRows {
    found: DeviceBuf<Damage>,
}

/// A row that differs from its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedRow {
    /// How many rows differ, this one among them.
    pub count: u32,
    /// The number of the row.
    pub row: u32,
    /// The index of the row at its destination.
    pub target: u32,
    /// What its checksum should be.
    pub stored: u32,
    /// What its checksum is.
    pub computed: u32,
}

impl DamagedRows {
    /// Room in device memory, with no row found so far.
    ///
    /// # Errors
    /// Not enough device memory, any error of the driver.
    pub fn new(stream: &Stream) -> Result<Self> {
        Ok(Self { found: stream.uploaded(&[Damage::zeroed()])? })
    }

    /// The first row that was found, if any was. Waits for all work of `stream`.
    ///
    /// # Errors
    /// Any error of that work.
    pub fn first(&self, stream: &Stream) -> Result<Option<DamagedRow>> {
        let Damage { count, row, target, stored, computed } = stream.download(&self.found, 1)?[0];
        Ok((count > 0).then_some(DamagedRow { count, row, target, stored, computed }))
    }

    /// Forgets what was found, in order with the stream.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn forget(&mut self, stream: &Stream) -> Result<()> {
        stream.fill_bytes(&mut self.found, 0)
    }
}

/// The compiled kernel that compares rows of one length with their checksums.
#[derive(Debug)]
pub struct RowChecksum {
    compare: Kernel,
    /// The checksum of every row, by its number; `None` for pages, which have theirs.
    stored: Option<DeviceBuf<u32>>,
    /// Products with the power of a word's bits.
    word: DeviceBuf<u32>,
    /// Products with the power of a stripe's bits.
    stripe: DeviceBuf<u32>,
    powers: DeviceBuf<u32>,
    row_bytes: u32,
    whole: u32,
    behind: u32,
    /// How many blocks the device runs at once.
    resident: u32,
}

pub(super) fn source() -> Source {
    Source::new("row_checksum", &[TYPES, CRC32C, ROW_REQUESTS, include_str!("rows.cu")])
        .sharing::<RowRequest>()
        .sharing::<Damage>()
        .sharing::<Arguments>()
}

impl RowChecksum {
    /// Compiles the kernel for rows of `row_bytes` bytes; `stored` has the checksum of every row, by its
    /// number.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    ///
    /// # Panics
    /// If rows have no bytes, or 2^31 or more.
    pub fn new(stream: &Stream, row_bytes: usize, stored: DeviceBuf<u32>) -> Result<Self> {
        assert!((1..1 << 31).contains(&row_bytes), "rows of `{row_bytes}` bytes");
        Self::compiled(stream, row_bytes, Some(stored), inverted(row_bytes))
    }

    /// Compiles the kernel for pages of neighbour lists of a file with this salt.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    pub fn of_pages(stream: &Stream, salt: u32) -> Result<Self> {
        let whole = inverted(LIST_PAGE_BYTES - PAGE_CRC_BYTES) ^ salt;
        Self::compiled(stream, LIST_PAGE_BYTES, None, whole)
    }

    fn compiled(
        stream: &Stream,
        row_bytes: usize,
        stored: Option<DeviceBuf<u32>>,
        whole: u32,
    ) -> Result<Self> {
        let compare = source().compile(stream.device())?.kernel("compare")?;
        Ok(Self {
            resident: compare.resident_blocks(THREADS)?,
            compare,
            stored,
            word: stream.uploaded(&byte_products(power(WORD_BITS)))?,
            stripe: stream.uploaded(&byte_products(power(8 * STRIPE)))?,
            powers: stream.uploaded(&powers(row_bytes))?,
            row_bytes: row_bytes as u32,
            whole,
            behind: power(8 * (LIST_PAGE_BYTES - PAGE_CRC_BYTES) as i64),
        })
    }

    /// Bytes of device memory that the checksums of rows take.
    pub fn device_bytes(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.bytes() as u64)
    }

    /// Compares those of the requested rows that are numbers `of` among them, and lie at their targets in
    /// `rows`, with their checksums, in order with the stream; `damaged` keeps what differs.
    ///
    /// Reads every request, its row and its checksum once.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If rows overlap.
    pub fn compare(
        &self,
        stream: &Stream,
        requests: RowRequests,
        of: Range<usize>,
        rows: RowTargets,
        damaged: &DamagedRows,
    ) -> Result<()> {
        assert!(rows.stride >= u64::from(self.row_bytes), "rows of `{}` bytes", self.row_bytes);
        let arguments = Arguments {
            requests: requests.list,
            count: requests.count,
            rows: rows.start,
            row_stride: rows.stride,
            stored: self.stored.as_ref().map_or(DevicePtr::NULL, DeviceBuf::ptr),
            word: self.word.ptr(),
            stripe: self.stripe.ptr(),
            powers: self.powers.ptr(),
            damage: damaged.found.ptr(),
            row_bytes: self.row_bytes,
            word_bytes: rows.word_bytes(0),
            whole: self.whole,
            behind: self.behind,
            first: of.start as u32,
            end: of.end as u32,
        };
        let blocks = Grid::over(of.len(), THREADS / LANES as u32).blocks.min(self.resident);
        let grid = Grid { blocks, threads: THREADS };
        // SAFETY: `Arguments` of the source; the requested rows are at their targets and below the
        // number of checksums, as whoever made the requests says.
        unsafe { self.compare.launch(stream, grid, &[&arguments]) }
    }
}

/// What the CRC of each lane's last piece of a row is multiplied by: x to the power of the bits behind
/// it, and of the word that a CRC is. The row may end before the piece.
fn powers(row_bytes: usize) -> Vec<u32> {
    let behind = |lane: i64| {
        let end = (row_bytes as i64 - 1) / STRIPE * STRIPE + (lane + 1) * PIECE;
        power(WORD_BITS + 8 * (row_bytes as i64 - end))
    };
    (0..LANES as i64).map(behind).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{multiplied, multiply};
    use super::*;

    /// The kernel's arithmetic on the CPU.
    fn twin(row: &[u8]) -> u32 {
        let word = byte_products(power(WORD_BITS));
        let stripe = byte_products(power(8 * STRIPE));
        let mut padded = row.to_vec();
        padded.resize(row.len().next_multiple_of(STRIPE as usize), 0);
        let mut sum = 0;
        for (lane, power) in powers(row.len()).into_iter().enumerate() {
            let mut sums = [0; 4];
            for bytes in padded.chunks(STRIPE as usize) {
                let piece = &bytes[lane * PIECE as usize..][..PIECE as usize];
                for (sum, word) in sums.iter_mut().zip(piece.as_chunks::<4>().0) {
                    *sum = multiplied(&stripe, *sum) ^ u32::from_le_bytes(*word);
                }
            }
            let crc = sums.into_iter().fold(0, |crc, sum| multiplied(&word, crc) ^ sum);
            sum ^= multiply(crc, power);
        }
        sum ^ inverted(row.len())
    }

    #[test]
    fn lanes_add_up_to_the_crc_of_the_row() {
        let bytes: Vec<u8> = (0..9000usize).map(|i| (i * i / 7 % 251) as u8).collect();
        for len in (1..1100).chain([4092, 4096, 4100, 8188, 8192, 9000]) {
            assert_eq!(twin(&bytes[..len]), crc32c::crc32c(&bytes[..len]), "{len} bytes");
        }
    }
}
