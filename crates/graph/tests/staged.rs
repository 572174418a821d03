//! Staged passes hand every wanted block over once, whatever is kept and whatever fails.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{Layout, PACKED, Sample, cold};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::manifest::Codec;
use tiergraph_graph::{BlockFile, Direction, Graph, OpenOptions, Stage, StagedReader, Then};
use tiergraph_io::EngineChoice;
use tiergraph_mem::AlignedBuf;

const SMALL: Layout = Layout { block_bytes: 4 << 10, ..PACKED };
const BUFFERS: usize = 3;

/// Blocks and their bytes.
type Got = Vec<(u32, Vec<u8>)>;

/// A device that holds on to the last few buffers, and fails when `fail` comes to 0. If it is then
/// `lost`, it gives nothing back any more.
struct Device<'a> {
    got: Got,
    held: VecDeque<(u32, AlignedBuf)>,
    fail: &'a AtomicUsize,
    lost: Option<&'a AtomicBool>,
}

impl Stage for Device<'_> {
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()> {
        self.got.push((block, buffer.to_vec()));
        self.held.push_back((block, buffer));
        match self.fail.fetch_sub(1, Ordering::Relaxed) {
            1 => {
                self.lost.inspect(|lost| lost.store(true, Ordering::Relaxed));
                Err(Error::new(ErrorKind::Device, "compute"))
            }
            _ => Ok(()),
        }
    }

    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        if self.lost.is_some_and(|lost| lost.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Device, "give buffers back"));
        }
        while self.held.len() > if wait { 0 } else { 2 } {
            to.extend(self.held.pop_front());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn block_bytes(graph: &Graph) -> usize {
    graph.manifest().block_bytes as usize
}

fn buffers(graph: &Graph, count: usize) -> Vec<AlignedBuf> {
    (0..count).map(|_| AlignedBuf::zeroed(block_bytes(graph)).unwrap()).collect()
}

fn reader(graph: &Graph) -> StagedReader {
    let each = |_| buffers(graph, BUFFERS);
    graph.staged_reader((0..graph.threads()).map(each).collect()).unwrap()
}

/// The blocks that a pass handed over, ascending, and how many bytes it read; it fails at the
/// `fail`-th, if it has so many.
fn pass(
    graph: &Graph,
    reader: &mut StagedReader,
    (file, blocks): (BlockFile, &[u32]),
    then: Then,
    fail: usize,
) -> Result<(Got, u64)> {
    let fail = AtomicUsize::new(fail);
    let device = |_| Device { got: Vec::new(), held: VecDeque::new(), fail: &fail, lost: None };
    let mut stages: Vec<_> = (0..graph.threads()).map(device).collect();
    let before = graph.stats();
    reader.pass(graph, (file, blocks), then, &mut stages)?;
    assert!(stages.iter().all(|stage| stage.held.is_empty()));
    let mut got: Vec<_> = stages.into_iter().flat_map(|stage| stage.got).collect();
    got.sort();
    Ok((got, graph.stats().since(&before).bytes_read))
}

#[test]
fn what_is_kept_is_handed_over_and_not_read() {
    for (layout, file) in [
        (SMALL, BlockFile::Tiles),
        (Layout { stripes: 2, ..SMALL }, BlockFile::Tiles),
        (Layout { codec: Codec::Raw, ..SMALL }, BlockFile::Raw(Direction::In)),
    ] {
        let sample = Sample::new(layout);
        for threads in 1..=3 {
            let graph = sample.open(&cold(threads)).unwrap();
            let mut reader = reader(&graph);
            let all: Vec<u32> = (0..graph.blocks_of(file).unwrap()).collect();
            let once = |reader: &mut _, then| pass(&graph, reader, (file, &all), then, 0).unwrap();
            let (expected, bytes) = once(&mut reader, Then::Stop);
            assert!(expected.iter().map(|(block, _)| *block).eq(all.iter().copied()));
            let size = block_bytes(&graph) as u64;
            assert_eq!(bytes, all.len() as u64 * size);
            // A third is kept, then another, in pieces.
            for (kept, part) in all.chunks(all.len() / 3).take(2).enumerate() {
                let spare = buffers(&graph, part.len());
                reader.keep(&graph, (file, part), spare).unwrap();
                let missing = (all.len() - (kept + 1) * part.len()) as u64 * size;
                for then in [Then::Stop, Then::Again, Then::Again, Then::Stop] {
                    let (got, bytes) = once(&mut reader, then);
                    assert!(got == expected, "{layout:?}, {threads} threads");
                    if then == Then::Stop {
                        let read_ahead = 2 * threads as u64 * BUFFERS as u64 * size;
                        assert!(bytes <= missing && bytes + read_ahead >= missing, "{bytes}");
                    }
                }
                // Of what is kept, only what is wanted.
                let some: Vec<u32> = all.iter().copied().filter(|block| block % 5 == 0).collect();
                let (got, _) = pass(&graph, &mut reader, (file, &some), Then::Stop, 0).unwrap();
                assert!(got.iter().map(|(block, _)| *block).eq(some));
            }
        }
    }
}

/// A device that takes blocks of the pass after, and computes on them when that comes.
#[derive(Default)]
struct Eager {
    room: usize,
    held: VecDeque<(u32, AlignedBuf)>,
    /// What there is to compute on, and what was.
    batch: Vec<u32>,
    computed: Vec<u32>,
}

impl Stage for Eager {
    fn take(&mut self, block: u32, buffer: AlignedBuf) -> Result<()> {
        self.held.push_back((block, buffer));
        self.batch.push(block);
        Ok(())
    }

    fn give_back(&mut self, to: &mut Vec<(u32, AlignedBuf)>, wait: bool) -> Result<()> {
        to.extend(self.held.drain(..usize::from(wait && !self.held.is_empty())));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.computed.append(&mut self.batch);
        Ok(())
    }

    fn has_room_ahead(&self) -> bool {
        self.batch.len() < self.room
    }

    fn forget(&mut self, to: &mut Vec<(u32, AlignedBuf)>) -> Result<()> {
        self.batch.clear();
        to.extend(self.held.drain(..));
        Ok(())
    }
}

#[test]
fn blocks_of_the_next_pass_are_handed_over_ahead_of_it() {
    let sample = Sample::new(SMALL);
    for (threads, room) in [(1, 1), (1, BUFFERS), (2, 2), (3, 9)] {
        // Of this engine's reads something has arrived whenever it is asked.
        let options = OpenOptions { engine: EngineChoice::Posix, ..cold(threads) };
        let graph = sample.open(&options).unwrap();
        let file = BlockFile::Tiles;
        let all: Vec<u32> = (0..graph.blocks_of(file).unwrap()).collect();
        let some: Vec<u32> = all.iter().copied().filter(|block| block % 3 == 1).collect();
        let mut reader = reader(&graph);
        let eager = |_| Eager { room, ..Eager::default() };
        let mut stages: Vec<_> = (0..threads).map(eager).collect();
        let mut were_ahead = 0;
        let passes = [
            (&all, Then::Again),
            (&all, Then::Again),
            (&some, Then::Again),
            (&some, Then::Again),
            (&some, Then::Stop),
            (&all, Then::Stop),
        ];
        for (blocks, then) in passes {
            let before = graph.stats();
            reader.pass(&graph, (file, blocks), then, &mut stages).unwrap();
            let bytes = graph.stats().since(&before).bytes_read;
            assert_eq!(bytes, (blocks.len() * block_bytes(&graph)) as u64);
            let mut got: Vec<u32> =
                stages.iter_mut().flat_map(|s| s.computed.split_off(0)).collect();
            got.sort_unstable();
            assert_eq!(got, *blocks, "{threads} threads, room for {room}, {then:?}");
            let ahead: usize = stages.iter().map(|stage| stage.batch.len()).sum();
            assert!(ahead <= if then == Then::Again { threads * room } else { 0 });
            were_ahead += ahead;
        }
        assert!(were_ahead > 0, "{threads} threads, room for {room}");
    }
}

#[test]
fn a_pass_that_fails_loses_no_block() {
    let sample = Sample::new(SMALL);
    let graph = sample.open(&cold(2)).unwrap();
    let file = BlockFile::Tiles;
    let all: Vec<u32> = (0..graph.blocks_of(file).unwrap()).collect();
    let mut reader = reader(&graph);
    let half = &all[..all.len() / 2];
    reader.keep(&graph, (file, half), buffers(&graph, half.len())).unwrap();
    let (expected, _) = pass(&graph, &mut reader, (file, &all), Then::Again, 0).unwrap();
    for fail in [1, 2, 5, all.len() / 2, all.len()] {
        let error = pass(&graph, &mut reader, (file, &all), Then::Again, fail).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        let (got, _) = pass(&graph, &mut reader, (file, &all), Then::Again, 0).unwrap();
        assert!(got == expected, "after a failure at block {fail}");
    }
}

#[test]
fn blocks_that_a_lost_device_kept_are_read_again() {
    let sample = Sample::new(SMALL);
    let graph = sample.open(&cold(1)).unwrap();
    let file = BlockFile::Tiles;
    let all: Vec<u32> = (0..graph.blocks_of(file).unwrap()).collect();
    let mut reader = reader(&graph);
    let half = &all[..all.len() / 2];
    reader.keep(&graph, (file, half), buffers(&graph, half.len())).unwrap();
    let (fail, lost) = (AtomicUsize::new(5), AtomicBool::new(false));
    let device = Device { got: Vec::new(), held: VecDeque::new(), fail: &fail, lost: Some(&lost) };
    let error = reader.pass(&graph, (file, half), Then::Stop, &mut [device]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    let (got, bytes) = pass(&graph, &mut reader, (file, half), Then::Stop, 0).unwrap();
    assert!(got.iter().map(|(block, _)| *block).eq(half.iter().copied()));
    assert!(bytes > 0, "what the device kept is read");
}
