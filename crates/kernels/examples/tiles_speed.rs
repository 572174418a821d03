//! How small tiles are and how fast a pass over them is: R-MAT, degree-ordered, in memory.
//!
//! `cargo run --release -p tiergraph-kernels --example tiles_speed -- SCALE directed|undirected
//! [COLUMNS_LOG2] [STRIP_ARCS]`
#![allow(clippy::unwrap_used, reason = "a failure ends the measurement")]

use std::time::Instant;

use tiergraph_format::manifest::Weights;
use tiergraph_format::sink::VecSink;
use tiergraph_format::tiles::*;
use tiergraph_kernels::{Isa, Kernel, SymmetricState, SymmetricStrip};

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

fn rmat(scale: u32, edges: u64) -> Vec<(u32, u32)> {
    (0..edges)
        .map(|i| {
            let (mut u, mut v) = (0u32, 0u32);
            let mut bits = 0;
            for level in 0..scale {
                if level % 4 == 0 {
                    bits = mix(i * 64 + u64::from(level) + 0x9e3779b97f4a7c15);
                }
                let r = (bits & 0xFFFF) as u32;
                bits >>= 16;
                let q = u32::from(r >= 37355) + u32::from(r >= 49807) + u32::from(r >= 62259);
                u = u << 1 | q >> 1;
                v = v << 1 | (q & 1);
            }
            (u, v)
        })
        .collect()
}

fn merge(strip: &SymmetricStrip, rows: usize, y: &mut [f64]) {
    y.iter_mut().zip(strip.sums(rows)).for_each(|(y, sum)| *y += sum);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let scale: u32 = args[1].parse().expect("scale");
    let undirected = args[2] == "undirected";
    let columns_log2 = args.get(3).map_or(if undirected { 13 } else { 16 }, |a| a.parse().unwrap());
    let strip_arcs: u64 = args.get(4).map_or(2 << 20, |a| a.parse().unwrap());
    let n = 1usize << scale;
    let mut edges = rmat(scale, (n as u64) * 16);
    let mut degree = vec![0u32; n];
    for &(u, v) in &edges {
        degree[u as usize] += 1;
        degree[v as usize] += 1;
    }
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&v| std::cmp::Reverse(degree[v as usize]));
    let mut rank = vec![0u32; n];
    for (new, &old) in order.iter().enumerate() {
        rank[old as usize] = new as u32;
    }
    for e in &mut edges {
        let (a, b) = (rank[e.0 as usize], rank[e.1 as usize]);
        *e = if undirected { (a.max(b), a.min(b)) } else { (b, a) };
    }
    edges.sort_unstable();
    edges.dedup();
    if undirected {
        edges.retain(|e| e.0 != e.1);
    }
    if std::env::var_os("STATS").is_some() {
        let mut by = [0u64; 12];
        for run in edges.chunk_by(|a, b| a.0 == b.0 && a.1 >> 9 == b.1 >> 9) {
            by[run.len().ilog2() as usize] += run.len() as u64;
        }
        println!("DENS {:?} of {}", by, edges.len());
    }
    let arcs = edges.len() as u64 * if undirected { 2 } else { 1 };
    let options =
        TileOptions { columns_log2, min_gap: 1, weights: Weights::None, block_bytes: 1 << 20 };
    let mut encoder = StripEncoder::new(options);
    let mut writer = TilesWriter::new(VecSink::default(), options);
    let begin = Instant::now();
    let (mut row, mut at) = (0usize, 0usize);
    let mut keys = Vec::new();
    while row < n {
        let (mut end, mut stop) = (row, at);
        while end < n && end - row < STRIP_ROWS {
            let next = stop + edges[stop..].partition_point(|e| (e.0 as usize) < end + 32);
            if next - at > strip_arcs as usize && end > row {
                break;
            }
            stop = next;
            end += 32;
        }
        keys.clear();
        keys.extend(edges[at..stop].iter().map(|e| arc_key(e.0 - row as u32, u64::from(e.1))));
        let strip = encoder.encode(row as u64, (end - row) as u32, &mut keys, None);
        writer.push(&strip).unwrap();
        row = end;
        at = stop;
    }
    let (sink, index) = writer.finish().unwrap();
    let bytes = sink.blocks.len() << 20;
    println!(
        "{arcs} arcs, {} blocks, {} segments, {:.3} bytes/arc + index {:.3}, encode {:.1} M arcs/s",
        sink.blocks.len(),
        index.len(),
        bytes as f64 / arcs as f64,
        (index.len() * 32) as f64 / arcs as f64,
        edges.len() as f64 / begin.elapsed().as_secs_f64() / 1e6
    );
    if std::env::var_os("STATS").is_some() {
        let kernel = Kernel::new(options, Isa::detect());
        let mut hist = std::collections::BTreeMap::<usize, (u64, u64, u64)>::new();
        for block in &sink.blocks {
            for segment in TilesBlock::parse(block, &options).unwrap().segments() {
                kernel
                    .for_each(&segment.unwrap(), |s| {
                        let a: u64 = s.active.iter().map(|&a| u64::from(a)).sum();
                        let e = hist.entry(s.columns.len().min(17)).or_default();
                        *e = (e.0 + 1, e.1 + u64::from(s.active[0]), e.2 + a);
                    })
                    .unwrap();
            }
        }
        for (steps, (slices, rows, arcs)) in hist {
            println!("STATS steps {steps}: slices {slices} rows {rows} arcs {arcs}");
        }
    }
    let size = n + 2 * STRIP_ROWS;
    let x: Vec<f32> = (0..size).map(|i| (mix(i as u64) >> 40) as f32 / (1 << 24) as f32).collect();
    for isa in Isa::available() {
        let kernel = Kernel::new(options, isa);
        let mut y = vec![0f64; size];
        for threads in [1usize, 2] {
            let mut best = f64::MAX;
            for _ in 0..if isa == Isa::Portable { 1 } else { 9 } {
                y.fill(0.0);
                let mut ys: Vec<Vec<f64>> = (1..threads).map(|_| vec![1f64; size]).collect();
                ys.iter_mut().for_each(|y| y.fill(0.0));
                let begin = Instant::now();
                let next = &std::sync::atomic::AtomicUsize::new(0);
                std::thread::scope(|s| {
                    for y in std::iter::once(&mut y).chain(&mut ys) {
                        let (blocks, x) = (&sink.blocks, &x);
                        s.spawn(move || {
                            let mut strip = SymmetricStrip::batch(1).unwrap();
                            let mut held = (0, 0);
                            loop {
                                let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                                let Some(block) = blocks.get(i) else { break };
                                let block = TilesBlock::parse(block, &options).unwrap();
                                for segment in block.segments() {
                                    let s = segment.unwrap();
                                    let (r, c) = (s.row_base as usize, s.column_base as usize);
                                    let columns = c..c + options.columns();
                                    if undirected {
                                        if held != (r, s.rows as usize) {
                                            merge(&strip[0], held.1, &mut y[held.0..]);
                                            held = (r, s.rows as usize);
                                            strip[0].begin(&x[r..][..held.1]);
                                        }
                                        let state = SymmetricState {
                                            x_columns: &x[columns.clone()],
                                            y_columns: &mut y[columns],
                                            strips: &mut strip,
                                        };
                                        kernel.sum_both([(&s, 0)], state).unwrap();
                                    } else {
                                        kernel
                                            .sum_rows(&s, &x[columns], &mut y[r..r + STRIP_ROWS])
                                            .unwrap();
                                    }
                                }
                            }
                            merge(&strip[0], held.1, &mut y[held.0..]);
                        });
                    }
                });
                best = best.min(begin.elapsed().as_secs_f64());
                for other in &ys {
                    y.iter_mut().zip(other).for_each(|(a, b)| *a += b);
                }
            }
            println!("{isa} {threads} threads: {:.2} G arcs/s", arcs as f64 / best / 1e9);
        }
        let mut want = vec![0f64; n];
        for &(r, c) in &edges {
            want[r as usize] += f64::from(x[c as usize]);
            if undirected {
                want[c as usize] += f64::from(x[r as usize]);
            }
        }
        let worst =
            want.iter().zip(&y).map(|(w, &y)| (w - y).abs() / w.max(1e-9)).fold(0f64, f64::max);
        println!("worst relative difference {worst:e}");
        assert!(worst < 1e-4);
    }
}
