//! How many bytes an arc takes as packed rows, and how fast they are read.
//!
//! `cargo run --release -p tiergraph-format --example rows_size -- 20`
//!
//! The graph: RMAT of the given scale with Graph500's parameters (A 0.57, B 0.19, C 0.19), edge
//! factor 16, directed, relabelled by descending total degree, duplicates removed.

use std::cmp::Reverse;
use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use tiergraph_core::Result;
use tiergraph_format::block::DEFAULT_BLOCK_BYTES;
use tiergraph_format::rows::{PAGE_BYTES, RowsIndex, RowsPage, RowsWriter, check_page};
use tiergraph_format::salt::Salt;
use tiergraph_format::sink::VecSink;

const EDGE_FACTOR: usize = 16;

fn main() -> Result<()> {
    let scale = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(18);
    let arcs = rmat(scale);
    let begin = core_seconds();
    let (bytes, index) = write(&arcs)?;
    let seconds = core_seconds() - begin;
    let total = bytes.len() + index.resident_bytes();
    let vertices = 1u64 << scale;
    println!("scale {scale}: {} arcs, {} pages", arcs.len(), index.len());
    println!("{:.3} bytes an arc, all included", total as f64 / arcs.len() as f64);
    println!("{:.3} index bytes a vertex", index.resident_bytes() as f64 / vertices as f64);
    println!("write {:.0} M arcs/s", arcs.len() as f64 / seconds / 1e6);
    scan(&bytes, &arcs)?;
    scan_unchecked(&bytes)?;
    sample(&bytes, &index, &arcs)
}

/// Seconds that this thread has run: rates are a core's, whatever else the machine does.
fn core_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn write(arcs: &[u64]) -> Result<(Vec<u8>, RowsIndex)> {
    let mut writer = RowsWriter::new(VecSink::default(), DEFAULT_BLOCK_BYTES);
    let mut neighbors = Vec::new();
    for row in arcs.chunk_by(|a, b| a >> 32 == b >> 32) {
        neighbors.clear();
        neighbors.extend(row.iter().map(|arc| arc & 0xffff_ffff));
        writer.push(row[0] >> 32, &neighbors)?;
    }
    let (sink, index, _) = writer.finish()?;
    Ok((sink.blocks.concat(), index))
}

/// Reads every list, checksums included, and compares them with the graph.
fn scan(bytes: &[u8], arcs: &[u64]) -> Result<()> {
    let (mut neighbors, mut seen) = (Vec::new(), 0);
    let mut seconds = 0.0;
    for (number, page) in bytes.chunks(PAGE_BYTES).enumerate() {
        let begin = core_seconds();
        check_page(page, "rows", number as u64, Salt::NONE)?;
        let page = RowsPage::parse(page)?;
        neighbors.clear();
        for vertex in page.vertices() {
            page.neighbors(vertex, &mut neighbors)?;
        }
        seconds += core_seconds() - begin;
        let expected = arcs[seen..seen + neighbors.len()].iter().map(|arc| arc & 0xffff_ffff);
        assert!(neighbors.iter().copied().eq(expected), "page {number}");
        seen += neighbors.len();
    }
    assert_eq!(seen, arcs.len());
    println!("scan {:.0} M neighbours/s with checksums", seen as f64 / seconds / 1e6);
    Ok(())
}

fn scan_unchecked(bytes: &[u8]) -> Result<()> {
    let (mut neighbors, mut seen) = (Vec::new(), 0);
    let begin = core_seconds();
    for page in bytes.chunks(PAGE_BYTES) {
        let page = RowsPage::parse(page)?;
        for vertex in page.vertices() {
            neighbors.clear();
            page.neighbors(vertex, &mut neighbors)?;
            seen += black_box(&neighbors).len();
        }
    }
    let rate = seen as f64 / (core_seconds() - begin) / 1e6;
    println!("scan {rate:.0} M neighbours/s without");
    Ok(())
}

/// Takes the neighbour at the end of random arcs: hubs by their degree.
fn sample(bytes: &[u8], index: &RowsIndex, arcs: &[u64]) -> Result<()> {
    let mut random = SplitMix(3);
    let samples = 2_000_000;
    let begin = core_seconds();
    for _ in 0..samples {
        let vertex = arcs[random.below(arcs.len() as u64) as usize] >> 32;
        let first = index.pages_of(vertex).start as usize * PAGE_BYTES;
        let degree = RowsPage::parse(&bytes[first..first + PAGE_BYTES])?.degree(vertex)?;
        let k = random.below(degree);
        let at = index.page_of_kth(vertex, k).unwrap_or(0) as usize * PAGE_BYTES;
        black_box(RowsPage::parse(&bytes[at..at + PAGE_BYTES])?.kth(vertex, k)?);
    }
    let rate = f64::from(samples) / (core_seconds() - begin) / 1e6;
    println!("sample {rate:.1} M neighbours/s, vertices drawn by degree");
    Ok(())
}

/// Arcs as `source << 32 | target`, ascending.
fn rmat(scale: u32) -> Vec<u64> {
    let vertices = 1usize << scale;
    let mut random = SplitMix(7);
    let mut arcs: Vec<u64> =
        (0..vertices * EDGE_FACTOR).map(|_| rmat_arc(scale, &mut random)).collect();
    let mut degree = vec![0u32; vertices];
    for arc in &arcs {
        degree[(arc >> 32) as usize] += 1;
        degree[*arc as u32 as usize] += 1;
    }
    let mut order: Vec<u32> = (0..vertices as u32).collect();
    order.sort_by_key(|&vertex| Reverse(degree[vertex as usize]));
    let mut rank = vec![0u64; vertices];
    for (position, &vertex) in order.iter().enumerate() {
        rank[vertex as usize] = position as u64;
    }
    for arc in &mut arcs {
        *arc = rank[(*arc >> 32) as usize] << 32 | rank[*arc as u32 as usize];
    }
    arcs.sort_unstable();
    arcs.dedup();
    arcs
}

fn rmat_arc(scale: u32, random: &mut SplitMix) -> u64 {
    let (mut source, mut target) = (0, 0);
    for _ in 0..scale {
        let (down, right) = match random.below(100) {
            0..57 => (0, 0),
            57..76 => (0, 1),
            76..95 => (1, 0),
            _ => (1, 1),
        };
        source = source << 1 | down;
        target = target << 1 | right;
    }
    source << 32 | target
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
    }
}
