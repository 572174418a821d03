#![allow(clippy::unwrap_used, reason = "x")]
use std::time::Instant;
use tiergraph_format::manifest::Weights;
use tiergraph_format::tiles::*;
use tiergraph_kernels::{Isa, Kernel, RowState, SymmetricState};
const CLASSES: usize = 24;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let undirected = args[2] == "u";
    let log2 = if undirected { 13 } else { 16 };
    let bytes = std::fs::read(format!("{}/tiles.blocks", args[1])).unwrap();
    let index: Vec<TilesIndex> = std::fs::read(format!("{}/tiles.index", args[1])).unwrap().chunks(32).map(|c| TilesIndex::from_bytes(c).unwrap()).collect();
    let options = TileOptions { columns_log2: log2, min_gap: 0, weights: Weights::None, block_bytes: 1 << 20 };
    let size = index.iter().map(|e| (e.row_base + 2*65536).max((u64::from(e.column_tile) + 1) << log2)).max().unwrap() as usize + 65536;
    let x: Vec<f32> = (0..size).map(|i| (i % 1000) as f32).collect();
    let kernel = Kernel::new(options, Isa::detect());
    let mut ys: Vec<Vec<f64>> = (0..2).map(|_| vec![1f64; size]).collect();
    ys.iter_mut().for_each(|y| y.fill(0.0));
    let blocks: Vec<&[TilesIndex]> = index.chunk_by(|a, b| a.block == b.block).collect();
    let arcs: u64 = index.iter().map(|e| u64::from(e.arcs)).sum();
    for it in 0..6 {
        let next = &std::sync::atomic::AtomicUsize::new(0);
        let begin = Instant::now();
        let cpu: Vec<[(f64, u64); CLASSES]> = std::thread::scope(|s| {
            let hs: Vec<_> = ys.iter_mut().map(|y| {
                let (x, blocks, bytes) = (&x, &blocks, &bytes);
                s.spawn(move || {
                    let mut t = [(0f64, 0u64); CLASSES];
                    let mut strip = vec![RowState::default(); STRIP_ROWS];
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(of) = blocks.get(i) else { break };
                        let data = &bytes[(of[0].block as usize) << 20..][..1 << 20];
                        for e in *of {
                            let seg = e.segment(data, 0, log2).unwrap();
                            let (r, c) = (seg.row_base as usize, seg.column_base as usize);
                            let cols = c..c + (1 << log2);
                            let b = Instant::now();
                            if undirected {
                                let mut st = SymmetricState { x_columns: &x[cols.clone()], y_columns: &mut y[cols], rows: &mut strip };
                                kernel.sum_both(&seg, &mut st).unwrap();
                            } else {
                                kernel.sum_rows(&seg, &x[cols], &mut y[r..r + STRIP_ROWS]).unwrap();
                            }
                            let k = e.arcs.ilog2() as usize;
                            t[k].0 += b.elapsed().as_secs_f64();
                            t[k].1 += u64::from(e.arcs);
                        }
                    }
                    t
                })
            }).collect();
            hs.into_iter().map(|h| h.join().unwrap()).collect()
        });
        let wall = begin.elapsed().as_secs_f64();
        println!("it {it}: {:.3} s {:.2} G stored arcs/s", wall, arcs as f64 / wall / 1e9);
        if it == 5 {
            let total: f64 = cpu.iter().flatten().map(|c| c.0).sum();
            for k in 0..CLASSES {
                let (s, n) = cpu.iter().fold((0.0, 0), |a, c| (a.0 + c[k].0, a.1 + c[k].1));
                if n > 0 { println!("  2^{k}: arcs {:.3} time {:.3} ns/arc {:.2}", n as f64 / arcs as f64, s / total, s * 1e9 / n as f64); }
            }
        }
    }
}
