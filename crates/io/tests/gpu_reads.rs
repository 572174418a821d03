//! Rows that an emulated GPU asks software controllers for, compared with what is on the drives.
#![allow(clippy::unwrap_used)]

#[path = "common/emulated_gpu.rs"]
mod emulated_gpu;

use std::time::{Duration, Instant};

use emulated_gpu::emulated_gpu;
use tiergraph_core::{Draws, ErrorKind, Result};
use tiergraph_gpu::kernels::{PageCache, RowRequest, RowRequests, RowTargets};
use tiergraph_gpu::{Device, DeviceBuf, Event, Stream};
use tiergraph_io::gpu_reads::{
    BenchTable, CoupledReads, GpuDrive, GpuReadLoad, GpuReadOptions, GpuReads, Manner, ReadStreams,
    RoundReads, RowLists, RowsOnDrives,
};
use tiergraph_nvme::{Faults, MemoryStorage, SoftwareOptions, Timing};

/// Rows of a test's file.
const ROWS: u32 = 500;
/// Small rings, so that batches wrap them many times.
const OPTIONS: GpuReadOptions = GpuReadOptions {
    batches: 2,
    pairs_per_drive: 2,
    entries: 16,
    submit_threads: 128,
    complete_blocks: 2,
    complete_threads: 96,
    timeout: Duration::from_secs(20),
};
/// What no row has.
const UNTOUCHED: u8 = 0xee;

/// A file of rows, on drives whose blocks have 512 bytes.
struct Case {
    rows: RowsOnDrives,
    file: Vec<u8>,
    stripes: Vec<Vec<u8>>,
}

impl Case {
    fn new(rows: RowsOnDrives, drives: usize) -> Self {
        let groups = ROWS.div_ceil(rows.rows_per_group);
        let whole = rows.start as u32 + groups * rows.group_bytes;
        let whole = whole.next_multiple_of(rows.stripe_bytes) as usize;
        let mut draws = Draws::new(7);
        let file: Vec<u8> = (0..whole).map(|_| draws.below(200) as u8).collect();
        let mut stripes = vec![Vec::new(); drives];
        for (number, stripe) in file.chunks(rows.stripe_bytes as usize).enumerate() {
            stripes[number % drives].extend_from_slice(stripe);
        }
        Self { rows, file, stripes }
    }

    fn row(&self, row: u32) -> &[u8] {
        let RowsOnDrives { start, row_bytes, stride, rows_per_group, group_bytes, .. } = self.rows;
        let begin = row / rows_per_group * group_bytes + row % rows_per_group * stride;
        let begin = start as u32 + begin;
        &self.file[begin as usize..][..row_bytes as usize]
    }

    fn drives(&self, faults: Faults) -> Vec<GpuDrive> {
        let drive = |content: &Vec<u8>| {
            let options = SoftwareOptions { block_bytes: 512, faults, ..Default::default() };
            GpuDrive::software(MemoryStorage::new(content).unwrap(), options, Timing::default())
        };
        self.stripes.iter().map(|content| drive(content).unwrap()).collect()
    }
}

/// Rows side by side, in stripes of two pages.
fn packed(row_bytes: u32) -> RowsOnDrives {
    RowsOnDrives { stripe_bytes: 8192, ..RowsOnDrives::packed(row_bytes) }
}

/// As many rows as a page has room for, spread over it.
fn paged(row_bytes: u32) -> RowsOnDrives {
    let fit = 4096 / row_bytes;
    RowsOnDrives {
        stride: 4096 / fit / 4 * 4,
        rows_per_group: fit,
        group_bytes: 4096,
        ..packed(row_bytes)
    }
}

/// Requested rows and their destination, in the GPU's memory.
struct Wanted {
    requests: Vec<RowRequest>,
    list: DeviceBuf<RowRequest>,
    count: DeviceBuf<u32>,
    to: DeviceBuf<u8>,
}

impl Wanted {
    /// `count` random rows, at targets in an order of their own.
    fn random(stream: &Stream, count: u32, row_bytes: u32, seed: u64) -> Self {
        let mut draws = Draws::new(seed);
        let mut targets: Vec<u32> = (0..count).collect();
        for last in (1..targets.len()).rev() {
            targets.swap(last, draws.below(last as u64 + 1) as usize);
        }
        let request = |target| RowRequest { row: draws.below(ROWS.into()) as u32, target };
        Self::of(stream, targets.into_iter().map(request).collect(), row_bytes)
    }

    /// `count` rows, no two of them the same.
    fn distinct(stream: &Stream, count: u32, row_bytes: u32, seed: u64) -> Self {
        let mut draws = Draws::new(seed);
        let mut rows: Vec<u32> = (0..ROWS).collect();
        for last in (1..rows.len()).rev() {
            rows.swap(last, draws.below(last as u64 + 1) as usize);
        }
        let requests = (0..count).zip(rows).map(|(target, row)| RowRequest { row, target });
        Self::of(stream, requests.collect(), row_bytes)
    }

    fn of(stream: &Stream, requests: Vec<RowRequest>, row_bytes: u32) -> Self {
        let list = stream.uploaded(&requests).unwrap();
        let count = stream.uploaded(&[requests.len() as u32]).unwrap();
        let to = stream.uploaded(&vec![UNTOUCHED; requests.len() * row_bytes as usize]).unwrap();
        Self { requests, list, count, to }
    }

    fn requests(&self) -> RowRequests {
        RowRequests { list: self.list.ptr(), count: self.count.ptr() }
    }

    fn to(&self, row_bytes: u32) -> RowTargets {
        RowTargets { start: self.to.ptr(), stride: row_bytes.into() }
    }

    /// How many rows are not what the file has.
    fn wrong(&self, stream: &Stream, case: &Case) -> usize {
        let (row_bytes, got) =
            (case.rows.row_bytes as usize, stream.download(&self.to, self.to.len()).unwrap());
        let is_wrong = |request: &&RowRequest| {
            got[request.target as usize * row_bytes..][..row_bytes] != *case.row(request.row)
        };
        self.requests.iter().filter(is_wrong).count()
    }
}

fn streams(device: &Device) -> ReadStreams {
    let stream = || Stream::new(device).unwrap();
    ReadStreams { submitting: stream(), completing: stream() }
}

fn reads(stream: &Stream, case: &Case, faults: Faults, options: GpuReadOptions) -> GpuReads {
    GpuReads::new(stream, case.drives(faults), &case.rows, options).unwrap()
}

/// Completions in any order, some of them late.
fn unordered() -> Faults {
    let delay = Duration::from_micros(300);
    Faults { seed: 3, late: 0.2, delay, shuffled: true, ..Default::default() }
}

fn every_layout() -> Vec<Case> {
    let aligned = [512, 1024, 2048, 4096].map(packed);
    let mut cases: Vec<Case> = aligned.map(|rows| Case::new(rows, 3)).into();
    cases.extend([paged(1000), paged(400), paged(1002)].map(|rows| Case::new(rows, 3)));
    // These begin anywhere in a block.
    cases.extend([packed(1000), packed(36), packed(2047)].map(|rows| Case::new(rows, 1)));
    // Behind something else on the drives.
    cases.push(Case::new(RowsOnDrives { start: 3 * 8192, ..paged(400) }, 3));
    cases
}

/// Rows of which some lie in two stripes, and so on two drives.
fn crossing() -> Vec<Case> {
    let rows = [packed(3072), packed(1400), RowsOnDrives { start: 4096, ..packed(6000) }];
    rows.map(|rows| Case::new(rows, 3)).into()
}

#[test]
fn rows_of_any_size_come_from_any_number_of_drives() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let streams = streams(&device);
    for case in every_layout().into_iter().chain(crossing()) {
        let row_bytes = case.rows.row_bytes;
        let mut reads = reads(&streams.completing, &case, unordered(), OPTIONS);
        let may_cross = row_bytes > 4096 || row_bytes == 3072 || row_bytes == 1400;
        assert_eq!(reads.capacity(), if may_cross { 15 } else { 30 });
        for (seed, count) in [(1, 1), (2, 30), (3, 31), (4, 400)] {
            let wanted = Wanted::random(&streams.completing, count, row_bytes, seed);
            let (requests, to) = (wanted.requests(), wanted.to(row_bytes));
            reads.read(&streams, requests, count as usize, to).unwrap();
            assert_eq!(wanted.wrong(&streams.completing, &case), 0, "{:?}", case.rows);
        }
    }
}

#[test]
fn warps_that_wait_for_their_own_rows_read_the_same() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for case in every_layout() {
        let row_bytes = case.rows.row_bytes;
        let drives = case.drives(unordered());
        let mut reads = CoupledReads::new(&stream, drives, &case.rows, OPTIONS).unwrap();
        for (seed, count) in [(1, 1), (4, 200)] {
            let wanted = Wanted::random(&stream, count, row_bytes, seed);
            reads.read(&stream, 2, wanted.requests(), wanted.to(row_bytes)).unwrap();
            assert_eq!(wanted.wrong(&stream, &case), 0, "{:?}", case.rows);
        }
    }
}

#[test]
fn a_page_cache_has_the_rows_that_came_last_and_those_that_came() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for case in every_layout() {
        let row_bytes = case.rows.row_bytes;
        for sets in [0, 1, 3, 100] {
            let mut reads =
                CoupledReads::new(&stream, case.drives(unordered()), &case.rows, OPTIONS).unwrap();
            let set_bytes = 32 * (u64::from(row_bytes).next_multiple_of(16) + 8) + 4;
            let cache = PageCache::new(&stream, row_bytes as usize, (sets + 1) * set_bytes - 1);
            let cache = cache.unwrap();
            assert_eq!(cache.capacity(), 32 * sets);
            reads.keep_in(cache);
            let (mut asked, mut hits) = (0, Vec::new());
            for seed in [1, 1, 2, 3, 1] {
                let wanted = Wanted::distinct(&stream, 200, row_bytes, seed);
                let before = reads.found(&stream).unwrap();
                reads.read(&stream, 2, wanted.requests(), wanted.to(row_bytes)).unwrap();
                assert_eq!(wanted.wrong(&stream, &case), 0, "`{sets}` sets of {:?}", case.rows);
                let blocks = reads.bytes_asked(&stream).unwrap();
                let found = reads.found(&stream).unwrap() - before;
                assert_eq!(blocks == asked, found == 200, "{found} found");
                (asked, hits) = (blocks, [&hits[..], &[found]].concat());
            }
            match sets {
                0 => assert_eq!(hits, [0; 5]),
                // What came first has gone.
                1 | 3 => assert!(hits[0] == 0 && hits[1] <= 32 * sets, "{hits:?}"),
                // A set for five rows: all are there.
                _ => assert!(hits[0] == 0 && hits[1] == 200 && hits[4] == 200, "{hits:?}"),
            }
        }
    }
}

#[test]
fn a_row_that_a_drive_refuses_is_not_in_the_page_cache() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let case = Case::new(packed(512), 2);
    let faults = Faults { seed: 1, failed: 0.1, ..Default::default() };
    let mut reads = CoupledReads::new(&stream, case.drives(faults), &case.rows, OPTIONS).unwrap();
    reads.keep_in(PageCache::new(&stream, 512, 1 << 20).unwrap());
    let wanted = Wanted::distinct(&stream, 200, 512, 1);
    let read = |reads: &mut CoupledReads| reads.read(&stream, 2, wanted.requests(), wanted.to(512));
    let error = read(&mut reads).unwrap_err();
    assert!(error.to_string().contains("unrecovered read error"), "{error}");
    // What was refused is asked for again, and comes at last.
    while read(&mut reads).is_err() {}
    assert_eq!(wanted.wrong(&stream, &case), 0);
    let (found, blocks) = (reads.found(&stream).unwrap(), reads.bytes_asked(&stream).unwrap());
    read(&mut reads).unwrap();
    assert_eq!(reads.found(&stream).unwrap(), found + 200);
    assert_eq!(reads.bytes_asked(&stream).unwrap(), blocks);
}

#[test]
fn warps_that_share_a_queue_pair_use_its_entries_and_identifiers_again() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let case = Case::new(packed(512), 1);
    for entries in [2, 4, 16, 1024] {
        let options = GpuReadOptions { pairs_per_drive: 1, entries, ..OPTIONS };
        let drives = case.drives(unordered());
        let mut reads = CoupledReads::new(&stream, drives, &case.rows, options).unwrap();
        for seed in 0..10 {
            let wanted = Wanted::random(&stream, 90, 512, seed);
            reads.read(&stream, 1, wanted.requests(), wanted.to(512)).unwrap();
            assert_eq!(wanted.wrong(&stream, &case), 0, "`{entries}` entries");
        }
    }
}

#[test]
fn batches_are_in_flight_together_and_no_more_than_have_queues() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let case = Case::new(packed(512), 2);
    let mut reads = reads(&stream, &case, unordered(), OPTIONS);
    let wanted = Wanted::random(&stream, 45, 512, 9);
    let to = wanted.to(512);
    for _ in 0..20 {
        reads.submit(&stream, wanted.requests(), 0).unwrap();
        reads.submit(&stream, wanted.requests(), 30).unwrap();
        assert!(!reads.has_room());
        let refused = reads.submit(&stream, wanted.requests(), 0).unwrap_err();
        assert!(refused.to_string().contains("at most `2` in flight"), "{refused}");
        reads.complete(&stream, to).unwrap();
        reads.complete(&stream, to).unwrap();
        // The GPU alone knows that none are left behind the last.
        reads.submit(&stream, wanted.requests(), 60).unwrap();
        reads.complete(&stream, to).unwrap();
        reads.check(&stream).unwrap();
        assert_eq!(wanted.wrong(&stream, &case), 0);
    }
    let refused = reads.complete(&stream, to).unwrap_err();
    assert!(refused.to_string().contains("one in flight"), "{refused}");
}

/// Reads some rows with these faults, again and again until it fails.
fn failing(
    device: &Device,
    faults: Faults,
    timeout: Duration,
) -> (tiergraph_core::Error, GpuReads) {
    let streams = streams(device);
    let case = Case::new(packed(512), 2);
    let options = GpuReadOptions { timeout, ..OPTIONS };
    let mut reads = reads(&streams.completing, &case, faults, options);
    let wanted = Wanted::random(&streams.completing, 45, 512, 9);
    for _ in 0..100 {
        if let Err(error) = reads.read(&streams, wanted.requests(), 45, wanted.to(512)) {
            return (error, reads);
        }
    }
    panic!("no read failed");
}

fn assert_broken(device: &Device, reads: &mut GpuReads) {
    let stream = Stream::new(device).unwrap();
    let again = reads.check(&stream).unwrap_err().to_string();
    assert!(again.contains("an earlier failure"), "{again}");
}

#[test]
fn a_command_that_is_never_completed_is_an_error_in_time() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    for seed in 0..3 {
        let faults = Faults { seed, dropped: 0.05, ..Default::default() };
        let begin = Instant::now();
        let (error, mut reads) = failing(&device, faults, Duration::from_millis(200));
        assert!(begin.elapsed() < Duration::from_secs(10));
        let message = error.to_string();
        assert!(message.contains("a completion within `200 ms`, got none"), "{message}");
        assert!(message.contains("of drive "), "{message}");
        assert_broken(&device, &mut reads);
    }
}

#[test]
fn a_command_that_fails_is_an_error_with_its_row_and_status_and_others_go_on() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let streams = streams(&device);
    let case = Case::new(packed(1024), 2);
    let faults = Faults { seed: 5, failed: 0.1, ..Default::default() };
    let mut reads = reads(&streams.completing, &case, faults, OPTIONS);
    let (mut failed, mut right) = (0, 0);
    for seed in 0..20 {
        let wanted = Wanted::random(&streams.completing, 20, 1024, seed);
        match reads.read(&streams, wanted.requests(), 20, wanted.to(1024)) {
            Ok(()) => right += 1,
            Err(error) => {
                let message = error.to_string();
                assert_eq!(error.kind(), ErrorKind::Io);
                assert!(message.contains("got status 0x281, unrecovered read error"), "{message}");
                assert!(message.contains("cannot read by a GPU `row "), "{message}");
                let wrong = wanted.wrong(&streams.completing, &case);
                assert!((1..20).contains(&wrong), "{wrong} rows did not come");
                failed += 1;
            }
        }
    }
    assert!(failed > 0 && right > 0, "{failed} failed, {right} did not");
}

#[test]
fn a_command_that_is_completed_twice_is_an_error() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    for seed in 0..3 {
        let faults = Faults { seed, repeated: 0.02, shuffled: true, ..Default::default() };
        let (error, mut reads) = failing(&device, faults, OPTIONS.timeout);
        let message = error.to_string();
        assert!(message.contains("a command in flight, got command"), "{message}");
        assert_broken(&device, &mut reads);
    }
}

#[test]
fn a_row_past_a_drives_end_is_an_error_of_the_drive() -> Result<()> {
    let Some((_alone, device)) = emulated_gpu() else { return Ok(()) };
    let streams = streams(&device);
    let case = Case::new(packed(512), 1);
    let mut reads = reads(&streams.completing, &case, Faults::default(), OPTIONS);
    let request = RowRequest { row: 1 << 20, target: 0 };
    let wanted = Wanted::of(&streams.completing, vec![request], 512);
    let error = reads.read(&streams, wanted.requests(), 1, wanted.to(512)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read by a GPU `row 1048576`: expected drive 0 to give it, got status 0x80, block past the end"
    );
    let wanted = Wanted::random(&streams.completing, 40, 512, 1);
    reads.read(&streams, wanted.requests(), 40, wanted.to(512))?;
    assert_eq!(wanted.wrong(&streams.completing, &case), 0);
    Ok(())
}

#[test]
fn kernels_that_wait_are_stopped() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let streams = streams(&device);
    let case = Case::new(packed(512), 2);
    let faults = Faults { dropped: 1.0, ..Default::default() };
    let mut reads = reads(&streams.completing, &case, faults, OPTIONS);
    let wanted = Wanted::random(&streams.completing, 40, 512, 1);
    let stop = reads.stop();
    let begin = Instant::now();
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.stop();
    });
    let error = reads.read(&streams, wanted.requests(), 40, wanted.to(512)).unwrap_err();
    stopping.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(begin.elapsed() < OPTIONS.timeout / 2);
    assert_broken(&device, &mut reads);
}

/// Reads in rounds of the case's rows.
fn rounds(device: &Device, case: &Case, faults: Faults, options: GpuReadOptions) -> RoundReads {
    let streams = streams(device);
    let reads = reads(&streams.completing, case, faults, options);
    RoundReads::new(reads, streams).unwrap()
}

/// Begins to read what is wanted.
fn begin(reads: &mut RoundReads, stream: &Stream, wanted: &Wanted, row_bytes: u32) -> u64 {
    let ready = Event::behind(stream).unwrap();
    let count = wanted.requests.len();
    reads.begin(&ready, wanted.requests(), 0..count, wanted.to(row_bytes)).unwrap()
}

fn proceed_until(reads: &mut RoundReads, ticket: u64) -> Result<()> {
    while !reads.has_ended(ticket) {
        reads.proceed()?;
    }
    reads.end(ticket)
}

#[test]
fn lists_of_any_length_are_read_in_rounds_that_wait_for_no_drive() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    for case in every_layout().into_iter().chain(crossing()) {
        let row_bytes = case.rows.row_bytes;
        let mut reads = rounds(&device, &case, unordered(), OPTIONS);
        let lists: Vec<Wanted> = [(1, 1), (2, 0), (3, 30), (4, 31), (5, 400), (6, 7)]
            .map(|(seed, count)| Wanted::random(&stream, count, row_bytes, seed))
            .into();
        let tickets: Vec<u64> =
            lists.iter().map(|wanted| begin(&mut reads, &stream, wanted, row_bytes)).collect();
        for (wanted, ticket) in lists.iter().zip(tickets) {
            proceed_until(&mut reads, ticket).unwrap();
            assert_eq!(wanted.wrong(&stream, &case), 0, "{:?}", case.rows);
        }
        assert!(!reads.is_reading());
        assert!(reads.bytes_asked().unwrap() >= 469 * u64::from(row_bytes));
    }
}

#[test]
fn a_list_that_is_given_up_ends_and_others_go_on() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let (stream, case) = (Stream::new(&device).unwrap(), Case::new(packed(512), 2));
    let mut reads = rounds(&device, &case, unordered(), OPTIONS);
    let [dropped, kept] = [8, 9].map(|seed| Wanted::random(&stream, 300, 512, seed));
    let tickets = [&dropped, &kept].map(|wanted| begin(&mut reads, &stream, wanted, 512));
    reads.give_up(tickets[0]);
    assert!(!reads.has_ended(tickets[0]), "its first rounds are in flight");
    for ticket in tickets {
        proceed_until(&mut reads, ticket).unwrap();
    }
    assert_eq!(kept.wrong(&stream, &case), 0);
    assert!(dropped.wrong(&stream, &case) > 200);
}

#[test]
fn rounds_that_fail_say_why_in_time() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let (stream, case) = (Stream::new(&device).unwrap(), Case::new(packed(512), 2));
    let timeout = Duration::from_millis(300);
    let options = GpuReadOptions { timeout, ..OPTIONS };
    let none = Faults { seed: 1, ..Default::default() };
    for (faults, what, is_over) in [
        (Faults { dropped: 0.1, ..none }, "a completion within `300 ms`", true),
        (Faults { failed: 0.1, ..none }, "unrecovered read error", false),
        (Faults { repeated: 0.5, ..none }, "a command in flight", true),
    ] {
        let mut reads = rounds(&device, &case, faults, options);
        let wanted = Wanted::random(&stream, 100, 512, 1);
        let since = Instant::now();
        let ticket = begin(&mut reads, &stream, &wanted, 512);
        let error = proceed_until(&mut reads, ticket).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(since.elapsed() < 10 * timeout);
        assert!(reads.has_ended(ticket) && !reads.is_reading());
        let again = reads.end(ticket);
        assert_eq!(again.is_err(), is_over, "{again:?}");
    }
}

#[test]
fn warps_that_wait_for_their_own_rows_leave_in_time_and_say_why() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let case = Case::new(packed(512), 2);
    let (wanted, timeout) = (Wanted::random(&stream, 60, 512, 1), Duration::from_millis(200));
    let none = Faults { seed: 1, ..Default::default() };
    for (faults, what) in [
        (Faults { dropped: 0.1, ..none }, "a completion within `200 ms`"),
        (Faults { failed: 0.1, ..none }, "unrecovered read error"),
        (Faults { repeated: 0.5, ..none }, "a command in flight"),
    ] {
        let options = GpuReadOptions { timeout, ..OPTIONS };
        let drives = case.drives(faults);
        let mut reads = CoupledReads::new(&stream, drives, &case.rows, options).unwrap();
        let error = reads.read(&stream, 2, wanted.requests(), wanted.to(512)).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn warps_that_wait_for_their_own_rows_are_stopped() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let stream = Stream::new(&device).unwrap();
    let case = Case::new(packed(512), 2);
    let drives = case.drives(Faults { dropped: 1.0, ..Default::default() });
    let mut reads = CoupledReads::new(&stream, drives, &case.rows, OPTIONS).unwrap();
    let wanted = Wanted::random(&stream, 40, 512, 1);
    let (stop, begin) = (reads.stop(), Instant::now());
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.stop();
    });
    let error = reads.read(&stream, 2, wanted.requests(), wanted.to(512)).unwrap_err();
    stopping.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert!(begin.elapsed() < OPTIONS.timeout / 2);
    let again = reads.read(&stream, 2, wanted.requests(), wanted.to(512)).unwrap_err();
    assert!(again.to_string().contains("an earlier failure"), "{again}");
}

#[test]
fn measurements_read_the_tables_rows() {
    let Some((_alone, _device)) = emulated_gpu() else { return };
    let table = BenchTable::new(12 << 20).unwrap();
    let load = GpuReadLoad {
        manner: Manner::Split,
        row_bytes: 1024,
        rows: 500,
        drives: 3,
        threads: 3,
        pairs_per_drive: 1,
        entries: 64,
        batches: 2,
        submit_threads: 64,
        blocks: 2,
        threads_per_block: 64,
        iops: None,
        copies: true,
        seconds: 0.05,
    };
    for manner in [Manner::Split, Manner::Coupled, Manner::Alone] {
        let rate = table.measure(0, &GpuReadLoad { manner, ..load }).unwrap();
        assert!(rate.reads > 0 && rate.reads_per_second > 0.0, "{rate:?}");
        assert_eq!(rate.submit_ns.is_some(), manner == Manner::Alone);
    }
    let modelled = GpuReadLoad { iops: Some(2000.0), seconds: 0.5, ..load };
    let rate = table.measure(0, &modelled).unwrap();
    assert!(rate.reads_per_second < 1.3 * 6000.0, "no faster than three modelled drives: {rate:?}");
    let odd = table.measure(0, &GpuReadLoad { row_bytes: 1000, ..load }).unwrap_err();
    assert!(odd.to_string().contains("whole blocks a row"), "{odd}");
}
