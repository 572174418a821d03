//! Rows in an emulated GPU's memory are compared with their checksums, and what is damaged is found.
#![allow(clippy::unwrap_used)]

#[path = "../../io/tests/common/emulated_gpu.rs"]
mod emulated_gpu;

use emulated_gpu::emulated_gpu;
use tiergraph_core::Draws;
use tiergraph_gpu::kernels::{
    DamagedRow, DamagedRows, RowChecksum, RowRequest, RowRequests, RowTargets,
};
use tiergraph_gpu::{DeviceBuf, Stream};

/// Rows of a test's file.
const ROWS: u32 = 60;

/// Rows of a file that were requested, as they lie in the memory of a GPU.
struct Case {
    row_bytes: usize,
    stride: usize,
    /// Bytes of the destination before the first row.
    skip: usize,
    requests: Vec<RowRequest>,
    /// The destination's bytes.
    bytes: Vec<u8>,
    stored: Vec<u32>,
}

impl Case {
    /// `count` random rows at targets in an order of their own, with random bytes between them.
    fn new(row_bytes: usize, stride: usize, skip: usize, count: u32) -> Self {
        let mut draws = Draws::new(row_bytes as u64 * 31 + u64::from(count));
        let mut random =
            |bytes| -> Vec<u8> { (0..bytes).map(|_| draws.below(256) as u8).collect() };
        let file: Vec<Vec<u8>> = (0..ROWS).map(|_| random(row_bytes)).collect();
        let mut bytes = random(skip + count as usize * stride);
        let stored = file.iter().map(|row| crc32c::crc32c(row)).collect();
        let mut targets: Vec<u32> = (0..count).collect();
        for last in (1..targets.len()).rev() {
            targets.swap(last, draws.below(last as u64 + 1) as usize);
        }
        let request = |target| RowRequest { row: draws.below(ROWS.into()) as u32, target };
        let requests: Vec<RowRequest> = targets.into_iter().map(request).collect();
        for &RowRequest { row, target } in &requests {
            let at = skip + target as usize * stride;
            bytes[at..at + row_bytes].copy_from_slice(&file[row as usize]);
        }
        Self { row_bytes, stride, skip, requests, bytes, stored }
    }

    /// The bytes of the row of request `number`.
    fn row(&mut self, number: usize) -> &mut [u8] {
        let at = self.skip + self.requests[number].target as usize * self.stride;
        &mut self.bytes[at..at + self.row_bytes]
    }

    /// What is found in the rows as they are now.
    fn compare(&self, stream: &Stream) -> Option<DamagedRow> {
        let mut damaged = DamagedRows::new(stream).unwrap();
        let kernel = self.kernel(stream);
        let found = self.compare_by(&kernel, stream, &damaged);
        damaged.forget(stream).unwrap();
        assert_eq!(damaged.first(stream).unwrap(), None);
        found
    }

    fn kernel(&self, stream: &Stream) -> RowChecksum {
        let stored = stream.uploaded(&self.stored).unwrap();
        RowChecksum::new(stream, self.row_bytes, stored).unwrap()
    }

    fn compare_by(
        &self,
        kernel: &RowChecksum,
        stream: &Stream,
        damaged: &DamagedRows,
    ) -> Option<DamagedRow> {
        // A list has a place at least.
        let unused = RowRequest { row: 0, target: 0 };
        let list: DeviceBuf<RowRequest> =
            stream.uploaded(&[self.requests.as_slice(), &[unused]].concat()).unwrap();
        let count = stream.uploaded(&[self.requests.len() as u32]).unwrap();
        let bytes = stream.uploaded(&[self.bytes.as_slice(), &[0]].concat()).unwrap();
        let requests = RowRequests { list: list.ptr(), count: count.ptr() };
        let rows = RowTargets { start: bytes.ptr().offset(self.skip), stride: self.stride as u64 };
        kernel.compare(stream, requests, 0..list.len(), rows, damaged).unwrap();
        damaged.first(stream).unwrap()
    }
}

/// Lengths of rows: around pieces, stripes and pages, odd multiples of 4, and what is no multiple of 4.
fn lengths() -> impl Iterator<Item = usize> {
    let fours = [4, 8, 12, 16, 20, 60, 64, 68, 400, 508, 512, 516, 520, 1020, 1024, 1028, 2052];
    let long = [4092, 4096, 4100, 8188, 8192];
    let odd = [1, 2, 3, 5, 15, 17, 37, 511, 513, 1002, 2047];
    fours.into_iter().chain(long).chain(odd)
}

#[test]
fn rows_of_any_length_are_what_they_should_be() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for row_bytes in lengths() {
        // Loads of 16 bytes, of 4, and of one.
        for (stride, skip) in [
            (row_bytes.next_multiple_of(16), 0),
            (row_bytes.next_multiple_of(16) + 16, 32),
            (row_bytes.next_multiple_of(4), 4),
            (row_bytes, 0),
            (row_bytes + 1, 3),
        ] {
            let case = Case::new(row_bytes, stride, skip, 19);
            assert_eq!(case.compare(&stream), None, "{row_bytes} bytes, {stride} apart, at {skip}");
        }
    }
}

#[test]
fn any_number_of_rows_is_compared() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for count in [0, 1, 7, 8, 9, 1000] {
        let mut case = Case::new(36, 36, 0, count);
        assert_eq!(case.compare(&stream), None, "{count} rows");
        // The last of them is compared, too.
        if let Some(last) = case.requests.len().checked_sub(1) {
            case.row(last)[35] ^= 1;
            let found = case.compare(&stream).unwrap();
            assert_eq!(
                (found.count, found.target),
                (1, case.requests[last].target),
                "{count} rows"
            );
        }
    }
}

#[test]
fn a_damaged_row_is_found_wherever_its_damage_is() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for row_bytes in lengths() {
        let mut case = Case::new(row_bytes, row_bytes.next_multiple_of(16), 0, 9);
        for at in [0, row_bytes / 2, row_bytes - 1] {
            case.row(5)[at] ^= 1 << (at % 8);
            let RowRequest { row, target } = case.requests[5];
            let (stored, computed) = (case.stored[row as usize], crc32c::crc32c(case.row(5)));
            let expected = DamagedRow { count: 1, row, target, stored, computed };
            assert_eq!(case.compare(&stream), Some(expected), "byte {at} of {row_bytes}");
            case.row(5)[at] ^= 1 << (at % 8);
        }
        assert_eq!(case.compare(&stream), None);
    }
}

#[test]
fn rows_that_never_came_and_rows_of_other_places_are_found() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for row_bytes in lengths() {
        let mut case = Case::new(row_bytes, row_bytes, 0, 9);
        (0..9).for_each(|number| case.row(number).fill(0));
        // What has no row by chance: a row of zeros.
        let zeros = crc32c::crc32c(&vec![0; row_bytes]);
        let is_zero = |request: &&RowRequest| case.stored[request.row as usize] == zeros;
        let expected = 9 - case.requests.iter().filter(is_zero).count() as u32;
        assert_eq!(case.compare(&stream).map_or(0, |found| found.count), expected);
    }
    let mut case = Case::new(516, 516, 0, 9);
    let other = case.requests.iter().position(|r| r.row != case.requests[2].row).unwrap();
    let taken = case.row(other).to_vec();
    case.row(2).copy_from_slice(&taken);
    let found = case.compare(&stream).unwrap();
    assert_eq!((found.count, found.row), (1, case.requests[2].row));
    assert_eq!(found.computed, case.stored[case.requests[other].row as usize]);
}

#[test]
fn damage_is_kept_from_batch_to_batch_until_it_is_forgotten() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let mut damaged = DamagedRows::new(&stream).unwrap();
    let sound = Case::new(100, 112, 0, 30);
    let mut bad = Case::new(100, 112, 0, 20);
    let (kernel, of_bad) = (sound.kernel(&stream), bad.kernel(&stream));
    bad.row(3)[50] ^= 4;
    bad.row(17)[99] ^= 4;
    assert_eq!(sound.compare_by(&kernel, &stream, &damaged), None);
    let first = bad.compare_by(&of_bad, &stream, &damaged).unwrap();
    assert_eq!(first.count, 2);
    assert!([3, 17].map(|number: usize| bad.requests[number].target).contains(&first.target));
    assert_eq!(sound.compare_by(&kernel, &stream, &damaged), Some(first));
    let again = bad.compare_by(&of_bad, &stream, &damaged).unwrap();
    assert_eq!(again, DamagedRow { count: 4, ..first });
    damaged.forget(&stream).unwrap();
    assert_eq!(sound.compare_by(&kernel, &stream, &damaged), None);
}

#[test]
fn pages_carry_their_checksums() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let salt = 0x1234_5678;
    let mut case = Case::new(4096, 4096, 0, 13);
    for number in 0..13 {
        let page = u64::from(case.requests[number].row).to_le_bytes();
        let bytes = case.row(number);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&page), &bytes[4..]) ^ salt;
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
    let kernel = RowChecksum::of_pages(&stream, salt).unwrap();
    let mut damaged = DamagedRows::new(&stream).unwrap();
    assert_eq!(case.compare_by(&kernel, &stream, &damaged), None);
    for at in [0, 3, 4, 15, 16, 511, 512, 4095] {
        case.row(7)[at] ^= 8;
        let found = case.compare_by(&kernel, &stream, &damaged).unwrap();
        assert_eq!((found.count, found.row), (1, case.requests[7].row), "byte {at}");
        case.row(7)[at] ^= 8;
        damaged.forget(&stream).unwrap();
    }
    // A page of another place, and of another file.
    case.requests[2].row += 1;
    assert_eq!(case.compare_by(&kernel, &stream, &damaged).unwrap().count, 1);
    let other = RowChecksum::of_pages(&stream, salt + 1).unwrap();
    damaged.forget(&stream).unwrap();
    assert_eq!(case.compare_by(&other, &stream, &damaged).unwrap().count, 13);
}
